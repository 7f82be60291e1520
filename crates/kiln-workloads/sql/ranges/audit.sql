-- Ranges: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no change is lost (the counters add up to the rows
-- that the committed calls have changed) and no entry needs the calls, so the driver checks it.

-- whole: counter and digest of an entry are of one write
SELECT entry_id, counter, digest
FROM entries
WHERE digest <> counter * 7 % 10007 OR counter < 0;

-- gaps: the entries are numbered from 0 on without gaps
SELECT max(entry_id) AS greatest, count(*) AS entries
FROM entries
HAVING min(entry_id) <> 0 OR max(entry_id) <> count(*) - 1;
