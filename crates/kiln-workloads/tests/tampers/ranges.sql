-- Ways to break a database of ranges, each with the conditions of audit.sql that must report it ("changes" and "entries" are the
-- driver's own checks).

-- breaks changes: a change lost
UPDATE entries SET counter = counter + 1, digest = (counter + 1) * 7 % 10007 WHERE entry_id = 3;

-- breaks whole, changes: a change half written
UPDATE entries SET counter = counter + 1 WHERE entry_id = 1;

-- breaks gaps, entries: an entry lost
DELETE FROM entries WHERE entry_id = 2;
