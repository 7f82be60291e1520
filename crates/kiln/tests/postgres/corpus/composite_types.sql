-- Composite types: created, altered, dropped; in columns, functions and variables.

-- snippet: a-composite-type
CREATE TYPE pair AS (a INT, b TEXT);
SELECT ROW(1, 'x')::pair, (2, 'y z')::pair, '(3,"q ""w""")'::pair, NULL::pair;
SELECT (ROW(1, 'x')::pair).a, (ROW(1, 'x')::pair).b, (ROW(1, 'x')::pair).*;
SELECT ROW(1, 'x')::pair = ROW(1, 'x')::pair, ROW(1, NULL)::pair = ROW(1, NULL)::pair, ROW(1, NULL)::pair < ROW(1, 'z')::pair;
SELECT ROW(1, NULL)::pair IS NULL, ROW(NULL, NULL)::pair IS NULL, ROW(1, 'x')::pair IS NOT NULL;
SELECT ROW(1, 'x')::pair = ROW(1, 'x'::text), ROW(1, 'x'::text) = ROW(1, 'x')::pair;
SELECT pg_typeof(ROW(1, 'x')::pair), pg_typeof(ARRAY[ROW(1, 'x')::pair]);
SELECT to_json(ROW(1, 'x')::pair), row_to_json(ROW(NULL, 'y')::pair), to_jsonb(ROW(1, 'x')::pair);
SELECT ARRAY[ROW(1, 'x'), ROW(2, 'y')]::pair[], '{"(1,x)","(2,\"y z\")"}'::pair[];
SELECT (ARRAY[ROW(1, 'x'), ROW(2, 'y')]::pair[])[2].b;
-- refused: unnest of rows in FROM
SELECT p FROM unnest(ARRAY[ROW(1, 'x'), ROW(2, 'y')]::pair[]) p;
SELECT (p).*, p FROM (SELECT unnest(ARRAY[ROW(1, 'x'), ROW(2, 'y')]::pair[]) AS p) AS s;
SELECT ROW(1.6, 5)::pair;
-- error: 42710
CREATE TYPE pair AS (a INT);
-- error: 42701
CREATE TYPE twice AS (a INT, a TEXT);
-- error: 42704
CREATE TYPE other AS (a nothing);
-- error: 42846
SELECT ROW(1)::pair;
-- error: 42846
SELECT ROW(1, 2, 3)::pair;
-- error: 22P02
SELECT ROW('q', 2)::pair;
-- error: 22P02
SELECT '(x,y)'::pair;
-- error: 42703
SELECT (ROW(1, 'x')::pair).c;
-- error: 42846
SELECT 1::pair;
-- error: 42846
SELECT ROW(1, 'x')::pair::int;
DROP TYPE pair;
-- error: 42704
SELECT NULL::pair;
-- error: 42704
DROP TYPE pair;
DROP TYPE IF EXISTS pair;

-- snippet: columns-of-composite-types
CREATE TYPE pair AS (a INT, b VARCHAR(5));
CREATE TABLE t (id INT PRIMARY KEY, p pair, ps pair[]);
INSERT INTO t VALUES (1, ROW(1, 'x'), ARRAY[ROW(1, 'x')::pair, NULL]), (2, '(2,"y z")', '{"(3,q)"}'), (3, NULL, NULL), (4, (NULL, NULL), '{}');
SELECT * FROM t ORDER BY id;
SELECT id, (p).a, (p).b, (t.p).a + 1 FROM t ORDER BY id;
SELECT (p).* FROM t ORDER BY id;
SELECT id, (ps[1]).b FROM t ORDER BY id;
SELECT id, p IS NULL, p IS NOT NULL FROM t ORDER BY id;
SELECT id FROM t WHERE (p).a = 2;
SELECT id FROM t WHERE p = ROW(1, 'x')::pair;
SELECT p FROM t ORDER BY p;
SELECT p, count(*) FROM t GROUP BY p ORDER BY p;
SELECT DISTINCT p FROM t ORDER BY p DESC;
SELECT t FROM t ORDER BY id;
SELECT to_json(t) FROM t ORDER BY id;
SELECT json_agg(p ORDER BY id) FROM t;
UPDATE t SET p = ROW(9, 'n') WHERE id = 1;
UPDATE t SET p = NULL WHERE id = 2;
UPDATE t SET p = ROW((p).a + 1, (p).b) WHERE id = 1;
SELECT id, p FROM t ORDER BY id;
-- error: 22001
INSERT INTO t VALUES (5, ROW(1, 'toolong'), NULL);
-- error: 22001
INSERT INTO t VALUES (5, '(1,toolong)', NULL);
-- error: 22P02
INSERT INTO t VALUES (5, '(x,y)', NULL);
-- error: 42804
INSERT INTO t VALUES (5, 7, NULL);
DELETE FROM t WHERE p = ROW(10, 'n')::pair;
SELECT count(*) FROM t;
-- error: 2BP01
DROP TYPE pair;
DROP TYPE pair CASCADE;
SELECT * FROM t ORDER BY id;

