-- GROUPING SETS, ROLLUP, CUBE and GROUPING.

-- compare: messages

-- snippet: grouping-sets
CREATE TABLE s (region TEXT, item TEXT, n INTEGER, price NUMERIC(8, 2));
INSERT INTO s VALUES ('n', 'a', 1, 10), ('n', 'b', 2, 20), ('s', 'a', 3, 30), ('s', NULL, 4, 40), (NULL, 'a', 5, 50);
SELECT region, item, sum(n), count(*) FROM s GROUP BY ROLLUP (region, item) ORDER BY region, item, 3;
SELECT region, item, sum(n), grouping(region, item) FROM s GROUP BY CUBE (region, item) ORDER BY 4, 1, 2;
SELECT region, item, sum(n) FROM s GROUP BY GROUPING SETS ((region), (item), ()) ORDER BY 1, 2, 3;
SELECT region, sum(n), grouping(region) FROM s GROUP BY GROUPING SETS (region, ()) HAVING sum(n) > 4 ORDER BY grouping(region), region;
SELECT region, item, count(*) FROM s GROUP BY region, ROLLUP (item) ORDER BY 1, 2, 3;
SELECT region, item, n, count(*) FROM s GROUP BY ROLLUP ((region, item), n) ORDER BY 1, 2, 3, 4;
SELECT region, item, count(*) FROM s GROUP BY GROUPING SETS (ROLLUP (region, item), (item)) ORDER BY 1, 2, 3;
SELECT count(*), grouping(region) FROM s GROUP BY ROLLUP (region) ORDER BY 1, 2;
SELECT upper(region) AS r, count(*) FROM s GROUP BY ROLLUP (upper(region)) ORDER BY r, 2;
SELECT n % 2 AS odd, sum(price), max(item), min(price) FROM s GROUP BY CUBE (n % 2) ORDER BY 1, 2;
SELECT coalesce(region, CASE WHEN grouping(region) = 1 THEN 'all' ELSE 'none' END) AS region, sum(n) FROM s GROUP BY ROLLUP (region) ORDER BY 1;
SELECT region, string_agg(item, ',' ORDER BY item), array_agg(n ORDER BY n) FROM s GROUP BY ROLLUP (region) ORDER BY 1, 2;
SELECT region, count(DISTINCT item), sum(n) FILTER (WHERE n > 2) FROM s GROUP BY ROLLUP (region) ORDER BY 1, 2;
SELECT region, sum(n), rank() OVER (ORDER BY sum(n) DESC) FROM s GROUP BY ROLLUP (region) ORDER BY 2, 1;
SELECT DISTINCT grouping(region) FROM s GROUP BY CUBE (region, item) ORDER BY 1;
SELECT region, item, sum(n) FROM s GROUP BY ROLLUP (region, item) ORDER BY sum(n) DESC, region, item LIMIT 2 OFFSET 1;
SELECT x.region, x.total FROM (SELECT region, sum(n) AS total FROM s GROUP BY ROLLUP (region)) x WHERE x.region IS NULL ORDER BY 2;
SELECT s.region, count(*) FROM s JOIN s t ON t.item = s.item GROUP BY ROLLUP (s.region) ORDER BY 1, 2;
SELECT region, (SELECT count(*) FROM s i WHERE i.n > sum(s.n)) FROM s GROUP BY ROLLUP (region) ORDER BY 1, 2;
SELECT region, count(*) FROM s WHERE n IN (SELECT max(n) FROM s) GROUP BY CUBE (region) ORDER BY 1, 2;
SELECT 1 AS one FROM s GROUP BY GROUPING SETS ((), ());
SELECT region, sum(n) FROM s GROUP BY GROUPING SETS ((region), (region)) ORDER BY 1, 2;
SELECT grouping(region), grouping(item, region) FROM s GROUP BY region, item;
SELECT a, b, count(*) FROM (VALUES (1, 2), (1, 3)) v (a, b) GROUP BY CUBE (a, b) ORDER BY 1, 2, 3;
WITH c AS (SELECT region, n FROM s) SELECT region, sum(n) FROM c GROUP BY ROLLUP (region) ORDER BY 1, 2;
INSERT INTO s (region, n) SELECT region, sum(n) FROM s GROUP BY ROLLUP (region);
SELECT count(*) FROM s;
DROP TABLE s;

-- snippet: grouping-sets-of-no-rows
CREATE TABLE s (a INTEGER, b INTEGER);
SELECT a, count(*), sum(b) FROM s GROUP BY ROLLUP (a);
SELECT a, count(*) FROM s GROUP BY GROUPING SETS ((a));
SELECT count(*) FROM s GROUP BY ();
SELECT count(*), grouping(a) FROM s GROUP BY GROUPING SETS ((a), (), ()) ORDER BY 1;
DROP TABLE s;

-- snippet: grouping-sets-refused
CREATE TABLE s (a INTEGER PRIMARY KEY, b INTEGER);
-- error: 42803
SELECT b FROM s GROUP BY ROLLUP (a);
-- error: 42803
SELECT grouping(b) FROM s GROUP BY a;
-- error: 42803
SELECT grouping(a) FROM s;
-- error: 42803
SELECT a FROM s WHERE grouping(a) = 1 GROUP BY a;
-- error: 42803
SELECT a FROM s GROUP BY ROLLUP (count(*));
-- error: 42703
SELECT a FROM s GROUP BY CUBE (nothing);
-- error: 54011
SELECT 1 FROM s GROUP BY CUBE (a, a, a, a, a, a, a, a, a, a, a, a, a);
DROP TABLE s;

-- snippet: grouping-sets-of-many-columns
CREATE TABLE s (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER, g INTEGER);
-- refused: more than 64 grouping sets
SELECT 1 FROM s GROUP BY CUBE (a, b, c, d, e, f, g);
