-- Secondary indexes must never change an answer.

-- snippet: index-equality-and-range
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, s TEXT);
CREATE INDEX t_v ON t (v);
INSERT INTO t VALUES (1, 5, 'a'), (2, 3, 'b'), (3, 5, 'c'), (4, NULL, 'd'), (5, 9, 'e');
SELECT id FROM t WHERE v = 5 ORDER BY id;
SELECT id FROM t WHERE v > 3 ORDER BY v, id;
SELECT id FROM t WHERE v >= 3 AND v < 9 ORDER BY v DESC, id;
SELECT id FROM t WHERE v IS NULL;
SELECT id FROM t ORDER BY v, id;

-- snippet: index-on-existing-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT);
INSERT INTO t VALUES (1, 'pear'), (2, 'fig'), (3, 'pear');
CREATE INDEX t_s ON t (s);
SELECT id FROM t WHERE s = 'pear' ORDER BY id;
INSERT INTO t VALUES (4, 'pear');
DELETE FROM t WHERE id = 1;
SELECT id FROM t WHERE s = 'pear' ORDER BY id;

-- snippet: index-composite-prefix
CREATE TABLE customer (w INTEGER, d INTEGER, c INTEGER, last VARCHAR(16), first VARCHAR(16), PRIMARY KEY (w, d, c));
CREATE INDEX customer_name ON customer (w, d, last, first);
INSERT INTO customer VALUES (1, 1, 1, 'BAR', 'Zoe'), (1, 1, 2, 'BAR', 'Amy'), (1, 1, 3, 'OUGHT', 'Kim'), (1, 2, 1, 'BAR', 'Lee'), (1, 1, 4, 'BARS', 'Bob');
SELECT c, first FROM customer WHERE w = 1 AND d = 1 AND last = 'BAR' ORDER BY first;
SELECT count(*) FROM customer WHERE w = 1 AND d = 1 AND last = 'BAR';
SELECT c FROM customer WHERE w = 1 AND d = 1 AND last >= 'BAR' AND last < 'BAT' ORDER BY last, first;
SELECT c FROM customer WHERE w = 1 AND last = 'BAR' ORDER BY d, first DESC;

-- snippet: index-descending-and-mixed-order
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
CREATE INDEX t_ab ON t (a, b DESC);
INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 1, NULL);
SELECT id FROM t WHERE a = 1 ORDER BY b DESC NULLS LAST;
SELECT id FROM t ORDER BY a, b;

-- snippet: index-follows-updates-and-rollback
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE INDEX t_v ON t (v);
INSERT INTO t VALUES (1, 1), (2, 2);
BEGIN;
UPDATE t SET v = 7 WHERE id = 1;
SELECT id FROM t WHERE v = 7;
ROLLBACK;
SELECT id FROM t WHERE v = 7;
SELECT id FROM t WHERE v = 1;

-- snippet: index-on-text-with-prefixes
CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT);
CREATE INDEX t_s ON t (s);
INSERT INTO t VALUES (1, 'ab'), (2, 'a'), (3, ''), (4, 'abc'), (5, 'b'), (6, NULL), (7, 'aé');
SELECT id, s FROM t WHERE s > 'a' ORDER BY s;
SELECT id FROM t WHERE s >= 'ab' AND s <= 'b' ORDER BY s;
SELECT id FROM t WHERE s LIKE 'ab%' ORDER BY s;

-- snippet: index-on-numeric-and-date
CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC(8, 2), d DATE);
CREATE INDEX t_n ON t (n);
CREATE INDEX t_d ON t (d, n);
INSERT INTO t VALUES (1, -5.25, '2024-01-01'), (2, 5.25, '2023-12-31'), (3, 0, '2024-01-01'), (4, NULL, NULL);
SELECT id FROM t WHERE n < 1 ORDER BY n;
SELECT id FROM t WHERE d = '2024-01-01' ORDER BY n DESC;
SELECT id FROM t WHERE n = 5.25;

-- snippet: index-in-join
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER);
CREATE TABLE b (id INTEGER PRIMARY KEY, k INTEGER);
CREATE INDEX b_k ON b (k);
INSERT INTO a VALUES (1, 10), (2, 20), (3, NULL);
INSERT INTO b VALUES (1, 10), (2, 10), (3, NULL), (4, 30);
SELECT a.id, b.id FROM a JOIN b ON a.k = b.k ORDER BY a.id, b.id;
SELECT a.id, b.id FROM a LEFT JOIN b ON b.k = a.k ORDER BY a.id, b.id;

