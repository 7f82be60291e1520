-- LATERAL, joins of joins, FULL JOIN, and functions in FROM.

-- snippet: joins-of-joins
CREATE TABLE a (id integer PRIMARY KEY, x integer, n text);
CREATE TABLE b (id integer PRIMARY KEY, a_id integer, y integer);
CREATE TABLE c (id bigint PRIMARY KEY, b_id integer, z text);
INSERT INTO a VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, 'three'), (4, 40, NULL);
INSERT INTO b VALUES (1, 1, 100), (2, 1, 200), (3, 2, NULL), (4, NULL, 400), (5, 9, 500);
INSERT INTO c VALUES (1, 1, 'c1'), (2, 3, 'c2'), (3, 9, 'c3'), (4, NULL, 'c4');
SELECT a.id, l.y FROM a, LATERAL (SELECT y FROM b WHERE b.a_id = a.id) l ORDER BY 1, 2;
SELECT a.id, l.y FROM a LEFT JOIN LATERAL (SELECT y FROM b WHERE b.a_id = a.id ORDER BY y DESC LIMIT 1) l ON true ORDER BY 1, 2;
SELECT a.id, l.s, l.n FROM a CROSS JOIN LATERAL (SELECT sum(y) s, count(*) n FROM b WHERE b.a_id = a.id) l ORDER BY 1;
SELECT a.id, g FROM a LEFT JOIN generate_series(1, a.id) g ON g > 2 ORDER BY 1, 2;
SELECT a.id, g FROM a LEFT JOIN LATERAL generate_series(1, a.x / 10) g ON true ORDER BY 1, 2;
SELECT a.id, l.v, m.w FROM a, LATERAL (SELECT a.x + 1 AS v) l, LATERAL (SELECT l.v * 2 AS w, a.id) m ORDER BY 1;
SELECT a.id, (SELECT sum(q.v) FROM b, LATERAL (SELECT b.y + a.x AS v) q WHERE b.a_id = a.id) FROM a ORDER BY 1;
SELECT * FROM a JOIN LATERAL (SELECT max(y) m FROM b WHERE b.a_id = a.id) l ON l.m > 100;
SELECT a.id, u.id, u.k FROM a, LATERAL (SELECT b.id, 'b' AS k FROM b WHERE b.a_id = a.id UNION ALL SELECT c.id::int, 'c' FROM c WHERE c.b_id = a.id) u ORDER BY 1, 3, 2;
SELECT a.id, v.column1 FROM a, LATERAL (VALUES (a.id), (a.x)) v ORDER BY 1, 2;
SELECT x.id, l.* FROM (SELECT id FROM a WHERE id < 3) x, LATERAL (SELECT count(*) FROM b WHERE a_id = x.id) l ORDER BY 1;
-- error: 42P10
SELECT * FROM a RIGHT JOIN LATERAL generate_series(1, a.id) g ON true;
-- error: 42P10
SELECT * FROM a FULL JOIN LATERAL (SELECT a.id) g ON true;
-- error: 42P01
SELECT * FROM a, (SELECT a.id) g;
-- error: 42P01
SELECT * FROM a JOIN (SELECT id FROM b WHERE b.a_id = a.id) g ON true;
SELECT a.id, b.id, c.id FROM a LEFT JOIN (b JOIN c ON c.b_id = b.id) ON b.a_id = a.id ORDER BY 1, 2, 3;
SELECT a.*, b.*, c.* FROM a LEFT JOIN (b LEFT JOIN c ON c.b_id = b.id) ON b.a_id = a.id AND c.z IS NULL ORDER BY 1, 5;
SELECT * FROM (a JOIN b ON a.id = b.a_id) RIGHT JOIN c ON c.b_id = b.id ORDER BY c.id;
SELECT * FROM a LEFT JOIN b ON b.a_id = a.id RIGHT JOIN c ON c.b_id = b.id ORDER BY c.id;
SELECT a.id, b.id FROM a FULL JOIN b ON a.id = b.a_id ORDER BY 1, 2;
SELECT a.id, b.id FROM a FULL OUTER JOIN b ON a.id = b.a_id AND b.y > 100 ORDER BY 1, 2;
SELECT * FROM a FULL JOIN c USING (id) ORDER BY id;
SELECT * FROM a NATURAL FULL JOIN b ORDER BY id;
-- error: 42702
SELECT id, a.id, c.id FROM a FULL JOIN c USING (id) WHERE id > 1 ORDER BY id;
SELECT a.id, b.id, c.id FROM a FULL JOIN b ON a.id = b.a_id FULL JOIN c ON c.b_id = b.id ORDER BY 1, 2, 3;
SELECT count(*) FROM a FULL JOIN b ON true;
SELECT count(*) FROM a FULL JOIN b ON false;
SELECT a.id, b.id FROM (SELECT * FROM a WHERE false) a FULL JOIN b ON a.id = b.id ORDER BY 2;
SELECT a.id, b.id FROM a FULL JOIN (SELECT * FROM b WHERE false) b ON a.id = b.id ORDER BY 1;
SELECT * FROM (a JOIN b USING (id)) AS j ORDER BY id;
SELECT j.id, j.y FROM (a JOIN b USING (id)) j WHERE j.x > 10 ORDER BY id;
-- error: 42P01
SELECT a.id FROM (a JOIN b USING (id)) AS j;
SELECT * FROM a JOIN b USING (id) JOIN c USING (id) ORDER BY id;
SELECT * FROM a JOIN (b JOIN c USING (id)) ON a.id = b.a_id ORDER BY a.id, b.id;
SELECT id FROM a JOIN c USING (id) ORDER BY id;
SELECT * FROM a t1 JOIN a t2 USING (n, id) ORDER BY 1;
-- error: 42703
SELECT * FROM a JOIN b USING (nosuch);
-- error: 42702
SELECT id FROM a JOIN b ON a.id = b.id;
-- error: 42702
SELECT * FROM a JOIN b ON a.id = b.id JOIN c USING (id);
-- error: 42601
SELECT * FROM a JOIN b;
-- error: 42601
SELECT * FROM a LEFT JOIN b;
-- error: 42712
SELECT a.id FROM a, a;
-- error: 42712
SELECT * FROM a JOIN a ON true;
SELECT a.id, b.y FROM a LEFT JOIN b ON b.a_id = a.id WHERE b.y IS NULL ORDER BY 1;
SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON b.a_id = a.id JOIN c ON c.b_id = b.id ORDER BY 1,2,3;
SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON b.a_id = a.id LEFT JOIN c ON c.b_id = b.id AND a.x = 10 ORDER BY 1,2,3;
SELECT count(*) FROM a x LEFT JOIN (a y JOIN (a z LEFT JOIN a w ON z.id = w.x) ON y.id = z.id) ON x.id = y.id;
SELECT (SELECT count(*) FROM (b JOIN c ON c.b_id = b.id) RIGHT JOIN a a2 ON b.a_id = a2.id WHERE a2.id <= a.id) FROM a ORDER BY a.id;
SELECT a.id, s.v FROM a LEFT JOIN LATERAL (SELECT b.id AS v FROM b LEFT JOIN c ON c.b_id = b.id WHERE b.a_id = a.id AND c.z IS NULL) s ON s.v > 1 ORDER BY 1;
WITH q AS (SELECT * FROM a) SELECT q.id, l.c FROM q, LATERAL (SELECT count(*) c FROM q q2 WHERE q2.id < q.id) l ORDER BY 1;

