//! The temporary schema that a session sees in a catalog.

use std::collections::BTreeMap;

use kiln_platform::sync::Arc;

/// What becomes of a temporary table when a transaction commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// It keeps its rows.
    #[default]
    PreserveRows,
    /// It loses its rows.
    DeleteRows,
    /// It goes.
    Drop,
}

/// The temporary schema that a catalog is seen with.
#[derive(Clone)]
pub(crate) struct TemporarySchema {
    pub name: Arc<str>,
    /// Of the tables that do not preserve their rows.
    pub on_commit: BTreeMap<String, OnCommit>,
}

/// The temporary schema of the session with this number.
pub(crate) fn schema_of_session(number: u64) -> String {
    format!("pg_temp_{number}")
}
