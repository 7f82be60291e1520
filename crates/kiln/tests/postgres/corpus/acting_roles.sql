-- SET ROLE and SET SESSION AUTHORIZATION: with whose privileges statements run.
-- compare: messages

-- snippet: roles-that-are-acted-as
DROP ROLE IF EXISTS kiln_reader;
CREATE ROLE kiln_reader;
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_reader'; END $$;
INSERT INTO t VALUES (1, 'one');
SELECT current_user = session_user;
SET ROLE kiln_reader;
SELECT current_user, current_user = session_user, current_setting('role');
-- error: 42501
SELECT * FROM t;
-- error: 42501
INSERT INTO t VALUES (2, 'two');
-- error: 42501
DROP ROLE kiln_reader;
RESET ROLE;
SELECT current_user = session_user, current_setting('role');
GRANT SELECT ON t TO kiln_reader;
SET ROLE 'kiln_reader';
-- error: 42501
DELETE FROM t;
SET ROLE NONE;
DELETE FROM t;
-- error: 22023
SET ROLE kiln_nobody;
SHOW role;
REVOKE ALL ON t FROM kiln_reader;
DO $$ BEGIN EXECUTE 'REVOKE USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' FROM kiln_reader'; END $$;
DROP ROLE kiln_reader;

-- snippet: roles-of-a-session
DROP ROLE IF EXISTS kiln_first;
DROP ROLE IF EXISTS kiln_second;
CREATE ROLE kiln_first;
CREATE ROLE kiln_second;
SET SESSION AUTHORIZATION kiln_first;
SELECT current_user, session_user;
SHOW session_authorization;
SHOW is_superuser;
-- error: 42501
SET ROLE kiln_second;
SET ROLE kiln_first;
SELECT current_setting('role');
-- error: 42501
CREATE ROLE kiln_third;
SET SESSION AUTHORIZATION kiln_second;
SELECT current_user, session_user, current_setting('role');
RESET SESSION AUTHORIZATION;
SELECT current_user = session_user;
SET SESSION AUTHORIZATION 'kiln_first';
SELECT current_user;
SET SESSION AUTHORIZATION DEFAULT;
-- error: 22023
SET SESSION AUTHORIZATION kiln_nobody;
DROP ROLE kiln_first, kiln_second;

-- snippet: roles-go-with-the-block
DROP ROLE IF EXISTS kiln_reader;
CREATE ROLE kiln_reader;
BEGIN;
SET LOCAL ROLE kiln_reader;
SELECT current_user;
COMMIT;
SELECT current_user = session_user;
BEGIN;
SET ROLE kiln_reader;
SELECT current_user;
ROLLBACK;
SELECT current_user = session_user;
BEGIN;
SAVEPOINT a;
SET ROLE kiln_reader;
ROLLBACK TO a;
SELECT current_user = session_user;
SELECT set_config('role', 'kiln_reader', true);
SELECT current_user;
COMMIT;
SELECT current_user = session_user;
DROP ROLE kiln_reader;

-- snippet: roles-that-are-gone
DROP ROLE IF EXISTS kiln_reader;
CREATE ROLE kiln_reader;
SET ROLE kiln_reader;
RESET ALL;
SELECT current_user, current_user = session_user;
RESET ROLE;
SET SESSION AUTHORIZATION kiln_reader;
SET ROLE kiln_reader;
DISCARD ALL;
SELECT current_user = session_user;
DROP ROLE kiln_reader;
