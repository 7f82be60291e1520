-- Ways to break an anomalies database, each with the conditions of audit.sql that must report it ("money" and
-- "seats conserved" are the driver's own checks).

-- breaks mirrors: a torn write
UPDATE items SET stamp = stamp + 1 WHERE id = (SELECT min(id) FROM items);

-- breaks buckets: an item that no bucket has
ALTER TABLE items ALTER bucket DROP NOT NULL; UPDATE items SET bucket = NULL WHERE id = (SELECT min(id) FROM items);

-- breaks places, seats: two seats in one place
ALTER TABLE seats DROP CONSTRAINT seats_place_key; UPDATE seats SET place = 1 WHERE id IN (1, 2);

-- breaks money: money lost
UPDATE registers SET balance = balance - 1 WHERE id = 3;

-- breaks seats conserved: a seat lost
DELETE FROM seats WHERE id = 3;
