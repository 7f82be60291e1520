-- The hot-record microbenchmark: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no increment is lost (the counters add up to the
-- committed calls) needs the calls, so the driver checks it.

-- count: no counter has counted backwards
SELECT counter_id, count
FROM counters
WHERE count < 0;
