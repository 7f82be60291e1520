-- CREATE INDEX … WHERE.
-- compare: messages

-- snippet: unique-among-some-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, code TEXT, deleted BOOLEAN NOT NULL DEFAULT false);
INSERT INTO t VALUES (1, 'a', false), (2, 'a', true), (3, 'a', true), (4, NULL, false), (5, NULL, false);
CREATE UNIQUE INDEX live ON t (code) WHERE NOT deleted;
-- error: 23505
INSERT INTO t VALUES (6, 'a');
INSERT INTO t VALUES (6, 'a', true), (7, 'b', false), (8, NULL, false);
-- error: 23505
UPDATE t SET deleted = false WHERE id = 2;
UPDATE t SET deleted = true WHERE id = 1;
UPDATE t SET deleted = false WHERE id = 2;
-- error: 23505
UPDATE t SET code = 'a' WHERE id = 7;
SELECT id FROM t WHERE code = 'a' AND NOT deleted;
SELECT id FROM t WHERE code = 'a' ORDER BY id;
SELECT id FROM t WHERE NOT deleted ORDER BY code, id;
SELECT count(*) FROM t WHERE NOT deleted;
DELETE FROM t WHERE NOT deleted AND code = 'a';
INSERT INTO t VALUES (9, 'a');
SELECT * FROM t ORDER BY id;
SELECT split_part(indexdef, ' USING ', 2) FROM pg_indexes WHERE indexname = 'live';
SELECT indkey, indnatts, pg_get_expr(indpred, indrelid), pg_get_expr(indexprs, indrelid) FROM pg_index WHERE indexrelid = 'live'::regclass;
SELECT attname, attnum FROM pg_attribute WHERE attrelid = 'live'::regclass ORDER BY 2;

-- snippet: implied-by-comparisons
CREATE TABLE t (a INTEGER, b INTEGER, s TEXT);
INSERT INTO t SELECT i, i % 7, 'v' || i % 5 FROM generate_series(1, 200) i;
INSERT INTO t VALUES (NULL, NULL, NULL), (NULL, 3, 'v1'), (300, NULL, NULL);
CREATE INDEX ON t (b) WHERE a > 100;
CREATE INDEX ON t (b, a) WHERE a <= 50;
CREATE INDEX ON t (a) WHERE b IS NOT NULL;
CREATE INDEX ON t (a) WHERE s = 'v1' OR s = 'v2';
CREATE INDEX ON t (s) WHERE a IS NULL;
CREATE INDEX ON t (s) WHERE a <> 7;
SELECT count(*) FROM t WHERE a > 100 AND b = 3;
SELECT count(*) FROM t WHERE a > 99 AND b = 3;
SELECT count(*) FROM t WHERE a >= 100 AND b = 3;
SELECT count(*) FROM t WHERE a >= 101 AND b = 3;
SELECT count(*) FROM t WHERE a = 150 AND b = 3;
SELECT count(*) FROM t WHERE a = 50 AND b = 1;
SELECT count(*) FROM t WHERE a < 50 AND b = 1;
SELECT count(*) FROM t WHERE 51 > a AND b = 1;
SELECT count(*) FROM t WHERE b = 3 AND a > 5;
SELECT count(*) FROM t WHERE b IS NOT NULL AND a > 5;
SELECT count(*) FROM t WHERE a = 11 AND s = 'v1';
SELECT count(*) FROM t WHERE a < 40 AND s IN ('v1', 'v2');
SELECT count(*) FROM t WHERE a < 40 AND s IN ('v1', 'v3');
SELECT count(*) FROM t WHERE a IS NULL AND s = 'v1';
SELECT count(*) FROM t WHERE a IS NULL;
SELECT count(*) FROM t WHERE a > 7 AND s = 'v1';
SELECT count(*) FROM t WHERE s = 'v1';
SELECT a FROM t WHERE a > 100 AND b = 3 ORDER BY a LIMIT 3;
SELECT b, a FROM t WHERE a <= 10 ORDER BY b, a;
UPDATE t SET a = a + 100 WHERE a <= 50 AND b = 2;
SELECT count(*) FROM t WHERE a > 100 AND b = 2;
DELETE FROM t WHERE a > 100 AND b = 2;
SELECT count(*) FROM t;

