-- Schemas, and the path along which names without one are looked for.
-- compare: messages

-- snippet: schemas-hold-relations
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY, v TEXT NOT NULL, CONSTRAINT short CHECK (length(v) < 5));
INSERT INTO t VALUES (1, 'outside');
INSERT INTO kiln_a.t VALUES (1, 'in'), (2, 'two');
SELECT * FROM t;
SELECT * FROM kiln_a.t ORDER BY id;
SELECT t.v, kiln_a.t.id FROM kiln_a.t ORDER BY id;
SELECT kiln_a.t.* FROM kiln_a.t ORDER BY id;
SELECT a.v, b.v FROM t a JOIN kiln_a.t b ON a.id = b.id;
UPDATE kiln_a.t SET v = 'x' WHERE t.id = 1 RETURNING t.v, kiln_a.t.id;
DELETE FROM kiln_a.t WHERE id = 2;
INSERT INTO kiln_a.t AS u VALUES (1, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v || u.v RETURNING *;
-- error: 23505
INSERT INTO kiln_a.t VALUES (1, 'z');
-- error: 23514
INSERT INTO kiln_a.t VALUES (3, 'longer');
-- error: 23502
INSERT INTO kiln_a.t VALUES (3, NULL);
-- error: 42P07
CREATE TABLE kiln_a.t (id INTEGER);
CREATE TABLE IF NOT EXISTS kiln_a.t (id INTEGER);
CREATE INDEX i ON kiln_a.t (v);
CREATE INDEX i ON t (v);
-- error: 42P07
CREATE INDEX i ON kiln_a.t (v);
-- error: 42601
CREATE INDEX kiln_a.j ON kiln_a.t (v);
TRUNCATE kiln_a.t;
SELECT count(*) FROM kiln_a.t;
SELECT count(*) FROM t;
DROP INDEX kiln_a.i;
-- error: 42704
DROP INDEX kiln_a.i;
DROP TABLE kiln_a.t;
-- error: 42P01
SELECT * FROM kiln_a.t;
SELECT count(*) FROM t;
DROP SCHEMA kiln_a;

-- snippet: schemas-are-missing
DROP SCHEMA IF EXISTS kiln_no CASCADE;
-- error: 3F000
CREATE TABLE kiln_no.t (id INTEGER);
-- error: 3F000
CREATE SEQUENCE kiln_no.s;
-- error: 3F000
CREATE VIEW kiln_no.v AS SELECT 1 AS a;
-- error: 42P01
SELECT * FROM kiln_no.t;
-- error: 42P01
INSERT INTO kiln_no.t VALUES (1);
-- error: 3F000
DROP TABLE kiln_no.t;
DROP TABLE IF EXISTS kiln_no.t;
DROP VIEW IF EXISTS kiln_no.t;
DROP SEQUENCE IF EXISTS kiln_no.t;
DROP INDEX IF EXISTS kiln_no.t;
-- error: 3F000
DROP SCHEMA kiln_no;
DROP SCHEMA IF EXISTS kiln_no;
-- error: 3F000
ALTER SCHEMA kiln_no RENAME TO kiln_other;
-- error: 3F000
COMMENT ON SCHEMA kiln_no IS 'x';
-- error: 3F000
SELECT nextval('kiln_no.s');
-- error: 3F000
SELECT 'kiln_no.t'::regclass;
-- error: 3F000
SELECT 'kiln_no'::regnamespace;
SELECT to_regclass('kiln_no.t');
-- error: 42501
CREATE TABLE pg_catalog.t (id INTEGER);
-- error: 42939
CREATE SCHEMA pg_mine;

-- snippet: schemas-are-created-and-dropped
DROP SCHEMA IF EXISTS kiln_a CASCADE;
DROP SCHEMA IF EXISTS kiln_b CASCADE;
CREATE SCHEMA kiln_a;
-- error: 42P06
CREATE SCHEMA kiln_a;
CREATE SCHEMA IF NOT EXISTS kiln_a;
CREATE SCHEMA kiln_b;
ALTER SCHEMA kiln_b RENAME TO kiln_c;
-- error: 3F000
ALTER SCHEMA kiln_b RENAME TO kiln_d;
-- error: 42P06
ALTER SCHEMA kiln_c RENAME TO kiln_a;
ALTER SCHEMA kiln_a OWNER TO CURRENT_USER;
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY);
-- error: 2BP01
DROP SCHEMA kiln_a;
-- error: 2BP01
DROP SCHEMA kiln_a RESTRICT;
CREATE TABLE outside (id INTEGER REFERENCES kiln_a.t);
CREATE VIEW kiln_c.v AS SELECT * FROM kiln_a.t;
CREATE SEQUENCE kiln_a.s;
DROP SCHEMA kiln_a CASCADE;
INSERT INTO outside VALUES (9);
-- error: 42P01
SELECT * FROM kiln_c.v;
DROP SCHEMA kiln_c;
-- error: 3F000
DROP SCHEMA kiln_a, kiln_c;

