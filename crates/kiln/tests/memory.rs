//! Memory comes back at the rate at which it goes: rows that are inserted and deleted, strings that
//! are replaced and versions that are superseded leave no more behind than a few epochs' worth,
//! however long that goes on, and nothing once all are idle.

// Runs on virtual cores bring an allocator of their own.
#![cfg(not(kiln_sim))]

use std::alloc::{GlobalAlloc, Layout, System};

use kiln::{Configuration, Database, Options, Protocol};
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, MutexGuard, lock};
use kiln_platform::{thread, time};

/// The length of all strings that these tests store outside of rows; no other allocation is as long
/// as theirs.
const LENGTH: usize = 1_237;
const BLOB: (usize, usize) = (size_of::<usize>() + LENGTH, align_of::<usize>());

/// Allocations that are not freed yet: strings outside of rows, and all bytes.
static BLOBS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn is_blob(layout: Layout) -> bool {
    (layout.size(), layout.align()) == BLOB
}

// SAFETY: every method hands its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        BLOBS.fetch_add(usize::from(is_blob(layout)), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        BLOBS.fetch_sub(usize::from(is_blob(layout)), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are of the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    lock(&ALONE)
}

const SCHEMA: &str = "
    CREATE TABLE item (id BIGINT PRIMARY KEY, kind BIGINT NOT NULL);
    CREATE INDEX item_kind ON item (kind);
    CREATE TABLE note (id BIGINT PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE tally (id BIGINT PRIMARY KEY, n BIGINT NOT NULL);
    CREATE PROCEDURE churn(base BIGINT) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1..20 LOOP
            INSERT INTO item VALUES (base + i, i);
        END LOOP;
        FOR i IN 1..20 LOOP
            DELETE FROM item WHERE id = base + i;
        END LOOP;
    END $$;
    CREATE PROCEDURE put(base BIGINT) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1..20 LOOP
            INSERT INTO item VALUES (base + i, i);
        END LOOP;
    END $$;
    CREATE PROCEDURE take(base BIGINT) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1..20 LOOP
            DELETE FROM item WHERE id = base + i;
        END LOOP;
    END $$;
    CREATE PROCEDURE rewrite(n BIGINT) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1..20 LOOP
            UPDATE note SET body = rpad(n::TEXT, 1237, 'x') WHERE id = i;
        END LOOP;
    END $$;
    CREATE PROCEDURE count_up() LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE tally SET n = n + 1;
    END $$;
";

/// Rows of `tally`, and of `note`.
const TALLIES: usize = 1_000;
const NOTES: usize = 20;
/// The cells and strings that may wait while calls run: those of some epochs of [`CALLS_PER_EPOCH`]
/// calls, and the versions of two large updates.
const CELLS_WAITING: usize = 3_000;
const BLOBS_WAITING: usize = 3_000;
/// The bytes by which the heap may grow while the sessions run, for tables, versions and lists that
/// have become longer.
const BYTES_GROWN: usize = 4 << 20;
const CALLS_PER_EPOCH: usize = 8;
/// Epochs that the soak takes in each of its forms.
const EPOCHS: usize = 40;

/// All protocols, plain and with all their options.
fn configurations() -> impl Iterator<Item = Configuration> {
    Protocol::ALL.into_iter().flat_map(|protocol| {
        let plain = Configuration::of(protocol);
        let all = protocol.options().iter().fold(plain, |all, option| {
            all.with(*option).expect("it is one of its options")
        });
        std::iter::once(plain).chain((all != plain).then_some(all))
    })
}

fn open(protocol: Configuration) -> Database {
    let options = Options::new()
        .workers(2)
        .pin_workers(false)
        .epoch_ms(1)
        .allow_unserializable(true);
    let database = Database::open(options.protocol(protocol)).expect("a database opens");
    database.execute(SCHEMA).expect("the schema is sound");
    for id in 1..=NOTES {
        let insert = format!("INSERT INTO note VALUES ({id}, rpad('', {LENGTH}, 'x'))");
        database.execute(&insert).expect("a row");
    }
    let rows = format!("INSERT INTO tally SELECT i, 0 FROM generate_series(1, {TALLIES}) AS g(i)");
    if database.execute(&rows).is_err() {
        for id in 1..=TALLIES {
            let insert = format!("INSERT INTO tally VALUES ({id}, 0)");
            database.execute(&insert).expect("a row");
        }
    }
    database
}

/// The cells of these tables that are in use beyond their rows.
fn cells_waiting(database: &Database) -> usize {
    let cells = |table: &str| {
        let table = database.engine().table(table).expect("it is there");
        table.slab().cells_in_use()
    };
    (cells("item") + cells("note") + cells("tally")).saturating_sub(NOTES + TALLIES)
}

/// Waits until the epoch has moved on.
fn next_epoch(database: &Database) {
    let epochs = database.engine().epochs();
    let (now, until) = (epochs.current(), time::now_ns() + 20_000_000_000);
    while epochs.current() == now {
        assert!(time::now_ns() < until, "the epoch stands still");
        thread::sleep(100_000);
    }
}

/// Runs rounds of `round` with their number, a few in each epoch, and checks what waits.
fn soak(database: &Database, what: &str, mut round: impl FnMut(usize)) {
    let mut number = 0;
    for _ in 0..EPOCHS {
        for _ in 0..CALLS_PER_EPOCH {
            round(number);
            number += 1;
        }
        next_epoch(database);
        let protocol = database.engine().protocol();
        let (cells, blobs) = (cells_waiting(database), BLOBS.load(Ordering::Relaxed));
        assert!(
            cells <= CELLS_WAITING && blobs <= NOTES + BLOBS_WAITING,
            "{protocol}, {what}: {cells} cells and {blobs} strings after {number} rounds"
        );
    }
}

/// Waits until nothing waits, which takes some epochs: all are idle.
fn await_reclaimed(database: &Database, what: &str) {
    let until = time::now_ns() + 10_000_000_000;
    loop {
        let (cells, blobs) = (cells_waiting(database), BLOBS.load(Ordering::Relaxed));
        if (cells, blobs) == (0, NOTES) {
            return;
        }
        let protocol = database.engine().protocol();
        assert!(
            time::now_ns() < until,
            "{protocol}, {what}: {cells} cells and {blobs} strings stay"
        );
        thread::sleep(1_000_000);
    }
}

/// As fast as one session can: the rows of some epochs wait, and not those of all calls.
#[test]
fn rows_that_come_and_go_in_one_transaction_leave_nothing_behind() {
    const CALLS: usize = 30_000;
    let _alone = alone();
    for protocol in configurations() {
        let database = open(protocol);
        let mut session = database.session().expect("a worker slot");
        let mut most = 0;
        for round in 0..CALLS {
            session.execute("CALL churn(0)").expect("it commits");
            if round % 1_000 == 0 {
                most = most.max(cells_waiting(&database));
            }
        }
        assert!(most < CALLS * 20 / 8, "{protocol}: {most} cells wait");
        await_reclaimed(&database, "an idle session");
    }
}

#[test]
fn what_is_retired_is_freed_at_the_rate_it_is_retired() {
    let _alone = alone();
    for protocol in configurations() {
        let begun = time::now_ns();
        let database = open(protocol);
        soak(&database, "calls", |round| {
            let number = round as i64 * 20;
            let committed = |name: &str, number: i64| {
                let reply = database.call(name, (number,)).expect("it runs");
                assert!(reply.is_committed(), "{reply:?}");
            };
            committed("churn", number);
            committed("rewrite", number);
            if round % 64 == 0 {
                let reply = database.call("count_up", ()).expect("it runs");
                assert!(reply.is_committed(), "{reply:?}");
            }
        });
        await_reclaimed(&database, "idle workers");
        let before = BYTES.load(Ordering::Relaxed);
        // One session inserts what the other one deletes.
        let mut sessions = [(); 2].map(|()| database.session().expect("a worker slot"));
        soak(&database, "sessions", |round| {
            let number = round as i64 * 20;
            let (put, take) = (
                format!("CALL put({number})"),
                format!("CALL take({number})"),
            );
            let rewrite = format!("CALL rewrite({number})");
            sessions[0].execute(&put).expect("it commits");
            sessions[1].execute(&take).expect("it commits");
            sessions[round % 2].execute(&rewrite).expect("it commits");
        });
        await_reclaimed(&database, "idle sessions");
        let table = database.engine().table("item").expect("it is there");
        let reserved = table.slab().bytes_reserved();
        assert!(reserved < 2 << 20, "{protocol}: {reserved} bytes of cells");
        let grown = BYTES.load(Ordering::Relaxed).saturating_sub(before);
        assert!(grown < BYTES_GROWN, "{protocol}: {grown} bytes");
        drop(sessions);
        await_reclaimed(&database, "idle worker slots");
        println!("{protocol}: {} ms", (time::now_ns() - begun) / 1_000_000);
    }
}
