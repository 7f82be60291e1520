-- PL/pgSQL: the finer points of records, FOUND, loops over rows, calls.

-- snippet: found-after-leaving-loops-by-label
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := ''; x INTEGER;
BEGIN
  <<a>> LOOP
    FOR i IN 1..3 LOOP EXIT a WHEN i = 2; END LOOP;
  END LOOP;
  s := s || FOUND;
  PERFORM 1 WHERE false;
  s := s || FOUND;
  <<b>> FOR i IN 1..2 LOOP
    s := s || i || FOUND;
    FOR j IN 1..2 LOOP
      PERFORM 1 WHERE false;
      CONTINUE b WHEN j = 1;
    END LOOP;
  END LOOP;
  s := s || FOUND;
  <<c>> BEGIN
    PERFORM 1 WHERE false;
    FOR i IN 1..2 LOOP EXIT c; END LOOP;
  END;
  RETURN s || FOUND;
END $$;
SELECT f();

-- snippet: found-in-loop-body-and-behind
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := ''; r RECORD; x INTEGER;
BEGIN
  FOR r IN SELECT id FROM t ORDER BY id LOOP
    s := s || FOUND || ' ';
    SELECT v INTO x FROM t WHERE id = r.id + 1;
    s := s || FOUND || ' ';
  END LOOP;
  s := s || FOUND;
  IF x IS NULL THEN UPDATE t SET v = 9 WHERE id = 77; END IF;
  RETURN s || ' ' || FOUND;
END $$;
SELECT f();

-- snippet: found-used-in-the-statement-itself
CREATE TABLE t (id INTEGER PRIMARY KEY, v BOOLEAN);
INSERT INTO t VALUES (1, true), (2, false);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER; s TEXT := '';
BEGIN
  SELECT id INTO x FROM t WHERE v = FOUND;
  s := s || x || FOUND;
  SELECT id INTO x FROM t WHERE v = FOUND;
  s := s || x || FOUND;
  UPDATE t SET v = NOT FOUND WHERE id = 1 RETURNING id INTO x;
  s := s || x || FOUND;
  PERFORM 1 FROM t WHERE v AND NOT FOUND;
  RETURN s || FOUND;
END $$;
SELECT f();
SELECT id, v FROM t ORDER BY id;

-- snippet: record-keeps-last-row-and-null-row
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION f(lim INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  FOR r IN SELECT id, v FROM t WHERE id <= lim ORDER BY id LOOP NULL; END LOOP;
  RETURN coalesce(r.id::text, 'null') || coalesce(r.v, 'null');
END $$;
SELECT f(2), f(1), f(0);

-- snippet: record-assigned-on-one-path-only
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
CREATE FUNCTION f(b BOOLEAN) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  IF b THEN SELECT id INTO r FROM t; END IF;
  RETURN r.id;
END $$;
SELECT f(true);
-- error: 55000
SELECT f(false);

-- snippet: record-used-before-its-assignment-in-a-loop
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; s TEXT := '';
BEGIN
  FOR i IN 1..3 LOOP
    IF i > 1 THEN s := s || r.x || ' '; END IF;
    SELECT i * 10 AS x INTO r;
  END LOOP;
  RETURN s || r.x;
END $$;
SELECT f();

-- snippet: record-of-several-shapes
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; q RECORD; s TEXT := '';
BEGIN
  FOR r IN SELECT 1 AS a UNION ALL SELECT 2 ORDER BY 1 LOOP
    FOR q IN SELECT r.a * 10 AS b LOOP s := s || q.b || ','; END LOOP;
  END LOOP;
  FOR r IN SELECT 'x' AS t, 5 AS n LOOP s := s || r.t || r.n; END LOOP;
  SELECT true AS flag INTO r;
  RETURN s || r.flag;
END $$;
SELECT f();

-- snippet: record-assignment-and-fields
CREATE TABLE t (id INTEGER PRIMARY KEY, v NUMERIC(5, 2), s VARCHAR(4));
INSERT INTO t VALUES (1, 2.5, 'ab');
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE; q t; p RECORD;
BEGIN
  SELECT * INTO r FROM t WHERE id = 1;
  q := r;
  q.v := q.v * 3.333;
  q.id := q.id + 1;
  INSERT INTO t VALUES (q.id, q.v, q.s);
  p := q;
  p.s := 'p';
  RETURN r.v || ' ' || q.v || ' ' || q.s || ' ' || p.s || p.id;
END $$;
SELECT f();
SELECT id, v, s FROM t ORDER BY id;

-- snippet: record-field-errors
CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR(2));
INSERT INTO t VALUES (1, 'a');
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE;
BEGIN
  SELECT * INTO r FROM t;
  RETURN r.nosuch;
