-- Ways to break a RUBiS database, each with the conditions of audit.sql that must report it ("bids entered", "purchases entered"
-- and "items kept" are the driver's own checks).

-- breaks greatest bid: a greatest bid forgotten
UPDATE items SET max_bid = max_bid - 1 WHERE item_id = 3;

-- breaks number of bids: a bid that did not count
UPDATE items SET nb_of_bids = nb_of_bids - 1 WHERE item_id = 3;

-- breaks quantity: a purchase that took nothing
UPDATE items SET quantity = quantity + 1 WHERE item_id = 3;

-- breaks number of bids, greatest bid, bids entered: all bids for an item lost
DELETE FROM bids WHERE bid_item_id = 3;

-- breaks bids entered: bids lost and their item's number corrected
DELETE FROM bids WHERE bid_item_id = 3; UPDATE items SET nb_of_bids = 0, max_bid = 0 WHERE item_id = 3;

-- breaks bid, purchase, items kept: an item lost
INSERT INTO buy_now (buyer_id, buy_item_id, buy_quantity, buy_date) VALUES (1, 3, 0, TIMESTAMP '2026-01-01 00:00:00'); DELETE FROM items WHERE item_id = 3;

-- breaks bid: a bid above the bidder's limit
UPDATE bids SET bid_max = bid_amount - 1 WHERE bid_item_id = 3;

-- breaks purchases entered: a purchase entered twice, for nothing
INSERT INTO buy_now (buyer_id, buy_item_id, buy_quantity, buy_date) VALUES (1, 3, 0, TIMESTAMP '2026-01-01 00:00:00');
