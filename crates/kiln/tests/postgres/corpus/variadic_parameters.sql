-- Functions and procedures of users with a VARIADIC parameter.
-- compare: messages

-- snippet: elements-one-by-one-and-as-an-array
CREATE FUNCTION va(x TEXT, VARIADIC a INTEGER[]) RETURNS TEXT LANGUAGE sql AS 'SELECT x || cardinality(a) || a::text';
SELECT va('a', 1, 2), va('b', VARIADIC '{5}'), va('c', VARIADIC ARRAY[]::int[]), va('d', 1, 2::smallint, NULL), va('e', '1', '2');
SELECT va('a', VARIADIC NULL), va('a', NULL);
SELECT va(x => 'a', VARIADIC a => ARRAY[1]), va('q', VARIADIC a => ARRAY[1]), va('q', VARIADIC a := ARRAY[1]);
SELECT g, va('g', g, g + 1) FROM generate_series(1, 2) g;

-- snippet: calls-that-match-nothing
CREATE FUNCTION va(x TEXT, VARIADIC a INTEGER[]) RETURNS TEXT LANGUAGE sql AS 'SELECT x || cardinality(a) || a::text';
-- error: 42883
SELECT va('a', ARRAY[1]);
-- error: 42883
SELECT va('a');
-- error: 42883
SELECT va(x => 'a', a => ARRAY[1]);
-- error: 42883
SELECT va('a', VARIADIC 5);
-- error: 42883
SELECT va('a', 1, VARIADIC ARRAY[5]);
-- error: 42883
SELECT va('a', 1, 2.5);
-- error: 42883
SELECT va('a', 1, now());
-- error: 22P02
SELECT va('a', 1, 'x');

-- snippet: variadic-for-other-functions
CREATE FUNCTION nv(a INTEGER[], b INTEGER DEFAULT 1) RETURNS INTEGER LANGUAGE sql AS 'SELECT cardinality(a) + b';
SELECT nv(VARIADIC ARRAY[1, 2]), nv(ARRAY[1, 2], VARIADIC 3);

-- snippet: variadic-definitions
-- error: 42P13
CREATE FUNCTION bad(VARIADIC a INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1';
-- error: 42P13
CREATE FUNCTION bad(VARIADIC a INTEGER[], b INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1';
-- error: 42P13
CREATE PROCEDURE bad(VARIADIC a INTEGER[], OUT b INTEGER) LANGUAGE plpgsql AS $$ BEGIN b := 1; END $$;
CREATE FUNCTION vd(VARIADIC a INTEGER[] DEFAULT '{7}') RETURNS INTEGER LANGUAGE sql AS 'SELECT a[1]';
SELECT vd(), vd(1), vd(VARIADIC '{2,3}');
CREATE FUNCTION vo(VARIADIC a INTEGER[], OUT s BIGINT, OUT c BIGINT) LANGUAGE sql AS 'SELECT sum(x), count(*) FROM unnest(a) x';
SELECT * FROM vo(1, 2, 3);
SELECT * FROM vo(VARIADIC ARRAY[1, 2]);
CREATE FUNCTION longest(VARIADIC texts TEXT[]) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE best TEXT := ''; one TEXT;
BEGIN
    FOREACH one IN ARRAY texts LOOP
        IF length(one) > length(best) THEN best := one; END IF;
    END LOOP;
    RETURN best;
END $$;
SELECT longest('a', 'abc', 'ab'), longest(VARIADIC ARRAY['x', 'yy']);
CREATE FUNCTION calls(n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN longest(n::text, 'z', 'zz'); END $$;
SELECT calls(100), calls(1);
SELECT p.proname, p.provariadic::regtype, p.proargmodes, pg_get_function_arguments(p.oid), pg_get_function_identity_arguments(p.oid)
    FROM pg_proc p WHERE p.proname IN ('vd', 'vo', 'longest', 'calls') ORDER BY 1;
SELECT parameter_name, parameter_mode, ordinal_position FROM information_schema.parameters WHERE specific_name LIKE 'vo#_%' ESCAPE '#' AND specific_schema = current_schema() ORDER BY 3;
DROP FUNCTION vd(VARIADIC INTEGER[]);
DROP FUNCTION longest(TEXT[]);

-- snippet: variadic-procedures
CREATE PROCEDURE vp(INOUT n INTEGER, VARIADIC a INTEGER[]) LANGUAGE plpgsql AS $$ BEGIN n := n + cardinality(a); END $$;
CALL vp(1, 2, 3);
CALL vp(1, VARIADIC ARRAY[2, 3, 4]);
CALL vp(n => 1, VARIADIC a => ARRAY[2, 3, 4]);
-- error: 42883
CALL vp(1);
CREATE PROCEDURE outer_of(OUT r INTEGER) LANGUAGE plpgsql AS $$ BEGIN r := 10; CALL vp(r, 1, 2, 3); END $$;
CALL outer_of(NULL);
CREATE FUNCTION steps(VARIADIC a TEXT[]) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT;
BEGIN
    EXECUTE 'SELECT $1[1] || cardinality($1)' INTO r USING a;
    RETURN r;
END $$;
SELECT steps('x', 'y');
SELECT steps(VARIADIC ARRAY['x']);
