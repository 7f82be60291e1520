-- Domains: values of another type that are checked where they become values of the domain.
-- compare: messages

-- snippet: domain-casts
CREATE DOMAIN email AS text COLLATE "C" CHECK (VALUE ~ '@');
CREATE DOMAIN positive integer CONSTRAINT above_zero CHECK (VALUE > 0);
CREATE DOMAIN named AS varchar(5) NOT NULL;
SELECT 'a@b'::email, CAST('c@d' AS email), 5::positive, '7'::positive, 3.6::positive, 'abcdefgh'::named;
SELECT NULL::email, NULL::positive, 'a@b'::email::text, 5::positive::bigint, '5'::text::positive;
-- error: 23514
SELECT 'ab'::email;
-- error: 23514
SELECT CAST(0 AS positive);
-- error: 22P02
SELECT 'x'::positive;
-- error: 23502
SELECT NULL::named;
-- error: 42846
SELECT true::date::positive;
-- error: 42704
SELECT 'x'::emails;
SELECT pg_typeof('a@b'::email), pg_typeof(5::positive), pg_typeof(5::positive + 1), pg_typeof('a@b'::email || 'x');
SELECT x::positive FROM (VALUES (1), (2)) v (x) ORDER BY x;
-- error: 23514
SELECT x::positive FROM (VALUES (1), (-2)) v (x);
SELECT CASE WHEN x > 0 THEN x::positive ELSE 1 END FROM (VALUES (1), (-2)) v (x) ORDER BY x;
SELECT coalesce(NULL::positive, 4), nullif(5::positive, 5), greatest(3::positive, 2), 5::positive = 5, 5::positive IN (4, 5), 5::positive BETWEEN 1 AND 5;
SELECT sum(x::positive), max(x::positive), array_agg(x::positive ORDER BY x) FROM (VALUES (1), (2)) v (x);
SELECT 'a@b'::email = 'a@b', 'a@b'::email LIKE 'a%', length('a@b'::email), upper('a@b'::email), 'a@b'::email || 'c', 'b'::email::text IS NULL WHERE false;
SELECT to_json('a@b'::email), row_to_json(t) FROM (SELECT 5::positive AS a) t;

-- snippet: domain-created
CREATE DOMAIN d AS integer;
-- error: 42710
CREATE DOMAIN d AS text;
-- error: 42704
CREATE DOMAIN e AS nothing;
CREATE TABLE t (a integer);
-- refused: a domain over the type of a table's rows
CREATE DOMAIN rows_of_t AS t;
-- error: 42710
CREATE DOMAIN t AS integer;
-- error: 42710
CREATE TABLE d (a integer);
-- error: 42804
CREATE DOMAIN e AS text CHECK (VALUE);
-- error: 42703
CREATE DOMAIN e AS integer CHECK (x > 0);
-- error: 42883
CREATE DOMAIN e AS integer CHECK (VALUE ~ 'a');
-- error: 42601
CREATE DOMAIN e AS integer NULL NOT NULL;
-- error: 42601
CREATE DOMAIN e AS integer UNIQUE;
-- error: 42601
CREATE DOMAIN e AS integer PRIMARY KEY;
-- error: 42601
CREATE DOMAIN e AS integer DEFAULT 1 DEFAULT 2;
-- error: 42710
CREATE DOMAIN e AS integer CONSTRAINT a CHECK (VALUE > 0) CONSTRAINT a CHECK (VALUE < 9);
-- error: 42804
CREATE DOMAIN e AS integer COLLATE "C";
-- error: 22P02
CREATE DOMAIN e AS integer DEFAULT 'x';
-- error: 42804
CREATE DOMAIN e AS integer DEFAULT true;
CREATE DOMAIN "Odd Name" AS integer CHECK (VALUE <> 3) NOT NULL DEFAULT 4 CHECK (VALUE <> 5);
-- error: 23514
SELECT 5::"Odd Name";
-- error: 23502
SELECT NULL::"Odd Name";
SELECT 4::"Odd Name", pg_typeof(4::"Odd Name");

