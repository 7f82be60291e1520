-- Enums: what they are, their order, and what can be done with them.
-- compare: messages

-- snippet: enum-values
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very happy');
SELECT 'sad'::mood, CAST('very happy' AS mood), 'ok'::mood::text, 'ok'::text::mood, 'ok'::varchar::mood;
SELECT 'sad'::mood < 'ok', 'ok' > 'very happy'::mood, 'ok'::mood = 'ok', 'ok'::mood <> 'sad'::mood, 'ok'::mood BETWEEN 'sad' AND 'ok';
SELECT 'ok'::mood IN ('sad', 'ok'), 'ok'::mood = ANY ('{sad,ok}'), 'ok'::mood = ANY (ARRAY['sad']::mood[]), 'ok'::mood IS DISTINCT FROM 'sad';
SELECT NULL::mood, NULL::mood IS NULL, coalesce(NULL, 'ok'::mood), nullif('ok'::mood, 'ok'), greatest('sad', 'ok'::mood), least('sad', 'ok'::mood);
SELECT CASE WHEN true THEN 'ok'::mood ELSE 'sad' END, 'a' || 'ok'::mood, concat('ok'::mood, 1), format('%s %L', 'ok'::mood, 'sad'::mood), length('ok'::mood::text);
SELECT pg_typeof('ok'::mood), pg_typeof(ARRAY['ok'::mood]), to_json('ok'::mood), to_jsonb('ok'::mood), json_build_object('a', 'ok'::mood), json_build_array('ok'::mood);
SELECT m FROM (VALUES ('very happy'::mood), ('sad'), (NULL), ('ok')) v (m) ORDER BY m;
SELECT m FROM (VALUES ('very happy'::mood), ('sad'), (NULL), ('ok')) v (m) ORDER BY m DESC NULLS LAST;
-- error: 22P02
SELECT 'glad'::mood;
-- error: 22P02
SELECT 'OK'::mood;
-- error: 22P02
SELECT ''::mood;
-- error: 22P02
SELECT 'glad'::text::mood;
-- error: 22P02
SELECT 'ok'::mood = 'glad';
-- error: 42883
SELECT 'ok'::mood = 'ok'::text;
-- error: 42883
SELECT 'ok'::mood + 1;
-- error: 42883
SELECT 'ok'::mood LIKE 'o%';
-- error: 42846
SELECT 1::mood;
-- error: 42846
SELECT 'ok'::mood::int;
-- error: 42804
SELECT CASE WHEN true THEN 'ok'::mood ELSE 'sad'::text END;
-- error: 42704
SELECT 'ok'::moods;

-- snippet: enum-functions
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE nothing AS ENUM ();
SELECT enum_first(NULL::mood), enum_last(NULL::mood), enum_first('ok'::mood), enum_range(NULL::mood), enum_range('happy'::mood);
SELECT enum_range('sad'::mood, 'ok'), enum_range('ok'::mood, NULL), enum_range(NULL, 'ok'::mood), enum_range('happy'::mood, 'sad'::mood), enum_range(NULL::mood, NULL);
SELECT enum_range(NULL::nothing);
SELECT unnest(enum_range(NULL::mood));
-- error: 55000
SELECT enum_first(NULL::nothing);
-- error: 42883
SELECT enum_first(1);
-- error: 42883
SELECT enum_last(NULL);
-- error: 42883
SELECT enum_range('ok'::mood, 'ok'::text);

-- snippet: enum-columns
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id INTEGER PRIMARY KEY, m mood NOT NULL DEFAULT 'ok', n mood, CHECK (n <> 'sad'));
INSERT INTO t VALUES (1, 'happy', 'ok'), (2, 'sad', NULL), (3, DEFAULT, 'happy') RETURNING m, n;
INSERT INTO t (id) VALUES (4) RETURNING *;
SELECT * FROM t ORDER BY m, id;
SELECT id FROM t WHERE m > 'sad' AND n = 'happy' ORDER BY id;
SELECT m, count(*) FROM t GROUP BY m ORDER BY m;
SELECT DISTINCT m FROM t ORDER BY m DESC;
SELECT min(m), max(m), min(n), count(n) FROM t;
SELECT array_agg(m ORDER BY id), string_agg(m::text, ',' ORDER BY id) FROM t;
SELECT rank() OVER (ORDER BY m), m FROM t ORDER BY 1, id;
UPDATE t SET n = m, m = 'happy' WHERE m = 'ok' RETURNING id, m, n;
DELETE FROM t WHERE m IN ('sad', 'ok') RETURNING m;
SELECT row_to_json(t) FROM t ORDER BY id;
SELECT to_jsonb(t) FROM t ORDER BY id;
-- error: 22P02
INSERT INTO t VALUES (5, 'glad');
-- error: 42804
INSERT INTO t VALUES (5, 'ok'::text);
-- error: 42804
INSERT INTO t VALUES (5, 1);
-- error: 23514
INSERT INTO t VALUES (5, 'ok', 'sad');
-- error: 23502
INSERT INTO t VALUES (5, NULL);
-- error: 22P02
SELECT * FROM t WHERE m = 'glad';
-- error: 22P02
CREATE TABLE u (m mood DEFAULT 'glad');
-- error: 42883
SELECT sum(m) FROM t;

