//! Recovery: reading what a database has kept.
//!
//! | module | holds |
//! |---|---|
//! | `scan` | [`Scan`]: the blocks of a log, and where it ends |
//! | `replay` | [`Replay`]: its entries, in an order in which they can be applied |

mod replay;
mod scan;

pub use replay::Replay;
pub use scan::{End, Scan, Start};
