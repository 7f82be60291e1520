-- Dates, times and numbers read by templates; parts of intervals; stretches of time; time zones.
-- compare: messages

-- snippet: to-date
SELECT to_date('05 Dec 2000', 'DD Mon YYYY'), to_date('20000131', 'YYYYMMDD'), to_date('2000-01-31', 'YYYY-MM-DD'), to_date('31/1/2000', 'DD/MM/YYYY'), to_date('1 January 2000', 'DD Month YYYY'), to_date('2000  JUN', 'YYYY MON'), to_date('2000/JUN', 'YYYY MON');
SELECT to_date('99', 'YY'), to_date('7', 'Y'), to_date('20', 'YY'), to_date('995', 'YYY'), to_date('2000-200', 'YYYY-DDD'), to_date('2000-05', 'YYYY-WW'), to_date('2006-42-4', 'IYYY-IW-ID'), to_date('2451187', 'J'), to_date('21', 'CC'), to_date('20 16', 'CC YY'), to_date('IV 2000', 'RM YYYY');
SELECT to_date('0044-03-15 BC', 'YYYY-MM-DD BC'), to_date('05', 'DD'), to_date('2,000-01-02', 'Y,YYY-MM-DD'), to_date('3rd 04 2005', 'DDth MM YYYY'), to_date('2000-01-31 23:00', 'YYYY-MM-DD HH24:MI'), to_date(NULL, 'YYYY'), to_date('2000', NULL);
SELECT to_date('12 2000 Monday', 'MM YYYY Day'), to_date('2000-02-2', 'YYYY-MM-W'), to_date('on 2000', '"on "YYYY'), to_date('  2000-01', 'YYYY-MM'), to_date('2000 3', 'YYYY Q');
-- error: 22008
SELECT to_date('2000-13-01', 'YYYY-MM-DD');
-- error: 22008
SELECT to_date('2001-02-29', 'YYYY-MM-DD');
-- error: 22007
SELECT to_date('x', 'YYYY');
-- error: 22007
SELECT to_date('2000 Foo', 'YYYY Mon');
SELECT to_date('20001', 'YYYYMM');
-- error: 22008
SELECT to_date('20050403', 'FMYYYYMMDD');
-- error: 22007
SELECT to_timestamp('2011 x12 x18', 'YYYYxMMxDD');
-- error: 22007
SELECT to_date('2000 2001', 'YYYY YYYY');
-- error: 22007
SELECT to_date('2000 12', 'YYYY IW');
-- error: 0A000
SELECT to_date('2000 UTC', 'YYYY TZ');

-- snippet: to-timestamp
SELECT to_timestamp('05 Dec 2000 10:11:12', 'DD Mon YYYY HH24:MI:SS'), to_timestamp('2000-01-31 01:02:03.456', 'YYYY-MM-DD HH24:MI:SS.MS'), to_timestamp('2000-01-31 01:02:03.123456', 'YYYY-MM-DD HH24:MI:SS.US'), to_timestamp('10:30 PM 2000', 'HH:MI AM YYYY'), to_timestamp('12:30 a.m. 2000', 'HH12:MI P.M. YYYY');
SELECT to_timestamp('2000-01-31 86399', 'YYYY-MM-DD SSSS'), to_timestamp('20000131123456', 'YYYYMMDDHH24MISS'), to_timestamp('2000-01-31 10:00 +02', 'YYYY-MM-DD HH24:MI TZH'), to_timestamp('2000-01-31 10:00 -0530', 'YYYY-MM-DD HH24:MI TZHTZM'), to_timestamp('12:1:2.5', 'HH24:MI:SS.FF1'), to_timestamp('0097/Feb/16 --> 08:14:30', 'YYYY/Mon/DD --> HH:MI:SS');
SELECT to_timestamp('2000-01-31T10:11:12', 'YYYY-MM-DD"T"HH24:MI:SS'), to_timestamp('15.5.2000', 'DD.MM.YYYY'), to_timestamp('2011-12-18 23:38:15', 'YYYY-MM-DD  HH24:MI:SS'), to_timestamp('2011   12  18', 'YYYY MM DD'), to_timestamp('2011x12x18', 'YYYYxMMxDD'), to_timestamp(0), to_timestamp('1.5', 'SS.MS');
SELECT pg_typeof(to_timestamp('2000', 'YYYY')), pg_typeof(to_date('2000', 'YYYY')), to_timestamp('2000 ', 'YYYY'), to_timestamp('2000 rest', 'YYYY');
-- error: 22007
SELECT to_timestamp('13:00 2000', 'HH12:MI YYYY');
-- error: 22008
SELECT to_timestamp('2000 25:00', 'YYYY HH24:MI');
-- error: 22008
SELECT to_timestamp('2000 10:70', 'YYYY HH24:MI');
-- error: 22007
SELECT to_timestamp('97/Feb', 'YYYY/DD');

