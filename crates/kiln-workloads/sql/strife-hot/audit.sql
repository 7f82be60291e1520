-- HOT: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no update is lost (the first numbers add up to
-- the updates of the committed calls) needs the calls, so the driver checks it.

-- whole: the first and the last number of a record have changed together
SELECT partition_id, record_id, value_01, value_20
FROM records
WHERE value_01 + value_20 <> 0;

-- idle: the numbers between are as they were
SELECT partition_id, record_id
FROM records
WHERE value_02 <> 2
    OR value_03 <> 3
    OR value_04 <> 4
    OR value_05 <> 5
    OR value_06 <> 6
    OR value_07 <> 7
    OR value_08 <> 8
    OR value_09 <> 9
    OR value_10 <> 10
    OR value_11 <> 11
    OR value_12 <> 12
    OR value_13 <> 13
    OR value_14 <> 14
    OR value_15 <> 15
    OR value_16 <> 16
    OR value_17 <> 17
    OR value_18 <> 18
    OR value_19 <> 19;
