-- PL/pgSQL: RAISE and the errors that end a call. The message of a raised error is compared too.
-- compare: messages

-- snippet: raise-exception
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  IF x < 0 THEN RAISE EXCEPTION 'negative: %', x; END IF;
  RETURN x;
END $$;
SELECT f(1);
-- error: P0001
SELECT f(-5);

-- snippet: raise-format
CREATE FUNCTION f(a INTEGER, b TEXT, c NUMERIC) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a=% b=[%] c=%, 100%% sure', a, b, c;
END $$;
-- error: P0001
SELECT f(1, 'x y', 2.50);
-- error: P0001
SELECT f(NULL, NULL, NULL);

-- snippet: raise-format-expressions
CREATE FUNCTION f(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% and %', a * 2, upper('abc') || a;
END $$;
-- error: P0001
SELECT f(4);

-- snippet: raise-format-argument-counts
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'one % two %', 1; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'none', 1; END $$;

-- snippet: raise-errcode-sqlstate
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'custom' USING ERRCODE = 'KL001';
END $$;
-- error: KL001
SELECT f();

-- snippet: raise-errcode-condition-name
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'as if unique' USING ERRCODE = 'unique_violation';
END $$;
-- error: 23505
SELECT f();

-- snippet: raise-condition-name
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE division_by_zero; END $$;
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION check_violation; END $$;
-- error: 22012
SELECT f();
-- error: 23514
SELECT g();

-- snippet: raise-sqlstate
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '22012'; END $$;
CREATE FUNCTION g() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION SQLSTATE 'AB123' USING MESSAGE = 'said ' || 'so'; END $$;
-- error: 22012
SELECT f();
-- error: AB123
SELECT g();

-- snippet: raise-using-message-detail-hint
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING MESSAGE = 'value ' || x, DETAIL = 'some detail', HINT = 'some hint', ERRCODE = 'P0001';
END $$;
-- error: P0001
SELECT f(3);

-- snippet: raise-levels-that-go-on
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE DEBUG 'debug %', 1;
  RAISE LOG 'log';
  RAISE INFO 'info';
  RAISE NOTICE 'notice %', 'n';
  RAISE WARNING 'warning';
  RETURN 'went on';
END $$;
SELECT f();

-- snippet: raise-default-level-is-exception
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RAISE 'plain %', 1; RETURN 'never'; END $$;
-- error: P0001
SELECT f();

-- snippet: raise-unknown-condition
-- error: 42704
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RAISE no_such_condition; END $$;

-- snippet: raise-rolls-back-the-call
CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(8, 2));
INSERT INTO account VALUES (1, 100), (2, 50);
CREATE FUNCTION transfer(source INTEGER, target INTEGER, amount NUMERIC) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE left_over NUMERIC;
BEGIN
  UPDATE account SET balance = balance + amount WHERE id = target;
  UPDATE account SET balance = balance - amount WHERE id = source RETURNING balance INTO left_over;
  IF left_over < 0 THEN
    RAISE EXCEPTION 'insufficient funds: %', left_over USING ERRCODE = 'KL402';
  END IF;
  RETURN left_over;
END $$;
SELECT transfer(1, 2, 30.25);
-- error: KL402
SELECT transfer(1, 2, 70);
SELECT id, balance FROM account ORDER BY id;

-- snippet: raise-from-nested-call
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION inner_one(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (x);
  IF x > 1 THEN RAISE EXCEPTION 'too many'; END IF;
  RETURN x;
END $$;
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM inner_one(1);
  PERFORM inner_one(2);
  RETURN 0;
END $$;
-- error: P0001
SELECT f();
SELECT count(*) FROM t;

-- snippet: raise-numeric-and-boolean-arguments
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE n NUMERIC(6, 2) := 1.5; c CHAR(4) := 'ab'; d DATE := '2024-02-03';
BEGIN
  RAISE EXCEPTION '% % [%] % %', n, true, c, d, 1.5::double precision;
END $$;
-- error: P0001
SELECT f();

-- snippet: assert-statement
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  ASSERT x > 0, 'x must be positive';
  RETURN x;
END $$;
SELECT f(1);
-- error: P0004
SELECT f(0);
