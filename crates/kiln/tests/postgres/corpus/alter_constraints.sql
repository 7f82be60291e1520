-- ALTER TABLE: constraints that come and go, and NOT NULL.
-- compare: messages

-- snippet: set-not-null
CREATE TABLE t (a INTEGER, b TEXT, c INTEGER);
INSERT INTO t VALUES (1, 'x', NULL), (2, NULL, 3);
-- error: 23502
ALTER TABLE t ALTER COLUMN b SET NOT NULL;
UPDATE t SET b = 'y' WHERE b IS NULL;
ALTER TABLE t ALTER b SET NOT NULL, ALTER a SET NOT NULL;
-- error: 23502
INSERT INTO t VALUES (3, NULL, 1);
-- error: 23502
UPDATE t SET a = NULL;
SELECT * FROM t ORDER BY a;
ALTER TABLE t ALTER b SET NOT NULL;
ALTER TABLE t ALTER b DROP NOT NULL;
INSERT INTO t VALUES (3, NULL, 1);
SELECT * FROM t ORDER BY a;
ALTER TABLE t ALTER b DROP NOT NULL;
-- error: 42703
ALTER TABLE t ALTER x SET NOT NULL;
-- error: 42703
ALTER TABLE t ALTER x DROP NOT NULL;
SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;

-- snippet: drop-not-null-refused
CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER GENERATED ALWAYS AS IDENTITY, c INTEGER NOT NULL);
-- error: 42P16
ALTER TABLE t ALTER a DROP NOT NULL;
-- error: 42601
ALTER TABLE t ALTER b DROP NOT NULL;
ALTER TABLE t ALTER c DROP NOT NULL;
INSERT INTO t (a) VALUES (1) RETURNING *;

-- snippet: add-check
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 10), (2, NULL), (-3, 30);
-- error: 23514
ALTER TABLE t ADD CHECK (a > 0);
ALTER TABLE t ADD CONSTRAINT larger CHECK (b > a);
ALTER TABLE t ADD CHECK (a <> 7), ADD CHECK (b <> 7), ADD CHECK (a + b <> 7);
-- error: 42710
ALTER TABLE t ADD CONSTRAINT larger CHECK (a < 100);
-- error: 42703
ALTER TABLE t ADD CHECK (x > 0);
-- error: 42804
ALTER TABLE t ADD CHECK (a + 1);
-- error: 23514
INSERT INTO t VALUES (5, 5);
-- error: 23514
INSERT INTO t VALUES (7, 10);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1;
ALTER TABLE t DROP CONSTRAINT larger;
INSERT INTO t VALUES (5, 5);
-- error: 42704
ALTER TABLE t DROP CONSTRAINT larger;
ALTER TABLE t DROP CONSTRAINT IF EXISTS larger;
ALTER TABLE t DROP CONSTRAINT t_a_check RESTRICT, DROP CONSTRAINT t_b_check CASCADE;
INSERT INTO t VALUES (7, 8);

-- snippet: check-not-valid
CREATE TABLE t (a INTEGER);
INSERT INTO t VALUES (-1), (1);
ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0) NOT VALID;
-- error: 23514
INSERT INTO t VALUES (-2);
SELECT convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'positive';
-- error: 23514
ALTER TABLE t VALIDATE CONSTRAINT positive;
SELECT convalidated FROM pg_constraint WHERE conname = 'positive';
DELETE FROM t WHERE a < 0;
ALTER TABLE t VALIDATE CONSTRAINT positive;
ALTER TABLE t VALIDATE CONSTRAINT positive;
SELECT convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'positive';
-- error: 42704
ALTER TABLE t VALIDATE CONSTRAINT none;
ALTER TABLE t ADD UNIQUE (a);
-- error: 42809
ALTER TABLE t VALIDATE CONSTRAINT t_a_key;
-- error: 0A000
ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) NOT VALID;

