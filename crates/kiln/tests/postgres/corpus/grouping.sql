-- Aggregates, their result types, GROUP BY, HAVING, DISTINCT inside aggregates.

-- snippet: aggregate-over-integers
CREATE TABLE t (v INTEGER);
INSERT INTO t VALUES (1), (2), (4), (NULL);
SELECT count(*), count(v), sum(v), min(v), max(v), avg(v) FROM t;

-- snippet: aggregate-integer-sum-is-bigint
CREATE TABLE t (s SMALLINT, i INTEGER, b BIGINT);
INSERT INTO t VALUES (32767, 2147483647, 9223372036854775807), (32767, 2147483647, 9223372036854775807);
SELECT sum(s), sum(i), sum(b) FROM t;

-- snippet: aggregate-avg-scale
CREATE TABLE t (i INTEGER, n NUMERIC(6, 2), d DOUBLE PRECISION);
INSERT INTO t VALUES (1, 1.00, 1), (2, 2.50, 2), (2, 3.33, 2.5);
SELECT avg(i), avg(n), avg(d) FROM t;
SELECT sum(i), sum(n), sum(d) FROM t;

-- snippet: aggregate-over-nothing
CREATE TABLE t (g INTEGER, v INTEGER);
SELECT count(*), sum(v), avg(v), min(v), max(v) FROM t;
SELECT g, count(*) FROM t GROUP BY g;
SELECT count(*) FROM t HAVING count(*) > 0;

-- snippet: aggregate-min-max-of-types
CREATE TABLE t (s TEXT, d DATE, c CHAR(3), n NUMERIC(4, 1), u TIMESTAMP);
INSERT INTO t VALUES ('b', '2024-01-01', 'zz', 1.5, '2024-01-01 10:00'), ('a', '2023-01-01', 'aa', -1.5, '2024-01-01 09:00');
SELECT min(s), max(s), min(d), max(d), min(c), max(c), min(n), max(n), min(u), max(u) FROM t;

-- snippet: aggregate-distinct
CREATE TABLE t (v INTEGER, n NUMERIC(5, 2));
INSERT INTO t VALUES (1, 1.0), (1, 1.00), (2, 1.5), (NULL, NULL), (2, 2);
SELECT count(DISTINCT v), sum(DISTINCT v), avg(DISTINCT v), count(DISTINCT n), sum(DISTINCT n), min(DISTINCT v) FROM t;

-- snippet: aggregate-of-expression
CREATE TABLE t (price NUMERIC(5, 2), quantity INTEGER);
INSERT INTO t VALUES (1.50, 2), (0.99, 10), (100.00, 1);
SELECT sum(price * quantity), max(price - quantity), avg(quantity * 2), sum(quantity) + 1, count(*) * 10 FROM t;

-- snippet: aggregate-sum-overflow
CREATE TABLE t (v BIGINT);
INSERT INTO t VALUES (9223372036854775807), (1);
SELECT sum(v) FROM t;
-- error: 22003
SELECT sum(v)::bigint FROM t;

-- snippet: group-by-column
CREATE TABLE t (g TEXT, v INTEGER);
INSERT INTO t VALUES ('a', 1), ('b', 2), ('a', 3), ('c', NULL), ('b', 5);
SELECT g, count(*), count(v), sum(v), avg(v) FROM t GROUP BY g ORDER BY g;

-- snippet: group-by-expression
CREATE TABLE t (v INTEGER);
INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7);
SELECT v % 3, count(*), sum(v) FROM t GROUP BY v % 3 ORDER BY v % 3;
SELECT v / 2 AS half, max(v) FROM t GROUP BY v / 2 ORDER BY half;

-- snippet: group-by-several-columns
CREATE TABLE t (a INTEGER, b TEXT, v INTEGER);
INSERT INTO t VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (1, 'x', 4), (2, NULL, 5);
SELECT a, b, sum(v) FROM t GROUP BY a, b ORDER BY a, b;
SELECT b, a, count(*) FROM t GROUP BY b, a ORDER BY b NULLS FIRST, a;

