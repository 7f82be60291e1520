-- RUBiS: bids and purchases are with their item.
--
-- PostgreSQL has no such statements: there this file is left out. Protocols without partitions do not look at it.

ALTER TABLE items PARTITION BY HASH (item_id);
ALTER TABLE bids PARTITION BY HASH (bid_item_id);
ALTER TABLE buy_now PARTITION BY HASH (buy_item_id);
