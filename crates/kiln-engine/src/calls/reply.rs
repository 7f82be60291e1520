//! How calls end.

use kiln_platform::sync::Arc;
use kiln_procedure::frame::Notice;
use kiln_procedure::notification::Notification;
use kiln_procedure::{Frame, Program};
use kiln_storage::deferral::PendingCheck;
use kiln_storage::error::{Error, Result};
use kiln_storage::types::{DataType, FromRow, Value};

/// How a call ended. It never ends "please retry".
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// All its effects are there.
    Committed(Rows),
    /// The procedure raised; there are no effects.
    Rejected(Error),
    /// Its deadline passed; there are no effects.
    Expired,
}

impl Reply {
    /// The rows of a committed call.
    ///
    /// # Errors
    /// The error of a rejected call; 57014 for an expired one.
    pub fn rows(self) -> Result<Rows> {
        match self {
            Reply::Committed(rows) => Ok(rows),
            Reply::Rejected(error) => Err(error),
            Reply::Expired => Err(crate::errors::expired()),
        }
    }

    /// Why it had no effects, if it was rejected.
    pub(crate) fn rejection(&self) -> Option<&Error> {
        match self {
            Reply::Rejected(error) => Some(error),
            Reply::Committed(_) | Reply::Expired => None,
        }
    }

    /// Whether the call committed.
    pub fn is_committed(&self) -> bool {
        matches!(self, Reply::Committed(_))
    }
}

/// The rows that a program emitted, and the notices that it raised.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: Arc<[(String, DataType)]>,
    values: Vec<Vec<Value>>,
    notices: Vec<Notice>,
    /// What it tells those that listen when its transaction has committed: a part of what it does,
    /// and not of its result.
    pub(crate) notifications: Vec<Arc<Notification>>,
    /// The checks of constraints that it has left to the end of the transaction.
    pub(crate) pending: Vec<PendingCheck>,
}

impl Rows {
    /// What `program` left in `frame`.
    pub(crate) fn take(frame: &Frame, program: &Program) -> Rows {
        Rows {
            columns: program.result.columns.clone(),
            values: frame.result_values(program),
            notices: frame.notices.clone(),
            notifications: frame.notifications.as_slice().to_vec(),
            pending: match program.deferred.is_empty() {
                true => Vec::new(),
                false => frame.pending(program),
            },
        }
    }

    /// These rows, each with a value for every column, and notices.
    pub(crate) fn of(
        columns: Arc<[(String, DataType)]>,
        values: Vec<Vec<Value>>,
        notices: Vec<Notice>,
    ) -> Rows {
        Rows {
            columns,
            values,
            notices,
            notifications: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// The rows; each has a value for every column.
    pub fn values(&self) -> &[Vec<Value>] {
        &self.values
    }

    /// The rows, owned.
    pub fn into_values(self) -> Vec<Vec<Value>> {
        self.values
    }

    /// Messages below the level of an error, in the order raised.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows as Rust values, for instance `rows.typed::<(i64, String)>()`.
    ///
    /// # Errors
    /// 42804 when a row does not convert, 22004 for a NULL where none is expected.
    pub fn typed<T: FromRow>(self) -> Result<Vec<T>> {
        self.values.into_iter().map(T::from_row).collect()
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        self.columns == other.columns
            && self.values == other.values
            && self.notices == other.notices
            && self.pending == other.pending
    }
}
