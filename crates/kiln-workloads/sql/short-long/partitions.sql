-- Short and long transactions: the partitions that the records say.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE records PARTITION BY HASH (partition_id);
