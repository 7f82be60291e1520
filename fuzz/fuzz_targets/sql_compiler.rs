//! Statements that know their tables are parsed, compiled and run without a panic or an internal
//! error.
//!
//! The input's bytes decide what the generator of `crates/kiln/tests/postgres_random.rs` writes.

#![no_main]

#[path = "../../crates/kiln/tests/postgres/random/mod.rs"]
#[allow(dead_code, reason = "what the tables hold is looked at by the tests alone")]
mod random;

use std::cell::RefCell;

use kiln_sql::{Database, Options, SqlState};
use libfuzzer_sys::fuzz_target;
use random::{Generator, SETUP};

/// Statements of an input.
const STATEMENTS_MAX: usize = 8;

thread_local! {
    /// Opened once: to open a database takes longer than to run a statement.
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
}

fn opened() -> Database {
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options).expect("the options are good");
    for statement in SETUP {
        database.execute(statement).expect("the schema is good");
    }
    database
}

fuzz_target!(|bytes: &[u8]| {
    let database = DATABASE.with_borrow_mut(|known| known.get_or_insert_with(opened).clone());
    let mut rest = bytes.iter();
    let mut choose = |bound: usize| rest.next().map_or(0, |byte| usize::from(*byte) % bound);
    let statements: Vec<String> = {
        let mut generator = Generator::new(&mut choose);
        (0..STATEMENTS_MAX).map(|_| generator.statement()).collect()
    };
    let mut session = database.session().expect("a session is free");
    for statement in &statements {
        // The tables stay as they are, and so does what an input finds; what defines cannot be
        // undone.
        let defines = statement.starts_with("CREATE") || statement.starts_with("DROP");
        if !defines {
            session.execute("BEGIN").expect("no block is open");
        }
        let done = session.execute(statement);
        if !defines {
            session.execute("ROLLBACK").expect("the block ends");
        }
        if let Err(error) = done {
            assert!(error.state() != SqlState::INTERNAL_ERROR, "{error:#}: {statement}");
        }
    }
});
