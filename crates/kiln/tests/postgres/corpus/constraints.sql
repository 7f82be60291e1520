-- PRIMARY KEY, UNIQUE, NOT NULL, CHECK, REFERENCES; creating and dropping tables.

-- snippet: primary-key-duplicate
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'a');
-- error: 23505
INSERT INTO t VALUES (1, 'b');
SELECT id, v FROM t;

-- snippet: primary-key-not-null
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
-- error: 23502
INSERT INTO t VALUES (NULL, 'a');
-- error: 23502
INSERT INTO t (v) VALUES ('a');

-- snippet: primary-key-composite
CREATE TABLE t (a INTEGER, b TEXT, v INTEGER, PRIMARY KEY (a, b));
INSERT INTO t VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3);
-- error: 23505
INSERT INTO t VALUES (1, 'y', 9);
-- error: 23502
INSERT INTO t VALUES (1, NULL, 9);
SELECT a, b, v FROM t ORDER BY a, b;
SELECT v FROM t WHERE b = 'x' AND a = 2;

-- snippet: primary-key-order-of-columns
CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (b, a));
INSERT INTO t VALUES (1, 9), (2, 3), (3, 9), (-4, 3);
SELECT a, b FROM t WHERE b = 9 ORDER BY a;
SELECT a, b FROM t ORDER BY b, a;

-- snippet: primary-key-negative-and-zero
CREATE TABLE t (id BIGINT PRIMARY KEY);
INSERT INTO t VALUES (0), (-1), (1), (-9223372036854775808), (9223372036854775807);
SELECT id FROM t ORDER BY id;
SELECT id FROM t WHERE id < 0 ORDER BY id DESC;

-- snippet: unique-allows-nulls
CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
INSERT INTO t VALUES (1, NULL), (2, NULL), (3, 5);
-- error: 23505
INSERT INTO t VALUES (4, 5);
SELECT id, u FROM t ORDER BY id;

-- snippet: unique-composite-with-nulls
CREATE TABLE t (a INTEGER, b INTEGER, UNIQUE (a, b));
INSERT INTO t VALUES (1, 1), (1, NULL), (1, NULL), (NULL, 1), (NULL, NULL);
-- error: 23505
INSERT INTO t VALUES (1, 1);
SELECT count(*) FROM t;

-- snippet: unique-on-update
CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
-- error: 23505
UPDATE t SET u = 'a' WHERE id = 2;
UPDATE t SET u = 'c' WHERE id = 1;
INSERT INTO t VALUES (3, 'a');
SELECT id, u FROM t ORDER BY id;

-- snippet: unique-after-delete
CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE);
INSERT INTO t VALUES (1, 'a');
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (2, 'a');
SELECT id, u FROM t;

-- snippet: unique-index
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
CREATE UNIQUE INDEX t_ab ON t (a, b);
INSERT INTO t VALUES (1, 1, 1), (2, 1, 2);
-- error: 23505
INSERT INTO t VALUES (3, 1, 2);
SELECT id FROM t WHERE a = 1 AND b = 2;

-- snippet: unique-index-over-existing-duplicates
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 5), (2, 5);
-- error: 23505
CREATE UNIQUE INDEX t_v ON t (v);
DELETE FROM t WHERE id = 2;
CREATE UNIQUE INDEX t_v ON t (v);
-- error: 23505
INSERT INTO t VALUES (3, 5);

-- snippet: not-null
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL);
-- error: 23502
INSERT INTO t VALUES (1, NULL);
-- error: 23502
INSERT INTO t (id) VALUES (1);
INSERT INTO t VALUES (1, '');
-- error: 23502
UPDATE t SET v = NULL;
SELECT id, v FROM t;

-- snippet: not-null-with-default
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL DEFAULT 3);
INSERT INTO t (id) VALUES (1);
-- error: 23502
INSERT INTO t VALUES (2, NULL);
SELECT id, v FROM t;

-- snippet: check-column
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER CHECK (v > 0));
INSERT INTO t VALUES (1, 5);
-- error: 23514
INSERT INTO t VALUES (2, 0);
INSERT INTO t VALUES (3, NULL);
-- error: 23514
UPDATE t SET v = v - 5 WHERE id = 1;
SELECT id, v FROM t ORDER BY id;

-- snippet: check-table
CREATE TABLE t (low INTEGER, high INTEGER, CONSTRAINT ordered CHECK (low <= high));
INSERT INTO t VALUES (1, 2), (2, 2);
-- error: 23514
INSERT INTO t VALUES (3, 2);
INSERT INTO t VALUES (NULL, 1);
-- error: 23514
UPDATE t SET high = high - 1;
SELECT low, high FROM t ORDER BY low;

-- snippet: check-with-functions
CREATE TABLE t (code TEXT CHECK (length(code) = 2 AND code = upper(code)), kind CHAR(1) CHECK (kind IN ('a', 'b')));
INSERT INTO t VALUES ('AB', 'a');
-- error: 23514
INSERT INTO t VALUES ('ab', 'a');
-- error: 23514
INSERT INTO t VALUES ('AB', 'c');
SELECT code, kind FROM t;

-- snippet: check-violated-by-default
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER DEFAULT -1 CHECK (v >= 0));
-- error: 23514
INSERT INTO t (id) VALUES (1);

