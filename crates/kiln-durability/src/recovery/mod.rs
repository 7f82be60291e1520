//! Recovery: reading what a database has kept.
//!
//! | module | holds |
//! |---|---|
//! | `segment` | its files, read through a window |
//! | `scan` | [`Scan`]: the blocks of a log, and where it ends |
//! | `replay` | [`Replay`]: its entries, in an order in which they can be applied |

mod replay;
mod scan;
mod segment;

pub use replay::Replay;
pub use scan::{End, Scan, Start};
