-- PL/pgSQL: EXCEPTION clauses: what they catch, what is undone and what is not, and what handlers ask of the error.
-- compare: messages

-- snippet: catch-by-name
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RETURN (10 / x)::TEXT;
EXCEPTION WHEN division_by_zero THEN
  RETURN 'caught ' || SQLSTATE || ': ' || SQLERRM;
END $$;
SELECT f(2);
SELECT f(0);
SELECT f(NULL);

-- snippet: names-are-of-any-case
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'x' USING ERRCODE = '22012';
EXCEPTION WHEN Division_By_Zero THEN RETURN sqlstate;
END $$;
SELECT f();

-- snippet: catch-by-sqlstate
CREATE FUNCTION f(c TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF c = 'a' THEN RAISE EXCEPTION 'one' USING ERRCODE = 'KL001'; END IF;
  RAISE EXCEPTION 'two' USING ERRCODE = 'KL002';
EXCEPTION WHEN SQLSTATE 'KL001' THEN
  RETURN 'first: ' || SQLERRM;
END $$;
SELECT f('a');
-- error: KL002
SELECT f('b');

-- snippet: categories
CREATE FUNCTION f(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF x = 1 THEN RAISE EXCEPTION 'c' USING ERRCODE = '22012'; END IF;
  IF x = 2 THEN RAISE EXCEPTION 'c' USING ERRCODE = '23505'; END IF;
  RAISE EXCEPTION 'c' USING ERRCODE = '24000';
EXCEPTION
  WHEN data_exception THEN RETURN 'data ' || SQLSTATE;
  WHEN integrity_constraint_violation THEN RETURN 'integrity ' || SQLSTATE;
END $$;
SELECT f(1), f(2);
-- error: 24000
SELECT f(3);

-- snippet: category-by-sqlstate
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'c' USING ERRCODE = 'KL123';
EXCEPTION WHEN SQLSTATE 'KL000' THEN RETURN 'class KL: ' || SQLSTATE;
END $$;
SELECT f();

-- snippet: several-conditions
-- refused: ERRCODE
CREATE FUNCTION f(c TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'm' USING ERRCODE = c::TEXT;
  RETURN 'no';
EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'KL001' THEN RETURN 'caught';
END $$;

-- snippet: several-conditions-constant
CREATE FUNCTION f(i INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF i = 1 THEN RAISE unique_violation; END IF;
  IF i = 2 THEN RAISE check_violation; END IF;
  IF i = 3 THEN RAISE SQLSTATE 'KL001'; END IF;
  IF i = 4 THEN RAISE not_null_violation; END IF;
  RETURN 'none';
EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'KL001' THEN RETURN 'caught ' || SQLERRM;
END $$;
SELECT f(1), f(2), f(3), f(5);
-- error: 23502
SELECT f(4);

-- snippet: the-first-handler-that-matches
CREATE FUNCTION f(i INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF i = 1 THEN RAISE unique_violation; END IF;
  IF i = 2 THEN RAISE foreign_key_violation; END IF;
  RAISE division_by_zero;
EXCEPTION
  WHEN unique_violation THEN RETURN 'unique';
  WHEN integrity_constraint_violation THEN RETURN 'integrity';
  WHEN OTHERS THEN RETURN 'others';
  WHEN division_by_zero THEN RETURN 'never';
END $$;
SELECT f(1), f(2), f(3);

-- snippet: others-leaves-assertions
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  ASSERT 1 = 2, 'no';
  RETURN 'x';
EXCEPTION WHEN OTHERS THEN RETURN 'caught';
END $$;
-- error: P0004
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  ASSERT 1 = 2, 'no';
  RETURN 'x';
EXCEPTION WHEN assert_failure THEN RETURN 'caught ' || SQLERRM;
END $$;
SELECT g();

-- snippet: others-leaves-cancellations
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE query_canceled;
EXCEPTION WHEN OTHERS THEN RETURN 'caught';
END $$;
-- error: 57014
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE query_canceled;
EXCEPTION WHEN OTHERS OR query_canceled THEN RETURN 'caught ' || SQLSTATE;
END $$;
SELECT g();

-- snippet: unknown-conditions
-- error: 42704
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN no_such_thing THEN RETURN 2; END $$;
-- error: 42704
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN successful_completion THEN RETURN 2; END $$;
-- error: 42704
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN no_data THEN RETURN 2; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN SQLSTATE '2250' THEN RETURN 2; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN SQLSTATE 'abcde' THEN RETURN 2; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN OTHERS RETURN 2; END $$;

-- snippet: names-of-many-conditions
DO $$
BEGIN
  NULL;
EXCEPTION
  WHEN string_data_right_truncation OR null_value_not_allowed OR modifying_sql_data_not_permitted THEN NULL;
  WHEN exclusion_violation OR snapshot_too_old OR fdw_error OR index_corrupted OR lock_not_available THEN NULL;
  WHEN transaction_rollback OR deadlock_detected OR serialization_failure OR trim_error THEN NULL;
  WHEN invalid_json_text OR srf_protocol_violated OR with_check_option_violation OR system_error THEN NULL;
END $$;

-- snippet: two-states-of-one-name
CREATE FUNCTION f(i INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  IF i = 1 THEN RAISE SQLSTATE '22004'; END IF;
  RAISE SQLSTATE '39004';
EXCEPTION WHEN null_value_not_allowed THEN RETURN SQLSTATE;
END $$;
SELECT f(1), f(2);

-- snippet: writes-are-undone
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET v = v + 1;
  INSERT INTO t VALUES (4, 40);
  DELETE FROM t WHERE id = 2;
  UPDATE t SET v = 99 WHERE id = 4;
  RAISE EXCEPTION 'stop';
EXCEPTION WHEN raise_exception THEN
  RETURN (SELECT string_agg(id || '=' || v, ',' ORDER BY id) FROM t);
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;

-- snippet: writes-before-and-in-the-handler-stay
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1, 1);
  BEGIN
    INSERT INTO t VALUES (2, 2);
    INSERT INTO t VALUES (1, 3);
  EXCEPTION WHEN unique_violation THEN
    INSERT INTO t VALUES (3, 3);
    UPDATE t SET v = 11 WHERE id = 1;
  END;
  INSERT INTO t VALUES (4, 4);
END $$;
CALL p();
SELECT * FROM t ORDER BY id;

-- snippet: variables-stay
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER := 1; b TEXT := 'x'; z INTEGER := 0;
BEGIN
  BEGIN
    a := 2;
    b := 'y';
    a := 10 / z;
    b := 'never';
  EXCEPTION WHEN division_by_zero THEN
    b := b || a;
  END;
  RETURN b;
END $$;
SELECT f();

-- snippet: variables-of-a-failed-statement-stay
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 0);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; n INTEGER := 0; q INTEGER := -1;
BEGIN
  FOR r IN SELECT * FROM t ORDER BY id LOOP
    n := n + 1;
    q := 100 / r.v;
  END LOOP;
  RETURN 'no';
EXCEPTION WHEN division_by_zero THEN RETURN n || ' ' || q || ' ' || r.id;
END $$;
SELECT f();

-- snippet: assignments-in-a-row
CREATE FUNCTION f(z INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b INTEGER; c INTEGER;
BEGIN
  a := 1; b := 2; c := 3;
  BEGIN
    a := 4;
    b := a + 1 / z;
    c := 6;
    a := 7;
  EXCEPTION WHEN OTHERS THEN
    c := c * 10;
  END;
  RETURN a || ' ' || b || ' ' || c;
END $$;
SELECT f(1), f(0);

-- snippet: found-and-row-count-stay
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n INTEGER; x INTEGER;
BEGIN
  BEGIN
    UPDATE t SET id = id WHERE id > 5;
    SELECT 1 / (id - 1) INTO x FROM t WHERE id = 1;
  EXCEPTION WHEN OTHERS THEN
    RETURN FOUND::TEXT;
  END;
  RETURN 'no';
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n INTEGER; x INTEGER;
BEGIN
  BEGIN
    PERFORM 1 FROM t WHERE id = 1;
    PERFORM 1 FROM t WHERE id = 7;
    PERFORM 1 FROM t WHERE id = 2;
    x := 1 / 0;
    PERFORM 1 FROM t WHERE id = 7;
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  RETURN FOUND::TEXT;
END $$;
SELECT g();

-- snippet: sequences-stay
CREATE SEQUENCE s;
CREATE FUNCTION f() RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
  PERFORM nextval('s');
  PERFORM nextval('s');
  RAISE EXCEPTION 'x';
EXCEPTION WHEN OTHERS THEN RETURN nextval('s');
END $$;
SELECT f();
SELECT nextval('s');

-- snippet: nested
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
CREATE PROCEDURE p(k INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1, 'outer');
  BEGIN
    INSERT INTO t VALUES (2, 'inner');
    BEGIN
      INSERT INTO t VALUES (3, 'innermost');
      IF k = 3 THEN RAISE division_by_zero; END IF;
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO t VALUES (13, SQLERRM);
    END;
    IF k = 2 THEN RAISE division_by_zero; END IF;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO t VALUES (12, SQLERRM);
  END;
  IF k = 1 THEN RAISE division_by_zero; END IF;
EXCEPTION WHEN division_by_zero THEN
  INSERT INTO t VALUES (11, SQLERRM);
END $$;
CALL p(3);
SELECT * FROM t ORDER BY id;
DELETE FROM t;
CALL p(2);
SELECT * FROM t ORDER BY id;
DELETE FROM t;
CALL p(1);
SELECT * FROM t ORDER BY id;
DELETE FROM t;
CALL p(0);
SELECT * FROM t ORDER BY id;

-- snippet: errors-in-handlers
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1);
  BEGIN
    INSERT INTO t VALUES (2);
    RAISE unique_violation;
  EXCEPTION WHEN unique_violation THEN
    INSERT INTO t VALUES (3);
    RAISE EXCEPTION 'from the handler of %', SQLERRM;
  END;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLERRM || (SELECT count(*) FROM t);
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE unique_violation;
EXCEPTION
  WHEN unique_violation THEN RAISE check_violation;
  WHEN check_violation THEN RETURN 'not the same region';
END $$;
-- error: 23514
SELECT g();

-- snippet: raise-again
CREATE TABLE t (id INTEGER CONSTRAINT named PRIMARY KEY);
INSERT INTO t VALUES (1);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1);
  RETURN 'no';
EXCEPTION WHEN unique_violation THEN RAISE;
END $$;
-- error: 23505
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE c TEXT; m TEXT; d TEXT;
BEGIN
  PERFORM f();
  RETURN 'no';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS c = CONSTRAINT_NAME, m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL;
  RETURN c || '|' || m || '|' || d;
END $$;
SELECT g();

-- snippet: raise-again-of-the-inner-or-the-outer-error
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    RAISE EXCEPTION 'first' USING ERRCODE = 'KL001';
  EXCEPTION WHEN OTHERS THEN
    BEGIN
      RAISE EXCEPTION 'second' USING ERRCODE = 'KL002';
    EXCEPTION WHEN OTHERS THEN
      NULL;
    END;
    RAISE;
  END;
EXCEPTION WHEN OTHERS THEN RETURN SQLERRM || SQLSTATE;
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    RAISE EXCEPTION 'first' USING ERRCODE = 'KL001';
  EXCEPTION WHEN OTHERS THEN
    BEGIN
      RAISE EXCEPTION 'second' USING ERRCODE = 'KL002';
    EXCEPTION WHEN OTHERS THEN
      RAISE;
    END;
  END;
EXCEPTION WHEN OTHERS THEN RETURN SQLERRM || SQLSTATE;
END $$;
SELECT g();
CREATE FUNCTION h() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    RAISE EXCEPTION 'first' USING ERRCODE = 'KL001';
  EXCEPTION WHEN OTHERS THEN
    BEGIN
      RAISE;
    EXCEPTION WHEN OTHERS THEN
      RETURN 'again: ' || SQLERRM;
    END;
  END;
END $$;
SELECT h();

-- snippet: raise-again-outside
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RAISE; END $$;
-- error: 0Z002
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'x';
EXCEPTION WHEN OTHERS THEN RETURN f();
END $$;
-- error: 0Z002
SELECT g();

-- snippet: stacked-diagnostics
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL CONSTRAINT positive CHECK (v > 0));
INSERT INTO t VALUES (1, 1);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a TEXT; b TEXT; c TEXT; d TEXT; e TEXT; g TEXT; h TEXT; i TEXT; j TEXT;
BEGIN
  IF k = 1 THEN INSERT INTO t VALUES (1, 5); END IF;
  IF k = 2 THEN INSERT INTO t VALUES (2, -1); END IF;
  IF k = 3 THEN UPDATE t SET v = NULL; END IF;
  IF k = 4 THEN RAISE EXCEPTION 'm' USING DETAIL = 'd', HINT = 'h', TABLE = 't', COLUMN = 'c', DATATYPE = 'y', SCHEMA = 's', CONSTRAINT = 'n'; END IF;
  IF k = 5 THEN RAISE EXCEPTION 'nothing else'; END IF;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS a = RETURNED_SQLSTATE, b := MESSAGE_TEXT, c = PG_EXCEPTION_DETAIL, d = PG_EXCEPTION_HINT,
    e = COLUMN_NAME, g = CONSTRAINT_NAME, h = PG_DATATYPE_NAME, i = TABLE_NAME;
  GET STACKED DIAGNOSTICS j = SCHEMA_NAME;
  IF k = 3 THEN c := 'a row'; END IF;
  IF j = 's' THEN h := h || '!' || j; END IF;
  RETURN concat_ws('|', a, b, c, d, e, g, h, i);
END $$;
SELECT f(0);
SELECT f(1);
SELECT f(2);
SELECT f(3);
SELECT f(4);
SELECT f(5);

-- snippet: diagnostics-where-there-are-none
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$ DECLARE a TEXT; BEGIN GET STACKED DIAGNOSTICS a = MESSAGE_TEXT; RETURN a; END $$;
-- error: 0Z002
SELECT f();
-- error: 42601
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$ DECLARE a TEXT; BEGIN GET DIAGNOSTICS a = MESSAGE_TEXT; RETURN a; END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$ DECLARE a TEXT; BEGIN GET STACKED DIAGNOSTICS a = ROW_COUNT; RETURN a; END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$ DECLARE a TEXT; BEGIN GET STACKED DIAGNOSTICS a = NOTHING; RETURN a; END $$;

-- snippet: diagnostics-of-several-counts
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER; b BIGINT;
BEGIN
  INSERT INTO t VALUES (1), (2), (3);
  GET DIAGNOSTICS a = ROW_COUNT, b = ROW_COUNT;
  RETURN a || ' ' || b;
END $$;
SELECT f();

-- snippet: sqlstate-and-sqlerrm-are-constants
-- error: 22005
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN OTHERS THEN SQLERRM := 'x'; END $$;
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN SQLERRM; EXCEPTION WHEN OTHERS THEN RETURN 'no such column'; END $$;
SELECT g();
CREATE FUNCTION h() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN SQLSTATE; END $$;
-- error: 42703
SELECT h();

-- snippet: handlers-in-loops
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (2, 0), (4, 0);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE i INTEGER; ok INTEGER := 0; bad INTEGER := 0;
BEGIN
  FOR i IN 1..5 LOOP
    BEGIN
      INSERT INTO t VALUES (i, i);
      ok := ok + 1;
    EXCEPTION WHEN unique_violation THEN
      bad := bad + 1;
      UPDATE t SET v = v - 1 WHERE id = i;
    END;
  END LOOP;
  RETURN ok || ' ' || bad;
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;

-- snippet: exit-and-continue-out-of-the-protected-block
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE log TEXT := '';
BEGIN
  FOR i IN 1..6 LOOP
    BEGIN
      INSERT INTO t VALUES (i);
      IF i = 2 THEN CONTINUE; END IF;
      IF i = 3 THEN RAISE division_by_zero; END IF;
      IF i = 5 THEN EXIT; END IF;
      log := log || i;
    EXCEPTION WHEN division_by_zero THEN
      log := log || 'c';
      CONTINUE;
    END;
    log := log || ',';
  END LOOP;
  RETURN log;
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;

-- snippet: exit-out-of-a-handler
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n INTEGER := 0;
BEGIN
  <<outer_loop>>
  LOOP
    LOOP
      n := n + 1;
      BEGIN
        IF n = 3 THEN RAISE division_by_zero; END IF;
      EXCEPTION WHEN division_by_zero THEN EXIT outer_loop;
      END;
      EXIT WHEN n % 2 = 0;
    END LOOP;
  END LOOP;
  RETURN 'n = ' || n;
END $$;
SELECT f();

-- snippet: labels-of-protected-blocks
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE log TEXT := '';
BEGIN
  <<b>>
  BEGIN
    INSERT INTO t VALUES (k);
    log := log || 'in ';
    EXIT b WHEN k = 1;
    RAISE EXCEPTION 'x';
  EXCEPTION WHEN OTHERS THEN
    log := log || 'caught ';
    EXIT b WHEN k = 2;
    log := log || 'end ';
  END;
  RETURN log || 'behind';
END $$;
SELECT f(1);
SELECT f(2);
SELECT f(3);
SELECT * FROM t ORDER BY id;

-- snippet: return-out-of-the-protected-block
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO t VALUES (k);
    IF k < 3 THEN RETURN k; END IF;
    RETURN 1 / 0;
  EXCEPTION WHEN division_by_zero THEN
    RETURN -k;
  END;
END $$;
SELECT f(1), f(2), f(3);
SELECT * FROM t ORDER BY id;

-- snippet: return-next-stays
CREATE FUNCTION f() RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    RETURN NEXT 1;
    RETURN NEXT 2;
    RAISE EXCEPTION 'x';
  EXCEPTION WHEN OTHERS THEN RETURN NEXT 3;
  END;
  RETURN NEXT 4;
END $$;
SELECT * FROM f();

-- snippet: out-parameters
CREATE FUNCTION f(z INTEGER, OUT a INTEGER, OUT b TEXT) LANGUAGE plpgsql AS $$
BEGIN
  a := 1; b := 'b';
  BEGIN
    a := 2;
    a := 5 / z;
    b := 'c';
  EXCEPTION WHEN OTHERS THEN b := b || '!';
  END;
END $$;
SELECT * FROM f(1);
SELECT * FROM f(0);

-- snippet: constraints
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent, name VARCHAR(3) NOT NULL, n INTEGER CHECK (n < 10), UNIQUE (name));
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1, 'a', 1), (2, 2, 'b', 2);
CREATE FUNCTION try(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  UPDATE child SET n = 9 WHERE id = 1;
  IF k = 1 THEN INSERT INTO child VALUES (3, 3, 'c', 3); END IF;
  IF k = 2 THEN DELETE FROM parent WHERE id = 1; END IF;
  IF k = 3 THEN INSERT INTO child VALUES (3, 1, NULL, 3); END IF;
  IF k = 4 THEN UPDATE child SET n = 10 WHERE id = 2; END IF;
  IF k = 5 THEN UPDATE child SET name = 'b' WHERE id = 1; END IF;
  IF k = 6 THEN INSERT INTO child VALUES (3, 1, 'long', 3); END IF;
  IF k = 7 THEN UPDATE child SET id = 2 WHERE id = 1; END IF;
  IF k = 8 THEN UPDATE parent SET id = 7 WHERE id = 1; END IF;
  IF k = 9 THEN UPDATE child SET parent = 9 WHERE id = 1; END IF;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT try(1);
SELECT try(2);
SELECT try(3);
SELECT try(4);
SELECT try(5);
SELECT try(6);
SELECT try(7);
SELECT try(8);
SELECT try(9);
SELECT * FROM child ORDER BY id;
SELECT * FROM parent ORDER BY id;
SELECT id FROM child WHERE name = 'a';
SELECT id FROM child WHERE name = 'b';
SELECT try(0);
SELECT * FROM child ORDER BY id;

-- snippet: an-index-entry-moves-back
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER UNIQUE);
INSERT INTO t VALUES (1, 1, 1), (2, 2, 2);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r TEXT := '';
BEGIN
  BEGIN
    UPDATE t SET a = 5, b = 2 WHERE id = 1;
  EXCEPTION WHEN unique_violation THEN r := SQLERRM;
  END;
  INSERT INTO t VALUES (5, 5, 5);
  UPDATE t SET a = 6 WHERE a = 1;
  RETURN r;
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE a = 5;
SELECT id FROM t WHERE a = 6;
SELECT id FROM t WHERE b = 1;

