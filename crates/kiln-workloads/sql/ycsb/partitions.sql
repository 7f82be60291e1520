-- YCSB: neighbouring keys are in neighbouring partitions.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE usertable PARTITION BY HASH (ycsb_key);
