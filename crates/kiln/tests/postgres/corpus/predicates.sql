-- IN, BETWEEN, IS DISTINCT FROM, row-wise predicates in WHERE.

-- snippet: in-list
SELECT 1 IN (1, 2, 3), 4 IN (1, 2, 3), 4 NOT IN (1, 2, 3), 'a' IN ('a', 'b'), 1.0 IN (1, 2), 2 IN (1.5, 2.5);

-- snippet: in-list-over-column
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL);
SELECT id FROM t WHERE id IN (3, 1, 9, 1) ORDER BY id;
SELECT id FROM t WHERE v IN ('a', 'c') ORDER BY id;
SELECT id FROM t WHERE v NOT IN ('a') ORDER BY id;

-- snippet: in-list-type-mismatch
-- error: 22P02
SELECT 1 IN ('x');
-- error: 42883
SELECT 1 IN (true);

-- snippet: between
SELECT 5 BETWEEN 1 AND 10, 5 BETWEEN 5 AND 5, 5 BETWEEN 10 AND 1, 5 NOT BETWEEN 1 AND 3, 'b' BETWEEN 'a' AND 'c';

-- snippet: between-symmetric
SELECT 5 BETWEEN SYMMETRIC 10 AND 1, 5 NOT BETWEEN SYMMETRIC 10 AND 1;

-- snippet: between-over-key
CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
INSERT INTO t VALUES (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1);
SELECT a, b FROM t WHERE a = 1 AND b BETWEEN 2 AND 3 ORDER BY a, b;
SELECT a, b FROM t WHERE a BETWEEN 1 AND 2 AND b = 1 ORDER BY a, b;
SELECT a, b FROM t WHERE a > 1 AND a <= 3 ORDER BY a DESC, b DESC;

-- snippet: is-distinct-from-over-columns
CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, NULL, 1), (4, NULL, NULL);
SELECT id FROM t WHERE a IS DISTINCT FROM b ORDER BY id;
SELECT id FROM t WHERE a IS NOT DISTINCT FROM b ORDER BY id;

-- snippet: where-and-or-mixture
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40), (5, NULL, 50);
SELECT id FROM t WHERE (a = 1 OR b = 30) AND NOT (id = 3) ORDER BY id;
SELECT id FROM t WHERE a > 1 AND (b < 40 OR a = 4) ORDER BY id;
SELECT id FROM t WHERE a IS NULL OR a * 10 <> b ORDER BY id;
SELECT id FROM t WHERE id = 2 OR id = 4 ORDER BY id DESC;

-- snippet: where-contradiction-and-tautology
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
SELECT id FROM t WHERE id > 1 AND id < 1;
SELECT id FROM t WHERE true ORDER BY id;
SELECT id FROM t WHERE id = 1 AND id = 2;
SELECT id FROM t WHERE 1 = 0;

-- snippet: where-column-to-column
CREATE TABLE t (id INTEGER PRIMARY KEY, low INTEGER, high INTEGER);
INSERT INTO t VALUES (1, 1, 5), (2, 6, 5), (3, 5, 5);
SELECT id FROM t WHERE low <= high ORDER BY id;
SELECT id FROM t WHERE id BETWEEN low AND high ORDER BY id;

-- snippet: row-comparison
CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
INSERT INTO t VALUES (1, 1), (1, 2), (2, 1), (2, 2);
SELECT a, b FROM t WHERE (a, b) = (1, 2);
SELECT a, b FROM t WHERE (a, b) > (1, 2) ORDER BY a, b;
SELECT a, b FROM t WHERE (a, b) IN ((1, 1), (2, 2), (3, 3)) ORDER BY a, b;
