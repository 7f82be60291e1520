-- What constraints and their indexes are called, given or chosen.
-- compare: messages

-- snippet: constraint-primary-key-by-its-own-name
CREATE TABLE t (id INTEGER CONSTRAINT t_first PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1);
-- error: 23505
INSERT INTO t VALUES (1, 2);
CREATE TABLE u (a INTEGER, b INTEGER, CONSTRAINT "U both" PRIMARY KEY (a, b), CONSTRAINT u_b UNIQUE (b));
INSERT INTO u VALUES (1, 1);
-- error: 23505
INSERT INTO u VALUES (1, 1);
INSERT INTO u VALUES (1, 1) ON CONFLICT ON CONSTRAINT "U both" DO UPDATE SET b = 7;
SELECT * FROM u;
-- error: 42704
INSERT INTO u VALUES (1, 1) ON CONFLICT ON CONSTRAINT u_pkey DO NOTHING;
-- error: 42P07
CREATE TABLE w (id INTEGER CONSTRAINT t_first PRIMARY KEY);
-- error: 42P07
CREATE TABLE w (id INTEGER CONSTRAINT w PRIMARY KEY);
-- error: 42P07
CREATE TABLE w (id INTEGER CONSTRAINT k PRIMARY KEY, v INTEGER CONSTRAINT k UNIQUE);
-- error: 42710
CREATE TABLE w (id INTEGER CONSTRAINT k PRIMARY KEY, v INTEGER, CONSTRAINT k CHECK (v > 0));
-- error: 42P07
CREATE INDEX t_first ON t (v);

-- snippet: constraint-primary-key-with-a-chosen-name
CREATE TABLE t_pkey (id INTEGER);
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1);
-- error: 23505
INSERT INTO t VALUES (1);
CREATE TABLE a_table_with_a_name_that_is_so_long_that_its_key_must_be_cut (id INTEGER PRIMARY KEY);
INSERT INTO a_table_with_a_name_that_is_so_long_that_its_key_must_be_cut VALUES (1);
-- error: 23505
INSERT INTO a_table_with_a_name_that_is_so_long_that_its_key_must_be_cut VALUES (1);
