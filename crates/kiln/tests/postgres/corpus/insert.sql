-- INSERT: VALUES, SELECT, DEFAULT, ON CONFLICT, RETURNING.

-- snippet: insert-values
CREATE TABLE t (a INTEGER, b TEXT, c NUMERIC(5, 2));
INSERT INTO t VALUES (1, 'x', 1.5);
INSERT INTO t VALUES (2, 'y', 2), (3, 'z', 3.999);
SELECT * FROM t ORDER BY a;

-- snippet: insert-column-list
CREATE TABLE t (a INTEGER, b TEXT, c INTEGER);
INSERT INTO t (c, a) VALUES (30, 3);
INSERT INTO t (b) VALUES ('only');
INSERT INTO t VALUES (1);
SELECT a, b, c FROM t ORDER BY a;

-- snippet: insert-default
CREATE TABLE t (a INTEGER DEFAULT 7, b TEXT DEFAULT 'none', c INTEGER);
INSERT INTO t VALUES (DEFAULT, DEFAULT, 1);
INSERT INTO t (c) VALUES (2);
INSERT INTO t VALUES (8, 'given', 3), (DEFAULT, 'mixed', DEFAULT);
INSERT INTO t DEFAULT VALUES;
SELECT a, b, c FROM t ORDER BY c, b;

-- snippet: insert-default-expression
CREATE TABLE t (id INTEGER, n NUMERIC(6, 2) DEFAULT 10 / 4.0, s VARCHAR(10) DEFAULT upper('abc') || 'd', d DATE DEFAULT '2024-01-01');
INSERT INTO t (id) VALUES (1);
INSERT INTO t (id, n) VALUES (2, NULL);
SELECT * FROM t ORDER BY id;

-- snippet: insert-expressions
CREATE TABLE t (a INTEGER, b TEXT);
INSERT INTO t VALUES (1 + 2 * 3, 'a' || 'b'), (length('hello'), upper('x'));
SELECT a, b FROM t ORDER BY a;

-- snippet: insert-select
CREATE TABLE source (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE target (id INTEGER PRIMARY KEY, doubled INTEGER);
INSERT INTO source VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO target SELECT id, v * 2 FROM source WHERE v > 10;
INSERT INTO target (doubled, id) SELECT max(v), 99 FROM source;
SELECT id, doubled FROM target ORDER BY id;

-- snippet: insert-select-from-itself
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
INSERT INTO t SELECT id + 10, v FROM t;
INSERT INTO t SELECT id + 100, v FROM t;
SELECT id, v FROM t ORDER BY id;

-- snippet: insert-assignment-casts
CREATE TABLE t (s SMALLINT, n NUMERIC(4, 1), v VARCHAR(5), d DOUBLE PRECISION, b BIGINT);
INSERT INTO t VALUES (3.6, 2, 15, 1, 2.5);
INSERT INTO t VALUES ('4', '2.25', 'x', '1e2', '7');
SELECT * FROM t ORDER BY s;

-- snippet: insert-type-mismatch
CREATE TABLE t (i INTEGER, b BOOLEAN, d DATE);
-- error: 42804
INSERT INTO t (i) VALUES (true);
-- error: 42804
INSERT INTO t (b) VALUES (1);
-- error: 22P02
INSERT INTO t (i) VALUES ('one');
-- error: 42804
INSERT INTO t (d) VALUES (5);
SELECT count(*) FROM t;

-- snippet: insert-wrong-column-counts
CREATE TABLE t (a INTEGER, b INTEGER);
-- error: 42601
INSERT INTO t VALUES (1, 2, 3);
-- error: 42601
INSERT INTO t (a) VALUES (1, 2);
-- error: 42601
INSERT INTO t (a, b) VALUES (1);
-- error: 42601
INSERT INTO t VALUES (1, 2), (3);
-- error: 42701
INSERT INTO t (a, a) VALUES (1, 2);
-- error: 42703
INSERT INTO t (z) VALUES (1);

-- snippet: insert-many-rows-fails-as-a-whole
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (5);
-- error: 23505
INSERT INTO t VALUES (3), (4), (5), (6);
SELECT id FROM t ORDER BY id;

-- snippet: insert-duplicate-within-statement
CREATE TABLE t (id INTEGER PRIMARY KEY);
-- error: 23505
INSERT INTO t VALUES (1), (2), (1);
SELECT count(*) FROM t;

-- snippet: insert-returning
CREATE TABLE t (id INTEGER PRIMARY KEY, v NUMERIC(5, 2) DEFAULT 1.25);
INSERT INTO t VALUES (1, 2.505) RETURNING *;
INSERT INTO t (id) VALUES (2), (3) RETURNING id, v * 2 AS twice;
INSERT INTO t SELECT id + 10, v FROM t WHERE id = 1 RETURNING id;

-- snippet: insert-on-conflict-do-nothing
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'first');
INSERT INTO t VALUES (1, 'second') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 'third'), (2, 'new') ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (3, 'a'), (3, 'b') ON CONFLICT (id) DO NOTHING;
SELECT id, v FROM t ORDER BY id;

