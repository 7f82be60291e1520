-- TIME WITHOUT TIME ZONE.
-- compare: messages

-- snippet: time-values
SELECT '04:05:06.789'::time, '04:05'::time, '040506'::time, '0405'::time, '04:05 AM'::time, '04:05 PM'::time, '12:00 AM'::time, '24:00'::time, 'allballs'::time, '04:05:06+02'::time, '2003-04-12 04:05:06'::time, ' 1:2:3 '::time, '23:59:60'::time;
SELECT time '10:00', time without time zone '10:00:00.000001', CAST('10:00' AS TIME), '10:00:00.1234567'::time, TIME '00:00';
SELECT pg_typeof('10:00'::time), pg_typeof(time '10:00' + interval '1 hour'), pg_typeof(time '10:00' - time '09:00'), pg_typeof(date '2020-01-01' + time '10:00');
-- error: 22007
SELECT 'x'::time;
-- error: 22007
SELECT ''::time;
-- error: 22008
SELECT '25:00'::time;
-- error: 22008
SELECT '24:00:01'::time;
-- error: 22008
SELECT '10:60'::time;
-- error: 22007
SELECT '2020-01-01'::time;

-- snippet: time-arithmetic
SELECT time '10:00' + interval '1 hour', time '23:00' + interval '2 hours', time '01:00' - interval '2 hours', interval '30 minutes' + time '10:00', time '10:00' + interval '1 day 1 minute', time '24:00' + interval '0';
SELECT time '10:00' - time '08:30', time '08:30' - time '10:00', date '2020-01-31' + time '10:00', time '10:00' + date '2020-01-31', timestamp '2020-01-31' + time '10:00', timestamp '2020-01-31 12:00' - time '10:00';
SELECT time '10:00' * 2, time '10:00' / 4, interval '1 day' - time '10:00', time '10:00' - '09:00', timestamptz '2020-01-31 00:00+00' + time '10:00';
SELECT time '10:00' < time '11:00', time '10:00' = '10:00', time '10:00' BETWEEN '09:00' AND '11:00', time '24:00' > time '00:00', greatest(time '10:00', '11:00'), least(time '10:00', NULL), time '10:00' IN ('10:00', '11:00');
SELECT time '10:00' + '1 hour', '1 hour' + time '10:00';
-- error: 22007
SELECT time '10:00' - '1 hour';
-- error: 42883
SELECT time '10:00' + 1;
-- error: 42725
SELECT time '10:00' + time '10:00';
-- error: 42883
SELECT time '10:00' = timestamp '2020-01-01';
-- error: 42883
SELECT time '10:00' = 1;

-- snippet: time-casts
SELECT timestamp '2020-01-31 10:11:12.5'::time, timestamptz '2020-01-31 10:11:12.5+02'::time, interval '1 day 25:00'::time, interval '-1 hour'::time, time '10:00'::interval, time '10:00'::text, '10:00'::text::time, 'infinity'::timestamp::time IS NULL;
SELECT now()::time = localtime, localtime IS NOT NULL, pg_typeof(localtime), pg_typeof(now()::time), (now()::time)::text = localtime::text;
SELECT ARRAY[time '10:00', '11:00'], '{10:00,NULL}'::time[], ('{10:00}'::time[])[1], ARRAY['10:00']::time[], to_json(time '10:00'), time '10:00' || ' h', array_to_string(ARRAY[time '10:00'], ',');
SELECT coalesce(NULL::time, '10:00'), nullif(time '10:00', '10:00'), CASE WHEN true THEN time '10:00' END;
-- error: 42846
SELECT time '10:00'::date;
-- error: 42846
SELECT time '10:00'::timestamp;
-- error: 42846
SELECT date '2020-01-01'::time;
-- error: 42846
SELECT time '10:00'::int;

-- snippet: time-functions
SELECT extract(hour FROM time '10:11:12.5'), extract(minute FROM time '10:11:12.5'), extract(second FROM time '10:11:12.5'), extract(epoch FROM time '10:11:12.5'), extract(milliseconds FROM time '10:11:12.5'), extract(microseconds FROM time '10:11:12.5');
SELECT date_part('hour', time '10:11:12.5'), date_part('second', time '10:11:12.5'), date_part('epoch', time '10:11:12.5'), date_trunc('hour', time '10:11:12.5'), make_time(8, 15, 23.5), make_time(24, 0, 0);
SELECT to_char(time '15:04:05.678', 'HH24:MI:SS.MS HH12 AM am a.m. SSSS US FF2'), to_char(time '00:00', 'HH:MI FMHH24'), to_char(interval '1 year 2 mons 3 days 30:04:05', 'YYYY-MM-DD HH24:MI:SS'), to_char(interval '-1 hour 5 minutes', 'HH24:MI:SS'), to_char(localtime, 'HH24') = to_char(now(), 'HH24');
-- error: 22007
SELECT to_char(time '10:00', 'Month');
-- error: 0A000
SELECT extract(year FROM time '10:00');
-- error: 0A000
SELECT extract(day FROM time '10:00');
-- error: 22023
SELECT extract(nosuch FROM time '10:00');
-- error: 22008
SELECT make_time(25, 0, 0);
-- error: 22008
SELECT make_time(10, 60, 0);

