//! NOT NULL, CHECK and REFERENCES.

use kiln_storage::error::SqlState;

use super::{check, open};

#[test]
fn the_failing_row_is_shown() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT NOT NULL, n NUMERIC(5, 2) CHECK (n > 0 AND t.s <> 'x'), b BOOLEAN);
         INSERT INTO t VALUES (1, NULL, 1.5, true);
         INSERT INTO t VALUES (1, repeat('é', 40), -1, false);
         INSERT INTO t VALUES (1, 'a', 2, NULL);
         UPDATE t SET s = NULL;
         UPDATE t AS y SET n = -n;
         UPDATE t SET s = 'x' WHERE id = 1;
         UPDATE t SET b = NULL;",
        "CREATE TABLE
         23502: null value in column \"s\" of relation \"t\" violates not-null constraint / Failing row contains (1, null, 1.50, t).
         23514: new row for relation \"t\" violates check constraint \"t_check\" / Failing row contains (1, éééééééééééééééééééééééééééééééé..., -1.00, f).
         INSERT 0 1
         23502: null value in column \"s\" of relation \"t\" violates not-null constraint / Failing row contains (s, n) = (null, 2.00).
         23514: new row for relation \"t\" violates check constraint \"t_check\" / Failing row contains (s, n) = (a, -2.00).
         23514: new row for relation \"t\" violates check constraint \"t_check\" / Failing row contains (id, s, n) = (1, x, 2.00).
         UPDATE 1",
    );
}

#[test]
fn references_hold_from_both_sides() {
    check(
        "CREATE TABLE p (a SMALLINT, b TEXT, PRIMARY KEY (a, b));
         CREATE TABLE c (id BIGINT PRIMARY KEY, x INTEGER, y VARCHAR(5), FOREIGN KEY (x, y) REFERENCES p);
         INSERT INTO p VALUES (1, 'a'), (2, 'b');
         INSERT INTO c VALUES (1, 1, 'a'), (2, NULL, 'zzz');
         INSERT INTO c VALUES (3, 1, 'b');
         UPDATE c SET y = 'q' WHERE id = 1;
         DELETE FROM p;
         UPDATE p SET b = 'x' WHERE a = 1;
         UPDATE p SET b = 'b' WHERE a = 2;
         UPDATE p SET a = 3 WHERE a = 2;
         INSERT INTO c VALUES (1, 9, 'q') ON CONFLICT (id) DO UPDATE SET x = 3, y = 'b';
         INSERT INTO c VALUES (1, 9, 'q') ON CONFLICT (id) DO UPDATE SET x = 9;
         DELETE FROM p WHERE a = 1;
         DROP TABLE p;
         TRUNCATE p;
         TRUNCATE p CASCADE;
         SELECT count(*) FROM c;",
        "CREATE TABLE
         CREATE TABLE
         INSERT 0 2
         INSERT 0 2
         23503: insert or update on table \"c\" violates foreign key constraint \"c_x_y_fkey\" / Key (x, y)=(1, b) is not present in table \"p\".
         23503: insert or update on table \"c\" violates foreign key constraint \"c_x_y_fkey\" / Key (x, y)=(1, q) is not present in table \"p\".
         23503: update or delete on table \"p\" violates foreign key constraint \"c_x_y_fkey\" on table \"c\" / Key (a, b)=(1, a) is still referenced from table \"c\".
         23503: update or delete on table \"p\" violates foreign key constraint \"c_x_y_fkey\" on table \"c\" / Key (a, b)=(1, a) is still referenced from table \"c\".
         UPDATE 1
         UPDATE 1
         INSERT 0 1
         23503: insert or update on table \"c\" violates foreign key constraint \"c_x_y_fkey\" / Key (x, y)=(9, b) is not present in table \"p\".
         DELETE 1
         2BP01: cannot drop table p because other objects depend on it / constraint c_x_y_fkey on table c depends on table p
         0A000: cannot truncate a table referenced in a foreign key constraint / Table \"c\" references \"p\".
         TRUNCATE TABLE
         count
         0",
    );
}

#[test]
fn references_are_looked_at_when_the_statement_has_ended() {
    check(
        "CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER REFERENCES node);
         INSERT INTO node VALUES (2, 3), (3, 1), (1, NULL);
         INSERT INTO node SELECT id + 10, up + 10 FROM node;
         INSERT INTO node VALUES (8, 8);
         INSERT INTO node VALUES (20, 21), (22, 20);
         DELETE FROM node WHERE id IN (1, 2);
         DELETE FROM node WHERE id < 10;
         DELETE FROM node;
         CREATE TABLE leaf (up INTEGER REFERENCES node);
         INSERT INTO node VALUES (2, NULL), (1, NULL);
         INSERT INTO leaf VALUES (1);
         UPDATE node SET id = 3 - id;
         UPDATE node SET id = id - 1;
         UPDATE node SET id = id + 10;
         SELECT id FROM node ORDER BY id;",
        "CREATE TABLE
         INSERT 0 3
         INSERT 0 3
         INSERT 0 1
         23503: insert or update on table \"node\" violates foreign key constraint \"node_up_fkey\" / Key (up)=(21) is not present in table \"node\".
         23503: update or delete on table \"node\" violates foreign key constraint \"node_up_fkey\" on table \"node\" / Key (id)=(1) is still referenced from table \"node\".
         DELETE 4
         DELETE 3
         CREATE TABLE
         INSERT 0 2
         INSERT 0 1
         23505: duplicate key value violates unique constraint \"node_pkey\" / Key (id)=(2) already exists.
         UPDATE 2
         23503: update or delete on table \"node\" violates foreign key constraint \"leaf_up_fkey\" on table \"leaf\" / Key (id)=(1) is still referenced from table \"leaf\".
         id
         0
         1",
    );
}

