//! Kiln as the tests see it: a database that is opened for a few statements, and what each of them
//! did in the form in which PostgreSQL's outcomes come.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

use kiln_engine::Configuration;
use kiln_sql::{Database, Options, ResultSet, Session};
use kiln_storage::error::Error;
use kiln_storage::types::{DataType, Style, Value, format_value_in};

use super::outcome::{NULL_TEXT, StatementOutcome};

/// The SQLSTATE that an outcome has instead when Kiln panicked. PostgreSQL has none of its class.
pub const PANICKED: &str = "PANIC";

thread_local! {
    /// Message and place of the last panic of this thread.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// An empty database that is cheap to open.
pub fn open(protocol: Configuration) -> Result<Database, Error> {
    Database::open(
        Options::new()
            .protocol(protocol)
            .workers(1)
            .pin_workers(false),
    )
}

/// Keeps panics of the calling thread for [`guarded`] instead of printing them. Those of other
/// threads are printed as before.
pub fn keep_panics() {
    let of_others = panic::take_hook();
    let mine = kiln_platform::thread::current().id();
    panic::set_hook(Box::new(move |panic| {
        if kiln_platform::thread::current().id() == mine {
            // The first lines say what is wrong; some go on with a whole program.
            let told: Vec<String> = panic
                .to_string()
                .lines()
                .take(4)
                .map(str::to_owned)
                .collect();
            LAST_PANIC.with_borrow_mut(|last| *last = told.join("\n"));
        } else {
            of_others(panic);
        }
    }));
}

/// What `action` returns, or the message of the panic that ended it.
pub fn guarded<T>(action: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(action))
        .map_err(|_| LAST_PANIC.with_borrow_mut(std::mem::take))
}

/// Runs statements one after another in a database of their own.
///
/// A panic is the outcome of its statement, and of those after it, because the state that they
/// would work on is unknown.
pub fn run(protocol: Configuration, statements: &[&str]) -> Vec<StatementOutcome> {
    let mut outcomes = Vec::with_capacity(statements.len());
    let ended = guarded(|| {
        let database = open(protocol).map_err(|error| failure(&error))?;
        let mut session = database.session().map_err(|error| failure(&error))?;
        for statement in statements {
            outcomes.push(run_statement(&mut session, statement));
        }
        Ok(())
    });
    let rest = match ended {
        Ok(Ok(())) => return outcomes,
        Ok(Err(failure)) => failure,
        Err(message) => StatementOutcome::failure(PANICKED, message),
    };
    // A panic while the database closes must show as well.
    let left = (statements.len() - outcomes.len()).max(1);
    outcomes.truncate(statements.len() - left);
    outcomes.resize(statements.len(), rest);
    outcomes
}

/// Runs one statement.
pub fn run_statement(session: &mut Session, statement: &str) -> StatementOutcome {
    match session.execute_statement(&statement.into()) {
        Ok(done) => {
            let style = session.style();
            let rows = done.result;
            StatementOutcome::success(rows.map_or_else(String::new, |rows| csv(&rows, &style)))
        }
        Err(error) => failure(&error),
    }
}

/// A statement that ended with `error`.
pub fn failure(error: &Error) -> StatementOutcome {
    StatementOutcome::failure(error.state().as_str(), error.message())
}

/// The rows as psql prints them with [`NULL_TEXT`] for NULL; nothing when there are no columns, as
/// of a procedure without OUT parameters.
pub fn csv(rows: &ResultSet, style: &Style<'_>) -> String {
    if rows.columns.is_empty() {
        return String::new();
    }
    let text = |value: &Value, data_type: &DataType| {
        Value::Text(match value {
            Value::Null => NULL_TEXT.to_owned(),
            value => format_value_in(value, data_type, style),
        })
    };
    let texts = ResultSet {
        columns: rows
            .columns
            .iter()
            .map(|(name, _)| (name.clone(), DataType::Text))
            .collect(),
        rows: rows
            .rows
            .iter()
            .map(|row| {
                row.iter()
                    .zip(&rows.columns)
                    .map(|(value, (_, t))| text(value, t))
                    .collect()
            })
            .collect(),
    };
    texts.to_csv()
}
