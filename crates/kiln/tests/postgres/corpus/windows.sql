-- Window functions and DISTINCT ON.

-- snippet: windows
CREATE TABLE s (id integer PRIMARY KEY, dept text, pay integer, d double precision);
INSERT INTO s VALUES (1, 'a', 10, 1.5), (2, 'a', 30, 2.5), (3, 'a', 30, 0), (4, 'b', 20, 4), (5, 'b', NULL, 5), (6, NULL, 50, 6), (7, 'b', 20, 7), (8, 'a', 5, 8);
SELECT id, row_number() OVER (ORDER BY pay DESC, id) FROM s ORDER BY id;
SELECT id, row_number() OVER (PARTITION BY dept ORDER BY pay, id), count(*) OVER (PARTITION BY dept), count(*) OVER () FROM s ORDER BY id;
SELECT id, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w FROM s WINDOW w AS (PARTITION BY dept ORDER BY pay) ORDER BY id;
SELECT id, ntile(3) OVER (ORDER BY id), ntile(10) OVER (ORDER BY id), ntile(NULL) OVER (ORDER BY id) FROM s ORDER BY id;
SELECT id, lag(pay) OVER w, lead(pay) OVER w, lag(pay, 2, -1) OVER w, lead(id, 0) OVER w, lag(pay, NULL) OVER w, lag(id, -1) OVER w FROM s WINDOW w AS (PARTITION BY dept ORDER BY id) ORDER BY id;
SELECT id, first_value(pay) OVER w, last_value(pay) OVER w, nth_value(pay, 2) OVER w FROM s WINDOW w AS (PARTITION BY dept ORDER BY pay) ORDER BY id;
SELECT id, sum(pay) OVER (ORDER BY id), avg(pay) OVER (PARTITION BY dept ORDER BY id), min(pay) OVER (ORDER BY id), max(pay) OVER (PARTITION BY dept) FROM s ORDER BY id;
SELECT id, sum(pay) OVER (ORDER BY pay), count(pay) OVER (ORDER BY pay), sum(d) OVER (ORDER BY id) FROM s ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(id) OVER (ORDER BY id ROWS 2 PRECEDING), sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), sum(id) OVER (ORDER BY id ROWS BETWEEN 3 FOLLOWING AND 4 FOLLOWING), sum(id) OVER (ORDER BY id ROWS BETWEEN 4 PRECEDING AND 3 PRECEDING) FROM s ORDER BY id;
SELECT id, count(*) OVER (ORDER BY pay RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), count(*) OVER (ORDER BY pay RANGE CURRENT ROW), count(*) OVER (ORDER BY pay ROWS CURRENT ROW), count(*) OVER (ORDER BY pay GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM s ORDER BY id;
SELECT id, array_agg(id) OVER (ORDER BY id), string_agg(dept, '') OVER (ORDER BY id ROWS 1 PRECEDING), bool_and(pay > 10) OVER (ORDER BY id) FROM s ORDER BY id;
SELECT id, sum(pay) FILTER (WHERE pay > 10) OVER (ORDER BY id), count(*) FILTER (WHERE dept = 'a') OVER () FROM s ORDER BY id;
SELECT dept, sum(pay), rank() OVER (ORDER BY sum(pay) DESC NULLS LAST), sum(sum(pay)) OVER (ORDER BY dept) FROM s GROUP BY dept ORDER BY dept;
SELECT dept, count(*) FROM s GROUP BY dept HAVING count(*) > 1 ORDER BY row_number() OVER (ORDER BY count(*) DESC);
SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY dept ORDER BY pay DESC NULLS LAST, id) AS n FROM s) q WHERE n = 1 ORDER BY id;
SELECT DISTINCT dept, count(*) OVER (PARTITION BY dept) FROM s ORDER BY dept;
SELECT id, row_number() OVER (ORDER BY id) + 10 AS x FROM s ORDER BY x DESC LIMIT 2 OFFSET 1;
SELECT id, (SELECT count(*) FROM s t WHERE t.pay < s.pay) AS k, sum(id) OVER (ORDER BY id) FROM s ORDER BY 1;
SELECT id, CASE WHEN row_number() OVER (ORDER BY id) % 2 = 0 THEN 'even' ELSE 'odd' END FROM s ORDER BY id;
SELECT id, sum(pay) OVER (w ROWS UNBOUNDED PRECEDING), sum(pay) OVER (PARTITION BY dept ORDER BY id DESC) FROM s WINDOW w AS (ORDER BY id) ORDER BY id;
SELECT sum(x) OVER (ORDER BY y) FROM (VALUES (1, 'a'), (2, 'b'), (3, 'a')) v(x, y) ORDER BY 1;
SELECT a.id, count(*) OVER (PARTITION BY b.dept) FROM s a JOIN s b ON a.id = b.id + 1 ORDER BY 1;
SELECT id, lag(id) OVER (ORDER BY id) IS NULL, coalesce(lag(pay) OVER (ORDER BY id), 0) FROM s ORDER BY id LIMIT 3;
-- error: 42P10
SELECT x, sum(x) OVER (ORDER BY x ROWS BETWEEN a PRECEDING AND CURRENT ROW) FROM (VALUES (1, 1)) v(x, a);
-- error: 22013
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM s;
-- error: 22014
SELECT ntile(0) OVER () FROM s;
-- error: 22016
SELECT nth_value(id, 0) OVER () FROM s;
-- error: 42P20
SELECT id FROM s WHERE row_number() OVER () = 1;
-- error: 42809
SELECT lower(dept) OVER () FROM s;
-- error: 42883
SELECT nosuch() OVER () FROM s;
-- error: 42704
SELECT sum(id) OVER w FROM s;
-- error: 42P20
SELECT sum(id) OVER (w PARTITION BY dept) FROM s WINDOW w AS (ORDER BY id);
-- error: 42P20
SELECT sum(id) OVER (w ORDER BY dept) FROM s WINDOW w AS (ORDER BY id);
-- error: 42P20
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM s;
-- error: 42P20
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM s;
-- error: 42P20
SELECT sum(sum(id) OVER ()) OVER () FROM s;
-- error: 42P20
SELECT id, pay FROM s GROUP BY dept, row_number() OVER ();
SELECT DISTINCT ON (dept) dept, id, pay FROM s ORDER BY dept, pay DESC NULLS LAST, id;
SELECT DISTINCT ON (dept) dept FROM s;
SELECT DISTINCT ON (dept, pay) dept, pay, id FROM s ORDER BY dept, pay, id DESC;
SELECT DISTINCT ON (pay > 10) pay > 10 AS big, id FROM s ORDER BY pay > 10, id LIMIT 2;
SELECT DISTINCT ON (1) dept, id FROM s ORDER BY dept DESC, id;
SELECT DISTINCT ON (dept) dept, count(*) FROM s GROUP BY dept, pay ORDER BY dept, count(*) DESC, pay;
-- error: 42P10
SELECT DISTINCT ON (dept) dept, id FROM s ORDER BY id;
SELECT count(*) FROM (SELECT DISTINCT ON (dept) * FROM s ORDER BY dept, id) q;
SELECT id, generate_series(1, 2), row_number() OVER (ORDER BY id) FROM s WHERE id < 3 ORDER BY 1, 2;
VALUES (1, 'a'), (2, 'b') ORDER BY 1 DESC LIMIT 1;
SELECT * FROM (VALUES (1), (2)) v(x) JOIN (VALUES (2, 'two')) w(x, y) USING (x);
