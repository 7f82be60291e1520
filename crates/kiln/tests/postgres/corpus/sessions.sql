-- Sessions that sleep, and that end the statements of others.
-- compare: messages

-- snippet: sleep
SELECT pg_sleep(0.01), pg_sleep('0.01'), pg_sleep(-1), pg_sleep(NULL), pg_sleep('NaN'), pg_sleep(1e-3::numeric), pg_sleep(0::smallint);
SELECT pg_sleep_for('10 milliseconds'), pg_sleep_for('-1 hour'), pg_sleep_for(NULL);
SELECT pg_sleep_until(now() + interval '10 ms'), pg_sleep_until(NULL);
SELECT pg_sleep_until('2020-01-01'), pg_sleep_until(current_date);
SELECT * FROM pg_sleep(0);
SELECT 1 AS a, pg_sleep(0);
SELECT * FROM pg_sleep(0) AS s, generate_series(1, 2) g;
SELECT g FROM (SELECT pg_sleep(0.01)) AS s, generate_series(1, 2) g;
PREPARE q (double precision, text) AS SELECT pg_sleep($1), $2;
EXECUTE q(0.01, 'x');
BEGIN;
SELECT pg_sleep(0.01);
COMMIT;
-- error: 42883
SELECT pg_sleep();
-- error: 42883
SELECT pg_sleep(1, 2);
-- error: 42883
SELECT pg_sleep(true);
-- error: 22P02
SELECT pg_sleep('x');
-- error: 42883
SELECT pg_sleep_for(5);
-- error: 22007
SELECT pg_sleep_for('x');
-- error: 22007
SELECT pg_sleep_until('x');

-- snippet: sleep-for-each-row
-- refused: pg_sleep for each row
SELECT pg_sleep(0) FROM generate_series(1, 2);
-- refused: argument of a function of the session
SELECT pg_sleep(g / 1000.0) FROM generate_series(1, 2) g;
-- refused: pg_sleep in CASE
SELECT CASE WHEN true THEN pg_sleep(0) END;
-- refused: pg_sleep within a function
DO $$ BEGIN PERFORM pg_sleep(0); END $$;

-- snippet: sleep-and-timeout
SET statement_timeout = 20;
-- error: 57014
SELECT pg_sleep(10);
BEGIN;
-- error: 57014
SELECT pg_sleep(10);
-- error: 25P02
SELECT 1;
ROLLBACK;

-- snippet: signals
SELECT pg_cancel_backend(99999999), pg_terminate_backend(99999999);
SELECT pg_terminate_backend(99999999, 10);
SELECT pg_cancel_backend(-5), pg_terminate_backend(0);
SELECT pg_cancel_backend(NULL), pg_terminate_backend(NULL), pg_terminate_backend(NULL, 5);
SELECT g, pg_cancel_backend(g) FROM generate_series(99999998, 99999999) g;
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'no such' AND pid <> pg_backend_pid();
SELECT count(*) FROM pg_stat_activity WHERE pid = pg_backend_pid() AND state = 'active';
-- error: 22003
SELECT pg_terminate_backend(99999999, -1);
-- error: 57014
SELECT pg_cancel_backend(pg_backend_pid());
-- error: 57014
SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = pg_backend_pid();
SELECT 1;
-- error: 22P02
SELECT pg_cancel_backend('x');
-- error: 42883
SELECT pg_cancel_backend();
-- error: 42883
SELECT pg_cancel_backend(1::bigint);
-- error: 42883
SELECT pg_terminate_backend(1, 2, 3);

-- snippet: time-zone
SET TIME ZONE 'UTC';
SHOW TIME ZONE;
SET TIME ZONE DEFAULT;
SHOW timezone;
SET TIME ZONE LOCAL;
SHOW timezone;
SET timezone TO 'Etc/UTC';
SET TIME ZONE 'Zulu';
SET TIME ZONE 'UCT';
SET TIME ZONE 'GMT';
SET TIME ZONE '+00';
SET TIME ZONE 0;
SELECT timestamptz '2026-07-01 12:00+02', timestamptz '2026-07-01 12:00'::text, '2026-07-01 12:00'::timestamp::timestamptz;
SET TIME ZONE INTERVAL '0' HOUR TO MINUTE;
SET TIME ZONE INTERVAL '-00:00' HOUR TO MINUTE;
SELECT timestamptz '2026-07-01 12:00+02', extract(timezone FROM timestamptz '2026-07-01 12:00+02');
RESET TIME ZONE;
SELECT set_config('TimeZone', 'UTC', false), current_setting('timezone');
-- error: 22023
SET TIME ZONE 'Europe/Nowhere';
-- error: 22023
SET timezone = 'nosuch';
-- error: 22023
SELECT set_config('timezone', 'Mars/Olympus', false);

-- snippet: settings-with-which-sessions-begin
DROP ROLE IF EXISTS kiln_app;
CREATE ROLE kiln_app LOGIN;
ALTER ROLE kiln_app SET timezone TO 'UTC';
ALTER ROLE kiln_app SET statement_timeout = '5s';
ALTER ROLE kiln_app SET search_path TO shop, public;
ALTER ROLE kiln_app SET default_transaction_isolation TO 'serializable';
ALTER ROLE kiln_app SET client_encoding TO 'utf8';
ALTER USER kiln_app SET app.name TO 'x y';
SELECT r.rolname, unnest(setconfig) AS c FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = setrole WHERE rolname = 'kiln_app' ORDER BY c;
ALTER ROLE kiln_app RESET statement_timeout;
ALTER ROLE kiln_app SET search_path TO DEFAULT;
SELECT unnest(setconfig) AS c FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = setrole WHERE rolname = 'kiln_app' ORDER BY c;
ALTER ROLE kiln_app RESET ALL;
SELECT count(*) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = setrole WHERE rolname = 'kiln_app';
-- error: 42704
ALTER ROLE kiln_app SET no_such_setting TO 1;
-- error: 22023
ALTER ROLE kiln_app SET statement_timeout TO 'soon';
-- error: 42704
ALTER ROLE kiln_nobody SET timezone TO 'UTC';
-- error: 42601
ALTER ROLE kiln_app SET LOCAL timezone TO 'UTC';
-- error: 3D000
ALTER DATABASE kiln_no_such_database SET timezone TO 'UTC';
-- error: 3D000
ALTER ROLE kiln_app IN DATABASE kiln_no_such_database SET timezone TO 'UTC';
SET ROLE kiln_app;
ALTER ROLE kiln_app SET timezone TO 'UTC';
-- error: 42501
ALTER ROLE ALL SET timezone TO 'UTC';
RESET ROLE;
ALTER ROLE kiln_app RESET timezone;
DROP ROLE kiln_app;
