-- The time zone of a session: what it is called, how times are read and written in it, and what
-- else depends on it.

-- snippet: time-zones-of-sessions
SHOW timezone;
SET timezone = 'europe/berlin';
SHOW timezone;
SELECT current_setting('TimeZone');
-- error: 22023
SET timezone TO 'Nowhere/City';
-- error: 22023
SET timezone = 'CEST';
SET timezone = 'EST';
SHOW timezone;
SET timezone = 5.5;
SHOW timezone;
SET timezone = -7;
SHOW timezone;
-- error: 22023
SET timezone = 400;
SET TIME ZONE INTERVAL '-03:30' HOUR TO MINUTE;
SHOW TIME ZONE;
SET TIME ZONE 'PST8PDT';
SHOW timezone;
SELECT '2024-07-01 12:00+00'::timestamptz;
SET TIME ZONE 'foo5bar';
SHOW timezone;
SELECT '2024-07-01 12:00+00'::timestamptz, '2024-01-01 12:00+00'::timestamptz;
SET TIME ZONE '<+02>-02';
SHOW timezone;
SET TIME ZONE '+05:30';
SHOW timezone;
SELECT to_char('2024-07-01 12:00+00'::timestamptz, 'HH24 TZ OF FMOF TZH TZM');
SELECT set_config('timezone', 'Asia/Kolkata', false);
SELECT '2024-07-01 12:00+00'::timestamptz;
BEGIN;
SET LOCAL timezone = 'Australia/Lord_Howe';
SELECT '2024-07-01 12:00+00'::timestamptz;
COMMIT;
SELECT '2024-07-01 12:00+00'::timestamptz;
BEGIN;
SET timezone = 'America/New_York';
SAVEPOINT a;
SET timezone = 'Europe/Berlin';
SELECT '2024-07-01 12:00+00'::timestamptz;
ROLLBACK TO a;
SELECT '2024-07-01 12:00+00'::timestamptz;
ROLLBACK;
SHOW timezone;
SET TIME ZONE 'UTC';
SHOW TIME ZONE;

