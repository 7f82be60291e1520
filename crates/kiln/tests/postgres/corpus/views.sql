-- Views.
-- compare: messages

-- snippet: a-view-of-some-rows-and-columns
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC(10, 2), kind INTEGER);
INSERT INTO item VALUES (1, 'a', 1.5, 1), (2, 'b', 2.5, 1), (3, 'c', 3.5, 2), (4, 'd', NULL, 2);
CREATE VIEW cheap AS SELECT id, name, price * 2 AS twice FROM item WHERE price < 3;
SELECT * FROM cheap ORDER BY id;
SELECT name FROM cheap WHERE id = 2;
SELECT c.id, c.twice + 1 FROM cheap AS c WHERE c.twice > 3 ORDER BY 1;
SELECT count(*), sum(twice) FROM cheap;
SELECT x FROM cheap AS q (x, y) ORDER BY y;
INSERT INTO item VALUES (5, 'e', 0.5, 1);
SELECT id FROM cheap ORDER BY twice;
-- error: 42703
SELECT price FROM cheap;
-- error: 42P07
CREATE VIEW cheap AS SELECT 1;
-- error: 42P07
CREATE VIEW item AS SELECT 1;
-- error: 42P07
CREATE TABLE cheap (id INTEGER);
-- error: 42P07
CREATE SEQUENCE cheap;
-- error: 42P07
CREATE INDEX cheap ON item (kind);
DROP VIEW cheap;
-- error: 42P01
SELECT * FROM cheap;
-- error: 42P01
DROP VIEW cheap;
DROP VIEW IF EXISTS cheap;

-- snippet: names-and-types-of-columns
CREATE VIEW v (a, b) AS SELECT 1, 'x', 2.5 AS c;
SELECT * FROM v;
SELECT a + 1, b || 'y', c FROM v;
-- error: 42701
CREATE VIEW w AS SELECT 1 AS a, 2 AS a;
-- error: 42601
CREATE VIEW w (a, b) AS SELECT 1;
CREATE VIEW w AS VALUES (1, 'a'), (2, 'b');
SELECT * FROM w ORDER BY column1;
CREATE VIEW n AS SELECT NULL AS nothing, current_date > '2000-01-01' AS late;
SELECT * FROM n;
CREATE VIEW "Odd name" ("A b") AS SELECT 7;
SELECT "A b" FROM "Odd name";
-- error: 42P02
CREATE VIEW p AS SELECT $1::INTEGER;
-- error: 42P01
CREATE VIEW p AS SELECT * FROM nowhere;
-- error: 42703
CREATE VIEW p AS SELECT z FROM v;
-- error: 42601
CREATE VIEW p SELECT 1;

