//! Histories: what transactions read and wrote, and in which versions.
//!
//! A protocol that is being observed records what it did, worker by worker, as [`Event`]s in a
//! [`Log`]. A [`History`] is all logs of a run with the names to print it by. Nothing here judges;
//! `kiln-checker` does, and imports nothing else.
//!
//! # The model
//!
//! Adya's (*Weak Consistency*, MIT 1999), at the granularity of columns:
//!
//! - An **object** is a record's cell in memory, known by its address. A cell that is used again
//!   for another row is the same object: its versions go on growing, so an address and a version
//!   name one state for the whole run.
//! - A **version** is the record's tid at which a transaction installed it. Nothing about the order
//!   of versions is guessed: every installation names the version that it replaced.
//! - A **cell** of an event is one column and a fingerprint of its value. Two transactions conflict
//!   if they touch the same column of the same object; and a value that is not the one which its
//!   version ought to have (a torn or dirty read) is found out.
//! - **Existence** counts as one more column: an insertion and a deletion write it, every read
//!   reads it.
//! - A **range** is a predicate read: the keys of an index between two bounds, with the entries
//!   that were met. A look-up that found nothing is the range of that one key.
//! - A **moment** is a reading of a counter that all workers share. What an event did happened
//!   between two moments; one window before another is real-time order.
//!
//! # Predicate reads without index internals
//!
//! An index entry is added and removed in a window of moments, a range is read in one. If the
//! windows do not overlap, the range saw the entry exactly if it was there. If they do, the list of
//! entries met decides. Only an entry both added and removed while the range was being read, and
//! not met, leaves two possibilities: the range was read before or after.

mod event;
mod file;
mod history;
mod log;

pub use event::{
    Cell, Corrupt, EntryChange, Event, IndexId, Key, Moment, Object, Version, Window, WriteKind,
};
pub use file::FileError;
pub use history::{History, ObjectName, TableNames};
pub use log::{Clock, Log, LogReader};