-- snippet: insert-on-conflict-do-nothing-returning
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'old');
INSERT INTO t VALUES (1, 'x'), (2, 'y') ON CONFLICT DO NOTHING RETURNING id, v;

-- snippet: insert-on-conflict-do-update
CREATE TABLE t (id INTEGER PRIMARY KEY, hits INTEGER NOT NULL, note TEXT);
INSERT INTO t VALUES (1, 1, 'a');
INSERT INTO t VALUES (1, 5, 'b') ON CONFLICT (id) DO UPDATE SET hits = t.hits + excluded.hits, note = excluded.note;
INSERT INTO t VALUES (2, 7, 'c') ON CONFLICT (id) DO UPDATE SET hits = t.hits + 1;
SELECT id, hits, note FROM t ORDER BY id;

-- snippet: insert-on-conflict-do-update-where
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
INSERT INTO t VALUES (1, 5), (2, 25) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE excluded.v > t.v RETURNING id, v;
SELECT id, v FROM t ORDER BY id;

-- snippet: insert-on-conflict-unique-column
CREATE TABLE t (id INTEGER PRIMARY KEY, email TEXT UNIQUE, n INTEGER DEFAULT 0);
INSERT INTO t (id, email) VALUES (1, 'a@x');
INSERT INTO t (id, email) VALUES (2, 'a@x') ON CONFLICT (email) DO UPDATE SET n = t.n + 1;
-- error: 23505
INSERT INTO t (id, email) VALUES (1, 'b@x') ON CONFLICT (email) DO NOTHING;
SELECT id, email, n FROM t ORDER BY id;

-- snippet: insert-on-conflict-composite-key
CREATE TABLE stock (w INTEGER, i INTEGER, q INTEGER, PRIMARY KEY (w, i));
INSERT INTO stock VALUES (1, 1, 10);
INSERT INTO stock VALUES (1, 1, 5), (1, 2, 3) ON CONFLICT (w, i) DO UPDATE SET q = stock.q + excluded.q;
SELECT w, i, q FROM stock ORDER BY w, i;

-- snippet: insert-on-conflict-no-matching-constraint
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
-- error: 42P10
INSERT INTO t VALUES (1, 1) ON CONFLICT (v) DO NOTHING;

-- snippet: insert-on-conflict-touches-row-twice
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
-- error: 21000
INSERT INTO t VALUES (1, 1), (1, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
SELECT count(*) FROM t;

-- snippet: insert-quoted-identifiers
CREATE TABLE "Mixed Case" ("Key" INTEGER PRIMARY KEY, "select" TEXT);
INSERT INTO "Mixed Case" ("Key", "select") VALUES (1, 'x');
SELECT "Key", "select" FROM "Mixed Case";
-- error: 42703
SELECT Key FROM "Mixed Case";
-- error: 42P01
SELECT 1 FROM Mixed;

-- snippet: insert-select-literals-take-the-columns-types
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, d DATE, w VARCHAR(3) DEFAULT 'def');
INSERT INTO p VALUES (1, 10), (2, 20);
INSERT INTO p SELECT id + 10, NULL, '2024-02-03', NULL FROM p;
INSERT INTO p (id, w) SELECT 50, 'ab';
-- error: 22001
INSERT INTO p (id, w) SELECT 51, 'abcd';
-- error: 22007
INSERT INTO p (id, d) SELECT 52, 'never';
SELECT id, u, d, w FROM p ORDER BY id;

-- snippet: insert-on-conflict-looks-at-its-index-first
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, w TEXT);
INSERT INTO p VALUES (1, 10), (2, 20);
INSERT INTO p (id, u) VALUES (2, 10) ON CONFLICT (u) DO UPDATE SET w = 'by u' RETURNING id, u, w;
INSERT INTO p (id, u) VALUES (2, 10) ON CONFLICT (u) DO NOTHING RETURNING id, u, w;
INSERT INTO p (id, u) VALUES (2, 10) ON CONFLICT (id) DO UPDATE SET w = 'by id' RETURNING id, u, w;
-- error: 23505
INSERT INTO p (id, u) VALUES (2, 99) ON CONFLICT (u) DO NOTHING;
-- error: 23505
INSERT INTO p (id, u) VALUES (3, 10) ON CONFLICT (id) DO NOTHING;
SELECT id, u, w FROM p ORDER BY id;
