-- Anomalies: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no money and no seat is lost depends
-- on how many there were, so the driver checks it.

-- mirrors: both columns of an item are of one write
SELECT id, stamp, mirror
FROM items
WHERE stamp + mirror <> 0;

-- buckets: every item is found by its bucket
SELECT items.id, items.bucket
FROM items
LEFT JOIN items AS twin ON twin.bucket = items.bucket AND twin.id = items.id
WHERE twin.id IS NULL;

-- places: a place has one seat
SELECT place, count(*)
FROM seats
GROUP BY place
HAVING count(*) > 1;

-- seats: every seat is found by its place
SELECT seats.id, seats.place
FROM seats
LEFT JOIN seats AS twin ON twin.place = seats.place
WHERE twin.id IS NULL OR twin.id <> seats.id;
