-- TPC-C: what belongs to a warehouse is in the partition of its number. Nobody changes items.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE warehouse PARTITION BY HASH (w_id);
ALTER TABLE district PARTITION BY HASH (d_w_id);
ALTER TABLE customer PARTITION BY HASH (c_w_id);
ALTER TABLE history PARTITION BY HASH (h_w_id);
ALTER TABLE orders PARTITION BY HASH (o_w_id);
ALTER TABLE new_order PARTITION BY HASH (no_w_id);
ALTER TABLE order_line PARTITION BY HASH (ol_w_id);
ALTER TABLE stock PARTITION BY HASH (s_w_id);
ALTER TABLE item SET REPLICATED;
