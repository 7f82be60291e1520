-- RUBiS' bidding core: three transactions.
--
-- The same file runs on Kiln and on PostgreSQL. Dates come from the caller, so that a call has the same effect wherever it runs.
-- Errors raised here:
--   RU001  no such item

-- Enters a bid, and keeps the greatest bid of the item and their number.
CREATE PROCEDURE place_bid(
    item        INTEGER,
    bidder      INTEGER,
    bidden      INTEGER,
    amount      INTEGER,
    amount_max  INTEGER,
    placed      TIMESTAMP
)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE items
    SET max_bid = greatest(max_bid, amount),
        nb_of_bids = nb_of_bids + 1
    WHERE item_id = item;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no item %', item USING ERRCODE = 'RU001';
    END IF;
    INSERT INTO bids (bid_user_id, bid_item_id, bid_quantity, bid_amount, bid_max, bid_date)
    VALUES (bidder, item, bidden, amount, amount_max, placed);
END
$$;

-- Buys some of an item. The auction ends with the last of them; what is bought after that is owed, and the quantity negative.
CREATE PROCEDURE buy_item(item INTEGER, buyer INTEGER, bought INTEGER, bought_date TIMESTAMP)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE items
    SET quantity = quantity - bought,
        end_date = CASE WHEN quantity = bought THEN bought_date ELSE end_date END
    WHERE item_id = item;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no item %', item USING ERRCODE = 'RU001';
    END IF;
    INSERT INTO buy_now (buyer_id, buy_item_id, buy_quantity, buy_date)
    VALUES (buyer, item, bought, bought_date);
END
$$;

-- What a visitor of an item sees.
CREATE PROCEDURE view_item(
    item              INTEGER,
    OUT item_name     VARCHAR(100),
    OUT left_over     INTEGER,
    OUT number_of_bids INTEGER,
    OUT greatest_bid  INTEGER,
    OUT ends          TIMESTAMP
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT name, quantity, nb_of_bids, max_bid, end_date
    INTO item_name, left_over, number_of_bids, greatest_bid, ends
    FROM items
    WHERE item_id = item;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no item %', item USING ERRCODE = 'RU001';
    END IF;
END
$$;
