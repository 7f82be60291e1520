-- YCSB: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That no record is lost depends on how many there were,
-- so the driver checks it.

-- whole: every field is as one write left it
SELECT ycsb_key
FROM usertable
WHERE field0 <> repeat(left(field0, 20), 5)
    OR field1 <> repeat(left(field1, 20), 5)
    OR field2 <> repeat(left(field2, 20), 5)
    OR field3 <> repeat(left(field3, 20), 5)
    OR field4 <> repeat(left(field4, 20), 5)
    OR field5 <> repeat(left(field5, 20), 5)
    OR field6 <> repeat(left(field6, 20), 5)
    OR field7 <> repeat(left(field7, 20), 5)
    OR field8 <> repeat(left(field8, 20), 5)
    OR field9 <> repeat(left(field9, 20), 5);

-- length: every field has a hundred bytes
SELECT ycsb_key
FROM usertable
WHERE length(field0) <> 100
    OR length(field1) <> 100
    OR length(field2) <> 100
    OR length(field3) <> 100
    OR length(field4) <> 100
    OR length(field5) <> 100
    OR length(field6) <> 100
    OR length(field7) <> 100
    OR length(field8) <> 100
    OR length(field9) <> 100;
