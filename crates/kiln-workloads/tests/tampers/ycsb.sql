-- Ways to break a YCSB database, each with the conditions of audit.sql that must report it ("records" is the
-- driver's own check).

-- breaks whole: a field that two writes left half each
UPDATE usertable SET field7 = left(field7, 40) || repeat('x', 60) WHERE ycsb_key = 3;

-- breaks length: a field cut off at a boundary
UPDATE usertable SET field0 = left(field0, 80) WHERE ycsb_key = 3;

-- breaks records: a record lost
DELETE FROM usertable WHERE ycsb_key = 3;
