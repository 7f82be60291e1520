-- HOT: one table of twenty numbers a record, some of which everybody wants (STRIFE, SIGMOD 2020, section 5.1).
--
-- The same file runs on Kiln and on PostgreSQL. The table has partitions, as systems that assign data to cores want them.

CREATE TABLE records (
    partition_id SMALLINT NOT NULL,
    record_id    INTEGER  NOT NULL,
    value_01     BIGINT   NOT NULL,
    value_02     BIGINT   NOT NULL,
    value_03     BIGINT   NOT NULL,
    value_04     BIGINT   NOT NULL,
    value_05     BIGINT   NOT NULL,
    value_06     BIGINT   NOT NULL,
    value_07     BIGINT   NOT NULL,
    value_08     BIGINT   NOT NULL,
    value_09     BIGINT   NOT NULL,
    value_10     BIGINT   NOT NULL,
    value_11     BIGINT   NOT NULL,
    value_12     BIGINT   NOT NULL,
    value_13     BIGINT   NOT NULL,
    value_14     BIGINT   NOT NULL,
    value_15     BIGINT   NOT NULL,
    value_16     BIGINT   NOT NULL,
    value_17     BIGINT   NOT NULL,
    value_18     BIGINT   NOT NULL,
    value_19     BIGINT   NOT NULL,
    value_20     BIGINT   NOT NULL,
    PRIMARY KEY (partition_id, record_id)
);
