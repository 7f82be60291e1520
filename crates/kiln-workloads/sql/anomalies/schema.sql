-- Anomalies: small tables that everybody wants at once, for tests of isolation.
--
-- The same file runs on Kiln and on PostgreSQL.

-- Rows that are always there. Money moves between them; their sum never changes.
CREATE TABLE registers (
    id      INTEGER NOT NULL,
    balance BIGINT  NOT NULL,
    stamp   BIGINT  NOT NULL,
    PRIMARY KEY (id)
);

-- Rows that come and go, and move between buckets. mirror is always the opposite of stamp.
CREATE TABLE items (
    id     INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    stamp  BIGINT  NOT NULL,
    mirror BIGINT  NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX items_bucket ON items (bucket, id);

-- Rows that move between places, one to a place.
CREATE TABLE seats (
    id    INTEGER NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (place)
);