-- snippet: times-in-time-zones
SET timezone = 'Europe/Berlin';
CREATE TABLE event (id INT PRIMARY KEY, at TIMESTAMPTZ, local TIMESTAMP, day DATE, note TEXT);
INSERT INTO event VALUES (1, '2024-07-01 12:00', '2024-07-01 12:00', '2024-07-01', NULL);
INSERT INTO event VALUES (2, TIMESTAMP '2024-01-01 00:30', TIMESTAMPTZ '2024-01-01 00:30+00', TIMESTAMPTZ '2023-12-31 23:30+00', TIMESTAMPTZ '2024-01-01 00:30+00');
SELECT * FROM event ORDER BY id;
SELECT id FROM event WHERE at = local ORDER BY id;
SELECT id FROM event WHERE at >= day ORDER BY id;
SET timezone = 'America/New_York';
SELECT * FROM event ORDER BY id;
SELECT id FROM event WHERE at = local ORDER BY id;
SELECT id FROM event WHERE at = '2024-07-01 06:00' ORDER BY id;
SELECT at::date, at::time, at::timestamp, extract(hour FROM at), date_trunc('day', at) FROM event ORDER BY id;
SELECT json_agg(at ORDER BY id), jsonb_agg(local ORDER BY id), array_agg(at ORDER BY id) FROM event;
SELECT row_to_json(event) FROM event ORDER BY id;
SELECT event::text FROM event ORDER BY id;
SELECT concat(at, ' ', id), format('%s', at), at || '' FROM event ORDER BY id;
SELECT string_agg(at::text, ',' ORDER BY id) FROM event;
SELECT array_to_string(array_agg(at ORDER BY id), ';') FROM event;
SELECT * FROM json_to_record('{"at": "2024-07-01 12:00"}') AS t (at TIMESTAMPTZ);
SELECT '(1,"2024-07-01 12:00","2024-07-01 12:00",2024-07-01,)'::event;
SELECT '{"2024-07-01 12:00","2024-01-01 12:00"}'::timestamptz[];
SELECT ARRAY['2024-07-01 12:00'::timestamp]::timestamptz[];
SELECT ARRAY['2024-07-01 12:00'::timestamptz]::date[];
SELECT current_date = now()::date, localtimestamp = now()::timestamp, localtime = now()::time, 'today'::timestamptz = current_date::timestamptz;
SELECT 'now'::timestamp = now()::timestamp, 'tomorrow'::timestamptz = (current_date + 1)::timestamptz;
SELECT generate_series('2024-03-09 12:00'::timestamptz, '2024-03-11 12:00', '1 day');
SELECT age('2024-07-01 00:00'::timestamptz, '2024-02-01'), '2024-03-11'::timestamptz - '2024-03-10'::timestamptz;
SELECT make_timestamptz(2024, 3, 10, 2, 30, 0), to_timestamp(0), to_timestamp('2024-07-01', 'YYYY-MM-DD');
SELECT '2024-03-10 02:30'::timestamptz, '2024-11-03 01:30'::timestamptz;
SELECT '2024-07-01 12:00 PDT'::timestamptz, '2024-07-01 12:00 Europe/Berlin'::timestamptz, '2024-07-01T12:00Z'::timestamptz;
SELECT '1880-01-01 00:00'::timestamptz, 'infinity'::timestamptz, 'epoch'::timestamptz;
CREATE FUNCTION shown(t TIMESTAMPTZ) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN t::text || ' ' || extract(hour FROM t) || ' ' || t::date; END $$;
CREATE FUNCTION hour_of(t TIMESTAMPTZ) RETURNS NUMERIC LANGUAGE sql AS $$ SELECT extract(hour FROM t) $$;
CREATE PROCEDURE note(n INT) LANGUAGE plpgsql AS $$ BEGIN UPDATE event SET note = at::text, day = at, local = at WHERE id = n; END $$;
SELECT shown('2024-07-01 12:00+00'), hour_of('2024-07-01 12:00+00');
CALL note(1);
SELECT note, day, local FROM event WHERE id = 1;
SET timezone = 'Asia/Kolkata';
SELECT shown('2024-07-01 22:00+00'), hour_of('2024-07-01 22:00+00');
CALL note(1);
SELECT note, day, local FROM event WHERE id = 1;
PREPARE p AS SELECT at, at::text, at::date FROM event WHERE at <> '2024-07-01 12:00' ORDER BY id;
EXECUTE p;
SET timezone = 'Europe/Berlin';
PREPARE q (TIMESTAMPTZ) AS SELECT $1, $1::text, $1::timestamp;
EXECUTE q ('2024-07-01 12:00');
SET timezone = 'America/New_York';
EXECUTE q ('2024-07-01 12:00');
CREATE VIEW days AS SELECT id, at::date AS day, at::text AS written FROM event;
SELECT * FROM days ORDER BY id;
SET timezone = 'Australia/Lord_Howe';
SELECT * FROM days ORDER BY id;
CREATE TABLE given (id INT PRIMARY KEY, day DATE DEFAULT ('2024-07-01 20:00+00'::timestamptz)::date, CHECK (day <> DATE '2024-07-03'));
INSERT INTO given VALUES (1);
SET timezone = 'America/New_York';
INSERT INTO given VALUES (2);
SELECT * FROM given ORDER BY id;
CREATE FUNCTION stamp() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN NEW.note := NEW.at::text; RETURN NEW; END $$;
CREATE TRIGGER stamped BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION stamp();
INSERT INTO event (id, at) VALUES (3, '2024-07-01 12:00');
SET timezone = 'Asia/Kolkata';
INSERT INTO event (id, at) VALUES (4, '2024-07-01 12:00');
SELECT id, at, note FROM event WHERE id > 2 ORDER BY id;
-- error: 42P17
CREATE INDEX i ON event ((at::date));
-- error: 42P17
CREATE INDEX i ON event ((at::text));
-- error: 42P17
CREATE INDEX i ON event ((date_trunc('day', at)));
-- error: 42P17
CREATE INDEX i ON event ((local::timestamptz));
-- error: 42P17
CREATE INDEX i ON event ((day::timestamptz));
-- error: 42P17
CREATE INDEX i ON event ((at + interval '1 day'));
-- error: 42P17
CREATE INDEX i ON event ((extract(hour FROM at)));
-- error: 42P17
CREATE INDEX i ON event (id) WHERE at > local;
-- error: 42P17
CREATE INDEX i ON event ((to_char(at, 'YYYY')));
-- error: 42P17
CREATE INDEX i ON event ((note::timestamptz));
CREATE INDEX i ON event ((at AT TIME ZONE 'UTC'));
-- error: 42P17
CREATE INDEX j ON event ((to_json(at)::text));
-- error: 42P17
CREATE TABLE g (a TIMESTAMPTZ, b DATE GENERATED ALWAYS AS (a::date) STORED);
CREATE TABLE g (a TIMESTAMP, b TIMESTAMPTZ GENERATED ALWAYS AS (a) STORED);
INSERT INTO g VALUES ('2024-07-01 12:00');
SELECT * FROM g;
SELECT CASE WHEN at = '2024-07-01 12:00' THEN 'same' ELSE 'other' END FROM event WHERE id = 4;
SELECT id FROM event WHERE at IN ('2024-07-01 12:00', '2024-01-01 05:00') ORDER BY id;
SELECT id FROM event WHERE at BETWEEN '2024-07-01 11:00' AND '2024-07-01 13:00' ORDER BY id;
SELECT coalesce(NULL, '2024-07-01 12:00'::timestamptz), nullif('2024-07-01 12:00'::timestamptz, '2024-07-01 12:00');
SELECT at FROM event UNION SELECT '2024-07-01 12:00' ORDER BY 1;
WITH w (t) AS (VALUES ('2024-07-01 12:00'::timestamptz), ('2024-01-01')) SELECT t, t::date FROM w;
SET TIME ZONE 'UTC';

