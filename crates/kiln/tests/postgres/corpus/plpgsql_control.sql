-- PL/pgSQL: IF, CASE, loops, EXIT, CONTINUE, labels.

-- snippet: if-elsif-else
CREATE FUNCTION grade(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF x >= 90 THEN RETURN 'A';
  ELSIF x >= 80 THEN RETURN 'B';
  ELSEIF x >= 70 THEN RETURN 'C';
  ELSE RETURN 'F';
  END IF;
END $$;
SELECT grade(95), grade(85), grade(75), grade(0), grade(NULL);

-- snippet: if-nested
CREATE FUNCTION f(a INTEGER, b INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF a > 0 THEN
    IF b > 0 THEN RETURN 'both'; ELSE RETURN 'first'; END IF;
  ELSE
    IF b > 0 THEN RETURN 'second'; END IF;
  END IF;
  RETURN 'none';
END $$;
SELECT f(1, 1), f(1, 0), f(0, 1), f(0, 0), f(NULL, 1);

-- snippet: if-without-else-falls-through
CREATE FUNCTION f(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r INTEGER := 0;
BEGIN
  IF a > 1 THEN r := r + 1; END IF;
  IF a > 2 THEN r := r + 10; END IF;
  RETURN r;
END $$;
SELECT f(1), f(2), f(3);

-- snippet: case-statement-simple
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  CASE x
    WHEN 1 THEN RETURN 'one';
    WHEN 2, 3 THEN RETURN 'two or three';
    ELSE RETURN 'other';
  END CASE;
END $$;
SELECT f(1), f(2), f(3), f(4), f(NULL);

-- snippet: case-statement-simple-not-found
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  CASE x WHEN 1 THEN RETURN 'one'; END CASE;
END $$;
SELECT f(1);
-- error: 20000
SELECT f(2);

-- snippet: case-statement-searched
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT := 'unset';
BEGIN
  CASE
    WHEN x < 0 THEN r := 'negative';
    WHEN x = 0 THEN r := 'zero';
    WHEN x < 10 THEN r := 'small';
    ELSE NULL;
  END CASE;
  RETURN r;
END $$;
SELECT f(-1), f(0), f(5), f(50), f(NULL);

-- snippet: case-statement-searched-not-found
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  CASE WHEN x > 0 THEN RETURN 'positive'; WHEN x < 0 THEN RETURN 'negative'; END CASE;
END $$;
SELECT f(1), f(-1);
-- error: 20000
SELECT f(0);

-- snippet: for-range
CREATE FUNCTION f(n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT := '';
BEGIN
  FOR i IN 1..n LOOP r := r || i || ','; END LOOP;
  RETURN r;
END $$;
SELECT f(3), f(1), f(0), f(-2);

-- snippet: for-range-reverse-and-by
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT := '';
BEGIN
  FOR i IN REVERSE 5..1 LOOP r := r || i; END LOOP;
  r := r || ' ';
  FOR i IN 1..10 BY 3 LOOP r := r || i || ';'; END LOOP;
  r := r || ' ';
  FOR i IN REVERSE 10..1 BY 4 LOOP r := r || i || ';'; END LOOP;
  FOR i IN REVERSE 1..5 LOOP r := r || 'never'; END LOOP;
  RETURN r;
END $$;
SELECT f();

-- snippet: for-range-bounds-evaluated-once
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE n INTEGER := 3; c INTEGER := 0;
BEGIN
  FOR i IN 1..n LOOP n := 100; c := c + 1; END LOOP;
  RETURN c;
END $$;
SELECT f();

-- snippet: for-range-variable-shadows
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE i INTEGER := 77; s INTEGER := 0;
BEGIN
  FOR i IN 1..4 LOOP s := s + i; END LOOP;
  RETURN i * 100 + s;
END $$;
SELECT f();

-- snippet: for-range-errors
CREATE FUNCTION f(lo INTEGER, hi INTEGER, step INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE c INTEGER := 0;
BEGIN
  FOR i IN lo..hi BY step LOOP c := c + 1; END LOOP;
  RETURN c;
END $$;
SELECT f(1, 10, 2);
-- error: 22004
SELECT f(NULL, 10, 1);
-- error: 22004
SELECT f(1, NULL, 1);
-- error: 22023
SELECT f(1, 10, 0);
-- error: 22023
SELECT f(1, 10, -1);

-- snippet: for-range-near-integer-limit
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE c INTEGER := 0;
BEGIN
  FOR i IN 2147483646..2147483647 LOOP c := c + 1; END LOOP;
  RETURN c;
END $$;
SELECT f();

-- snippet: for-query-record
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (2, 'b'), (1, 'a'), (3, NULL);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; s TEXT := '';
BEGIN
  FOR r IN SELECT id, v FROM t ORDER BY id LOOP
    s := s || r.id || coalesce(r.v, '-') || ' ';
  END LOOP;
  RETURN s;
END $$;
SELECT f();

-- snippet: for-query-scalars
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; s TEXT := '';
BEGIN
  FOR a, b IN SELECT id, v FROM t ORDER BY id DESC LOOP
    s := s || a || '=' || b || ';';
  END LOOP;
  RETURN s || a || b;
END $$;
SELECT f();

-- snippet: for-query-updates-inside
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE r RECORD; n INTEGER := 0;
BEGIN
  FOR r IN SELECT id, v FROM t ORDER BY id LOOP
    UPDATE t SET v = r.v * 10 WHERE id = r.id;
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;
SELECT f();
SELECT id, v FROM t ORDER BY id;

-- snippet: for-query-rowtype-and-nested
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (a_id INTEGER, v INTEGER, PRIMARY KEY (a_id, v));
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES (1, 10), (1, 11), (2, 20);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x a%ROWTYPE; y RECORD; s TEXT := '';
BEGIN
  FOR x IN SELECT * FROM a ORDER BY id LOOP
    s := s || x.id || ':';
    FOR y IN SELECT v FROM b WHERE a_id = x.id ORDER BY v DESC LOOP
      s := s || y.v || ',';
    END LOOP;
  END LOOP;
  RETURN s;
END $$;
SELECT f();

-- snippet: while-loop
CREATE FUNCTION gcd_of(a INTEGER, b INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE t INTEGER;
BEGIN
  WHILE b <> 0 LOOP
    t := a % b;
    a := b;
    b := t;
  END LOOP;
  RETURN a;
END $$;
SELECT gcd_of(48, 18), gcd_of(7, 0), gcd_of(NULL, NULL);

-- snippet: loop-exit-when
CREATE FUNCTION f(n INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE i INTEGER := 0; s INTEGER := 0;
BEGIN
  LOOP
    i := i + 1;
    EXIT WHEN i > n;
    CONTINUE WHEN i % 2 = 0;
    s := s + i;
  END LOOP;
  RETURN s;
END $$;
SELECT f(5), f(10), f(0);

-- snippet: loop-exit-plain
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE i INTEGER := 0;
BEGIN
  LOOP
    i := i + 1;
    IF i = 7 THEN EXIT; END IF;
  END LOOP;
  RETURN i;
END $$;
SELECT f();

-- snippet: loop-labels
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := '';
BEGIN
  <<outer_loop>>
  FOR i IN 1..4 LOOP
    FOR j IN 1..4 LOOP
      CONTINUE outer_loop WHEN j = i;
      EXIT outer_loop WHEN i = 4;
      s := s || i || j || ' ';
    END LOOP;
  END LOOP outer_loop;
  RETURN s;
END $$;
SELECT f();

-- snippet: block-label-exit
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE s TEXT := 'start';
BEGIN
  <<work>>
  BEGIN
    s := s || ' one';
    EXIT work WHEN x > 0;
    s := s || ' two';
  END work;
  RETURN s;
END $$;
SELECT f(1), f(0);

-- snippet: label-qualifies-variable
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
<<outer_block>>
DECLARE v INTEGER := 1;
BEGIN
  DECLARE v INTEGER := 2;
  BEGIN
    RETURN v || ' ' || outer_block.v;
  END;
END $$;
SELECT f();

-- snippet: return-inside-loop
CREATE FUNCTION f(limit_value INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..100 LOOP
    IF i * i >= limit_value THEN RETURN i; END IF;
  END LOOP;
  RETURN -1;
END $$;
SELECT f(50), f(1), f(100000);

-- snippet: missing-return
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  IF x > 0 THEN RETURN x; END IF;
END $$;
SELECT f(1);
-- error: 2F005
SELECT f(0);

-- snippet: null-statement
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF x = 1 THEN NULL; ELSE RETURN 'other'; END IF;
  RETURN 'one';
END $$;
SELECT f(1), f(2);

-- snippet: recursion
-- refused: a recursive call of fact
CREATE FUNCTION fact(n INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
  IF n <= 1 THEN RETURN 1; END IF;
  RETURN n * fact(n - 1);
END $$;
SELECT fact(1), fact(5), fact(20);
-- error: 22003
SELECT fact(21);

-- snippet: collatz
CREATE FUNCTION collatz(n INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE steps INTEGER := 0;
BEGIN
  WHILE n <> 1 LOOP
    IF n % 2 = 0 THEN n := n / 2; ELSE n := 3 * n + 1; END IF;
    steps := steps + 1;
  END LOOP;
  RETURN steps;
END $$;
SELECT collatz(1), collatz(6), collatz(27);

-- snippet: exit-outside-loop
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN EXIT; RETURN 1; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN LOOP EXIT nowhere; END LOOP; RETURN 1; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN CONTINUE; RETURN 1; END $$;

-- snippet: for-query-sees-the-variables-of-its-beginning
CREATE TABLE a (id INTEGER PRIMARY KEY, g INTEGER);
INSERT INTO a VALUES (1, 5), (2, 5), (3, 1), (4, 5);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE i INTEGER := 1; j INTEGER := 5; r RECORD; s TEXT := '';
BEGIN
  FOR i IN SELECT id FROM a WHERE id > i ORDER BY id LOOP s := s || i; END LOOP;
  FOR r IN SELECT id, g FROM a WHERE g = j ORDER BY id LOOP
    j := j - 4;
    s := s || ',' || r.id;
  END LOOP;
  FOR r IN SELECT id FROM a WHERE id < 3 ORDER BY id LOOP
    FOR r IN SELECT id, g FROM a WHERE id > r.id ORDER BY id LOOP s := s || ';' || r.id; END LOOP;
  END LOOP;
  FOR j IN UPDATE a SET g = g + j WHERE g > j RETURNING g LOOP s := s || '/' || j; END LOOP;
  RETURN s;
END $$;
SELECT f();
SELECT id, g FROM a ORDER BY id;
