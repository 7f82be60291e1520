-- Ways to break a HOT database, each with the conditions of audit.sql that must report it ("updates" and "records" are the
-- driver's own checks).

-- breaks updates: an update lost
UPDATE records SET value_01 = value_01 - 1, value_20 = value_20 + 1 WHERE partition_id = 1 AND record_id = 3;

-- breaks whole, updates: an update half written
UPDATE records SET value_01 = value_01 + 1 WHERE partition_id = 1 AND record_id = 3;

-- breaks idle: a write to a wrong column
UPDATE records SET value_19 = 0 WHERE partition_id = 1 AND record_id = 3;

-- breaks records: a record lost
DELETE FROM records WHERE partition_id = 1 AND record_id = 3;
