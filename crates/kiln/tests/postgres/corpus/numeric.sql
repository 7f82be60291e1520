-- Exact numerics: scale of results, rounding, division, casts, overflow of a declared precision.

-- snippet: numeric-addition-scale
SELECT 1.1 + 2.25, 1.50 + 1.50, 10 + 0.5, 1.000 - 1, 0.1 + 0.2;

-- snippet: numeric-multiplication-scale
SELECT 1.10 * 2.200, 3 * 1.5, 0.1 * 0.1, -1.5 * 2;

-- snippet: numeric-division-scale
SELECT 1.0 / 3, 10.0 / 4, 1 / 3.0, 2.00 / 3.000, 100.00 / 7;

-- snippet: numeric-division-small-and-large
SELECT 1 / 3000000.0, 12345678901234567890.0 / 7, 0.00001 / 3, 1e10 / 3;

-- snippet: numeric-division-exact-keeps-zeros
SELECT 10.0 / 2, 6.00 / 2, 1.0 / 8;

-- snippet: numeric-division-by-zero
-- error: 22012
SELECT 1.5 / 0;
-- error: 22012
SELECT 1.5 % 0.0;

-- snippet: numeric-modulo
SELECT 7.5 % 2, -7.5 % 2, 7.5 % -2, mod(10.25, 3);

-- snippet: numeric-column-rounds-to-scale
CREATE TABLE t (v NUMERIC(6, 2));
INSERT INTO t VALUES (1.005), (1.004), (-1.005), (2.5), (3), (9999.994);
SELECT v FROM t ORDER BY v;

-- snippet: numeric-column-overflow
CREATE TABLE t (v NUMERIC(4, 2));
INSERT INTO t VALUES (99.99);
-- error: 22003
INSERT INTO t VALUES (100);
-- error: 22003
INSERT INTO t VALUES (99.995);
INSERT INTO t VALUES (-99.994);
SELECT v FROM t ORDER BY v;

-- snippet: numeric-precision-without-scale-is-integer
CREATE TABLE t (v NUMERIC(3));
INSERT INTO t VALUES (1.5), (2.4), (999.4);
-- error: 22003
INSERT INTO t VALUES (999.5);
SELECT v FROM t ORDER BY v;

-- snippet: numeric-unconstrained-keeps-scale
CREATE TABLE t (id INTEGER, v NUMERIC);
INSERT INTO t VALUES (1, 1.50), (2, 1.5), (3, 100), (4, 0.000001), (5, 12345678901234567890.123456789);
SELECT id, v FROM t ORDER BY id;

-- snippet: numeric-equality-ignores-scale
SELECT 1.50 = 1.5, 2.0 = 2, 0.00 = 0, 1.10 > 1.1;

-- snippet: numeric-cast-with-typmod
SELECT 3.14159::numeric(4, 2), 2.675::numeric(5, 2), (-2.675)::numeric(5, 2), 7::numeric(5, 2), '12.345'::numeric(5, 1);
-- error: 22003
SELECT 123.45::numeric(4, 2);

-- snippet: numeric-cast-from-text
SELECT '1.23'::numeric, ' -4.50 '::numeric, '1e3'::numeric, '.5'::numeric, '5.'::numeric, '1.5e-3'::numeric;
-- error: 22P02
SELECT 'abc'::numeric;
-- error: 22P02
SELECT '1.2.3'::numeric;

-- snippet: numeric-literal-exponent
SELECT 1e3, 1.5e2, 1.5e-3, 12.50e1;

-- snippet: numeric-round
SELECT round(2.5), round(-2.5), round(3.5), round(2.4999), round(2.675, 2), round(-1.005, 2), round(1234.5, -2), round(5, 2);

-- snippet: numeric-trunc-floor-ceil
SELECT trunc(2.9), trunc(-2.9), trunc(2.789, 2), floor(2.9), floor(-2.1), ceil(2.1), ceil(-2.9), ceiling(3.0);

-- snippet: numeric-abs-sign
SELECT abs(-1.50), sign(-2.5), sign(0.0), -(-3.10);

-- snippet: numeric-zero-and-negative-zero
SELECT 0.00, -0.00, 0.0 * -1, 0.10 - 0.10;

-- snippet: numeric-mixed-with-integer
SELECT 5 / 2, 5 / 2.0, 5.0 / 2, 3 * 0.10, 10 - 0.01;

-- snippet: numeric-mixed-with-double-is-double
SELECT 1.5 + 1.5::double precision, 0.1::numeric + 0.2::double precision;

-- snippet: numeric-arithmetic-on-columns
CREATE TABLE item (id INTEGER PRIMARY KEY, price NUMERIC(5, 2), quantity SMALLINT, rate NUMERIC(4, 4));
INSERT INTO item VALUES (1, 19.99, 3, 0.0825), (2, 100.00, 1, 0.2), (3, 0.01, 7, 0.0001);
SELECT id, price * quantity, price * (1 + rate), price / quantity, price * quantity * (1 - rate) FROM item ORDER BY id;

-- snippet: numeric-update-rounds-on-store
CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(12, 2) NOT NULL);
INSERT INTO account VALUES (1, 100.00), (2, 0.01);
UPDATE account SET balance = balance * 1.0333;
SELECT id, balance FROM account ORDER BY id;
UPDATE account SET balance = balance / 3;
SELECT id, balance FROM account ORDER BY id;

-- snippet: numeric-update-overflow
CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(5, 2));
INSERT INTO account VALUES (1, 900.00);
-- error: 22003
UPDATE account SET balance = balance + 100;
UPDATE account SET balance = balance + 99.99;
SELECT balance FROM account;

-- snippet: numeric-large-products
SELECT 123456789012 * 98765432.10, 99999999999999.99 * 99999999999999.99;

-- snippet: numeric-many-digits
SELECT 12345678901234567890123456789 + 1, 0.1234567890123456789 * 10, 99999999999999999999 - 0.5;

-- snippet: numeric-to-text-and-integer
SELECT 1.50::text, 100::numeric::text, 3.7::integer, (-3.7)::bigint, 12.0::smallint;

-- snippet: numeric-power-sqrt
SELECT power(2.0, 3), sqrt(16.0), sqrt(2.0), power(1.5, 2);

-- snippet: numeric-as-key
CREATE TABLE t (k NUMERIC(8, 3) PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1.5, 'a'), (-2.125, 'b'), (1000, 'c');
-- error: 23505
INSERT INTO t VALUES (1.50, 'again');
SELECT k, v FROM t ORDER BY k;
SELECT v FROM t WHERE k = 1.5;

-- snippet: numeric-compare-with-integer-column
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
SELECT id FROM t WHERE v > 1.5 ORDER BY id;
SELECT id FROM t WHERE v = 2.0;
SELECT id FROM t WHERE id >= 1.5 AND id < 2.5;

-- snippet: numeric-declared-scale-zero-and-decimal-synonym
CREATE TABLE t (a DECIMAL(5, 1), b DECIMAL, c NUMERIC(10, 0));
INSERT INTO t VALUES (1.25, 1.25, 1.25), (1.35, 2, 2.5);
SELECT a, b, c FROM t ORDER BY a;