-- snippet: add-unique
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1), (1, 2), (NULL, 3), (NULL, 3);
-- error: 23505
ALTER TABLE t ADD UNIQUE (a);
-- error: 23505
ALTER TABLE t ADD CONSTRAINT pair UNIQUE (b);
ALTER TABLE t ADD CONSTRAINT pair UNIQUE (a, b);
-- error: 23505
INSERT INTO t VALUES (1, 2);
INSERT INTO t VALUES (NULL, 3);
-- error: 42P07
ALTER TABLE t ADD CONSTRAINT pair UNIQUE (b, a);
-- error: 42703
ALTER TABLE t ADD UNIQUE (x);
-- error: 42701
ALTER TABLE t ADD UNIQUE (a, a);
INSERT INTO t VALUES (1, 2) ON CONFLICT (a, b) DO NOTHING;
ALTER TABLE t DROP CONSTRAINT pair;
INSERT INTO t VALUES (1, 2);
-- error: 42P10
INSERT INTO t VALUES (1, 2) ON CONFLICT (a, b) DO NOTHING;
SELECT * FROM t ORDER BY a, b;

-- snippet: add-primary-key
CREATE TABLE t (a INTEGER, b INTEGER NOT NULL, c INTEGER);
INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (NULL, 3, 3);
-- error: 23502
ALTER TABLE t ADD PRIMARY KEY (a);
-- error: 23505
ALTER TABLE t ADD PRIMARY KEY (b);
DELETE FROM t WHERE a IS NULL;
ALTER TABLE t ADD PRIMARY KEY (a);
-- error: 23505
INSERT INTO t VALUES (1, 1, 1);
-- error: 23502
INSERT INTO t VALUES (NULL, 1, 1);
-- error: 42P16
ALTER TABLE t ADD PRIMARY KEY (c);
INSERT INTO t VALUES (1, 9, 9) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b RETURNING *;
ALTER TABLE t DROP CONSTRAINT t_pkey;
INSERT INTO t VALUES (1, 7, 7);
-- error: 23502
INSERT INTO t VALUES (NULL, 1, 1);
SELECT * FROM t ORDER BY a, b;
ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (a, b);
-- error: 23505
INSERT INTO t VALUES (1, 7, 8);
ALTER TABLE t DROP CONSTRAINT pk, ADD CONSTRAINT pk PRIMARY KEY (c);
-- error: 23505
INSERT INTO t VALUES (8, 8, 7);
SELECT conname, contype, conkey FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1;

-- snippet: drop-primary-key-of-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 20) i;
ALTER TABLE t DROP CONSTRAINT t_pkey;
INSERT INTO t VALUES (1, 'again');
SELECT count(*), count(DISTINCT id) FROM t;
DELETE FROM t WHERE v = 'again';
ALTER TABLE t ADD PRIMARY KEY (id);
SELECT v FROM t WHERE id = 17;
UPDATE t SET v = 'new' WHERE id = 3 RETURNING v;

-- snippet: add-foreign-key
CREATE TABLE p (a INTEGER, b INTEGER, PRIMARY KEY (a, b), c INTEGER UNIQUE);
CREATE TABLE t (x INTEGER, y INTEGER, z BIGINT);
INSERT INTO p VALUES (1, 2, 3);
INSERT INTO t VALUES (1, 2, 3), (NULL, 9, NULL), (1, NULL, 3);
ALTER TABLE t ADD FOREIGN KEY (x, y) REFERENCES p;
ALTER TABLE t ADD CONSTRAINT z_of_p FOREIGN KEY (z) REFERENCES p (c);
-- error: 23503
INSERT INTO t VALUES (2, 2, 3);
-- error: 23503
DELETE FROM p;
INSERT INTO p VALUES (5, 6, 7);
INSERT INTO t VALUES (5, 6, 7);
-- error: 42830
ALTER TABLE t ADD FOREIGN KEY (x) REFERENCES p (b);
-- error: 42P01
ALTER TABLE t ADD FOREIGN KEY (x) REFERENCES none;
-- error: 42703
ALTER TABLE t ADD FOREIGN KEY (w) REFERENCES p (c);
-- error: 42710
ALTER TABLE t ADD CONSTRAINT z_of_p FOREIGN KEY (z) REFERENCES p (c);
-- error: 42804
ALTER TABLE t ADD d DATE, ADD FOREIGN KEY (d) REFERENCES p (c);
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1;
ALTER TABLE t DROP CONSTRAINT t_x_y_fkey, DROP CONSTRAINT z_of_p;
DELETE FROM p;
-- error: 23503
ALTER TABLE t ADD FOREIGN KEY (z) REFERENCES p (c);
ALTER TABLE t ADD CONSTRAINT later FOREIGN KEY (z) REFERENCES p (c) NOT VALID;
-- error: 23503
INSERT INTO t VALUES (1, 1, 4);
-- error: 23503
ALTER TABLE t VALIDATE CONSTRAINT later;
INSERT INTO p VALUES (0, 0, 3), (0, 1, 7);
ALTER TABLE t VALIDATE CONSTRAINT later;
-- error: 23503
DELETE FROM p WHERE c = 7;

