-- What is refused when a function is created, and what fails when it runs.

-- snippet: create-syntax-errors
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1 END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN IF true THEN RETURN 1; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ DECLARE x INTEGER BEGIN RETURN x; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..2 RETURN 1; END LOOP; END $$;

-- snippet: create-undefined-variable
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN x := 1; RETURN 1; END $$;

-- snippet: create-undefined-type-and-language
-- error: 42704
CREATE FUNCTION f(a nosuchtype) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42704
CREATE FUNCTION f() RETURNS nosuchtype LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42704
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE nosuchlanguage AS $$ BEGIN RETURN 1; END $$;

-- snippet: create-duplicate-declaration
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ DECLARE a INTEGER; a TEXT; BEGIN RETURN 1; END $$;

-- snippet: create-bad-sql-inside
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN UPDATE SET x = 1; RETURN 1; END $$;

-- snippet: run-constraint-violation-inside
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER CHECK (v > 0));
CREATE FUNCTION f(k INTEGER, x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k, 1);
  UPDATE t SET v = x WHERE id = k;
  RETURN k;
END $$;
SELECT f(1, 5);
-- error: 23514
SELECT f(2, 0);
-- error: 23505
SELECT f(1, 5);
SELECT id, v FROM t ORDER BY id;

-- snippet: run-not-null-and-foreign-key-inside
CREATE TABLE p (id INTEGER PRIMARY KEY);
CREATE TABLE c (id INTEGER PRIMARY KEY, p_id INTEGER NOT NULL REFERENCES p);
INSERT INTO p VALUES (1);
CREATE PROCEDURE put(k INTEGER, x INTEGER) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO c VALUES (k, x); END $$;
CALL put(1, 1);
-- error: 23502
CALL put(2, NULL);
-- error: 23503
CALL put(3, 9);
SELECT id, p_id FROM c ORDER BY id;

-- snippet: run-numeric-overflow-in-column
CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC(5, 2));
INSERT INTO account VALUES (1, 990);
CREATE PROCEDURE deposit(k INTEGER, amount NUMERIC) LANGUAGE plpgsql AS $$ BEGIN UPDATE account SET balance = balance + amount WHERE id = k; END $$;
CALL deposit(1, 9.99);
-- error: 22003
CALL deposit(1, 0.01);
SELECT balance FROM account;

-- snippet: run-division-by-zero-undoes-call
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (x);
  RETURN 10 / (x - 1);
END $$;
SELECT f(2);
-- error: 22012
SELECT f(1);
SELECT id FROM t ORDER BY id;

-- snippet: run-bad-cast-inside
CREATE FUNCTION f(s TEXT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE i INTEGER;
BEGIN
  i := s;
  RETURN i + s::integer;
END $$;
SELECT f('21');
-- error: 22P02
SELECT f('x');

-- snippet: run-error-inside-transaction
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (x); RETURN x; END $$;
BEGIN;
SELECT f(1);
-- error: 23505
SELECT f(1);
-- error: 25P02
SELECT f(2);
ROLLBACK;
SELECT count(*) FROM t;

-- snippet: run-strict-into-message
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  INSERT INTO t VALUES (1);
  SELECT id INTO STRICT x FROM t WHERE id = 2;
END $$;
-- error: P0002
CALL p();
SELECT count(*) FROM t;
