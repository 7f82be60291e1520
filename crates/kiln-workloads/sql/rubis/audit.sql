-- RUBiS: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. Joins start at the table whose rows drive them and
-- follow indexes. That no bid, no purchase and no item is lost depends on the calls, so the driver checks it.

-- greatest bid: max_bid is the greatest bid for the item
SELECT item_id, max_bid, max(bid_amount) AS greatest
FROM items
LEFT JOIN bids ON bid_item_id = item_id
GROUP BY item_id, max_bid
HAVING max_bid <> coalesce(max(bid_amount), 0);

-- number of bids: nb_of_bids counts the bids for the item
SELECT item_id, nb_of_bids, count(bid_amount) AS bids
FROM items
LEFT JOIN bids ON bid_item_id = item_id
GROUP BY item_id, nb_of_bids
HAVING nb_of_bids <> count(bid_amount);

-- quantity: quantity is what there was at first less what was bought
SELECT item_id, initial_quantity, quantity, sum(buy_quantity) AS bought
FROM items
LEFT JOIN buy_now ON buy_item_id = item_id
GROUP BY item_id, initial_quantity, quantity
HAVING quantity <> initial_quantity - coalesce(sum(buy_quantity), 0);

-- bid: every bid is for an item, and at most what the bidder would pay
SELECT bid_item_id, bid_user_id, bid_amount, bid_max
FROM bids
LEFT JOIN items ON item_id = bid_item_id
WHERE item_id IS NULL OR bid_amount > bid_max;

-- purchase: every purchase is of an item
SELECT buy_item_id, buyer_id
FROM buy_now
LEFT JOIN items ON item_id = buy_item_id
WHERE item_id IS NULL;