-- snippet: schemas-and-foreign-keys
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE TABLE kiln_a.p (id INTEGER PRIMARY KEY);
CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES kiln_a.p ON DELETE CASCADE);
CREATE TABLE kiln_a.c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES kiln_a.p (id) ON UPDATE CASCADE);
INSERT INTO kiln_a.p VALUES (1), (2), (3);
INSERT INTO c VALUES (1, 1), (2, 2);
INSERT INTO kiln_a.c VALUES (3, 3);
-- error: 23503
INSERT INTO kiln_a.c VALUES (4, 4);
-- error: 23503
DELETE FROM kiln_a.p WHERE id = 3;
DELETE FROM kiln_a.p WHERE id = 1;
UPDATE kiln_a.p SET id = 5 WHERE id = 3;
SELECT * FROM c ORDER BY id;
SELECT * FROM kiln_a.c ORDER BY id;
ALTER TABLE kiln_a.c ADD COLUMN q INTEGER;
ALTER TABLE kiln_a.c ADD CONSTRAINT f FOREIGN KEY (q) REFERENCES kiln_a.p;
UPDATE kiln_a.c SET q = 2;
-- error: 23503
UPDATE kiln_a.c SET q = 77;
ALTER TABLE kiln_a.c RENAME TO d;
SELECT * FROM kiln_a.d ORDER BY id;
-- error: 42P01
SELECT * FROM kiln_a.c;
ALTER TABLE kiln_a.d RENAME COLUMN q TO r;
ALTER TABLE kiln_a.d ALTER COLUMN r SET DEFAULT 2;
INSERT INTO kiln_a.d (id, p) VALUES (8, 5);
SELECT r FROM kiln_a.d WHERE id = 8;
-- error: 2BP01
DROP TABLE kiln_a.p;
DROP TABLE kiln_a.p CASCADE;
DROP SCHEMA kiln_a CASCADE;

-- snippet: schemas-and-sequences
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE SEQUENCE s START 100;
CREATE SEQUENCE kiln_a.s;
SELECT nextval('s'), nextval('kiln_a.s'), nextval('kiln_a.s'::regclass);
SELECT currval('kiln_a.s');
SELECT last_value FROM kiln_a.s;
SELECT setval('kiln_a.s', 40);
ALTER SEQUENCE kiln_a.s INCREMENT 5;
SELECT nextval('kiln_a.s');
CREATE TABLE kiln_a.t (id SERIAL PRIMARY KEY, k INTEGER GENERATED ALWAYS AS IDENTITY, v BIGINT DEFAULT nextval('kiln_a.s'));
INSERT INTO kiln_a.t DEFAULT VALUES;
INSERT INTO kiln_a.t DEFAULT VALUES RETURNING *;
SELECT pg_get_serial_sequence('kiln_a.t', 'id'), pg_get_serial_sequence('kiln_a.t', 'k');
SELECT nextval('kiln_a.t_id_seq');
SELECT column_name, column_default FROM information_schema.columns WHERE table_schema = 'kiln_a' AND column_name <> 'v' ORDER BY ordinal_position;
-- error: 2BP01
DROP SEQUENCE kiln_a.s;
DROP SEQUENCE kiln_a.s CASCADE;
INSERT INTO kiln_a.t DEFAULT VALUES RETURNING *;
-- error: 42P01
SELECT nextval('kiln_a.s');
DROP SCHEMA kiln_a CASCADE;

