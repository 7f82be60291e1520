//! Durability: the files that keep a database through the end of its process.
//!
//! A data directory has a manifest, which names what belongs to the database; a log of commits in
//! blocks that are written durably ([`kiln_platform::disk`]), each complete or not there at all;
//! and checkpoints, from which a recovery begins.
//!
//! | module | holds |
//! |---|---|
//! | [`format`](mod@format) | the bytes of the log: blocks, and what is in them |
//! | `directory` | [`DataDirectory`]: where the files are, its lock, and changes that survive a crash |
//! | [`checkpoint`] | the files of checkpoints, written and read |
//! | `manifest` | [`Manifest`]: what of a data directory belongs to its database |
//! | [`log`](mod@log) | the log as it is written: groups of commits, the durable watermark |
//! | `rates` | [`RecoveryRates`]: how long a recovery takes |
//! | [`backup`] | copies of a database, and data directories that are made from them |
//! | [`inspect`] | data directories as they are: checked, read and summed up without opening their databases |
//! | [`recovery`] | the log as it is read: where it ends, and what is to be applied |

pub mod backup;
pub mod canary;
pub mod checkpoint;
mod directory;
mod error;
pub mod format;
pub mod inspect;
pub mod log;
mod manifest;
mod moment;
mod rates;
pub mod recovery;

pub use directory::{DataDirectory, check_is_free};
pub use error::{damaged, damaged_in, disk_error};
pub use manifest::{
    CHECKPOINTS_MAX, CheckpointEntry, FileEntry, FileName, MANIFEST_BYTES_MAX, Manifest,
    NotAFileName,
};
pub use moment::{moment_from_text, moment_text};
pub use rates::{RecoveryRates, RecoveryRecord};
