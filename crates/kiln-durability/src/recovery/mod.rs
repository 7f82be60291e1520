//! Recovery: reading what a database has kept.
//!
//! | module | holds |
//! |---|---|
//! | `segment` | its files, read through a window |
//! | `extent` | [`Extent`]: how much there is to read |
//! | `scan` | [`Scan`]: the blocks of a log, and where it ends |
//! | `groups` | [`Groups`]: the blocks that were written at a time, whole |
//! | `replay` | [`Replay`]: its entries, in an order in which they can be applied |

mod extent;
mod groups;
mod replay;
mod scan;
mod segment;

pub use extent::{Extent, LogEnd};
pub use groups::{GroupPosition, Groups, PlacedBlock};
pub use replay::Replay;
pub use scan::{End, Scan, Start};