-- snippet: schemas-in-catalogs
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
COMMENT ON SCHEMA kiln_a IS 'mine';
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY, v TEXT UNIQUE);
CREATE VIEW kiln_a.v AS SELECT id FROM kiln_a.t;
CREATE SEQUENCE kiln_a.s;
COMMENT ON TABLE kiln_a.t IS 'a table';
COMMENT ON COLUMN kiln_a.t.v IS 'a column';
SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname LIKE 'kiln_a%';
SELECT relname, relkind FROM pg_class WHERE relnamespace = 'kiln_a'::regnamespace ORDER BY relname;
SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'kiln_a';
SELECT schemaname, viewname FROM pg_views WHERE schemaname = 'kiln_a';
SELECT schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'kiln_a' ORDER BY indexname;
SELECT schemaname, sequencename FROM pg_sequences WHERE schemaname = 'kiln_a';
SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 'kiln_a' ORDER BY table_name;
SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'kiln_a';
SELECT constraint_schema, constraint_name, table_schema, table_name FROM information_schema.table_constraints WHERE table_schema = 'kiln_a' AND constraint_type <> 'CHECK' ORDER BY constraint_name;
SELECT 'kiln_a.t'::regclass, 'kiln_a.t_pkey'::regclass, 'kiln_a.v'::regclass, 'kiln_a'::regnamespace, 'kiln_a.t'::regtype;
SELECT obj_description('kiln_a.t'::regclass), col_description('kiln_a.t'::regclass, 2);
SELECT pg_table_is_visible('kiln_a.t'::regclass);
-- error: 42P01
SELECT 't'::regclass;
SELECT conname, connamespace::regnamespace FROM pg_constraint WHERE conrelid = 'kiln_a.t'::regclass ORDER BY conname;
SELECT typnamespace::regnamespace FROM pg_type WHERE typname = 't' AND typnamespace = 'kiln_a'::regnamespace;
SELECT has_schema_privilege('kiln_a', 'usage'), has_schema_privilege('kiln_a', 'create');
SET search_path = kiln_a;
SELECT 'kiln_a.t'::regclass, 't'::regclass, pg_table_is_visible('t'::regclass);
SELECT current_schema(), current_schemas(false), current_schemas(true);
DROP SCHEMA kiln_a CASCADE;

-- snippet: search-path
DROP SCHEMA IF EXISTS kiln_a CASCADE;
DROP SCHEMA IF EXISTS kiln_b CASCADE;
CREATE SCHEMA kiln_a;
CREATE SCHEMA kiln_b;
CREATE TABLE kiln_a.t (v TEXT);
CREATE TABLE kiln_b.t (v TEXT);
INSERT INTO kiln_a.t VALUES ('of a');
INSERT INTO kiln_b.t VALUES ('of b');
PREPARE p AS SELECT v FROM kiln_a.t;
SET search_path = kiln_a, kiln_b;
SHOW search_path;
SELECT v FROM t;
SELECT t.v, kiln_a.t.v FROM t;
PREPARE q AS SELECT v FROM t;
EXECUTE q;
SET search_path TO kiln_b, kiln_a;
SELECT v FROM t;
EXECUTE q;
EXECUTE p;
CREATE TABLE u (id SERIAL PRIMARY KEY, up INTEGER REFERENCES u, v TEXT);
INSERT INTO u (v) VALUES ('one');
SELECT * FROM kiln_b.u;
CREATE VIEW w AS SELECT v FROM t;
CREATE INDEX u_v ON u (v);
SELECT current_schema(), current_schemas(false);
SET search_path = kiln_a;
SELECT * FROM kiln_b.w;
-- error: 42P01
SELECT * FROM u;
INSERT INTO kiln_b.u (v, up) VALUES ('two', 1) RETURNING id;
-- error: 23503
INSERT INTO kiln_b.u (v, up) VALUES ('three', 7);
SET search_path = kiln_nowhere, kiln_b;
SELECT count(*) FROM u;
CREATE TABLE new (a INTEGER);
SELECT count(*) FROM kiln_b.new;
SET search_path = kiln_nowhere;
SELECT current_schema();
-- error: 3F000
CREATE TABLE new (a INTEGER);
-- error: 42P01
SELECT * FROM t;
SET search_path = '';
SHOW search_path;
-- error: 42P01
SELECT * FROM t;
SELECT v FROM kiln_a.t;
SET search_path = "$user", kiln_a;
SHOW search_path;
SELECT v FROM t;
BEGIN;
SET LOCAL search_path = kiln_b;
SELECT v FROM t;
CREATE TABLE in_block (a INTEGER DEFAULT 4);
INSERT INTO in_block DEFAULT VALUES;
SELECT * FROM kiln_b.in_block;
COMMIT;
SELECT v FROM t;
SELECT * FROM kiln_b.in_block;
SELECT set_config('search_path', 'kiln_b, kiln_a', false);
SELECT v FROM t;
SET search_path = kiln_b;
DROP VIEW w;
DROP TABLE t;
-- error: 42P01
SELECT v FROM t;
SELECT v FROM kiln_a.t;
DROP SCHEMA kiln_a CASCADE;
DROP SCHEMA kiln_b CASCADE;