-- snippet: domain-columns
CREATE DOMAIN email AS text DEFAULT 'no@one' NOT NULL CHECK (VALUE ~ '@');
CREATE DOMAIN cents AS numeric(10, 2) CHECK (VALUE >= 0);
CREATE TABLE t (id integer PRIMARY KEY, e email, c cents DEFAULT 1, n cents);
INSERT INTO t (id) VALUES (1) RETURNING *;
INSERT INTO t VALUES (2, 'a@b', 3.456, NULL), (3, DEFAULT, DEFAULT, 7) RETURNING *;
-- error: 23514
INSERT INTO t VALUES (4, 'ab');
-- error: 23502
INSERT INTO t VALUES (4, NULL);
-- error: 23514
INSERT INTO t VALUES (4, 'a@b', -1);
-- error: 22003
INSERT INTO t VALUES (4, 'a@b', 123456789012);
-- error: 23514
INSERT INTO t SELECT 5, 'x';
-- error: 23514
INSERT INTO t SELECT id + 10, e, c - 2 FROM t;
INSERT INTO t SELECT id + 10, e, c + 2 FROM t RETURNING id, c;
UPDATE t SET c = c + 1 WHERE id < 10 RETURNING id, c;
-- error: 23514
UPDATE t SET c = c - 100 WHERE id = 1;
-- error: 23502
UPDATE t SET e = NULL WHERE id = 1;
UPDATE t SET e = DEFAULT, c = DEFAULT, n = DEFAULT WHERE id = 2 RETURNING *;
-- error: 23514
UPDATE t SET n = -1, c = 5 WHERE id = 2;
INSERT INTO t VALUES (1, 'x@y') ON CONFLICT (id) DO UPDATE SET e = excluded.e, n = 4 RETURNING *;
-- error: 23514
INSERT INTO t VALUES (1, 'x@y') ON CONFLICT (id) DO UPDATE SET e = 'nothing';
-- error: 23514
INSERT INTO t VALUES (1, 'nothing') ON CONFLICT (id) DO NOTHING;
SELECT id, e, c, n FROM t ORDER BY id;
SELECT sum(c), max(e), count(n) FROM t;
SELECT e, count(*) FROM t GROUP BY e ORDER BY e DESC;
SELECT id FROM t WHERE c > 2 AND e LIKE '%one' ORDER BY c DESC, id;
SELECT pg_typeof(e), pg_typeof(c), pg_typeof(c + 1), pg_typeof(e || '') FROM t LIMIT 1;
SELECT a.id, b.id FROM t a JOIN t b ON a.c = b.c AND a.id < b.id ORDER BY 1, 2;
DELETE FROM t WHERE e = 'no@one' AND id = 2 RETURNING id, e;

-- snippet: domain-defaults
CREATE DOMAIN d AS integer DEFAULT 3;
CREATE DOMAIN plain AS integer;
CREATE TABLE t (a d, b d DEFAULT 4, c d DEFAULT NULL, e plain, f plain DEFAULT 5);
INSERT INTO t DEFAULT VALUES RETURNING *;
ALTER DOMAIN d SET DEFAULT 7;
INSERT INTO t DEFAULT VALUES RETURNING *;
ALTER TABLE t ALTER a SET DEFAULT 8, ALTER b DROP DEFAULT;
INSERT INTO t DEFAULT VALUES RETURNING *;
ALTER DOMAIN d DROP DEFAULT;
INSERT INTO t DEFAULT VALUES RETURNING *;
ALTER DOMAIN d SET DEFAULT NULL;
-- error: 22P02
ALTER DOMAIN d SET DEFAULT 'x';
-- error: 42804
ALTER DOMAIN d SET DEFAULT now();
CREATE SEQUENCE s;
ALTER DOMAIN plain SET DEFAULT nextval('s');
INSERT INTO t (a) VALUES (1), (2) RETURNING e;
ALTER TABLE t ADD g d DEFAULT 6, ADD h d;
SELECT DISTINCT g, h FROM t;

-- snippet: domain-keys
CREATE DOMAIN id AS bigint CHECK (VALUE > 0);
CREATE DOMAIN code AS varchar(4);
CREATE TABLE p (i id PRIMARY KEY, c code UNIQUE);
CREATE TABLE f (a integer PRIMARY KEY, i id REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, c code REFERENCES p (c) ON DELETE SET NULL);
INSERT INTO p VALUES (1, 'one'), (2, 'two'), (3, 'abc');
INSERT INTO f VALUES (1, 1, 'two'), (2, 3, NULL);
-- error: 23503
INSERT INTO f VALUES (3, 9, NULL);
-- error: 23505
INSERT INTO p VALUES (2, 'x');
-- error: 23505
INSERT INTO p VALUES (4, 'two');
-- error: 22001
INSERT INTO p VALUES (4, 'too long');
UPDATE p SET i = 10 WHERE i = 1;
-- error: 23514
UPDATE p SET i = -10 WHERE i = 10;
SELECT * FROM f ORDER BY a;
DELETE FROM p WHERE c = 'two';
SELECT * FROM f ORDER BY a;
CREATE INDEX by_code ON f (c, i);
SELECT a FROM f WHERE c IS NULL AND i >= 3 ORDER BY a;
SELECT * FROM p WHERE i = 10;
SELECT * FROM p WHERE i IN (3, 10) ORDER BY i DESC;

