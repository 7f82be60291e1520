-- To whom objects belong, and what their owners may do.

-- snippet: what-a-role-makes-belongs-to-it
DROP ROLE IF EXISTS kiln_app;
DROP ROLE IF EXISTS kiln_other;
CREATE ROLE kiln_app;
CREATE ROLE kiln_other;
CREATE TABLE base (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO base VALUES (1, 'one');
DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_app, kiln_other'; END $$;
SET ROLE kiln_app;
-- error: 42501
CREATE TABLE mine (id INTEGER PRIMARY KEY, v TEXT);
RESET ROLE;
DO $$ BEGIN EXECUTE 'GRANT CREATE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_app'; END $$;
SET ROLE kiln_app;
CREATE TABLE mine (id SERIAL PRIMARY KEY, v TEXT, n INTEGER DEFAULT 7);
INSERT INTO mine (v) VALUES ('a'), ('b');
SELECT * FROM mine ORDER BY id;
CREATE INDEX mine_v ON mine (v);
ALTER TABLE mine ADD COLUMN w INTEGER;
ALTER TABLE mine RENAME COLUMN w TO x;
ALTER TABLE mine ADD CHECK (n > 0);
COMMENT ON TABLE mine IS 'of kiln_app';
CREATE VIEW seen AS SELECT id, v FROM mine;
CREATE SEQUENCE counter;
SELECT nextval('counter');
SELECT tableowner FROM pg_tables WHERE tablename = 'mine';
SELECT viewowner FROM pg_views WHERE viewname = 'seen';
SELECT sequenceowner FROM pg_sequences WHERE sequencename = 'counter';
SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('mine', 'mine_v', 'seen', 'counter', 'mine_id_seq') ORDER BY 1;
TRUNCATE mine;
INSERT INTO mine (v) VALUES ('c');
UPDATE mine SET n = 8;
SELECT v, n FROM mine;
-- error: 42501
SELECT * FROM base;
-- error: 42501
ALTER TABLE base ADD COLUMN w INTEGER;
-- error: 42501
DROP TABLE base;
-- error: 42501
CREATE INDEX base_v ON base (v);
-- error: 42501
COMMENT ON TABLE base IS 'not mine';
-- error: 42501
GRANT SELECT ON base TO kiln_app;
-- error: 42501
CREATE TABLE refers (id INTEGER PRIMARY KEY, base INTEGER REFERENCES base);
-- error: 42501
CREATE TABLE stolen AS SELECT * FROM base;
-- error: 42501
CREATE TABLE like_base (LIKE base);
-- error: 42501
CREATE ROLE kiln_third;
-- error: 42501
CREATE SCHEMA kiln_own;
SET ROLE kiln_other;
-- error: 42501
SELECT * FROM mine;
-- error: 42501
DROP TABLE mine;
-- error: 42501
DROP VIEW seen;
-- error: 42501
ALTER SEQUENCE counter RESTART;
-- error: 42501
CREATE OR REPLACE VIEW seen AS SELECT 1 AS id, 'x' AS v;
SET ROLE kiln_app;
GRANT SELECT ON mine TO kiln_other;
GRANT SELECT ON seen TO kiln_other;
SET ROLE kiln_other;
SELECT v FROM mine;
SELECT v FROM seen;
-- error: 42501
INSERT INTO mine (v) VALUES ('d');
RESET ROLE;
-- error: 2BP01
DROP ROLE kiln_app;
SET ROLE kiln_app;
REVOKE SELECT ON mine FROM kiln_other;
DROP VIEW seen;
DROP SEQUENCE counter;
DROP INDEX mine_v;
DROP TABLE mine;
RESET ROLE;
DROP OWNED BY kiln_app, kiln_other;
DROP ROLE kiln_app, kiln_other;

-- snippet: views-read-with-the-privileges-of-their-owner
DROP ROLE IF EXISTS kiln_app;
DROP ROLE IF EXISTS kiln_other;
CREATE ROLE kiln_app;
CREATE ROLE kiln_other;
CREATE TABLE base (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO base VALUES (1, 'one');
DO $$ BEGIN EXECUTE 'GRANT USAGE, CREATE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_app, kiln_other'; END $$;
CREATE VIEW of_super AS SELECT * FROM base;
GRANT SELECT ON of_super TO kiln_app;
SET ROLE kiln_app;
SELECT * FROM of_super;
CREATE VIEW of_app AS SELECT * FROM base;
-- error: 42501
SELECT * FROM of_app;
-- error: 42501
CREATE MATERIALIZED VIEW kept AS SELECT * FROM base;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM base WITH NO DATA;
-- error: 42501
REFRESH MATERIALIZED VIEW kept;
-- error: 42501
INSERT INTO of_app VALUES (2, 'two');
-- error: 42501
UPDATE of_app SET v = 'x';
CREATE VIEW of_view AS SELECT v FROM of_super;
SELECT * FROM of_view;
GRANT SELECT ON of_app TO kiln_other;
GRANT SELECT ON of_view TO kiln_other;
SET ROLE kiln_other;
-- error: 42501
SELECT * FROM of_app;
SELECT * FROM of_view;
-- error: 42501
SELECT * FROM of_super;
RESET ROLE;
-- error: 42501
SELECT * FROM of_app;
GRANT SELECT ON base TO kiln_app;
SELECT * FROM of_app;
SET ROLE kiln_other;
-- error: 42501
REFRESH MATERIALIZED VIEW kept;
-- error: 42501
DROP MATERIALIZED VIEW kept;
SET ROLE kiln_app;
REFRESH MATERIALIZED VIEW kept;
SELECT * FROM kept;
RESET ROLE;
GRANT INSERT, UPDATE, DELETE ON of_app TO kiln_other;
SET ROLE kiln_other;
SELECT * FROM of_app;
-- error: 42501
INSERT INTO of_app VALUES (2, 'two');
-- error: 42501
UPDATE of_app SET v = 'x';
-- error: 42501
DELETE FROM of_app;
RESET ROLE;
-- error: 42501
UPDATE of_app SET v = 'x';
GRANT INSERT ON base TO kiln_app;
SET ROLE kiln_other;
INSERT INTO of_app VALUES (2, 'two');
RESET ROLE;
GRANT UPDATE, DELETE ON base TO kiln_app;
SET ROLE kiln_other;
UPDATE of_app SET v = 'x' WHERE id = 2;
DELETE FROM of_app WHERE id = 1;
SELECT * FROM of_app;
-- error: 42501
SELECT * FROM base;
RESET ROLE;
REVOKE SELECT ON of_super FROM kiln_app;
SET ROLE kiln_other;
-- error: 42501
SELECT * FROM of_view;
RESET ROLE;
ALTER VIEW of_view OWNER TO CURRENT_USER;
SET ROLE kiln_other;
SELECT * FROM of_view;
CREATE TEMP VIEW own AS SELECT * FROM base;
-- error: 42501
SELECT * FROM own;
RESET ROLE;
DROP VIEW own;
DROP MATERIALIZED VIEW kept;
DROP VIEW of_view, of_app, of_super;
DROP OWNED BY kiln_app, kiln_other;
DROP ROLE kiln_app, kiln_other;

-- snippet: security-definer-is-the-owner
DROP ROLE IF EXISTS kiln_app;
DROP ROLE IF EXISTS kiln_other;
CREATE ROLE kiln_app;
CREATE ROLE kiln_other;
CREATE TABLE base (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE log (id INTEGER PRIMARY KEY);
INSERT INTO base VALUES (1, 10);
DO $$ BEGIN EXECUTE 'GRANT USAGE, CREATE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_app, kiln_other'; END $$;
CREATE FUNCTION of_super() RETURNS INTEGER LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN UPDATE base SET v = v + 1; RETURN (SELECT max(v) FROM base); END $$;
SET ROLE kiln_app;
SELECT of_super();
CREATE FUNCTION of_app() RETURNS INTEGER LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN (SELECT max(v) FROM base); END $$;
-- error: 42501
SELECT of_app();
CREATE FUNCTION calls() RETURNS INTEGER LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN of_super() + 1000; END $$;
SELECT calls();
SET ROLE kiln_other;
-- error: 42501
SELECT of_app();
SELECT calls();
-- error: 42501
DROP FUNCTION of_app();
-- error: 42501
CREATE OR REPLACE FUNCTION of_app() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42501
ALTER FUNCTION of_super() OWNER TO kiln_other;
RESET ROLE;
-- error: 42501
SELECT of_app();
GRANT SELECT ON base TO kiln_app;
SELECT of_app();
SET ROLE kiln_other;
SELECT of_app();
CREATE TABLE fires (id INTEGER PRIMARY KEY);
CREATE FUNCTION notes() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER fired AFTER INSERT ON fires FOR EACH ROW EXECUTE FUNCTION notes();
-- error: 42501
INSERT INTO fires VALUES (1);
RESET ROLE;
-- error: 42501
INSERT INTO fires VALUES (1);
ALTER FUNCTION notes() OWNER TO CURRENT_USER;
SET ROLE kiln_other;
INSERT INTO fires VALUES (1);
-- error: 42501
SELECT * FROM log;
RESET ROLE;
SELECT * FROM log;
SELECT proname, proowner::regrole::text = 'kiln_app' FROM pg_proc WHERE proname IN ('of_app', 'of_super', 'calls') ORDER BY 1;
REVOKE EXECUTE ON FUNCTION notes() FROM PUBLIC;
SET ROLE kiln_other;
-- error: 42501
CREATE TRIGGER again AFTER INSERT ON fires FOR EACH ROW EXECUTE FUNCTION notes();
RESET ROLE;
CREATE PROCEDURE defines() LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DROP TABLE base'; END $$;
SET ROLE kiln_other;
-- error: 42501
CALL defines();
-- error: 42501
DO $$ BEGIN EXECUTE 'DROP TABLE base'; END $$;
RESET ROLE;
DROP PROCEDURE defines();
DROP TABLE fires;
DROP FUNCTION notes();
DROP FUNCTION calls();
DROP FUNCTION of_app();
DROP FUNCTION of_super();
DROP OWNED BY kiln_app, kiln_other;
DROP ROLE kiln_app, kiln_other;

-- snippet: owners-change
DROP ROLE IF EXISTS kiln_member;
DROP ROLE IF EXISTS kiln_app;
DROP ROLE IF EXISTS kiln_other;
CREATE ROLE kiln_app;
CREATE ROLE kiln_other;
CREATE ROLE kiln_member IN ROLE kiln_app;
DO $$ BEGIN EXECUTE 'GRANT USAGE, CREATE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_app, kiln_other'; END $$;
CREATE TABLE t (id SERIAL PRIMARY KEY);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN even AS INTEGER CHECK (VALUE % 2 = 0);
ALTER TABLE t OWNER TO kiln_app;
ALTER TYPE mood OWNER TO kiln_app;
ALTER DOMAIN even OWNER TO kiln_app;
SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('t', 't_id_seq', 't_pkey') ORDER BY 1;
SELECT typname, typowner::regrole FROM pg_type WHERE typname IN ('mood', 'even') ORDER BY 1;
SET ROLE kiln_member;
INSERT INTO t DEFAULT VALUES;
ALTER TABLE t ADD COLUMN m mood;
ALTER TYPE mood ADD VALUE 'mad';
-- error: 42501
ALTER TABLE t OWNER TO kiln_other;
ALTER TABLE t OWNER TO kiln_app;
SET ROLE kiln_other;
-- error: 42501
ALTER TYPE mood ADD VALUE 'bad';
-- error: 42501
ALTER DOMAIN even DROP NOT NULL;
-- error: 42501
DROP TYPE mood;
-- error: 42501
ALTER TABLE t OWNER TO kiln_other;
RESET ROLE;
-- error: 42704
ALTER TABLE t OWNER TO nobody_at_all;
REASSIGN OWNED BY kiln_app TO kiln_other;
SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('t', 't_id_seq') ORDER BY 1;
SET ROLE kiln_app;
-- error: 42501
SELECT count(*) FROM t;
SET ROLE kiln_other;
SELECT count(*) FROM t;
BEGIN;
CREATE TABLE u (id INTEGER PRIMARY KEY);
INSERT INTO u VALUES (1);
ALTER TABLE u ADD COLUMN w INTEGER;
COMMIT;
SELECT relname, relowner::regrole FROM pg_class WHERE relname = 'u';
BEGIN;
CREATE TABLE w (id INTEGER PRIMARY KEY);
ROLLBACK;
DROP TABLE u;
DROP TABLE t;
DROP DOMAIN even;
DROP TYPE mood;
RESET ROLE;
-- error: 42601
REASSIGN OWNED BY TO kiln_app;
-- error: 42704
REASSIGN OWNED BY nobody_at_all TO kiln_app;
DROP OWNED BY kiln_app, kiln_other, kiln_member CASCADE;
DROP ROLE kiln_member, kiln_app, kiln_other;

-- snippet: schemas-of-roles
DROP SCHEMA IF EXISTS kiln_app CASCADE;
DROP SCHEMA IF EXISTS kiln_second CASCADE;
DROP ROLE IF EXISTS kiln_app;
DROP ROLE IF EXISTS kiln_other;
CREATE ROLE kiln_app;
CREATE ROLE kiln_other;
CREATE SCHEMA AUTHORIZATION kiln_app;
CREATE SCHEMA kiln_second AUTHORIZATION kiln_app;
SELECT nspname, nspowner::regrole FROM pg_namespace WHERE nspname IN ('kiln_app', 'kiln_second') ORDER BY 1;
CREATE TABLE kiln_second.of_super (id INTEGER PRIMARY KEY);
SET ROLE kiln_app;
CREATE TABLE kiln_app.t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO kiln_app.t VALUES (1, 'x');
CREATE TABLE kiln_app.child (id INTEGER PRIMARY KEY, t INTEGER REFERENCES kiln_app.t ON DELETE CASCADE);
INSERT INTO kiln_app.child VALUES (1, 1);
DELETE FROM kiln_app.t;
SELECT count(*) FROM kiln_app.child;
ALTER TABLE kiln_app.child SET SCHEMA kiln_second;
-- error: 42501
SELECT * FROM kiln_second.of_super;
DROP TABLE kiln_second.of_super;
SET ROLE kiln_other;
-- error: 42501
SELECT * FROM kiln_app.t;
-- error: 42501
CREATE TABLE kiln_app.u (id INTEGER PRIMARY KEY);
-- error: 42501
DROP SCHEMA kiln_second CASCADE;
SET ROLE kiln_app;
GRANT USAGE ON SCHEMA kiln_app TO kiln_other;
GRANT SELECT ON ALL TABLES IN SCHEMA kiln_app TO kiln_other;
SET ROLE kiln_other;
SELECT * FROM kiln_app.t;
SET ROLE kiln_app;
DROP SCHEMA kiln_second CASCADE;
DROP SCHEMA kiln_app CASCADE;
RESET ROLE;
DROP ROLE kiln_app, kiln_other;

-- snippet: actions-of-foreign-keys-are-the-owners
DROP ROLE IF EXISTS kiln_app;
CREATE ROLE kiln_app;
CREATE TABLE secret (v TEXT);
INSERT INTO secret VALUES ('hidden');
DO $$ BEGIN EXECUTE 'GRANT USAGE, CREATE ON SCHEMA ' || quote_ident(current_schema()) || ' TO kiln_app'; END $$;
SET ROLE kiln_app;
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (id INTEGER PRIMARY KEY, p INTEGER REFERENCES parent ON DELETE SET NULL ON UPDATE CASCADE);
CREATE FUNCTION grab() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN NEW.id := (SELECT length(v) FROM secret); RETURN NEW; END $$;
CREATE TRIGGER g BEFORE UPDATE ON child FOR EACH ROW EXECUTE FUNCTION grab();
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1);
-- error: 42501
DELETE FROM parent WHERE id = 1;
-- error: 42501
UPDATE parent SET id = 3 WHERE id = 1;
SELECT * FROM child;
RESET ROLE;
GRANT SELECT ON secret TO kiln_app;
SET ROLE kiln_app;
DELETE FROM parent WHERE id = 1;
SELECT * FROM child;
RESET ROLE;
CREATE TABLE of_super (id INTEGER PRIMARY KEY, p INTEGER REFERENCES parent ON DELETE CASCADE);
INSERT INTO of_super VALUES (1, 2);
SET ROLE kiln_app;
DELETE FROM parent WHERE id = 2;
-- error: 42501
SELECT * FROM of_super;
RESET ROLE;
SELECT * FROM of_super;
DROP TABLE of_super;
DROP TABLE child;
DROP TABLE parent;
DROP FUNCTION grab();
DROP OWNED BY kiln_app;
DROP ROLE kiln_app;