END $$;
-- error: 42703
SELECT f();
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE;
BEGIN
  r.s := 'too long';
  RETURN 1;
END $$;
-- error: 22001
SELECT g();
CREATE FUNCTION h() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  r.s := 'x';
  RETURN 1;
END $$;
-- error: 55000
SELECT h();

-- snippet: into-fewer-and-more-columns
CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c INTEGER);
INSERT INTO t VALUES (1, 2, 3);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 7; y INTEGER := 8; r t%ROWTYPE;
BEGIN
  SELECT a INTO x, y FROM t;
  r.c := 5;
  SELECT a, b INTO r FROM t;
  RETURN x || coalesce(y::text, '-') || r.a || r.b || coalesce(r.c::text, '-');
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  SELECT b, c INTO x FROM t;
  RETURN x;
END $$;
SELECT g();

-- snippet: into-swaps-variables
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 1; y INTEGER := 2;
BEGIN
  SELECT y, x INTO x, y;
  RETURN x || ' ' || y;
END $$;
SELECT f();

-- snippet: into-reads-its-own-target
CREATE TABLE t (id INTEGER PRIMARY KEY, next INTEGER);
INSERT INTO t VALUES (1, 2), (2, 3), (3, NULL);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 1; s TEXT := '';
BEGIN
  WHILE x IS NOT NULL LOOP
    s := s || x;
    SELECT next INTO x FROM t WHERE id = x;
  END LOOP;
  x := 3;
  SELECT x + next INTO x FROM t WHERE id = x - 2;
  RETURN s || ' ' || x;
END $$;
SELECT f();

-- snippet: into-not-null-variable
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, NULL);
CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER NOT NULL := 5;
BEGIN
  SELECT v INTO x FROM t WHERE id = k;
  RETURN x;
END $$;
-- error: 22004
SELECT f(1);
-- error: 22004
SELECT f(2);

-- snippet: into-strict-by-key-and-by-scan
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 1);
CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  SELECT v INTO STRICT x FROM t WHERE id = k;
  SELECT id INTO STRICT x FROM t ORDER BY id DESC LIMIT 1;
  RETURN x;
END $$;
SELECT f(1);
-- error: P0002
SELECT f(3);
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  SELECT v INTO STRICT x FROM t;
  RETURN x;
END $$;
-- error: P0003
SELECT g();

-- snippet: returning-into-record-and-row-count
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; n INTEGER; s TEXT := '';
BEGIN
  DELETE FROM t WHERE v > 15 RETURNING * INTO r;
  GET DIAGNOSTICS n = ROW_COUNT;
  s := s || r.id || r.v || FOUND || n;
  DELETE FROM t WHERE v > 15 RETURNING * INTO r;
  GET DIAGNOSTICS n = ROW_COUNT;
  s := s || coalesce(r.id, -1) || FOUND || n;
  SELECT v INTO n FROM t WHERE id = 1;
  GET DIAGNOSTICS n = ROW_COUNT;
  s := s || ' ' || n;
  PERFORM 1 FROM t;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN s || n;
END $$;
SELECT f();

-- snippet: returning-sees-old-variables
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 5;
BEGIN
  UPDATE t SET v = v + x WHERE v = 10 RETURNING v + x INTO x;
  RETURN x;
END $$;
SELECT f();

