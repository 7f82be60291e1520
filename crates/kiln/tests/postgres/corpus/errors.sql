-- Statements that are refused, and the SQLSTATE that says why.

-- snippet: error-syntax
-- error: 42601
SELECT FROM WHERE;
-- error: 42601
SELECT 1 +;
-- error: 42601
INSERT t VALUES (1);
-- error: 42601
CREATE TABLE t (id);
-- error: 42601
FROBNICATE;

-- snippet: error-undefined-table
-- error: 42P01
SELECT * FROM nowhere;
-- error: 42P01
INSERT INTO nowhere VALUES (1);
-- error: 42P01
DELETE FROM nowhere;

-- snippet: error-undefined-column
CREATE TABLE t (id INTEGER PRIMARY KEY);
-- error: 42703
SELECT name FROM t;
-- error: 42703
SELECT id FROM t WHERE name = 1;
-- error: 42703
SELECT id FROM t ORDER BY name;
-- error: 42703
SELECT t.name FROM t;
-- error: 42703
DELETE FROM t WHERE name = 1;
-- error: 42703
SELECT missing;

-- snippet: error-undefined-function
-- error: 42883
SELECT frobnicate(1);
-- error: 42883
SELECT length(5);
-- error: 42883
SELECT upper(1, 2);
-- error: 42883
SELECT substring(true, 1, 2);

-- snippet: error-undefined-procedure
-- error: 42883
CALL nothing_here();
-- error: 42883
CALL nothing_here(1, 'x');

-- snippet: error-operator-types
-- error: 42883
SELECT true + 1;
-- error: 42883
SELECT 1 = true;
-- error: 42883
SELECT 'a'::text - 'b'::text;
-- error: 42883
SELECT - true;
-- error: 42883
SELECT date '2024-01-01' * 2;

-- snippet: error-cannot-cast
-- error: 42846
SELECT true::date;
-- error: 42846
SELECT 1::uuid;
-- error: 42846
SELECT 1.5::boolean;

-- snippet: error-invalid-text-representation
-- error: 22P02
SELECT 'x'::integer;
-- error: 22P02
SELECT 'x'::boolean;
-- error: 22P02
SELECT 'x'::uuid;
-- error: 22007
SELECT 'x'::date;
-- error: 22P02
SELECT CAST('1,5' AS numeric);

-- snippet: error-undefined-type
-- error: 42704
SELECT 1::frob;
-- error: 42704
SELECT CAST('a' AS nosuch);

-- snippet: error-aggregate-misuse
CREATE TABLE t (v INTEGER);
-- error: 42803
SELECT v FROM t WHERE sum(v) > 1;
-- error: 42803
SELECT max(min(v)) FROM t;
-- error: 42803
UPDATE t SET v = count(*);
-- error: 42803
SELECT v + sum(v) FROM t;

-- snippet: error-leaves-database-as-it-was
CREATE TABLE t (id INTEGER PRIMARY KEY, v NUMERIC(4, 2));
INSERT INTO t VALUES (1, 1.5);
-- error: 22003
INSERT INTO t VALUES (2, 1.5), (3, 100);
-- error: 22P02
INSERT INTO t VALUES (4, 'abc');
-- error: 22003
UPDATE t SET v = v * 90;
SELECT id, v FROM t ORDER BY id;

-- snippet: error-math-domain
-- error: 2201F
SELECT sqrt(-1.0);
-- error: 2201F
SELECT sqrt(-1::double precision);
-- error: 2201E
SELECT ln(0.0);
-- error: 2201F
SELECT power(-8.0, 0.5);

-- snippet: error-string-data
-- error: 22023
SELECT chr(-1);
-- error: 54000
SELECT chr(0);

-- snippet: error-reserved-word-as-name
-- error: 42601
CREATE TABLE select (id INTEGER);
-- error: 42601
CREATE TABLE t (from INTEGER);

-- snippet: error-unterminated
-- error: 42601
SELECT (1 + 2 3);
-- error: 42601
SELECT CASE WHEN true THEN 1;

-- snippet: error-duplicate-function
CREATE FUNCTION f(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a; END $$;
-- error: 42723
CREATE FUNCTION f(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a + 1; END $$;
CREATE OR REPLACE FUNCTION f(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a + 2; END $$;
SELECT f(1);

-- snippet: error-drop-function
-- error: 42883
DROP FUNCTION nothing_here;
DROP FUNCTION IF EXISTS nothing_here;
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
DROP FUNCTION f;
-- error: 42883
SELECT f();