-- snippet: to-number
SELECT to_number('12,454.8-', '99G999D9S'), to_number('-34,338,492', '99G999G999'), to_number('-34,338,492.654,878', '99G999G999D999G999'), to_number('<564646.654564>', '999999.999999PR'), to_number('0.00001-', '9.999999S'), to_number('5.01-', 'FM9.999999S'), to_number('5.01-', 'FM9.999999MI'), to_number('5 4 4 4 4 8 . 7 8', '9 9 9 9 9 9 . 9 9');
SELECT to_number('.01', 'FM9.99'), to_number('.0', '99999999.99999999'), to_number('0', '99.99'), to_number('.-01', 'S99.99'), to_number('.01-', '99.99S'), to_number(' . 0 1-', ' 9 9 . 9 9 S'), to_number('34,50', '999,99'), to_number('123,000', '999G'), to_number('123456', '999G999'), to_number('+12', 'S99'), to_number('12+', '99PL'), to_number('-12', 'SG99');
SELECT to_number('1234', '9999'), to_number('12345', '999'), to_number('1.23', '9'), to_number('$12.5', '"x"99.9'), to_number(NULL, '9'), pg_typeof(to_number('1', '9'));
-- error: 22P02
SELECT to_number('x', '99');
-- error: 22P02
SELECT to_number('', '99');

-- snippet: make-interval
SELECT make_interval(), make_interval(1, 2, 3, 4, 5, 6, 7.5), make_interval(1, 2), make_interval(days => 10), make_interval(hours => 2, secs => 1.5), make_interval(0, 1, weeks => 2), make_interval(mins => -90), make_interval(NULL, 1);
SELECT make_date(2000, 1, 31), make_time(1, 2, 3.5), make_timestamp(2000, 1, 31, 10, 11, 12.5), make_date(-44, 3, 15);
-- error: 22008
SELECT make_date(2000, 13, 1);

-- snippet: date-bin
SELECT date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01'), date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01 00:02:30'), date_bin('1 day 1 hour', timestamptz '2020-02-11 15:44:17+00', timestamptz '2001-01-01'), date_bin('5 min', timestamp '2020-02-01 01:01:01', timestamp '2020-02-01 00:02:30');
SELECT date_bin('1 hour', timestamp 'infinity', timestamp '2001-01-01'), date_bin(NULL, timestamp '2020-01-01', timestamp '2001-01-01'), date_bin('30 minutes', timestamp '2000-01-01 00:10', timestamp '2001-01-01');
-- error: 0A000
SELECT date_bin('1 month', timestamp '2020-02-11', timestamp '2001-01-01');
-- error: 22008
SELECT date_bin('0 days', timestamp '2020-02-11', timestamp '2001-01-01');
-- error: 22008
SELECT date_bin('-1 day', timestamp '2020-02-11', timestamp '2001-01-01');

-- snippet: ages
SELECT age(timestamp '2001-04-10', timestamp '1957-06-13'), age(timestamptz '2001-04-10', timestamptz '1957-06-13'), age(date '2001-04-10', date '2000-12-31'), age(timestamp '2000-01-01', timestamp '2000-03-31 12:00');

