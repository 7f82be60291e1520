-- BEGIN, COMMIT, ROLLBACK, and what an error does to a transaction.

-- snippet: transaction-commit
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
BEGIN;
INSERT INTO t VALUES (1, 10);
UPDATE t SET v = 11 WHERE id = 1;
SELECT v FROM t;
COMMIT;
SELECT id, v FROM t;

-- snippet: transaction-rollback
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
BEGIN;
UPDATE t SET v = 99 WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (3, 30);
SELECT id, v FROM t ORDER BY id;
ROLLBACK;
SELECT id, v FROM t ORDER BY id;

-- snippet: transaction-error-aborts
CREATE TABLE t (id INTEGER PRIMARY KEY);
BEGIN;
INSERT INTO t VALUES (1);
-- error: 22012
SELECT 1 / 0;
-- error: 25P02
SELECT 1;
-- error: 25P02
INSERT INTO t VALUES (2);
ROLLBACK;
SELECT count(*) FROM t;

-- snippet: transaction-commit-of-aborted-rolls-back
CREATE TABLE t (id INTEGER PRIMARY KEY);
BEGIN;
INSERT INTO t VALUES (1);
-- error: 23505
INSERT INTO t VALUES (1);
COMMIT;
SELECT count(*) FROM t;

-- snippet: transaction-syntax-error-aborts
BEGIN;
-- error: 42601
SELEC 1;
-- error: 25P02
SELECT 2;
ROLLBACK;
SELECT 3;

-- snippet: transaction-own-writes-visible
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE INDEX t_v ON t (v);
BEGIN;
INSERT INTO t VALUES (1, 5), (2, 6);
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 7);
UPDATE t SET v = v * 10;
SELECT id, v FROM t ORDER BY id;
SELECT id FROM t WHERE v = 70;
SELECT count(*), sum(v) FROM t;
COMMIT;
SELECT id, v FROM t ORDER BY id;

-- snippet: transaction-delete-and-reinsert-key
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'old');
BEGIN;
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 'new');
SELECT v FROM t;
ROLLBACK;
SELECT v FROM t;
BEGIN;
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 'newer');
COMMIT;
SELECT v FROM t;

-- snippet: transaction-insert-then-delete
CREATE TABLE t (id INTEGER PRIMARY KEY);
BEGIN;
INSERT INTO t VALUES (1), (2);
DELETE FROM t WHERE id = 1;
COMMIT;
SELECT id FROM t;

-- snippet: transaction-keyword-forms
CREATE TABLE t (id INTEGER PRIMARY KEY);
START TRANSACTION;
INSERT INTO t VALUES (1);
COMMIT WORK;
BEGIN TRANSACTION;
INSERT INTO t VALUES (2);
ROLLBACK WORK;
BEGIN WORK;
INSERT INTO t VALUES (3);
END;
BEGIN;
INSERT INTO t VALUES (4);
ABORT;
SELECT id FROM t ORDER BY id;

-- snippet: transaction-outside-warnings
COMMIT;
ROLLBACK;
BEGIN;
BEGIN;
COMMIT;
SELECT 1;

-- snippet: transaction-read-your-upsert
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
BEGIN;
INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 1;
INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 1;
SELECT v FROM t;
COMMIT;
SELECT v FROM t;

-- snippet: transaction-constraint-error-keeps-earlier-commits
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER CHECK (v >= 0));
INSERT INTO t VALUES (1, 5);
BEGIN;
UPDATE t SET v = v - 3 WHERE id = 1;
-- error: 23514
UPDATE t SET v = v - 3 WHERE id = 1;
ROLLBACK;
SELECT v FROM t;

-- snippet: transaction-delete-of-a-moved-key
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO p VALUES (1, 10), (2, 20);
BEGIN;
UPDATE p SET u = 11 WHERE id = 1;
DELETE FROM p WHERE id = 1;
COMMIT;
SELECT id, u FROM p WHERE u = 10;
SELECT id, u FROM p WHERE u = 11;
INSERT INTO p VALUES (9, 10), (8, 11);
SELECT id, u FROM p WHERE u = 10;
SELECT id, u FROM p WHERE u = 11;
BEGIN;
UPDATE p SET u = 12 WHERE id = 9;
UPDATE p SET u = 13 WHERE id = 9;
DELETE FROM p WHERE id = 9;
INSERT INTO p VALUES (9, 14);
COMMIT;
SELECT id, u FROM p WHERE u = 10;
SELECT id, u FROM p WHERE u = 14;
INSERT INTO p VALUES (10, 10), (12, 12), (13, 13);
SELECT id, u FROM p ORDER BY u;

-- snippet: transaction-key-of-a-deleted-row
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO p VALUES (1, 10), (2, 20);
BEGIN;
UPDATE p SET u = 11 WHERE id = 1;
DELETE FROM p WHERE id = 1;
INSERT INTO p VALUES (5, 11);
SELECT id, u FROM p ORDER BY 1;
COMMIT;
SELECT id, u FROM p ORDER BY 1;
SELECT id, u FROM p WHERE u = 11;
SELECT id, u FROM p WHERE u = 10;
INSERT INTO p VALUES (6, 10);

-- snippet: transaction-keys-passed-on
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO p VALUES (1, 10), (2, 20);
BEGIN;
UPDATE p SET u = 11 WHERE id = 1;
UPDATE p SET u = 12 WHERE id = 1;
UPDATE p SET u = 11 WHERE id = 2;
UPDATE p SET u = 10 WHERE id = 1;
SELECT id, u FROM p ORDER BY 1;
COMMIT;
SELECT id, u FROM p ORDER BY 1;
SELECT id, u FROM p WHERE u = 11;
SELECT id, u FROM p WHERE u = 10;

