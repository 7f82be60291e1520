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
