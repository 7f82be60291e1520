-- NUMERIC beyond what two words hold: numbers of many digits, NaN and the infinities.
-- compare: messages

-- snippet: literals-and-texts-of-many-digits
SELECT 1234567890123456789012345678901234567890, -1234567890123456789012345678901234567890.123456789012345678901234567890;
SELECT '1e50'::numeric, '-1.5e-70'::numeric, 1e-100, 1.5e60, '0.00000000000000000000000000000000000000000000000000000000000000000000001'::numeric;
SELECT 'NaN'::numeric, ' nan '::numeric, 'Infinity'::numeric, '-inf'::numeric, '+Infinity'::numeric;
-- error: 22P02
SELECT '-NaN'::numeric;
-- error: 22P02
SELECT 'infinit'::numeric;
-- error: 22003
SELECT '1e131072'::numeric;
-- error: 22003
SELECT '1e-16384'::numeric;
SELECT length(('1e131071'::numeric)::text), length(('1e-16383'::numeric)::text), scale('1e-16383'::numeric);

-- snippet: sums-and-products-that-grow
SELECT 99999999999999999999999999999999 + 1, 99999999999999999999999999999999999999 * 99999999999999999999999999999999999999;
SELECT 2596148429267413814265248164610047 + 1, 2596148429267413814265248164610048 - 1, -2596148429267413814265248164610048 + 1;
SELECT 1e40 - 1e40, 1e40 - (1e40 - 1), 1e40 * 0, 0.1e-60 * 0.1, 1e-40 * 1e40, 1e-70 + 1e70;
SELECT x * x, x + y, x - y, y * y * y FROM (VALUES (12345678901234567890.123456789, 0.000000000000000000000000000001234)) AS t (x, y);
SELECT -(1e40), abs(-1e40), sign(-1e40), 1e40 % 7, mod(-1e40, 0.3), div(1e40, 7);
SELECT 1 / 3e40, 1e40 / 3, 1e-40 / 7, 1e100 / 1e-100, 12345678901234567890123456789012345678901234567890 / 98765432109876543210.5;
-- error: 22012
SELECT 1e40 / 0;
-- error: 22012
SELECT 1e40 % 0.0;

-- snippet: nan-and-infinities-in-arithmetic
SELECT a, b, a + b, a - b, a * b FROM (VALUES ('NaN'::numeric), ('Infinity'), ('-Infinity'), (0), (-2.5), (1e40)) AS x (a), (VALUES ('NaN'::numeric), ('Infinity'), ('-Infinity'), (0), (3)) AS y (b) ORDER BY a, b;
SELECT a, b, a / b, a % b, div(a, b) FROM (VALUES ('NaN'::numeric), ('Infinity'), ('-Infinity'), (0), (-2.5), (1e40)) AS x (a), (VALUES ('NaN'::numeric), ('Infinity'), ('-Infinity'), (3)) AS y (b) ORDER BY a, b;
-- error: 22012
SELECT 'Infinity'::numeric / 0;
SELECT 'NaN'::numeric / 0, -'NaN'::numeric, -'Infinity'::numeric, abs('-Infinity'::numeric), sign('-Infinity'::numeric), sign('NaN'::numeric);
SELECT round('Infinity'::numeric, 2), trunc('NaN'::numeric, 2), ceil('-Infinity'::numeric), floor('NaN'::numeric), scale('NaN'::numeric), min_scale('Infinity'::numeric), trim_scale('-Infinity'::numeric);

