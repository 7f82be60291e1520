//! Replay: what a log says, in an order in which it can be applied.
//!
//! The changes of a key are in the order of (log epoch, version); commits of an epoch are in any order in their group
//! ([`kiln_storage::journal`]). A group is read whole, so that its entries can be put into that order.

use kiln_storage::error::Result;

use super::scan::{End, Scan};
use crate::canary::Canary;
use crate::error::damaged;
use crate::format::entry::{Entries, Entry};

/// A log that is being replayed.
pub struct Replay {
    scan: Scan,
    /// Entries of log epochs before this one are left out.
    from: u64,
    /// The present group.
    payload: Vec<u8>,
    /// Whether its first block was read.
    is_in_group: bool,
}

impl Replay {
    /// Replays what is of this log epoch or of a later one.
    pub fn new(scan: Scan, from: u64) -> Replay {
        Replay {
            scan,
            from,
            payload: Vec::new(),
            is_in_group: false,
        }
    }

    /// Bytes read so far, and bytes of all segments.
    pub fn progress(&self) -> (u64, u64) {
        self.scan.progress()
    }

    /// Gives the entries of the next group to `each`, in the order in which they can be applied. Returns the group's last log epoch,
    /// and `None` at the end of the log.
    ///
    /// # Errors
    /// Those of [`Scan::next`], XX001 for what is no entry, and what `each` returns.
    pub fn next_group(
        &mut self,
        mut each: impl FnMut(&Entry<'_>) -> Result<()>,
    ) -> Result<Option<u64>> {
        self.payload.clear();
        self.is_in_group = false;
        let mut begun = None;
        let last = loop {
            match self.scan.next(&mut self.payload)? {
                // The log before it was removed: of a group whose log epochs are in the checkpoint.
                Some(header) if header.goes_back && !self.is_in_group => self.payload.clear(),
                Some(header) if header.goes_on => {
                    self.is_in_group = true;
                    begun = Some(header.epochs.1);
                }
                Some(header) => break header.epochs.1,
                None => match begun.filter(|_| Canary::GroupWithoutEndApplied.sings()) {
                    Some(last) => break last,
                    // A group without its end was not acknowledged.
                    None => return Ok(None),
                },
            }
        };
        self.scan.complete(last);
        let mut entries = Vec::new();
        for entry in Entries::new(&self.payload) {
            if Canary::GroupWithoutEndApplied.sings() && entry.is_err() {
                break;
            }
            let entry =
                entry.map_err(|_| damaged("the log has a group that is not one of entries"))?;
            if entry.epoch() >= self.from {
                entries.push(entry);
            }
        }
        entries.sort_by_key(Entry::order);
        entries.iter().try_for_each(&mut each)?;
        Ok(Some(last))
    }

    /// Where the log goes on, after [`Replay::next_group`] has returned `None`. What was read is on disk when this returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn end(self) -> Result<End> {
        self.scan.end()
    }
}
