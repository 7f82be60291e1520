//! What one statement did, in a form that two databases can be compared by.

use std::fmt;

/// How NULL is written in the output, so that it differs from the empty string.
pub const NULL_TEXT: &str = "<null>";

/// The SQLSTATE of a feature that is not supported.
pub const UNSUPPORTED: &str = "0A000";

/// The SQLSTATE of a statement that succeeded.
pub const SUCCESS: &str = "00000";

/// What one statement did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementOutcome {
    /// Five characters; [`SUCCESS`] when nothing went wrong.
    pub sqlstate: String,
    /// The rows as `psql --csv` prints them, header included, with [`NULL_TEXT`] for NULL; empty
    /// when the statement has no result.
    pub output: String,
    /// The error's message, without position, detail and hint; empty on success.
    pub message: String,
}

impl StatementOutcome {
    /// A statement that succeeded and printed `output`.
    pub fn success(output: impl Into<String>) -> StatementOutcome {
        StatementOutcome {
            sqlstate: SUCCESS.to_owned(),
            output: output.into(),
            message: String::new(),
        }
    }

    /// A statement that failed.
    pub fn failure(sqlstate: &str, message: impl Into<String>) -> StatementOutcome {
        StatementOutcome {
            sqlstate: sqlstate.to_owned(),
            output: String::new(),
            message: message.into(),
        }
    }

    /// Whether both did the same. Messages are the wording of each database and count only where
    /// `with_messages` says that the statement chose them itself.
    pub fn agrees_with(&self, other: &StatementOutcome, with_messages: bool) -> bool {
        self.sqlstate == other.sqlstate
            && self.output == other.output
            && (!with_messages || self.message == other.message)
    }
}

impl fmt::Display for StatementOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sqlstate != SUCCESS {
            write!(f, "SQLSTATE {}: {}", self.sqlstate, self.message)
        } else if self.output.is_empty() {
            write!(f, "success, no rows")
        } else {
            write!(f, "{}", self.output.trim_end_matches('\n'))
        }
    }
}
