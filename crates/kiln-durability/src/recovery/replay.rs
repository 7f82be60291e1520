//! Replay: what a log says, in an order in which it can be applied.
//!
//! The changes of a key are in the order of (log epoch, version); commits of an epoch are in any
//! order in their group ([`kiln_storage::journal`]). A group is read whole, so that its entries can
//! be put into that order.

use kiln_storage::error::{Error, Result};

use super::groups::{GroupPosition, Groups};
use super::scan::{End, Scan};
use crate::canary::Canary;
use crate::error::damaged;
use crate::format::entry::Entry;

/// A log that is being replayed.
pub struct Replay {
    groups: Groups,
    /// Entries of log epochs before this one are left out.
    from: u64,
}

impl Replay {
    /// Replays what is of this log epoch or of a later one.
    pub fn new(scan: Scan, from: u64) -> Replay {
        Replay {
            groups: Groups::new(scan),
            from,
        }
    }

    /// Bytes read so far, and bytes of all segments.
    pub fn progress(&self) -> (u64, u64) {
        self.groups.progress()
    }

    /// Gives the entries of the next group to `each`, in the order in which they can be applied.
    /// Returns the group's last log epoch, and `None` at the end of the log.
    ///
    /// # Errors
    /// Those of [`Scan::next`], XX001 for what is no entry, and what `each` returns, as
    /// [damage](Replay::damage) of the place.
    pub fn next_group(
        &mut self,
        mut each: impl FnMut(&Entry<'_>) -> Result<()>,
    ) -> Result<Option<u64>> {
        if !self.groups.advance()? {
            return Ok(None);
        }
        let mut entries = Vec::new();
        // Of a group that begins in a part of the log that was removed, the log epochs are in the
        // checkpoint.
        for entry in self.groups.entries().into_iter().flatten() {
            if Canary::GroupWithoutEndApplied.sings() && entry.is_err() {
                break;
            }
            let entry = entry.map_err(|_| {
                let fault = damaged("a group that begins there is not one of entries");
                self.groups.damage(fault)
            })?;
            if entry.epoch() >= self.from {
                entries.push(entry);
            }
        }
        entries.sort_by_key(Entry::order);
        let given = entries.iter().try_for_each(&mut each);
        given.map_err(|error| self.groups.damage(error))?;
        Ok(Some(self.groups.position().epoch))
    }

    /// The error for what the group that was given last has and cannot be put back: it names the
    /// place of the group.
    pub fn damage(&self, error: Error) -> Error {
        self.groups.damage(error)
    }

    /// Where the group is that was given last.
    pub fn group_position(&self) -> Option<GroupPosition> {
        self.groups.group_position()
    }

    /// As [`Replay::damage`], of the group at this place.
    pub fn damage_at(&self, position: GroupPosition, error: Error) -> Error {
        self.groups.damage_at(position, error)
    }

    /// Where the log goes on, after [`Replay::next_group`] has returned `None`. What was read is on
    /// disk when this returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn end(self) -> Result<End> {
        self.groups.end()
    }
}