-- snippet: time-columns
CREATE TABLE t (id INTEGER PRIMARY KEY, a TIME, b TIME WITHOUT TIME ZONE NOT NULL DEFAULT '09:00', CONSTRAINT one UNIQUE (a));
INSERT INTO t VALUES (1, '10:00', '11:00'), (2, '08:30:00.5', DEFAULT), (3, NULL, '24:00');
INSERT INTO t (id, a) VALUES (4, timestamp '2020-01-01 12:34:56'), (5, '00:00'), (6, interval '7 hours');
SELECT * FROM t ORDER BY a, id;
SELECT id FROM t WHERE a = '08:30:00.5';
SELECT id FROM t WHERE a >= '08:00' AND a < '12:00' ORDER BY a;
SELECT min(a), max(b), count(a) FROM t;
SELECT b, count(*) FROM t GROUP BY b ORDER BY b;
UPDATE t SET a = a + interval '1 hour' WHERE id = 1 RETURNING a, b - a;
UPDATE t SET b = a WHERE a IS NOT NULL;
SELECT id, a, lag(a) OVER (ORDER BY a) FROM t ORDER BY a NULLS FIRST;
SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.b ORDER BY 1, 2;
-- error: 23505
INSERT INTO t VALUES (7, '00:00');
-- error: 22007
INSERT INTO t VALUES (7, 'noon');
-- error: 22008
INSERT INTO t VALUES (7, '25:00');
-- error: 42804
INSERT INTO t VALUES (7, date '2020-01-01');
-- error: 42804
INSERT INTO t VALUES (7, 5);
DELETE FROM t WHERE a > '12:00' RETURNING id;
CREATE TABLE k (x TIME PRIMARY KEY, y INTEGER);
INSERT INTO k SELECT time '00:00' + i * interval '1 hour', i FROM generate_series(0, 23) i;
SELECT y FROM k WHERE x = '05:00';
SELECT y FROM k WHERE x BETWEEN '20:30' AND '22:00' ORDER BY x DESC;
SELECT count(*) FROM k WHERE x < localtime OR x >= localtime;
CREATE INDEX i ON k (y, x);
CREATE FUNCTION open_at(t TIME, d INTERVAL DEFAULT '1 hour') RETURNS TIME LANGUAGE plpgsql AS $$ BEGIN RETURN t + d; END $$;
SELECT open_at('10:00', '2 hours'), open_at(time '23:30', '1 hour');
ALTER TABLE t DROP CONSTRAINT one;
ALTER TABLE t ALTER a TYPE INTERVAL;
SELECT id, a FROM t ORDER BY id;
ALTER TABLE t ALTER b TYPE TEXT, ADD c TIME[] DEFAULT '{10:00}';
SELECT * FROM t ORDER BY id;
SELECT column_name, data_type, udt_name, datetime_precision FROM information_schema.columns WHERE table_name = 'k' ORDER BY ordinal_position;
SELECT attname, format_type(atttypid, atttypmod), attlen FROM pg_attribute WHERE attrelid = 'k'::regclass AND attnum > 0 ORDER BY attnum;
SELECT 'time'::regtype, 'time without time zone'::regtype, 'time'::regtype::oid, '_time'::regtype;

-- snippet: intervals-are-justified
SELECT justify_hours(INTERVAL '27 hours'), justify_hours(INTERVAL '1 day -25 hours'), justify_days(INTERVAL '35 days 3 hours'), justify_days(INTERVAL '1 mon -31 days');
SELECT justify_interval(INTERVAL '1 mon -1 hour'), justify_interval(INTERVAL '-1 mon 1 hour'), justify_interval(INTERVAL '400 days 50:00:00'), justify_interval(INTERVAL '-2 days 30 hours');
SELECT justify_interval(i), justify_days(i), justify_hours(i) FROM (VALUES (INTERVAL '65 days -23:59:59.5'), (INTERVAL '-1 year 3 months 90 days'), (INTERVAL '0')) AS v(i);
-- error: 22008
SELECT justify_days(INTERVAL '2147483647 months 30 days');
-- error: 22008
SELECT justify_interval(INTERVAL '-2147483648 months -30 days -24:00:00');

-- snippet: moments-that-pass
SELECT 'today'::date = current_date, date 'tomorrow' - date 'yesterday', ' ToDay '::date = current_date;
SELECT 'now'::timestamptz = now(), 'now'::date = current_date, 'now'::timestamp = localtimestamp, 'now'::time = localtime;
SELECT 'today'::timestamp = date_trunc('day', localtimestamp), timestamptz 'tomorrow' - timestamptz 'today';
CREATE TABLE visits (day DATE, at TIMESTAMPTZ);
INSERT INTO visits VALUES ('today', 'now'), ('yesterday', 'yesterday'), ('tomorrow', 'tomorrow');
SELECT count(*) FROM visits WHERE day = 'today';
SELECT count(*) FROM visits WHERE at >= 'tomorrow' AND day > 'today';
DELETE FROM visits WHERE day < 'today';
SELECT day - current_date FROM visits ORDER BY 1;
