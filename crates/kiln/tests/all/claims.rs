//! Claims by column group (`--claims columns`): who reads what no procedure writes does not wait
//! for those who write the rest, and waits for all others.

use kiln::{Database, Options, Session, SqlState};
use kiln_engine::BasisFactors;
use kiln_engine::factors::Claims;

const SHOP: &str = "
    CREATE TABLE shop (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL);
    INSERT INTO shop VALUES (1, 10, 100), (2, 20, 200);
    CREATE PROCEDURE look(which INTEGER, OUT found INTEGER) LANGUAGE plpgsql AS $$
    BEGIN SELECT a INTO found FROM shop WHERE id = which; END $$;
    CREATE PROCEDURE look_at_b(which INTEGER, OUT found INTEGER) LANGUAGE plpgsql AS $$
    BEGIN SELECT b INTO found FROM shop WHERE id = which; END $$;
    CREATE PROCEDURE sell(which INTEGER) LANGUAGE plpgsql AS $$
    BEGIN UPDATE shop SET b = b + 1 WHERE id = which; END $$;";

const PROTOCOLS: [&str; 12] = [
    "lock-sorted",
    "lock-sorted+table",
    "lock-atomic",
    "lock-atomic+table",
    "pre-no-wait",
    "pre-no-wait+table",
    "vll",
    "vll-sca",
    "vll-arrayed",
    "vll-single",
    "orthrus",
    "orthrus-shared",
];

fn options(protocol: &str, claims: Claims) -> Options {
    let mut factors = BasisFactors::default();
    factors.protocols.claims = claims;
    Options::new()
        .workers(2)
        .pin_workers(false)
        .ddl_wait_ms(50)
        .basis_factors(factors)
        .protocol(protocol.parse::<kiln::Configuration>().expect("a protocol"))
}

fn open(protocol: &str, claims: Claims) -> Database {
    let database = Database::open(options(protocol, claims)).expect("a database opens");
    database.execute(SHOP).expect("the script is good");
    database
}

/// A session whose open block has run a statement.
fn block(database: &Database, statement: &str) -> Session {
    let mut block = database.session().expect("a session is free");
    let run = block.execute(&format!("BEGIN; {statement}"));
    run.expect("no other transaction has the row");
    block
}

/// Whether a call ends while the blocks of others stay open.
fn ends(database: &Database, call: &str) -> bool {
    let mut session = database.session().expect("a session is free");
    let run = session.execute(&format!("SET statement_timeout = '100ms'; CALL {call}"));
    match run {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.state(), SqlState::QUERY_CANCELED, "{error}");
            false
        }
    }
}

#[test]
fn readers_of_unwritten_columns_wait_for_those_alone_who_write_them() {
    for protocol in PROTOCOLS {
        for (claims, by_group) in [(Claims::Record, false), (Claims::Columns, true)] {
            let database = open(protocol, claims);
            let case = format!("{protocol} {claims:?}");
            for (statement, look, look_at_b) in [
                ("UPDATE shop SET b = b + 1 WHERE id = 1", by_group, false),
                ("UPDATE shop SET a = a + 1 WHERE id = 1", false, false),
                ("UPDATE shop SET id = 3 WHERE id = 1", false, false),
                ("DELETE FROM shop WHERE id = 1", false, false),
                ("SELECT a FROM shop WHERE id = 1", true, true),
                ("SELECT b FROM shop WHERE id = 1", true, true),
            ] {
                let mut block = block(&database, statement);
                let case = format!("{case}: {statement}");
                assert_eq!(ends(&database, "look(1, NULL)"), look, "{case}");
                assert_eq!(ends(&database, "look_at_b(1, NULL)"), look_at_b, "{case}");
                assert!(ends(&database, "look(2, NULL)"), "{case}");
                block.execute("ROLLBACK").expect("it is open");
            }
            // What a transaction reads first decides for it alone.
            let mut mixed = block(&database, "SELECT a FROM shop WHERE id = 1");
            let sum = mixed.query("SELECT a + b FROM shop WHERE id = 1", ());
            let sum = sum.expect("no other transaction is open");
            assert_eq!(sum.into_one::<(i32,)>(), Ok((110,)), "{case}");
            assert!(!ends(&database, "sell(1)"), "{case}");
            mixed
                .execute("UPDATE shop SET a = 11 WHERE id = 1; COMMIT")
                .expect(&case);
            let read = database.query("SELECT a, b FROM shop WHERE id = 1", ());
            let read = read.expect("no other transaction is open");
            assert_eq!(read.into_one::<(i32, i32)>(), Ok((11, 100)), "{case}");
        }
    }
}

