-- Membership in roles, and the privileges that new objects have.
-- compare: messages

-- snippet: members-do-what-their-roles-may-do
DROP ROLE IF EXISTS kiln_readers, kiln_staff, kiln_ann, kiln_bob;
CREATE ROLE kiln_readers;
CREATE ROLE kiln_staff IN ROLE kiln_readers;
CREATE ROLE kiln_ann;
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'one');
DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_readers, kiln_ann'; END $$;
GRANT SELECT ON t TO kiln_readers;
SET ROLE kiln_ann;
-- error: 42501
SELECT v FROM t WHERE id = 1 AND current_schema() IS NOT NULL;
RESET ROLE;
GRANT kiln_staff TO kiln_ann;
GRANT kiln_staff TO kiln_ann;
SET ROLE kiln_ann;
-- error: 42501
DELETE FROM t;
RESET ROLE;
SET ROLE kiln_staff;
SELECT v FROM t;
RESET ROLE;
SELECT pg_has_role('kiln_ann', 'kiln_readers', 'MEMBER'), pg_has_role('kiln_ann', 'kiln_staff', 'USAGE'), pg_has_role('kiln_readers', 'kiln_ann', 'MEMBER'), pg_has_role('kiln_ann', 'kiln_ann', 'usage'), pg_has_role('kiln_readers', 'member');
-- error: 42704
SELECT pg_has_role('kiln_nobody', 'kiln_ann', 'MEMBER');
-- error: 22023
SELECT pg_has_role('kiln_ann', 'kiln_ann', 'SELECT');
SELECT r.rolname, m.rolname, admin_option FROM pg_auth_members a JOIN pg_roles r ON r.oid = roleid JOIN pg_roles m ON m.oid = member WHERE r.rolname LIKE 'kiln\_%' ORDER BY 1, 2;
-- error: 0LP01
GRANT kiln_ann TO kiln_readers;
-- error: 0LP01
GRANT kiln_ann TO kiln_ann;
-- error: 42704
GRANT kiln_nosuch TO kiln_ann;
-- error: 42704
GRANT kiln_staff TO kiln_nosuch;
REVOKE kiln_staff FROM kiln_ann;
REVOKE kiln_staff FROM kiln_ann;
CREATE ROLE kiln_bob ROLE kiln_ann, kiln_staff;
SELECT r.rolname, m.rolname FROM pg_auth_members a JOIN pg_roles r ON r.oid = roleid JOIN pg_roles m ON m.oid = member WHERE r.rolname = 'kiln_bob' ORDER BY 1, 2;
ALTER GROUP kiln_bob DROP USER kiln_staff;
ALTER GROUP kiln_bob ADD USER kiln_staff;
REVOKE ALL ON t FROM kiln_readers;
DO $$ BEGIN EXECUTE 'REVOKE USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' FROM kiln_readers, kiln_ann'; END $$;
DROP ROLE kiln_readers, kiln_staff, kiln_ann, kiln_bob;
SELECT count(*) FROM pg_auth_members JOIN pg_roles ON pg_roles.oid = member WHERE rolname LIKE 'kiln\_%';

-- snippet: sessions-act-as-the-roles-of-their-role
DROP ROLE IF EXISTS kiln_group, kiln_ann;
CREATE ROLE kiln_group;
CREATE ROLE kiln_ann;
SET SESSION AUTHORIZATION kiln_ann;
-- error: 42501
SET ROLE kiln_group;
RESET SESSION AUTHORIZATION;
GRANT kiln_group TO kiln_ann;
SET SESSION AUTHORIZATION kiln_ann;
SET ROLE kiln_group;
SELECT current_user, session_user;
RESET SESSION AUTHORIZATION;
DROP ROLE kiln_group, kiln_ann;

-- snippet: privileges-for-new-objects
DROP ROLE IF EXISTS kiln_readers;
CREATE ROLE kiln_readers;
CREATE SCHEMA app;
GRANT USAGE ON SCHEMA app TO kiln_readers;
CREATE TABLE app.before (a INTEGER);
ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT SELECT, INSERT ON TABLES TO kiln_readers;
ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT USAGE ON SEQUENCES TO kiln_readers;
CREATE TABLE app.after (a SERIAL, b INTEGER);
CREATE VIEW app.seen AS SELECT b FROM app.after;
SELECT has_table_privilege('kiln_readers', 'app.before', 'SELECT'), has_table_privilege('kiln_readers', 'app.after', 'SELECT'), has_table_privilege('kiln_readers', 'app.after', 'UPDATE');
SET ROLE kiln_readers;
INSERT INTO app.after (b) VALUES (7);
SELECT * FROM app.after;
SELECT * FROM app.seen;
-- error: 42501
SELECT * FROM app.before;
-- error: 42501
DELETE FROM app.after;
RESET ROLE;
ALTER DEFAULT PRIVILEGES IN SCHEMA app REVOKE ALL ON TABLES FROM kiln_readers;
CREATE TABLE app.later (a INTEGER);
SELECT has_table_privilege('kiln_readers', 'app.later', 'SELECT');
-- error: 0LP01
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON TABLES TO kiln_readers;
-- error: 0LP01
ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT USAGE ON SCHEMAS TO kiln_readers;
-- error: 42704
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO kiln_nosuch;
-- error: 3F000
ALTER DEFAULT PRIVILEGES IN SCHEMA nosuch GRANT SELECT ON TABLES TO kiln_readers;
ALTER DEFAULT PRIVILEGES IN SCHEMA app REVOKE ALL ON SEQUENCES FROM kiln_readers;
DROP SCHEMA app CASCADE;
DROP ROLE kiln_readers;