-- snippet: zones
SELECT timestamptz '2020-07-01 12:00+00' AT TIME ZONE 'Europe/Berlin', timestamptz '2020-01-01 12:00+00' AT TIME ZONE 'Europe/Berlin', timestamp '2020-07-01 12:00' AT TIME ZONE 'Europe/Berlin', timestamp '2020-01-01 12:00' AT TIME ZONE 'America/New_York', '2020-01-01 12:00' AT TIME ZONE 'Asia/Kolkata';
SELECT timestamp '2020-03-29 02:30' AT TIME ZONE 'Europe/Berlin', timestamp '2020-10-25 02:30' AT TIME ZONE 'Europe/Berlin', timestamptz '2020-10-25 00:30+00' AT TIME ZONE 'Europe/Berlin', timestamptz '2020-10-25 01:30+00' AT TIME ZONE 'europe/berlin', timestamp '2020-03-08 02:30' AT TIME ZONE 'America/New_York', timestamp '2020-11-01 01:30' AT TIME ZONE 'America/New_York';
SELECT timestamptz '2020-07-01 12:00+00' AT TIME ZONE 'UTC', timestamp '2020-07-01 12:00' AT TIME ZONE 'utc', timestamptz '2020-07-01 12:00+00' AT TIME ZONE 'EST', timestamptz '2020-07-01 12:00+00' AT TIME ZONE 'CEST', timestamptz '2020-07-01 12:00+00' AT TIME ZONE 'PDT', timestamptz '2020-07-01 12:00+00' AT TIME ZONE 'EST5EDT', timestamptz '2020-07-01 12:00+00' AT TIME ZONE INTERVAL '-08:00', timestamp '2020-07-01 12:00' AT TIME ZONE INTERVAL '05:30';
SELECT timezone('Europe/Paris', timestamptz '2020-07-01 12:00+00'), timezone('Asia/Tokyo', timestamp '2020-07-01 12:00'), date '2020-07-01' AT TIME ZONE 'Europe/Berlin', timestamptz 'infinity' AT TIME ZONE 'Europe/Berlin', timestamptz '2100-07-01 00:00+00' AT TIME ZONE 'Europe/Berlin', timestamptz '1850-01-01 00:00+00' AT TIME ZONE 'America/New_York';
SELECT pg_typeof(now() AT TIME ZONE 'Europe/Berlin'), pg_typeof(localtimestamp AT TIME ZONE 'Europe/Berlin'), NULL::timestamp AT TIME ZONE 'UTC', timestamptz '2020-01-01 00:00+00' AT TIME ZONE NULL;
SELECT x AT TIME ZONE z FROM (VALUES (timestamptz '2020-07-01 12:00+00', 'Europe/London'), (timestamptz '2020-01-01 12:00+00', 'Australia/Sydney')) v(x, z);
-- error: 22023
SELECT now() AT TIME ZONE 'Mars/Olympus';
-- error: 22023
SELECT now() AT TIME ZONE INTERVAL '1 month';

-- snippet: literals-with-zones
SELECT TIMESTAMPTZ '2024-07-01 12:00 Europe/Berlin', TIMESTAMPTZ '2024-01-01 12:00:00.5 America/New_York';
SELECT '2011-03-27 02:30:00 Europe/Moscow'::TIMESTAMPTZ, '2011-03-27 04:00:00 MSK'::TIMESTAMPTZ, 'Jul 4 2024 10:00 PST'::TIMESTAMPTZ;
SELECT '2024-10-27 02:30 Europe/Berlin'::TIMESTAMPTZ, '2024-03-31 02:30 Europe/Berlin'::TIMESTAMPTZ;
SELECT TIMESTAMP '2024-07-01 12:00 Europe/Berlin', DATE '2024-07-01 CET';
-- error: 22023
SELECT TIMESTAMPTZ '2024-07-01 12:00 America/Nowhere';
-- error: 22007
SELECT TIMESTAMPTZ '2024-07-01 12:00 nowhere';
-- error: 22007
SELECT TIMESTAMPTZ '2024-07-01 12:00 CET CET';
-- error: 22007
SELECT TIMESTAMPTZ '2024-07-01 12:00+02 CET';
SELECT CAST(c AS TIMESTAMPTZ) FROM (VALUES ('2024-07-01 12:00 cest'), ('2024-07-01 12:00 asia/tokyo')) AS v(c);

-- snippet: intervals-out-of-range
-- error: 22015
SELECT INTERVAL '2147483648 years';
-- error: 22015
SELECT INTERVAL '-2147483649 months';
-- error: 22015
SELECT INTERVAL '1 decade 2147483647 years';
-- error: 22015
SELECT INTERVAL '0.1 yrs 2147483647 months';
-- error: 22008
SELECT INTERVAL '178956970 years 8 months';
SELECT INTERVAL '178956970 years 7 months', INTERVAL '-178956970 years -8 months';
