-- CREATE INDEX … USING, operator classes, NULLS NOT DISTINCT.

-- compare: messages

-- snippet: index-methods-are-taken
CREATE TABLE t (id INTEGER PRIMARY KEY, doc JSONB, tags TEXT[], s TEXT, v VARCHAR(5), n INTEGER);
CREATE INDEX t_doc ON t USING gin (doc);
CREATE INDEX t_path ON t USING gin (doc jsonb_path_ops, tags);
CREATE INDEX t_expr ON t USING gin ((doc -> 'x'));
CREATE INDEX t_part ON t USING gin (tags) WHERE n > 3;
CREATE INDEX ON t USING gin (doc jsonb_ops) WITH (fastupdate = off);
CREATE INDEX t_sp ON t USING spgist (s);
CREATE INDEX t_spv ON t USING spgist (v text_ops);
CREATE INDEX t_hash ON t USING hash (n);
CREATE INDEX t_hash_doc ON t USING hash (doc);
CREATE INDEX t_brin ON t USING brin (n int4_bloom_ops) WITH (pages_per_range = 8);
INSERT INTO t VALUES (1, '{"x": [1, 2]}', '{a,b}', 'one', 'v1', 5), (2, '{"x": 3}', '{b}', 'two', 'v2', 1), (3, NULL, NULL, NULL, NULL, NULL);
SELECT id FROM t WHERE doc @> '{"x": [1]}' ORDER BY id;
SELECT id FROM t WHERE 'b' = ANY (tags) ORDER BY id;
SELECT id FROM t WHERE n = 5;
SELECT id FROM t WHERE s LIKE 'o%';
UPDATE t SET doc = '{"y": 1}', tags = '{c}' WHERE id = 1;
SELECT id, doc, tags FROM t ORDER BY id;
SELECT indexname, replace(indexdef, current_schema(), 'public') FROM pg_indexes WHERE tablename = 't' AND indexname NOT IN ('t_path', 't_brin', 't_doc_idx') ORDER BY indexname;
SELECT am.amname, c.relname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.relname IN ('t_doc', 't_sp', 't_hash', 't_pkey', 't_brin') ORDER BY c.relname;
DROP INDEX t_doc;
DROP INDEX t_expr, t_part;
ALTER INDEX t_path RENAME TO t_paths;
ALTER TABLE t DROP COLUMN doc;
SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY indexname;
-- error: 42P07
CREATE INDEX t_sp ON t (n);
CREATE TABLE u (LIKE t INCLUDING INDEXES);
SELECT indexname FROM pg_indexes WHERE tablename = 'u' ORDER BY indexname;
DROP TABLE t, u;

-- snippet: index-methods-that-do-not-fit
CREATE TABLE t (a INTEGER, doc JSONB, js JSON, c CHAR(3), b BOOLEAN, s TEXT);
-- error: 42704
CREATE INDEX ON t USING gin (a);
-- error: 42704
CREATE INDEX ON t USING gin (s gin_trgm_ops);
-- error: 42704
CREATE INDEX ON t USING gist (doc);
-- error: 42704
CREATE INDEX ON t USING spgist (c);
-- error: 42704
CREATE INDEX ON t USING hash (js);
-- error: 42704
CREATE INDEX ON t USING brin (b);
-- error: 42704
CREATE INDEX ON t USING bloom (a);
-- error: 42804
CREATE INDEX ON t USING gin (a jsonb_ops);
-- error: 42703
CREATE INDEX ON t USING gin (nothing);
-- error: 0A000
CREATE UNIQUE INDEX ON t USING gin (doc);
-- error: 0A000
CREATE UNIQUE INDEX ON t USING hash (a);
-- error: 0A000
CREATE INDEX ON t USING hash (a, s);
-- error: 0A000
CREATE INDEX ON t USING spgist (s, s);
-- error: 0A000
CREATE INDEX ON t USING gin (doc DESC);
-- error: 0A000
CREATE INDEX ON t USING gin (doc NULLS FIRST);
-- error: 0A000
CREATE INDEX ON t USING gin (doc) INCLUDE (a);
-- error: 22023
CREATE INDEX ON t USING gin (doc) WITH (fillfactor = 10);
DROP TABLE t;

-- snippet: nulls-not-distinct
CREATE TABLE n (a INTEGER, b TEXT, UNIQUE NULLS NOT DISTINCT (a), CONSTRAINT both_ UNIQUE NULLS NOT DISTINCT (b, a));
INSERT INTO n VALUES (NULL, 'x');
-- error: 23505
INSERT INTO n VALUES (NULL, 'y');
INSERT INTO n VALUES (1, NULL);
-- error: 23505
UPDATE n SET a = NULL WHERE a = 1;
UPDATE n SET a = 2 WHERE a IS NULL;
INSERT INTO n VALUES (NULL, 'z') ON CONFLICT DO NOTHING;
INSERT INTO n VALUES (NULL, 'zz') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a, b;
INSERT INTO n VALUES (NULL, 'again'), (3, 'more') ON CONFLICT (a) DO NOTHING;
SELECT a, b FROM n ORDER BY a, b;
SELECT a, b FROM n WHERE a IS NULL;
SELECT a FROM n WHERE a = NULL;
DELETE FROM n WHERE a IS NULL;
INSERT INTO n VALUES (NULL, 'w');
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'n'::regclass ORDER BY conname;
SELECT indnullsnotdistinct FROM pg_index WHERE indrelid = 'n'::regclass;
DROP TABLE n;

-- snippet: nulls-not-distinct-in-indexes
CREATE TABLE n (id SERIAL, a INTEGER, b TEXT, c INTEGER UNIQUE NULLS NOT DISTINCT);
CREATE UNIQUE INDEX n_part ON n (a, b) NULLS NOT DISTINCT WHERE a IS NULL;
INSERT INTO n (a, b, c) VALUES (1, NULL, 1), (1, NULL, 2), (NULL, NULL, 3);
-- error: 23505
INSERT INTO n (a, b, c) VALUES (NULL, NULL, 4);
-- error: 23505
INSERT INTO n (a, b) VALUES (5, 'x'), (6, 'y');
INSERT INTO n (a, b) VALUES (5, 'x');
SELECT a, b, c FROM n ORDER BY id;
-- error: 23505
CREATE UNIQUE INDEX ON n (b) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX ON n (b);
DELETE FROM n;
CREATE UNIQUE INDEX n_lower ON n (lower(b)) NULLS NOT DISTINCT;
INSERT INTO n (b, c) VALUES (NULL, 1);
-- error: 23505
INSERT INTO n (a, b, c) VALUES (1, NULL, 2);
ALTER TABLE n ADD CONSTRAINT n_more UNIQUE NULLS NOT DISTINCT (a, c);
SELECT replace(indexdef, current_schema(), 'public') FROM pg_indexes WHERE tablename = 'n' AND indexdef LIKE '%NULLS%' ORDER BY indexname;
CREATE TABLE m (LIKE n INCLUDING ALL);
INSERT INTO m (id, c) VALUES (1, NULL);
-- error: 23505
INSERT INTO m (id, c) VALUES (2, NULL);
-- error: 42601
CREATE TABLE bad (b INTEGER PRIMARY KEY NULLS NOT DISTINCT);
CREATE TABLE good (b INTEGER UNIQUE NULLS DISTINCT);
INSERT INTO good VALUES (NULL), (NULL);
CREATE INDEX plain ON good (b) NULLS NOT DISTINCT;
DROP TABLE n, m, good;
