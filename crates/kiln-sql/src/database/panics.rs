//! Panics of the parser and the compiler, which become errors of their statement.
//!
//! A panic there is a defect of Kiln, and shall cost its statement alone. Catching it is sound:
//! until a program is finished, the parser and the compiler write to nothing that outlives the
//! call. They read a snapshot of the catalog, or, in a definition, a change of the catalog that its
//! error discards. Panics of a program that runs are not caught here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln_storage::error::{Error, Result, SqlState};

/// The most characters of a panic's message and of a statement that an error shows.
const SHOWN_MAX: usize = 300;

/// What `compile` returns; XX000 when it panics.
///
/// # Errors
/// Those of `compile`, and XX000.
pub(super) fn caught<T>(compile: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|panic| Err(defect(&*panic)))
}

/// The error with the statement that it is about, if a panic was behind it.
pub(super) fn of_statement(error: Error, text: &str) -> Error {
    let is_defect = error.state() == SqlState::INTERNAL_ERROR && error.detail().is_none();
    match is_defect {
        true => error.with_detail(format!("The statement was: {}", shortened(text.trim()))),
        false => error,
    }
}

#[cold]
fn defect(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // Some messages go on with a whole program.
    let line = text
        .and_then(|text| text.lines().next())
        .unwrap_or_default();
    Error::internal(format!(
        "the statement cannot be compiled because of a defect of Kiln: {}",
        shortened(line)
    ))
    .with_hint("The statement had no effect. Please report it with the tables that it names.")
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Panics on request, at the steps of compiling; tests see by them that nothing is left behind.
#[cfg(test)]
pub(crate) mod planted {
    use std::cell::Cell;

    /// A step of compiling.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Step {
        Parse,
        Bind,
        Plan,
        Finish,
        /// Between the change of the catalog that a definition is and the design derived from it.
        Derive,
    }

    thread_local! {
        static NEXT: Cell<Option<Step>> = const { Cell::new(None) };
    }

    /// Lets this thread panic the next time that it comes to `step`.
    pub(crate) fn plant(step: Step) {
        NEXT.set(Some(step));
    }

    /// Whether a planted panic still waits.
    pub(crate) fn is_waiting() -> bool {
        NEXT.get().is_some()
    }

    /// Panics if that was planted here.
    pub(crate) fn reach(step: Step) {
        if NEXT.get() == Some(step) {
            NEXT.set(None);
            panic!("planted at {step:?}");
        }
    }
}
