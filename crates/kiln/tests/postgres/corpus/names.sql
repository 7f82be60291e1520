-- The names that result columns get.

-- snippet: name-of-columns-and-aliases
CREATE TABLE t (id INTEGER PRIMARY KEY, "Odd" TEXT);
INSERT INTO t VALUES (1, 'x');
SELECT id, t.id, "Odd", id AS "My Id", id plain FROM t;

-- snippet: name-of-expressions
SELECT 1, 1 + 1, 'a' || 'b', -1, NULL, true, NOT true, 1 IS NULL;

-- snippet: name-of-functions
SELECT upper('a'), abs(-1), round(1.5), coalesce(1, 2), nullif(1, 2), greatest(1, 2), least(1, 2), length('a'), substring('abc', 1, 1), trim(' a '), position('a' IN 'a'), extract(year FROM date '2024-01-01'), date_trunc('day', timestamp '2024-01-01');

-- snippet: name-of-casts-and-case
SELECT 1::bigint, '5'::integer, CAST('x' AS text), CASE WHEN true THEN 1 END, '1'::numeric(3, 1), 'a'::varchar(3), '2024-01-01'::date, 1.5::double precision, true::boolean, 'a'::char(2), timestamp '2024-01-01', 5::smallint;

-- snippet: name-of-cast-over-column-and-function
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
SELECT id::text, abs(id)::numeric, (id + 1)::bigint, CASE WHEN true THEN 1 ELSE id END FROM t;

-- snippet: name-of-aggregates
CREATE TABLE t (v INTEGER);
SELECT count(*), count(v), sum(v), min(v), max(v), avg(v), sum(v) + 1, sum(v) AS total FROM t;

-- snippet: name-of-subqueries
SELECT (SELECT 1), (SELECT 2 AS two), EXISTS (SELECT 1), (SELECT abs(-3));

-- snippet: name-duplicates-are-kept
SELECT 1 AS a, 2 AS a, 3 AS b;

-- snippet: name-case-folding
CREATE TABLE CamelCase (SomeColumn INTEGER);
INSERT INTO camelcase VALUES (1);
SELECT SOMECOLUMN, SomeColumn AS Renamed FROM CAMELCASE;