-- snippet: enum-keys
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE p (m mood PRIMARY KEY, a INTEGER);
CREATE TABLE c (id INTEGER, m mood REFERENCES p ON UPDATE CASCADE, UNIQUE (m, id));
INSERT INTO p VALUES ('happy', 1), ('sad', 2);
INSERT INTO c VALUES (1, 'sad'), (2, 'happy'), (3, NULL);
SELECT * FROM p WHERE m = 'sad';
SELECT * FROM p WHERE m >= 'ok';
SELECT * FROM p ORDER BY m;
SELECT * FROM p JOIN c USING (m) ORDER BY m;
SELECT * FROM p WHERE m = ANY (ARRAY['sad', 'ok']::mood[]);
INSERT INTO p VALUES ('sad', 5) ON CONFLICT (m) DO UPDATE SET a = excluded.a RETURNING *;
UPDATE p SET m = 'ok' WHERE m = 'sad';
SELECT * FROM c ORDER BY id;
CREATE INDEX i ON c (m);
SELECT id FROM c WHERE m = 'ok';
-- error: 23503
INSERT INTO c VALUES (4, 'sad');
-- error: 23505
INSERT INTO p VALUES ('ok', 1);
-- error: 42804
CREATE TABLE d (m TEXT REFERENCES p);

-- snippet: enum-arrays
CREATE TYPE mood AS ENUM ('sad', 'o k', 'happy');
SELECT ARRAY['sad', 'o k']::mood[], '{sad,"o k",NULL}'::mood[], ARRAY['sad'::mood, 'happy'], ('{sad,happy}'::mood[])[2], '{sad}'::mood[] || 'happy'::mood;
SELECT '{sad,happy}'::mood[]::text[], ARRAY['happy', 'sad']::text[]::mood[], array_position('{sad,happy}'::mood[], 'happy'), '{sad}'::mood[] < '{happy}'::mood[];
SELECT '{sad,happy}'::mood[] @> '{sad}', cardinality('{sad}'::mood[]), array_to_string('{sad,"o k"}'::mood[], ','), unnest('{sad,happy}'::mood[]);
CREATE TABLE t (id INTEGER PRIMARY KEY, m mood[] DEFAULT '{sad}');
INSERT INTO t VALUES (1, '{"o k",happy}'), (2, DEFAULT), (3, NULL) RETURNING m;
SELECT id FROM t WHERE 'happy' = ANY (m);
UPDATE t SET m[1] = 'happy' WHERE id = 2 RETURNING m;
SELECT id, x FROM t, unnest(m) x ORDER BY x DESC, id;
-- error: 22P02
SELECT '{sad,glad}'::mood[];
-- error: 22P02
INSERT INTO t VALUES (4, '{glad}');

-- snippet: enum-order-after-alter
CREATE TYPE mood AS ENUM ('ok');
CREATE TABLE t (m mood PRIMARY KEY, n mood);
CREATE INDEX i ON t (n);
INSERT INTO t VALUES ('ok', 'ok');
ALTER TYPE mood ADD VALUE 'sad' BEFORE 'ok';
ALTER TYPE mood ADD VALUE 'happy';
ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok';
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'fine';
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'soso' BEFORE 'ok';
INSERT INTO t VALUES ('happy', 'sad'), ('sad', 'happy'), ('soso', 'fine'), ('fine', 'soso');
SELECT * FROM t ORDER BY m;
SELECT * FROM t ORDER BY n;
SELECT * FROM t WHERE m < 'ok' ORDER BY m;
SELECT * FROM t WHERE n >= 'ok' ORDER BY n;
SELECT enum_range(NULL::mood), 'soso'::mood < 'ok', max(m), min(n) FROM t;
SELECT enumlabel FROM pg_enum WHERE enumtypid = 'mood'::regtype ORDER BY enumsortorder;
-- error: 42710
ALTER TYPE mood ADD VALUE 'fine';
-- error: 22023
ALTER TYPE mood ADD VALUE 'low' BEFORE 'lower';
-- error: 22023
ALTER TYPE mood ADD VALUE 'low' AFTER 'lower';