-- snippet: domain-over-domain
CREATE DOMAIN small AS integer DEFAULT 5 CHECK (VALUE < 100);
CREATE DOMAIN smaller AS small CHECK (VALUE < 10);
CREATE DOMAIN smallest AS smaller NOT NULL DEFAULT 1 CONSTRAINT tiny CHECK (VALUE < 3);
SELECT 50::small, 5::smaller, 2::smallest;
-- error: 23514
SELECT 500::smaller;
-- error: 23514
SELECT 50::smaller;
-- error: 23514
SELECT 5::smallest;
-- error: 23502
SELECT NULL::smallest;
CREATE TABLE t (a small, b smaller, c smallest);
INSERT INTO t DEFAULT VALUES RETURNING *;
-- error: 23514
INSERT INTO t VALUES (1, 1, 3);
ALTER DOMAIN small ADD CONSTRAINT even CHECK (VALUE % 2 = 1);
-- error: 23514
INSERT INTO t VALUES (1, 2, 1);
-- error: 42601
ALTER DOMAIN smaller ADD CHECK (VALUE > 0), SET NOT NULL;
-- error: 2BP01
DROP DOMAIN small;
DROP DOMAIN small CASCADE;
SELECT * FROM t;

-- snippet: domain-over-others
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN good AS mood CHECK (VALUE > 'sad');
CREATE DOMAIN tags AS text[] CHECK (array_length(VALUE, 1) < 3 AND VALUE[1] <> '');
CREATE DOMAIN day AS date CHECK (VALUE >= '2000-01-01');
CREATE DOMAIN doc AS jsonb CHECK (VALUE ? 'a');
CREATE DOMAIN padded AS char(4);
CREATE DOMAIN yes AS boolean CHECK (VALUE);
CREATE DOMAIN key AS uuid;
CREATE DOMAIN moment AS timestamptz(0);
CREATE TABLE t (g good DEFAULT 'ok', t tags, d day, j doc, p padded, y yes, k key, m moment);
INSERT INTO t VALUES ('happy', '{a,b}', '2020-02-03', '{"a": 1}', 'x', true, '11111111-1111-1111-1111-111111111111', '2020-01-01 00:00:00.6+00') RETURNING *;
-- error: 23514
INSERT INTO t (g) VALUES ('sad');
-- error: 22P02
INSERT INTO t (g) VALUES ('bad');
-- error: 23514
INSERT INTO t (t) VALUES ('{a,b,c}');
-- error: 23514
INSERT INTO t (t) VALUES (ARRAY['', 'b']);
-- error: 23514
INSERT INTO t (d) VALUES ('1999-12-31');
-- error: 23514
INSERT INTO t (j) VALUES ('{}');
-- error: 23514
INSERT INTO t (y) VALUES (false);
-- error: 23514
UPDATE t SET t[3] = 'c';
UPDATE t SET t[2] = 'c' RETURNING t;
SELECT g::mood > 'ok', t[2], 'c' = ANY (t), unnest(t), d + 1, j ->> 'a', p || '!', NOT y FROM t;
SELECT ARRAY['a', 'b']::tags, '{a}'::tags || 'b'::text, cardinality('{a}'::tags), 'ok'::good, 'ok'::good::text, 'happy'::text::mood::good;
-- error: 23514
SELECT ARRAY['a', 'b', 'c']::tags;
ALTER TYPE mood ADD VALUE 'best';
INSERT INTO t (g) VALUES ('best') RETURNING g;
-- error: 2BP01
DROP TYPE mood;
DROP TYPE mood CASCADE;
SELECT count(*) FROM t;