-- snippet: references-insert
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parent (id));
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (1, 1), (2, NULL);
-- error: 23503
INSERT INTO child VALUES (3, 9);
-- error: 23503
UPDATE child SET parent_id = 5 WHERE id = 1;
SELECT id, parent_id FROM child ORDER BY id;

-- snippet: references-delete
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parent);
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1);
-- error: 23503
DELETE FROM parent WHERE id = 1;
DELETE FROM parent WHERE id = 2;
DELETE FROM child;
DELETE FROM parent WHERE id = 1;
SELECT count(*) FROM parent;

-- snippet: references-update-parent-key
CREATE TABLE parent (id INTEGER PRIMARY KEY, v TEXT);
CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parent);
INSERT INTO parent VALUES (1, 'a'), (2, 'b');
INSERT INTO child VALUES (1, 1);
-- error: 23503
UPDATE parent SET id = 10 WHERE id = 1;
UPDATE parent SET v = 'c' WHERE id = 1;
UPDATE parent SET id = 20 WHERE id = 2;
SELECT id, v FROM parent ORDER BY id;

-- snippet: references-composite
CREATE TABLE parent (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
CREATE TABLE child (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, FOREIGN KEY (a, b) REFERENCES parent (a, b));
INSERT INTO parent VALUES (1, 1), (1, 2);
INSERT INTO child VALUES (1, 1, 2), (2, 1, NULL), (3, NULL, 9);
-- error: 23503
INSERT INTO child VALUES (4, 2, 1);
-- error: 23503
DELETE FROM parent WHERE a = 1 AND b = 2;
DELETE FROM parent WHERE a = 1 AND b = 1;
SELECT a, b FROM parent;

-- snippet: references-unique-column
CREATE TABLE parent (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
CREATE TABLE child (id INTEGER PRIMARY KEY, code TEXT REFERENCES parent (code));
INSERT INTO parent VALUES (1, 'x');
INSERT INTO child VALUES (1, 'x');
-- error: 23503
INSERT INTO child VALUES (2, 'y');

-- snippet: references-itself
CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES node);
INSERT INTO node VALUES (1, NULL), (2, 1);
-- error: 23503
INSERT INTO node VALUES (3, 9);
INSERT INTO node VALUES (4, 4);
-- error: 23503
DELETE FROM node WHERE id = 1;
SELECT id, parent FROM node ORDER BY id;

-- snippet: references-bad-target
-- error: 42P01
CREATE TABLE child (id INTEGER REFERENCES nowhere);
CREATE TABLE parent (id INTEGER PRIMARY KEY, v INTEGER);
-- error: 42830
CREATE TABLE child (id INTEGER REFERENCES parent (v));
-- error: 42703
CREATE TABLE child (id INTEGER REFERENCES parent (zip));

-- snippet: drop-referenced-table
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (id INTEGER REFERENCES parent);
-- error: 2BP01
DROP TABLE parent;
DROP TABLE child;
DROP TABLE parent;

-- snippet: constraint-order-not-null-before-check
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL CHECK (v > 0));
INSERT INTO t VALUES (1, 1);
-- error: 23502
INSERT INTO t VALUES (1, NULL);
-- error: 23514
INSERT INTO t VALUES (1, 0);
-- error: 23505
INSERT INTO t VALUES (1, 2);

-- snippet: drop-if-exists
DROP TABLE IF EXISTS nowhere;
-- error: 42P01
DROP TABLE nowhere;
CREATE TABLE t (id INTEGER PRIMARY KEY);
DROP TABLE IF EXISTS t;
-- error: 42P01
SELECT * FROM t;

-- snippet: drop-several-and-recreate
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (id INTEGER PRIMARY KEY);
INSERT INTO a VALUES (1);
DROP TABLE a, b;
CREATE TABLE a (name TEXT);
SELECT * FROM a;

-- snippet: create-table-errors
CREATE TABLE t (id INTEGER PRIMARY KEY);
-- error: 42P07
CREATE TABLE t (id INTEGER);
CREATE TABLE IF NOT EXISTS t (other TEXT);
SELECT * FROM t;
-- error: 42701
CREATE TABLE u (a INTEGER, a TEXT);
-- error: 42704
CREATE TABLE u (a NOSUCHTYPE);
-- error: 42703
CREATE TABLE u (a INTEGER, PRIMARY KEY (b));
-- error: 42P16
CREATE TABLE u (a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY);

-- snippet: create-table-bad-defaults-and-lengths
-- error: 42804
CREATE TABLE t (a INTEGER DEFAULT true);
-- error: 22023
CREATE TABLE t (a VARCHAR(0));
-- error: 22023
CREATE TABLE t (a NUMERIC(0));
-- error: 42703
CREATE TABLE t (a INTEGER CHECK (b > 0));
-- error: 42804
CREATE TABLE t (a INTEGER CHECK (a + 1));

-- snippet: index-errors
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE INDEX t_v ON t (v);
-- error: 42P07
CREATE INDEX t_v ON t (v);
-- error: 42703
CREATE INDEX t_z ON t (z);
-- error: 42P01
CREATE INDEX n_z ON nowhere (z);
DROP INDEX t_v;
-- error: 42704
DROP INDEX t_v;
DROP INDEX IF EXISTS t_v;