#[test]
fn a_check_and_a_default_mean_the_same_everywhere() {
    // The variables of the procedure have the names of columns.
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, low INTEGER DEFAULT 2 + 3, CHECK (low < 10));
         CREATE PROCEDURE put(low INTEGER) LANGUAGE plpgsql AS $$
         BEGIN
           INSERT INTO t (id) VALUES (put.low);
           INSERT INTO t VALUES (put.low + 1, put.low);
         END $$;
         CALL put(9);
         CALL put(20);
         SELECT * FROM t ORDER BY id;",
        "CREATE TABLE
         CREATE PROCEDURE
         CALL
         23514: new row for relation \"t\" violates check constraint \"t_low_check\" / Failing row contains (21, 20).
         id,low
         9,5
         10,9",
    );
}

#[test]
fn rows_from_rust_are_checked_too() {
    let database = open();
    database
        .execute(
            "CREATE TABLE p (id INTEGER PRIMARY KEY);
             CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p, v INTEGER CHECK (v > 0));
             INSERT INTO p VALUES (1), (2);",
        )
        .expect("the schema is good");
    let state = |result: kiln_storage::error::Result<()>| result.map_err(|error| error.state());
    let insert =
        |id: i32, p: i32, v: i32| state(database.transaction(|tx| tx.insert("c", (id, p, v))));
    assert_eq!(insert(1, 1, 5), Ok(()));
    assert_eq!(insert(2, 9, 5), Err(SqlState::FOREIGN_KEY_VIOLATION));
    assert_eq!(insert(2, 1, 0), Err(SqlState::CHECK_VIOLATION));
    assert_eq!(insert(1, 1, 5), Err(SqlState::UNIQUE_VIOLATION));
    let update = |column: &str, value: i32| {
        state(database.transaction(|tx| {
            assert!(tx.update("c", (1,), &[(column, value.into())])?);
            Ok(())
        }))
    };
    assert_eq!(update("v", -1), Err(SqlState::CHECK_VIOLATION));
    assert_eq!(update("p", 7), Err(SqlState::FOREIGN_KEY_VIOLATION));
    assert_eq!(update("p", 2), Ok(()));
    let delete = |id: i32| state(database.transaction(|tx| tx.delete("p", (id,)).map(|_| ())));
    assert_eq!(delete(2), Err(SqlState::FOREIGN_KEY_VIOLATION));
    assert_eq!(delete(1), Ok(()));
    let absent = database.transaction(|tx| tx.insert_if_absent("c", (1, 2, 3)));
    assert_eq!(absent, Ok(false));
    let rows = database
        .query("SELECT id, p, v FROM c", ())
        .and_then(|rows| rows.into_rows());
    assert_eq!(rows, Ok(vec![(1, 2, 5)]));
}

#[test]
fn actions_show_the_constraint_that_failed() {
    check(
        "CREATE TABLE a (id INTEGER PRIMARY KEY);
         CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a ON DELETE SET NULL ON UPDATE CASCADE CHECK (a < 9));
         CREATE TABLE c (id INTEGER PRIMARY KEY, a INTEGER REFERENCES a ON DELETE CASCADE);
         CREATE TABLE d (id INTEGER PRIMARY KEY, c INTEGER REFERENCES c);
         INSERT INTO a VALUES (1), (2);
         INSERT INTO b VALUES (1, 1);
         INSERT INTO c VALUES (1, 2);
         INSERT INTO d VALUES (7, 1);
         DELETE FROM a WHERE id = 1;
         UPDATE a SET id = 10 WHERE id = 1;
         DELETE FROM a WHERE id = 2;
         SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM c);",
        "CREATE TABLE
         CREATE TABLE
         CREATE TABLE
         CREATE TABLE
         INSERT 0 2
         INSERT 0 1
         INSERT 0 1
         INSERT 0 1
         23502: null value in column \"a\" of relation \"b\" violates not-null constraint / Failing row contains (a) = (null).
         23514: new row for relation \"b\" violates check constraint \"b_a_check\" / Failing row contains (a) = (10).
         23503: update or delete on table \"c\" violates foreign key constraint \"d_c_fkey\" on table \"d\" / Key (id)=(1) is still referenced from table \"d\".
         count,count,count
         2,1,1",
    );
}
