-- Clauses of FROM and GROUP BY: names of what USING merges, ROWS FROM, GROUP BY DISTINCT.

-- snippet: using-with-a-name
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, v TEXT);
CREATE TABLE b (id INTEGER, k INTEGER, w TEXT);
INSERT INTO a VALUES (1, 1, 'a1'), (2, 2, 'a2'), (3, 3, 'a3');
INSERT INTO b VALUES (1, 1, 'b1'), (2, 9, 'b2'), (4, 4, 'b4');
SELECT u.id, a.v, b.w FROM a JOIN b USING (id) AS u ORDER BY u.id;
SELECT u.*, a.id AS ai, b.id AS bi FROM a LEFT JOIN b USING (id) AS u ORDER BY u.id;
SELECT u.*, a.id AS ai, b.id AS bi FROM a FULL JOIN b USING (id, k) AS u ORDER BY u.id, u.k;
SELECT * FROM a RIGHT JOIN b USING (id, k) AS u ORDER BY id;
SELECT u FROM a JOIN b USING (id, k) AS u;
SELECT to_json(u) FROM a JOIN b USING (id, k) AS u;
SELECT u.id, c.id FROM a JOIN b USING (id) AS u LEFT JOIN a c ON c.id = u.id + 1 ORDER BY 1;
SELECT c.id, u.id FROM a c LEFT JOIN (a JOIN b USING (id) AS u) ON u.id = c.id ORDER BY 1;
SELECT x.id, y.id FROM a JOIN b USING (id) AS x JOIN a c USING (id) AS y ORDER BY 1;
-- error: 42703
SELECT u.v FROM a JOIN b USING (id) AS u;
-- error: 42712
SELECT 1 FROM a JOIN b USING (id) AS a;
-- error: 42712
SELECT 1 FROM a JOIN b USING (id) AS c JOIN a c USING (id);
CREATE VIEW v AS SELECT u.id, v, w FROM a JOIN b USING (id) AS u;
SELECT * FROM v ORDER BY id;
DELETE FROM a USING b JOIN a c USING (id) AS u WHERE a.id = u.id;
SELECT * FROM a ORDER BY id;

-- snippet: rows-from
SELECT * FROM ROWS FROM (generate_series(1, 3), generate_series(10, 11));
SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['a', 'b', 'c']), upper('x')) WITH ORDINALITY;
SELECT t.a, t.b, t.n FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['a', 'b', 'c'])) WITH ORDINALITY AS t (a, b, n) WHERE n > 1;
SELECT * FROM ROWS FROM (unnest(ARRAY[1, 2], ARRAY['x'])) AS t (a, b);
SELECT * FROM ROWS FROM (generate_series(1, 2)) AS s;
SELECT g, s.* FROM generate_series(1, 2) AS g, LATERAL ROWS FROM (generate_series(1, g), generate_series(g, 3)) AS s (x, y) ORDER BY g, y;
SELECT g, x, y FROM generate_series(1, 2) AS g LEFT JOIN ROWS FROM (generate_series(2, 3), generate_series(5, 5)) AS s (x, y) ON x = g ORDER BY g;
CREATE FUNCTION pairs(n INTEGER) RETURNS TABLE (a INTEGER, b INTEGER) LANGUAGE sql AS 'SELECT i, i * i FROM generate_series(1, n) i';
SELECT * FROM ROWS FROM (pairs(2), pairs(n => 3), json_each('{"x": 1}'));
SELECT generate_series, pairs.a FROM ROWS FROM (generate_series(1, 2), pairs(1)) AS pairs;
-- error: 42P10
SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 2)) AS t (a, b, c);
-- refused: a list of columns in ROWS FROM
SELECT * FROM ROWS FROM (json_to_record('{"a": 1}') AS (a INTEGER), generate_series(1, 2));

-- snippet: group-by-distinct
CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER);
INSERT INTO t VALUES (1, 2, 3), (1, 2, 4), (2, NULL, 3);
SELECT a, b, c, count(*) FROM t GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a, c) ORDER BY 1, 2, 3, 4;
SELECT a, b, c, count(*) FROM t GROUP BY ALL ROLLUP (a, b), ROLLUP (a, c) ORDER BY 1, 2, 3, 4;
SELECT a, count(*) FROM t GROUP BY DISTINCT a ORDER BY 1;
SELECT a, count(*) FROM t GROUP BY ALL a ORDER BY 1;
SELECT a, b, count(*), grouping(a, b) FROM t GROUP BY DISTINCT GROUPING SETS ((a, b), (b, a), (a), a, ()) ORDER BY 1, 2, 3;
