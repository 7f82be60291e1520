-- NULL in expressions, comparisons, functions and storage.

-- snippet: null-arithmetic
SELECT 1 + NULL, NULL * 0, NULL::integer / 0, -NULL::integer, NULL || 'x';

-- snippet: null-comparison
SELECT NULL = NULL, 1 = NULL, 1 <> NULL, NULL < 1, 'a' > NULL;

-- snippet: null-is-null
SELECT NULL IS NULL, 1 IS NULL, NULL IS NOT NULL, 'x' IS NOT NULL, '' IS NULL;

-- snippet: null-is-distinct-from
SELECT NULL IS DISTINCT FROM NULL, 1 IS DISTINCT FROM NULL, 1 IS DISTINCT FROM 1, 1 IS NOT DISTINCT FROM 1, NULL IS NOT DISTINCT FROM NULL;

-- snippet: null-coalesce
SELECT coalesce(NULL, 5), coalesce(NULL, NULL, 'last'), coalesce(1, 1 / 0), coalesce(NULL::integer, NULL);

-- snippet: null-nullif
SELECT nullif(1, 1), nullif(1, 2), nullif('a', 'b'), nullif(NULL::integer, 1), nullif(3.0, 3);

-- snippet: null-functions-are-strict
SELECT abs(NULL::integer), length(NULL), upper(NULL), round(NULL::numeric, 2), substring(NULL::text, 1, 2), replace('abc', NULL, 'x');

-- snippet: null-concat-ignores-null
SELECT concat('a', NULL, 'b', 1), concat(NULL), 'a' || NULL || 'b';

-- snippet: null-in-list
SELECT 1 IN (1, NULL), 2 IN (1, NULL), 2 NOT IN (1, NULL), NULL IN (1, 2), 1 NOT IN (1, NULL);

-- snippet: null-between
SELECT 5 BETWEEN 1 AND NULL, 0 BETWEEN 1 AND NULL, NULL BETWEEN 1 AND 2, 5 NOT BETWEEN 6 AND NULL;

-- snippet: null-in-aggregates
CREATE TABLE t (v INTEGER);
SELECT count(*), count(v), sum(v), min(v), max(v), avg(v) FROM t;
INSERT INTO t VALUES (NULL), (NULL);
SELECT count(*), count(v), sum(v), min(v), max(v), avg(v) FROM t;
INSERT INTO t VALUES (3), (4);
SELECT count(*), count(v), sum(v), min(v), max(v), avg(v) FROM t;

-- snippet: null-of-every-type
CREATE TABLE t (a SMALLINT, b INTEGER, c BIGINT, d NUMERIC(5, 2), e DOUBLE PRECISION, f BOOLEAN, g CHAR(3), h VARCHAR(3), i TEXT, j BYTEA, k DATE, l TIMESTAMP, m TIMESTAMPTZ, n UUID);
INSERT INTO t (a) VALUES (NULL);
SELECT * FROM t;
SELECT count(*) FROM t WHERE a IS NULL AND d IS NULL AND g IS NULL AND j IS NULL AND k IS NULL AND n IS NULL;

-- snippet: null-set-and-clear
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'x'), (2, NULL);
UPDATE t SET v = NULL WHERE id = 1;
UPDATE t SET v = 'y' WHERE v IS NULL AND id = 2;
SELECT id, v FROM t ORDER BY id;

-- snippet: null-grouping
CREATE TABLE t (g INTEGER, v INTEGER);
INSERT INTO t VALUES (1, 1), (NULL, 2), (NULL, 3), (1, 4);
SELECT g, count(*), sum(v) FROM t GROUP BY g ORDER BY g;
SELECT DISTINCT g FROM t ORDER BY g;

-- snippet: null-case
SELECT CASE NULL WHEN NULL THEN 'equal' ELSE 'other' END, CASE WHEN NULL THEN 1 ELSE 2 END, CASE WHEN false THEN 1 END;

-- snippet: null-empty-string-is-not-null
CREATE TABLE t (v TEXT);
INSERT INTO t VALUES (''), (NULL);
SELECT count(*) FROM t WHERE v = '';
SELECT count(*) FROM t WHERE v IS NULL;
SELECT length(v) FROM t WHERE v IS NOT NULL;
