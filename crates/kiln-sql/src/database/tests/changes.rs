//! INSERT, UPDATE, DELETE.

use super::check;

#[test]
fn an_update_of_the_scanned_index_meets_no_row_twice() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
         CREATE INDEX t_v ON t (v);
         INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
         UPDATE t SET v = v + 10 WHERE v > 0;
         UPDATE t SET id = id + 100 WHERE id > 0;
         SELECT * FROM t ORDER BY id;",
        "CREATE TABLE
         CREATE INDEX
         INSERT 0 3
         UPDATE 3
         UPDATE 3
         id,v
         101,11
         102,12
         103,13",
    );
}

#[test]
fn new_values_come_from_the_state_before_the_statement() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
         INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
         UPDATE t SET v = (SELECT sum(v) FROM t) RETURNING id, v;
         DELETE FROM t WHERE id <> (SELECT min(id) FROM t);
         INSERT INTO t SELECT id + (SELECT count(*) FROM t), v FROM t;
         INSERT INTO t VALUES (10, (SELECT count(*) FROM t)), (11, (SELECT count(*) FROM t));
         SELECT * FROM t ORDER BY id;",
        "CREATE TABLE
         INSERT 0 3
         id,v
         1,6
         2,6
         3,6
         DELETE 2
         INSERT 0 1
         INSERT 0 2
         id,v
         1,6
         2,6
         10,2
         11,2",
    );
}

#[test]
fn an_update_joins_and_a_delete_uses_other_tables() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
         CREATE TABLE s (id INTEGER PRIMARY KEY, w INTEGER);
         INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
         INSERT INTO s VALUES (1, 10), (3, 30);
         UPDATE t AS x SET v = x.v + s.w FROM s WHERE s.id = x.id RETURNING x.id, v, w;
         DELETE FROM t USING s WHERE s.id = t.id AND w = 10;
         SELECT * FROM t ORDER BY id;",
        "CREATE TABLE
         CREATE TABLE
         INSERT 0 3
         INSERT 0 2
         id,v,w
         1,11,10
         3,33,30
         DELETE 1
         id,v
         2,2
         3,33",
    );
}

#[test]
fn conflicts_are_resolved_row_by_row() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE, v INTEGER DEFAULT 7);
         INSERT INTO t VALUES (1, 'a', DEFAULT), (2, 'b', DEFAULT);
         INSERT INTO t AS x VALUES (1, 'z', 1), (3, 'c', 3), (2, NULL, 5)
             ON CONFLICT (id) DO UPDATE SET v = x.v + excluded.v, u = coalesce(excluded.u, x.u)
             WHERE excluded.v < 5 RETURNING *, x.v * 2 AS twice;
         INSERT INTO t VALUES (4, 'c', 0), (5, 'e', 0) ON CONFLICT ON CONSTRAINT t_u_key DO NOTHING;
         INSERT INTO t VALUES (5, 'f', 0) ON CONFLICT (u) DO NOTHING;
         INSERT INTO t VALUES (6, 'x', 0), (6, 'y', 0) ON CONFLICT (id) DO UPDATE SET v = 1;
         INSERT INTO t VALUES (2, 'q', 0) ON CONFLICT (id) DO UPDATE SET id = 20, u = excluded.u;
         INSERT INTO t VALUES (2, 'q', 0) ON CONFLICT DO UPDATE SET v = 1;
         INSERT INTO t VALUES (1, 'q', 0) ON CONFLICT (id) DO UPDATE SET v = v + 1;
         INSERT INTO t DEFAULT VALUES;
         SELECT * FROM t ORDER BY id;",
        "CREATE TABLE
         INSERT 0 2
         id,u,v,twice
         1,z,8,16
         3,c,3,6
         INSERT 0 1
         23505: duplicate key value violates unique constraint \"t_pkey\" / Key (id)=(5) already exists.
         21000: ON CONFLICT DO UPDATE command cannot affect row a second time
         INSERT 0 1
         42601: ON CONFLICT DO UPDATE requires inference specification or constraint name
         42702: column reference \"v\" is ambiguous
         23502: null value in column \"id\" of relation \"t\" violates not-null constraint / Failing row contains (null, null, 7).
         id,u,v
         1,z,8
         3,c,3
         5,e,0
         20,q,7",
    );
}

