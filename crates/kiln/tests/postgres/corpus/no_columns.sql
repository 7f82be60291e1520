-- Tables and rows without columns.

-- snippet: no-columns-table
CREATE TABLE z ();
INSERT INTO z DEFAULT VALUES;
INSERT INTO z DEFAULT VALUES;
INSERT INTO z SELECT FROM generate_series(1, 3);
SELECT count(*) FROM z;
SELECT 1 AS one FROM z a, z b WHERE true LIMIT 3;
SELECT count(*) FROM z a LEFT JOIN z b ON true;
SELECT max(1) FROM z;
DELETE FROM z RETURNING 5 AS five;
SELECT count(*) FROM z;

-- snippet: no-columns-select
SELECT FROM generate_series(1, 3);
SELECT count(*) FROM (SELECT FROM generate_series(1, 5)) s;
SELECT count(*) FROM (SELECT FROM generate_series(1, 5) LIMIT 2) s;
SELECT count(*) FROM (SELECT FROM generate_series(1, 5) x ORDER BY x DESC) s;
SELECT EXISTS (SELECT FROM generate_series(1, 5));
SELECT EXISTS (SELECT FROM generate_series(1, 0));
SELECT x FROM generate_series(1, 3) x WHERE NOT EXISTS (SELECT FROM generate_series(2, 3) y WHERE x = y);

-- snippet: no-columns-union
SELECT FROM generate_series(1, 5) UNION SELECT FROM generate_series(1, 3);
SELECT count(*) FROM (SELECT FROM generate_series(1, 5) UNION SELECT FROM generate_series(1, 3)) s;
SELECT count(*) FROM (SELECT FROM generate_series(1, 5) UNION ALL SELECT FROM generate_series(1, 3)) s;

-- snippet: no-columns-with
CREATE TABLE z ();
INSERT INTO z SELECT FROM generate_series(1, 4);
WITH q AS (SELECT FROM z) SELECT count(*) FROM q;
WITH q AS (SELECT FROM z) SELECT count(*) FROM q a, q b;

-- snippet: no-columns-checks
CREATE TABLE good (CHECK (1 = 1));
INSERT INTO good DEFAULT VALUES;
CREATE TABLE bad (CHECK (1 = 2));
-- error: 23514
INSERT INTO bad DEFAULT VALUES;

-- snippet: no-columns-errors
CREATE TABLE z ();
-- error: 42601
INSERT INTO z VALUES (1);
-- error: 42601
INSERT INTO z DEFAULT VALUES RETURNING *;
-- error: 42703
UPDATE z SET a = 1;
-- error: 42601
SELECT DISTINCT z.* FROM z;
-- error: 42P10
SELECT FROM z ORDER BY 1;
-- error: 42601
SELECT (SELECT FROM z);
-- error: 42601
SELECT 1 IN (SELECT FROM z);
-- error: 42703
CREATE TABLE k (PRIMARY KEY (a));

-- snippet: no-columns-plpgsql
CREATE TABLE z ();
INSERT INTO z SELECT FROM generate_series(1, 4);
CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    n bigint := 0;
BEGIN
    FOR r IN SELECT FROM z LOOP
        n := n + 1;
    END LOOP;
    PERFORM FROM z;
    IF FOUND THEN
        n := n + 100;
    END IF;
    RETURN n;
END $$;
SELECT f();

-- snippet: no-columns-bare
SELECT;
SELECT WHERE true;
SELECT WHERE false;
SELECT EXISTS (SELECT);
SELECT EXISTS (SELECT WHERE false);
SELECT count(*) FROM (SELECT) s;
SELECT 1 WHERE EXISTS (SELECT LIMIT 0);
