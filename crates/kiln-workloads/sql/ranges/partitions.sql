-- Ranges: neighbouring entries are in neighbouring partitions.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE entries PARTITION BY HASH (entry_id);
