-- The hot-record microbenchmark: counters that everybody increments.
--
-- The same file runs on Kiln and on PostgreSQL.

CREATE TABLE counters (
    counter_id INTEGER NOT NULL,
    count      BIGINT  NOT NULL,
    PRIMARY KEY (counter_id)
);
