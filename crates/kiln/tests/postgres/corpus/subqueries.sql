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

-- snippet: subquery-computed-once
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE u (k INTEGER, w NUMERIC(6, 2));
INSERT INTO t VALUES (1, 10), (2, 30), (3, 20), (4, NULL), (5, 30);
INSERT INTO u VALUES (10, 1), (30, 2.50), (30, 10);
SELECT id, v - (SELECT min(v) FROM t), (SELECT max(w) FROM u) FROM t ORDER BY id;
SELECT id FROM t WHERE v > (SELECT avg(v) FROM t) ORDER BY id;
SELECT id, v IN (SELECT k FROM u) AS found, v NOT IN (SELECT k FROM u) AS missing FROM t ORDER BY id;
SELECT id, v IN (SELECT w FROM u) AS found FROM t ORDER BY id;
SELECT id, v > ANY (SELECT k FROM u) AS more, v <= ALL (SELECT k FROM u) AS least FROM t ORDER BY id;
SELECT id, (id, v) IN (SELECT k / 10, k FROM u) AS pair FROM t ORDER BY id;
SELECT id, EXISTS (SELECT 1 FROM u WHERE k = 30) FROM t ORDER BY id;
SELECT g.id, (SELECT count(*) FROM u) FROM (SELECT id FROM t WHERE id < 3) AS g ORDER BY g.id;
SELECT v, count(*), (SELECT count(*) FROM u) + count(*) FROM t GROUP BY v HAVING count(*) >= (SELECT min(id) FROM t) ORDER BY v;

-- snippet: subquery-in-with-nulls-and-without-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE u (k INTEGER);
INSERT INTO t VALUES (1, 10), (2, NULL);
SELECT id, v IN (SELECT k FROM u) AS i, v NOT IN (SELECT k FROM u) AS n FROM t ORDER BY id;
INSERT INTO u VALUES (NULL);
SELECT id, v IN (SELECT k FROM u) AS i, v NOT IN (SELECT k FROM u) AS n FROM t ORDER BY id;
INSERT INTO u VALUES (10), (10);
SELECT id, v IN (SELECT k FROM u) AS i, v NOT IN (SELECT k FROM u) AS n FROM t ORDER BY id;

-- snippet: subquery-not-run-when-not-asked-for
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 0), (2, 0);
SELECT id, CASE WHEN id > 5 THEN (SELECT 1 / v FROM t WHERE id = 1) END AS x FROM t ORDER BY id;
-- error: 22012
SELECT id, CASE WHEN id > 1 THEN (SELECT 1 / v FROM t WHERE id = 1) END AS x FROM t ORDER BY id;
-- error: 21000
SELECT id, (SELECT v FROM t) FROM t;

-- snippet: subquery-of-the-state-before-the-statement
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE u (k INTEGER);
INSERT INTO t VALUES (1, 10), (2, 30), (3, 20);
INSERT INTO u VALUES (5);
UPDATE t SET v = v + (SELECT max(v) FROM t);
SELECT * FROM t ORDER BY id;
UPDATE t SET v = (SELECT k FROM u) WHERE v > (SELECT min(v) FROM t);
SELECT * FROM t ORDER BY id;
DELETE FROM t WHERE v < (SELECT max(v) FROM t) AND id IN (SELECT id FROM t WHERE id > 1);
SELECT * FROM t ORDER BY id;
INSERT INTO t SELECT id + 10, (SELECT count(*) FROM t) FROM t;
SELECT * FROM t ORDER BY id;

-- snippet: subquery-once-for-each-run-of-a-statement
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    i INTEGER;
    n INTEGER;
    m INTEGER;
    r RECORD;
    log TEXT := '';
