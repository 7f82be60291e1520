//! Groups: what was written to a log at a time, whole.

use kiln_storage::error::{Error, Result};

use super::scan::{End, Scan};
use crate::canary::Canary;
use crate::error::damaged_in;
use crate::format::block::{BlockHeader, bytes_of};
use crate::format::entry::Entries;
use crate::log::Position;

/// A block of a log, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedBlock {
    /// The number of its segment.
    pub segment: u64,
    /// Where in that file it begins.
    pub offset: u64,
    /// What it says of itself.
    pub header: BlockHeader,
    /// The length of its payload.
    pub payload_bytes: usize,
}

/// Where a group begins: a segment, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPosition(u64, u64);

/// A log that is read group by group.
pub struct Groups {
    scan: Scan,
    blocks: Vec<PlacedBlock>,
    /// The payloads of all blocks of the group.
    payload: Vec<u8>,
}

impl Groups {
    /// The groups of the log that this scan reads.
    pub fn new(scan: Scan) -> Groups {
        Groups {
            scan,
            blocks: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Reads the next group; false at the end of the log. A group without its last block is none:
    /// it was not acknowledged.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub fn advance(&mut self) -> Result<bool> {
        self.blocks.clear();
        self.payload.clear();
        loop {
            let before = self.payload.len();
            let Some(header) = self.scan.next(&mut self.payload)? else {
                let begun = self.blocks.last().map(|it| it.header.epochs.1);
                return Ok(
                    match begun.filter(|_| Canary::GroupWithoutEndApplied.sings()) {
                        Some(last) => {
                            self.scan.complete(last);
                            true
                        }
                        None => false,
                    },
                );
            };
            let payload_bytes = self.payload.len() - before;
            let (segment, end) = self.scan.reached();
            self.blocks.push(PlacedBlock {
                segment,
                offset: end - bytes_of(payload_bytes) as u64,
                header,
                payload_bytes,
            });
            if !header.goes_on {
                self.scan.complete(header.epochs.1);
                return Ok(true);
            }
        }
    }

    /// The blocks of the present group. At the end of the log those of a group without its last
    /// block.
    pub fn blocks(&self) -> &[PlacedBlock] {
        &self.blocks
    }

    /// The entries of the present group; `None` when it begins before the first segment, in a part
    /// of the log that was removed.
    pub fn entries(&self) -> Option<Entries<'_>> {
        let is_begun = self.blocks.first()?.header.goes_back;
        (!is_begun).then(|| Entries::new(&self.payload))
    }

    /// Where the present group begins.
    pub fn group_position(&self) -> Option<GroupPosition> {
        let first = self.blocks.first()?;
        Some(GroupPosition(first.segment, first.offset))
    }

    /// The error for what the present group has and cannot be put back: it names the place of the
    /// group.
    pub fn damage(&self, error: Error) -> Error {
        match self.group_position() {
            Some(position) => self.damage_at(position, error),
            None => error,
        }
    }

    /// As [`Groups::damage`], of the group at this place.
    pub fn damage_at(&self, GroupPosition(segment, offset): GroupPosition, error: Error) -> Error {
        damaged_in(self.scan.place(segment, offset), error)
    }

    /// Bytes read so far, and bytes of all segments.
    pub fn progress(&self) -> (u64, u64) {
        self.scan.progress()
    }

    /// Where the log goes on after the last group, or from the beginning.
    pub fn position(&self) -> Position {
        self.scan.position()
    }

    /// At the end of the log: what is behind it, in words, if it is not simply the end.
    pub fn cut(&self) -> Option<&str> {
        self.scan.cut()
    }

    /// Where the log goes on, after [`Groups::advance`] has returned false. What was read is on
    /// disk when this returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn end(self) -> Result<End> {
        self.scan.end()
    }
}
