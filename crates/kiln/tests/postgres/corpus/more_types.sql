-- REAL, and columns of type REAL and INTERVAL.
-- compare: messages

-- snippet: real-values
SELECT 1.5::real, '0.1'::real, 1e10::float4, '-0'::real, 'NaN'::real, 'Infinity'::real, 123456789::real, 3.4e38::real, 1::float(24), 0.1::float(1);
SELECT pg_typeof(1::real), pg_typeof(1::real + 1::real), pg_typeof(1::real + 1), pg_typeof(1::real * 2.5), pg_typeof(1::real + 1::float8), pg_typeof(-1::real);
SELECT 0.1::real + 0.2::real, 0.1::real * 3::real, 1::real / 3::real, 7::real - 0.1::real, -(0.1::real), 0.1::real + 1, 2 * 0.1::real;
SELECT 0.1::real = 0.1::float8, 0.1::real = 0.1::real, 0.1::real < 0.2::real, 0.5::real = 0.5, 1::real = 1, 0.1::real > 0.1;
SELECT 0.1::real::float8, 0.1::real::numeric, 123456.789::real::numeric, 2.5::real::int, 3.5::real::int, 0.1::real::text, 1e20::real::numeric;
SELECT abs(-1.5::real), round(2.5::real), floor(-1.5::real), sqrt(4::real), greatest(1::real, 2::real), coalesce(NULL::real, 1::real), nullif(1::real, 2::real);
SELECT '1.5'::text::real, ARRAY[1::real, 2.5::real], '{1.5,2}'::real[];
SELECT 1::real + '2', '3' * 0.5::real;
-- error: 22003
SELECT '1e39'::real;
-- error: 22003
SELECT 3e38::real * 10::real;
-- error: 22012
SELECT 1::real / 0::real;
-- error: 22P02
SELECT 'x'::real;
-- error: 22003
SELECT '1e50'::real;
-- error: 42883
SELECT 5::real % 2::real;

-- snippet: real-columns
CREATE TABLE r (id INTEGER PRIMARY KEY, a REAL, b FLOAT4 NOT NULL DEFAULT 0.1);
INSERT INTO r VALUES (1, 1.5, 2.25), (2, 0.1, 0.2), (3, NULL, 1e10);
INSERT INTO r (id, a) VALUES (4, 0.1::float8), (5, 7), (6, '0.3');
SELECT * FROM r ORDER BY id;
SELECT id FROM r WHERE a = 0.1::real ORDER BY id;
SELECT id FROM r WHERE a > 0.2 ORDER BY a DESC, id;
SELECT sum(a), avg(a), min(a), max(a), count(a) FROM r;
SELECT pg_typeof(sum(a)), pg_typeof(avg(a)), pg_typeof(max(a)) FROM r;
SELECT a, count(*) FROM r GROUP BY a ORDER BY a;
UPDATE r SET a = a + 1, b = b * 2 WHERE id < 3 RETURNING *;
UPDATE r SET a = a * 2.5 WHERE id = 1 RETURNING a;
CREATE INDEX i ON r (a);
SELECT id FROM r WHERE a = 1.1::real;
SELECT id FROM r WHERE a >= 0.3::real AND a < 8 ORDER BY a, id;
SELECT sum(a) OVER (ORDER BY id) FROM r ORDER BY id;
-- error: 22003
INSERT INTO r VALUES (7, '1e40');
CREATE TABLE k (x REAL PRIMARY KEY);
INSERT INTO k VALUES (0.1), (2), (-1);
-- error: 23505
INSERT INTO k VALUES (0.1::float8);
SELECT * FROM k ORDER BY x;
CREATE FUNCTION half(x REAL) RETURNS REAL LANGUAGE plpgsql AS $$ BEGIN RETURN x / 2; END $$;
SELECT half(0.1::real), half(3), half('7');

-- snippet: interval-columns
CREATE TABLE e (id INTEGER PRIMARY KEY, d INTERVAL, n INTERVAL NOT NULL DEFAULT '1 day');
INSERT INTO e VALUES (1, '1 mon 2 days 03:04:05', '1 day'), (2, interval '30 days', '2 hours'), (3, NULL, '-1 day');
INSERT INTO e (id, d) VALUES (4, '1 mon');
SELECT * FROM e ORDER BY id;
SELECT id FROM e WHERE d = '30 days' ORDER BY id;
SELECT id FROM e WHERE n > '1 hour' ORDER BY n DESC, id;
SELECT min(d), max(n), count(d) FROM e;
SELECT DISTINCT d FROM e WHERE d IN ('1 mon', '30 days');
SELECT n, count(*) FROM e GROUP BY n ORDER BY n;
UPDATE e SET n = n + d, d = d * 2 WHERE id = 1 RETURNING *;
SELECT timestamp '2020-01-31' + d, extract(day FROM d) FROM e ORDER BY id;
DELETE FROM e WHERE d IS NULL RETURNING n;
-- error: 22007
INSERT INTO e VALUES (9, 'soon');
-- error: 23502
INSERT INTO e VALUES (9, NULL, NULL);
CREATE FUNCTION later(t TIMESTAMP, by INTERVAL) RETURNS TIMESTAMP LANGUAGE sql AS 'SELECT t + by';
SELECT later('2020-01-01', d) FROM e ORDER BY id;

-- snippet: interval-index-is-refused
CREATE TABLE e (id INTEGER PRIMARY KEY, d INTERVAL);
-- refused: index over a column of type interval
CREATE INDEX i ON e (d);

-- snippet: aggregates-that-are-not-needed
CREATE TABLE r (a INTEGER);
INSERT INTO r VALUES (1), (2), (3);
SELECT pg_typeof(sum(a)) FROM r;
SELECT CASE WHEN true THEN 1 ELSE count(*) END FROM r;
SELECT coalesce(1, count(*)) FROM r WHERE a > 5;
SELECT pg_typeof(count(*)) FROM r GROUP BY a > 1;
SELECT 1 FROM r HAVING true;
SELECT min(x), max(x) FROM (VALUES (1.0), (1.00), (1.000)) v (x);

-- snippet: texts-that-are-concatenated-are-cast
SELECT (1 || '/' || 2)::pg_lsn IS NULL, ('a' || 'b')::name;

-- snippet: infinite-reals-as-numbers
SELECT '-Infinity'::real::numeric;

-- snippet: recursion-that-locks
-- error: 0A000
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x FOR UPDATE) SELECT * FROM x;

-- snippet: groups-by-functions-of-rows
CREATE TABLE few (id INTEGER, dataa TEXT);
INSERT INTO few VALUES (1, 'a'), (2, 'b');
SELECT dataa, count(*), unnest('{1,1,3}'::int[]) FROM few GROUP BY dataa, 3 ORDER BY 1, 3;