-- snippet: an-index-entry-goes-back-to-where-it-was-moved
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER UNIQUE);
INSERT INTO t VALUES (1, 1, 1), (2, 2, 2);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET a = 9 WHERE id = 1;
  BEGIN
    UPDATE t SET a = 1, b = 2 WHERE id = 1;
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  RETURN (SELECT id FROM t WHERE a = 9) || ' ' || (SELECT count(*) FROM t WHERE a = 1);
END $$;
SELECT f();
SELECT id FROM t WHERE a = 9;
SELECT id FROM t WHERE a = 1;
INSERT INTO t VALUES (3, 1, 3);
SELECT * FROM t ORDER BY id;

-- snippet: deleted-and-inserted-again
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, s TEXT);
INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two');
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET s = 'first' WHERE id = 1;
  BEGIN
    UPDATE t SET s = s || '!', a = 11 WHERE id = 1;
    DELETE FROM t WHERE id = 1;
    INSERT INTO t VALUES (1, 12, 'again'), (3, 10, 'taken');
    DELETE FROM t WHERE id = 1;
    INSERT INTO t VALUES (4, 11, 'other');
    RAISE EXCEPTION 'x';
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  UPDATE t SET s = s || '?' WHERE id = 1;
  RETURN (SELECT string_agg(id || ' ' || a || ' ' || s, ', ' ORDER BY id) FROM t);
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE a = 10;
SELECT id FROM t WHERE a IN (11, 12) ORDER BY id;

