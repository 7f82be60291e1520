//! How large a data directory is, and what a recovery would read of it.

use std::path::Path;

use kiln_storage::error::Result;

use crate::directory::glance;
use crate::manifest::Manifest;
use crate::recovery::{Extent, LogEnd};

/// A data directory at a glance.
#[derive(Clone, Debug)]
pub struct Status {
    /// What belongs to the database.
    pub manifest: Manifest,
    /// What the process says of itself that has it open.
    pub holder: Option<String>,
    /// What that process says of the database, or the last one that had it open said: why it took
    /// no changes any more.
    pub remark: Option<String>,
    /// The segments that the manifest keeps.
    pub segments: u64,
    /// Their bytes, used or not.
    pub log_bytes: u64,
    /// The last block of the log; `None` when there is none.
    pub end: Option<LogEnd>,
    /// Bytes of the log that a recovery reads: from the last checkpoint's segment on.
    pub replay_bytes: u64,
}

/// Looks at the data directory at `path`, which another process may have open: then these are
/// figures of a moment.
///
/// # Errors
/// 58P01 when no database is there; XX001 and 0A000 for its manifest; the disk's.
pub fn status(path: &Path) -> Result<Status> {
    let glance = glance(path)?;
    let (log, manifest) = (glance.log, glance.manifest);
    let extent = Extent::find(&log, manifest.database, manifest.first_segment)?;
    let from = manifest.checkpoints.last();
    let from = from.map_or(manifest.first_segment, |it| it.segment);
    Ok(Status {
        manifest,
        holder: glance.holder,
        remark: glance.remark,
        segments: extent.segments.len() as u64,
        log_bytes: extent.segments.iter().map(|(_, bytes)| bytes).sum(),
        end: extent.end,
        replay_bytes: extent.bytes_from(from),
    })
}
