//! A whole history: all logs of a run, and the names to print it by.

use crate::event::Object;

/// A table's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableNames {
    /// The table's.
    pub name: String,
    /// The columns', by position.
    pub columns: Vec<String>,
    /// The indexes', by position.
    pub indexes: Vec<String>,
}

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The object.
    pub object: Object,
    /// Its table's position in [`History::tables`].
    pub table: u32,
    /// Its name, such as `account[3]`.
    pub name: String,
}

/// Everything that a run recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The protocol that ran.
    pub protocol: String,
    /// The workload that was run.
    pub workload: String,
    /// The procedures' names, by the number in [`Event::Begin`](crate::Event::Begin).
    pub procedures: Vec<String>,
    /// The names of causes, by the number in [`Event::Abort`](crate::Event::Abort).
    pub causes: Vec<String>,
    /// The tables, by the number in [`IndexId`](crate::IndexId).
    pub tables: Vec<TableNames>,
    /// Names of objects, for messages; those that are missing are printed by their addresses.
    pub objects: Vec<ObjectName>,
    /// The words of each worker's [`Log`](crate::Log).
    pub logs: Vec<Vec<u64>>,
}

impl History {
    /// The bytes of all logs.
    pub fn log_bytes(&self) -> usize {
        self.logs.iter().map(|words| words.len() * 8).sum()
    }
}