-- snippet: group-by-position-and-alias
CREATE TABLE t (a INTEGER, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (1, 30);
SELECT a, sum(v) FROM t GROUP BY 1 ORDER BY 1;
SELECT a * 10 AS k, sum(v) FROM t GROUP BY k ORDER BY k;

-- snippet: having
CREATE TABLE t (g TEXT, v INTEGER);
INSERT INTO t VALUES ('a', 1), ('b', 2), ('a', 3), ('c', 10);
SELECT g, sum(v) FROM t GROUP BY g HAVING sum(v) > 2 ORDER BY g;
SELECT g FROM t GROUP BY g HAVING count(*) > 1 AND min(v) = 1 ORDER BY g;
SELECT g FROM t GROUP BY g HAVING g <> 'b' ORDER BY g;

-- snippet: having-without-group
CREATE TABLE t (v INTEGER);
INSERT INTO t VALUES (1), (2);
SELECT sum(v) FROM t HAVING sum(v) > 2;
SELECT sum(v) FROM t HAVING sum(v) > 3;

-- snippet: group-order-by-aggregate
CREATE TABLE t (g TEXT, v INTEGER);
INSERT INTO t VALUES ('a', 1), ('b', 5), ('c', 3), ('a', 1);
SELECT g, sum(v) FROM t GROUP BY g ORDER BY sum(v) DESC;
SELECT g FROM t GROUP BY g ORDER BY max(v), g LIMIT 2;
SELECT g, sum(v) AS total FROM t GROUP BY g ORDER BY total OFFSET 1;

-- snippet: group-with-where
CREATE TABLE t (g INTEGER, v INTEGER);
INSERT INTO t VALUES (1, 1), (1, 100), (2, 2), (3, 300);
SELECT g, count(*), sum(v) FROM t WHERE v < 100 GROUP BY g ORDER BY g;

-- snippet: group-expression-of-grouped-column
CREATE TABLE t (g INTEGER, v INTEGER);
INSERT INTO t VALUES (1, 5), (2, 6), (1, 7);
SELECT g + 100, sum(v) * 2, 'k' || g FROM t GROUP BY g ORDER BY g;

-- snippet: group-ungrouped-column
CREATE TABLE t (g INTEGER, v INTEGER);
-- error: 42803
SELECT g, v FROM t GROUP BY g;
-- error: 42803
SELECT v, count(*) FROM t;
-- error: 42803
SELECT g FROM t WHERE count(*) > 1 GROUP BY g;
-- error: 42803
SELECT sum(count(*)) FROM t;

-- snippet: group-functional-dependency-on-primary-key
CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE b (a_id INTEGER, v INTEGER);
INSERT INTO a VALUES (1, 'one'), (2, 'two');
INSERT INTO b VALUES (1, 5), (1, 6), (2, 7);
SELECT a.id, a.name, sum(b.v) FROM a JOIN b ON b.a_id = a.id GROUP BY a.id ORDER BY a.id;

-- snippet: group-by-date-and-case
CREATE TABLE t (at TIMESTAMP, v INTEGER);
INSERT INTO t VALUES ('2024-01-01 10:00', 1), ('2024-01-01 23:00', 2), ('2024-01-02 00:00', 3);
SELECT at::date, sum(v) FROM t GROUP BY at::date ORDER BY at::date;
SELECT CASE WHEN v > 1 THEN 'big' ELSE 'small' END AS size, count(*) FROM t GROUP BY size ORDER BY size;

-- snippet: aggregate-bool
CREATE TABLE t (v BOOLEAN);
INSERT INTO t VALUES (true), (false), (NULL);
SELECT bool_and(v), bool_or(v), count(v) FROM t;

-- snippet: aggregate-wrong-argument-type
CREATE TABLE t (v TEXT);
-- error: 42883
SELECT sum(v) FROM t;
-- error: 42883
SELECT avg(v) FROM t;

-- snippet: aggregate-numeric-scale-of-sum
CREATE TABLE t (n NUMERIC);
INSERT INTO t VALUES (1.5), (2.25), (3);
SELECT sum(n), avg(n), min(n), max(n) FROM t;

-- snippet: having-compares-a-key-with-a-wider-type
CREATE TABLE u (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, name VARCHAR(5));
CREATE TABLE r (id INTEGER PRIMARY KEY, u INTEGER NOT NULL);
INSERT INTO u VALUES (1, 2, 'a'), (2, 2, 'b'), (3, 0, 'c');
INSERT INTO r VALUES (1, 1), (2, 1), (3, 2), (4, 3);
SELECT r.u, n, count(*) FROM r JOIN u ON u.id = r.u GROUP BY r.u, n HAVING n <> count(*) ORDER BY r.u;
SELECT r.u, n + 1 FROM r JOIN u ON u.id = r.u GROUP BY r.u, n + 1 HAVING count(*) < n + 1 ORDER BY r.u;
SELECT name, n::bigint + 3000000000 FROM u GROUP BY name, n HAVING name || 'x' > 'ax' AND n < 1.5 ORDER BY name;

-- snippet: many-values-in-an-order
CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, d DOUBLE PRECISION, c TEXT);
INSERT INTO t SELECT i, i % 7, 20000 - i, i::TEXT FROM generate_series(1, 20000) AS s(i);
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY d), percentile_disc(0.25) WITHIN GROUP (ORDER BY id) FROM t;
SELECT md5(string_agg(c, ',' ORDER BY id)), md5(string_agg(c || 'x', c ORDER BY d)) FROM t;
SELECT g, length(string_agg(c, ', ')), array_length(array_agg(d ORDER BY id DESC), 1), (array_agg(c ORDER BY d))[1:3] FROM t GROUP BY g ORDER BY g;
SELECT string_agg(c, NULL ORDER BY id), string_agg(NULLIF(c, '2'), '-' ORDER BY id), string_agg(DISTINCT left(c, 1), '' ORDER BY left(c, 1)) FROM t WHERE id < 30;
SELECT string_agg(c, ',') FROM t WHERE id < 0;
SELECT id, string_agg(c, '+') OVER (ORDER BY id) FROM t WHERE id < 6 ORDER BY id;
SELECT string_agg(c, ',') FILTER (WHERE id % 2 = 0) FROM t WHERE id < 9;