-- snippet: transaction-key-taken-again-and-again
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO p VALUES (1, 10), (2, 20);
BEGIN;
DELETE FROM p WHERE id = 1;
INSERT INTO p VALUES (5, 10);
DELETE FROM p WHERE id = 5;
INSERT INTO p VALUES (6, 10);
UPDATE p SET u = 10 WHERE id = 6;
UPDATE p SET u = 13 WHERE id = 6;
INSERT INTO p VALUES (7, 10);
DELETE FROM p WHERE u = 13;
INSERT INTO p VALUES (8, 13);
SELECT id, u FROM p ORDER BY 1;
COMMIT;
SELECT id, u FROM p ORDER BY 1;
SELECT id, u FROM p WHERE u = 13;
SELECT id, u FROM p WHERE u = 10;

-- snippet: transaction-deleted-row-comes-back
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO p VALUES (1, 10), (2, 20);
BEGIN;
DELETE FROM p WHERE id = 1;
INSERT INTO p VALUES (5, 10);
-- error: 23505
INSERT INTO p VALUES (1, 10);
ROLLBACK;
SELECT id, u FROM p ORDER BY 1;
BEGIN;
DELETE FROM p WHERE id = 1;
INSERT INTO p VALUES (5, 10);
DELETE FROM p WHERE id = 5;
INSERT INTO p VALUES (1, 10);
SELECT id, u FROM p WHERE u = 10;
COMMIT;
SELECT id, u FROM p WHERE u = 10;
BEGIN;
UPDATE p SET u = 11 WHERE id = 1;
DELETE FROM p WHERE id = 1;
INSERT INTO p VALUES (5, 11);
DELETE FROM p WHERE id = 5;
INSERT INTO p VALUES (1, 11);
SELECT id, u FROM p WHERE u = 11;
SELECT id, u FROM p WHERE u = 10;
COMMIT;
SELECT id, u FROM p WHERE u = 11;
SELECT id, u FROM p WHERE u = 10;
INSERT INTO p VALUES (10, 10);
BEGIN;
UPDATE p SET u = 30 WHERE id = 10;
UPDATE p SET u = 10 WHERE id = 1;
DELETE FROM p WHERE id = 1;
UPDATE p SET u = 10 WHERE id = 10;
COMMIT;
SELECT id, u FROM p ORDER BY u;
SELECT id, u FROM p WHERE u = 10;
INSERT INTO p VALUES (30, 30), (11, 11);
SELECT id, u FROM p ORDER BY u;

-- snippet: transaction-conflict-with-a-deleted-row
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO p VALUES (1, 10), (2, 20);
BEGIN;
DELETE FROM p WHERE id = 1;
INSERT INTO p VALUES (1, 20) ON CONFLICT (u) DO NOTHING;
SELECT id, u FROM p ORDER BY id;
INSERT INTO p VALUES (1, 20) ON CONFLICT (u) DO UPDATE SET u = 21;
SELECT id, u FROM p ORDER BY id;
-- error: 23505
INSERT INTO p VALUES (1, 21) ON CONFLICT (id) DO NOTHING;
ROLLBACK;
SELECT id, u FROM p ORDER BY id;

-- snippet: transaction-time-stands-still
CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMPTZ, statement TIMESTAMPTZ, day DATE);
BEGIN;
INSERT INTO t VALUES (1, now(), statement_timestamp(), current_date);
INSERT INTO t VALUES (2, current_timestamp, statement_timestamp(), current_date);
INSERT INTO t VALUES (3, transaction_timestamp(), statement_timestamp(), now()::date);
SELECT count(DISTINCT at), count(DISTINCT statement), bool_and(at <= statement) FROM t;
SELECT now() = (SELECT min(at) FROM t), statement_timestamp() > now(), clock_timestamp() > now();
COMMIT;
SELECT now() > max(at), now() > max(statement) FROM t;
INSERT INTO t VALUES (4, now(), statement_timestamp(), current_date);
SELECT count(DISTINCT at) FROM t;
CREATE FUNCTION f() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    before TIMESTAMPTZ := now();
    first TIMESTAMPTZ := statement_timestamp();
    spent INTEGER;
BEGIN
    SELECT count(*) INTO spent FROM generate_series(1, 2000) AS g WHERE g % 3 = 0;
    RETURN now() = before AND statement_timestamp() = first AND spent = 666;
END $$;
SELECT f();
BEGIN;
SELECT f();
SELECT f() AND now() < statement_timestamp();
ROLLBACK;

-- snippet: blocks-that-follow-each-other
CREATE TABLE chained (a INTEGER);
BEGIN;
INSERT INTO chained VALUES (1);
COMMIT AND CHAIN;
INSERT INTO chained VALUES (2);
ROLLBACK AND CHAIN;
INSERT INTO chained VALUES (3);
END AND CHAIN;
COMMIT;
SELECT * FROM chained ORDER BY a;
START TRANSACTION READ ONLY;
COMMIT AND CHAIN;
-- error: 25006
INSERT INTO chained VALUES (4);
ROLLBACK AND CHAIN;
SHOW transaction_read_only;
COMMIT AND NO CHAIN;
-- error: 25P01
COMMIT AND CHAIN;
-- error: 25P01
ROLLBACK AND CHAIN;
SELECT count(*) FROM chained;
