-- What is taken from scripts that tune PostgreSQL, and has no effect.
-- compare: messages

-- snippet: settings-of-the-planner
SET enable_seqscan = off;
SHOW enable_seqscan;
SET enable_seqscan TO DEFAULT;
SHOW enable_seqscan;
SET work_mem = '64kB';
SHOW work_mem;
SET work_mem = 2048;
SHOW work_mem;
SET LOCAL work_mem = 100;
-- error: 22023
SET work_mem = 'a lot';
-- error: 22023
SET enable_sort = 'perhaps';
SET random_page_cost = 1.1;
SHOW random_page_cost;
SET min_parallel_table_scan_size = 0;
SHOW min_parallel_table_scan_size;
SET plan_cache_mode = force_generic_plan;
SHOW plan_cache_mode;
-- error: 22023
SET plan_cache_mode = 'never';
BEGIN;
SET LOCAL enable_hashjoin = off;
SHOW enable_hashjoin;
COMMIT;
SHOW enable_hashjoin;
SELECT current_setting('jit_above_cost'), set_config('max_parallel_workers_per_gather', '0', false);

-- snippet: parameters-of-storage
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT) WITH (fillfactor = 70, autovacuum_enabled = false);
ALTER TABLE t SET (fillfactor = 50, parallel_workers = 2);
ALTER TABLE t RESET (fillfactor);
ALTER TABLE t SET (autovacuum_enabled = off, toast.autovacuum_enabled = off);
-- error: 22023
ALTER TABLE t SET (lucky = 7);
-- error: 22023
CREATE TABLE u (id INTEGER) WITH (lucky = 7);
CREATE INDEX i ON t (v) WITH (fillfactor = 60);
-- error: 22023
CREATE INDEX j ON t (v) WITH (lucky = 7);
ALTER INDEX i SET (fillfactor = 70);
ALTER INDEX i RESET (fillfactor);
-- error: 22023
ALTER INDEX i SET (lucky = 7);
ALTER INDEX IF EXISTS nothing SET (fillfactor = 70);
ALTER TABLE t REPLICA IDENTITY FULL;
ALTER TABLE t REPLICA IDENTITY DEFAULT;
ALTER TABLE t SET WITHOUT CLUSTER;
INSERT INTO t VALUES (1, 'one');
SELECT * FROM t;

-- snippet: orders-on-disk
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
CREATE INDEX i ON t (v);
INSERT INTO t VALUES (2, 'b'), (1, 'a');
REINDEX TABLE t;
REINDEX INDEX i;
REINDEX (VERBOSE) TABLE CONCURRENTLY t;
-- error: 42P01
REINDEX TABLE nothing;
-- error: 42P01
REINDEX INDEX nothing;
-- error: 3F000
REINDEX SCHEMA kiln_nothing;
CLUSTER t USING i;
CLUSTER VERBOSE t USING t_pkey;
-- error: 42P01
CLUSTER nothing USING i;
-- error: 42704
CLUSTER t USING nothing;
SELECT * FROM t ORDER BY id;

-- snippet: views-by-name
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
CREATE VIEW w AS SELECT id FROM t;
SELECT pg_get_viewdef('w') IS NOT NULL, pg_get_viewdef('w', true) IS NOT NULL;
-- error: 42P01
SELECT pg_get_viewdef('nothing', true);

-- snippet: drops-and-analyses
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
CREATE INDEX i ON t (v);
CREATE INDEX j ON t (v, id);
ANALYZE VERBOSE t;
ANALYZE t (v), t (id, v);
ANALYZE (VERBOSE, SKIP_LOCKED) t;
-- error: 42P01
ANALYZE nothing (v);
DROP INDEX CONCURRENTLY IF EXISTS i;
DROP INDEX CONCURRENTLY j;
DROP INDEX IF EXISTS i, j CASCADE;
-- error: 42704
DROP INDEX CONCURRENTLY i;
DROP TABLE IF EXISTS nothing, t RESTRICT;

-- snippet: how-columns-are-stored
CREATE TABLE stored (id INTEGER PRIMARY KEY, v TEXT);
ALTER TABLE stored ALTER COLUMN v SET STATISTICS 100;
ALTER TABLE stored ALTER v SET STATISTICS -1;
ALTER TABLE stored ALTER COLUMN v SET STORAGE EXTERNAL, ALTER id SET STATISTICS 10;
ALTER TABLE stored ALTER COLUMN v SET COMPRESSION pglz;
ALTER TABLE stored ALTER COLUMN v SET (n_distinct = 5);
ALTER TABLE stored ALTER COLUMN v RESET (n_distinct);
ALTER TABLE stored SET TABLESPACE pg_default;
ALTER TABLE stored SET ACCESS METHOD heap;
ALTER TABLE stored SET UNLOGGED;
ALTER TABLE stored SET LOGGED;
-- error: 42703
ALTER TABLE stored ALTER COLUMN w SET STATISTICS 100;
INSERT INTO stored VALUES (1, 'a') RETURNING *;
