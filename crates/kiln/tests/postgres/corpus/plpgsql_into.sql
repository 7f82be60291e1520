-- PL/pgSQL: SELECT INTO [STRICT], RETURNING INTO, FOUND, PERFORM, rows and records.

-- snippet: into-one-variable
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT;
BEGIN
  SELECT v INTO r FROM t WHERE id = k;
  RETURN r;
END $$;
SELECT f(1), f(2), f(3);

-- snippet: into-several-variables
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b NUMERIC(5, 2));
INSERT INTO t VALUES (1, 10, 2.5);
CREATE FUNCTION f(k INTEGER) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE x INTEGER; y NUMERIC;
BEGIN
  SELECT a, b INTO x, y FROM t WHERE id = k;
  RETURN x * y;
END $$;
SELECT f(1), f(2);

-- snippet: into-position-in-statement
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 7);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; c INTEGER;
BEGIN
  SELECT INTO a v FROM t WHERE id = 1;
  SELECT v INTO b FROM t WHERE id = 1;
  SELECT v FROM t WHERE id = 1 INTO c;
  RETURN a + b * 10 + c * 100;
END $$;
SELECT f();

-- snippet: into-no-row-sets-null
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 5;
BEGIN
  SELECT v INTO x FROM t WHERE id = 1;
  RETURN coalesce(x::text, 'null') || ' ' || FOUND;
END $$;
SELECT f();

-- snippet: into-takes-first-row
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 30), (2, 10), (3, 20);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  SELECT v INTO x FROM t ORDER BY v;
  RETURN x;
END $$;
SELECT f();

-- snippet: into-strict
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 20);
CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r INTEGER;
BEGIN
  SELECT id INTO STRICT r FROM t WHERE v = k;
  RETURN r;
END $$;
SELECT f(10);
-- error: P0002
SELECT f(11);
-- error: P0003
SELECT f(20);

-- snippet: into-aggregate
CREATE TABLE t (g INTEGER, v INTEGER);
INSERT INTO t VALUES (1, 5), (1, 6), (2, 7);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n BIGINT; s BIGINT;
BEGIN
  SELECT count(*), sum(v) INTO n, s FROM t WHERE g = k;
  RETURN n || ':' || coalesce(s, 0) || ':' || FOUND;
END $$;
SELECT f(1), f(2), f(3);

-- snippet: into-record
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b NUMERIC(4, 1));
INSERT INTO t VALUES (1, 'x', 1.5);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  SELECT * INTO r FROM t WHERE id = k;
  RETURN coalesce(r.a, 'none') || coalesce(r.b, 0);
END $$;
SELECT f(1), f(2);

-- snippet: into-record-with-expressions
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 4), (2, 6);
CREATE FUNCTION f() RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  SELECT count(*) AS n, avg(v) AS mean INTO r FROM t;
  RETURN r.n + r.mean;
END $$;
SELECT f();

-- snippet: into-rowtype
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, s TEXT);
INSERT INTO t VALUES (1, 10, 'one');
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE;
BEGIN
  SELECT * INTO r FROM t WHERE id = k;
  IF NOT FOUND THEN RETURN 'missing'; END IF;
  r.v := r.v + 1;
  RETURN r.id || ' ' || r.v || ' ' || r.s;
END $$;
SELECT f(1), f(5);

-- snippet: into-record-missing-field
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE;
BEGIN
  SELECT * INTO r FROM t;
  RETURN r.id;
END $$;
SELECT f();

-- snippet: into-record-unassigned
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  RETURN r.v;
END $$;
-- error: 55000
SELECT f();

-- snippet: found-after-each-statement
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT := ''; x INTEGER;
BEGIN
  r := r || FOUND::text;
  INSERT INTO t VALUES (1, 1); r := r || ' ins ' || FOUND;
  UPDATE t SET v = 2 WHERE id = 9; r := r || ' upd ' || FOUND;
  UPDATE t SET v = 2 WHERE id = 1; r := r || ' upd ' || FOUND;
  SELECT v INTO x FROM t WHERE id = 8; r := r || ' sel ' || FOUND;
  SELECT v INTO x FROM t WHERE id = 1; r := r || ' sel ' || FOUND;
  PERFORM v FROM t WHERE id = 8; r := r || ' perf ' || FOUND;
  PERFORM v FROM t WHERE id = 1; r := r || ' perf ' || FOUND;
  DELETE FROM t WHERE id = 7; r := r || ' del ' || FOUND;
  x := 5; r := r || ' assign ' || FOUND;
  DELETE FROM t WHERE id = 1; r := r || ' del ' || FOUND;
  RETURN r;
END $$;
SELECT f();