-- snippet: comparisons
SELECT 'NaN'::numeric = 'NaN'::numeric, 'NaN'::numeric > 'Infinity'::numeric, 'Infinity'::numeric > 1e1000, '-Infinity'::numeric < -1e1000, 'NaN'::numeric IS DISTINCT FROM 'NaN'::numeric;
SELECT 1e40 > 1e39, 1e40 = 10000000000000000000000000000000000000000.000, 5.00000000000000000000000000000000000000000000000000000000000000000000 = 5, 1e-70 > 0, -1e-70 < 0, greatest(1e40, 3, 'NaN'), least(1e-70, 0, -1e40);
SELECT x FROM (VALUES (1e40), ('NaN'::numeric), (0), (-1e40), ('Infinity'), (NULL), ('-Infinity'), (1e-70), (-1e-70), (3)) AS t (x) ORDER BY x;
SELECT x FROM (VALUES (1e40), ('NaN'::numeric), (0), (-1e40), ('Infinity'), (NULL), ('-Infinity'), (1e-70), (-1e-70), (3)) AS t (x) ORDER BY x DESC NULLS LAST;
SELECT min(x), max(x), sum(x), count(DISTINCT x) FROM (VALUES (1e40), (1e40 + 0.0), (-1e40), (3), (3.00000000000000000000000000000000000000000000000000000000000000000000)) AS t (x);
SELECT x, count(*) FROM (VALUES (1e40), (10000000000000000000000000000000000000000), ('NaN'), ('NaN'), ('Infinity'), (7), (7)) AS t (x) GROUP BY x ORDER BY x;
SELECT DISTINCT x = x, x IN (1e40, 'NaN'), x BETWEEN 1e39 AND 'Infinity' FROM (VALUES (1e40), ('NaN'::numeric)) AS t (x) ORDER BY 1, 2, 3;

-- snippet: casts-of-long-numbers
SELECT (1e40)::text, '1e40'::numeric::double precision, 'NaN'::numeric::double precision, '-Infinity'::numeric::double precision, 'NaN'::double precision::numeric, '-Infinity'::double precision::numeric, 1e300::double precision::numeric;
SELECT '-Infinity'::real::numeric, 'NaN'::real::numeric, '1e30'::real::numeric, 1e30::numeric::real;
-- error: 22003
SELECT 1e40::integer;
-- error: 22003
SELECT (-1e40)::bigint;
-- error: 0A000
SELECT 'NaN'::numeric::integer;
-- error: 0A000
SELECT 'Infinity'::numeric::bigint;
-- error: 0A000
SELECT '-Infinity'::numeric::smallint;
-- error: 22003
SELECT 1e400::numeric::double precision;
-- error: 22003
SELECT 1e60::numeric::real;
-- error: 22003
SELECT 1e-60::numeric::real;
SELECT 123456.500000000000000000000000000000000000000000000000000000000000000000000::integer, 0.499999999999999999999999999999999999999999999999999999999999999999::bigint;
SELECT '12345678901234567890123456789012345678901234567890'::jsonb::numeric, to_json(1e40), to_jsonb('NaN'::numeric), jsonb_build_object('a', 1e-70), ARRAY[1e40, 'NaN', NULL, 1]::text, '{1e40,NaN,-Infinity,NULL}'::numeric[];

