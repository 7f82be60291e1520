-- PL/pgSQL: declarations, assignments, expressions, parameters, nesting.

-- snippet: plpgsql-return-constant
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 42; END $$;
SELECT f();
SELECT f() + 1, f() * 2.5;

-- snippet: plpgsql-parameters
CREATE FUNCTION add(a INTEGER, b INTEGER) RETURNS INTEGER AS $$
BEGIN
  RETURN a + b;
END;
$$ LANGUAGE plpgsql;
SELECT add(1, 2), add(-5, 5);
SELECT add(b => 10, a => 1);

-- snippet: plpgsql-declare-and-assign
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
  a INTEGER := x * 2;
  b INTEGER DEFAULT 5;
  c INTEGER;
BEGIN
  c := a + b;
  a = c * 10;
  RETURN a;
END $$;
SELECT f(1), f(100);

-- snippet: plpgsql-uninitialised-is-null
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE v TEXT;
BEGIN
  IF v IS NULL THEN RETURN 'null'; END IF;
  RETURN v;
END $$;
SELECT f();

-- snippet: plpgsql-constant
CREATE FUNCTION f(r NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE pi CONSTANT NUMERIC := 3.14;
BEGIN
  RETURN pi * r * r;
END $$;
SELECT f(2), f(0.5);

-- snippet: plpgsql-assign-to-constant
-- error: 22005
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE k CONSTANT INTEGER := 1;
BEGIN
  k := 2;
  RETURN k;
END $$;

-- snippet: plpgsql-not-null-variable
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE v INTEGER NOT NULL := 1;
BEGIN
  v := x;
  RETURN v;
END $$;
SELECT f(5);
-- error: 22004
SELECT f(NULL);

-- snippet: plpgsql-assignment-casts
CREATE FUNCTION f(x NUMERIC) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  i INTEGER;
  n NUMERIC(5, 1);
  s VARCHAR(10);
BEGIN
  i := x;
  n := x;
  s := x;
  RETURN i || '/' || n || '/' || s;
END $$;
SELECT f(2.55), f(-3.45), f(10);

-- snippet: plpgsql-assignment-too-long
CREATE FUNCTION f(x TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s VARCHAR(3);
BEGIN
  s := x;
  RETURN s;
END $$;
SELECT f('abc');
-- error: 22001
SELECT f('abcd');

-- snippet: plpgsql-assignment-out-of-range
CREATE FUNCTION f(x BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE s SMALLINT; n NUMERIC(3, 1);
BEGIN
  s := x;
  n := x;
  RETURN s;
END $$;
SELECT f(99);
-- error: 22003
SELECT f(100);
-- error: 22003
SELECT f(40000);

-- snippet: plpgsql-char-variable-pads
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE c CHAR(4) := 'ab';
BEGIN
  IF c = 'ab' THEN RETURN '[' || c || ']' || length(c) || octet_length(c); END IF;
  RETURN 'different';
END $$;
SELECT f();

-- snippet: plpgsql-nested-blocks-shadow
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE v INTEGER := 1; result TEXT := '';
BEGIN
  DECLARE v INTEGER := 2;
  BEGIN
    result := result || v;
    v := 3;
  END;
  RETURN result || v;
END $$;
SELECT f();

-- snippet: plpgsql-type-of-column
CREATE TABLE t (id INTEGER PRIMARY KEY, price NUMERIC(6, 2), name VARCHAR(5));
INSERT INTO t VALUES (1, 9.99, 'abc');
CREATE FUNCTION f(x NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE p t.price%TYPE; q p%TYPE;
BEGIN
  p := x;
  q := p / 3;
  RETURN q;
END $$;
SELECT f(10), f(0.999);

-- snippet: plpgsql-type-of-column-as-parameter
CREATE TABLE t (id INTEGER PRIMARY KEY, v SMALLINT);
CREATE FUNCTION f(x t.v%TYPE) RETURNS t.id%TYPE LANGUAGE plpgsql AS $$ BEGIN RETURN x + 1; END $$;
SELECT f(5::smallint);

-- snippet: plpgsql-overflow-inside
CREATE FUNCTION f(a INTEGER, b INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a * b; END $$;
SELECT f(1000, 1000);
-- error: 22003
SELECT f(100000, 100000);

-- snippet: plpgsql-division-by-zero-inside
CREATE FUNCTION f(a INTEGER, b INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a / b; END $$;
SELECT f(7, 2);
-- error: 22012
SELECT f(7, 0);

-- snippet: plpgsql-null-arguments
CREATE FUNCTION f(a INTEGER, b TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce(a, -1) || coalesce(b, 'none');
END $$;
SELECT f(NULL, NULL), f(1, NULL), f(NULL, 'b');

-- snippet: plpgsql-strict
CREATE FUNCTION f(a INTEGER, b INTEGER) RETURNS INTEGER LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN coalesce(a, 0) + 1; END $$;
CREATE FUNCTION g(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql CALLED ON NULL INPUT AS $$ BEGIN RETURN coalesce(a, 0) + 1; END $$;
SELECT f(1, 2), f(1, NULL), f(NULL, 2), g(NULL);

-- snippet: plpgsql-returns-null-on-null-input
CREATE FUNCTION f(a INTEGER) RETURNS TEXT LANGUAGE plpgsql RETURNS NULL ON NULL INPUT AS $$ BEGIN RETURN 'called'; END $$;
SELECT f(1), f(NULL);

-- snippet: plpgsql-default-arguments
CREATE FUNCTION f(a INTEGER, b INTEGER DEFAULT 10, c INTEGER = 100) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a + b + c; END $$;
SELECT f(1), f(1, 2), f(1, 2, 3), f(1, c => 5);
-- error: 42883
SELECT f();

-- snippet: plpgsql-argument-types
CREATE FUNCTION f(a BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN RETURN a; END $$;
SELECT f(1), f(1::smallint), f('5');
-- error: 42883
SELECT f(1.5);
-- error: 42883
SELECT f(true);
-- error: 42883
SELECT f(1, 2);

-- snippet: plpgsql-result-cast
CREATE FUNCTION f(x NUMERIC) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
CREATE FUNCTION g(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
SELECT f(2.5), g(7) || '!';
-- error: 22003
SELECT f(1e12);

-- snippet: plpgsql-calls-another
CREATE FUNCTION square(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x * x; END $$;
CREATE FUNCTION f(a INTEGER, b INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE s INTEGER;
BEGIN
  s := square(a) + square(b);
  RETURN s;
END $$;
SELECT f(3, 4);

-- snippet: plpgsql-function-over-table
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 5), (2, NULL), (3, 7);
CREATE FUNCTION double_it(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x * 2; END $$;
SELECT id, double_it(v) FROM t ORDER BY id;
SELECT id FROM t WHERE double_it(v) > 10;

-- snippet: plpgsql-comments-and-case-insensitivity
CREATE FUNCTION F(A INTEGER) RETURNS INTEGER LANGUAGE PLPGSQL AS $body$
-- a line comment with 'quotes' and $$ in it
DECLARE
  Total INTEGER := 0; /* a block
  comment; with semicolons; */
BEGIN
  TOTAL := a + 1; -- trailing
  return total;
end
$body$;
SELECT f(1), F(2);

-- snippet: plpgsql-quoted-body
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS 'BEGIN RETURN ''it''''s''; END';
SELECT f();

-- snippet: plpgsql-positional-parameters
CREATE FUNCTION f(INTEGER, INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN $1 * 10 + $2; END $$;
SELECT f(4, 2);

-- snippet: plpgsql-alias
-- refused: ALIAS
CREATE FUNCTION f(INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE amount ALIAS FOR $1;
BEGIN
  RETURN amount + 1;
END $$;
SELECT f(1);

-- snippet: plpgsql-three-valued-conditions
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF x > 0 THEN RETURN 'positive'; ELSE RETURN 'other'; END IF;
END $$;
SELECT f(1), f(-1), f(NULL);

-- snippet: plpgsql-parameter-is-assignable
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN x := x + 1; x := x * 2; RETURN x; END $$;
SELECT f(3);

-- snippet: plpgsql-overloading
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 'integer'; END $$;
-- refused: a second function called f
CREATE FUNCTION f(x TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 'text'; END $$;
CREATE FUNCTION f(x INTEGER, y INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 'two'; END $$;
SELECT f(1), f('a'::text), f(1, 2);

-- snippet: plpgsql-date-and-boolean-variables
CREATE FUNCTION due(start_day DATE, days INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE d DATE := start_day + days; late BOOLEAN;
BEGIN
  late := d > DATE '2024-03-01';
  RETURN d || ' ' || late;
END $$;
SELECT due('2024-02-28', 2), due('2024-02-28', 3);
