-- Volatile functions and WITH.

-- snippet: volatile-conditions
SELECT count(*) BETWEEN 1 AND 999 FROM generate_series(1, 1000) WHERE random() < 0.5;
SELECT count(*) IN (0, 1000) FROM generate_series(1, 1000) WHERE (SELECT random()) < 0.5;
SELECT count(y) BETWEEN 1 AND 99 FROM generate_series(1, 1) x LEFT JOIN generate_series(1, 100) y ON random() < 0.5;
SELECT count(*) FROM generate_series(1, 10) x WHERE random() < 2 AND x > 3;

-- snippet: volatile-rows
SELECT count(DISTINCT r) FROM (SELECT random() r FROM generate_series(1, 9)) s;
SELECT count(DISTINCT r) FROM (SELECT (SELECT random()) r FROM generate_series(1, 9)) s;
SELECT count(DISTINCT r) FROM (SELECT (SELECT random() + 0 * x) r FROM generate_series(1, 9) x) s;
SELECT count(*) FROM (SELECT DISTINCT random() r FROM generate_series(1, 9) ORDER BY random()) s;
SELECT count(*) FROM (SELECT random() r FROM generate_series(1, 9) GROUP BY random()) s;
SELECT sum(random()) = sum(random()) FROM generate_series(1, 9);

-- snippet: volatile-function-in-from
CREATE FUNCTION chance() RETURNS double precision LANGUAGE plpgsql AS $$ BEGIN RETURN random(); END $$;
SELECT count(DISTINCT f) FROM chance() f, generate_series(1, 9);
SELECT count(DISTINCT f) FROM generate_series(1, 9), chance() f;

-- snippet: volatile-with
CREATE TABLE calls (n integer);
CREATE FUNCTION tick(x integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO calls VALUES (x); RETURN x; END $$;
WITH q AS (SELECT random() r) SELECT a.r = b.r FROM q a, q b;
WITH q AS (SELECT tick(1) r) SELECT a.r = b.r FROM q a, q b;
WITH q AS (SELECT tick(2) r) SELECT r FROM q;
WITH q AS (SELECT tick(3) r) SELECT 1;
WITH q AS NOT MATERIALIZED (SELECT tick(4) r) SELECT a.r = b.r FROM q a, q b;
SELECT n, count(*) FROM calls GROUP BY n ORDER BY n;

-- snippet: volatile-calls-in-expressions
CREATE TABLE calls (n integer);
CREATE FUNCTION tick(x integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO calls VALUES (x); RETURN x; END $$;
SELECT nullif(tick(1), 8), coalesce(tick(2), 1), greatest(tick(3), 2), tick(4) IN (1, 4);
SELECT CASE tick(5) WHEN 1 THEN 2 WHEN 5 THEN 3 END;
SELECT tick(7) IN (SELECT x FROM generate_series(1, 3) x);
SELECT f, x FROM tick(8) f, generate_series(1, 3) x WHERE x = 2;
SELECT EXISTS (SELECT tick(9)), EXISTS (SELECT DISTINCT 1 / 0 ORDER BY 1), NOT EXISTS (SELECT tick(10) WHERE false);
SELECT n, count(*) FROM calls GROUP BY n ORDER BY n;

-- snippet: aggregate-of-an-outer-query
CREATE TABLE t (a integer PRIMARY KEY, b integer);
INSERT INTO t VALUES (1, 10), (2, 20);
SELECT a, (SELECT count(u.b + t.a) FROM t u) FROM t ORDER BY a;
SELECT a, (SELECT max(t.a)) FROM t GROUP BY a ORDER BY a;

-- snippet: with-scopes
CREATE TABLE t (a integer PRIMARY KEY, b integer);
INSERT INTO t VALUES (1, 10), (2, 20);
WITH q(x, y) AS (SELECT a, b FROM t), p AS (SELECT x + y AS z FROM q WHERE x > 1) SELECT z FROM p;
WITH q AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT a FROM q WHERE EXISTS (WITH q AS (SELECT a FROM q WHERE a > 1) SELECT FROM q) ORDER BY a;
SELECT a, (WITH q AS (SELECT t.a AS v) SELECT (SELECT max(v) FROM q) + (SELECT min(v) FROM q)) FROM t ORDER BY a;
SELECT a, (WITH q AS (SELECT t.a AS v) SELECT v FROM q) c FROM t GROUP BY a ORDER BY a;
WITH q AS (SELECT 1 / 0) SELECT 1;
-- error: 42703
WITH q AS (SELECT nosuch) SELECT 1;
-- error: 42712
WITH q AS (SELECT 1), q AS (SELECT 2) SELECT 1;
-- error: 42P10
WITH q(a, b) AS (SELECT 1) SELECT 1;
-- error: 42P01
WITH q AS (SELECT * FROM p), p AS (SELECT 1) SELECT 1;

-- snippet: with-insert
CREATE TABLE y (a integer);
WITH w AS (INSERT INTO y VALUES (1) RETURNING a) SELECT 1;

-- snippet: with-update
CREATE TABLE y (a integer);
WITH w AS (UPDATE y SET a = 2 RETURNING a) SELECT 1;

-- snippet: with-delete
CREATE TABLE y (a integer);
WITH w AS (DELETE FROM y RETURNING a) SELECT 1;

-- snippet: function-writes-what-is-read
CREATE TABLE calls (n integer);
CREATE FUNCTION tick(x integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO calls VALUES (x); RETURN x; END $$;
-- refused: a call of tick by a statement that reads what the function writes
SELECT tick(4), (SELECT count(*) FROM calls);