-- snippet: search-path-of-defaults-and-columns
DROP SCHEMA IF EXISTS kiln_a CASCADE;
DROP SCHEMA IF EXISTS kiln_b CASCADE;
CREATE SCHEMA kiln_a;
CREATE SCHEMA kiln_b;
CREATE SEQUENCE kiln_a.s START 10;
CREATE SEQUENCE kiln_b.s START 20;
SET search_path = kiln_a;
CREATE TABLE t (v BIGINT DEFAULT nextval('s'), w TEXT);
SET search_path = kiln_b;
INSERT INTO kiln_a.t DEFAULT VALUES RETURNING v;
ALTER TABLE kiln_a.t ADD COLUMN x BIGINT DEFAULT nextval('s');
SET search_path = kiln_a;
INSERT INTO t DEFAULT VALUES RETURNING v, x;
ALTER TABLE t ALTER COLUMN v SET DEFAULT nextval('kiln_b.s');
INSERT INTO t DEFAULT VALUES RETURNING v;
DROP SCHEMA kiln_a CASCADE;
DROP SCHEMA kiln_b CASCADE;

-- snippet: schemas-and-deferred-constraints
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE TABLE kiln_a.p (id INTEGER PRIMARY KEY);
CREATE TABLE kiln_a.c (p INTEGER CONSTRAINT f REFERENCES kiln_a.p DEFERRABLE);
BEGIN;
SET CONSTRAINTS kiln_a.f DEFERRED;
INSERT INTO kiln_a.c VALUES (1);
-- error: 55006
DROP TABLE kiln_a.c;
ROLLBACK;
BEGIN;
SET CONSTRAINTS kiln_a.f DEFERRED;
INSERT INTO kiln_a.c VALUES (1);
INSERT INTO kiln_a.p VALUES (1);
COMMIT;
SELECT * FROM kiln_a.c;
DROP SCHEMA kiln_a CASCADE;

-- snippet: schemas-in-blocks
DROP SCHEMA IF EXISTS kiln_a CASCADE;
BEGIN;
CREATE SCHEMA kiln_a;
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY);
INSERT INTO kiln_a.t VALUES (1);
SAVEPOINT s;
DROP SCHEMA kiln_a CASCADE;
ROLLBACK TO s;
SELECT * FROM kiln_a.t;
COMMIT;
SELECT * FROM kiln_a.t;
BEGIN;
DROP SCHEMA kiln_a CASCADE;
ROLLBACK;
SELECT * FROM kiln_a.t;
BEGIN;
CREATE SCHEMA kiln_b;
ROLLBACK;
-- error: 3F000
DROP SCHEMA kiln_b;
CREATE TABLE kiln_a.u AS SELECT id + 1 AS id FROM kiln_a.t;
SELECT * FROM kiln_a.u;
CREATE TABLE kiln_a.like_t (LIKE kiln_a.t INCLUDING ALL);
-- error: 23502
INSERT INTO kiln_a.like_t VALUES (NULL);
DROP SCHEMA kiln_a CASCADE;