-- snippet: aggregates-of-outer-rows-do-not-nest
CREATE TABLE outer_rows (a INTEGER);
CREATE TABLE inner_rows (b INTEGER);
INSERT INTO outer_rows VALUES (1), (2);
INSERT INTO inner_rows VALUES (5), (6);
-- error: 42803
SELECT (SELECT max(min(a)) FROM inner_rows) FROM outer_rows;
-- error: 42803
SELECT (SELECT max(min(a) FILTER (WHERE a > 0)) FROM inner_rows) FROM outer_rows;
SELECT (SELECT max(b + min(a)) FROM inner_rows) FROM outer_rows;

-- snippet: a-merged-column-of-another-width
CREATE TABLE narrow (k INTEGER, v INTEGER);
CREATE TABLE wide (k BIGINT, w INTEGER);
INSERT INTO narrow VALUES (1, 1), (1, 2), (2, 3);
INSERT INTO wide VALUES (1, 10);
SELECT k, count(*) FROM narrow LEFT JOIN wide USING (k) GROUP BY k ORDER BY k;
-- error: 42803
SELECT narrow.k FROM narrow LEFT JOIN wide USING (k) GROUP BY k;
-- error: 42803
SELECT narrow.k, count(*) FROM narrow LEFT JOIN wide USING (k) GROUP BY k;
SELECT k + 1, count(*) FROM narrow LEFT JOIN wide USING (k) GROUP BY k ORDER BY 1;
-- error: 42P20
SELECT rank() OVER (ORDER BY 1), count(*) FROM narrow GROUP BY 1;
SELECT count(*) FROM (SELECT k, count(random()) OVER (PARTITION BY k) AS total FROM narrow) s WHERE total > 1;
SELECT total FROM (SELECT k, count(random()) OVER (PARTITION BY k) AS total, count(random() > 2) OVER (PARTITION BY v) AS other FROM narrow) s WHERE other > 0 ORDER BY k;

-- snippet: groups-of-what-a-function-gives
CREATE TABLE tagged (id INTEGER, tags TEXT[]);
INSERT INTO tagged VALUES (1, '{a,b}'), (2, '{b,c}'), (3, '{}'), (4, NULL), (5, '{b,NULL}');
SELECT unnest(tags) AS tag, count(*) FROM tagged GROUP BY 1 ORDER BY 2 DESC, 1;
SELECT unnest(tags) AS tag, count(*), min(id), max(id) FROM tagged GROUP BY tag HAVING count(*) > 1;
SELECT upper(unnest(tags)) AS tag, count(DISTINCT id) FROM tagged WHERE id < 5 GROUP BY tag ORDER BY tag;
SELECT generate_series(1, id) AS n, sum(id) FROM tagged GROUP BY n ORDER BY n;
SELECT count(*) FROM (SELECT unnest(tags) AS tag FROM tagged GROUP BY tag) s;
SELECT generate_series(1, 3) AS n GROUP BY n ORDER BY n DESC;
-- error: 42803
SELECT unnest(tags) AS tag, id FROM tagged GROUP BY tag;