-- snippet: enum-alter
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id INTEGER PRIMARY KEY, m mood DEFAULT 'ok'::mood);
INSERT INTO t VALUES (1);
ALTER TYPE mood RENAME VALUE 'ok' TO 'fine';
INSERT INTO t VALUES (2) RETURNING m;
SELECT * FROM t ORDER BY id;
-- error: 22P02
SELECT 'ok'::mood;
-- error: 22023
ALTER TYPE mood RENAME VALUE 'ok' TO 'x';
-- error: 42710
ALTER TYPE mood RENAME VALUE 'sad' TO 'fine';
ALTER TYPE mood RENAME TO "Temper";
INSERT INTO t VALUES (3) RETURNING m::"Temper";
SELECT pg_typeof(m), column_default FROM t, information_schema.columns c WHERE c.table_name = 't' AND c.column_name = 'm' AND t.id = 1;
-- error: 42704
SELECT 'fine'::mood;
-- error: 22P02
SELECT 'ok'::"Temper";
-- error: 42704
ALTER TYPE mood ADD VALUE 'x';
-- error: 42809
ALTER TYPE int4 ADD VALUE 'x';
-- error: 42809
ALTER TYPE t ADD VALUE 'x';
-- error: 42704
ALTER TYPE "Temper" OWNER TO nobody_at_all;
CREATE TYPE mood AS ENUM ('x');
-- error: 42710
ALTER TYPE mood RENAME TO "Temper";

-- snippet: enum-create-and-drop
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id INTEGER PRIMARY KEY, m mood, n mood[], x TEXT DEFAULT 'ok'::mood::text, y TEXT CHECK (y::mood <> 'sad'));
CREATE VIEW v AS SELECT id, m FROM t;
CREATE VIEW w AS SELECT id, 'ok'::mood AS o FROM t;
CREATE FUNCTION f(a mood) RETURNS INTEGER LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
-- error: 2BP01
DROP TYPE mood;
-- error: 42710
CREATE TYPE mood AS ENUM ('a');
-- error: 42710
CREATE TYPE t AS ENUM ('a');
-- error: 42710
CREATE TABLE mood (a INTEGER);
-- error: 42710
CREATE VIEW mood AS SELECT 1;
-- error: 42710
CREATE SEQUENCE mood;
-- error: 23505
CREATE TYPE e AS ENUM ('a', 'a');
-- error: 42602
CREATE TYPE e AS ENUM ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa');
-- error: 42601
CREATE TYPE e AS ENUM (a);
-- error: 42601
CREATE TYPE e AS ENUM ('a',);
-- error: 42704
DROP TYPE nothing;
-- error: 2BP01
DROP TYPE t;
-- error: 2BP01
DROP TYPE int4;
DROP TYPE IF EXISTS nothing, nor_this;
DROP TYPE mood CASCADE;
INSERT INTO t VALUES (1) RETURNING *;
-- error: 42P01
SELECT * FROM v;
-- error: 42883
SELECT f('ok');
CREATE TYPE mood AS ENUM ('new');
SELECT 'new'::mood;
DROP TYPE mood RESTRICT;
-- error: 42704
SELECT 'new'::mood;

-- snippet: enum-plpgsql
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id INTEGER PRIMARY KEY, m mood);
INSERT INTO t VALUES (1, 'sad');
CREATE FUNCTION better(a mood) RETURNS mood LANGUAGE plpgsql AS $$
DECLARE
    b mood := 'ok';
    c t.m%TYPE;
BEGIN
    IF a < b THEN RETURN b; END IF;
    c := 'happy';
    RETURN c;
END $$;
SELECT better('sad'), better('ok'), better('happy'::mood), better(NULL);
SELECT better(m) FROM t;
CREATE PROCEDURE set_mood(i INTEGER, a mood) LANGUAGE plpgsql AS $$
DECLARE
    now mood;
BEGIN
    UPDATE t SET m = a WHERE id = i RETURNING m INTO now;
    CASE now WHEN 'happy' THEN INSERT INTO t VALUES (i + 1, 'ok'); ELSE NULL; END CASE;
END $$;
CALL set_mood(1, 'happy');
SELECT * FROM t ORDER BY id;
CREATE FUNCTION of_text(a TEXT) RETURNS mood LANGUAGE plpgsql AS $$
DECLARE
    b mood;
BEGIN
    b := a;
    RETURN b;
EXCEPTION WHEN invalid_text_representation THEN
    RETURN 'sad';
END $$;
SELECT of_text('happy'), of_text('glad');
CREATE FUNCTION moods() RETURNS SETOF mood LANGUAGE plpgsql AS $$
DECLARE
    a mood;
