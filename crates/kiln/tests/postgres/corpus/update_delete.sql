-- UPDATE, DELETE, RETURNING.

-- snippet: update-by-key
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
UPDATE t SET v = 11 WHERE id = 1;
UPDATE t SET v = 99 WHERE id = 7;
SELECT id, v FROM t ORDER BY id;

-- snippet: update-all-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, NULL);
UPDATE t SET v = v + 1;
SELECT id, v FROM t ORDER BY id;

-- snippet: update-swap-columns
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 10, 20), (2, 30, 40);
UPDATE t SET a = b, b = a;
SELECT id, a, b FROM t ORDER BY id;

-- snippet: update-sees-old-values
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1, 100);
UPDATE t SET a = a + 1, b = a * 10 WHERE id = 1;
SELECT a, b FROM t;

-- snippet: update-multi-column-form
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
INSERT INTO t VALUES (1, 1, 'x');
UPDATE t SET (a, b) = (a + 5, b || 'y') WHERE id = 1;
SELECT a, b FROM t;

-- snippet: update-to-default-and-null
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER DEFAULT 42, w TEXT);
INSERT INTO t VALUES (1, 1, 'x');
UPDATE t SET v = DEFAULT, w = NULL WHERE id = 1;
SELECT id, v, w FROM t;

-- snippet: update-key-shift
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (5, 'c');
UPDATE t SET id = 10 WHERE id = 1;
UPDATE t SET id = id + 100 WHERE id >= 5;
SELECT id, v FROM t ORDER BY id;

-- snippet: update-key-conflict
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
-- error: 23505
UPDATE t SET id = 2 WHERE id = 1;
UPDATE t SET id = 2 WHERE id = 2;
SELECT id, v FROM t ORDER BY id;

-- snippet: update-returning
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
UPDATE t SET v = v * 2 WHERE id = 2 RETURNING id, v, v - 1 AS less;
UPDATE t SET v = 0 WHERE id = 9 RETURNING *;

-- snippet: update-arithmetic-error-leaves-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 4), (2, 0), (3, 5);
-- error: 22012
UPDATE t SET v = 100 / v;
SELECT id, v FROM t ORDER BY id;

-- snippet: update-with-subquery
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE s (v INTEGER);
INSERT INTO t VALUES (1, 0), (2, 0);
INSERT INTO s VALUES (7), (9);
UPDATE t SET v = (SELECT max(v) FROM s) WHERE id = 1;
UPDATE t SET v = 1 WHERE id IN (SELECT v - 7 + 2 FROM s WHERE v = 7);
SELECT id, v FROM t ORDER BY id;

-- snippet: update-indexed-column
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE INDEX t_v ON t (v);
INSERT INTO t VALUES (1, 5), (2, 5), (3, 6);
UPDATE t SET v = v + 1 WHERE v = 5;
SELECT id FROM t WHERE v = 5;
SELECT id FROM t WHERE v = 6 ORDER BY id;

-- snippet: update-unknown-and-duplicate-columns
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
-- error: 42703
UPDATE t SET z = 1;
-- error: 42703
UPDATE t SET v = z;
-- error: 42601
UPDATE t SET v = 1, v = 2;
-- error: 42P01
UPDATE nowhere SET v = 1;

-- snippet: update-type-mismatch
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, b BOOLEAN);
INSERT INTO t VALUES (1, 1, true);
-- error: 42804
UPDATE t SET v = b;
-- error: 42804
UPDATE t SET b = v;
UPDATE t SET v = 2.5;
SELECT v FROM t;

-- snippet: update-alias
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
UPDATE t AS x SET v = x.v + 10 WHERE x.id = 2 RETURNING x.id, x.v;

-- snippet: delete-by-key
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
DELETE FROM t WHERE id = 2;
DELETE FROM t WHERE id = 2;
SELECT id FROM t ORDER BY id;

-- snippet: delete-range-and-reinsert
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40);
DELETE FROM t WHERE id BETWEEN 2 AND 3;
INSERT INTO t VALUES (2, 21);
SELECT id, v FROM t ORDER BY id;

-- snippet: delete-all-and-returning
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, NULL);
DELETE FROM t WHERE v > 5 RETURNING id, v;
DELETE FROM t RETURNING *;
SELECT count(*) FROM t;

-- snippet: delete-with-null-condition
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, NULL), (2, 2);
DELETE FROM t WHERE v <> 5;
SELECT id FROM t;

-- snippet: delete-with-in-subquery
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE TABLE gone (id INTEGER);
INSERT INTO t VALUES (1), (2), (3);
INSERT INTO gone VALUES (1), (3), (3);
DELETE FROM t WHERE id IN (SELECT id FROM gone);
SELECT id FROM t;

-- snippet: delete-composite-prefix
CREATE TABLE t (w INTEGER, d INTEGER, o INTEGER, PRIMARY KEY (w, d, o));
INSERT INTO t VALUES (1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1);
DELETE FROM t WHERE w = 1 AND d = 1 AND o = 1;
DELETE FROM t WHERE w = 1 AND d = 2;
SELECT w, d, o FROM t ORDER BY w, d, o;

-- snippet: truncate
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
TRUNCATE t;
SELECT count(*) FROM t;
INSERT INTO t VALUES (1);
TRUNCATE TABLE t;
SELECT count(*) FROM t;
-- error: 42P01
TRUNCATE nowhere;

-- snippet: truncate-several-tables
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER REFERENCES a);
INSERT INTO a VALUES (1);
INSERT INTO b VALUES (1, 1);
-- error: 0A000
TRUNCATE a;
TRUNCATE a, b;
SELECT count(*) FROM a;

-- snippet: delete-using-without-a-primary-key
CREATE TABLE a (id INTEGER PRIMARY KEY, g INTEGER);
CREATE TABLE c (z INTEGER, d DATE);
INSERT INTO a VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO c VALUES (1, '2024-01-01'), (2, NULL), (5, NULL), (NULL, NULL);
DELETE FROM c USING a WHERE a.id = c.z AND a.g >= 2;
SELECT z, d FROM c ORDER BY z;
UPDATE c SET d = '2025-01-01' FROM a WHERE a.id = c.z AND a.g = 1;
SELECT z, d FROM c ORDER BY z;
DELETE FROM c USING a WHERE a.id = 3 AND c.d IS NULL;
SELECT z, d FROM c ORDER BY z;
