-- Ways to break a database of short and long transactions, each with the conditions of audit.sql that must report it ("updates"
-- and "records" are the driver's own checks).

-- breaks updates: an update lost
UPDATE records SET counter = counter - 1, digest = (counter - 1) * 7 % 10007 WHERE partition_id = 1 AND record_id = 1 AND counter > 0;

-- breaks whole, updates: an update half written
UPDATE records SET counter = counter + 1 WHERE partition_id = 1 AND record_id = 3;

-- breaks records: a record lost
DELETE FROM records WHERE partition_id = 1 AND record_id = 3;