-- snippet: schemas-and-views
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY, v TEXT);
CREATE VIEW kiln_a.v AS SELECT * FROM kiln_a.t WHERE id > 1;
CREATE VIEW kiln_a.w AS SELECT id FROM kiln_a.v WITH CHECK OPTION;
INSERT INTO kiln_a.v VALUES (1, 'a'), (2, 'b');
SELECT * FROM kiln_a.v;
UPDATE kiln_a.v SET v = 'c';
SELECT v.v FROM kiln_a.v;
SELECT * FROM kiln_a.t ORDER BY id;
-- error: 44000
INSERT INTO kiln_a.w VALUES (0);
-- error: 42P07
CREATE VIEW kiln_a.t AS SELECT 1 AS a;
-- error: 42P16
CREATE OR REPLACE VIEW kiln_a.w AS SELECT 'a'::TEXT AS b;
-- error: 2BP01
DROP TABLE kiln_a.t;
-- error: 2BP01
DROP VIEW kiln_a.v;
-- error: 42809
DROP TABLE kiln_a.v;
-- error: 42809
DROP VIEW kiln_a.t;
DROP VIEW kiln_a.v CASCADE;
DROP SCHEMA kiln_a CASCADE;

-- snippet: schemas-and-plpgsql
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY, v TEXT);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  r kiln_a.t%ROWTYPE;
  w kiln_a.t.v%TYPE;
BEGIN
  INSERT INTO kiln_a.t VALUES (k, 'new') ON CONFLICT DO NOTHING;
  SELECT * INTO r FROM kiln_a.t WHERE id = k;
  SELECT v INTO w FROM kiln_a.t WHERE t.id = k;
  RETURN r.v || w;
END $$;
SELECT f(1);
CREATE FUNCTION note() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  NEW.v := tg_table_schema || '.' || tg_table_name;
  RETURN NEW;
END $$;
CREATE TRIGGER note BEFORE INSERT ON kiln_a.t FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO kiln_a.t VALUES (2, 'x') RETURNING v;
SELECT event_object_schema, event_object_table FROM information_schema.triggers WHERE event_object_schema = 'kiln_a';
DO $$ BEGIN INSERT INTO kiln_a.t VALUES (3, 'y'); END $$;
SELECT * FROM kiln_a.t ORDER BY id;
DROP SCHEMA kiln_a CASCADE;

-- snippet: schemas-and-names-with-dots
DROP SCHEMA IF EXISTS kiln_a CASCADE;
CREATE SCHEMA kiln_a;
CREATE TABLE "kiln_a.t" (id INTEGER PRIMARY KEY);
CREATE TABLE kiln_a.t (id INTEGER PRIMARY KEY);
CREATE TABLE kiln_a."x.y" (id INTEGER PRIMARY KEY);
INSERT INTO "kiln_a.t" VALUES (1);
INSERT INTO kiln_a.t VALUES (2);
INSERT INTO kiln_a."x.y" VALUES (3);
SELECT * FROM "kiln_a.t";
SELECT "kiln_a.t".id FROM "kiln_a.t";
SELECT * FROM kiln_a.t;
SELECT * FROM kiln_a."x.y";
-- error: 23505
INSERT INTO "kiln_a.t" VALUES (1);
-- error: 42P07
CREATE TABLE "kiln_a.t" (id INTEGER);
DROP TABLE "kiln_a.t";
SELECT * FROM kiln_a.t;
DROP SCHEMA kiln_a CASCADE;

