-- Assignments of PL/pgSQL to parts of variables.

-- snippet: parts-of-variables
CREATE FUNCTION of_json(start JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE j JSONB := start;
BEGIN
    j['a'] := 1;
    j['b']['c'] := '"text"';
    j['list'][2] := to_jsonb('x'::text);
    j['n'] := NULL;
    RETURN j;
END $$;
SELECT of_json('{"a": 5, "z": [1]}');
SELECT of_json(NULL);
CREATE FUNCTION of_arrays() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER[] := '{1,2,3,4,5}'; i INTEGER := 2;
BEGIN
    a[2:3] := ARRAY[20, 30];
    a[i + 2] := 40;
    a[:1] := '{10}';
    RETURN a::text;
END $$;
SELECT of_arrays();
CREATE TYPE point2 AS (x INTEGER, y INTEGER);
CREATE TYPE line2 AS (name TEXT, a point2, b point2);
CREATE FUNCTION of_rows() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE l line2; ps point2[] := ARRAY[ROW(1, 2)::point2, ROW(3, 4)::point2];
BEGIN
    l := ROW('one', ROW(1, 2)::point2, ROW(3, 4)::point2);
    l.a.x := 10;
    l.b.y := '40';
    l.name := 'two';
    ps[2].x := 33;
    ps[1].y := 2.4;
    RETURN l::text || ps::text;
END $$;
SELECT of_rows();
CREATE TABLE kept (id INTEGER PRIMARY KEY, doc JSONB, p point2, a INTEGER[]);
CREATE FUNCTION stamp() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.doc['stamp'] := to_jsonb(NEW.id * 10);
    NEW.p.y := NEW.id;
    NEW.a[2] := NEW.id;
    RETURN NEW;
END $$;
CREATE TRIGGER stamps BEFORE INSERT OR UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION stamp();
INSERT INTO kept VALUES (1, '{"k": 1}', ROW(5, 6), '{7,8,9}'), (2, NULL, NULL, NULL);
SELECT id, doc, p FROM kept ORDER BY id;
SELECT a FROM kept WHERE id = 1;
CREATE DOMAIN small AS INTEGER[] CHECK (cardinality(VALUE) < 3);
CREATE FUNCTION of_domain(n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s small := '{1}';
BEGIN
    s[n] := 5;
    RETURN s::text;
END $$;
SELECT of_domain(2);
-- error: 23514
SELECT of_domain(3);
CREATE FUNCTION no_such_field() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE l line2;
BEGIN
    l.a.z := 1;
END $$;
-- error: 42703
SELECT no_such_field();

-- snippet: transaction-tags-and-warnings
-- compare: messages
START TRANSACTION;
-- compare: messages
START TRANSACTION;
COMMIT;

-- snippet: char-without-a-length
CREATE TABLE c (code CHAR(3) DEFAULT 'ab'::bpchar, kind CHAR(1), CHECK (kind = ANY (ARRAY['x'::bpchar, 'y'::bpchar])));
INSERT INTO c (kind) VALUES ('x'), ('y'::bpchar);
SELECT code, kind, octet_length(code) FROM c WHERE code = 'ab '::bpchar ORDER BY kind;
SELECT code::bpchar, pg_typeof(code::bpchar), 'a'::bpchar = 'a  '::bpchar, length('ab  '::bpchar), NULL::bpchar, code = 'ab'::pg_catalog.bpchar FROM c ORDER BY kind;
SELECT 'abc'::bpchar(2), 'abc'::varchar(3)::bpchar = 'abc';
CREATE TABLE d (code bpchar(4));
INSERT INTO d VALUES ('q');
SELECT octet_length(code) FROM d;
