//! Durability: what keeps a database through the end of its process.
//!
//! | module | holds |
//! |---|---|
//! | [`format`](mod@format) | the bytes of the files: blocks of the log, and what is in them |

pub mod format;
