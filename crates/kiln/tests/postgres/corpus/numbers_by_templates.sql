-- to_char of numbers: templates of all patterns, chosen at random, and what they refuse.
-- compare: messages

-- snippet: templates-at-random
-- error: 42601
SELECT '[' || to_char((-0.1)::numeric, ',xPR9') || ']';
-- error: 42601
SELECT '[' || to_char((1234567.891)::float8, '99909PLMI9s') || ']';
SELECT '[' || to_char((2147483647)::int, 'GTH90L99') || ']';
SELECT '[' || to_char((485)::int, 'FM9') || ']';
SELECT '[' || to_char((0.1)::numeric, 'FM0') || ']';
SELECT '[' || to_char((0)::numeric, 'FM990999SG') || ']';
SELECT '[' || to_char((2147483647)::int, 'FM9THL') || ']';
SELECT '[' || to_char(('-Infinity')::numeric, '09') || ']';
SELECT '[' || to_char((485)::bigint, '00909') || ']';
-- error: 42601
SELECT '[' || to_char((-0.1)::numeric, 'GL9EEEEPR.9') || ']';
SELECT '[' || to_char((12)::int, 'D9999999EEEE') || ']';
SELECT '[' || to_char((12.345)::numeric, 'PR') || ']';
SELECT '[' || to_char((3999)::float8, 'G9TH') || ']';
SELECT '[' || to_char((4000)::numeric, ',999') || ']';
-- error: 42601
SELECT '[' || to_char((99.995)::numeric, '9PR990D') || ']';
SELECT '[' || to_char((1)::numeric, '990') || ']';
SELECT '[' || to_char((1234567.891)::float8, 'FM0999SV') || ']';
SELECT '[' || to_char((3999)::float8, '09THV9fm999') || ']';
SELECT '[' || to_char((1e20)::float8, 'MI') || ']';
-- error: 42601
SELECT '[' || to_char((0)::int, '0999EEEE9PL') || ']';
SELECT '[' || to_char((3)::int, '999.9999') || ']';
SELECT '[' || to_char((0.00123)::float8, '.9') || ']';
SELECT '[' || to_char((0)::numeric, '9,9') || ']';
SELECT '[' || to_char((5)::float8, 'G9FM90,') || ']';
SELECT '[' || to_char((0.00123)::real, 'v99rn') || ']';
SELECT '[' || to_char((-34338492.215397047)::float8, 'TH0') || ']';
SELECT '[' || to_char((-34338492.215397047)::float8, 'MID9SG') || ']';
SELECT '[' || to_char((1234567.891)::numeric, 'TH.909999TH') || ']';
-- error: 42601
SELECT '[' || to_char((1e20)::numeric, 'FMD9999DTHPR') || ']';
-- error: 42601
SELECT '[' || to_char((4000)::numeric, 'FM.DTH0990') || ']';
SELECT '[' || to_char((2147483647)::bigint, 'FMMI9L') || ']';
SELECT '[' || to_char((12.345)::numeric, 'PLG9') || ']';
SELECT '[' || to_char(('Infinity')::numeric, '9999') || ']';
SELECT '[' || to_char((0)::numeric, 'G') || ']';
SELECT '[' || to_char((4000)::float8, '99') || ']';
-- error: 22P02
SELECT '[' || to_char((0)::int, 'FMth') || ']';
SELECT '[' || to_char((0)::bigint, '9TH.9009') || ']';
SELECT '[' || to_char((4000)::numeric, '9') || ']';
-- error: 42601
SELECT '[' || to_char((2147483647)::int, '9 9PR.D') || ']';
SELECT '[' || to_char((3)::bigint, 'L99"a9"') || ']';
SELECT '[' || to_char((-34338492.215397047)::numeric, '90G9') || ']';
-- error: 42601
SELECT '[' || to_char((12.345)::float8, 'xD.FM99900') || ']';
-- error: 42601
SELECT '[' || to_char((5)::float8, '9EEEE00909') || ']';
SELECT '[' || to_char((-0.1)::numeric, '0999') || ']';
SELECT '[' || to_char((12.345)::numeric, '9rn9999thL') || ']';
SELECT '[' || to_char((0.1)::numeric, '9') || ']';
SELECT '[' || to_char(('-Infinity')::float8, 'FM99990') || ']';
SELECT '[' || to_char(('-Infinity')::float8, 'FM9\"SG') || ']';
SELECT '[' || to_char((1)::real, 'FM999') || ']';
SELECT '[' || to_char((13)::numeric, 'FMTHFM9.99,S') || ']';
SELECT '[' || to_char((1)::int, 'FM9999fm999') || ']';
-- error: 42601
SELECT '[' || to_char((1)::int, '0.FM9.9') || ']';
SELECT '[' || to_char((12.345)::numeric, '09') || ']';
SELECT '[' || to_char((1)::bigint, '9DPL') || ']';
-- error: 42601
SELECT '[' || to_char((1e20)::float8, 'V9.0th') || ']';
SELECT '[' || to_char((-0.004)::numeric, '99.') || ']';
SELECT '[' || to_char((5)::numeric, 'FMD9') || ']';
SELECT '[' || to_char((1)::numeric, '999') || ']';
SELECT '[' || to_char((100)::numeric, '999999G') || ']';
-- error: 42601
SELECT '[' || to_char((121)::numeric, 'SGPR999th') || ']';
SELECT '[' || to_char((0.00123)::numeric, 'THMI999') || ']';
SELECT '[' || to_char((1)::bigint, 'FM99MISG9.') || ']';
SELECT '[' || to_char((5)::float8, '0G') || ']';
SELECT '[' || to_char((1)::bigint, 'v') || ']';
-- error: 42601
SELECT '[' || to_char((-1)::int, 'EEEE9MI9') || ']';
SELECT '[' || to_char((100)::numeric, 'FM9') || ']';
SELECT '[' || to_char((-1)::bigint, 'FM,990mi9L9B') || ']';
SELECT '[' || to_char((12)::bigint, '9S99') || ']';
SELECT '[' || to_char((13)::numeric, 'FM99rnL99') || ']';
-- error: 42601
SELECT '[' || to_char((1)::bigint, '9PR90999') || ']';
-- error: 42601
SELECT '[' || to_char(('NaN')::float8, '9PL0PLPLD99.') || ']';
SELECT '[' || to_char((0)::bigint, 'FM,,') || ']';
SELECT '[' || to_char((-1)::int, 'MI09') || ']';
SELECT '[' || to_char((100)::numeric, '9th') || ']';
SELECT '[' || to_char((121)::numeric, '09.99x9PL') || ']';
-- error: 42601
SELECT '[' || to_char((-12.345)::numeric, 'FM9999PL999pr') || ']';
-- error: 42601
SELECT '[' || to_char((1)::real, 'FM9PR9EEEE99x90') || ']';
SELECT '[' || to_char((3999)::numeric, 'FMMI99') || ']';
SELECT '[' || to_char((1)::bigint, 'FM99') || ']';
SELECT '[' || to_char((1234567.891)::numeric, '0') || ']';
SELECT '[' || to_char((100000)::int, 'SGGG99') || ']';
SELECT '[' || to_char((3999)::numeric, 'FMFMS') || ']';
SELECT '[' || to_char((100)::numeric, '99') || ']';
SELECT '[' || to_char((1)::int, '99FMFMSG9.9') || ']';
SELECT '[' || to_char((2147483647)::bigint, '9') || ']';
SELECT '[' || to_char((-485)::bigint, 'FM9') || ']';
SELECT '[' || to_char((121)::numeric, '0x999') || ']';
SELECT '[' || to_char((-485)::int, '99G\"9Vv0') || ']';
-- error: 42601
SELECT '[' || to_char((485)::bigint, 'FMeeee.9') || ']';
SELECT '[' || to_char((2147483647)::int, 'SP999') || ']';
-- error: 42601
SELECT '[' || to_char(('Infinity')::numeric, '99v.9PR9') || ']';
SELECT '[' || to_char((1e20)::numeric, '9') || ']';
SELECT '[' || to_char((0.1)::float8, 'FM999') || ']';
SELECT '[' || to_char((-12.345)::real, 'FM.RN99') || ']';
SELECT '[' || to_char((-12.345)::numeric, '9') || ']';
SELECT '[' || to_char((-0.1)::float8, '9FMD9') || ']';
-- error: 42601
SELECT '[' || to_char(('NaN')::numeric, '9DC9v9FM9') || ']';
SELECT '[' || to_char((12)::real, 'FM9') || ']';
SELECT '[' || to_char((0.1)::numeric, '99.Gth99') || ']';
SELECT '[' || to_char((-1)::int, '9') || ']';
-- error: 42601
SELECT '[' || to_char((-0.004)::numeric, '09G.SGD') || ']';
-- error: 42601
SELECT '[' || to_char((0)::bigint, 'eeeeMI') || ']';
SELECT '[' || to_char((13)::real, 'FM90MIB9') || ']';
-- error: 42601
SELECT '[' || to_char((3)::bigint, 'GMI9L9S') || ']';
SELECT '[' || to_char((-0.004)::numeric, '9') || ']';
SELECT '[' || to_char((121)::numeric, '9.909999') || ']';
-- error: 42601
SELECT '[' || to_char((3999)::float8, ',9VPLeeee"a9"9G,') || ']';
SELECT '[' || to_char((100)::float8, '0.90 9GS9') || ']';
-- error: 42601
SELECT '[' || to_char((12)::numeric, 'th00.9GEEEE9') || ']';
SELECT '[' || to_char((-34338492.215397047)::numeric, '999') || ']';

