//! What an SQL session costs that runs nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kiln_sql::{Database, Options, Session};

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64) {
    // During a thread's end there is no cell any more, and nothing to count.
    let _ = BYTES.try_with(|sum| sum.set(sum.get() + bytes));
}

// SAFETY: both methods hand their arguments on to the system's allocator unchanged; the others are
// made of them.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Those that have run statements keep nothing of them: what was compiled is the database's.
#[test]
fn ten_thousand_sessions_cost_their_own_state() {
    const SESSIONS: i64 = 10_000;
    let database = Database::open(Options::new().workers(1).pin_workers(false));
    let database = database.expect("the options are good");
    let run = |session: &mut Session| {
        for limit in 1..4 {
            let statement = format!("SELECT g.i FROM generate_series(1, {limit}) AS g(i)");
            let rows = session.query(&statement, ()).expect("a slot is free");
            assert_eq!(rows.rows.len(), limit);
        }
    };
    // The slot that all of them use is made now.
    run(&mut database.session().expect("there is room"));
    let before = BYTES.get();
    let mut sessions = Vec::with_capacity(SESSIONS as usize);
    for _ in 0..SESSIONS {
        sessions.push(database.session().expect("there is room"));
    }
    sessions.iter_mut().for_each(run);
    let each = (BYTES.get() - before) / SESSIONS;
    println!("{each} bytes a session");
    // A fifth of it is what other sessions see of one in pg_stat_activity.
    assert!(each <= 640, "{each} bytes a session");
}
