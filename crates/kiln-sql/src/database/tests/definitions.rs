//! CREATE and DROP.

use super::check;

#[test]
fn names_and_errors_are_those_of_postgresql() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b TEXT, UNIQUE (a, b), CHECK (a > 0), CHECK (a < 9), CHECK (a < length(b)));
         INSERT INTO t VALUES (1, 9, 'x');
         INSERT INTO t VALUES (1, 0, 'x');
         INSERT INTO t VALUES (1, 3, 'x');
         INSERT INTO t VALUES (1, 3, 'xxxx'), (2, 3, 'xxxx');
         CREATE INDEX ON t (b, a);
         CREATE INDEX ON t (b, a);
         CREATE INDEX t_b_a_idx ON t (b);
         CREATE INDEX IF NOT EXISTS t_b_a_idx ON t (b);
         DROP INDEX t_b_a_idx, t_b_a_idx1;
         DROP INDEX t_a_key;
         DROP INDEX t_pkey;
         DROP INDEX t;
         DROP TABLE t_pkey;
         CREATE TABLE t_pkey (a INTEGER);
         CREATE TABLE IF NOT EXISTS t (a INTEGER);
         CREATE TABLE u (a INTEGER NULL NOT NULL);
         CREATE TABLE u (a INTEGER DEFAULT b);
         CREATE TABLE u (a INTEGER, CONSTRAINT c CHECK (a > 0), CONSTRAINT c CHECK (a < 0));
         CREATE TABLE u (a REGCLASS[]);
         CREATE TABLE u (a NUMERIC(1001, 2));
         CREATE TABLE u (a SERIAL NULL);
         CREATE TABLE u (a INTEGER REFERENCES t MATCH PARTIAL);
         CREATE TABLE u (a TEXT REFERENCES t);
         CREATE TABLE u (a INTEGER, b INTEGER, FOREIGN KEY (a, b) REFERENCES t);
         CREATE TABLE u (a INTEGER, FOREIGN KEY (z) REFERENCES t);
         CREATE TABLE u (a INTEGER PRIMARY KEY, b TEXT) PARTITION BY HASH (a);
         CREATE TABLE v (a INTEGER) PARTITION BY HASH (z);
         CREATE INDEX ON u (lower(b));
         CREATE INDEX ON u (b) WHERE a > 1;
         CREATE INDEX ON u (b) INCLUDE (a);
         CREATE INDEX ON u (b) INCLUDE (z);
         CREATE INDEX ON u (b, a, b);
         CREATE INDEX ON u USING hash (b);
         CREATE INDEX ON u USING nosuch (b);
         ALTER TABLE u ADD COLUMN c INTEGER;
         DROP TABLE IF EXISTS x, u, y;",
        "CREATE TABLE
         23514: new row for relation \"t\" violates check constraint \"t_a_check1\" / Failing row contains (1, 9, x).
         23514: new row for relation \"t\" violates check constraint \"t_a_check\" / Failing row contains (1, 0, x).
         23514: new row for relation \"t\" violates check constraint \"t_check\" / Failing row contains (1, 3, x).
         23505: duplicate key value violates unique constraint \"t_a_key\" / Key (a)=(3) already exists.
         CREATE INDEX
         CREATE INDEX
         42P07: relation \"t_b_a_idx\" already exists
         NOTICE:  relation \"t_b_a_idx\" already exists, skipping
         CREATE INDEX
         DROP INDEX
         2BP01: cannot drop index t_a_key because constraint t_a_key on table t requires it / The index belongs to constraint t_a_key.
         2BP01: cannot drop index t_pkey because constraint t_pkey on table t requires it / The index belongs to constraint t_pkey.
         42809: \"t\" is not an index
         42809: \"t_pkey\" is not a table
         42P07: relation \"t_pkey\" already exists
         NOTICE:  relation \"t\" already exists, skipping
         CREATE TABLE
         42601: conflicting NULL/NOT NULL declarations for column \"a\" of table \"u\"
         0A000: a column reference in DEFAULT is not supported
         42710: constraint \"c\" for relation \"u\" already exists
         0A000: a column of type regclass[] is not supported
         22023: NUMERIC precision 1001 must be between 1 and 1000
         42601: conflicting NULL/NOT NULL declarations for column \"a\" of table \"u\"
         0A000: MATCH PARTIAL is not supported
         42804: foreign key constraint \"u_a_fkey\" cannot be implemented / Key columns \"a\" and \"id\" are of incompatible types: text and integer.
         42830: number of referencing and referenced columns for foreign key disagree
         42703: column \"z\" referenced in foreign key constraint does not exist
         CREATE TABLE
         42703: column \"z\" named in partition key does not exist
         CREATE INDEX
         CREATE INDEX
         CREATE INDEX
         42703: column \"z\" does not exist
         0A000: a column twice in an index is not supported
         CREATE INDEX
         42704: access method \"nosuch\" does not exist
         ALTER TABLE
         NOTICE:  table \"x\" does not exist, skipping
         NOTICE:  table \"y\" does not exist, skipping
         DROP TABLE",
    );
}

