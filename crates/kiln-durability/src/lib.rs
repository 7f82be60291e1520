//! Durability: the files that keep a database through the end of its process.
//!
//! A log of commits in blocks that are written durably ([`kiln_platform::disk`]), each complete or not there at all.
//!
//! | module | holds |
//! |---|---|
//! | [`format`](mod@format) | the bytes of the files: blocks of the log, and what is in them |
//! | [`log`](mod@log) | the log as it is written: groups of commits, the durable watermark |

mod error;
pub mod format;
pub mod log;

pub use error::{damaged, disk_error};
