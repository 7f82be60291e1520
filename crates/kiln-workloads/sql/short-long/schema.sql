-- Short and long transactions: one table of counters (VLL, VLDB Journal 2015, section 3.1.2).
--
-- The same file runs on Kiln and on PostgreSQL. The table has partitions, as systems that assign data to cores want them.

CREATE TABLE records (
    partition_id SMALLINT NOT NULL,
    record_id    INTEGER  NOT NULL,
    counter      BIGINT   NOT NULL,
    digest       BIGINT   NOT NULL,
    PRIMARY KEY (partition_id, record_id)
);