-- snippet: precision-and-scale-of-all-kinds
CREATE TABLE t (id INTEGER PRIMARY KEY, a NUMERIC(38, 10), b NUMERIC(100, 50), c NUMERIC(3, -2), d NUMERIC(3, 5), e NUMERIC(1000, 500), f NUMERIC(5, 2));
INSERT INTO t VALUES (1, 1234567890123456789012345678.12345678905, 1e49, 12345, 0.00123456, 1e499, 'NaN');
INSERT INTO t VALUES (2, -9999999999999999999999999999.9999999999, -1e-49, -99949, -0.009994, -1e-499, -999.99);
INSERT INTO t VALUES (3, 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', 0.005), (4, 0, 0, 0, 0, 0, 0), (5, NULL, NULL, NULL, NULL, NULL, NULL), (6, 5, 5, 550, 0.00005, 5, 5);
SELECT * FROM t ORDER BY id;
-- error: 22003
INSERT INTO t (id, a) VALUES (7, 1e28);
-- error: 22003
INSERT INTO t (id, c) VALUES (7, 99950);
-- error: 22003
INSERT INTO t (id, d) VALUES (7, 0.01);
-- error: 22003
INSERT INTO t (id, f) VALUES (7, 'Infinity');
-- error: 22003
SELECT '-Infinity'::numeric(1000, 0);
SELECT id, f + 1, f * 2, f = 'NaN', f > 1000 FROM t ORDER BY id;
UPDATE t SET f = 'NaN' WHERE id = 4;
UPDATE t SET f = 1 WHERE f = 'NaN' AND id = 1;
SELECT id, f FROM t ORDER BY f, id;
SELECT 12345::numeric(3, -2), 0.0012345::numeric(3, 5), 1e40::numeric(50, 3), 'NaN'::numeric(3, 1), 123.456::numeric(1000);
-- error: 22003
SELECT 1e50::numeric(50);
-- error: 22023
SELECT 1::numeric(1001);
-- error: 22023
SELECT 1::numeric(5, 1001);
-- error: 22023
SELECT 1::numeric(0);
SELECT attname, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, numeric_precision, numeric_scale FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;

-- snippet: keys-and-indexes
CREATE TABLE t (k NUMERIC PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1e40, 1), ('NaN', 2), ('Infinity', 3), ('-Infinity', 4), (0, 5), (-1e40, 6), (1e-70, 7), (-1e-70, 8), (1e40 + 1, 9), (3.50, 10), (1e100 + 7, 11), (-1e100 - 7, 12), (12345678901234567890123456789012345678901.5, 13);
-- error: 23505
INSERT INTO t VALUES (10000000000000000000000000000000000000000.000, 99);
-- error: 23505
INSERT INTO t VALUES ('NaN', 99);
-- error: 23505
INSERT INTO t VALUES (0.00000000000000000000000000000000000000000000000000000000000000000000000000, 99);
SELECT * FROM t ORDER BY k;
SELECT * FROM t ORDER BY k DESC;
SELECT v FROM t WHERE k = 1e40;
SELECT v FROM t WHERE k = 3.5000000000000000000000000000000000000000000000000000000000000000000000000;
SELECT v FROM t WHERE k = 'NaN';
SELECT v FROM t WHERE k > 1e40 ORDER BY k;
SELECT v FROM t WHERE k < -1 ORDER BY k;
SELECT v FROM t WHERE k >= '-Infinity' AND k <= 0 ORDER BY k;
SELECT v FROM t WHERE k BETWEEN 1e40 AND 1e41 ORDER BY k;
SELECT v FROM t WHERE k = repeat('7', 700)::numeric;
SELECT v FROM t WHERE k > repeat('7', 700)::numeric ORDER BY k;
SELECT v FROM t WHERE k > -repeat('7', 700)::numeric AND k < repeat('7', 700)::numeric ORDER BY k;
UPDATE t SET k = k + 1 WHERE k = 1e40 + 1;
UPDATE t SET v = v + 100 WHERE k = 'Infinity';
DELETE FROM t WHERE k = 1e100 + 7;
SELECT * FROM t ORDER BY k;

-- snippet: small-columns-met-by-long-numbers
CREATE TABLE t (k NUMERIC(9, 2) PRIMARY KEY, l NUMERIC(18, 4) UNIQUE);
INSERT INTO t VALUES (1.5, 1.5), (-2, -2), ('NaN', 'NaN'), (9999999.99, 99999999999999.9999);
SELECT k FROM t WHERE k = 1.500000000000000000000000000000000000000000000000000000000000000000000000000000;
SELECT k FROM t WHERE k = 1.500000000000000000000000000000000000000000000000000000000000000000000000000001;
SELECT k FROM t WHERE k = 1e40;
SELECT k FROM t WHERE k < 1e40 ORDER BY k;
SELECT k FROM t WHERE k > 1e40 ORDER BY k;
SELECT k FROM t WHERE k > -1e40 ORDER BY k;
SELECT k FROM t WHERE k > 1.499999999999999999999999999999999999999999999999999999999999999999999999999999 ORDER BY k;
SELECT k FROM t WHERE k <= 'Infinity' ORDER BY k;
SELECT k FROM t WHERE k > 'Infinity' ORDER BY k;
SELECT k FROM t WHERE k >= 'NaN' ORDER BY k;
SELECT k FROM t WHERE k < '-Infinity' ORDER BY k;
SELECT l FROM t WHERE l = 'NaN';
SELECT l FROM t WHERE l > 1 ORDER BY l DESC;
-- error: 23505
INSERT INTO t VALUES ('NaN', 1);
-- error: 23505
INSERT INTO t VALUES (7, 'NaN');

-- snippet: changes-of-long-numbers
CREATE TABLE t (id INTEGER PRIMARY KEY, x NUMERIC, y NUMERIC NOT NULL DEFAULT 1e50);
INSERT INTO t VALUES (1, 1), (2, 1e40), (3, NULL), (4, 'NaN');
UPDATE t SET x = x + 1e39, y = y - 1;
SELECT * FROM t ORDER BY id;
UPDATE t SET x = x * x, y = y + 1 WHERE id <= 2;
SELECT * FROM t ORDER BY id;
UPDATE t SET x = 2 WHERE id = 2;
DELETE FROM t WHERE x = 'NaN';
INSERT INTO t VALUES (2, 7) ON CONFLICT (id) DO UPDATE SET x = t.x + 1e45 + excluded.x RETURNING *;
SELECT * FROM t ORDER BY id;
SELECT sum(x), avg(x), min(y), max(y), count(x) FROM t;
CREATE INDEX ON t (x);
SELECT id FROM t WHERE x > 1e44 ORDER BY id;
ALTER TABLE t ALTER COLUMN y TYPE NUMERIC(60, 2);
SELECT id, y FROM t ORDER BY id;
-- error: 22003
ALTER TABLE t ALTER COLUMN y TYPE NUMERIC(30, 2);
TRUNCATE t;
INSERT INTO t SELECT g, 10::numeric ^ g FROM generate_series(30, 45) g;
SELECT id, x FROM t WHERE x > 1e40 ORDER BY x DESC LIMIT 3;

-- snippet: aggregates
SELECT sum(x), avg(x), variance(x), stddev(x), var_pop(x), stddev_pop(x) FROM (VALUES (1e20), (2e20), (4.5e20)) AS t (x);
SELECT sum(x), avg(x), min(x), max(x) FROM (VALUES (1e60), (2e-60), (-4.5e20)) AS t (x);
SELECT sum(x), avg(x), variance(x) FROM (VALUES (1), ('Infinity'::numeric)) AS t (x);
SELECT sum(x), avg(x), stddev(x) FROM (VALUES ('-Infinity'), ('Infinity'::numeric)) AS t (x);
SELECT sum(x), avg(x), max(x), min(x) FROM (VALUES (1), ('NaN'::numeric)) AS t (x);
SELECT sum(x) OVER (ORDER BY x) FROM (VALUES (1e40), (1), (1e-40)) AS t (x);
SELECT array_agg(x ORDER BY x), count(DISTINCT x) FROM (VALUES (1e40), ('NaN'::numeric), (1), (1e40)) AS t (x);

-- snippet: functions-of-long-numbers
SELECT sqrt(1e60), sqrt(2e60), sqrt(1e-70), sqrt('Infinity'::numeric), exp(100.0), exp(-100.0), exp('-Infinity'::numeric), ln(1e60), ln(1e-60);
SELECT log(1e60), log(2, 1e60), log(1e60, 2), power(2, 200), power(2.5, 77.5), power(1e-20, 3), 2 ^ 150.0, power(10, -50);
SELECT power('NaN'::numeric, 0), power(1, 'NaN'::numeric), power('-Infinity'::numeric, 3), power(0.5, 'Infinity'::numeric), power(0, 'Infinity'::numeric);
-- error: 2201F
SELECT power(0, '-Infinity'::numeric);
-- error: 2201F
SELECT power('-Infinity'::numeric, 4.5);
-- error: 2201F
SELECT sqrt('-Infinity'::numeric);
-- error: 2201E
SELECT ln('-Infinity'::numeric);
-- error: 2201E
SELECT ln(0::numeric);
-- error: 22003
SELECT exp(6000.0);
-- error: 22003
SELECT power(10, 131072);
SELECT gcd(1e40, 6e38), lcm(1e40, 7), gcd(4.5, 'NaN'::numeric), lcm(330, 462), lcm(2.25, 1.5), gcd(330.3::numeric, 462), lcm(0, 5);
SELECT factorial(0), factorial(25), factorial(50);
-- error: 22003
SELECT factorial(-1);
-- error: 22003
SELECT factorial(100000);
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(-1, 0, 10.0, 5), width_bucket(10, 0, 10.0, 5), width_bucket(1e40, 0, 2e40, 4), width_bucket(3.0, 10, 0, 5), width_bucket('Infinity'::numeric, 0, 1, 2), width_bucket(5.35::float8, 0.024, 10.06, 5);
-- error: 2201G
SELECT width_bucket(5.0, 3.0, 3.0, 2);
-- error: 2201G
SELECT width_bucket(5.0, 3.0, 4.0, 0);
-- error: 2201G
SELECT width_bucket('NaN', 3.0, 4.0, 888);
-- error: 2201G
SELECT width_bucket(2.0, 3.0, '-inf', 888);
SELECT round(1e40 + 0.55, 1), round(1234567890123456789012345678901234567890, -38), trunc(1e40 + 0.55, 1), ceil(1e40 + 0.5), floor(-1e40 - 0.5), round(5, 80), trim_scale(1e-3 + 0e-100), min_scale(5e-90), scale(1e-100);
SELECT x FROM generate_series(1e40, 1e40 + 2) AS g (x);
-- error: 22023
SELECT * FROM generate_series(1::numeric, 'Infinity');
-- error: 22023
SELECT * FROM generate_series('NaN'::numeric, 5);
SELECT to_char('NaN'::numeric, '999.99'), to_char('Infinity'::numeric, '999.99'), to_char('-Infinity'::numeric, '99999999999.9'), to_char('NaN'::numeric, 'S9999'), to_char('-Infinity'::numeric, 'FM999');
SELECT to_char(1e20, '999999999999999999999999.99'), to_number('1234567890123456789012345678901234567890', repeat('9', 40));

-- snippet: prepared-statements-and-procedures
CREATE TABLE t (id INTEGER PRIMARY KEY, x NUMERIC NOT NULL);
PREPARE put (INTEGER, NUMERIC) AS INSERT INTO t VALUES ($1, $2);
EXECUTE put (1, 1e60);
EXECUTE put (2, 'NaN');
EXECUTE put (3, '-Infinity');
PREPARE find (NUMERIC) AS SELECT id FROM t WHERE x = $1;
EXECUTE find (1e60);
EXECUTE find ('NaN');
CREATE FUNCTION twice(a NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$ DECLARE b NUMERIC := a; BEGIN b := b + a; RETURN b; END $$;
SELECT id, twice(x) FROM t ORDER BY id;
CREATE PROCEDURE add_to(k INTEGER, a NUMERIC) LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET x = x + a WHERE id = k; END $$;
CALL add_to(1, 1e59);
CALL add_to(3, 1e100);
CALL add_to(2, 1);
SELECT * FROM t ORDER BY id;
CREATE FUNCTION powers(n INTEGER) RETURNS NUMERIC LANGUAGE plpgsql AS $$ DECLARE p NUMERIC := 1; BEGIN FOR i IN 1..n LOOP p := p * 10 + i; END LOOP; RETURN p; END $$;
SELECT powers(50), powers(200);

-- snippet: arrays-in-columns
CREATE TABLE t (id INTEGER PRIMARY KEY, x NUMERIC[]);
INSERT INTO t VALUES (1, ARRAY[1, 1e40, NULL, 'NaN']), (2, ARRAY[1.5, 2]), (3, '{}'), (4, NULL);
SELECT id, x, x[2], array_length(x, 1), x = ARRAY[1.50, 2.0] FROM t ORDER BY id;
UPDATE t SET x = array_append(x, '-Infinity') WHERE id IN (1, 2);
SELECT id, x FROM t ORDER BY x;
SELECT unnest(x) FROM t WHERE id = 1;

-- snippet: more-digits-than-there-is-room-for
-- error: 22003
SELECT repeat('9', 200000)::numeric;
SELECT length((repeat('9', 131072)::numeric)::text), length((repeat('9', 131072)::numeric - 1)::text), md5((sqrt(repeat('7', 131072)::numeric))::text), log(2, repeat('7', 131072)::numeric);
-- error: 22003
SELECT repeat('9', 131072)::numeric + 1;
-- error: 22003
SELECT '1e131071'::numeric * 10;
-- error: 22003
SELECT 10::numeric ^ 200000;
-- error: 22003
SELECT power(2, 1e9);
-- error: 22003
SELECT power(2.5, 1e30);
-- error: 22003
SELECT exp(1e9);
SELECT exp(-1e9), power(0.5, 1e9), power(0.1, 1e30), power(-1, 1e30), power(-1, 1e30 + 1), 1 ^ 1e100;
SELECT '1e-16383'::numeric * '1e-16383'::numeric = 0, scale('1e-16383'::numeric * '1e-16383'::numeric), '0e100000'::numeric, '000000000000000000000000000000000000000000000000000000000001'::numeric;
-- error: 22003
SELECT '0e-20000'::numeric;
-- error: 22003
SELECT '1e2147483648'::numeric;
-- error: 22003
SELECT '1e-2147483648'::numeric;
-- error: 22003
SELECT '1e99999999999999999999'::numeric;
-- error: 22003
SELECT '1e1000000'::jsonb;
-- error: 22003
SELECT '{"a": [1, 1e131072]}'::jsonb;
SELECT length('1e131071'::jsonb::text), '1e-70'::jsonb, '12345678901234567890123456789012345678901234567890.5'::jsonb, '1e50'::jsonb > '1e49'::jsonb, ('1e50'::jsonb)::numeric + 1;
SELECT '1e400'::json, ('{"a": 1e60}'::json ->> 'a')::numeric, jsonb_agg(x), json_agg(x) FROM (VALUES (1e40), ('NaN'::numeric), ('Infinity')) AS t (x);
-- error: 22003
SELECT sum(repeat('9', 131072)::numeric) FROM generate_series(1, 3);
SELECT avg(repeat('9', 131071)::numeric) = repeat('9', 131071)::numeric FROM generate_series(1, 3);
SELECT to_char(1e300, repeat('9', 310)), to_char(-1e50, 'FM999'), to_number(repeat('8', 300), repeat('9', 300));
SELECT round(9e131071, -131071) = 1e131071 * 9, round(1e131071, -131072), scale(round(1.5, 5000)), round(1e100, 2000000000) = 1e100, trunc(1e-100, -2000000000), round(5e99, -100), round(4e99, -100), round(1e40, -2147483648);
SELECT round(2.5::numeric, 20), trunc('1e-16383'::numeric, 16383) = 0, mod(1e131071, 3), div(1e131071, 1e131070), gcd(1e131071, 1e131070) = 1e131070;
-- error: 22P02
SELECT '1e'::numeric;
-- error: 22P02
SELECT '1e5.5'::numeric;
-- error: 22P02
SELECT ''::numeric;
-- error: 22P02
SELECT '+-1'::numeric;
SELECT 1e40::text || 'x', format('%s', 1e40), concat(1e40, 'NaN'::numeric), quote_literal(1e40), coalesce(NULL, 1e40), nullif(1e40, 1e40), CASE WHEN 1e40 > 1 THEN 1e-40 ELSE 2 END;
SELECT array_position(ARRAY[1, 1e40, 'NaN'], 'NaN'::numeric), 1e40 = ANY (ARRAY[1, 1e40]), array_remove(ARRAY[1, 1e40, 2], 1e40), ARRAY[1e40] || 5, ARRAY[1, 1e40] @> ARRAY[1e40], ARRAY[1e40, 'NaN'] < ARRAY['NaN'::numeric, 1];
SELECT x, lag(x) OVER w, first_value(x) OVER w, rank() OVER w, ntile(2) OVER w FROM (VALUES (1e40), ('NaN'::numeric), (-1e40), ('Infinity')) AS t (x) WINDOW w AS (ORDER BY x);
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x), bool_and(x > 1e39), string_agg(x::text, ',' ORDER BY x) FROM (VALUES (1e40), (1e41), (1e41)) AS t (x);
SELECT x FROM (VALUES (1e40), ('NaN'::numeric)) AS t (x) UNION SELECT x FROM (VALUES (10000000000000000000000000000000000000000.00), ('NaN'::numeric), (1)) AS t (x) ORDER BY x;
SELECT a.x, b.x FROM (VALUES (1e40), ('NaN'::numeric), (2)) AS a (x) JOIN (VALUES (10000000000000000000000000000000000000000.00), ('NaN'::numeric), (3)) AS b (x) ON a.x = b.x ORDER BY 1;