-- snippet: domain-altered
CREATE DOMAIN d AS integer;
CREATE DOMAIN over_d AS d;
CREATE TABLE t (a d, b over_d);
INSERT INTO t VALUES (1, 2), (NULL, 3);
-- error: 23502
ALTER DOMAIN d SET NOT NULL;
-- error: 23514
ALTER DOMAIN d ADD CHECK (VALUE < 2);
-- error: 23514
ALTER DOMAIN d ADD CONSTRAINT less CHECK (VALUE < 3);
ALTER DOMAIN d ADD CONSTRAINT less CHECK (VALUE < 4);
-- error: 42710
ALTER DOMAIN d ADD CONSTRAINT less CHECK (VALUE < 4);
-- error: 23514
INSERT INTO t VALUES (4, 1);
-- error: 23514
INSERT INTO t VALUES (1, 4);
ALTER DOMAIN d ADD CHECK (VALUE > 1) NOT VALID;
-- error: 23514
INSERT INTO t VALUES (1, 3);
SELECT * FROM t ORDER BY b;
-- error: 23514
ALTER DOMAIN d VALIDATE CONSTRAINT d_check;
UPDATE t SET a = 2 WHERE a = 1;
ALTER DOMAIN d VALIDATE CONSTRAINT d_check;
ALTER DOMAIN d VALIDATE CONSTRAINT d_check;
-- error: 42704
ALTER DOMAIN d VALIDATE CONSTRAINT nothing;
ALTER DOMAIN d RENAME CONSTRAINT d_check TO "More";
-- error: 23514
INSERT INTO t VALUES (1, 3);
-- error: 42704
ALTER DOMAIN d RENAME CONSTRAINT d_check TO x;
-- error: 42710
ALTER DOMAIN d RENAME CONSTRAINT "More" TO less;
ALTER DOMAIN d DROP CONSTRAINT "More";
INSERT INTO t VALUES (1, 1);
-- error: 42704
ALTER DOMAIN d DROP CONSTRAINT "More";
ALTER DOMAIN d DROP CONSTRAINT IF EXISTS "More";
ALTER DOMAIN d DROP CONSTRAINT less CASCADE;
INSERT INTO t VALUES (100, 100);
DELETE FROM t WHERE a IS NULL;
ALTER DOMAIN d SET NOT NULL;
-- error: 23502
INSERT INTO t VALUES (NULL, 1);
ALTER DOMAIN d DROP NOT NULL;
INSERT INTO t VALUES (NULL, 1);
ALTER DOMAIN d RENAME TO e;
-- error: 42704
SELECT 1::d;
SELECT 1::e, pg_typeof(a) FROM t LIMIT 1;
-- error: 42710
ALTER DOMAIN e RENAME TO over_d;
-- error: 42704
ALTER DOMAIN d DROP DEFAULT;
-- error: 42809
ALTER DOMAIN int4 DROP DEFAULT;
ALTER TYPE e RENAME TO f;
SELECT 1::f;
-- error: 42601
ALTER DOMAIN f ADD UNIQUE (VALUE);

-- snippet: domain-dropped
CREATE DOMAIN d AS integer;
CREATE TABLE t (id integer, a d, b integer DEFAULT 3::d, c integer CHECK (c::d > 0));
CREATE VIEW v AS SELECT a FROM t;
-- error: 2BP01
DROP DOMAIN d;
-- error: 42704
DROP DOMAIN nothing;
DROP DOMAIN IF EXISTS nothing;
CREATE TYPE e AS ENUM ('a');
-- error: 42809
DROP DOMAIN e;
-- error: 42809
DROP DOMAIN IF EXISTS t;
CREATE DOMAIN x AS text;
CREATE DOMAIN y AS text;
DROP DOMAIN x, y RESTRICT;
DROP DOMAIN d CASCADE;
INSERT INTO t VALUES (1) RETURNING *;
CREATE DOMAIN d AS text;
DROP TYPE d;
CREATE DOMAIN d AS text;
CREATE TABLE u (a d);
DROP TABLE u;
DROP DOMAIN d;