-- snippet: gaps-and-overlaps
SET timezone = 'Europe/Berlin';
SELECT '2024-03-31 01:59:59'::timestamptz, TIMESTAMP '2024-03-31 01:59:59'::timestamptz, TIMESTAMP '2024-03-31 01:59:59'::timestamptz::timestamp, '2024-03-31 01:59:59'::timestamptz + INTERVAL '1 day', '2024-03-31 01:59:59'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-31 01:59:59'::timestamptz), date_trunc('hour', '2024-03-31 01:59:59'::timestamptz), extract(timezone FROM '2024-03-31 01:59:59'::timestamptz), to_char('2024-03-31 01:59:59'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-31 01:59:59'::timestamptz);
SELECT '2024-03-31 02:30'::timestamptz, TIMESTAMP '2024-03-31 02:30'::timestamptz, TIMESTAMP '2024-03-31 02:30'::timestamptz::timestamp, '2024-03-31 02:30'::timestamptz + INTERVAL '1 day', '2024-03-31 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-31 02:30'::timestamptz), date_trunc('hour', '2024-03-31 02:30'::timestamptz), extract(timezone FROM '2024-03-31 02:30'::timestamptz), to_char('2024-03-31 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-31 02:30'::timestamptz);
SELECT '2024-03-31 03:00'::timestamptz, TIMESTAMP '2024-03-31 03:00'::timestamptz, TIMESTAMP '2024-03-31 03:00'::timestamptz::timestamp, '2024-03-31 03:00'::timestamptz + INTERVAL '1 day', '2024-03-31 03:00'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-31 03:00'::timestamptz), date_trunc('hour', '2024-03-31 03:00'::timestamptz), extract(timezone FROM '2024-03-31 03:00'::timestamptz), to_char('2024-03-31 03:00'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-31 03:00'::timestamptz);
SELECT '2024-10-27 02:30'::timestamptz, TIMESTAMP '2024-10-27 02:30'::timestamptz, TIMESTAMP '2024-10-27 02:30'::timestamptz::timestamp, '2024-10-27 02:30'::timestamptz + INTERVAL '1 day', '2024-10-27 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-10-27 02:30'::timestamptz), date_trunc('hour', '2024-10-27 02:30'::timestamptz), extract(timezone FROM '2024-10-27 02:30'::timestamptz), to_char('2024-10-27 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-10-27 02:30'::timestamptz);
SELECT '2024-10-27 03:00'::timestamptz, TIMESTAMP '2024-10-27 03:00'::timestamptz, TIMESTAMP '2024-10-27 03:00'::timestamptz::timestamp, '2024-10-27 03:00'::timestamptz + INTERVAL '1 day', '2024-10-27 03:00'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-10-27 03:00'::timestamptz), date_trunc('hour', '2024-10-27 03:00'::timestamptz), extract(timezone FROM '2024-10-27 03:00'::timestamptz), to_char('2024-10-27 03:00'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-10-27 03:00'::timestamptz);
SET timezone = 'Australia/Lord_Howe';
SELECT '2024-10-06 02:15'::timestamptz, TIMESTAMP '2024-10-06 02:15'::timestamptz, TIMESTAMP '2024-10-06 02:15'::timestamptz::timestamp, '2024-10-06 02:15'::timestamptz + INTERVAL '1 day', '2024-10-06 02:15'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-10-06 02:15'::timestamptz), date_trunc('hour', '2024-10-06 02:15'::timestamptz), extract(timezone FROM '2024-10-06 02:15'::timestamptz), to_char('2024-10-06 02:15'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-10-06 02:15'::timestamptz);
SELECT '2024-04-07 01:45'::timestamptz, TIMESTAMP '2024-04-07 01:45'::timestamptz, TIMESTAMP '2024-04-07 01:45'::timestamptz::timestamp, '2024-04-07 01:45'::timestamptz + INTERVAL '1 day', '2024-04-07 01:45'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-04-07 01:45'::timestamptz), date_trunc('hour', '2024-04-07 01:45'::timestamptz), extract(timezone FROM '2024-04-07 01:45'::timestamptz), to_char('2024-04-07 01:45'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-04-07 01:45'::timestamptz);
SET timezone = 'America/New_York';
SELECT '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz::timestamp, '2024-03-10 02:30'::timestamptz + INTERVAL '1 day', '2024-03-10 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-10 02:30'::timestamptz), date_trunc('hour', '2024-03-10 02:30'::timestamptz), extract(timezone FROM '2024-03-10 02:30'::timestamptz), to_char('2024-03-10 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-10 02:30'::timestamptz);
SELECT '2024-11-03 01:30'::timestamptz, TIMESTAMP '2024-11-03 01:30'::timestamptz, TIMESTAMP '2024-11-03 01:30'::timestamptz::timestamp, '2024-11-03 01:30'::timestamptz + INTERVAL '1 day', '2024-11-03 01:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-11-03 01:30'::timestamptz), date_trunc('hour', '2024-11-03 01:30'::timestamptz), extract(timezone FROM '2024-11-03 01:30'::timestamptz), to_char('2024-11-03 01:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-11-03 01:30'::timestamptz);
SET timezone = 'Asia/Kolkata';
SELECT '1941-10-01 00:30'::timestamptz, TIMESTAMP '1941-10-01 00:30'::timestamptz, TIMESTAMP '1941-10-01 00:30'::timestamptz::timestamp, '1941-10-01 00:30'::timestamptz + INTERVAL '1 day', '1941-10-01 00:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '1941-10-01 00:30'::timestamptz), date_trunc('hour', '1941-10-01 00:30'::timestamptz), extract(timezone FROM '1941-10-01 00:30'::timestamptz), to_char('1941-10-01 00:30'::timestamptz, 'HH24:MI TZ OF'), to_json('1941-10-01 00:30'::timestamptz);
SELECT '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz::timestamp, '2024-03-10 02:30'::timestamptz + INTERVAL '1 day', '2024-03-10 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-10 02:30'::timestamptz), date_trunc('hour', '2024-03-10 02:30'::timestamptz), extract(timezone FROM '2024-03-10 02:30'::timestamptz), to_char('2024-03-10 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-10 02:30'::timestamptz);
SET timezone = 'PST8PDT';
SELECT '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz::timestamp, '2024-03-10 02:30'::timestamptz + INTERVAL '1 day', '2024-03-10 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-10 02:30'::timestamptz), date_trunc('hour', '2024-03-10 02:30'::timestamptz), extract(timezone FROM '2024-03-10 02:30'::timestamptz), to_char('2024-03-10 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-10 02:30'::timestamptz);
SELECT '2024-11-03 01:30'::timestamptz, TIMESTAMP '2024-11-03 01:30'::timestamptz, TIMESTAMP '2024-11-03 01:30'::timestamptz::timestamp, '2024-11-03 01:30'::timestamptz + INTERVAL '1 day', '2024-11-03 01:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-11-03 01:30'::timestamptz), date_trunc('hour', '2024-11-03 01:30'::timestamptz), extract(timezone FROM '2024-11-03 01:30'::timestamptz), to_char('2024-11-03 01:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-11-03 01:30'::timestamptz);
SET timezone = '<+05:30>-05:30';
SELECT '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz::timestamp, '2024-03-10 02:30'::timestamptz + INTERVAL '1 day', '2024-03-10 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-10 02:30'::timestamptz), date_trunc('hour', '2024-03-10 02:30'::timestamptz), extract(timezone FROM '2024-03-10 02:30'::timestamptz), to_char('2024-03-10 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-10 02:30'::timestamptz);
SET timezone = '-4.5';
SELECT '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz, TIMESTAMP '2024-03-10 02:30'::timestamptz::timestamp, '2024-03-10 02:30'::timestamptz + INTERVAL '1 day', '2024-03-10 02:30'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2024-03-10 02:30'::timestamptz), date_trunc('hour', '2024-03-10 02:30'::timestamptz), extract(timezone FROM '2024-03-10 02:30'::timestamptz), to_char('2024-03-10 02:30'::timestamptz, 'HH24:MI TZ OF'), to_json('2024-03-10 02:30'::timestamptz);
SET timezone = 'Pacific/Apia';
SELECT '2011-12-30 12:00'::timestamptz, TIMESTAMP '2011-12-30 12:00'::timestamptz, TIMESTAMP '2011-12-30 12:00'::timestamptz::timestamp, '2011-12-30 12:00'::timestamptz + INTERVAL '1 day', '2011-12-30 12:00'::timestamptz - INTERVAL '1 month 1 day 1 hour';
SELECT date_trunc('day', '2011-12-30 12:00'::timestamptz), date_trunc('hour', '2011-12-30 12:00'::timestamptz), extract(timezone FROM '2011-12-30 12:00'::timestamptz), to_char('2011-12-30 12:00'::timestamptz, 'HH24:MI TZ OF'), to_json('2011-12-30 12:00'::timestamptz);
SET timezone = 'UTC';

