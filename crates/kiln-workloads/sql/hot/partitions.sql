-- The hot-record microbenchmark: neighbouring counters are in neighbouring partitions.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE counters PARTITION BY HASH (counter_id);
