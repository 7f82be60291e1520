-- Scalar, EXISTS and IN subqueries; tables made of a query.

-- snippet: subquery-scalar
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 30), (3, 20);
SELECT id FROM t WHERE v = (SELECT max(v) FROM t);
SELECT id, v - (SELECT min(v) FROM t) FROM t ORDER BY id;
SELECT (SELECT count(*) FROM t) + 1;

-- snippet: subquery-scalar-empty-is-null
CREATE TABLE t (id INTEGER PRIMARY KEY);
SELECT (SELECT id FROM t), (SELECT id FROM t) IS NULL;

-- snippet: subquery-scalar-too-many-rows
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
-- error: 21000
SELECT (SELECT id FROM t);
-- error: 42601
SELECT (SELECT id, id FROM t);

-- snippet: subquery-exists
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (a_id INTEGER);
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO b VALUES (1), (1), (3);
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) ORDER BY id;
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) ORDER BY id;
SELECT EXISTS (SELECT 1 FROM b WHERE a_id = 9);

-- snippet: subquery-in
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (a_id INTEGER);
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO b VALUES (1), (3);
SELECT id FROM a WHERE id IN (SELECT a_id FROM b) ORDER BY id;
SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b) ORDER BY id;
INSERT INTO b VALUES (NULL);
SELECT id FROM a WHERE id IN (SELECT a_id FROM b) ORDER BY id;
SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b) ORDER BY id;

-- snippet: subquery-correlated-scalar
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER, v INTEGER);
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO b VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5);
SELECT id, (SELECT sum(v) FROM b WHERE b.a_id = a.id) AS total FROM a ORDER BY id;
SELECT id FROM a WHERE (SELECT count(*) FROM b WHERE b.a_id = a.id) >= 1 ORDER BY id;

-- snippet: subquery-in-from
CREATE TABLE t (g INTEGER, v INTEGER);
INSERT INTO t VALUES (1, 1), (1, 2), (2, 10);
SELECT s.g, s.total FROM (SELECT g, sum(v) AS total FROM t GROUP BY g) AS s WHERE s.total > 3 ORDER BY s.g;
SELECT max(total) FROM (SELECT sum(v) AS total FROM t GROUP BY g) AS x;
