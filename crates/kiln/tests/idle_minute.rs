//! A transaction block that idles for a minute beside calls: their latencies, and the memory that
//! waits for it.

use kiln::{Database, Options, Protocol};
use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::{thread, time};

const SCHEMA: &str = "
    CREATE TABLE used (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
    CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
    INSERT INTO used VALUES (1, 10);
    INSERT INTO note VALUES (1, ''), (2, '');
    CREATE PROCEDURE write(which INTEGER, number INTEGER) LANGUAGE plpgsql AS $$
    BEGIN UPDATE note SET body = repeat('x', 100) || number WHERE id = which; END $$;";

/// Bytes that a call retires at most: a text, and a version where there are versions.
const RETIRED_BY_CALL: usize = 1_024;
const BEFORE_NS: u64 = 10_000_000_000;
const BESIDE_NS: u64 = 60_000_000_000;

/// Latencies in nanoseconds, in ascending order.
fn latencies(database: &Database, duration_ns: u64) -> Vec<u64> {
    let done = AtomicBool::new(false);
    let mut all = thread::scope(|scope| {
        let call = |which: i32| {
            let (mut latencies, mut number) = (Vec::new(), 0);
            while !done.load(Ordering::Relaxed) {
                number += 1;
                let begin = time::now_ns();
                let reply = database.call("write", (which, number)).expect("it runs");
                assert!(reply.is_committed());
                latencies.push(time::now_ns() - begin);
            }
            latencies
        };
        let callers = [1, 2].map(|which| scope.spawn(move || call(which)));
        thread::sleep(duration_ns);
        done.store(true, Ordering::Relaxed);
        callers
            .map(|caller| caller.join().expect("no panic"))
            .concat()
    });
    all.sort_unstable();
    all
}

#[test]
#[ignore = "takes six minutes: run it with --ignored after changes to epochs, the gate or blocks"]
fn a_block_that_idles_for_a_minute_costs_others_nothing() {
    for protocol in [
        Protocol::Silo,
        Protocol::Mvcc,
        Protocol::TwoPhaseLockingNoWait,
        Protocol::Vll,
        Protocol::Orthrus,
    ] {
        let options = Options::new().workers(2).idle_in_transaction_ms(0);
        let database = Database::open(options.protocol(protocol)).expect("it opens");
        database.execute(SCHEMA).expect("it is sound");
        let before = latencies(&database, BEFORE_NS);
        let mut session = database.session().expect("there is room");
        session
            .execute("BEGIN; UPDATE used SET value = 11 WHERE id = 1")
            .expect("no transaction is in the way");
        let beside = latencies(&database, BESIDE_NS);
        let retired = database.engine().retired_memory();
        let at = |latencies: &[u64], share: f64| {
            latencies[((latencies.len() - 1) as f64 * share) as usize] as f64 / 1e3
        };
        for (name, these, duration_ns) in [
            ("before", &before, BEFORE_NS),
            ("beside", &beside, BESIDE_NS),
        ] {
            println!(
                "{protocol}, {name} the block: {:.0} calls/s, p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us",
                these.len() as f64 * 1e9 / duration_ns as f64,
                at(these, 0.5),
                at(these, 0.99),
                at(these, 0.999)
            );
        }
        println!("{protocol}: {retired:?}");
        assert!(
            at(&beside, 0.99) < 2.0 * at(&before, 0.99),
            "{protocol}: p99"
        );
        assert!(
            retired.bytes < beside.len() * RETIRED_BY_CALL + (1 << 20),
            "{protocol}: {} bytes after {} calls",
            retired.bytes,
            beside.len()
        );
        session
            .execute("COMMIT")
            .expect("no transaction is in the way");
    }
}
