-- EXISTS, IN and ANY over rows that no index finds.

-- snippet: semi-joins
CREATE TABLE x (id integer PRIMARY KEY, c integer, d text);
CREATE TABLE y (id integer PRIMARY KEY, b integer, e text);
INSERT INTO x SELECT g, g % 7, 'd' || g % 3 FROM generate_series(1, 50) g;
INSERT INTO y SELECT g, g % 5, 'd' || g % 2 FROM generate_series(1, 40) g;
INSERT INTO x VALUES (100, NULL, NULL), (101, 3, NULL), (102, NULL, 'd1');
INSERT INTO y VALUES (100, NULL, NULL), (101, 99, NULL), (102, NULL, 'd1');
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.b = x.c);
SELECT count(*), sum(id) FROM x WHERE NOT EXISTS (SELECT 1 FROM y WHERE y.b = x.c);
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.b = x.c AND y.e = x.d);
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE x.c = y.b AND y.id > 20 AND y.e = 'd1');
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.b + 1 = x.c * 2);
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.b = x.c AND y.id < x.id);
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.id = x.id AND y.b = x.c);
SELECT count(*), sum(id) FROM x WHERE EXISTS (SELECT 1 FROM y JOIN x x2 ON x2.id = y.id WHERE y.b = x.c AND x2.d = x.d);
SELECT id, EXISTS (SELECT 1 FROM y WHERE y.b = x.c), NOT EXISTS (SELECT 1 FROM y WHERE y.e = x.d) FROM x WHERE id > 45 ORDER BY id;
SELECT count(*) FROM x WHERE EXISTS (SELECT DISTINCT e FROM y WHERE y.b = x.c ORDER BY 1);
SELECT count(*) FROM x WHERE EXISTS (SELECT count(*) FROM y WHERE y.b = x.c);
SELECT count(*) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.b = x.c LIMIT 0);
SELECT count(*) FROM x WHERE (c, d) IN (SELECT b, e FROM y);
SELECT count(*) FROM x WHERE (c, d) NOT IN (SELECT b, e FROM y);
SELECT count(*) FROM x WHERE (c, d) NOT IN (SELECT b, e FROM y WHERE b IS NOT NULL AND e IS NOT NULL);
SELECT id, (c, d) IN (SELECT b, e FROM y) FROM x WHERE id > 95 ORDER BY id;
SELECT id, (c, d) IN (SELECT b, e FROM y WHERE false) FROM x WHERE id > 95 ORDER BY id;
SELECT id FROM x WHERE id = ANY (ARRAY[3, 5, 3, NULL, 999]) ORDER BY id;
SELECT id FROM x WHERE id = ANY ('{}'::int[]);
SELECT id FROM x WHERE id = ANY (NULL::int[]);
SELECT id FROM x WHERE id = ANY (ARRAY[7]::bigint[]) AND c = 0;
SELECT x.id, y.id FROM x, y WHERE y.id = ANY (ARRAY[x.id, x.id + 1]) AND x.id < 4 ORDER BY 1, 2;
SELECT id FROM x WHERE NOT id = ANY (ARRAY[1, 2]) AND id < 5 ORDER BY id;
SELECT id FROM x WHERE id <> ALL (ARRAY[1, 2]) AND id < 5 ORDER BY id;
UPDATE x SET d = 'upd' WHERE id = ANY (ARRAY[1, 2]);
DELETE FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.b = x.c AND y.e = 'd0');
SELECT count(*), sum(id) FROM x;
SELECT a.id, b.id FROM x a LEFT JOIN (y b JOIN y c ON c.b = b.id) ON b.b = a.c AND c.id > 38 WHERE a.id > 40 ORDER BY 1, 2;
