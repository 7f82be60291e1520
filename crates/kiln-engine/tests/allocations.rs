//! No allocation between begin and commit: once a driver and the tables have grown to what the
//! calls need, a call asks the allocator for nothing, under any protocol. And what a session that
//! runs nothing costs.

// Runs on virtual cores bring an allocator of their own.
#![cfg(not(kiln_sim))]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::*;
use kiln_engine::{
    Arguments, CallAnswer, Commit, Driver, Listener, Listeners, LogEpoch, Outcome, ProcedureHandle,
    Protocol,
};
use kiln_platform::sync::Arc;
use kiln_storage::schema::IndexKind;
use kiln_storage::slot::Heap;
use kiln_storage::table::EntryKey;

thread_local! {
    /// Allocations of this thread; other threads of the test and the engine have their own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread has allocated and not freed.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: usize) {
    // During a thread's end there is no cell any more, and nothing to count.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let _ = BYTES.try_with(|sum| sum.set(sum.get() + bytes as i64));
}

fn forget(bytes: usize) {
    let _ = BYTES.try_with(|sum| sum.set(sum.get() - bytes as i64));
}

// SAFETY: every method hands its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        forget(layout.size());
        count(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        forget(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    let boxed = std::hint::black_box(Box::new(1));
    assert_eq!(ALLOCATIONS.get() - before, 1);
    drop(boxed);
}

/// Copies what it hears into memory of its own.
struct Copying {
    bytes: Vec<u8>,
    heap: Heap,
}

struct Copyists;

impl Listeners for Copyists {
    fn listener(&self, _: usize) -> Box<dyn Listener> {
        Box::new(Copying {
            bytes: Vec::with_capacity(1 << 16),
            heap: Heap::new(),
        })
    }

    fn note(&self, answer: &CallAnswer<'_>) -> Option<LogEpoch> {
        unreachable!("no call has a key: {answer:?}")
    }
}

impl Listener for Copying {
    fn committed(&mut self, commit: &Commit<'_>) {
        self.bytes.clear();
        for change in commit.changes {
            assert!(matches!(change.key(&mut self.heap), EntryKey::Word(_)));
        }
        assert!(commit.append_within(&mut self.bytes), "there is room");
    }
}

#[test]
fn calls_allocate_nothing_in_the_steady_state() {
    steady_calls(false);
}

#[test]
fn calls_that_are_reported_allocate_nothing_in_the_steady_state() {
    steady_calls(true);
}

fn steady_calls(are_reported: bool) {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol).epoch_ms(1), 200, 1_000);
        if are_reported {
            let attached = engine.attach_listeners(Arc::new(Copyists));
            attached.expect("the protocol isolates transactions");
        }
        let grown = engine.change_catalog(|change| {
            // An index of each kind besides the primary key.
            change.add_index("account", index("by_owner", &[OWNER, ID], false, ORDERED))?;
            let hash = index("by_id", &[ID], true, IndexKind::Hash);
            let table = change.add_index("account", hash)?;
            recompile(change, &table)
        });
        grown.expect("nothing runs");
        let handle = |name| engine.procedure(name).expect("it is there");
        let (transfer, deposit, total) = (handle("transfer"), handle("deposit"), handle("total"));
        let (open, shut) = (handle("open"), handle("shut"));
        let mut driver = engine.driver(0).expect("there is a worker slot");
        let mut arguments = Arguments::new();
        let mut call = |driver: &mut Driver, handle: &ProcedureHandle, values: &[i64]| {
            arguments.clear();
            values.iter().for_each(|value| arguments.push_i64(*value));
            let before = ALLOCATIONS.get();
            let outcome = driver.call(handle, &mut arguments);
            let allocations = ALLOCATIONS.get() - before;
            assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
            allocations
        };
        let mut round = |driver: &mut Driver, number: i64| {
            let (a, b) = (number % 200, (number * 7 + 1) % 200);
            // Removed and inserted again and again, so that memory goes around.
            let id = 1_000 + number % 50;
            [
                call(driver, &transfer, &[a, b, 0]),
                call(driver, &deposit, &[a, 1]),
                call(driver, &total, &[]),
                call(driver, &open, &[id, 5]),
                call(driver, &shut, &[id]),
            ]
        };
        // Removed rows wait for their epoch to end. While one participant stays in an epoch,
        // garbage grows beyond what the rounds that count can leave, and all lists grow to hold it.
        let mut number = 0;
        let mut rounds = |driver: &mut Driver, rounds: i64| {
            let mut sums = [0; 5];
            for _ in 0..rounds {
                let counts = round(driver, number);
                sums.iter_mut()
                    .zip(counts)
                    .for_each(|(sum, count)| *sum += count);
                number += 1;
            }
            sums
        };
        let held = engine.epochs().register().expect("there is room");
        held.enter();
        rounds(&mut driver, 2_000);
        drop(held);
        for _ in 0..20 {
            rounds(&mut driver, 100);
            kiln_platform::thread::sleep(5_000_000);
        }
        // While this thread has lost its core, the ticker takes over what the thread has retired,
        // and a list meets what it has to hold at most. Such an allocation comes once; one that
        // belongs to the calls comes in every part.
        let mut seen = Vec::new();
        let mut quiet = 0;
        while quiet < 2 && seen.len() < 8 {
            let sums = rounds(&mut driver, 500);
            quiet += usize::from(sums == [0; 5]);
            seen.push(sums);
        }
        assert!(
            quiet == 2,
            "{protocol}: allocations of transfer, deposit, total, open, shut in parts of 500 rounds: {seen:?}"
        );
    }
}

#[test]
fn a_session_costs_its_own_state() {
    const SESSIONS: i64 = 10_000;
    let engine = bank(small(Protocol::Silo), 1, 0);
    let table = engine.table("account").expect("it is there");
    let deposit = kiln_platform::sync::Arc::new(deposit(&table));
    let run = |session: &mut kiln_engine::Session| {
        let mut arguments = Arguments::new();
        arguments.push_i64(0);
        arguments.push_i64(1);
        session
            .run(&deposit, &mut arguments)
            .expect("a slot is free");
    };
    // The slot that all of them use is made now.
    run(&mut engine.session().expect("there is room"));
    let before = BYTES.get();
    let mut sessions = Vec::with_capacity(SESSIONS as usize);
    for _ in 0..SESSIONS {
        sessions.push(engine.session().expect("there is room"));
    }
    sessions.iter_mut().for_each(run);
    let each = (BYTES.get() - before) / SESSIONS;
    println!("{each} bytes a session");
    // With its place among the sessions that are open.
    assert!(each <= 320, "{each} bytes a session");
    drop(sessions);
    assert_eq!(engine.sessions_open(), 0);
}
