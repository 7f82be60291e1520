-- What applications ask: aggregates, arrays, functions in the output, operators, rows.

-- snippet: volatile-aggregates-and-types
SELECT count(*) BETWEEN 400 AND 600 FROM generate_series(1,1000) WHERE random() < 0.5;
SELECT -2 ^ 2, -2.0 ^ 2, 2 ^ -1, - 2 ^ 2;
SELECT nullif(5, 2.0) / 2, nullif(5, 5.0), nullif(1, 2);
SELECT 'a '::varchar = 'a'::char(3), 'a'::text = 'a'::char(3), 'a '::text = 'a '::char(3), 'a '::char(3) = 'a'::char(5);
SELECT (SELECT sum(v.x)) FROM (VALUES (1),(2),(3)) v(x);
-- error: 21000
SELECT (SELECT count(v.x) FROM generate_series(1, 2)) FROM (VALUES (1),(2),(3)) v(x);
SELECT (SELECT max(v.x) + count(g) FROM generate_series(1, 2) g) FROM (VALUES (1),(2),(3)) v(x);
SELECT v.y, (SELECT sum(v.x)) FROM (VALUES (1,1),(2,1),(3,2)) v(x, y) GROUP BY v.y ORDER BY 1;
SELECT x FROM (VALUES (1),(3),(2)) v(x) ORDER BY x USING >;
SELECT x FROM (VALUES (1),(3),(2)) v(x) ORDER BY x USING <;
SELECT string_agg(DISTINCT x, ',') FROM (VALUES ('b'),('a'),('c'),('a')) v(x);
SELECT array_agg(DISTINCT x) FROM (VALUES (3),(1),(NULL),(2),(1)) v(x);
SELECT string_agg(x, ',' ORDER BY x DESC) FROM (VALUES ('b'),('a'),('c')) v(x);
SELECT array_agg(x ORDER BY y, x DESC) FROM (VALUES (1,2),(2,1),(3,1)) v(x,y);
SELECT string_agg(DISTINCT x, ',' ORDER BY x DESC) FROM (VALUES ('b'),('a'),('c'),('a')) v(x);
SELECT y, string_agg(x, '-' ORDER BY x) FILTER (WHERE x <> 'c') FROM (VALUES ('b',1),('a',1),('c',2)) v(x,y) GROUP BY y ORDER BY y;
SELECT CASE WHEN false THEN 'a'::char(2) ELSE 'abcdef'::char(4) END;
SELECT CASE WHEN false THEN 'a'::varchar(2) ELSE 'abcdef' END;

-- snippet: parameters-of-sql-functions
CREATE FUNCTION f(a int, OUT s int, b int) LANGUAGE sql AS 'SELECT $1*$2';
SELECT f(2, 3);

-- snippet: no-columns-selected
CREATE TABLE z ();
INSERT INTO z DEFAULT VALUES;
SELECT * FROM z;
SELECT count(*) FROM z;
SELECT z.* FROM z;
TABLE z;
SELECT FROM z;
SELECT 1 FROM z;