-- snippet: index-and-lists-of-values
CREATE TABLE t (id INTEGER PRIMARY KEY, a SMALLINT, b BIGINT, s VARCHAR(5), n NUMERIC(6, 2));
CREATE INDEX t_a_b ON t (a, b);
CREATE INDEX t_s ON t (s);
CREATE INDEX t_n ON t (n);
INSERT INTO t VALUES (1, 1, 10, 'x', 1), (2, 1, 20, 'y', 2.5), (3, 2, 10, 'x', 1.00), (4, NULL, 10, NULL, NULL), (5, 3, 30, 'z', 3);
SELECT id FROM t WHERE id IN (3, 1, 3, 9) ORDER BY id;
SELECT id FROM t WHERE id = 5 OR id = 2 OR 5 = id ORDER BY id DESC;
SELECT id FROM t WHERE id IN (1, 2, NULL) ORDER BY id;
SELECT id FROM t WHERE id NOT IN (1, 2) ORDER BY id;
SELECT id FROM t WHERE id IN (2147483648, 4) ORDER BY id;
SELECT id FROM t WHERE id IN (1.0, 2.5, 3) ORDER BY id;
SELECT id FROM t WHERE a IN (1, 3) ORDER BY id;
SELECT id FROM t WHERE a IN (1, 2) AND b IN (10, 30) ORDER BY id;
SELECT id FROM t WHERE a = 1 AND b IN (20, 10) ORDER BY b DESC LIMIT 1;
SELECT id FROM t WHERE a IN (1, 2) AND b > 10 ORDER BY id;
SELECT id FROM t WHERE s IN ('x', 'z', 'x') ORDER BY id;
SELECT id FROM t WHERE n IN (1, 1.0, 3.00, 7.777) ORDER BY id;
SELECT id FROM t WHERE id = 1 OR a = 3 ORDER BY id;
SELECT id FROM t WHERE (id = 1 OR id = 5) AND s = 'z' ORDER BY id;
SELECT x.id, y.id FROM t AS x JOIN t AS y ON y.id IN (x.id + 1, x.a) ORDER BY x.id, y.id;
SELECT x.id, y.id FROM t AS x LEFT JOIN t AS y ON y.id IN (x.a + 4, x.b) ORDER BY x.id, y.id;
SELECT id FROM t WHERE id IN (SELECT a FROM t) ORDER BY id;
SELECT count(*), sum(id) FROM t WHERE id IN (1, 3, 3, 5);
UPDATE t SET a = a + 1 WHERE a IN (1, 2);
SELECT id, a FROM t ORDER BY id;
UPDATE t SET id = id + 1 WHERE id IN (5, 4) AND id > 4;
DELETE FROM t WHERE id IN (1, 6, 1);
SELECT id FROM t ORDER BY id;

-- snippet: index-and-lists-of-variables
CREATE TABLE t (g INTEGER, id INTEGER, v INTEGER, PRIMARY KEY (g, id));
INSERT INTO t VALUES (1, 1, 5), (1, 2, 6), (2, 1, 7), (3, 9, 8);
CREATE FUNCTION f(x INTEGER, y INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    total INTEGER;
BEGIN
    SELECT coalesce(sum(v), 0) INTO total FROM t WHERE g IN (x, y) AND id = 1;
    RETURN total;
END $$;
SELECT f(1, 2), f(1, 1), f(NULL, 2), f(NULL, NULL), f(8, 9);

-- snippet: index-operator-classes
CREATE TABLE t (a INTEGER, b TEXT, c VARCHAR(10), d CHAR(3), e TIMESTAMP WITH TIME ZONE, f REAL);
CREATE INDEX t_b ON t (b text_pattern_ops);
CREATE INDEX t_c ON t (c varchar_pattern_ops, a int4_ops DESC);
CREATE INDEX t_d ON t USING btree (d bpchar_pattern_ops);
CREATE INDEX t_e ON t (e timestamptz_ops, f float4_ops);
CREATE INDEX t_f ON t (b varchar_ops, c text_ops);
INSERT INTO t VALUES (1, 'one', 'eins', 'un', '2020-01-01 00:00+00', 1.5), (2, 'two', 'zwei', 'dx', '2021-01-01 00:00+00', 2.5);
SELECT a FROM t WHERE b = 'two';
SELECT a FROM t WHERE c > 'f';
-- error: 42704
CREATE INDEX ON t (b nothing_ops);
-- error: 42804
CREATE INDEX ON t (a text_pattern_ops);
-- error: 42804
CREATE INDEX ON t (d text_ops);
-- error: 42804
CREATE INDEX ON t (b int4_ops);
