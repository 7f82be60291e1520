//! The names of a session: its prepared statements and portals.

use std::collections::HashMap;

use super::portal::Portal;
use super::prepared::Statement;

/// The names of a session.
#[derive(Default)]
pub(super) struct Names {
    pub statements: HashMap<String, Kept>,
    pub portals: HashMap<String, Named>,
}

/// A prepared statement.
pub(super) struct Kept {
    pub statement: Statement,
    /// What the client wrote, if it was PREPARE.
    pub prepare: Option<String>,
    /// When, in microseconds since 1970.
    pub since_us: i64,
}

/// A portal with a name: that of a cursor, or one that the layer above has bound.
pub(super) struct Named {
    /// `None` while it is run.
    pub portal: Option<Portal>,
    /// Whether DECLARE has made it, so that it ends with its block.
    pub is_declared: bool,
    /// Whether it outlives the block.
    pub is_held: bool,
    /// Whether it is of the open block.
    pub is_of_block: bool,
    /// How many savepoints the block had when it was made.
    pub savepoints: usize,
    /// Bytes of the rows that it keeps.
    pub bytes: usize,
    /// When it was made, in microseconds since 1970.
    pub since_us: i64,
}