-- snippet: joins-groups-and-sets
CREATE TABLE a (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER, w INTEGER);
INSERT INTO a VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO b VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, NULL, 8);
CREATE VIEW ab AS SELECT a.id, a.v, b.id AS b, b.w FROM a JOIN b ON b.a = a.id;
CREATE VIEW al AS SELECT a.id, coalesce(b.w, -1) AS w, 1 AS one FROM a LEFT JOIN b ON b.a = a.id;
CREATE VIEW totals AS SELECT a, sum(w) AS total, count(*) AS n FROM b GROUP BY a HAVING count(*) >= 1;
CREATE VIEW both_ids AS SELECT id FROM a UNION SELECT w FROM b;
CREATE VIEW top AS SELECT id, v FROM a ORDER BY v DESC LIMIT 2;
CREATE VIEW kinds AS SELECT DISTINCT a FROM b;
CREATE VIEW ranked AS SELECT id, rank() OVER (ORDER BY w DESC) AS r FROM b;
CREATE VIEW series AS SELECT i FROM generate_series(1, 3) AS i;
CREATE VIEW deep AS WITH x AS (SELECT id, v FROM a WHERE v > 10) SELECT x.id, x.v FROM x;
SELECT * FROM ab ORDER BY b;
SELECT * FROM ab WHERE id = 1 AND w > 5;
SELECT * FROM al ORDER BY id, w;
SELECT * FROM totals ORDER BY a;
SELECT * FROM totals WHERE a = 1;
SELECT * FROM both_ids ORDER BY id;
SELECT * FROM top;
SELECT * FROM kinds ORDER BY a;
SELECT * FROM ranked ORDER BY r;
SELECT * FROM series ORDER BY i;
SELECT * FROM deep ORDER BY id;
SELECT ab.v, totals.total FROM ab JOIN totals ON totals.a = ab.id ORDER BY ab.b;
SELECT a.id, al.w, al.one FROM a LEFT JOIN al ON al.id = a.id AND a.id > 1 ORDER BY a.id, al.w;
SELECT a.id, ab.b, ab.w FROM a LEFT JOIN ab ON ab.id = a.id ORDER BY a.id, ab.b;
SELECT al.id, al.one, b.id FROM al RIGHT JOIN b ON b.id = al.id ORDER BY b.id, al.w;
SELECT ab.b, top.id FROM ab FULL JOIN top ON top.id = ab.b ORDER BY 1, 2;
SELECT * FROM ab JOIN a USING (id, v) ORDER BY b;
SELECT * FROM a NATURAL JOIN top ORDER BY id;
SELECT x.b, y.b FROM ab x, ab y WHERE x.id = y.id AND x.b < y.b;
SELECT v FROM a WHERE id IN (SELECT id FROM ab WHERE w = 6);
SELECT v FROM a WHERE EXISTS (SELECT 1 FROM ab WHERE ab.id = a.id) ORDER BY v;
SELECT (SELECT max(w) FROM ab WHERE ab.id = a.id) FROM a ORDER BY id;
SELECT id, count(*), sum(v + w) FROM ab GROUP BY id ORDER BY id;
SELECT v + w AS s FROM ab GROUP BY v + w ORDER BY s;
SELECT l.m FROM a, LATERAL (SELECT max(w) AS m FROM ab WHERE ab.id = a.id) l ORDER BY 1;
WITH ab AS (SELECT 99 AS id) SELECT id FROM ab;
SELECT * FROM (SELECT b FROM ab) q ORDER BY b;
SELECT DISTINCT id FROM ab ORDER BY id;
SELECT id FROM ab UNION ALL SELECT id FROM top ORDER BY 1;

-- snippet: outer-joins-of-views-with-expressions
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO b VALUES (1, NULL), (2, 5);
CREATE VIEW c AS SELECT id, coalesce(n, 0) AS n, 'yes' AS there FROM b;
CREATE VIEW d AS SELECT id, n FROM b WHERE n IS NULL;
SELECT a.id, c.n, c.there FROM a LEFT JOIN c ON c.id = a.id ORDER BY a.id;
SELECT a.id, c.n, c.there FROM c RIGHT JOIN a ON c.id = a.id ORDER BY a.id;
SELECT a.id, d.id, d.n FROM a LEFT JOIN d ON d.id = a.id ORDER BY a.id;
SELECT a.id FROM a LEFT JOIN c ON c.id = a.id WHERE c.there IS NULL;
SELECT a.id, c.there FROM a FULL JOIN c ON c.id = a.id AND c.n > 0 ORDER BY 1, 2;

-- snippet: views-on-views
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 4, 2);
CREATE VIEW v1 AS SELECT id, a + b AS s, b FROM t WHERE b < 9;
CREATE VIEW v2 AS SELECT id, s * 10 AS ten FROM v1 WHERE s > 2;
CREATE VIEW v3 AS SELECT count(*) AS n FROM v2;
SELECT * FROM v2 ORDER BY id;
SELECT * FROM v2 WHERE id = 3;
SELECT * FROM v3;
-- error: 2BP01
DROP VIEW v1;
-- error: 2BP01
DROP TABLE t;
-- error: 2BP01
DROP VIEW v1, v2;
DROP VIEW v3, v1, v2;
CREATE VIEW v1 AS SELECT id FROM t;
CREATE VIEW v2 AS SELECT id FROM v1;
DROP VIEW v1 CASCADE;
-- error: 42P01
SELECT * FROM v2;
CREATE VIEW v1 AS SELECT id FROM t;
DROP TABLE t CASCADE;
-- error: 42P01
SELECT * FROM v1;

