-- Read-modify-writes: one table of records of a thousand bytes (ORTHRUS, SIGMOD 2016, Appendix A).
--
-- The same file runs on Kiln and on PostgreSQL. The table has partitions, as systems that assign data to cores want them.

CREATE TABLE records (
    partition_id SMALLINT     NOT NULL,
    record_id    INTEGER      NOT NULL,
    counter      BIGINT       NOT NULL,
    field_1      VARCHAR(100) NOT NULL,
    field_2      VARCHAR(100) NOT NULL,
    field_3      VARCHAR(100) NOT NULL,
    field_4      VARCHAR(100) NOT NULL,
    field_5      VARCHAR(100) NOT NULL,
    field_6      VARCHAR(100) NOT NULL,
    field_7      VARCHAR(100) NOT NULL,
    field_8      VARCHAR(100) NOT NULL,
    field_9      VARCHAR(100) NOT NULL,
    field_10     VARCHAR(86) NOT NULL,
    PRIMARY KEY (partition_id, record_id)
);
