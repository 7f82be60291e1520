-- ORDER BY, LIMIT, OFFSET, DISTINCT.

-- snippet: order-ascending-descending
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 30), (2, 10), (3, 20);
SELECT id, v FROM t ORDER BY v;
SELECT id, v FROM t ORDER BY v DESC;
SELECT id FROM t ORDER BY v ASC;

-- snippet: order-nulls
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 2), (2, NULL), (3, 1);
SELECT id FROM t ORDER BY v;
SELECT id FROM t ORDER BY v DESC;
SELECT id FROM t ORDER BY v NULLS FIRST;
SELECT id FROM t ORDER BY v DESC NULLS LAST;

-- snippet: order-by-position-and-alias
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 9), (2, 8), (3, 7);
SELECT a, b FROM t ORDER BY 2;
SELECT a, a + b AS total, b AS a2 FROM t ORDER BY a2 DESC, total;
-- error: 42P10
SELECT a FROM t ORDER BY 2;

-- snippet: order-by-expression
CREATE TABLE t (a INTEGER, s TEXT);
INSERT INTO t VALUES (-3, 'ccc'), (2, 'a'), (-1, 'bb');
SELECT a FROM t ORDER BY abs(a);
SELECT a FROM t ORDER BY length(s) DESC;
SELECT a FROM t ORDER BY a * a, s;

-- snippet: order-by-column-not-selected
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 3), (2, 2), (3, 1);
SELECT a FROM t ORDER BY b;

-- snippet: order-by-several-keys
CREATE TABLE t (a INTEGER, b TEXT);
INSERT INTO t VALUES (2, 'x'), (1, 'y'), (2, 'a'), (1, 'b'), (NULL, 'n');
SELECT a, b FROM t ORDER BY a DESC, b;
SELECT a, b FROM t ORDER BY a NULLS FIRST, b DESC;

-- snippet: limit-offset
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2), (3), (4), (5);
SELECT id FROM t ORDER BY id LIMIT 2;
SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 3;
SELECT id FROM t ORDER BY id OFFSET 4;
SELECT id FROM t ORDER BY id LIMIT 0;
SELECT id FROM t ORDER BY id DESC LIMIT 1;
SELECT id FROM t ORDER BY id LIMIT 100 OFFSET 10;

-- snippet: limit-forms
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2), (3);
SELECT id FROM t ORDER BY id LIMIT ALL;
SELECT id FROM t ORDER BY id LIMIT NULL;
SELECT id FROM t ORDER BY id LIMIT 1 + 1;
SELECT id FROM t ORDER BY id OFFSET 1 LIMIT 1;

-- snippet: limit-negative
-- error: 2201W
SELECT 1 LIMIT -1;
-- error: 2201X
SELECT 1 OFFSET -1;

-- snippet: distinct-rows
CREATE TABLE t (a INTEGER, b TEXT);
INSERT INTO t VALUES (1, 'x'), (1, 'x'), (1, 'y'), (NULL, 'x'), (NULL, 'x');
SELECT DISTINCT a, b FROM t ORDER BY a, b;
SELECT DISTINCT b FROM t ORDER BY b DESC;
SELECT DISTINCT a + 1 FROM t ORDER BY 1;

-- snippet: distinct-with-limit
CREATE TABLE t (v INTEGER);
INSERT INTO t VALUES (3), (1), (3), (2), (1);
SELECT DISTINCT v FROM t ORDER BY v LIMIT 2;
SELECT DISTINCT v FROM t ORDER BY v DESC OFFSET 1;

-- snippet: distinct-order-by-must-be-selected
CREATE TABLE t (a INTEGER, b INTEGER);
-- error: 42P10
SELECT DISTINCT a FROM t ORDER BY b;

-- snippet: distinct-numeric-scale
CREATE TABLE t (v NUMERIC(5, 1));
INSERT INTO t VALUES (1), (1.0), (1.04), (2);
SELECT DISTINCT v FROM t ORDER BY v;

-- snippet: order-by-prefix-of-key-descending
CREATE TABLE t (w INTEGER, d INTEGER, o INTEGER, v INTEGER, PRIMARY KEY (w, d, o));
INSERT INTO t VALUES (1, 1, 1, 10), (1, 1, 2, 20), (1, 2, 1, 30), (1, 1, 3, NULL), (2, 1, 9, 50);
SELECT o FROM t WHERE w = 1 AND d = 1 ORDER BY o DESC LIMIT 1;
SELECT min(o), max(o) FROM t WHERE w = 1 AND d = 1;
SELECT d, o FROM t WHERE w = 1 ORDER BY d DESC, o DESC;
SELECT w, d, o FROM t ORDER BY w DESC, d, o;

-- snippet: order-text-descending-with-nulls
CREATE TABLE t (s TEXT);
INSERT INTO t VALUES ('b'), (NULL), ('A'), ('a');
SELECT s FROM t ORDER BY s DESC;
SELECT s FROM t ORDER BY upper(s), s;

-- snippet: select-without-table
SELECT 1;
SELECT 1, 'a', NULL;
SELECT 1 WHERE true;
SELECT 1 WHERE false;
