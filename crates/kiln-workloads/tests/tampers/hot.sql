-- Ways to break a database of hot counters, each with the conditions of audit.sql that must report it ("increments" is the
-- driver's own check).

-- breaks increments: an increment lost
UPDATE counters SET count = count - 1 WHERE counter_id = 1;

-- breaks count, increments: a torn counter
UPDATE counters SET count = -5 WHERE counter_id = 1;
