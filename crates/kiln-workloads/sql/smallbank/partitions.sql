-- SmallBank: what belongs to a customer is in the partition of its number.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE accounts PARTITION BY HASH (customer_id);
ALTER TABLE savings PARTITION BY HASH (customer_id);
ALTER TABLE checking PARTITION BY HASH (customer_id);