-- snippet: expressions-over-a-table
CREATE TABLE c (a int, b text);
INSERT INTO c VALUES (1, 'x'), (2, NULL), (3, 'z');
-- error: 42P01
WITH t AS (SELECT 100 a) SELECT * FROM public.t;
WITH c AS (SELECT 100 a) SELECT * FROM c;
-- error: 42712
WITH t AS (SELECT 1 a), t AS (SELECT 2) SELECT 1;
-- error: 42702
WITH t AS (SELECT 1 a, 2 a) SELECT a FROM t;
WITH t AS (SELECT 1 a, 2 a) SELECT * FROM t;
SELECT (a, b) IN (SELECT 1, 'x') FROM c ORDER BY a;
SELECT a FROM c WHERE (a, b) IN ((1, 'x'), (3, 'y')) ORDER BY a;
SELECT ROW(a, b) = ROW(1, 'x'), ROW(1, 2) < ROW(1, 3), (1, NULL) < (2, 1), (1, NULL) = (1, 2) FROM c ORDER BY a;
SELECT a = ANY (ARRAY[1, 3]), a <> ALL ('{1,2}'), a = ANY (NULL::int[]), a = ANY (ARRAY[NULL, 1]) FROM c ORDER BY a;
SELECT b = ANY (string_to_array('x,z', ',')) FROM c ORDER BY a;
SELECT a FROM c WHERE a = ANY (SELECT 1 UNION SELECT 3) ORDER BY a;
SELECT a > ALL (SELECT 2), a > ANY (SELECT 2), a <> ALL (SELECT 2) FROM c ORDER BY a;
SELECT ARRAY(SELECT a FROM c ORDER BY a DESC);
SELECT ARRAY(SELECT a FROM c WHERE false), ARRAY(SELECT b FROM c ORDER BY a);
SELECT array_to_string(ARRAY[1, NULL, 3], ','), array_to_string(ARRAY[1, NULL, 3], ',', '*'), array_to_string(ARRAY['a', NULL], '-', 'n');
SELECT unnest(ARRAY[1, 2, 3]);
SELECT a, unnest(ARRAY[a, a * 10]) u FROM c ORDER BY a, u;
SELECT a, generate_series(1, a), unnest(ARRAY['p', 'q']) FROM c ORDER BY 1, 2, 3;
SELECT count(*), generate_series(1, 2) FROM c;
SELECT b, generate_series(1, count(*)) FROM c GROUP BY b ORDER BY 1, 2;
SELECT DISTINCT generate_series(1, a) FROM c ORDER BY 1;
-- error: 0A000
SELECT a FROM c WHERE generate_series(1, 2) = a;
SELECT generate_series(1, generate_series(1, 3));
-- error: 0A000
SELECT CASE WHEN true THEN generate_series(1, 2) END;
-- error: 0A000
SELECT sum(generate_series(1, 2));
SELECT * FROM (SELECT a, unnest(ARRAY[1, 2]) u FROM c) s WHERE u = 2 ORDER BY a;
SELECT (SELECT unnest(ARRAY[5]));
SELECT 3 IN (SELECT unnest(ARRAY[1, 3]));
SELECT 'foobar' ~ 'o+b', 'foobar' ~* 'O+B', 'foobar' !~ 'x', 'foobar' !~* 'FOO';
SELECT b OPERATOR(pg_catalog.~) '^(x|z)$' COLLATE pg_catalog.default FROM c ORDER BY a;
SELECT 1 OPERATOR(pg_catalog.+) 2, 2 OPERATOR(pg_catalog.=) 2, 'a' OPERATOR(pg_catalog.||) 'b', 3 OPERATOR(pg_catalog.*) 2 + 1;
SELECT a OPERATOR(pg_catalog.=) ANY (ARRAY[1]) FROM c ORDER BY a;
SELECT b ~ NULL, NULL ~ b FROM c;
SELECT b COLLATE "C" < 'y' COLLATE "C" FROM c ORDER BY a;
SELECT b FROM c ORDER BY b COLLATE "C" DESC;
SELECT 'abc' SIMILAR TO 'a%', 'abc' SIMILAR TO '(b|c)%', 'abc' NOT SIMILAR TO '_b_', 'a.c' SIMILAR TO 'a.c', 'abc' SIMILAR TO 'a.c';
SELECT 'abc' LIKE ANY (ARRAY['x%', 'a%']), 'abc' ~ ANY (ARRAY['x', 'b']), 'abc' LIKE ALL (ARRAY['%c', 'a%']), 'abc' NOT LIKE ALL (ARRAY['%c', 'a%']);
WITH w AS (INSERT INTO c VALUES (4, 'w') RETURNING a) SELECT a FROM w;
SELECT count(*) FROM c;
WITH w AS (INSERT INTO c VALUES (5, 'v')) SELECT 1;
SELECT count(*) FROM c;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r;
SELECT a, row_number() OVER (ORDER BY a DESC) FROM c ORDER BY a;
SELECT DISTINCT ON (b) a, b FROM c ORDER BY b, a DESC;
VALUES (1, 'a'), (2, 'b') ORDER BY 1 DESC LIMIT 1;
SELECT * FROM (VALUES (1), (2)) v ORDER BY 1 DESC;
SELECT x + 1 FROM (SELECT 1 x UNION SELECT 2) s ORDER BY x + 1 DESC;
SELECT sum(a) FILTER (WHERE a > 1), count(*) FILTER (WHERE b IS NULL) FROM c;