-- snippet: time-zones-in-definitions
CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMPTZ DEFAULT '2024-07-01 12:00', CHECK (a > '2000-01-01 00:00'));
CREATE VIEW late AS SELECT id FROM t WHERE a >= '2024-07-01 12:00';
CREATE INDEX ON t (id) WHERE a < '2024-07-01 12:00';
SET timezone = 'America/New_York';
INSERT INTO t (id) VALUES (1);
INSERT INTO t VALUES (2, '2024-07-01 08:00'), (3, '2024-07-01 07:59'), (4, '1999-12-31 19:00:01');
-- error: 23514
INSERT INTO t VALUES (5, '1999-12-31 19:00');
SELECT * FROM t ORDER BY id;
SELECT * FROM late ORDER BY id;
SET timezone = 'UTC';
SELECT * FROM t ORDER BY id;

-- snippet: a-default-without-its-zone
SET timezone = 'America/New_York';
-- refused: without its zone in a definition
CREATE TABLE t (a TIMESTAMPTZ DEFAULT '2024-07-01 12:00');
SET timezone = 'UTC';

-- snippet: a-view-without-its-zone
SET timezone = 'America/New_York';
-- refused: without its zone in a definition
CREATE VIEW v AS SELECT '2024-07-01 12:00'::timestamptz AS a;
SET timezone = 'UTC';

