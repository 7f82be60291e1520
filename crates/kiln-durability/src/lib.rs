//! Durability: the files that keep a database through the end of its process.
//!
//! A log of commits in blocks that are written durably ([`kiln_platform::disk`]), each complete or not there at all. Only its format is here
//! so far: no database writes it yet.
//!
//! | module | holds |
//! |---|---|
//! | [`format`](mod@format) | the bytes of the files: blocks of the log, and what is in them |

mod error;
pub mod format;

pub use error::{damaged, disk_error};
