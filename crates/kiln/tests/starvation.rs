//! A call that loses to all other calls gets through all the same: under optimistic protocols a
//! writer of a thousand rows meets a change of one of them in nearly every attempt.

use kiln::{Configuration, Database, Options};
use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::{thread, time};

const SCHEMA: &str = "
    CREATE TABLE stock (item INTEGER PRIMARY KEY, quantity BIGINT NOT NULL);
    CREATE PROCEDURE take(i INTEGER) LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE stock SET quantity = quantity - 1 WHERE item = i;
    END $$;
    CREATE PROCEDURE count_all() LANGUAGE plpgsql AS $$
    DECLARE
        row RECORD;
    BEGIN
        FOR row IN SELECT item, quantity FROM stock ORDER BY item LOOP
            UPDATE stock SET quantity = row.quantity + 1 WHERE item = row.item;
        END LOOP;
    END $$;
";

/// Rows that the large call writes.
const ROWS: i32 = 1_000;

/// Small calls on a few rows at both ends from three threads, and large ones on another thread for
/// less than a second. Returns how many of each committed, and the longest large one in
/// milliseconds.
fn run(protocol: Configuration) -> (u64, u64, u64) {
    let options = Options::new().workers(4).protocol(protocol);
    let database = Database::open(options).expect("a database opens");
    database.execute(SCHEMA).expect("the schema is sound");
    for item in 0..ROWS {
        let insert = format!("INSERT INTO stock VALUES ({item}, 0)");
        database.execute(&insert).expect("a row");
    }
    let (small, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let (mut large, mut longest_ns) = (0, 0);
    thread::scope(|scope| {
        for position in 0..3 {
            let (database, small, done) = (&database, &small, &done);
            scope.spawn(move || {
                let mut item = position;
                while !done.load(Ordering::Relaxed) {
                    item = (item * 7 + 1) % 5;
                    let row = if position == 0 { item } else { ROWS - 1 - item };
                    let reply = database.call("take", (row,)).expect("it commits");
                    assert!(reply.is_committed());
                    small.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let end = time::now_ns() + 400_000_000;
        while time::now_ns() < end {
            let begun = time::now_ns();
            let reply = database.call("count_all", ()).expect("it commits");
            assert!(reply.is_committed());
            longest_ns = longest_ns.max(time::now_ns() - begun);
            large += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
    let small = small.into_inner();
    let (sum,) = database
        .query("SELECT sum(quantity)::BIGINT FROM stock", ())
        .and_then(|rows| rows.into_one::<(i64,)>())
        .expect("a sum");
    assert_eq!(sum, large as i64 * i64::from(ROWS) - small as i64);
    (small, large, longest_ns / 1_000_000)
}

#[test]
fn a_writer_of_a_thousand_rows_gets_through() {
    for protocol in Configuration::serializable() {
        let (small, large, longest_ms) = run(protocol);
        println!(
            "{protocol}: {small} small calls, {large} large ones, the longest {longest_ms} ms"
        );
        assert!(small > 0 && large > 0, "{protocol}: {small}, {large}");
        assert!(longest_ms < 5_000, "{protocol}: {longest_ms} ms");
    }
}