-- snippet: functions-in-from
SELECT i, u FROM (VALUES ('{1,2,3}'::int[], '{x,y}'::text[], 1), ('{}', '{p}', 2), (NULL, '{q,NULL,r}', 3)) t(a, b, i), unnest(a) u ORDER BY 1, 2;
SELECT i, u, w FROM (VALUES ('{1,2,3}'::int[], '{x,y}'::text[], 1), ('{}', '{p}', 2), (NULL, '{q,NULL,r}', 3)) t(a, b, i), unnest(a, b) AS z(u, w) ORDER BY 1, 2, 3;
SELECT i, z.* FROM (VALUES ('{1,2,3}'::int[], '{x,y}'::text[], 1), ('{}', '{p}', 2), (NULL, '{q,NULL,r}', 3)) t(a, b, i), unnest(b) WITH ORDINALITY AS z(e, n) ORDER BY 1, n;
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) WITH ORDINALITY;
SELECT * FROM generate_series(5, 1, -2) WITH ORDINALITY AS g(v, n);
SELECT * FROM unnest(ARRAY[1,2], ARRAY['a']) u;
SELECT i, s FROM (VALUES ('{1,2,3}'::int[], '{x,y}'::text[], 1), ('{}', '{p}', 2), (NULL, '{q,NULL,r}', 3)) t(a, b, i), generate_subscripts(b, 1) s ORDER BY 1, 2;
SELECT i, s FROM (VALUES ('{1,2,3}'::int[], '{x,y}'::text[], 1), ('{}', '{p}', 2), (NULL, '{q,NULL,r}', 3)) t(a, b, i), generate_subscripts(b, 1, true) s ORDER BY 1, 2 DESC;
SELECT * FROM generate_subscripts('{1,2}'::int[], 2);
SELECT * FROM generate_series(1.0, 2.5, 0.5) g;
SELECT * FROM generate_series(3, 1) g;
-- error: 22023
SELECT * FROM generate_series(1, 3, 0) g;
SELECT * FROM generate_series(1, 10, (SELECT 4)) g;
SELECT * FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '12 hours') g;
SELECT * FROM generate_series(date '2024-01-31', date '2024-04-30', interval '1 month') g;
SELECT * FROM generate_series(2147483647, 2147483648) g;
SELECT * FROM generate_series(1, NULL) g;
-- error: 42725
SELECT * FROM generate_series('1', '2');
SELECT * FROM generate_series(1, '3');
SELECT * FROM lower('ABC');
SELECT * FROM lower('ABC') x;
SELECT x.y FROM lower('ABC') x(y), generate_series(1, 2);
SELECT * FROM abs(-3) WITH ORDINALITY;
-- error: 42883
SELECT * FROM nosuch(1);
-- error: 42803
SELECT * FROM sum(1);
-- error: 42601
SELECT * FROM (VALUES ('{1,2,3}'::int[], '{x,y}'::text[], 1), ('{}', '{p}', 2), (NULL, '{q,NULL,r}', 3)) t(a, b, i) WITH ORDINALITY;
-- error: 42725
SELECT * FROM unnest('{1}');