#[test]
fn keys_may_be_swapped_within_a_transaction_and_not_within_a_statement() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
         INSERT INTO t VALUES (1, 'a'), (2, 'b');
         UPDATE t SET id = id + 1;
         BEGIN; UPDATE t SET id = 9 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2;
         UPDATE t SET id = 2 WHERE id = 9; COMMIT;
         SELECT * FROM t ORDER BY id;
         CREATE UNIQUE INDEX t_v ON t (v);
         UPDATE t SET v = 'a' WHERE v = 'b';
         UPDATE t SET id = 1, v = 'c' WHERE id = 1 RETURNING *;",
        "CREATE TABLE
         INSERT 0 2
         23505: duplicate key value violates unique constraint \"t_pkey\" / Key (id)=(2) already exists.
         BEGIN
         UPDATE 1
         UPDATE 1
         UPDATE 1
         COMMIT
         id,v
         1,b
         2,a
         CREATE INDEX
         23505: duplicate key value violates unique constraint \"t_v\" / Key (v)=(a) already exists.
         id,v
         1,c",
    );
}

#[test]
fn a_table_without_a_primary_key_keeps_equal_rows() {
    check(
        "CREATE TABLE t (v INTEGER, w TEXT);
         INSERT INTO t VALUES (1, 'a'), (1, 'a'), (NULL, NULL);
         UPDATE t SET w = 'b' WHERE v = 1;
         DELETE FROM t WHERE v IS NULL RETURNING *;
         SELECT * FROM t;",
        "CREATE TABLE
         INSERT 0 3
         UPDATE 2
         v,w
         ,
         v,w
         1,b
         1,b",
    );
}

#[test]
fn what_is_assigned_is_checked() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR(3), n NUMERIC(4, 1), d DATE DEFAULT '2024-01-01');
         INSERT INTO t (id, s) VALUES (1, 'four');
         INSERT INTO t (id, n) VALUES (1, 1234);
         INSERT INTO t VALUES (1, 5, 9.96);
         INSERT INTO t (id, d) VALUES (2, true);
         INSERT INTO t (id, zip) VALUES (2, 1);
         INSERT INTO t (id, id) VALUES (2, 1);
         INSERT INTO t (id) VALUES (2, 1);
         INSERT INTO t (id, s) SELECT 3;
         INSERT INTO t SELECT 3, 'x', 1, now();
         UPDATE t SET t.s = 'a';
         UPDATE t SET (s, n) = ('ab', DEFAULT), d = '2024-02-30';
         UPDATE t SET (s, n) = ('ab', 1, 2);
         UPDATE t SET (s, n) = ('ab', DEFAULT) WHERE id = 1 RETURNING *;
         UPDATE t SET n = 1, n = 2;",
        "CREATE TABLE
         22001: value too long for type character varying(3)
         22003: numeric field overflow / A field with precision 4, scale 1 must round to an absolute value less than 10^3.
         INSERT 0 1
         42804: column \"d\" is of type date but expression is of type boolean
         42703: column \"zip\" of relation \"t\" does not exist
         42701: column \"id\" specified more than once
         42601: INSERT has more expressions than target columns
         42601: INSERT has more target columns than expressions
         INSERT 0 1
         42703: column \"t\" of relation \"t\" does not exist
         22008: date/time field value out of range: \"2024-02-30\"
         42601: number of columns does not match number of values
         id,s,n,d
         1,ab,,2024-01-01
         42601: multiple assignments to same column \"n\"",
    );
}

#[test]
fn what_never_holds_changes_nothing() {
    check(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER);
         INSERT INTO t VALUES (1, 10), (2, 20);
         UPDATE t SET a = a + 1 WHERE false;
         UPDATE t SET b = (SELECT max(b) FROM t) WHERE NULL::BOOLEAN RETURNING a;
         DELETE FROM t WHERE false AND a IN (SELECT b FROM t);
         SELECT * FROM t ORDER BY a;",
        "CREATE TABLE
         INSERT 0 2
         UPDATE 0
         a
         DELETE 0
         a,b
         1,10
         2,20",
    );
}