-- snippet: for-over-data-with-returning
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE log (id INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; s INTEGER := 0; x INTEGER;
BEGIN
  FOR x IN UPDATE t SET v = v + 1 RETURNING v LOOP s := s + x; END LOOP;
  FOR r IN UPDATE t SET v = v + 1 RETURNING id, v LOOP
    INSERT INTO log VALUES (r.id);
    EXIT WHEN r.id = 2;
  END LOOP;
  FOR r IN DELETE FROM t WHERE id = 9 RETURNING id LOOP s := 0; END LOOP;
  RETURN s || ' ' || FOUND;
END $$;
SELECT f();
SELECT id, v FROM t ORDER BY id;
SELECT count(*) FROM log;

-- snippet: return-query-of-data
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE FUNCTION f() RETURNS SETOF t LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY UPDATE t SET v = v * 2 WHERE id = 2 RETURNING *;
  IF FOUND THEN RETURN QUERY SELECT -1, -1; END IF;
END $$;
SELECT * FROM f();

-- snippet: return-next-of-record-and-of-wrong-shape
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'x');
CREATE FUNCTION f() RETURNS SETOF t LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  FOR r IN SELECT id + 1 AS id, v FROM t LOOP RETURN NEXT r; END LOOP;
END $$;
SELECT * FROM f();
CREATE FUNCTION g() RETURNS SETOF t LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  FOR r IN SELECT v, id FROM t LOOP RETURN NEXT r; END LOOP;
END $$;
-- error: 42804
SELECT * FROM g();

-- snippet: case-with-nulls-and-types
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  CASE x + 1
    WHEN NULL THEN RETURN 'null';
    WHEN 2, 3 THEN RETURN 'few';
    WHEN 10 * 10 THEN RETURN 'hundred';
    ELSE
      CASE WHEN x IS NULL THEN RETURN 'no x'; ELSE RETURN 'other'; END CASE;
  END CASE;
END $$;
SELECT f(1), f(2), f(99), f(NULL), f(50);

-- snippet: loop-variable-can-be-changed
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := '';
BEGIN
  FOR i IN 1..3 LOOP
    i := i * 10;
    s := s || i || ' ';
  END LOOP;
  RETURN s;
END $$;
SELECT f();