/// A new procedure writes what none has written: from its definition on those who read that are in
/// its way, and the definition waits for transactions that have read it.
#[test]
fn a_procedure_that_writes_more_changes_the_groups() {
    for protocol in PROTOCOLS {
        let database = open(protocol, Claims::Columns);
        let unwritten = || {
            let table = database.engine().table("shop").expect("it is there");
            let columns = table.unwritten();
            columns.iter().map(|column| column.0).collect::<Vec<_>>()
        };
        assert_eq!(unwritten(), [0, 1], "{protocol}");
        let define = "CREATE PROCEDURE price(which INTEGER) LANGUAGE plpgsql AS $$
            BEGIN UPDATE shop SET a = a + 1 WHERE id = which; END $$";
        let mut reader = block(&database, "SELECT a FROM shop WHERE id = 1");
        let refused = database.execute(define).expect_err(protocol);
        assert_eq!(refused.state(), SqlState::LOCK_NOT_AVAILABLE, "{protocol}");
        assert_eq!(unwritten(), [0, 1], "{protocol}");
        reader.execute("COMMIT").expect("it is open");
        database.execute(define).expect("no block uses the table");
        // No procedure looks at the key alone.
        assert_eq!(unwritten(), [0; 0], "{protocol}");
        let mut reader = block(&database, "SELECT a FROM shop WHERE id = 1");
        assert!(!ends(&database, "price(1)"), "{protocol}");
        reader.execute("COMMIT").expect("it is open");
        assert!(ends(&database, "price(1)"), "{protocol}");
        database
            .execute("DROP PROCEDURE price")
            .expect("it is there");
        assert_eq!(unwritten(), [0, 1], "{protocol}");
    }
}

#[test]
fn a_database_that_is_rebuilt_has_the_same_groups() {
    let database = open("lock-sorted", Claims::Columns);
    let written = database.engine().written_catalog().expect("it is there");
    for (claims, expected) in [(Claims::Record, 0), (Claims::Columns, 2)] {
        let rebuilt = Database::rebuild(options("lock-sorted", claims), &written);
        let rebuilt = rebuilt.expect("the catalog is sound");
        let table = rebuilt.engine().table("shop").expect("it is there");
        assert_eq!(table.unwritten().len(), expected);
    }
}

/// Where procedures insert or delete rows, or write nothing, a second lock would serve no reader.
#[test]
fn tables_whose_rows_come_and_go_have_one_lock() {
    let database = open("lock-sorted", Claims::Columns);
    let unwritten = |table: &str| {
        database
            .engine()
            .table(table)
            .expect("it")
            .unwritten()
            .len()
    };
    assert_eq!(unwritten("shop"), 2);
    let run = |text: &str| database.execute(text).expect("the script is good");
    run("CREATE TABLE still (id INTEGER PRIMARY KEY, a INTEGER);
         CREATE PROCEDURE look_still(OUT found INTEGER) LANGUAGE plpgsql AS $$
         BEGIN SELECT a INTO found FROM still WHERE id = 1; END $$;");
    assert_eq!(unwritten("still"), 0);
    for body in [
        "DELETE FROM shop WHERE id = 9",
        "INSERT INTO shop VALUES (9, 9, 9)",
    ] {
        run(&format!(
            "CREATE PROCEDURE moves() LANGUAGE plpgsql AS $$ BEGIN {body}; END $$"
        ));
        assert_eq!(unwritten("shop"), 0, "{body}");
        run("DROP PROCEDURE moves");
        assert_eq!(unwritten("shop"), 2);
    }
}
