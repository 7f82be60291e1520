-- Anomalies: rows that stay, or that keep their number, are in its partition. Seats are spread: their places are keys as well.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE registers PARTITION BY HASH (id);
ALTER TABLE items PARTITION BY HASH (id);
