-- COMMENT: on what, and who shows it.
-- compare: messages

-- snippet: comments-on-relations
CREATE TABLE ct (id INT PRIMARY KEY, a INT UNIQUE CHECK (a > 0), b TEXT);
CREATE INDEX ct_b ON ct (b);
CREATE SEQUENCE cs;
CREATE VIEW cv AS SELECT id AS x FROM ct;
COMMENT ON TABLE ct IS 'a table';
COMMENT ON INDEX ct_b IS 'an index';
COMMENT ON INDEX ct_pkey IS 'a key';
COMMENT ON SEQUENCE cs IS 'a sequence';
COMMENT ON VIEW cv IS 'a view';
SELECT obj_description('ct'::regclass), obj_description('ct_b'::regclass, 'pg_class'), obj_description('ct_pkey'::regclass),
    obj_description('cs'::regclass, 'pg_class'), obj_description('cv'::regclass), obj_description('ct'::regclass, 'pg_proc'),
    obj_description('ct_a_key'::regclass), obj_description('ct'::regclass, 'nothing');
SELECT c.relname, d.objsubid, d.description FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
    WHERE c.relname IN ('ct', 'ct_b', 'ct_pkey', 'cs', 'cv') ORDER BY 1, 2;
-- error: 42P01
COMMENT ON TABLE nowhere IS 'x';
-- error: 42809
COMMENT ON TABLE cv IS 'x';
-- error: 42809
COMMENT ON TABLE ct_b IS 'x';
-- error: 42809
COMMENT ON TABLE cs IS 'x';
-- error: 42809
COMMENT ON INDEX ct IS 'x';
-- error: 42P01
COMMENT ON INDEX nowhere IS 'x';
-- error: 42809
COMMENT ON VIEW ct IS 'x';
-- error: 42809
COMMENT ON SEQUENCE ct IS 'x';

-- snippet: comments-on-columns
CREATE TABLE ct (id INT PRIMARY KEY, b TEXT, "Odd" INT);
CREATE VIEW cv AS SELECT id AS x, b FROM ct;
COMMENT ON COLUMN ct.b IS 'text of ct';
COMMENT ON COLUMN ct."Odd" IS $$it's odd$$;
COMMENT ON COLUMN cv.b IS E'two\nlines';
SELECT col_description('ct'::regclass, 1), col_description('ct'::regclass, 2), col_description('ct'::regclass, 3), col_description('cv'::regclass, 2);
SELECT col_description('ct'::regclass, 0), col_description('ct'::regclass, 9), col_description(NULL, 1);
-- error: 42703
COMMENT ON COLUMN ct.z IS 'x';
-- error: 42P01
COMMENT ON COLUMN nowhere.z IS 'x';
-- error: 42601
COMMENT ON COLUMN b IS 'x';
-- error: 42809
COMMENT ON COLUMN ct_pkey.id IS 'x';

-- snippet: comments-on-routines
CREATE FUNCTION cf(INT) RETURNS INT LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE cp(INT) LANGUAGE sql AS 'SELECT 1';
COMMENT ON FUNCTION cf IS 'without types';
COMMENT ON FUNCTION cf(INT) IS 'a function';
COMMENT ON PROCEDURE cp IS 'a procedure';
SELECT proname, obj_description(oid, 'pg_proc') FROM pg_proc WHERE proname IN ('cf', 'cp') ORDER BY 1;
COMMENT ON ROUTINE cp IS NULL;
SELECT proname, obj_description(oid) FROM pg_proc WHERE proname IN ('cf', 'cp') ORDER BY 1;
-- error: 42883
COMMENT ON FUNCTION cf(TEXT) IS 'x';
-- error: 42883
COMMENT ON FUNCTION nothing IS 'x';
-- error: 42883
COMMENT ON FUNCTION nothing(INT) IS 'x';
-- error: 42809
COMMENT ON FUNCTION cp(INT) IS 'x';
-- error: 42809
COMMENT ON PROCEDURE cf(INT) IS 'x';

-- snippet: comments-on-constraints-and-types
CREATE TABLE ct (id INT PRIMARY KEY, a INT UNIQUE CHECK (a > 0));
COMMENT ON CONSTRAINT ct_a_check ON ct IS 'positive';
COMMENT ON CONSTRAINT ct_pkey ON ct IS 'the key';
COMMENT ON TYPE ct IS 'rows of ct';
SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid = 'ct'::regclass ORDER BY 1;
SELECT obj_description('ct'::regtype, 'pg_type'), obj_description('ct'::regclass);
-- error: 42704
COMMENT ON CONSTRAINT nothing ON ct IS 'x';
-- error: 42P01
COMMENT ON CONSTRAINT nothing ON nowhere IS 'x';
-- error: 42704
COMMENT ON TYPE nothing IS 'x';

-- snippet: comments-on-what-is-shared
-- error: 42704
COMMENT ON ROLE nothing IS 'x';
-- error: 3F000
COMMENT ON SCHEMA nowhere IS 'x';
COMMENT ON DATABASE nowhere IS 'x';
SELECT shobj_description(0, 'pg_database'), obj_description('pg_catalog'::regnamespace, 'pg_namespace');

-- snippet: comments-follow-their-objects
CREATE TABLE ct (id INT PRIMARY KEY, a INT CHECK (a > 0), b TEXT);
COMMENT ON TABLE ct IS 'a table';
COMMENT ON COLUMN ct.a IS 'a number';
COMMENT ON COLUMN ct.b IS 'a text';
COMMENT ON CONSTRAINT ct_a_check ON ct IS 'positive';
ALTER TABLE ct ALTER a TYPE BIGINT;
ALTER TABLE ct RENAME b TO bb;
ALTER TABLE ct RENAME CONSTRAINT ct_a_check TO positive;
ALTER TABLE ct RENAME TO du;
SELECT obj_description('du'::regclass), col_description('du'::regclass, 2), col_description('du'::regclass, 3);
SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = 'positive';
ALTER TABLE du DROP bb, ADD bb TEXT;
SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = 'du'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1;
TRUNCATE du;
SELECT obj_description('du'::regclass);
DROP TABLE du;
CREATE TABLE du (id INT, a INT);
SELECT obj_description('du'::regclass), col_description('du'::regclass, 2);

-- snippet: comments-on-views-follow
CREATE TABLE ct (id INT PRIMARY KEY, b TEXT);
CREATE VIEW cv AS SELECT id AS x FROM ct;
COMMENT ON VIEW cv IS 'a view';
COMMENT ON COLUMN cv.x IS 'a column';
CREATE OR REPLACE VIEW cv AS SELECT id AS x, b FROM ct;
ALTER VIEW cv RENAME TO cw;
SELECT obj_description('cw'::regclass), col_description('cw'::regclass, 1), col_description('cw'::regclass, 2);

-- snippet: comments-texts
CREATE TABLE ct (id INT);
COMMENT ON TABLE ct IS 'one '
    'text';
SELECT obj_description('ct'::regclass);
COMMENT ON TABLE ct IS '';
SELECT obj_description('ct'::regclass), count(*) FROM pg_description WHERE objoid = 'ct'::regclass;
-- error: 42601
COMMENT ON TABLE ct IS x;
-- error: 42601
COMMENT ON TABLE ct IS 'a' 'b';
-- error: 42601
COMMENT ON foo ct IS '';
-- error: 42601
COMMENT ct;