-- snippet: without-a-primary-key
CREATE TABLE t (a INTEGER, s TEXT);
INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, 'y');
CREATE FUNCTION f() RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    UPDATE t SET s = 'z' WHERE a = 1;
    DELETE FROM t WHERE a = 1;
    INSERT INTO t VALUES (3, 'w');
    RAISE EXCEPTION 'x';
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  UPDATE t SET s = s || '+';
  DELETE FROM t WHERE a = 2;
  RETURN (SELECT count(*) FROM t);
END $$;
SELECT f();
SELECT * FROM t ORDER BY a, s;

-- snippet: a-loop-over-rows-that-are-brought-back
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t SELECT g, g FROM generate_series(1, 6) AS g;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; log TEXT := '';
BEGIN
  FOR r IN SELECT * FROM t ORDER BY id LOOP
    BEGIN
      DELETE FROM t WHERE id = r.id;
      UPDATE t SET v = v + 10 WHERE id = r.id + 1;
      IF r.id % 2 = 0 THEN RAISE EXCEPTION 'even'; END IF;
      log := log || r.id || ':' || r.v || ' ';
    EXCEPTION WHEN raise_exception THEN
      UPDATE t SET v = v + 100 WHERE id = r.id;
    END;
  END LOOP;
  RETURN log;