-- snippet: on-conflict-with-a-predicate
CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER DEFAULT 0);
CREATE UNIQUE INDEX ON t (a) WHERE b > 0;
INSERT INTO t VALUES (1, 1);
INSERT INTO t VALUES (1, 0), (1, 0);
-- error: 42P10
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) DO NOTHING;
-- error: 42P10
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > -1 DO NOTHING;
INSERT INTO t VALUES (1, 1) ON CONFLICT (a) WHERE b > 0 DO NOTHING;
INSERT INTO t VALUES (1, 2) ON CONFLICT (a) WHERE b > 0 DO UPDATE SET c = t.c + 1 RETURNING *;
INSERT INTO t VALUES (1, 0) ON CONFLICT (a) WHERE b > 0 DO UPDATE SET c = t.c + 1 RETURNING *;
INSERT INTO t VALUES (1, 2) ON CONFLICT (a) WHERE b = 1 DO UPDATE SET c = t.c + 1 WHERE t.c < 1 RETURNING *;
INSERT INTO t VALUES (1, 2) ON CONFLICT DO NOTHING;
-- error: 21000
INSERT INTO t VALUES (5, 2), (5, 3) ON CONFLICT (a) WHERE b > 0 DO UPDATE SET c = 9;
INSERT INTO t VALUES (5, 2), (5, 0) ON CONFLICT (a) WHERE b > 0 DO UPDATE SET c = 9 RETURNING *;
CREATE UNIQUE INDEX ON t (c) WHERE c > 100;
INSERT INTO t VALUES (7, 0, 101);
-- error: 23505
INSERT INTO t VALUES (7, 0, 101) ON CONFLICT (a) WHERE b > 0 DO NOTHING;
SELECT * FROM t ORDER BY a, b, c;

-- snippet: joins-and-outer-joins
CREATE TABLE p (id INTEGER PRIMARY KEY, kind TEXT);
CREATE TABLE c (pid INTEGER, state TEXT);
CREATE INDEX ON c (pid) WHERE state = 'open';
CREATE INDEX ON c (lower(state));
INSERT INTO p VALUES (1, 'OPEN'), (2, 'Done'), (3, 'none');
INSERT INTO c VALUES (1, 'open'), (1, 'done'), (2, 'open'), (NULL, 'open'), (3, 'done');
SELECT * FROM p JOIN c ON c.pid = p.id AND c.state = 'open' ORDER BY 1, 3;
SELECT * FROM p LEFT JOIN c ON c.pid = p.id AND c.state = 'open' ORDER BY 1, 3;
SELECT * FROM p LEFT JOIN c ON c.pid = p.id WHERE c.state = 'open' ORDER BY 1, 3;
SELECT id, pid FROM p JOIN c ON lower(c.state) = lower(p.kind) ORDER BY 1, 2;
SELECT id FROM p WHERE EXISTS (SELECT FROM c WHERE c.pid = p.id AND c.state = 'open') ORDER BY 1;
SELECT id FROM p WHERE id IN (SELECT pid FROM c WHERE state = 'open') ORDER BY 1;
SELECT id FROM p WHERE NOT EXISTS (SELECT FROM c WHERE c.pid = p.id AND c.state = 'open') ORDER BY 1;

-- snippet: no-key-of-a-reference
CREATE TABLE p (a INTEGER, b INTEGER);
CREATE UNIQUE INDEX ON p (a) WHERE b > 0;
-- error: 42830
CREATE TABLE c (x INTEGER REFERENCES p (a));
-- error: 23505
INSERT INTO p VALUES (1, 1), (1, 1);

-- snippet: from-functions
CREATE TABLE t (a INTEGER, b TEXT);
CREATE UNIQUE INDEX ON t (lower(b)) WHERE a IS NULL;
CREATE FUNCTION put(x TEXT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE n INTEGER;
BEGIN
    INSERT INTO t VALUES (NULL, x) ON CONFLICT (lower(b)) WHERE a IS NULL DO UPDATE SET b = excluded.b;
    SELECT count(*) INTO n FROM t WHERE lower(b) = lower(x) AND a IS NULL;
    RETURN n;
END $$;
SELECT put('A');
SELECT put('a');
UPDATE t SET a = 1;
SELECT put('a');
SELECT * FROM t ORDER BY a;