#[test]
fn rows_stay_in_their_partitions() {
    check(
        "CREATE TABLE t (a INTEGER, b SMALLINT, c TEXT, PRIMARY KEY (a, b));
         ALTER TABLE t PARTITION BY HASH (b);
         INSERT INTO t VALUES (1, 2, 'x');
         UPDATE t SET b = 3 WHERE a = 1;
         UPDATE t SET c = 'y' WHERE a = 1;
         INSERT INTO t VALUES (1, 2, 'z') ON CONFLICT (a, b) DO UPDATE SET (c, b) = ('u', 5);
         CREATE UNIQUE INDEX ON t (a, c);
         CREATE UNIQUE INDEX ON t (b, c);
         CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET a = 4; END $$;
         CALL p();
         ALTER TABLE t PARTITION BY HASH (a);
         DROP INDEX t_b_c_idx;
         ALTER TABLE t PARTITION BY HASH (a);
         CALL p();
         ALTER TABLE t SET REPLICATED;
         CALL p();
         SELECT * FROM t;
         ALTER TABLE t PARTITION BY HASH (c);
         ALTER TABLE t PARTITION BY HASH (z);
         ALTER TABLE t PARTITION BY a;
         ALTER TABLE u SET REPLICATED;
         ALTER TABLE t SET REPLICATED now;
         CREATE TABLE v (a INTEGER PRIMARY KEY, b INTEGER) PARTITION BY HASH (b);
         CREATE TABLE v (a INTEGER, b INTEGER, UNIQUE (a)) PARTITION BY HASH (b);
         CREATE TABLE v (a TEXT) PARTITION BY HASH (a);
         CREATE TABLE v (a INTEGER, b DATE) PARTITION BY HASH (b);",
        "CREATE TABLE
         ALTER TABLE
         INSERT 0 1
         0A000: updating the partition key \"b\" is not supported
         UPDATE 1
         0A000: updating the partition key \"b\" is not supported
         0A000: unique constraint on partitioned table must include all partitioning columns / UNIQUE constraint on table \"t\" lacks column \"b\" which is part of the partition key.
         CREATE INDEX
         CREATE PROCEDURE
         CALL
         0A000: unique constraint on partitioned table must include all partitioning columns / UNIQUE constraint on table \"t\" lacks column \"a\" which is part of the partition key.
         DROP INDEX
         ALTER TABLE
         0A000: updating the partition key \"a\" is not supported
         ALTER TABLE
         CALL
         a,b,c
         4,2,y
         0A000: unique constraint on partitioned table must include all partitioning columns / PRIMARY KEY constraint on table \"t\" lacks column \"c\" which is part of the partition key.
         42703: column \"z\" named in partition key does not exist
         0A000: PARTITION BY anything but HASH of one column is not supported
         42P01: relation \"u\" does not exist
         42601: syntax error at or near \"now\"
         0A000: unique constraint on partitioned table must include all partitioning columns / PRIMARY KEY constraint on table \"v\" lacks column \"b\" which is part of the partition key.
         0A000: unique constraint on partitioned table must include all partitioning columns / UNIQUE constraint on table \"v\" lacks column \"b\" which is part of the partition key.
         0A000: a partition key of type text is not supported
         CREATE TABLE",
    );
}

#[test]
fn routines_follow_their_tables() {
    check(
        "CREATE FUNCTION f() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(v) FROM t); END $$;
         SELECT f();
         CREATE TABLE t (v INTEGER);
         INSERT INTO t VALUES (3), (4);
         SELECT f();
         CREATE INDEX ON t (v);
         SELECT f();
         DROP TABLE t;
         SELECT f();
         CREATE TABLE t (v NUMERIC);
         INSERT INTO t VALUES (8.6);
         SELECT f();
         TRUNCATE t;
         SELECT f() IS NULL AS gone;",
        "CREATE FUNCTION
         42P01: relation \"t\" does not exist
         CREATE TABLE
         INSERT 0 2
         f
         4
         CREATE INDEX
         f
         4
         DROP TABLE
         42P01: relation \"t\" does not exist
         CREATE TABLE
         INSERT 0 1
         f
         9
         TRUNCATE TABLE
         gone
         t",
    );
}

#[test]
fn callers_follow_the_routines_that_they_call() {
    check(
        "CREATE FUNCTION one() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
         CREATE FUNCTION two() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN one() + 1; END $$;
         SELECT two();
         CREATE OR REPLACE FUNCTION one() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN 10; END $$;
         SELECT two();
         CREATE OR REPLACE FUNCTION one() RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 10; END $$;
         CREATE OR REPLACE PROCEDURE one() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
         CREATE FUNCTION one(x INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
         DROP PROCEDURE one;
         DROP FUNCTION one(INTEGER);
         DROP FUNCTION one();
         SELECT two();
         DROP FUNCTION IF EXISTS one, two;",
        "CREATE FUNCTION
         CREATE FUNCTION
         two
         2
         CREATE FUNCTION
         two
         11
         42P13: cannot change return type of existing function
         42809: cannot change routine kind / \"one\" is a function.
         0A000: a second function called one, for other argument types, is not supported
         42809: one() is not a procedure
         42883: function one(integer) does not exist
         DROP FUNCTION
         42883: function one() does not exist
         NOTICE:  function one() does not exist, skipping
         DROP FUNCTION",
    );
}
