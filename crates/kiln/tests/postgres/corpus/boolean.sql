-- BOOLEAN and three-valued logic.

-- snippet: boolean-literals
SELECT true, false, TRUE, NULL::boolean;

-- snippet: boolean-and-truth-table
SELECT true AND true, true AND false, false AND false, true AND NULL, false AND NULL, NULL::boolean AND NULL;

-- snippet: boolean-or-truth-table
SELECT true OR true, true OR false, false OR false, true OR NULL, false OR NULL, NULL::boolean OR NULL;

-- snippet: boolean-not
SELECT NOT true, NOT false, NOT NULL::boolean, NOT (1 > 2), NOT 1 = 2;

-- snippet: boolean-precedence
SELECT true OR false AND false, NOT false AND false, (true OR false) AND false, NOT (true AND false);

-- snippet: boolean-from-text
SELECT 't'::boolean, 'true'::boolean, 'yes'::boolean, 'on'::boolean, '1'::boolean, 'f'::boolean, 'no'::boolean, 'off'::boolean, '0'::boolean, ' TRUE '::boolean;
-- error: 22P02
SELECT 'maybe'::boolean;

-- snippet: boolean-casts
SELECT true::text, false::text, true::integer, false::integer, 1::boolean, 0::boolean, 5::boolean;

-- snippet: boolean-is-tests
SELECT true IS TRUE, NULL::boolean IS TRUE, false IS NOT TRUE, NULL::boolean IS NOT FALSE, NULL::boolean IS UNKNOWN, true IS NOT UNKNOWN;

-- snippet: boolean-comparison-order
SELECT false < true, true > false, true = true, true <> NULL;

-- snippet: boolean-column-in-where
CREATE TABLE t (id INTEGER PRIMARY KEY, open BOOLEAN);
INSERT INTO t VALUES (1, true), (2, false), (3, NULL), (4, 'yes');
SELECT id FROM t WHERE open ORDER BY id;
SELECT id FROM t WHERE NOT open ORDER BY id;
SELECT id FROM t WHERE open IS NULL ORDER BY id;
SELECT id FROM t WHERE open = false ORDER BY id;
SELECT id, open FROM t ORDER BY open, id;

-- snippet: boolean-where-null-excludes
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 5), (2, NULL), (3, 7);
SELECT id FROM t WHERE v > 5 OR v <= 5 ORDER BY id;
SELECT id FROM t WHERE NOT (v = 5) ORDER BY id;
SELECT id FROM t WHERE v = NULL;

-- snippet: boolean-type-required
-- error: 42804
SELECT 1 AND true;
-- error: 42804
SELECT NOT 5;
-- error: 42804
SELECT 1 WHERE 1;

-- snippet: boolean-expression-as-value
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 2), (2, 2), (3, NULL);
SELECT a, a < b AS less, a = b AS same, b IS NULL AS missing FROM t ORDER BY a;