-- snippet: defaults-and-checks
CREATE TYPE pair AS (a INT, b INT);
CREATE TABLE t (id INT PRIMARY KEY, p pair DEFAULT ROW(1, 2) NOT NULL, CHECK ((p).a < (p).b));
INSERT INTO t (id) VALUES (1);
INSERT INTO t VALUES (2, ROW(3, 4)::pair);
SELECT * FROM t ORDER BY id;
-- error: 23514
INSERT INTO t VALUES (3, ROW(4, 3)::pair);
-- error: 23502
INSERT INTO t VALUES (4, NULL);
ALTER TABLE t ADD COLUMN q pair;
SELECT * FROM t ORDER BY id;

-- snippet: composite-types-in-composite-types
CREATE TYPE spot AS (x INT, y INT);
CREATE TYPE edge AS (p spot, q spot, tags TEXT[]);
CREATE TABLE t (id INT PRIMARY KEY, l edge);
INSERT INTO t VALUES (1, ROW(ROW(1, 2), ROW(3, 4), '{a,"b c"}')), (2, '("(5,6)",,)');
SELECT * FROM t ORDER BY id;
SELECT ((l).p).x, (l).q.y, (l).tags[1] FROM t ORDER BY id;
SELECT to_json(l) FROM t ORDER BY id;
SELECT l = ROW(ROW(1, 2), ROW(3, 4), '{a,"b c"}')::edge FROM t ORDER BY id;
SELECT (l).p, (l).q IS NULL FROM t ORDER BY id;
-- error: 2BP01
DROP TYPE edge;

-- snippet: altered-types
CREATE TYPE pair AS (a INT, b TEXT);
ALTER TYPE pair ADD ATTRIBUTE c INT;
SELECT ROW(1, 'x', 2)::pair;
ALTER TYPE pair RENAME ATTRIBUTE c TO d;
SELECT (ROW(1, 'x', 2)::pair).d;
ALTER TYPE pair DROP ATTRIBUTE a;
SELECT ROW('x', 2)::pair;
ALTER TYPE pair DROP ATTRIBUTE IF EXISTS a;
-- error: 42703
ALTER TYPE pair DROP ATTRIBUTE a;
-- error: 42701
ALTER TYPE pair ADD ATTRIBUTE b INT;
-- error: 42703
ALTER TYPE pair RENAME ATTRIBUTE x TO y;
ALTER TYPE pair RENAME TO two;
SELECT ROW('x', 2)::two, pg_typeof(ROW('x', 2)::two);
-- error: 42704
SELECT NULL::pair;
-- error: 42809
ALTER TYPE two ADD VALUE 'x';
CREATE TABLE t (id INT PRIMARY KEY, p two);
-- refused: altering type two, which column p of table t uses,
ALTER TYPE two ADD ATTRIBUTE z INT;

-- snippet: functions-of-composite-types
CREATE TYPE pair AS (a INT, b TEXT);
CREATE FUNCTION sum_of(p pair) RETURNS INT LANGUAGE sql AS 'SELECT (p).a + length((p).b)';
SELECT sum_of(ROW(1, 'xyz')), sum_of(ROW(1, 'xyz')::pair), sum_of('(2,q)'), sum_of(NULL);
CREATE FUNCTION inc(p pair) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN RETURN p.a + 1; END $$;
SELECT inc(ROW(1, 'xyz')), inc(ROW(5, NULL)::pair);
CREATE FUNCTION keep() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE p pair; q pair := ROW(7, 'seven');
BEGIN
  p := ROW(1, 'one');
  IF p = q THEN RETURN 'same'; END IF;
  q := p;
  RETURN p::text || q::text || (p = q)::text || q.b;
END $$;
SELECT keep();

-- snippet: functions-that-return-rows
CREATE TYPE pair AS (a INT, b TEXT);
CREATE FUNCTION one(n INT) RETURNS pair LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(n, 'n' || n); END $$;
SELECT one(1), (one(2)).b, (one(3)).*, pg_typeof(one(4));
SELECT * FROM one(5);
SELECT f.a + 1, f FROM one(6) f;
CREATE FUNCTION two(n INT) RETURNS pair LANGUAGE sql AS $$ SELECT n, 'q'::text $$;
SELECT two(1), (two(2)).a;
CREATE FUNCTION three(n INT) RETURNS pair LANGUAGE sql AS $$ SELECT ROW(n, 'r')::pair $$;
SELECT three(1), (three(2)).b;
CREATE FUNCTION many(n INT) RETURNS SETOF pair LANGUAGE plpgsql AS $$
DECLARE p pair;
BEGIN
  FOR i IN 1..n LOOP
    p.a := i;
    p.b := 'i' || i;
    RETURN NEXT p;
  END LOOP;
  RETURN NEXT ROW(99, 'end')::pair;
  RETURN QUERY SELECT 7, 'seven'::text;
