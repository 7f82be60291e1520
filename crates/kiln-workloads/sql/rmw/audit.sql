-- Read-modify-writes: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no increment and no record is lost depends on
-- the calls and on how many records there were, so the driver checks it.

-- count: no record has counted backwards
SELECT partition_id, record_id, counter
FROM records
WHERE counter < 0;

-- partitions: every partition has the same records
SELECT partition_id, max(record_id) AS greatest, count(*) AS records
FROM records
GROUP BY partition_id
HAVING min(record_id) <> 1 OR max(record_id) <> count(*);