-- snippet: templates-of-all-types
SELECT to_char(9.99, '9.9EEEE'), to_char(9.99::float8, '9.9EEEE'), to_char(0::numeric, '9.99EEEE'), to_char(0.00123, '9.9EEEE'), to_char(25, '9EEEE'), to_char(25::numeric, '9EEEE'), to_char(25::bigint, '9EEEE');
SELECT to_char('NaN'::numeric, '9.9EEEE'), to_char('NaN'::numeric, 'EEEE'), to_char('NaN'::float8, '9.9EEEE'), to_char(0.00999, '9EEEE'), to_char(99.5, 'EEEE');
SELECT to_char('NaN'::float8, 'RN'), to_char('NaN'::float8, '999.9'), to_char('-inf'::float8, '999999999.9'), to_char(1e20::float8, 'RN'), to_char(1999, 'FMRN'), to_char(1999, 'rn');
-- error: 0A000
SELECT to_char('NaN'::numeric, 'RN');
-- error: 22003
SELECT to_char(1e20, 'RN');
-- error: 22003
SELECT to_char(99999::bigint, '9V99999999999999999999');
-- error: 22003
SELECT to_char(1.5, '9V' || repeat('9', 200000));
SELECT length(to_char(1.5::numeric, '9' || repeat('9', 40000))), to_char(1.5::real, '9.99999999'), to_char(123456.7::real, '9999999.999'), to_char(123456789012345678::float8, '9999999999999999999.99');
SELECT to_char(0, 'FM999.99'), to_char(100::numeric, 'FM999.'), to_char(0::numeric, '9G999D9G9'), to_char(1234567, '9G999G999'), to_char(-1.5, 'SG9.9'), to_char(1.5, '9.9SG'), to_char(12, '99th'), to_char(-485, '999PR'), to_char(485, 'L999');
-- error: 42601
SELECT to_char(1.5, '9D9D9');
SELECT to_char(timestamptz '2026-01-01', 'tzh:tzm of TZH');