-- snippet: foreign-key-to-itself
CREATE TABLE t (id INTEGER PRIMARY KEY, up INTEGER);
INSERT INTO t VALUES (1, NULL), (2, 1), (3, 9);
-- error: 23503
ALTER TABLE t ADD FOREIGN KEY (up) REFERENCES t;
UPDATE t SET up = 2 WHERE id = 3;
ALTER TABLE t ADD FOREIGN KEY (up) REFERENCES t (id);
-- error: 23503
DELETE FROM t WHERE id = 2;
-- error: 2BP01
ALTER TABLE t DROP CONSTRAINT t_pkey;
-- error: 2BP01
ALTER TABLE t DROP COLUMN id;
ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE;
DELETE FROM t WHERE id = 2;
SELECT * FROM t ORDER BY id;

-- snippet: drop-needed-key
CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER UNIQUE);
CREATE TABLE t (id INTEGER REFERENCES p, u INTEGER CONSTRAINT needs REFERENCES p (u));
INSERT INTO p VALUES (1, 1);
INSERT INTO t VALUES (1, 1);
-- error: 2BP01
ALTER TABLE p DROP CONSTRAINT p_pkey;
-- error: 2BP01
ALTER TABLE p DROP CONSTRAINT p_u_key RESTRICT;
ALTER TABLE p DROP CONSTRAINT p_u_key CASCADE;
INSERT INTO t VALUES (1, 2);
-- error: 23503
INSERT INTO t VALUES (2, 2);
SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass;
ALTER TABLE p DROP CONSTRAINT p_pkey CASCADE;
INSERT INTO t VALUES (2, 2);
SELECT count(*) FROM pg_constraint WHERE conrelid IN ('t'::regclass, 'p'::regclass);

-- snippet: drop-table-cascade
CREATE TABLE p (id INTEGER PRIMARY KEY);
CREATE TABLE t (id INTEGER REFERENCES p);
CREATE TABLE u (id INTEGER REFERENCES p, v INTEGER);
INSERT INTO p VALUES (1);
INSERT INTO t VALUES (1);
-- error: 2BP01
DROP TABLE p;
-- error: 2BP01
DROP TABLE p, t;
DROP TABLE p CASCADE;
INSERT INTO t VALUES (7);
INSERT INTO u VALUES (7, 7);
SELECT * FROM t ORDER BY id;
CREATE TABLE p (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (8);
DROP TABLE p, t, u;

-- snippet: drop-index-of-reference
CREATE TABLE p (id INTEGER, v INTEGER);
CREATE UNIQUE INDEX p_id ON p (id);
CREATE TABLE t (id INTEGER REFERENCES p (id));
-- error: 2BP01
DROP INDEX p_id;
DROP INDEX p_id CASCADE;
INSERT INTO t VALUES (1);

-- snippet: pg-dump-style
CREATE TABLE accounts (id integer NOT NULL, owner text, branch integer);
CREATE TABLE branches (id integer NOT NULL, name character varying(20));
CREATE SEQUENCE accounts_id_seq AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
ALTER SEQUENCE accounts_id_seq OWNED BY accounts.id;
ALTER TABLE ONLY accounts ALTER COLUMN id SET DEFAULT nextval('accounts_id_seq'::regclass);
INSERT INTO branches VALUES (1, 'north'), (2, 'south');
INSERT INTO accounts (owner, branch) VALUES ('ann', 1), ('bob', 2);
SELECT pg_catalog.setval('accounts_id_seq', 2, true);
ALTER TABLE ONLY accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY branches ADD CONSTRAINT branches_pkey PRIMARY KEY (id);
CREATE INDEX accounts_branch ON accounts USING btree (branch);
ALTER TABLE ONLY accounts ADD CONSTRAINT accounts_branch_fkey FOREIGN KEY (branch) REFERENCES branches(id);
INSERT INTO accounts (owner, branch) VALUES ('cid', 1) RETURNING id;
-- error: 23503
INSERT INTO accounts (owner, branch) VALUES ('dot', 3);
SELECT owner FROM accounts WHERE id = 2;
