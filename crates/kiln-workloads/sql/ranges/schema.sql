-- Ranges: entries with numbers of so many bits, all of them (VLL, VLDB Journal 2015, §3.4).
--
-- The same file runs on Kiln and on PostgreSQL.

CREATE TABLE entries (
    entry_id INTEGER NOT NULL,
    counter  BIGINT  NOT NULL,
    digest   BIGINT  NOT NULL,
    PRIMARY KEY (entry_id)
);