BEGIN
    FOR i IN 1..3 LOOP
        SELECT count(*) INTO n FROM t WHERE v >= (SELECT max(v) FROM t WHERE id <= i);
        log := log || n || ' ';
        UPDATE t SET v = v * 2 WHERE id = i;
    END LOOP;
    FOR r IN SELECT id FROM t WHERE v > (SELECT min(v) FROM t) - 1 ORDER BY id LOOP
        INSERT INTO t VALUES (r.id + 10, 0);
        SELECT count(*) INTO m FROM t AS a WHERE a.id IN (SELECT b.id FROM t AS b WHERE b.v = 0);
        log := log || m || ',';
        IF (SELECT count(*) FROM t) > 5 THEN
            log := log || '!';
        END IF;
    END LOOP;
    RETURN log;
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;

-- snippet: subquery-correlated-through-an-index
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER);
CREATE TABLE b (g INTEGER, n INTEGER, v INTEGER, PRIMARY KEY (g, n));
CREATE INDEX b_v ON b (v);
INSERT INTO a VALUES (1, 10), (2, 20), (3, NULL);
INSERT INTO b VALUES (1, 1, 10), (1, 2, 20), (2, 1, 20), (2, 2, NULL);
SELECT id, (SELECT sum(v) FROM b WHERE g = a.id) FROM a ORDER BY id;
SELECT id, (SELECT max(n) FROM b WHERE v = a.k) FROM a ORDER BY id;
SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.v = a.k AND b.g <> a.id) ORDER BY id;
SELECT id, (SELECT count(*) FROM b WHERE b.g = a.id AND b.v > (SELECT min(k) FROM a)) FROM a ORDER BY id;
SELECT id, k IN (SELECT v FROM b WHERE g = a.id) FROM a ORDER BY id;

-- snippet: subquery-in-drives-look-ups
CREATE TABLE t (id INTEGER PRIMARY KEY, a SMALLINT, n NUMERIC(6, 2), s VARCHAR(5));
CREATE INDEX t_a ON t (a);
CREATE INDEX t_n ON t (n, id);
CREATE TABLE u (k BIGINT, w NUMERIC(8, 3), x TEXT);
INSERT INTO t VALUES (1, 1, 1, 'x'), (2, 1, 2.5, 'y'), (3, 2, NULL, 'x'), (4, NULL, 1.00, NULL), (5, 3, 3, 'z');
INSERT INTO u VALUES (1, 1, 'x'), (3, 2.500, 'x'), (3, 2.501, NULL), (NULL, NULL, 'q'), (9, 3, 'z'), (3000000000, 1.0, 'y');
SELECT id FROM t WHERE id IN (SELECT k FROM u) ORDER BY id;
SELECT id FROM t WHERE a IN (SELECT k FROM u WHERE k < 3) ORDER BY id;
SELECT id FROM t WHERE n IN (SELECT w FROM u) ORDER BY id;
SELECT id FROM t WHERE n = ANY (SELECT w FROM u) AND id IN (SELECT k FROM u) ORDER BY id;
SELECT id FROM t WHERE id IN (SELECT k FROM u LIMIT 0) ORDER BY id;
SELECT id FROM t WHERE id IN (SELECT max(k) FROM u WHERE k < 5) ORDER BY id;
SELECT id FROM t WHERE id IN (SELECT k FROM u WHERE k > 1 UNION SELECT 5) ORDER BY id;
SELECT u.k, t.id FROM u JOIN t ON t.id IN (SELECT a FROM t AS o WHERE o.id = u.k) ORDER BY u.k, t.id;
SELECT u.k, t.id FROM u LEFT JOIN t ON t.id IN (SELECT a FROM t AS o WHERE o.id >= u.k) ORDER BY u.k, u.w, t.id;
SELECT t.id FROM t WHERE t.id IN (SELECT k FROM u WHERE u.x = t.s) ORDER BY t.id;
SELECT o.id FROM t AS o WHERE EXISTS (SELECT 1 FROM t AS i WHERE i.id IN (SELECT k FROM u WHERE u.x = o.s) AND i.a >= o.a) ORDER BY o.id;
DELETE FROM t WHERE id IN (SELECT a FROM t);
SELECT id FROM t ORDER BY id;
UPDATE t SET id = id + 10 WHERE id IN (SELECT id FROM t WHERE id > 3);
SELECT id FROM t ORDER BY id;