END $$;
SELECT f();
SELECT * FROM t ORDER BY id;

-- snippet: on-conflict
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (1, 5), (2, 5) ON CONFLICT DO NOTHING;
  INSERT INTO t VALUES (1, 6), (3, 6) ON CONFLICT (id) DO UPDATE SET v = t.v + EXCLUDED.v;
  RAISE EXCEPTION 'x';
EXCEPTION WHEN OTHERS THEN
  INSERT INTO t VALUES (3, 3) ON CONFLICT DO NOTHING;
  RETURN (SELECT string_agg(id || '=' || v, ',' ORDER BY id) FROM t);
END $$;
SELECT f();

-- snippet: returning-in-a-region
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE n INTEGER := 0; m INTEGER := 0;
BEGIN
  BEGIN
    UPDATE t SET v = v * 10 WHERE id = 1 RETURNING v INTO n;
    DELETE FROM t WHERE id = 2 RETURNING v INTO m;
    RAISE EXCEPTION 'x';
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  RETURN n || ' ' || m || ' ' || (SELECT sum(v) FROM t);
END $$;
SELECT f();

-- snippet: strict-rows-that-are-missed
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 7), (2, 7);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := -1;
BEGIN
  SELECT id INTO STRICT x FROM t WHERE v = k;
  RETURN 'one';
