//! How large a data directory is, and what a recovery would read of it.

use std::path::Path;

use kiln_platform::disk::{Directory, Kind};
use kiln_storage::error::Result;

use crate::directory::glance;
use crate::disk_error;
use crate::format::block::{self, HEADER_BYTES, PAYLOAD_MAX, bytes_of};
use crate::format::{BlockHeader, DatabaseId, segment_name, segment_number};
use crate::manifest::Manifest;

/// A data directory at a glance.
#[derive(Clone, Debug)]
pub struct Status {
    /// What belongs to the database.
    pub manifest: Manifest,
    /// What the process says of itself that has it open.
    pub holder: Option<String>,
    /// What that process says of the database, or the last one that had it open said: why it took no changes any more.
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

/// The last block of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogEnd {
    /// Its segment.
    pub segment: u64,
    /// Where in that it ends.
    pub offset: u64,
    /// What it says of itself.
    pub header: BlockHeader,
}

/// Looks at the data directory at `path`, which another process may have open: then these are figures of a moment.
///
/// # Errors
/// 58P01 when no database is there; XX001 and 0A000 for its manifest; the disk's.
pub fn status(path: &Path) -> Result<Status> {
    let glance = glance(path)?;
    let (log, manifest) = (glance.log, glance.manifest);
    let entries = log.list().map_err(|error| disk_error(&error))?;
    let segments: Vec<(u64, u64)> = entries
        .iter()
        .filter(|entry| !entry.is_directory)
        .filter_map(|entry| Some((segment_number(&entry.name)?, entry.bytes)))
        .filter(|(number, _)| *number >= manifest.first_segment)
        .collect();
    let end = find_end(&log, manifest.database, &segments)?;
    let from = manifest.checkpoints.last();
    let from = from.map_or(manifest.first_segment, |it| it.segment);
    let replay_bytes = end.map_or(0, |end| {
        let before = segments
            .iter()
            .filter(|(number, _)| (from..end.segment).contains(number));
        let is_after = end.segment >= from;
        before.map(|(_, bytes)| bytes).sum::<u64>() + if is_after { end.offset } else { 0 }
    });
    Ok(Status {
        manifest,
        holder: glance.holder,
        remark: glance.remark,
        segments: segments.len() as u64,
        log_bytes: segments.iter().map(|(_, bytes)| bytes).sum(),
        end,
        replay_bytes,
    })
}

/// Finds the last block: the blocks of a segment are one after the other from its beginning on, and segments after the one that is written
/// have none.
fn find_end(
    log: &Directory,
    database: DatabaseId,
    segments: &[(u64, u64)],
) -> Result<Option<LogEnd>> {
    let mut bytes = vec![0; HEADER_BYTES + PAYLOAD_MAX + block::ALIGNMENT];
    for &(segment, _) in segments.iter().rev() {
        let file = match log.open_file(&segment_name(segment)) {
            // It was given up meanwhile.
            Err(error) if *error.kind() == Kind::NotFound => continue,
            other => other.map_err(|error| disk_error(&error))?,
        };
        let mut end: Option<LogEnd> = None;
        loop {
            let offset = end.map_or(0, |end| end.offset);
            // Most blocks are short.
            let mut wanted = 64 << 10;
            let found = loop {
                let read = file.read_at(offset, &mut bytes[..wanted]);
                let read = read.map_err(|error| disk_error(&error))?;
                match block::read(&bytes[..read], database, segment) {
                    Ok(block) => break Some((block.header, bytes_of(block.payload.len()))),
                    Err(_) if read == wanted && wanted < bytes.len() => wanted = bytes.len(),
                    Err(_) => break None,
                }
            };
            let next = end.map(|end| end.header.number + 1);
            match found {
                Some((header, length)) if next.is_none_or(|next| next == header.number) => {
                    end = Some(LogEnd {
                        segment,
                        offset: offset + length as u64,
                        header,
                    });
                }
                _ => break,
            }
        }
        if end.is_some() {
            return Ok(end);
        }
    }
    Ok(None)
}
