-- PL/pgSQL: OUT parameters, RETURNS TABLE and SETOF, RETURN NEXT and RETURN QUERY.

-- snippet: out-one
CREATE FUNCTION f(a INTEGER, OUT b INTEGER) LANGUAGE plpgsql AS $$ BEGIN b := a * 2; END $$;
SELECT f(4);
SELECT * FROM f(5);

-- snippet: out-several
CREATE FUNCTION f(a INTEGER, b INTEGER, OUT total INTEGER, OUT product INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  total := a + b;
  product := a * b;
END $$;
SELECT * FROM f(3, 4);
SELECT total, product FROM f(5, 6);

-- snippet: out-unassigned-is-null
CREATE FUNCTION f(a INTEGER, OUT x INTEGER, OUT y TEXT) LANGUAGE plpgsql AS $$
BEGIN
  IF a > 0 THEN x := a; RETURN; END IF;
  y := 'negative';
END $$;
SELECT * FROM f(1);
SELECT * FROM f(-1);

-- snippet: inout
CREATE FUNCTION f(INOUT a INTEGER, INOUT b INTEGER) LANGUAGE plpgsql AS $$
DECLARE t INTEGER := a;
BEGIN
  a := b;
  b := t;
END $$;
SELECT * FROM f(1, 2);

-- snippet: out-types-are-enforced
CREATE FUNCTION f(x NUMERIC, OUT i INTEGER, OUT s VARCHAR(3)) LANGUAGE plpgsql AS $$
BEGIN
  i := x;
  s := 'abc';
END $$;
SELECT * FROM f(2.5);
-- error: 22003
SELECT * FROM f(1e10);

-- snippet: returns-void
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f(x INTEGER) RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (x); END $$;
SELECT f(1);
SELECT id FROM t;

-- snippet: returns-setof-return-next
CREATE FUNCTION f(n INTEGER) RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..n LOOP RETURN NEXT i * i; END LOOP;
  RETURN;
END $$;
SELECT * FROM f(3);
SELECT * FROM f(0);
SELECT sum(f) FROM f(4);

-- snippet: returns-setof-return-query
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE FUNCTION f(low INTEGER) RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT v FROM t WHERE v >= low ORDER BY v DESC;
  RETURN QUERY SELECT -1;
END $$;
SELECT * FROM f(20);

-- snippet: returns-table
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, s TEXT);
INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 10, 'c');
CREATE FUNCTION f(k INTEGER) RETURNS TABLE (key INTEGER, label TEXT) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT t.id, t.s FROM t WHERE t.v = k ORDER BY t.id;
END $$;
SELECT * FROM f(10);
SELECT label FROM f(20);
SELECT count(*) FROM f(99);

-- snippet: returns-table-return-next
CREATE FUNCTION f(n INTEGER) RETURNS TABLE (i INTEGER, square INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1..n LOOP
    i := k;
    square := k * k;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT * FROM f(3);
SELECT i FROM f(5) WHERE square > 10 ORDER BY i DESC;

-- snippet: returns-setof-table-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION f() RETURNS SETOF t LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE;
BEGIN
  FOR r IN SELECT * FROM t ORDER BY id LOOP
    r.v := r.v || '!';
    RETURN NEXT r;
  END LOOP;
END $$;
SELECT * FROM f();
SELECT v FROM f() WHERE id = 2;

-- snippet: return-query-then-found
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
CREATE FUNCTION f(k INTEGER) RETURNS SETOF TEXT LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT 'row ' || id FROM t WHERE id = k;
  IF NOT FOUND THEN RETURN NEXT 'none'; END IF;
END $$;
SELECT * FROM f(1);
SELECT * FROM f(2);

-- snippet: return-query-wrong-type
CREATE FUNCTION f() RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 'a'::text; END $$;
-- error: 42804
SELECT * FROM f();
CREATE FUNCTION g() RETURNS TABLE (a INTEGER, b INTEGER) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT 1; END $$;
-- error: 42804
SELECT * FROM g();

-- snippet: return-value-from-void-or-missing
-- error: 42804
CREATE FUNCTION f() RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN; END $$;
-- error: 42804
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; END $$;

-- snippet: returns-table-joined-and-aggregated
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two');
CREATE FUNCTION f() RETURNS TABLE (id INTEGER, n INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1..3 LOOP id := k; n := k * 100; RETURN NEXT; END LOOP;
END $$;
SELECT t.name, x.n FROM t JOIN f() AS x ON x.id = t.id ORDER BY t.id;
SELECT max(n), count(*) FROM f();

-- snippet: returns-numeric-with-typmod-kept
CREATE FUNCTION f(a NUMERIC(5, 2)) RETURNS NUMERIC(5, 2) LANGUAGE plpgsql AS $$ BEGIN RETURN a / 3; END $$;
SELECT f(1.239);

-- snippet: function-in-insert-and-update
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x * 7; END $$;
INSERT INTO t VALUES (1, f(1)), (2, f(2));
UPDATE t SET v = f(v) WHERE id = 2;
SELECT id, v FROM t ORDER BY id;

-- snippet: function-in-from-with-literals-and-names
CREATE FUNCTION f(a SMALLINT, b VARCHAR(8), c INTEGER DEFAULT 7) RETURNS TABLE (x INTEGER, y TEXT) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT a + c, b || '!';
END $$;
SELECT * FROM f(1::smallint, 'lit');
SELECT * FROM f(1::smallint, NULL, NULL);
SELECT x FROM f(b => 'n', a => 2::smallint) AS g;