-- snippet: loop-bounds-are-rounded
CREATE FUNCTION f(a NUMERIC, b TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := '';
BEGIN
  FOR i IN a..b LOOP s := s || i; END LOOP;
  RETURN s;
END $$;
SELECT f(1.5, '4'), f(0.4, '1');
-- error: 22P02
SELECT f(1, 'x');

-- snippet: labels-qualify-loop-variables
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := '';
BEGIN
  <<o>> FOR i IN 1..2 LOOP
    FOR i IN 5..6 LOOP s := s || o.i || i || ' '; END LOOP;
  END LOOP;
  RETURN s;
END $$;
SELECT f();

-- snippet: block-defaults-at-each-entry
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := '';
BEGIN
  FOR i IN 1..3 LOOP
    DECLARE a INTEGER := i * 2; b INTEGER;
    BEGIN
      s := s || a || coalesce(b::text, '-') || ' ';
      b := 1; a := 0;
    END;
  END LOOP;
  RETURN s;
END $$;
SELECT f();

-- snippet: default-uses-outer-variable-of-the-name
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE y INTEGER := x + 1; x INTEGER := y * 10;
BEGIN
  RETURN x + f.x;
END $$;
SELECT f(1);

-- snippet: errors-come-when-the-statement-runs
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f(n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  IF n = 1 THEN x := nosuch + 1; END IF;
  IF n = 2 THEN SELECT nosuch INTO x FROM t; END IF;
  IF n = 3 THEN INSERT INTO nosuch VALUES (1); END IF;
  IF n = 4 THEN x := nosuch(1); END IF;
  IF n = 5 THEN x := 'abc'; END IF;
  IF n = 6 THEN x := 1 || 2 + true; END IF;
  IF n = 7 THEN UPDATE t SET nosuch = 1; END IF;
  IF n = 8 THEN x := (SELECT 1, 2); END IF;
  RETURN 'fine';
END $$;
SELECT f(0);
-- error: 42703
SELECT f(1);
-- error: 42703
SELECT f(2);
-- error: 42P01
SELECT f(3);
-- error: 42883
SELECT f(4);
-- error: 22P02
SELECT f(5);
-- error: 42883
SELECT f(6);
-- error: 42703
SELECT f(7);
-- error: 42601
SELECT f(8);

-- snippet: bad-default-fails-at-entry
CREATE FUNCTION f(b BOOLEAN) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  IF b THEN
    DECLARE x INTEGER := nosuch; BEGIN RETURN x; END;
  END IF;
  RETURN 0;
END $$;
SELECT f(false);
-- error: 42703
SELECT f(true);

-- snippet: creation-errors
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ DECLARE r RECORD; x INTEGER; BEGIN SELECT 1, 2 INTO r, x; RETURN 1; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN SELECT 1 INTO nosuch; RETURN 1; END $$;
-- error: 42804
CREATE FUNCTION f() RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42804
CREATE FUNCTION f(OUT a INTEGER) LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42P13
CREATE FUNCTION f(a INTEGER, a TEXT) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42P13
CREATE FUNCTION f(a INTEGER) LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42P13
CREATE FUNCTION f(a INTEGER DEFAULT 1, b INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 22004
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ DECLARE x INTEGER NOT NULL; BEGIN RETURN 1; END $$;
-- error: 42P13
CREATE FUNCTION f(OUT a INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN a := 1; END $$;

-- snippet: calls-in-calls-with-writes
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION put(k INTEGER, x INTEGER DEFAULT 7) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k, x);
  RETURN k * 100;
END $$;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := ''; k INTEGER := 3;
BEGIN
  s := s || put(1, 5) || ' ' || put(2);
  PERFORM put(k);
  IF put(4) > 300 THEN s := s || ' big'; END IF;
  FOR k IN 5..6 LOOP s := s || ' ' || put(x => k, k => k * 2); END LOOP;
  RETURN s || ' ' || k;
END $$;
SELECT f();
SELECT id, v FROM t ORDER BY id;

-- snippet: called-function-has-its-own-found-and-names
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION g(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE y INTEGER;
BEGIN
  SELECT id INTO y FROM t WHERE id = x;
  IF NOT FOUND THEN RETURN -1; END IF;
  FOR i IN 1..5 LOOP IF i = 3 THEN RETURN y * i; END IF; END LOOP;
  RETURN 0;
END $$;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 4; y INTEGER := 2; s TEXT := '';
BEGIN
  INSERT INTO t VALUES (2);
  FOR i IN 1..3 LOOP s := s || g(i) || ' '; END LOOP;
  RETURN s || x || y || FOUND;
END $$;
SELECT f();

-- snippet: call-with-output-arguments
CREATE PROCEDURE divide(a INTEGER, b INTEGER, OUT q INTEGER, OUT r INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  q := a / b;
  r := a % b;
END $$;
CREATE PROCEDURE twice(INOUT x INTEGER) LANGUAGE plpgsql AS $$ BEGIN x := x * 2; END $$;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; s TEXT := '';
BEGIN
  CALL divide(17, 5, a, b);
  s := a || ' ' || b;
  CALL twice(a);
  RETURN s || ' ' || a;
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  CALL twice(5);
  RETURN 1;
END $$;
-- error: 42601
SELECT g();

-- snippet: strict-functions-in-calls
CREATE FUNCTION s1(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN a + 1; END $$;
CREATE FUNCTION s2(n INTEGER) RETURNS SETOF INTEGER LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN NEXT n; RETURN NEXT n; END $$;
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce(s1(x), -1) || ' ' || (SELECT count(*) FROM s2(x));
END $$;
SELECT f(1), f(NULL);

-- snippet: language-sql
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE FUNCTION one(k INTEGER) RETURNS INTEGER LANGUAGE sql AS $$ SELECT v FROM t WHERE id = k $$;
CREATE FUNCTION many() RETURNS SETOF INTEGER LANGUAGE sql AS $$ SELECT v FROM t ORDER BY id DESC $$;
CREATE FUNCTION rows() RETURNS TABLE (a INTEGER, b INTEGER) LANGUAGE sql AS $$ SELECT id, v FROM t ORDER BY id $$;
CREATE FUNCTION bump(k INTEGER) RETURNS INTEGER LANGUAGE sql AS $$ UPDATE t SET v = v + 1 WHERE id = k RETURNING v $$;
CREATE PROCEDURE two(k INTEGER, INTEGER) LANGUAGE sql AS $$ INSERT INTO t VALUES (k, $2); INSERT INTO t VALUES (k + 1, two.k) $$;
SELECT one(1), one(9);
SELECT * FROM many();
SELECT * FROM rows();
SELECT bump(2), bump(2), bump(7);
CALL two(5, 50);
SELECT id, v FROM t ORDER BY id;
CREATE FUNCTION first() RETURNS INTEGER LANGUAGE sql AS $$ SELECT v FROM t ORDER BY v DESC $$;
SELECT first();

-- snippet: do-block
CREATE TABLE t (id INTEGER PRIMARY KEY);
DO $$
DECLARE n INTEGER := 3;
BEGIN
  FOR i IN 1..n LOOP INSERT INTO t VALUES (i); END LOOP;
END $$;
SELECT count(*) FROM t;
-- error: P0001
DO $$ BEGIN INSERT INTO t VALUES (9); RAISE EXCEPTION 'no'; END $$;
SELECT count(*) FROM t;

-- snippet: arrays-of-other-kinds
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a NUMERIC[] := ARRAY[1.5, 2.25]; b TEXT[]; c BOOLEAN[] := '{t,f}'; x BIGINT; s TEXT := '';
BEGIN
  a[3] := 7;
  b[2] := 'two';
  b[1] := 1;
  c[1] := false;
  FOREACH x IN ARRAY a LOOP s := s || x || ' '; END LOOP;
  RETURN s || a[1] + a[2] || b[1] || b[2] || c[1] || array_length(b, 1);
END $$;
SELECT f();

-- snippet: ambiguous-names
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10);
CREATE FUNCTION f(v INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET v = v + 1 WHERE id = 1;
  RETURN v;
END $$;
-- error: 42702
SELECT f(1);
CREATE FUNCTION g(v INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET v = t.v + g.v WHERE t.id = 1;
  RETURN (SELECT t.v FROM t);
END $$;
SELECT g(5);
CREATE FUNCTION h(v INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t (id, v) VALUES (2, v);
  RETURN v;
END $$;
SELECT h(3);

-- snippet: perform-evaluates-every-row
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (0);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN PERFORM 10 / id FROM t ORDER BY id DESC; RETURN 1; END $$;
-- error: 22012
SELECT f();
-- snippet: while-with-calls-in-the-condition
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 3), (2, 5);
CREATE FUNCTION total() RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE s BIGINT := 0; r RECORD;
BEGIN
  FOR r IN SELECT v FROM t LOOP s := s + r.v; IF s > 1000 THEN RETURN -1; END IF; END LOOP;
  RETURN s;
END $$;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n INTEGER := 0;
BEGIN
  WHILE total() < 20 AND (SELECT count(*) FROM t) > 0 LOOP
    UPDATE t SET v = v + 1;
    n := n + 1;
    EXIT WHEN n > 50;
  END LOOP;
  RETURN n || ' ' || total();
END $$;
SELECT f();

-- snippet: exits-out-of-queries
CREATE TABLE a (id INTEGER PRIMARY KEY, g INTEGER);
CREATE TABLE b (a_id INTEGER, n INTEGER, PRIMARY KEY (a_id, n));
INSERT INTO a VALUES (1, 1), (2, 1), (3, 2);
INSERT INTO b VALUES (1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (3, 3);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; q RECORD; s TEXT := '';
BEGIN
  <<outermost>>
  FOR r IN SELECT a.id, b.n FROM a JOIN b ON b.a_id = a.id ORDER BY a.id DESC, b.n LOOP
    CONTINUE WHEN r.n = 2;
    FOR q IN SELECT g, count(*) AS c FROM a GROUP BY g ORDER BY g LIMIT 2 LOOP
      s := s || r.id || r.n || q.g || q.c || ' ';
      CONTINUE outermost WHEN q.g = 1 AND r.id = 3;
      EXIT outermost WHEN r.id = 1;
    END LOOP;
  END LOOP;
  FOR r IN SELECT id FROM a WHERE id = 2 LOOP
    FOR q IN SELECT n FROM b WHERE a_id = r.id AND n = 1 LOOP
      s := s || '|' || r.id || q.n;
      EXIT;
    END LOOP;
    CONTINUE;
  END LOOP;
  FOR r IN SELECT id FROM a ORDER BY id LIMIT 2 OFFSET 1 LOOP
    CONTINUE WHEN r.id = 2;
    s := s || '#' || r.id;
  END LOOP;
  FOR r IN SELECT DISTINCT g FROM a ORDER BY g LOOP
    <<inner_block>>
    BEGIN
      EXIT inner_block WHEN r.g = 1;
      s := s || '@' || r.g;
    END;
  END LOOP;
  RETURN s;
END $$;
SELECT f();

-- snippet: body-changes-what-the-query-reads
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r RECORD; n INTEGER := 0;
BEGIN
  FOR r IN SELECT id, v FROM t LOOP
    INSERT INTO t VALUES (r.id + 10, 0);
    DELETE FROM t WHERE id = 3;
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;
SELECT f();
SELECT id, v FROM t ORDER BY id;

-- snippet: return-out-of-loops-in-calls
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
CREATE FUNCTION g(x INTEGER) RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
  FOR r IN SELECT id FROM t ORDER BY id LOOP
    FOR j IN 1..3 LOOP
      IF r.id = x AND j = 2 THEN RETURN; END IF;
      RETURN NEXT r.id * 10 + j;
    END LOOP;
  END LOOP;
END $$;
CREATE FUNCTION h(x INTEGER, OUT n BIGINT, OUT m INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(*), max(g) INTO n, m FROM g(x);
  FOR i IN 1..10 LOOP
    IF i = x THEN m := m + 1000 * i; RETURN; END IF;
  END LOOP;
  m := -1;
END $$;
SELECT * FROM g(2);
SELECT * FROM h(1);
SELECT * FROM h(99);
SELECT t.id, x.x FROM t JOIN g(1) AS x ON x.x > 10 ORDER BY t.id, x.x;
SELECT count(*), sum(v) FROM t WHERE id IN (SELECT g / 10 FROM g(2));

-- snippet: calls-in-statements-on-data
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION twice(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x * 2; END $$;
CREATE FUNCTION lookup(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  SELECT v INTO x FROM t WHERE id = k;
  IF x IS NULL THEN RETURN 0; END IF;
  RETURN x;
END $$;
INSERT INTO t VALUES (1, twice(3));
INSERT INTO t VALUES (twice(1), lookup(1));
INSERT INTO t SELECT id + twice(2), twice(v) FROM t;
UPDATE t SET v = twice(v) + lookup(2) WHERE twice(id) > 8;
SELECT id, v FROM t ORDER BY id;
SELECT id FROM t WHERE v = lookup(id) ORDER BY twice(id) DESC;
SELECT twice(id) AS d, count(*) FROM t GROUP BY twice(id) ORDER BY 1;
SELECT CASE WHEN id = 1 THEN twice(id) ELSE lookup(id) END FROM t ORDER BY id;
DELETE FROM t WHERE lookup(id) = twice(3);
SELECT count(*) FROM t;

-- snippet: deferred-errors-in-calls
CREATE FUNCTION bad(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  IF x > 1 THEN RETURN nosuch; END IF;
  RETURN x;
END $$;
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN bad(x) + 1; END $$;
SELECT bad(1), f(1);
-- error: 42703
SELECT f(2);

-- snippet: assertion-and-case-errors-in-calls
CREATE FUNCTION g(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  ASSERT x IS NOT NULL;
  CASE x WHEN 1 THEN RETURN 'a'; WHEN 2 THEN NULL; END CASE;
END $$;
SELECT g(1);
-- error: 2F005
SELECT g(2);
-- error: 20000
SELECT g(3);
-- error: P0004
SELECT g(NULL);

-- snippet: nested-labels-and-shadowing
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
<<first>>
DECLARE x INTEGER := 2; s TEXT := '';
BEGIN
  <<second>>
  DECLARE x INTEGER := 3;
  BEGIN
    FOR x IN 4..4 LOOP
      s := s || f.x || first.x || second.x || x;
      first.x := first.x * 10;
      second.x := x;
    END LOOP;
    s := s || ' ' || x;
  END;
  RETURN s || ' ' || x;
END $$;
SELECT f(1);

-- snippet: char-and-numeric-parameters
CREATE FUNCTION f(a CHAR(5), b VARCHAR(2), c NUMERIC(4, 1)) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE d CHAR(5) := a; e CHAR(3);
BEGIN
  e := 'x';
  RETURN '[' || d || '][' || b || '][' || c || '][' || e || ']' || length(d);
END $$;
SELECT f('ab', 'abcdef', 1.2345);

-- snippet: assignments-through-text
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE b BOOLEAN; i INTEGER; d DATE; t TEXT; n NUMERIC(5, 1); ts TIMESTAMP;
BEGIN
  b := 'yes';
  i := '  42 ';
  d := '2024-02-29';
  t := d;
  n := '7.77';
  ts := d;
  i := i + n;
  t := t || b || ts;
  b := 1;
  RETURN t || i || b;
END $$;
SELECT f();

-- snippet: get-diagnostics-before-anything
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n BIGINT := 5; r RECORD; s TEXT;
BEGIN
  GET DIAGNOSTICS n = ROW_COUNT;
  s := n;
  FOR r IN SELECT 1 UNION ALL SELECT 2 LOOP NULL; END LOOP;
  SELECT 1 INTO n;
  GET DIAGNOSTICS n := ROW_COUNT;
  RETURN s || n;
END $$;
SELECT f();

-- snippet: upsert-returning-into
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER; s TEXT;
BEGIN
  INSERT INTO t VALUES (k, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 1 RETURNING v INTO x;
  s := x || '' || FOUND;
  INSERT INTO t VALUES (k, 1) ON CONFLICT DO NOTHING RETURNING v INTO x;
  RETURN s || coalesce(x::text, '-') || FOUND;
END $$;
SELECT f(1), f(1), f(2);

-- snippet: multi-row-insert-returning
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER; s TEXT := ''; n INTEGER;
BEGIN
  FOR x IN INSERT INTO t VALUES (1, 5), (2, 6) RETURNING id + v LOOP s := s || x || ','; END LOOP;
  INSERT INTO t SELECT id + 10, v FROM t;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN s || n;
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  INSERT INTO t VALUES (7, 5), (8, 6) RETURNING id INTO x;
  RETURN x;
END $$;
-- error: P0003
SELECT g();

-- snippet: select-into-from-aggregates-and-unions
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 5), (2, 6), (3, NULL);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; c BIGINT; s TEXT := '';
BEGIN
  SELECT max(v), min(v), count(v) INTO STRICT a, b, c FROM t;
  s := s || a || b || c;
  SELECT v INTO a FROM t WHERE id = 1 UNION SELECT v FROM t WHERE id = 2 ORDER BY 1 DESC;
  s := s || ' ' || a;
  SELECT v, count(*) INTO a, c FROM t GROUP BY v HAVING count(*) > 5;
  s := s || ' ' || coalesce(a, -1) || FOUND;
  WITH w AS (SELECT sum(v) AS x FROM t) SELECT x INTO c FROM w;
  s := s || ' ' || c;
  VALUES (8, 9), (6, 7) INTO a, b;
  RETURN s || ' ' || a || b;
END $$;
SELECT f();

-- snippet: parameters-by-number-and-out
CREATE FUNCTION f(INTEGER, OUT INTEGER, INOUT TEXT) LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '%', $1;
END $$;
SELECT * FROM f(4, 'x');

-- snippet: raise-in-loop-keeps-nothing
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE PROCEDURE p(n INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..n LOOP
    INSERT INTO t VALUES (i);
    IF i = 3 THEN RAISE EXCEPTION USING ERRCODE = 'no_data_found', MESSAGE = 'at ' || i; END IF;
  END LOOP;
END $$;
CALL p(2);
SELECT count(*) FROM t;
TRUNCATE t;
-- error: P0002
CALL p(5);
SELECT count(*) FROM t;

-- snippet: composite-return
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a');
CREATE FUNCTION f(k INTEGER) RETURNS t LANGUAGE plpgsql AS $$
DECLARE r t%ROWTYPE;
BEGIN
  SELECT * INTO r FROM t WHERE id = k;
  r.v := r.v || '?';
  RETURN r;
END $$;
SELECT * FROM f(1);
SELECT v FROM f(1);

-- snippet: loops-without-turns-in-strict-and-void
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION v(n INTEGER) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..n LOOP
    INSERT INTO t VALUES (i);
    IF i = 2 THEN RETURN; END IF;
  END LOOP;
END $$;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  PERFORM v(0);
  PERFORM v(9);
  RETURN 'done' || (SELECT count(*) FROM t);
END $$;
SELECT f();