-- snippet: domain-tables
CREATE DOMAIN d AS integer CHECK (VALUE > 0);
CREATE TABLE t (id integer);
INSERT INTO t VALUES (1), (2);
ALTER TABLE t ADD a d;
ALTER TABLE t ADD b d DEFAULT 5;
-- error: 23514
ALTER TABLE t ADD c d DEFAULT -5;
ALTER TABLE t ADD c integer DEFAULT 0;
-- error: 23514
ALTER TABLE t ALTER c TYPE d;
ALTER TABLE t ALTER c TYPE d USING c + 1;
SELECT * FROM t ORDER BY id;
-- error: 23514
UPDATE t SET c = 0;
ALTER TABLE t ALTER id TYPE d;
-- error: 23514
INSERT INTO t VALUES (-1);
ALTER TABLE t ALTER id TYPE bigint;
INSERT INTO t VALUES (-1, 1, 1, 1);
-- error: 23514
INSERT INTO t VALUES (-1);
-- error: 42804
ALTER TABLE t ALTER id TYPE d USING id > 0;
CREATE DOMAIN strict AS integer NOT NULL;
-- error: 23502
ALTER TABLE t ADD s strict;
ALTER TABLE t ADD s strict DEFAULT 1;
CREATE TABLE like_t (LIKE t INCLUDING ALL);
-- error: 23514
INSERT INTO like_t VALUES (1, -1);
-- error: 23502
INSERT INTO like_t (id, c, s) VALUES (1, 1, NULL);
INSERT INTO like_t (id, c) VALUES (1, 1) RETURNING *;
CREATE TABLE g (a integer, b d GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO g VALUES (2) RETURNING *;
-- error: 23514
INSERT INTO g VALUES (-2);
-- error: 23514
UPDATE g SET a = 0;
CREATE TABLE c (a d CHECK (a < 10) NOT NULL);
-- error: 23514
INSERT INTO c VALUES (10);
-- error: 23514
INSERT INTO c VALUES (0);
-- error: 23502
INSERT INTO c VALUES (NULL);
CREATE VIEW v AS SELECT id, a FROM t WHERE id > 0;
-- error: 23514
UPDATE v SET a = -4;
UPDATE v SET a = 4;
SELECT * FROM v ORDER BY id;
CREATE TEMP TABLE temporary (a d);
-- error: 23514
INSERT INTO temporary VALUES (0);
ALTER TABLE t RENAME b TO z;
-- error: 23514
INSERT INTO t (id, c, z) VALUES (9, 1, 0);

-- snippet: domain-functions
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN strict AS text NOT NULL;
CREATE FUNCTION takes(a positive) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a * 2; END $$;
SELECT takes(3), takes(NULL);
-- error: 23514
SELECT takes(-3);
CREATE FUNCTION gives(a integer) RETURNS positive LANGUAGE plpgsql AS $$ BEGIN RETURN a - 2; END $$;
SELECT gives(3);
-- error: 23514
SELECT gives(2);
CREATE FUNCTION in_sql(a integer) RETURNS positive LANGUAGE sql AS 'SELECT a - 2';
SELECT in_sql(5);
-- error: 23514
SELECT in_sql(1);
CREATE FUNCTION outs(a integer, OUT b positive, OUT c text) LANGUAGE plpgsql AS $$ BEGIN c := 'x'; b := a; END $$;
SELECT * FROM outs(4);
-- error: 23514
SELECT * FROM outs(-4);
CREATE FUNCTION rows_of(n integer) RETURNS TABLE (a positive, b text) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP a := 3 - i; b := i; RETURN NEXT; END LOOP; END $$;
SELECT * FROM rows_of(2);
-- error: 23514
SELECT * FROM rows_of(3);
CREATE FUNCTION set_of(n integer) RETURNS SETOF positive LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT n; RETURN NEXT n - 1; END $$;
SELECT * FROM set_of(2);
-- error: 23514
SELECT * FROM set_of(1);
CREATE PROCEDURE p(a positive, INOUT b positive) LANGUAGE plpgsql AS $$ BEGIN b := b - a; END $$;
CALL p(1, 5);
-- error: 23514
CALL p(5, 5);
-- error: 23514
CALL p(0, 5);
CREATE FUNCTION needs(a strict) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN a; END $$;
-- error: 23502
SELECT needs(NULL);
SELECT needs('x');
-- error: 2BP01
DROP DOMAIN positive;
DROP DOMAIN strict CASCADE;
-- error: 42883
SELECT needs('x');

-- snippet: domain-variables
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN strict AS text NOT NULL;
CREATE TABLE t (id integer, a positive);
INSERT INTO t VALUES (1, 5), (2, NULL);
CREATE FUNCTION f(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v positive := 1;
    w t.a%TYPE;
    x v%TYPE;
    r t%ROWTYPE;
BEGIN
    CASE n
        WHEN 0 THEN v := 0;
        WHEN 1 THEN v := 1;
        WHEN 2 THEN w := -2;
        WHEN 3 THEN x := -3;
        WHEN 4 THEN SELECT -4 INTO v;
        WHEN 5 THEN SELECT a INTO v FROM t WHERE id = 1;
        WHEN 6 THEN SELECT a INTO v FROM t WHERE id = 9;
        WHEN 7 THEN SELECT * INTO r FROM t WHERE id = 1; v := r.a;
        WHEN 8 THEN r.a := -8;
        WHEN 9 THEN UPDATE t SET a = 6 WHERE id = 1 RETURNING a INTO v;
        WHEN 10 THEN v := NULL;
        WHEN 11 THEN v := '12';
        WHEN 12 THEN FOR v IN SELECT 3 LOOP w := v; END LOOP;
        WHEN 13 THEN FOR v IN SELECT -3 LOOP w := v; END LOOP;
    END CASE;
    RETURN format('%s %s %s %s', v, w, x, r.a);
END $$;
-- error: 23514
SELECT f(0);
SELECT f(1);
-- error: 23514
SELECT f(2);
-- error: 23514
SELECT f(3);
-- error: 23514
SELECT f(4);
SELECT f(5);
SELECT f(6);
SELECT f(7);
-- error: 23514
SELECT f(8);
SELECT f(9);
SELECT f(10);
SELECT f(11);
SELECT f(12);
-- error: 23514
SELECT f(13);
-- error: 23502
DO $$ DECLARE s strict; BEGIN END $$;
-- error: 23502
DO $$ DECLARE s strict := 'x'; BEGIN s := NULL; END $$;
-- error: 23502
DO $$ DECLARE s strict := 'x'; BEGIN SELECT 'y' INTO s WHERE false; END $$;
DO $$ DECLARE v positive := 3; BEGIN v := -1; EXCEPTION WHEN check_violation THEN RAISE NOTICE 'still %', v; END $$;
DO $$ DECLARE v positive := 3; n text; BEGIN v := -1; EXCEPTION WHEN check_violation THEN GET STACKED DIAGNOSTICS n = CONSTRAINT_NAME; RAISE NOTICE '%', n; END $$;

-- snippet: domain-triggers
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE t (id integer PRIMARY KEY, a positive, b integer);
CREATE FUNCTION takes_b() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.b; RETURN NEW; END $$;
CREATE TRIGGER takes BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION takes_b();
INSERT INTO t VALUES (1, 5, 6) RETURNING *;
-- error: 23514
INSERT INTO t VALUES (2, 5, -6);
-- error: 23514
INSERT INTO t VALUES (2, -5, 6);
-- error: 23514
UPDATE t SET b = -1;
UPDATE t SET b = 9 RETURNING *;

-- snippet: domain-views
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE t (a positive, b integer);
INSERT INTO t VALUES (1, 1), (2, -2);
CREATE VIEW v AS SELECT a, b::positive AS c FROM t WHERE a = 1;
SELECT * FROM v;
CREATE VIEW w AS SELECT b::positive AS c FROM t;
-- error: 23514
SELECT * FROM w;
-- error: 2BP01
DROP DOMAIN positive;
DROP DOMAIN positive CASCADE;
SELECT * FROM t ORDER BY b;

-- snippet: domain-in-blocks
BEGIN;
CREATE DOMAIN d AS integer CHECK (VALUE > 0);
CREATE TABLE t (a d);
INSERT INTO t VALUES (1);
SAVEPOINT s;
-- error: 23514
INSERT INTO t VALUES (0);
ROLLBACK TO s;
ALTER DOMAIN d ADD CONSTRAINT small CHECK (VALUE < 5);
SAVEPOINT s;
-- error: 23514
INSERT INTO t VALUES (5);
ROLLBACK TO s;
SELECT * FROM t;

-- snippet: domain-prepared
CREATE DOMAIN d AS integer CHECK (VALUE > 0);
CREATE TABLE t (a d);
PREPARE q AS INSERT INTO t VALUES ($1);
EXECUTE q(1);
-- error: 23514
EXECUTE q(0);
ALTER DOMAIN d DROP CONSTRAINT d_check;
EXECUTE q(0);
ALTER DOMAIN d ADD CONSTRAINT less CHECK (VALUE < 5);
-- error: 23514
EXECUTE q(5);
SELECT * FROM t ORDER BY a;

-- snippet: domain-catalogs
CREATE DOMAIN email AS text COLLATE "C" DEFAULT 'no@one' NOT NULL CHECK (VALUE ~ '@') CONSTRAINT short CHECK (length(VALUE) < 40 AND (VALUE <> 'x' OR VALUE IS NULL));
CREATE DOMAIN price AS numeric(10, 2) DEFAULT 1.5 CHECK (VALUE >= 0) CHECK (VALUE BETWEEN 0 AND 1000);
CREATE DOMAIN tags AS varchar(5)[];
CREATE DOMAIN "Over" AS price DEFAULT 3;
CREATE DOMAIN count AS integer CHECK (VALUE > 0);
ALTER DOMAIN count ADD CONSTRAINT later CHECK (VALUE < 10) NOT VALID;
CREATE TABLE t (id integer PRIMARY KEY, e email, p price DEFAULT 2, g tags, o "Over" NOT NULL, c count);
CREATE INDEX by_price ON t (p);
SELECT typname, typlen, typbyval, typtype, typcategory, typispreferred, typisdefined, typdelim, typrelid, typsubscript, typelem, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typalign, typstorage, typnotnull, typbasetype::regtype, typtypmod, typndims, typcollation, typdefault FROM pg_type WHERE typname IN ('email', 'price', 'tags', 'Over', 'count') ORDER BY typname;
SELECT typname, typlen, typbyval, typtype, typcategory, typsubscript, typelem::regtype, typinput, typalign, typstorage, typnotnull, typbasetype FROM pg_type WHERE typname IN ('_email', '_price', '_Over', '_count') ORDER BY typname;
SELECT t.typname, a.typname, t.oid::regtype, a.oid::regtype FROM pg_type t JOIN pg_type a ON a.oid = t.typarray WHERE t.typtype = 'd' AND t.typnamespace = current_schema()::regnamespace ORDER BY 1;
SELECT conname, contype, convalidated, conrelid, contypid::regtype, conkey IS NULL, connoinherit, conislocal, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE contypid <> 0 AND connamespace = current_schema()::regnamespace ORDER BY contypid::regtype::text, conname;
SELECT attname, format_type(atttypid, atttypmod), atttypid::regtype, atttypmod, attnotnull, attlen, attalign, attstorage, atthasdef FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
SELECT format_type('price'::regtype, NULL), format_type('price'::regtype, -1), '"Over"'::regtype, 'email[]'::regtype, to_regtype('count'), to_regtype('nothing');
SELECT domain_catalog = table_catalog, domain_schema = current_schema(), domain_name, column_name, column_default, is_nullable, data_type, udt_name, character_maximum_length, numeric_precision, numeric_scale FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
SELECT domain_name, data_type, character_maximum_length, character_octet_length, collation_name, numeric_precision, numeric_precision_radix, numeric_scale, domain_default, udt_name FROM information_schema.domains WHERE domain_schema = current_schema() ORDER BY domain_name;
SELECT constraint_name, domain_name, is_deferrable, initially_deferred FROM information_schema.domain_constraints WHERE domain_schema = current_schema() ORDER BY domain_name, constraint_name;
SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = current_schema() AND constraint_name NOT LIKE '%not_null' ORDER BY 1, 2;
SELECT domain_name, table_name, column_name FROM information_schema.column_domain_usage WHERE domain_schema = current_schema() ORDER BY 1, 3;
SELECT domain_name, udt_name FROM information_schema.domain_udt_usage WHERE domain_schema = current_schema() ORDER BY 1;
SELECT t.typname, pg_catalog.format_type(t.typbasetype, t.typtypmod), (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt WHERE c.oid = t.typcollation AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation), CASE WHEN t.typnotnull THEN 'not null' END, t.typdefault, pg_catalog.array_to_string(ARRAY(SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid ORDER BY r.conname), ' ') FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND pg_catalog.pg_type_is_visible(t.oid) ORDER BY 1, 2;
COMMENT ON DOMAIN email IS 'where mail goes';
COMMENT ON TYPE price IS 'in euros';
COMMENT ON CONSTRAINT short ON DOMAIN email IS 'not long';
-- error: 42704
COMMENT ON CONSTRAINT long ON DOMAIN email IS 'not long';
-- error: 42704
COMMENT ON DOMAIN nothing IS 'x';
SELECT obj_description('email'::regtype, 'pg_type'), obj_description('price'::regtype, 'pg_type'), (SELECT obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = 'short');
CREATE FUNCTION f(a email, b "Over" DEFAULT 4) RETURNS price LANGUAGE sql AS 'SELECT 1.5';
SELECT pg_get_function_arguments('f'::regproc), pg_get_function_result('f'::regproc), pg_get_function_identity_arguments('f'::regproc);
SELECT prorettype::regtype, proargtypes[0]::regtype FROM pg_proc WHERE proname = 'f';
DROP FUNCTION f;
ALTER DOMAIN email RENAME TO address;
SELECT domain_name FROM information_schema.columns WHERE table_name = 't' AND column_name = 'e';

-- snippet: domain-names-follow
CREATE FUNCTION is_odd(a integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT a % 2 = 1';
CREATE SEQUENCE s INCREMENT 2;
CREATE DOMAIN odd AS integer DEFAULT nextval('s') CHECK (is_odd(VALUE));
CREATE TABLE t (a odd);
INSERT INTO t DEFAULT VALUES RETURNING a;
-- error: 23514
INSERT INTO t VALUES (2);
ALTER FUNCTION is_odd RENAME TO has_rest;
ALTER SEQUENCE s RENAME TO draws;
INSERT INTO t DEFAULT VALUES RETURNING a;
-- error: 23514
INSERT INTO t VALUES (2);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid = 'odd'::regtype;
-- error: 2BP01
-- refused: dropping sequence draws
DROP SEQUENCE draws;

-- snippet: domain-many-rows
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE t (id integer PRIMARY KEY, a positive, b positive DEFAULT 1);
INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;
UPDATE t SET a = a + b, b = DEFAULT WHERE id > 50;
SELECT count(*), sum(a), sum(b) FROM t;
-- error: 23514
UPDATE t SET a = 50 - id WHERE id > 10;
-- error: 23514
INSERT INTO t SELECT i, 150 - i FROM generate_series(101, 200) i;
SELECT count(*), sum(a), sum(b) FROM t;
WITH moved AS (DELETE FROM t WHERE id > 90 RETURNING id, a) INSERT INTO t SELECT id + 100, a FROM moved RETURNING id;
-- error: 23514
WITH moved AS (DELETE FROM t WHERE id > 50 RETURNING id, a) INSERT INTO t SELECT id + 1000, a - 1000 FROM moved;
SELECT count(*) FROM t WHERE a::positive > 3 AND id < 20;
SELECT id FROM t WHERE a = 7::positive;
-- error: 23514
SELECT id FROM t WHERE (a - 7)::positive > 3;
SELECT a, a::positive = b, (a + b)::positive FROM t WHERE id IN (1, 2) ORDER BY id;
SELECT (SELECT max(a)::positive FROM t), EXISTS (SELECT FROM t WHERE a::positive = 4), ARRAY(SELECT a::positive FROM t WHERE id < 3 ORDER BY 1);
SELECT a::positive, count(*) FROM t WHERE id < 4 GROUP BY a::positive ORDER BY 1;
SELECT sum(a::positive) OVER (ORDER BY id) FROM t WHERE id < 4 ORDER BY 1;
UPDATE t SET (a, b) = (3, 4) WHERE id = 1 RETURNING a, b;
-- error: 23514
UPDATE t SET (a, b) = (3, -4) WHERE id = 1;
UPDATE t SET a = u.a FROM (VALUES (1, 9)) u (id, a) WHERE t.id = u.id RETURNING t.a;
-- error: 23514
UPDATE t SET a = u.a FROM (VALUES (1, -9)) u (id, a) WHERE t.id = u.id;

-- snippet: domain-actions
CREATE DOMAIN small AS integer DEFAULT 3 CHECK (VALUE < 10);
CREATE DOMAIN never_null AS integer NOT NULL;
CREATE TABLE p (i integer PRIMARY KEY);
CREATE TABLE f (a integer PRIMARY KEY, i small REFERENCES p ON UPDATE CASCADE ON DELETE SET DEFAULT, n never_null REFERENCES p ON DELETE SET NULL);
INSERT INTO p VALUES (1), (2), (3), (4);
INSERT INTO f VALUES (1, 1, 4), (2, 2, 4);
-- error: 23514
UPDATE p SET i = 10 WHERE i = 1;
UPDATE p SET i = 9 WHERE i = 1;
DELETE FROM p WHERE i = 2;
-- error: 23502
DELETE FROM p WHERE i = 4;
SELECT * FROM f ORDER BY a;

-- snippet: domain-loops
CREATE DOMAIN tags AS text[] CHECK (array_length(VALUE, 1) < 3);
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
DO $$ DECLARE t tags := '{a}'; BEGIN t[2] := 'b'; RAISE NOTICE '%', t; t[3] := 'c'; EXCEPTION WHEN check_violation THEN RAISE NOTICE 'kept %', t; END $$;
-- error: 23514
DO $$ DECLARE p positive := 4; q p%TYPE := p * 2; BEGIN WHILE p > 1 LOOP p := p - 1; END LOOP; RAISE NOTICE '% %', p, q; p := p - 1; END $$;
CREATE FUNCTION halves(p positive) RETURNS SETOF positive LANGUAGE plpgsql AS $$ BEGIN WHILE p > 1 LOOP RETURN NEXT p; p := p / 2; END LOOP; END $$;
SELECT * FROM halves(9);
-- error: 23514
SELECT halves(0);
SELECT sum(h) FROM halves(40) h;
CREATE FUNCTION of_each(a integer) RETURNS positive LANGUAGE sql AS 'SELECT a * 2';
SELECT of_each(a) FROM (VALUES (1), (2)) v (a) ORDER BY 1;
-- error: 23514
SELECT of_each(a) FROM (VALUES (1), (-2)) v (a);
DO $$ BEGIN EXECUTE 'SELECT 1'; DECLARE p positive := 1; BEGIN p := p + 1; RAISE NOTICE '%', p; p := 0; EXCEPTION WHEN check_violation THEN RAISE NOTICE 'no'; END; END $$;