-- snippet: found-after-loops
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE i INTEGER; q RECORD; r TEXT := '';
BEGIN
  FOR i IN 1..0 LOOP NULL; END LOOP; r := r || FOUND;
  FOR i IN 1..2 LOOP NULL; END LOOP; r := r || ' ' || FOUND;
  FOR q IN SELECT id FROM t WHERE id > 5 LOOP NULL; END LOOP; r := r || ' ' || FOUND;
  FOR q IN SELECT id FROM t LOOP NULL; END LOOP; r := r || ' ' || FOUND;
  RETURN r;
END $$;
SELECT f();

-- snippet: found-is-local-to-function
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
CREATE FUNCTION inner_one() RETURNS INTEGER LANGUAGE plpgsql AS $$ DECLARE x INTEGER; BEGIN SELECT id INTO x FROM t WHERE id = 99; RETURN 0; END $$;
CREATE FUNCTION f() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  SELECT id INTO x FROM t WHERE id = 1;
  x := inner_one();
  RETURN FOUND;
END $$;
SELECT f();

-- snippet: perform-runs-for-effect
CREATE TABLE log (id INTEGER PRIMARY KEY);
CREATE FUNCTION note(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (x); RETURN x; END $$;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note(1);
  PERFORM note(2), note(3);
  RETURN 'ok';
END $$;
SELECT f();
SELECT id FROM log ORDER BY id;

-- snippet: select-without-destination
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN SELECT id FROM t; RETURN 1; END $$;
-- error: 42601
SELECT f();

-- snippet: returning-into
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; c INTEGER; d INTEGER;
BEGIN
  UPDATE t SET v = v + 5 WHERE id = 1 RETURNING v INTO a;
  INSERT INTO t VALUES (3, 30) RETURNING id, v * 2 INTO b, c;
  DELETE FROM t WHERE id = 2 RETURNING v INTO d;
  RETURN a || ' ' || b || ' ' || c || ' ' || d;
END $$;
SELECT f();
SELECT id, v FROM t ORDER BY id;

-- snippet: returning-into-no-row-and-strict
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER := 1;
BEGIN
  UPDATE t SET v = 0 WHERE id = 1 RETURNING v INTO a;
  RETURN coalesce(a, -1) || ' ' || FOUND;
END $$;
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE a INTEGER;
BEGIN
  UPDATE t SET v = 0 WHERE id = 1 RETURNING v INTO STRICT a;
  RETURN a;
END $$;
SELECT f();
-- error: P0002
SELECT g();

-- snippet: returning-into-more-than-one-row
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE a INTEGER;
BEGIN
  UPDATE t SET v = 0 RETURNING id INTO a;
  RETURN a;
END $$;
-- error: P0003
SELECT f();
SELECT id, v FROM t ORDER BY id;

-- snippet: row-count-diagnostics
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n INTEGER; r TEXT := '';
BEGIN
  UPDATE t SET v = 0 WHERE id > 1;
  GET DIAGNOSTICS n = ROW_COUNT;
  r := r || n;
  DELETE FROM t WHERE id > 9;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN r || n;
END $$;
SELECT f();

-- snippet: into-conversion
CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC(8, 3), s TEXT);
INSERT INTO t VALUES (1, 2.5, '77');
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; c VARCHAR(2);
BEGIN
  SELECT n, s, id INTO a, b, c FROM t;
  RETURN a || ' ' || b || ' ' || c;
END $$;
SELECT f();

-- snippet: variable-and-column-with-the-same-name
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10);
CREATE FUNCTION f(id INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r INTEGER;
BEGIN
  SELECT v INTO r FROM t WHERE id = 1;
  RETURN r;
END $$;
-- error: 42702
SELECT f(1);
CREATE FUNCTION g(id INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r INTEGER;
BEGIN
  SELECT t.v INTO r FROM t WHERE t.id = g.id;
  RETURN r;
END $$;
SELECT g(1);

-- snippet: scalar-subquery-in-assignment
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 5), (2, 9);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE a INTEGER := (SELECT max(v) FROM t);
BEGIN
  a := a + (SELECT count(*) FROM t);
  IF EXISTS (SELECT 1 FROM t WHERE v = 5) THEN a := a * 100; END IF;
  RETURN a;
END $$;
SELECT f();

-- snippet: into-a-variable-of-the-condition
CREATE TABLE a (id INTEGER PRIMARY KEY, g INTEGER);
INSERT INTO a VALUES (1, 5), (2, 5), (3, 1);
CREATE FUNCTION f(p INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  UPDATE a SET g = g + 1 WHERE g = p RETURNING id INTO p;
  RETURN p;
END $$;
-- error: P0003
SELECT f(5);
SELECT f(1), f(7);
SELECT id, g FROM a ORDER BY id;

-- snippet: on-conflict-target-and-a-variable
CREATE TABLE t (n INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f(n INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1, 1) ON CONFLICT (n) DO NOTHING;
  RETURN n;
END $$;
-- error: 42702
SELECT f(1);
