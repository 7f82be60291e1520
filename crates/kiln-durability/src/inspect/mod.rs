//! Looking at a data directory without opening the database in it.
//!
//! | function | says |
//! |---|---|
//! | [`check`] | whether all is what was written |
//! | [`read_log`], [`read_checkpoint`] | what is in the log and in a checkpoint |
//! | [`status`] | how large it is, and what a recovery would read; also while the database is open |

mod check;
mod contents;
mod status;

pub use check::{CheckReport, check};
pub use contents::{FileSummary, LogSummary, SegmentSummary, read_checkpoint, read_log};
pub use status::{Status, status};
