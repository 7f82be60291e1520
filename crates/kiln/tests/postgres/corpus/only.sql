-- ONLY t, ONLY (t), t *: the tables that inherit, of which there are none.

-- snippet: only-in-from
CREATE TABLE t (a INT PRIMARY KEY, b INT);
INSERT INTO t VALUES (1, 2), (2, 3);
SELECT * FROM ONLY t ORDER BY a;
SELECT * FROM ONLY (t) ORDER BY a;
SELECT * FROM t * ORDER BY a;
SELECT x.b FROM ONLY t AS x ORDER BY 1;
SELECT x.b FROM ONLY t x WHERE x.a = 1;
SELECT x.b FROM t * x WHERE x.a = 2;
SELECT x.b FROM t * AS x WHERE x.a = 2;
SELECT x.c FROM ONLY (t) AS x (d, c) ORDER BY 1;
SELECT count(*) FROM ONLY t, ONLY t u;
SELECT count(*) FROM t * , t * u;
SELECT count(*) FROM ONLY t JOIN ONLY t u USING (a);
SELECT count(*) FROM (ONLY t JOIN ONLY (t) u ON t.a = u.b);
SELECT count(*) FROM (t * JOIN t * u ON t.a = u.b);
SELECT (SELECT max(a) FROM ONLY t), EXISTS (SELECT FROM t * WHERE a = 9);
SELECT t.* FROM ONLY t ORDER BY 1;
WITH w AS (SELECT * FROM ONLY t) SELECT sum(b) FROM w;

-- snippet: only-changes
CREATE TABLE t (a INT PRIMARY KEY, b INT);
INSERT INTO t VALUES (1, 2), (2, 3), (3, 4);
UPDATE ONLY t SET b = 0 WHERE a = 1;
UPDATE ONLY (t) SET b = 1 WHERE a = 1;
UPDATE t * SET b = b + 1 WHERE a = 1;
UPDATE ONLY t AS x SET b = x.b + y.a FROM ONLY t y WHERE x.a = 2 AND y.a = 3;
SELECT * FROM t ORDER BY a;
DELETE FROM ONLY t WHERE a = 1;
DELETE FROM t * WHERE a = 2;
DELETE FROM ONLY t USING ONLY t u WHERE t.a = u.a AND u.a = 7;
SELECT * FROM t ORDER BY a;
TRUNCATE ONLY t;
TRUNCATE TABLE ONLY t;
TRUNCATE t *;
CREATE TABLE u (a INT);
TRUNCATE ONLY t, ONLY u;
TRUNCATE TABLE t *, u *;
SELECT count(*) FROM t;

-- snippet: only-definitions
CREATE TABLE t (a INT PRIMARY KEY, b INT);
CREATE INDEX i ON ONLY t (b);
ALTER TABLE ONLY t ADD COLUMN c INT;
ALTER TABLE IF EXISTS ONLY t ADD COLUMN d INT;
ALTER TABLE t * ADD COLUMN e INT;
CREATE VIEW v AS SELECT a FROM ONLY t;
SELECT * FROM v;
CREATE FUNCTION f() RETURNS BIGINT LANGUAGE plpgsql AS $$ DECLARE n BIGINT; BEGIN SELECT count(*) INTO n FROM ONLY t; RETURN n; END $$;
SELECT f();

-- snippet: only-is-still-arithmetic
CREATE TABLE t (a INT PRIMARY KEY, b INT);
INSERT INTO t VALUES (1, 2);
SELECT a * b FROM t;
SELECT a IS DISTINCT FROM b * a FROM t;
SELECT substring('abcdef' FROM a * b FOR b * a) FROM t;
SELECT count(*), t.a * t.b FROM t GROUP BY a;
SELECT 1 AS only;
SELECT a FROM t ORDER BY a FETCH FIRST 1 ROW ONLY;
SELECT a FROM t ORDER BY a FETCH FIRST ROWS ONLY;
SELECT overlay('abc' PLACING 'x' FROM 1 * 2);
UPDATE t SET b = a * b, a = a * 3 WHERE a * b = 2;
SELECT * FROM t;

