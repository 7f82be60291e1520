-- CREATE PROCEDURE and CALL.

-- snippet: procedure-call
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE PROCEDURE put(k INTEGER, x INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k, x);
END $$;
CALL put(1, 10);
CALL put(2, 20);
-- error: 23505
CALL put(1, 30);
SELECT id, v FROM t ORDER BY id;

-- snippet: procedure-inout
CREATE PROCEDURE bump(INOUT x INTEGER, by_how_much INTEGER) LANGUAGE plpgsql AS $$ BEGIN x := x + by_how_much; END $$;
CALL bump(5, 3);

-- snippet: procedure-out
CREATE PROCEDURE split(total INTEGER, OUT half INTEGER, OUT rest INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  half := total / 2;
  rest := total - half;
END $$;
CALL split(7, NULL, NULL);

-- snippet: procedure-payment-like
CREATE TABLE warehouse (w_id INTEGER PRIMARY KEY, ytd NUMERIC(12, 2));
CREATE TABLE customer (w_id INTEGER, c_id INTEGER, last VARCHAR(16), balance NUMERIC(12, 2), PRIMARY KEY (w_id, c_id));
CREATE INDEX customer_last ON customer (w_id, last);
INSERT INTO warehouse VALUES (1, 300000.00);
INSERT INTO customer VALUES (1, 1, 'BAR', -10.00), (1, 2, 'BAR', -20.00), (1, 3, 'BAR', 5.50), (1, 4, 'OUGHT', 0);
CREATE PROCEDURE payment(w INTEGER, name VARCHAR, amount NUMERIC, OUT paid_by INTEGER, OUT new_balance NUMERIC) LANGUAGE plpgsql AS $$
DECLARE n BIGINT; position_now BIGINT := 0; r RECORD;
BEGIN
  UPDATE warehouse SET ytd = ytd + amount WHERE w_id = w;
  SELECT count(*) INTO n FROM customer WHERE w_id = w AND last = name;
  IF n = 0 THEN RAISE EXCEPTION 'no customer %', name USING ERRCODE = 'KL404'; END IF;
  FOR r IN SELECT c_id FROM customer WHERE w_id = w AND last = name ORDER BY c_id LOOP
    position_now := position_now + 1;
    IF position_now = (n + 1) / 2 THEN paid_by := r.c_id; EXIT; END IF;
  END LOOP;
  UPDATE customer SET balance = balance - amount WHERE w_id = w AND c_id = paid_by RETURNING balance INTO new_balance;
END $$;
CALL payment(1, 'BAR', 12.345, NULL, NULL);
-- error: KL404
CALL payment(1, 'NOBODY', 1, NULL, NULL);
SELECT w_id, ytd FROM warehouse;
SELECT c_id, balance FROM customer ORDER BY c_id;

-- snippet: procedure-new-order-like
CREATE TABLE district (id INTEGER PRIMARY KEY, next_o INTEGER NOT NULL);
CREATE TABLE stock (i INTEGER PRIMARY KEY, quantity SMALLINT, ytd INTEGER);
CREATE TABLE order_line (o INTEGER, n INTEGER, i INTEGER, amount NUMERIC(6, 2), PRIMARY KEY (o, n));
CREATE TABLE item (i INTEGER PRIMARY KEY, price NUMERIC(5, 2));
INSERT INTO district VALUES (1, 3001);
INSERT INTO stock VALUES (1, 20, 0), (2, 12, 0), (3, 91, 0);
INSERT INTO item VALUES (1, 1.50), (2, 20.00), (3, 0.99);
CREATE FUNCTION new_order(d INTEGER, items INTEGER[], quantities INTEGER[]) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE o INTEGER; total NUMERIC := 0; p NUMERIC(5, 2); q SMALLINT;
BEGIN
  UPDATE district SET next_o = next_o + 1 WHERE id = d RETURNING next_o - 1 INTO o;
  FOR k IN 1..cardinality(items) LOOP
    SELECT price INTO p FROM item WHERE i = items[k];
    IF NOT FOUND THEN RAISE EXCEPTION 'item % not found', items[k]; END IF;
    SELECT quantity INTO STRICT q FROM stock WHERE i = items[k];
    IF q >= quantities[k] + 10 THEN q := q - quantities[k]; ELSE q := q - quantities[k] + 91; END IF;
    UPDATE stock SET quantity = q, ytd = ytd + quantities[k] WHERE i = items[k];
    INSERT INTO order_line VALUES (o, k, items[k], p * quantities[k]);
    total := total + p * quantities[k];
  END LOOP;
  RETURN total;
END $$;
SELECT new_order(1, ARRAY[1, 2, 3], ARRAY[5, 5, 10]);
-- error: P0001
SELECT new_order(1, ARRAY[1, 99], ARRAY[1, 1]);
SELECT new_order(1, ARRAY[2, 2], ARRAY[1, 2]);
SELECT id, next_o FROM district;
SELECT i, quantity, ytd FROM stock ORDER BY i;
SELECT o, n, i, amount FROM order_line ORDER BY o, n;

-- snippet: procedure-calls-procedure
CREATE TABLE log (n INTEGER PRIMARY KEY, s TEXT);
CREATE PROCEDURE note(n INTEGER, s TEXT) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (n, s); END $$;
CREATE PROCEDURE twice(s TEXT) LANGUAGE plpgsql AS $$
BEGIN
  CALL note(1, s);
  CALL note(2, s || s);
END $$;
CALL twice('ab');
SELECT n, s FROM log ORDER BY n;

-- snippet: procedure-wrong-arguments
CREATE PROCEDURE p(a INTEGER, b TEXT) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CALL p(1, 'x');
-- error: 42883
CALL p(1);
-- error: 42883
CALL p(1, 'x', 3);
-- error: 42883
CALL p(true, 'x');
-- error: 22P02
CALL p('one', 'x');

-- snippet: procedure-is-not-a-function
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
-- error: 42809
SELECT p();
-- error: 42809
CALL f();

-- snippet: procedure-in-transaction
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE PROCEDURE put(k INTEGER) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (k); END $$;
BEGIN;
CALL put(1);
CALL put(2);
ROLLBACK;
BEGIN;
CALL put(3);
COMMIT;
SELECT id FROM t;

-- snippet: procedure-return-early
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE PROCEDURE put(k INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  IF k < 0 THEN RETURN; END IF;
  INSERT INTO t VALUES (k);
END $$;
CALL put(-1);
CALL put(1);
SELECT id FROM t;

-- snippet: procedure-replace-and-drop
CREATE TABLE t (v TEXT);
CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES ('first'); END $$;
CREATE OR REPLACE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES ('second'); END $$;
CALL p();
SELECT v FROM t;
DROP PROCEDURE p();
-- error: 42883
CALL p();
DROP PROCEDURE IF EXISTS p();

-- snippet: procedure-upsert
CREATE TABLE counter (name TEXT PRIMARY KEY, n INTEGER);
CREATE PROCEDURE hit(who TEXT, times INTEGER) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO counter VALUES (who, times) ON CONFLICT (name) DO UPDATE SET n = counter.n + excluded.n;
END $$;
CALL hit('a', 1);
CALL hit('b', 5);
CALL hit('a', 2);
SELECT name, n FROM counter ORDER BY name;

-- snippet: procedure-delete-oldest
CREATE TABLE new_order (d INTEGER, o INTEGER, PRIMARY KEY (d, o));
INSERT INTO new_order VALUES (1, 5), (1, 6), (2, 9), (4, 1);
CREATE FUNCTION deliver() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE oldest INTEGER; s TEXT := '';
BEGIN
  FOR district IN 1..4 LOOP
    SELECT min(o) INTO oldest FROM new_order WHERE d = district;
    CONTINUE WHEN oldest IS NULL;
    DELETE FROM new_order WHERE d = district AND o = oldest;
    s := s || district || '/' || oldest || ' ';
  END LOOP;
  RETURN s;
END $$;
SELECT deliver();
SELECT d, o FROM new_order ORDER BY d, o;
SELECT deliver();
SELECT deliver();

-- snippet: procedure-named-arguments
CREATE TABLE t (a INTEGER, b TEXT);
CREATE PROCEDURE put(a INTEGER, b TEXT DEFAULT 'dflt') LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (put.a, put.b); END $$;
CALL put(b => 'x', a => 1);
CALL put(2);
SELECT a, b FROM t ORDER BY a;