-- snippet: relations-move-between-schemas
DROP SCHEMA IF EXISTS kiln_from CASCADE;
DROP SCHEMA IF EXISTS kiln_to CASCADE;
CREATE SCHEMA kiln_from;
CREATE SCHEMA kiln_to;
CREATE TABLE kiln_from.parent (id SERIAL PRIMARY KEY, name TEXT UNIQUE, CHECK (length(name) < 10));
CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES kiln_from.parent);
INSERT INTO kiln_from.parent (name) VALUES ('one'), ('two');
INSERT INTO child VALUES (1, 2);
CREATE INDEX by_length ON kiln_from.parent (length(name));
ALTER TABLE kiln_from.parent SET SCHEMA kiln_to;
-- error: 42P01
SELECT * FROM kiln_from.parent;
SELECT * FROM kiln_to.parent ORDER BY id;
INSERT INTO kiln_to.parent (name) VALUES ('three') RETURNING id;
SELECT nextval('kiln_to.parent_id_seq');
-- error: 42P01
SELECT nextval('kiln_from.parent_id_seq');
-- error: 23503
INSERT INTO child VALUES (2, 9);
-- error: 23503
DELETE FROM kiln_to.parent WHERE id = 2;
-- error: 23505
INSERT INTO kiln_to.parent (name) VALUES ('one');
-- error: 23514
INSERT INTO kiln_to.parent (name) VALUES ('much too long');
SELECT table_schema, column_default FROM information_schema.columns WHERE table_name = 'parent' AND column_name = 'id';
SELECT schemaname, indexname FROM pg_indexes WHERE tablename = 'parent' ORDER BY indexname;
ALTER TABLE kiln_to.parent SET SCHEMA kiln_to;
ALTER TABLE IF EXISTS kiln_from.parent SET SCHEMA kiln_to;
-- error: 42P01
ALTER TABLE kiln_from.parent SET SCHEMA kiln_to;
-- error: 3F000
ALTER TABLE kiln_to.parent SET SCHEMA kiln_nowhere;
-- error: 0A000
ALTER SEQUENCE kiln_to.parent_id_seq SET SCHEMA kiln_from;
CREATE SEQUENCE kiln_from.counter;
SELECT nextval('kiln_from.counter');
ALTER SEQUENCE kiln_from.counter SET SCHEMA kiln_to;
SELECT nextval('kiln_to.counter');
CREATE TABLE kiln_from.user_of (id INTEGER DEFAULT nextval('kiln_to.counter'), a INTEGER);
ALTER SEQUENCE kiln_to.counter SET SCHEMA kiln_from;
INSERT INTO kiln_from.user_of (a) VALUES (1) RETURNING id;
CREATE VIEW kiln_from.shown AS SELECT 1 AS a;
ALTER VIEW kiln_from.shown SET SCHEMA kiln_to;
SELECT * FROM kiln_to.shown;
ALTER VIEW kiln_to.shown OWNER TO CURRENT_USER;
ALTER TABLE kiln_to.shown RENAME TO seen;
SELECT * FROM kiln_to.seen;
ALTER TABLE kiln_to.seen SET SCHEMA kiln_from;
SELECT * FROM kiln_from.seen;
ALTER TABLE kiln_from.seen OWNER TO CURRENT_USER;
CREATE TABLE kiln_from.taken (id INTEGER PRIMARY KEY);
CREATE TABLE kiln_to.taken (id INTEGER);
-- error: 42P07
ALTER TABLE kiln_from.taken SET SCHEMA kiln_to;
DROP TABLE kiln_to.taken;
CREATE SEQUENCE kiln_to.taken_pkey;
-- error: 42P07
ALTER TABLE kiln_from.taken SET SCHEMA kiln_to;
DROP TABLE child;
DROP VIEW kiln_from.seen;
DROP TABLE kiln_from.user_of;
DROP SEQUENCE kiln_from.counter;
DROP SCHEMA kiln_from CASCADE;
DROP SCHEMA kiln_to CASCADE;

-- snippet: table-is-select-star
DROP SCHEMA IF EXISTS kiln_tables CASCADE;
CREATE SCHEMA kiln_tables;
CREATE TABLE kiln_tables.there (a INTEGER PRIMARY KEY, "B" TEXT);
INSERT INTO kiln_tables.there VALUES (1, 'x'), (2, 'y');
CREATE VIEW kiln_tables."Seen" AS SELECT a FROM kiln_tables.there;
-- error: 42P01
TABLE there;
TABLE kiln_tables.there ORDER BY a DESC;
TABLE kiln_tables."Seen" ORDER BY 1 LIMIT 1;
WITH w AS (SELECT 1 AS one) TABLE w;
(TABLE kiln_tables.there) UNION ALL TABLE kiln_tables.there ORDER BY 1, 2;
SET search_path = kiln_tables, public;
TABLE there;
TABLE "Seen";
RESET search_path;
DROP SCHEMA kiln_tables CASCADE;