-- snippet: replaced-views
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y');
CREATE OR REPLACE VIEW v AS SELECT id, a FROM t;
CREATE VIEW w AS SELECT sum(a) AS s FROM v;
CREATE FUNCTION f() RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(a) FROM v); END $$;
SELECT f();
CREATE OR REPLACE VIEW v AS SELECT id, a + 1 AS a FROM t;
SELECT f(), s FROM w;
CREATE OR REPLACE VIEW v AS SELECT id, a, b FROM t WHERE id = 1;
SELECT * FROM v;
SELECT f(), s FROM w;
-- error: 42P16
CREATE OR REPLACE VIEW v AS SELECT id FROM t;
-- error: 42P16
CREATE OR REPLACE VIEW v AS SELECT id, a AS other, b FROM t;
-- error: 42P16
CREATE OR REPLACE VIEW v AS SELECT id, b AS a, b FROM t;
-- error: 42809
CREATE OR REPLACE VIEW t AS SELECT 1;

-- snippet: a-star-is-fixed-when-the-view-is-made
CREATE TABLE t (id INTEGER PRIMARY KEY, "B c" INTEGER);
CREATE TABLE u (id INTEGER PRIMARY KEY, d INTEGER);
INSERT INTO t VALUES (1, 2);
INSERT INTO u VALUES (1, 3);
CREATE VIEW v AS SELECT * FROM t;
CREATE VIEW w AS SELECT x.*, u.d * 2 AS e FROM t AS x, u WHERE x.id = u.id;
CREATE VIEW y AS SELECT * FROM t JOIN u USING (id);
CREATE VIEW z AS SELECT count(*) AS n, 2 * 3 AS m FROM (SELECT * FROM t) q;
SELECT * FROM v;
SELECT * FROM w;
SELECT * FROM y;
SELECT * FROM z;
SELECT v.* FROM v;

-- snippet: updatable-views
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 7, b TEXT NOT NULL DEFAULT 'none', c INTEGER CHECK (c < 100));
INSERT INTO t VALUES (1, 1, 'x', 1), (2, 2, 'y', 2), (3, 3, 'z', 3);
CREATE VIEW v AS SELECT id AS key, b AS word, c, a * 10 AS ten FROM t WHERE a < 3;
UPDATE v SET word = 'new' WHERE key = 1;
UPDATE v SET word = word || '!', c = c + 1 WHERE ten = 20 RETURNING *;
UPDATE v AS q SET c = q.c * 2 RETURNING q.key, q.c, ten;
SELECT * FROM t ORDER BY id;
UPDATE v SET c = 5 WHERE key = 3;
DELETE FROM v WHERE key = 3;
DELETE FROM v WHERE word = 'new' RETURNING *;
SELECT * FROM t ORDER BY id;
INSERT INTO v (key, word) VALUES (10, 'ten'), (11, 'eleven') RETURNING *;
INSERT INTO v (key) VALUES (12) RETURNING key, word, ten;
INSERT INTO v (key, word, c) SELECT key + 20, word, c FROM v WHERE key = 2;
SELECT * FROM t ORDER BY id;
SELECT * FROM v ORDER BY key;
-- error: 0A000
INSERT INTO v (key, ten) VALUES (13, 1);
-- error: 0A000
INSERT INTO v VALUES (13, 'w', 1, 1);
INSERT INTO v VALUES (13, 'w', 1);
-- error: 0A000
UPDATE v SET ten = 1;
-- error: 42703
UPDATE v SET a = 1;
-- error: 42703
INSERT INTO v (id) VALUES (1);
-- error: 42703
DELETE FROM v WHERE a = 1;
-- error: 23505
INSERT INTO v (key) VALUES (2);
-- error: 23514
UPDATE v SET c = 100;
-- error: 23502
UPDATE v SET word = NULL;
DELETE FROM v;
SELECT count(*) FROM t;

-- snippet: changes-by-way-of-views-with-other-tables
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER);
CREATE TABLE o (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4);
INSERT INTO o VALUES (1, 100), (3, 300);
CREATE VIEW v AS SELECT id, a FROM t WHERE id < 4;
UPDATE v SET a = o.n FROM o WHERE o.id = v.id RETURNING v.id, a, o.n;
SELECT * FROM t ORDER BY id;
DELETE FROM v USING o WHERE o.id = v.id AND o.n = 100 RETURNING *;
UPDATE v SET a = (SELECT max(a) FROM v) + 1;
SELECT * FROM t ORDER BY id;
UPDATE v SET a = (SELECT count(*) FROM t WHERE t.a > v.a);
SELECT * FROM t ORDER BY id;
DELETE FROM t WHERE id IN (SELECT id FROM v WHERE a = 0);
SELECT * FROM t ORDER BY id;
INSERT INTO t SELECT id + 10, a FROM v;
SELECT * FROM t ORDER BY id;

