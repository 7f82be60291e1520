-- Ways to break a database of read-modify-writes, each with the conditions of audit.sql that must report it ("increments" and
-- "records" are the driver's own checks).

-- breaks increments: an increment lost
UPDATE records SET counter = counter - 1 WHERE partition_id = 1 AND record_id = (SELECT max(record_id) FROM records WHERE counter > 0 AND partition_id = 1);

-- breaks count, increments: a torn counter
UPDATE records SET counter = -5 WHERE partition_id = 1 AND record_id = 3;

-- breaks partitions, records: a record lost
DELETE FROM records WHERE partition_id = 1 AND record_id = 3;
