-- CREATE TABLE … AS, and SELECT … INTO.
-- compare: messages

-- snippet: create-as-query
CREATE TABLE src (id INT PRIMARY KEY, a NUMERIC(6, 2) DEFAULT 3 NOT NULL, b VARCHAR(5) UNIQUE, c TEXT, d CHAR(3), e DOUBLE PRECISION, f TIMESTAMPTZ);
INSERT INTO src VALUES (1, 1.5, 'x', 'y', 'z', 0.25, '2026-01-31 12:00+00'), (2, 2, NULL, NULL, 'q', NULL, NULL);
CREATE TABLE copied AS SELECT * FROM src;
SELECT * FROM copied ORDER BY id;
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 'copied'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO copied (id) VALUES (1);
SELECT count(*) FROM copied;
-- error: 42P07
CREATE TABLE copied AS SELECT 1 AS a;
CREATE TABLE IF NOT EXISTS copied AS SELECT 1 / 0 AS a;
CREATE TABLE IF NOT EXISTS fresh AS SELECT 1 AS a;
SELECT * FROM fresh;

-- snippet: create-as-names-columns
CREATE TABLE t (x, "Y y") AS SELECT 1, 2, 3 AS z;
SELECT * FROM t;
-- error: 42601
CREATE TABLE u (x, y, z) AS SELECT 1, 2;
-- error: 42701
CREATE TABLE u AS SELECT 1, 2;
-- error: 42701
CREATE TABLE u AS SELECT 1 AS a, 2 AS a;
-- error: 42701
CREATE TABLE u (a, a) AS SELECT 1, 2;
-- error: 42601
CREATE TABLE u (a INT) AS SELECT 1;

-- snippet: create-as-with-no-data
CREATE TABLE src (id INT, b TEXT);
INSERT INTO src VALUES (1, 'a');
CREATE TABLE t AS SELECT * FROM src WITH NO DATA;
SELECT * FROM t;
CREATE TABLE u AS TABLE src WITH DATA;
SELECT * FROM u;
CREATE TABLE v AS (SELECT 1 / 0 AS a) WITH NO DATA;
SELECT * FROM v;

-- snippet: create-as-other-queries
CREATE TABLE t AS VALUES (1, 'a'), (2, 'b');
SELECT * FROM t ORDER BY 1;
CREATE TABLE u AS WITH x AS (SELECT i FROM generate_series(1, 5) i) SELECT i, i * i AS square FROM x WHERE i > 2 UNION ALL SELECT 0, 0;
SELECT * FROM u ORDER BY 1;
CREATE TABLE v AS SELECT 'x' AS word, NULL AS nothing, 1::NUMERIC AS n, 'abc'::VARCHAR(2) AS v;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum;
CREATE TABLE w AS SELECT FROM t;
SELECT count(*) FROM w;
-- error: 42601
CREATE TABLE y AS INSERT INTO t VALUES (3, 'c') RETURNING *;
-- error: 42703
CREATE TABLE t AS SELECT nothing;

-- snippet: create-as-fails-whole
-- error: 22012
CREATE TABLE t AS SELECT 1 / (i - 3) AS a FROM generate_series(1, 5) i;
-- error: 42P01
SELECT * FROM t;
CREATE TABLE t AS SELECT 1 AS a;
SELECT * FROM t;

-- snippet: create-as-execute
CREATE TABLE src (id INT);
INSERT INTO src VALUES (1), (2), (3);
PREPARE more (INT) AS SELECT id FROM src WHERE id > $1;
CREATE TABLE t AS EXECUTE more(1);
SELECT * FROM t ORDER BY 1;
PREPARE change AS DELETE FROM src;
-- error: 42809
CREATE TABLE u AS EXECUTE change;
-- error: 26000
CREATE TABLE u AS EXECUTE nothing;
DEALLOCATE ALL;

-- snippet: select-into
CREATE TABLE src (id INT, b TEXT);
INSERT INTO src VALUES (1, 'a'), (2, 'b');
SELECT id, b INTO t FROM src WHERE id > 1;
SELECT * FROM t;
SELECT 7 AS a INTO TABLE u;
SELECT * FROM u;
-- error: 42P07
SELECT 1 AS a INTO u;
SELECT a INTO v FROM u UNION SELECT 8;
SELECT * FROM v ORDER BY 1;
-- error: 42601
CREATE TABLE y AS SELECT id INTO z FROM src;
-- error: 42601
INSERT INTO src SELECT 1, 'x' INTO z;