-- snippet: views-that-ask-about-other-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40);
CREATE VIEW above AS SELECT id, a, (SELECT max(a) FROM t AS o) AS most FROM t WHERE a > (SELECT avg(a) FROM t AS o);
UPDATE above SET a = a - 25;
SELECT * FROM t ORDER BY id;
UPDATE above SET a = most + id;
SELECT * FROM t ORDER BY id;
DELETE FROM above WHERE most > 0;
SELECT * FROM t ORDER BY id;
-- refused: RETURNING by way of a view
DELETE FROM above RETURNING id;

-- snippet: views-that-cannot-be-changed
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER);
CREATE VIEW d AS SELECT DISTINCT a FROM t;
CREATE VIEW g AS SELECT a FROM t GROUP BY a;
CREATE VIEW h AS SELECT 1 AS one FROM t HAVING count(*) > 0;
CREATE VIEW u AS SELECT id FROM t UNION ALL SELECT a FROM t;
CREATE VIEW w AS WITH x AS (SELECT 1) SELECT id FROM t;
CREATE VIEW l AS SELECT id FROM t LIMIT 1;
CREATE VIEW f AS SELECT id FROM t OFFSET 1;
CREATE VIEW s AS SELECT count(*) AS n FROM t;
CREATE VIEW r AS SELECT id, rank() OVER (ORDER BY a) AS k FROM t;
CREATE VIEW j AS SELECT t.id FROM t, t AS o;
CREATE VIEW q AS SELECT id FROM (SELECT id FROM t) x;
CREATE VIEW n AS SELECT 1 AS one;
CREATE VIEW e AS SELECT id + 1 AS next FROM t;
CREATE VIEW over_s AS SELECT n FROM s;
-- error: 55000
INSERT INTO d VALUES (1);
-- error: 55000
UPDATE g SET a = 1;
-- error: 55000
DELETE FROM h;
-- error: 55000
INSERT INTO u VALUES (1);
-- error: 55000
UPDATE w SET id = 1;
-- error: 55000
DELETE FROM l;
-- error: 55000
DELETE FROM f;
-- error: 55000
UPDATE s SET n = 1;
-- error: 55000
UPDATE r SET id = 1;
-- error: 55000
INSERT INTO j VALUES (1);
-- error: 55000
DELETE FROM q;
-- error: 55000
DELETE FROM n;
-- error: 55000
UPDATE e SET next = 1;
DELETE FROM e;
-- error: 55000
INSERT INTO over_s VALUES (1);

-- snippet: check-option
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 30);
CREATE VIEW v AS SELECT id, a FROM t WHERE a < 10 WITH CHECK OPTION;
INSERT INTO v VALUES (4, 4);
-- error: 44000
INSERT INTO v VALUES (5, 50);
-- error: 44000
INSERT INTO v (id) VALUES (5);
-- error: 44000
UPDATE v SET a = a + 8 WHERE id = 2;
UPDATE v SET a = a + 1 RETURNING *;
UPDATE v SET a = 99 WHERE id = 3;
CREATE VIEW low AS SELECT id, a FROM t WHERE a > 0;
CREATE VIEW local_of AS SELECT id, a FROM low WHERE a < 10 WITH LOCAL CHECK OPTION;
CREATE VIEW cascaded_of AS SELECT id, a FROM low WHERE a < 10 WITH CASCADED CHECK OPTION;
INSERT INTO local_of VALUES (20, -5);
-- error: 44000
INSERT INTO local_of VALUES (21, 50);
-- error: 44000
INSERT INTO cascaded_of VALUES (22, -5);
-- error: 44000
INSERT INTO cascaded_of VALUES (22, 50);
INSERT INTO cascaded_of VALUES (22, 5);
CREATE VIEW over_v AS SELECT id, a FROM v;
-- error: 44000
INSERT INTO over_v VALUES (30, 100);
INSERT INTO low VALUES (31, -1);
SELECT * FROM t ORDER BY id;
-- error: 0A000
CREATE VIEW bad AS SELECT count(*) AS n FROM t WITH CHECK OPTION;

