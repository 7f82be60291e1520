//! What a database counts: each transaction once, under the protocol that ran it, whatever becomes
//! of its worker.

#![cfg(not(kiln_sim))]

use kiln_sql::{Configuration, Database, Metrics, Options, Protocol};

fn of(metrics: &Metrics, protocol: Protocol) -> (u64, u64) {
    let mut known = metrics.by_protocol.iter();
    let wanted = Configuration::from(protocol);
    let found = known.find(|(configuration, _)| *configuration == wanted);
    found.map_or((0, 0), |(_, counted)| (counted.committed, counted.rejected))
}

#[test]
fn each_transaction_counts_once_under_its_protocol() {
    let options = Options::new().workers(2).pin_workers(false);
    let database = Database::open(options.protocol(Protocol::Silo)).expect("there is memory");
    database
        .execute(
            "CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER CHECK (stock >= 0)); INSERT INTO item VALUES (1, 5);
             CREATE PROCEDURE take(n INTEGER) LANGUAGE plpgsql AS $$ BEGIN UPDATE item SET stock = stock - n WHERE id = 1; END $$",
        )
        .expect("it runs");
    let before = database.metrics();
    let (committed, rejected) = of(&before, Protocol::Silo);
    assert!(database.call("take", (1,)).expect("it runs").is_committed());
    assert!(!database.call("take", (9,)).expect("it runs").is_committed());
    let mut session = database.session().expect("there is room");
    session
        .execute("BEGIN; UPDATE item SET stock = stock - 1; COMMIT")
        .expect("it runs");
    session
        .execute("BEGIN; UPDATE item SET stock = 0; ROLLBACK")
        .expect("it runs");
    drop(session);
    let under_silo = database.metrics();
    assert_eq!(
        of(&under_silo, Protocol::Silo),
        (committed + 2, rejected + 1)
    );
    assert_eq!(
        under_silo.counted().rejected_by_class,
        [("23", rejected + 1)]
    );
    // Workers and the worker slots of sessions are made anew; what the former ones have counted
    // stays.
    database
        .engine()
        .set_protocol(Protocol::TicToc)
        .expect("nothing runs");
    for _ in 0..3 {
        assert!(database.call("take", (1,)).expect("it runs").is_committed());
    }
    let after = database.metrics();
    assert_eq!(after.protocol, Configuration::from(Protocol::TicToc));
    assert_eq!(of(&after, Protocol::Silo), (committed + 2, rejected + 1));
    assert_eq!(of(&after, Protocol::TicToc), (3, 0));
    assert_eq!(after.calls, [("take".to_owned(), 4)]);
    let table = &after.tables[0];
    assert_eq!((table.table.as_str(), table.records), ("item", 1));
    // The ordered one of the primary key, and a hash index beside it, as keys are looked up whole.
    assert!(table.indexes == 2 && table.index_bytes > 0, "{table:?}");
    assert!(after.log.is_none() && after.checkpoints.is_none() && after.read_only.is_none());
}

#[test]
fn the_block_that_is_open_for_longest_is_known_while_it_is() {
    let database = Database::open(Options::new().workers(1)).expect("there is memory");
    database
        .execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
        .expect("it runs");
    let oldest = || database.metrics().oldest_block.map(|block| block.session);
    assert_eq!(oldest(), None);
    let mut first = database.session().expect("there is room");
    let mut second = database.session().expect("there is room");
    first.execute("BEGIN").expect("it runs");
    second
        .execute("BEGIN; INSERT INTO item VALUES (2)")
        .expect("it runs");
    assert_eq!(oldest(), Some(first.number()));
    first.execute("COMMIT").expect("it runs");
    assert_eq!(oldest(), Some(second.number()));
    // A block that has failed holds nothing.
    second.execute("SELECT 1 / 0").expect_err("it raises");
    assert_eq!(oldest(), None);
    second
        .execute("ROLLBACK; BEGIN; INSERT INTO item VALUES (3)")
        .expect("it runs");
    assert_eq!(oldest(), Some(second.number()));
    drop(second);
    assert_eq!(oldest(), None);
}