END $$;
SELECT * FROM many(2);
SELECT m, m.b FROM many(1) m;
CREATE FUNCTION nothing() RETURNS pair LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
SELECT nothing(), nothing() IS NULL, (nothing()).a;
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT);
INSERT INTO shop VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION shout(s shop) RETURNS TEXT LANGUAGE sql AS $$ SELECT upper(s.name) || s.id $$;
SELECT shout(s), shout(ROW(5, 'z')) FROM shop s ORDER BY id;
CREATE FUNCTION row_of(n INT) RETURNS shop LANGUAGE plpgsql AS $$
DECLARE s shop;
BEGIN
  SELECT * INTO s FROM shop WHERE id = n;
  RETURN s;
END $$;
SELECT row_of(1), (row_of(2)).name, row_of(3) IS NULL;
SELECT * FROM row_of(2);
CREATE FUNCTION outs(n INT, OUT x INT, OUT y TEXT) LANGUAGE plpgsql AS $$ BEGIN x := n; y := 'y'; END $$;
SELECT outs(1), (outs(2)).y, (outs(3)).*;
CREATE FUNCTION vars() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  p pair;
  q pair := ROW(1, 'one');
  s shop;
  t TEXT := '';
BEGIN
  t := t || COALESCE(p::text, 'null') || (p IS NULL)::text;
  p := q;
  p.b := 'two';
  t := t || p::text || (p = q)::text || (p IS DISTINCT FROM q)::text;
  p := one(8);
  t := t || p::text;
  p := NULL;
  t := t || COALESCE(p::text, 'null');
  s := ROW(4, 'four');
  t := t || shout(s);
  INSERT INTO shop SELECT s.*;
  SELECT 5, 'five' INTO q;
  t := t || to_json(q)::text;
  RETURN t;
END $$;
SELECT vars();
SELECT s FROM shop s ORDER BY id;

-- snippet: json-of-composite-types
CREATE TYPE pair AS (a INT, b TEXT);
SELECT * FROM json_populate_record(NULL::pair, '{"a": 1, "b": "x", "c": 2}');
SELECT * FROM jsonb_populate_recordset(NULL::pair, '[{"a": 1}, {"b": "q"}]');
CREATE TABLE t (id INT, name TEXT);
SELECT * FROM json_populate_record(NULL::t, '{"id": 1, "name": "x"}');

-- snippet: types-in-the-catalogs
CREATE TYPE pair AS (a INT, b VARCHAR(7));
SELECT typname, typtype, typcategory, typlen, typrelid <> 0 FROM pg_type WHERE typname IN ('pair', '_pair') ORDER BY 1;
SELECT relname, relkind, relnatts, reltype <> 0 FROM pg_class WHERE relname = 'pair';
SELECT attname, attnum, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = (SELECT typrelid FROM pg_type WHERE typname = 'pair') ORDER BY attnum;
SELECT 'pair'::regtype, 'pair[]'::regtype, 'pair'::regtype::oid = (SELECT oid FROM pg_type WHERE typname = 'pair');
COMMENT ON TYPE pair IS 'two';
SELECT obj_description('pair'::regtype, 'pg_type');
CREATE TABLE t (p pair, ps pair[]);
SELECT column_name, data_type, udt_name FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
SELECT user_defined_type_name, user_defined_type_category FROM information_schema.user_defined_types WHERE user_defined_type_name = 'pair';
SELECT attribute_name, ordinal_position, is_nullable, data_type, character_maximum_length, attribute_udt_name FROM information_schema.attributes WHERE udt_name = 'pair' ORDER BY 2;

-- snippet: relations-of-types
CREATE TYPE span AS (low INT, high NUMERIC(6, 2));
SELECT relname, relkind, pg_table_is_visible(oid), reltype::regtype FROM pg_class WHERE relname = 'span';
SELECT pg_type_is_visible('span'::regtype), 'span'::regclass, to_regclass('span');
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 'span'::regclass ORDER BY attnum;
DROP TYPE span;
SELECT to_regclass('span');

-- snippet: sets-of-rows-with-one-field
CREATE TYPE single AS (a INT);
CREATE FUNCTION singles() RETURNS SETOF single LANGUAGE sql AS 'SELECT generate_series(1, 3)';
CREATE FUNCTION one() RETURNS single LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION numbers() RETURNS TABLE (n INT) LANGUAGE sql AS 'SELECT generate_series(1, 3)';
SELECT one(), (one()).a;
SELECT * FROM singles();
SELECT s, s.a FROM singles() s;
SELECT numbers();
-- refused: a call of singles as a value, since it gives rows
SELECT singles();