-- snippet: views-in-procedures
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER);
INSERT INTO t SELECT i, i * 10 FROM generate_series(1, 5) i;
CREATE VIEW v AS SELECT id AS k, a FROM t WHERE a > 10;
CREATE PROCEDURE p(n INTEGER) LANGUAGE plpgsql AS $$
DECLARE r v%ROWTYPE; x v.a%TYPE; total INTEGER := 0;
BEGIN
  FOR r IN SELECT * FROM v ORDER BY k LOOP total := total + r.a; END LOOP;
  SELECT a INTO x FROM v WHERE k = n;
  UPDATE v SET a = a + 1 WHERE k = n;
  INSERT INTO v VALUES (100, total + x);
  DELETE FROM v WHERE k = 5;
END $$;
CALL p(3);
SELECT * FROM t ORDER BY id;
CREATE FUNCTION rows_of() RETURNS SETOF v LANGUAGE sql AS $$ SELECT * FROM v $$;
SELECT * FROM rows_of() ORDER BY k;
BEGIN;
INSERT INTO v VALUES (200, 200);
SELECT * FROM v WHERE k = 200;
SAVEPOINT s;
DELETE FROM v;
SELECT count(*) FROM v;
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM v;

-- snippet: views-and-functions
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE FUNCTION twice(x INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 2 * x';
CREATE VIEW v AS SELECT id, twice(id) AS d FROM t;
SELECT * FROM v ORDER BY id;
-- error: 2BP01
DROP FUNCTION twice;
CREATE OR REPLACE FUNCTION twice(x INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 20 * x';
SELECT * FROM v ORDER BY id;
DROP FUNCTION twice CASCADE;
-- error: 42P01
SELECT * FROM v;

-- snippet: renamed-views
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
CREATE VIEW v AS SELECT id FROM t;
ALTER VIEW v RENAME TO w;
SELECT * FROM w;
-- error: 42P01
SELECT * FROM v;
-- error: 42P07
ALTER VIEW w RENAME TO t;
-- error: 42P01
ALTER VIEW v RENAME TO x;
ALTER VIEW IF EXISTS v RENAME TO x;
-- error: 42809
ALTER VIEW t RENAME TO x;

-- snippet: views-where-tables-are-meant
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE VIEW v AS SELECT id FROM t;
-- error: 42809
DROP TABLE v;
-- error: 42809
DROP VIEW t;
-- error: 42809
TRUNCATE v;
-- error: 42809
CREATE INDEX i ON v (id);
-- error: 42809
CREATE TABLE u (id INTEGER REFERENCES v);
-- error: 42809
DROP SEQUENCE v;
-- error: 42809
DROP INDEX v;

-- snippet: views-with-actions-below
CREATE TABLE p (id INTEGER PRIMARY KEY, n INTEGER);
CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO p VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO c VALUES (1, 1), (2, 2), (3, 3);
CREATE VIEW few AS SELECT id, n FROM p WHERE n < 3;
DELETE FROM few WHERE id = 1;
UPDATE few SET id = 20 WHERE id = 2;
SELECT * FROM c ORDER BY id;
-- error: 23503
INSERT INTO c VALUES (4, 1);

-- snippet: views-in-the-catalogs
CREATE TABLE t (id INTEGER PRIMARY KEY, a VARCHAR(5), b NUMERIC(5, 2));
CREATE VIEW v AS SELECT id, a, b, a || 'x' AS e FROM t;
CREATE VIEW w (n) AS SELECT count(*) FROM v;
CREATE VIEW c AS SELECT id FROM t WHERE id > 0 WITH LOCAL CHECK OPTION;
SELECT relname, relkind, relnatts, relhasindex FROM pg_class WHERE relname IN ('v', 'w', 't') ORDER BY relname;
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum;
SELECT viewname FROM pg_views WHERE viewname = 'w' ORDER BY viewname;
SELECT table_name, table_type, is_insertable_into FROM information_schema.tables WHERE table_name IN ('t', 'v', 'w') ORDER BY table_name;
SELECT table_name, check_option, is_updatable, is_insertable_into FROM information_schema.views WHERE table_name IN ('v', 'w', 'c') ORDER BY table_name;
SELECT column_name, data_type, is_nullable, is_updatable, character_maximum_length FROM information_schema.columns WHERE table_name = 'v' ORDER BY ordinal_position;
SELECT pg_table_is_visible('v'::regclass), to_regclass('w') IS NOT NULL, to_regclass('nothing') IS NULL;
SELECT pg_get_viewdef('t'::regclass) IS NULL, length(pg_get_viewdef('v'::regclass)) > 0;