-- snippet: a-column-that-gets-a-zone
CREATE TABLE t (a TIMESTAMP);
INSERT INTO t VALUES ('2024-07-01 12:00');
SET timezone = 'America/New_York';
CREATE TABLE u (a TIMESTAMPTZ DEFAULT '2024-07-01 12:00+02', b DATE DEFAULT DATE '2024-07-01');
INSERT INTO u DEFAULT VALUES;
SELECT * FROM u;
-- refused: depends on the time zone
ALTER TABLE t ALTER COLUMN a TYPE TIMESTAMPTZ;
SET timezone = 'UTC';

-- snippet: digits-of-floating-point-numbers
SET extra_float_digits = 0;
SELECT 0.1::float8 + 0.2::float8, (0.1::float8 + 0.2::float8)::text, 1.1::real, 1e20::float8, 1.0::float8 / 3, 1e-5::float8, 123456789::real, 1e15::float8;
SELECT ARRAY[1.0::float8 / 3], to_json(1.0::float8 / 3), row_to_json(ROW(1.0::float8 / 3));
SET extra_float_digits = -15;
SELECT 1.0::float8 / 3, 123456::float8, 0::float8, 12345::real;
SET extra_float_digits = -5;
SELECT 1.0::float8 / 3, 123456::float8, 3.14159::real, 'NaN'::float8, '-Infinity'::float8;
SET extra_float_digits = 3;
SELECT 0.1::float8 + 0.2::float8;
-- error: 22023
SET extra_float_digits = 4;
RESET extra_float_digits;
