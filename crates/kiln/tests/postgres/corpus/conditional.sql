-- CASE, COALESCE, NULLIF, GREATEST, LEAST and the types they give.

-- snippet: case-searched
SELECT CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END, CASE WHEN false THEN 1 END;

-- snippet: case-simple
SELECT CASE 3 WHEN 1 THEN 'one' WHEN 3 THEN 'three' ELSE 'many' END, CASE 'x' WHEN 'y' THEN 1 ELSE 0 END;

-- snippet: case-evaluates-only-what-it-needs
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (10, 0), (10, 5);
SELECT b, CASE WHEN b = 0 THEN -1 ELSE a / b END FROM t ORDER BY b;

-- snippet: case-result-type-is-common
SELECT CASE WHEN true THEN 1 ELSE 2.5 END, CASE WHEN true THEN 1 ELSE 2::bigint END, CASE WHEN false THEN 1.5 ELSE 2 END, CASE WHEN true THEN NULL ELSE 3 END;

-- snippet: case-result-type-mismatch
-- error: 42804
SELECT CASE WHEN true THEN 1 ELSE true END;
-- error: 22P02
SELECT CASE WHEN true THEN 1 ELSE 'x' END;

-- snippet: case-nested
SELECT CASE WHEN 1 = 1 THEN CASE WHEN 1 = 2 THEN 'a' ELSE 'b' END ELSE 'c' END;

-- snippet: case-in-where-order-and-aggregate
CREATE TABLE t (id INTEGER PRIMARY KEY, status CHAR(2), amount INTEGER);
INSERT INTO t VALUES (1, 'BC', 10), (2, 'GC', 20), (3, 'BC', 30), (4, 'GC', 40);
SELECT sum(CASE WHEN status = 'BC' THEN amount ELSE 0 END), count(CASE WHEN amount > 15 THEN 1 END) FROM t;
SELECT id FROM t WHERE CASE status WHEN 'BC' THEN amount > 15 ELSE amount < 30 END ORDER BY id;
SELECT id FROM t ORDER BY CASE status WHEN 'GC' THEN 0 ELSE 1 END, id DESC;

-- snippet: case-in-update
CREATE TABLE t (id INTEGER PRIMARY KEY, quantity INTEGER);
INSERT INTO t VALUES (1, 50), (2, 12), (3, 3);
UPDATE t SET quantity = CASE WHEN quantity >= 15 THEN quantity - 5 ELSE quantity - 5 + 91 END;
SELECT id, quantity FROM t ORDER BY id;

-- snippet: coalesce-result-type
SELECT coalesce(1, 2.5), coalesce(NULL, 1.5, 2), coalesce(NULL::text, 'x') || 'y', coalesce(NULL::integer, 7::bigint);
-- error: 22P02
SELECT coalesce(1, 'x');

-- snippet: coalesce-over-columns
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
INSERT INTO t VALUES (1, NULL, 'b'), (2, 'a', NULL), (3, NULL, NULL);
SELECT id, coalesce(a, b, 'none') FROM t ORDER BY id;
SELECT id FROM t WHERE coalesce(a, '') = '' ORDER BY id;

-- snippet: nullif-avoids-division-by-zero
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (6, 3), (6, 0);
SELECT a / nullif(b, 0) FROM t ORDER BY b;

-- snippet: greatest-least-types
SELECT greatest(1, 2.5), least('b', 'a'), greatest(date '2024-01-01', date '2023-01-01'), least(3::smallint, 2::bigint), greatest(true, false);

-- snippet: coalesce-in-aggregate
CREATE TABLE t (v NUMERIC(6, 2));
SELECT coalesce(sum(v), 0), coalesce(max(v), -1) FROM t;
INSERT INTO t VALUES (1.50), (NULL);
SELECT coalesce(sum(v), 0), sum(coalesce(v, 1)) FROM t;