EXCEPTION
  WHEN no_data_found THEN RETURN 'none';
  WHEN too_many_rows THEN RETURN 'many';
END $$;
SELECT f(7), f(8);

-- snippet: casts
CREATE FUNCTION f(s TEXT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RETURN s::INTEGER;
EXCEPTION
  WHEN invalid_text_representation THEN RETURN -1;
  WHEN numeric_value_out_of_range THEN RETURN -2;
END $$;
SELECT f('12'), f('x'), f('99999999999'), f(NULL);
CREATE FUNCTION d(s TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE v DATE;
BEGIN
  v := s;
  RETURN v::TEXT;
EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT d('2024-02-29');
SELECT d('nonsense');
SELECT d('2023-02-30');

-- snippet: errors-of-called-functions
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION inner_f(k INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k);
  RETURN 100 / (k - 1);
END $$;
CREATE FUNCTION sql_f(k INTEGER) RETURNS INTEGER LANGUAGE sql AS $$ SELECT 100 / k $$;
CREATE PROCEDURE p(k INTEGER) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (k); PERFORM sql_f(k); END $$;
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  x := inner_f(k);
  CALL p(k - 2);
  RETURN x::TEXT;
EXCEPTION WHEN division_by_zero THEN RETURN 'caught';
END $$;
SELECT f(1);
SELECT f(2);
SELECT f(3);
SELECT * FROM t ORDER BY id;

-- snippet: a-function-that-catches-called-in-a-region
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE FUNCTION careful(k INTEGER) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k);
  RETURN TRUE;
EXCEPTION WHEN unique_violation THEN RETURN FALSE;
END $$;
CREATE FUNCTION f(fails BOOLEAN) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE log TEXT := '';
BEGIN
  FOR i IN 1..3 LOOP log := log || careful(i % 2) || ' '; END LOOP;
  IF fails THEN RAISE EXCEPTION 'x'; END IF;
  RETURN log;
EXCEPTION WHEN raise_exception THEN RETURN log || 'undone';
END $$;
SELECT f(TRUE);
SELECT count(*) FROM t;
SELECT f(FALSE);
SELECT * FROM t ORDER BY id;
SELECT careful(1), careful(5);

-- snippet: defaults-are-outside
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER := 1 / 0;
BEGIN
  RETURN 'x';
EXCEPTION WHEN OTHERS THEN RETURN 'caught';
END $$;
-- error: 22012
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  DECLARE x INTEGER := 1 / 0;
  BEGIN
    RETURN 'x';
  EXCEPTION WHEN OTHERS THEN RETURN 'inner';
  END;
EXCEPTION WHEN OTHERS THEN RETURN 'outer';
END $$;
SELECT g();

-- snippet: errors-of-analysis
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  PERFORM no_such_column;
  RETURN 'x';
EXCEPTION
  WHEN undefined_column THEN RETURN SQLERRM;
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO no_such_table VALUES (1);
  RETURN 'x';
EXCEPTION
  WHEN undefined_table THEN RETURN SQLERRM;
END $$;
SELECT g();
CREATE FUNCTION h() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RETURN no_such_function(1);
EXCEPTION
  WHEN syntax_error_or_access_rule_violation THEN RETURN SQLSTATE;
END $$;
SELECT h();

-- snippet: case-and-foreach
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER[]; x INTEGER; n INTEGER := 0;
BEGIN
  IF k = 1 THEN
    CASE k WHEN 5 THEN n := 1; END CASE;
  ELSIF k = 2 THEN
    FOREACH x IN ARRAY a LOOP n := n + 1; END LOOP;
  ELSIF k = 3 THEN
    FOR i IN 1..NULL LOOP n := n + 1; END LOOP;
  ELSE
    FOREACH x IN ARRAY ARRAY[1, 2, 0, 4] LOOP n := n + 12 / x; END LOOP;
  END IF;
  RETURN 'n';
EXCEPTION
  WHEN case_not_found THEN RETURN 'case';
  WHEN null_value_not_allowed THEN RETURN SQLERRM;
  WHEN division_by_zero THEN RETURN n || ' at ' || x;
END $$;
SELECT f(1);
SELECT f(2);
SELECT f(3);
SELECT f(4);

-- snippet: do-blocks
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
DO $$
BEGIN
  INSERT INTO t VALUES (1, 'a');
  BEGIN
    INSERT INTO t VALUES (1, 'b');
  EXCEPTION WHEN unique_violation THEN
    UPDATE t SET v = SQLSTATE;
  END;
END $$;
SELECT * FROM t;
-- error: P0001
DO $$
BEGIN
  INSERT INTO t VALUES (2, 'a');
  RAISE EXCEPTION 'out';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
SELECT * FROM t;
DO $$
DECLARE n INTEGER := 0;
BEGIN
  FOR i IN 1..100 LOOP
    BEGIN
      INSERT INTO t VALUES (i % 7, 'n');
      n := n + 1;
    EXCEPTION WHEN unique_violation THEN NULL;
    END;
  END LOOP;
  INSERT INTO t VALUES (1000, n);
END $$;
SELECT * FROM t ORDER BY id;

-- snippet: in-a-transaction
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE PROCEDURE p(k INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k);
  INSERT INTO t VALUES (1);
EXCEPTION WHEN unique_violation THEN
  INSERT INTO t VALUES (k + 100);
END $$;
BEGIN;
INSERT INTO t VALUES (1);
CALL p(2);
SELECT * FROM t ORDER BY id;
SAVEPOINT s;
CALL p(3);
ROLLBACK TO s;
CALL p(4);
COMMIT;
SELECT * FROM t ORDER BY id;
BEGIN;
DELETE FROM t;
CALL p(5);
SELECT * FROM t ORDER BY id;
ROLLBACK;
SELECT * FROM t ORDER BY id;

-- snippet: notices-are-sent
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'before';
  RAISE EXCEPTION 'x';
EXCEPTION WHEN OTHERS THEN
  RAISE NOTICE 'caught %', SQLERRM;
  RETURN 1;
END $$;
SELECT f();

-- snippet: many-regions
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (0, 0);
CREATE FUNCTION f(n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE caught INTEGER := 0;
BEGIN
  FOR i IN 1..n LOOP
    BEGIN
      UPDATE t SET v = v + 1 WHERE id = 0;
      IF i % 3 = 0 THEN PERFORM 1 / (i % 3); END IF;
    EXCEPTION WHEN division_by_zero THEN caught := caught + 1;
    END;
  END LOOP;
  RETURN caught || ' ' || (SELECT v FROM t);
END $$;
SELECT f(3000);

-- snippet: cascading-changes-within-regions
CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO a SELECT g, 0 FROM generate_series(1, 4) AS g;
CREATE FUNCTION f(depth INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    UPDATE a SET n = n + 1;
    BEGIN
      UPDATE a SET n = n + 10;
      BEGIN
        UPDATE a SET n = n + 100;
        DELETE FROM a WHERE id = 4;
        IF depth = 3 THEN RAISE EXCEPTION 'x'; END IF;
      EXCEPTION WHEN OTHERS THEN UPDATE a SET n = n + 1000;
      END;
      IF depth = 2 THEN RAISE EXCEPTION 'x'; END IF;
    EXCEPTION WHEN OTHERS THEN UPDATE a SET n = n + 2000;
    END;
    IF depth = 1 THEN RAISE EXCEPTION 'x'; END IF;
  EXCEPTION WHEN OTHERS THEN UPDATE a SET n = n + 3000;
  END;
  RETURN (SELECT string_agg(id || '=' || n, ' ' ORDER BY id) FROM a);
END $$;
SELECT f(3);
SELECT f(2);
SELECT f(1);
SELECT f(0);

-- snippet: long-texts-come-back
CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT, n NUMERIC(10, 2), d DATE, b BYTEA);
INSERT INTO t VALUES (1, repeat('abc', 200), 12.50, '2024-01-31', '\x0102');
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    UPDATE t SET s = repeat('x', 500), n = n * 2, d = d + 1;
    UPDATE t SET s = NULL, b = NULL;
    DELETE FROM t;
    INSERT INTO t VALUES (1, repeat('y', 300), NULL, NULL, NULL);
    RAISE EXCEPTION 'x';
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  RETURN (SELECT length(s) || ' ' || left(s, 4) || ' ' || n || ' ' || d FROM t);
END $$;
SELECT f();
SELECT length(s), n, d, b FROM t;

-- snippet: records-in-handlers
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 5);
CREATE FUNCTION f(k INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE r RECORD; w t%ROWTYPE;
BEGIN
  BEGIN
    SELECT * INTO w FROM t WHERE id = 1;
    SELECT id, v INTO r FROM t WHERE id = 1;
    IF k = 1 THEN RAISE EXCEPTION 'x'; END IF;
    w.v := 6;
  EXCEPTION WHEN OTHERS THEN
    w.id := 9;
  END;
  RETURN w.id || ' ' || w.v || ' ' || r.v;
END $$;
SELECT f(0), f(1);
