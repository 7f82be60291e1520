-- EXPLAIN: its options, and what it explains. Plans differ and are not compared.
-- compare: messages

-- snippet: explain-option-values
-- error: 42601
EXPLAIN (foo) SELECT 1;
-- error: 42601
EXPLAIN (costs maybe) SELECT 1;
-- error: 42601
EXPLAIN (costs 2) SELECT 1;
-- error: 42601
EXPLAIN (costs -1) SELECT 1;
-- error: 42601
EXPLAIN (costs 1.5) SELECT 1;
-- error: 42601
EXPLAIN (summary yes) SELECT 1;
-- error: 42601
EXPLAIN ("COSTS" off) SELECT 1;
-- error: 42601
EXPLAIN (analyze verbose) SELECT 1;
-- error: 42601
EXPLAIN (generic_plan) SELECT 1;

-- snippet: explain-option-format
-- error: 42601
EXPLAIN (format) SELECT 1;
-- error: 22023
EXPLAIN (format foo) SELECT 1;
-- error: 22023
EXPLAIN (format 'JSON') SELECT 1;
-- error: 22023
EXPLAIN (format 1) SELECT 1;

-- snippet: explain-options-that-need-analyze
-- error: 22023
EXPLAIN (timing) SELECT 1;
-- error: 22023
EXPLAIN (wal) SELECT 1;
-- error: 22023
EXPLAIN (analyze off, timing on) SELECT 1;

-- snippet: explain-syntax
-- error: 42601
EXPLAIN () SELECT 1;
-- error: 42601
EXPLAIN (analyze,) SELECT 1;
-- error: 42601
EXPLAIN (select, analyze) SELECT 1;
-- error: 42601
EXPLAIN VERBOSE ANALYZE SELECT 1;
-- error: 42601
EXPLAIN ANALYZE ANALYZE SELECT 1;
-- error: 42601
EXPLAIN EXPLAIN SELECT 1;
-- error: 42601
EXPLAIN (costs off) BEGIN;
-- error: 42601
EXPLAIN DROP TABLE t;

-- snippet: explain-statement-is-analysed-first
-- error: 42P01
EXPLAIN (foo) SELECT * FROM nowhere;
-- error: 42703
EXPLAIN (format json) SELECT nothing;

-- snippet: explain-execute
-- error: 26000
EXPLAIN EXECUTE nothing;
PREPARE one (INT) AS SELECT $1 + 1;
-- error: 42601
EXPLAIN EXECUTE one;
-- error: 42601
EXPLAIN (ANALYZE) EXECUTE one(1, 2);
-- error: 22012
EXPLAIN ANALYZE EXECUTE one(1 / 0);
DEALLOCATE one;

-- snippet: explain-analyze-has-effects
CREATE TABLE t (a INT PRIMARY KEY);
-- error: 23505
EXPLAIN ANALYZE INSERT INTO t VALUES (1), (1);
SELECT count(*) FROM t;
