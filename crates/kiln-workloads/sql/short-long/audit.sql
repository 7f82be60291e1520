-- Short and long transactions: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no update is lost (the counters add up to the
-- updates of the committed calls) needs the calls, so the driver checks it.

-- whole: counter and digest of a record are of one write
SELECT partition_id, record_id, counter, digest
FROM records
WHERE digest <> counter * 7 % 10007;
