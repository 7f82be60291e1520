-- FOR UPDATE and FOR SHARE need the privilege to change the rows that they lock.

-- snippet: rows-are-locked-by-who-may-change-them
DROP ROLE IF EXISTS kiln_locker;
CREATE ROLE kiln_locker;
DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_locker'; END $$;
CREATE TABLE seats (id INTEGER PRIMARY KEY, free BOOLEAN);
CREATE VIEW open_seats AS SELECT id, free FROM seats WHERE free;
CREATE TABLE halls (id INTEGER PRIMARY KEY);
INSERT INTO seats VALUES (1, true), (2, false);
INSERT INTO halls VALUES (1);
GRANT SELECT ON seats, open_seats, halls TO kiln_locker;
GRANT UPDATE ON halls TO kiln_locker;
SET ROLE kiln_locker;
SELECT id FROM seats ORDER BY id;
-- error: 42501
SELECT id FROM seats FOR UPDATE;
-- error: 42501
SELECT id FROM seats FOR SHARE;
-- error: 42501
SELECT id FROM open_seats FOR UPDATE;
-- error: 42501
SELECT s.id FROM (SELECT id FROM seats) s FOR UPDATE;
SELECT h.id FROM halls h JOIN seats s ON s.id = h.id FOR UPDATE OF h;
-- error: 42501
SELECT h.id FROM halls h JOIN seats s ON s.id = h.id FOR UPDATE OF s;
-- error: 42501
SELECT h.id FROM halls h JOIN seats s ON s.id = h.id FOR UPDATE;
WITH w AS (SELECT id FROM seats) SELECT h.id FROM halls h JOIN w ON w.id = h.id FOR UPDATE OF h;
RESET ROLE;
GRANT UPDATE ON open_seats TO kiln_locker;
SET ROLE kiln_locker;
SELECT id FROM open_seats FOR UPDATE;
RESET ROLE;
DROP VIEW open_seats;
DROP TABLE seats, halls;
DO $$ BEGIN EXECUTE 'REVOKE USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' FROM kiln_locker'; END $$;
DROP ROLE kiln_locker;
