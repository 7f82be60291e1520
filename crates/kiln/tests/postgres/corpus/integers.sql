-- Integer arithmetic, overflow, casts between the integer types.

-- snippet: integer-basic-operators
SELECT 7 + 3, 7 - 3, 7 * 3, 7 / 3, 7 % 3;
SELECT -7 / 3, -7 % 3, 7 / -3, 7 % -3;

-- snippet: integer-precedence
SELECT 2 + 3 * 4, (2 + 3) * 4, 2 - 3 - 4, 100 / 10 / 2, -2 * -3;

-- snippet: integer-unary-minus
SELECT - 5, + 5, - (-5), -(2 + 3);

-- snippet: integer-division-by-zero
-- error: 22012
SELECT 1 / 0;
-- error: 22012
SELECT 1 % 0;

-- snippet: integer-add-overflow
SELECT 2147483646 + 1;
-- error: 22003
SELECT 2147483647 + 1;
-- error: 22003
SELECT -2147483647 - 2;

-- snippet: integer-multiply-overflow
-- error: 22003
SELECT 65536 * 65536;
SELECT 65536::bigint * 65536;

-- snippet: bigint-overflow
SELECT 9223372036854775806 + 1;
-- error: 22003
SELECT 9223372036854775807 + 1;
-- error: 22003
SELECT (-9223372036854775807) - 2;
-- error: 22003
SELECT 4611686018427387904 * 2;

-- snippet: smallint-overflow
-- error: 22003
SELECT 32767::smallint + 1::smallint;
-- error: 22003
SELECT 200::smallint * 200::smallint;
SELECT 32767::smallint + 1;

-- snippet: integer-minimum-divided-by-minus-one
-- error: 22003
SELECT (-2147483648)::integer / (-1);
SELECT (-2147483648)::integer % (-1);
-- error: 22003
SELECT (-9223372036854775808)::bigint / (-1);

-- snippet: integer-column-range
CREATE TABLE t (s SMALLINT, i INTEGER, b BIGINT);
INSERT INTO t VALUES (32767, 2147483647, 9223372036854775807);
INSERT INTO t VALUES (-32768, -2147483648, -9223372036854775808);
-- error: 22003
INSERT INTO t VALUES (32768, 0, 0);
-- error: 22003
INSERT INTO t VALUES (0, 2147483648, 0);
-- error: 22003
INSERT INTO t VALUES (0, 0, 9223372036854775808);
SELECT s, i, b FROM t ORDER BY s;

-- snippet: integer-column-arithmetic-keeps-type
CREATE TABLE t (s SMALLINT, i INTEGER, b BIGINT);
INSERT INTO t VALUES (30000, 2000000000, 9000000000000000000);
SELECT s + i, i + b FROM t WHERE s + 1 = 30001;
-- error: 22003
SELECT s + s FROM t;
-- error: 22003
SELECT i + i FROM t;
-- error: 22003
SELECT b + b FROM t;

-- snippet: integer-from-text
SELECT '42'::integer, ' 42 '::integer, '-42'::bigint, '+7'::smallint;
-- error: 22P02
SELECT 'forty'::integer;
-- error: 22P02
SELECT ''::integer;
-- error: 22P02
SELECT '1.5'::integer;
-- error: 22003
SELECT '99999999999'::integer;

-- snippet: integer-cast-from-numeric-rounds-half-away
SELECT 0.5::numeric::integer, 1.5::numeric::integer, 2.5::numeric::integer, (-0.5)::numeric::integer, (-1.5)::numeric::integer;
SELECT 2.49::integer, 2.51::integer, CAST(99.5 AS bigint);

-- snippet: integer-cast-from-numeric-out-of-range
-- error: 22003
SELECT 2147483647.5::numeric::integer;
SELECT 2147483647.4::numeric::integer;
-- error: 22003
SELECT 40000::numeric::smallint;

-- snippet: integer-cast-between-widths
SELECT 70000::bigint::integer, 100::integer::smallint, 5::smallint::bigint;
-- error: 22003
SELECT 70000::smallint;
-- error: 22003
SELECT 3000000000::integer;

-- snippet: integer-literal-types
SELECT 2147483647 + 0, 2147483648 + 0, 9223372036854775808 + 0;

-- snippet: integer-abs-mod-sign
SELECT abs(-5), abs(5), mod(7, 3), mod(-7, 3), sign(-3), sign(0);
-- error: 22003
SELECT abs((-2147483648)::integer);

-- snippet: integer-comparisons
SELECT 1 < 2, 1 <= 1, 2 > 3, 2 >= 2, 1 = 1, 1 <> 2, 1 != 1;
SELECT 1::smallint = 1::bigint, 5 < 5.5, 3 = 3.0;

-- snippet: integer-power-is-double-or-numeric
SELECT power(2, 10), power(2, 3.0), 2 ^ 3;

-- snippet: integer-greatest-least
SELECT greatest(1, 5, 3), least(4, 2, 9), greatest(1, NULL, 2), least(NULL::integer, NULL);

-- snippet: integer-in-where-with-arithmetic
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
INSERT INTO t VALUES (1, 10), (2, 25), (3, 30), (4, -15);
SELECT id, v / 10, v % 10 FROM t WHERE v % 10 = 5 OR v % 10 = -5 ORDER BY id;
-- error: 22012
SELECT id FROM t WHERE v / (id - 3) > 0;

-- snippet: integer-to-text
SELECT 42::text, (-7)::text, CAST(9000000000 AS varchar), 12 || '' , 'n=' || 5;