BEGIN
    FOREACH a IN ARRAY enum_range(NULL::mood) LOOP
        IF a <> 'ok' THEN RETURN NEXT a; END IF;
    END LOOP;
END $$;
SELECT * FROM moods();
-- error: 22P02
SELECT better('glad');
-- error: 42883
SELECT better('ok'::text);

-- snippet: enum-prepared
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id INTEGER PRIMARY KEY, m mood);
PREPARE put (INTEGER, mood) AS INSERT INTO t VALUES ($1, $2) RETURNING m;
PREPARE pick AS SELECT id FROM t WHERE m = $1 ORDER BY id;
EXECUTE put (1, 'ok');
EXECUTE pick ('ok');
ALTER TYPE mood ADD VALUE 'low' BEFORE 'sad';
EXECUTE put (2, 'low');
EXECUTE pick ('low');
-- error: 22P02
EXECUTE put (3, 'glad');
SELECT id FROM t WHERE m < 'sad';

-- snippet: enum-catalogs
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (m mood DEFAULT 'ok', n mood[], CHECK (m <> 'sad'));
SELECT typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typrelid, typsubscript, typelem > 0, typarray > 0, typinput, typoutput, typreceive, typsend, typalign, typstorage, typnotnull, typbasetype, typtypmod, typndims, typcollation FROM pg_type WHERE typname IN ('mood', '_mood') ORDER BY typname;
SELECT enumsortorder, enumlabel FROM pg_enum WHERE enumtypid = 'mood'::regtype ORDER BY 1;
SELECT format_type(atttypid, atttypmod), attname, attlen, attbyval, attalign, attstorage, attndims FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
SELECT 'mood'::regtype, 'mood[]'::regtype, to_regtype('mood'), to_regtype('moods'), 'mood'::regtype::oid = (SELECT oid FROM pg_type WHERE typname = 'mood');
SELECT column_name, data_type, udt_name, column_default FROM information_schema.columns WHERE table_name = 't' ORDER BY 1;
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 't_m_check';
COMMENT ON TYPE mood IS 'how it is';
SELECT obj_description('mood'::regtype, 'pg_type');

-- snippet: enum-alter-table
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT);
INSERT INTO t VALUES (1, 'ok');
-- error: 42804
ALTER TABLE t ALTER x TYPE mood;
ALTER TABLE t ALTER x TYPE mood USING x::mood;
ALTER TABLE t ADD m mood NOT NULL DEFAULT 'sad', ALTER x SET DEFAULT 'sad';
INSERT INTO t VALUES (2, DEFAULT, 'ok');
SELECT * FROM t ORDER BY x, id;
ALTER TABLE t ALTER x DROP DEFAULT, ALTER x TYPE TEXT;
SELECT x || '!' FROM t ORDER BY id;
-- error: 42P17
CREATE TABLE g (m mood, b TEXT GENERATED ALWAYS AS (m::text) STORED);
CREATE TABLE g (m mood, b mood GENERATED ALWAYS AS (coalesce(m, 'ok'::mood)) STORED);
INSERT INTO g VALUES (NULL), ('sad') RETURNING b;

-- snippet: enum-in-blocks
CREATE TYPE kept AS ENUM ('a');
BEGIN;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (m mood);
INSERT INTO t VALUES ('ok'), ('sad');
SELECT * FROM t ORDER BY m;
COMMIT;
SELECT * FROM t ORDER BY m;
BEGIN;
ALTER TYPE kept RENAME VALUE 'a' TO 'b';
DROP TYPE mood CASCADE;
ROLLBACK;
SELECT *, 'a'::kept FROM t ORDER BY m;

-- snippet: enum-in-index-expressions
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT, m mood);
CREATE INDEX part ON t (id) WHERE m = 'ok';
CREATE INDEX over ON t (coalesce(m, 'sad'::mood));
INSERT INTO t VALUES (1, 'a', 'ok'), (2, 'b', NULL), (3, 'c', 'sad');
SELECT id FROM t WHERE m = 'ok' AND id > 0;
SELECT id FROM t WHERE coalesce(m, 'sad'::mood) = 'sad' ORDER BY id;
ALTER TYPE mood ADD VALUE 'low' BEFORE 'sad';
INSERT INTO t VALUES (4, 'd', 'low');
SELECT id FROM t WHERE coalesce(m, 'sad'::mood) < 'ok' ORDER BY coalesce(m, 'sad'::mood), id;
-- error: 42P17
CREATE INDEX j ON t ((m::text));
CREATE INDEX other ON t ((CASE WHEN x > 'b' THEN 'ok'::mood END));
DROP TYPE mood CASCADE;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (5, 'e') RETURNING *;
SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1;