-- snippet: only-errors
CREATE TABLE t (a INT);
-- error: 42601
SELECT only FROM t;
-- error: 42601
SELECT * FROM ONLY;
-- error: 42601
SELECT * FROM ONLY (t, t);
-- error: 42601
SELECT * FROM ONLY ((t));
-- error: 42601
SELECT a, ONLY t FROM t;
-- error: 42601
SELECT * FROM ONLY (SELECT 1) AS x;
-- error: 42P01
SELECT * FROM ONLY missing;

-- snippet: table-and-values-in-from
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM (TABLE t) AS x ORDER BY a;
SELECT * FROM (TABLE t ORDER BY a LIMIT 1) x;
SELECT x.c FROM (TABLE t) AS x (d, c) ORDER BY 1;
SELECT * FROM (VALUES (1, 2), (3, 4)) AS v (a, b) WHERE a > 1;
SELECT * FROM (VALUES (1), (2) ORDER BY 1 DESC LIMIT 1) v;
SELECT (VALUES (7));
SELECT ARRAY(VALUES (1), (2));
SELECT 1 IN (VALUES (1), (2));
SELECT EXISTS (VALUES (1));
SELECT EXISTS (TABLE t);
-- error: 42601
SELECT ARRAY(TABLE t) IS NULL;
SELECT 2 = ANY (VALUES (1), (2)), 2 > ALL (VALUES (1));
SELECT * FROM t WHERE (a, b) IN (TABLE t) ORDER BY a;
INSERT INTO t VALUES (3, 'z') RETURNING *;
WITH v (a) AS (VALUES (1), (2)) SELECT sum(a) FROM v;
WITH v AS (TABLE t) SELECT count(*) FROM v;
(VALUES (1)) UNION (VALUES (2)) ORDER BY 1;
(TABLE t) ORDER BY a LIMIT 1;
SELECT * FROM ((TABLE t)) x ORDER BY 1;
SELECT * FROM (((VALUES (1)))) x;
SELECT * FROM t JOIN (VALUES (1, 'one')) v (k, name) ON k = a;
SELECT * FROM t, LATERAL (VALUES (a * 10)) v (x) ORDER BY a;
CREATE TABLE u AS TABLE t;
CREATE TABLE w AS VALUES (1, 2);
SELECT * FROM w;
INSERT INTO u TABLE t;
SELECT count(*) FROM u;

-- snippet: stars-that-multiply
CREATE TABLE t (a INT, b INT);
CREATE TABLE u (a INT, b INT);
INSERT INTO t VALUES (2, 3);
INSERT INTO u VALUES (2, 5);
ALTER TABLE t ALTER a TYPE BIGINT USING a * 10;
SELECT * FROM t ORDER BY a;
SELECT t.a * t.b, u.a * u.b FROM t JOIN u ON u.a * 10 = t.a AND t.b IS DISTINCT FROM u.b * 2, ONLY u AS v;
SELECT count(*) FROM t JOIN u ON true, t * AS w, ONLY (u) x WHERE x.a * x.b = 10 ORDER BY count(*) * 2, 1;
SELECT a * b, b * a FROM t GROUP BY a * b, b * a HAVING sum(a * b) > 1 ORDER BY a * b, b * a LIMIT 1 * 1;
SELECT sum(a * b) OVER (PARTITION BY a * 2 ORDER BY b * 2) FROM t;
INSERT INTO t SELECT a * 2, b * 2 FROM u RETURNING a * b, b * a;
UPDATE t SET a = t.a * 2, b = t.b * 2 WHERE t.a * 1 = 20;
SELECT * FROM t ORDER BY a;
SELECT extract(day FROM interval '1 day' * 3), trim('x' FROM 'x' || 'a');
SELECT CASE WHEN a * b > 1 THEN a * b END FROM t UNION SELECT a * b * a FROM u ORDER BY 1;
CREATE INDEX i ON t ((a * b));
INSERT INTO t (a, b) TABLE u;
WITH w AS (SELECT 9, 9) INSERT INTO t TABLE w;
SELECT count(*) FROM t;