-- snippet: texts-that-are-no-times
-- error: 22007
SELECT '5.5 seconds 3 milliseconds'::interval;
-- error: 22007
SELECT '1:20:05 5 microseconds'::interval;
SELECT '5 seconds 3 milliseconds 2 microseconds'::interval;
-- error: 22007
SELECT date '1999-08-Jan';
-- error: 22007
SELECT timestamp '08-01-Jan 12:00';
SELECT date '08-Jan-1999', date '1999-Jan-08', date 'Jan-08-1999';

-- snippet: intervals-of-so-many-digits
SELECT interval(0) '1 day 01:23:45.6789', interval(2) '1 day 01:23:45.6789', interval(0) '1.6 s', interval(0) '-1.5 s';
SELECT '1.6 s'::interval(0), '1.25 s'::interval(1), cast('9.87654321' AS interval(3)), '{1.6 s,NULL}'::interval(0)[];
CREATE TABLE waits (id INT PRIMARY KEY, lasted INTERVAL(1) DEFAULT '1.26 s', all_of_them INTERVAL(0)[]);
INSERT INTO waits VALUES (1, '3.14159 s', '{1.5 s,2.4 s}'), (2, DEFAULT, NULL), (3, interval '1 day' / 7, ARRAY[interval '0.5 s']);
SELECT * FROM waits ORDER BY id;
UPDATE waits SET lasted = lasted / 3;
SELECT id, lasted FROM waits ORDER BY lasted, id;
SELECT column_name, data_type, datetime_precision FROM information_schema.columns WHERE table_name = 'waits' ORDER BY ordinal_position;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'waits'::regclass AND attnum > 0 ORDER BY attnum;

-- snippet: doubles-and-reals-out-of-range
-- error: 22003
SELECT exp(-1000::float8);
-- error: 22003
SELECT exp(x) FROM (VALUES (-1.2e200::float8)) AS v (x);
SELECT exp('-inf'::float8), exp('inf'::float8), power('-inf'::float8, -3), power(0::float8, 3);
-- error: 22003
SELECT power(10::float8, -400::float8);
-- error: 22003
SELECT '10e-70'::real;
-- error: 22003
SELECT '-10e70'::real;
-- error: 22003
SELECT '10e-70'::float8::real;
-- error: 22003
SELECT degrees(1e308::float8);
SELECT @ '1004.3'::real, abs('-1004.3'::real), pg_typeof(abs('1'::real)), abs(-1.5::float8);
SELECT quote_literal(E'a\\b'), quote_literal('it''s'), format('%L', E'a\\b');
