-- DOUBLE PRECISION: output, arithmetic, overflow, casts.

-- snippet: double-output
SELECT 1.5::double precision, 0.1::double precision, 100::double precision, (1.0 / 3)::double precision, 1e20::double precision, 1e15::double precision, 123456789012345680::double precision;

-- snippet: double-small-output
SELECT 0.0001::double precision, 0.00001::double precision, 1e-7::double precision, 5e-324::double precision;

-- snippet: double-sum-of-tenths
SELECT 0.1::double precision + 0.2::double precision, 0.1::double precision * 3;

-- snippet: double-arithmetic
SELECT 7::double precision / 2, 1::double precision / 3, 2.5::double precision * 4, 1::double precision - 0.9::double precision;

-- snippet: double-division-by-zero
-- error: 22012
SELECT 1::double precision / 0;
-- error: 22012
SELECT 0::double precision / 0::double precision;

-- snippet: double-overflow
-- error: 22003
SELECT 1e308::double precision * 10;
-- error: 22003
SELECT '1e400'::double precision;

-- snippet: double-special-values
SELECT 'NaN'::double precision, 'Infinity'::double precision, '-Infinity'::double precision;
SELECT 'NaN'::double precision = 'NaN'::double precision, 'NaN'::double precision > 1e300::double precision, 'Infinity'::double precision > 1;

-- snippet: double-round-half-even
SELECT round(2.5::double precision), round(3.5::double precision), round(-2.5::double precision), round(0.5::double precision);

-- snippet: double-cast-to-integer-half-even
SELECT 2.5::double precision::integer, 3.5::double precision::integer, (-2.5)::double precision::integer, 2.6::double precision::bigint;
-- error: 22003
SELECT 3e9::double precision::integer;

-- snippet: double-functions
SELECT floor(-1.5::double precision), ceil(1.2::double precision), trunc(-1.7::double precision), abs(-2.25::double precision), sqrt(2::double precision), sign(-4.2::double precision);

-- snippet: double-from-text
SELECT '3.25'::double precision, '-1e-3'::double precision, ' 7 '::double precision;
-- error: 22P02
SELECT 'x'::double precision;

-- snippet: double-to-numeric
SELECT 0.1::double precision::numeric, 1234567.891::double precision::numeric(10, 2), 1e3::double precision::numeric;

-- snippet: double-column
CREATE TABLE t (id INTEGER PRIMARY KEY, v DOUBLE PRECISION);
INSERT INTO t VALUES (1, 1.25), (2, 3), (3, NULL), (4, -0.5), (5, 1e100);
SELECT id, v, v * 2 FROM t ORDER BY v;
SELECT sum(v), min(v), max(v), count(v) FROM t WHERE id < 5;

-- snippet: double-negative-zero
SELECT '-0'::double precision, '-0'::double precision = 0::double precision;

-- snippet: double-compare-with-numeric
SELECT 0.5::double precision = 0.5, 0.1::double precision < 0.2, 1::double precision = 1;

-- snippet: double-float-synonyms
CREATE TABLE t (a FLOAT, b FLOAT8, c FLOAT(53));
INSERT INTO t VALUES (0.1, 0.2, 0.3);
SELECT a, b, c FROM t;

-- snippet: double-nan-and-signs
SELECT 'NaN'::double precision / 0, sign('NaN'::double precision), sign(-0.0::double precision), sign(-2.5::double precision);
-- error: 22012
SELECT 1::double precision / 0;

-- snippet: trigonometry
SELECT asin(0.5), acos(0.5), asin(-1), acos(-1), asin('NaN'), acos('NaN');
SELECT sinh(1), cosh(1), tanh(1), asinh(1), acosh(2), atanh(0.5), sinh('Infinity'), cosh('-Infinity'), tanh('Infinity'), asinh('-Infinity'), acosh('Infinity'), atanh(1), atanh(-1), sinh(1000);
SELECT cot(1), cot(0.5), cotd(30), cotd(45), cotd(135), cotd(90), cotd(0);
SELECT x, sind(x), cosd(x), tand(x) FROM generate_series(-360, 360, 30) x;
SELECT x, sind(x), cosd(x), tand(x), cotd(x) FROM (VALUES (1.0::float8), (44.5), (45), (59.9), (89), (123.4), (271.3), (1e6)) v(x);
SELECT x, asind(x), acosd(x), atand(x) FROM (VALUES (-1::float8), (-0.5), (-0.1), (0), (0.1), (0.25), (0.5), (0.75), (1)) v(x);
SELECT atan2d(1, 1), atan2d(-1, 0), atan2d(0.5, 2), atand('Infinity'), sind('NaN');
-- error: 22003
SELECT asin(1.1);
-- error: 22003
SELECT acos(-2);
-- error: 22003
SELECT acosh(0.5);
-- error: 22003
SELECT atanh(2);
-- error: 22003
SELECT sind('Infinity');
-- error: 22003
SELECT asind(2);
-- error: 22003
SELECT cot('Infinity');
