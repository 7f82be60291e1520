//! Timestamp splitting (STO §6.2): the words of a table that say when its split columns were
//! written and read.
//!
//! Columns often observed and rarely written are *split* ([`Table::split`]). What observes
//! only these relies on no version of the record, but on that none which writes them comes between
//! the version met and the attempt's timestamp, now or later. The first is to be seen in the chain,
//! where nodes that write split columns are marked. Once these are folded into the row it is not;
//! and the second would have every reader raise the `rts` of a record that many share. Both are
//! said for a whole table instead, in three words:
//!
//! - *written*: no version newer than this wrote split columns of any record;
//! - *read*: no transaction may write them at this timestamp or below any more. Raised in leaps
//!   ([`LEASE`]), so that readers hardly ever write it;
//! - *writers*: how many attempts are about to write them.
//!
//! A **writer** counts itself, takes its timestamp, and looks at *read*; if that is not below its
//! timestamp it moves the clock past it and takes another. Then it raises *written*, inserts,
//! validates, decides, and leaves the count. A **reader** raises *read* to its timestamp and then
//! looks whether there are writers, all of it sequentially consistent. If there are none, a
//! transaction that becomes one later sees *read* and gets a later timestamp, and one that has been
//! one has raised *written*. If there are some, the reader raises the `rts` of the record, as for
//! any other read.
//!
//! Where the split columns turn out to be written often, that costs more than it saves, and there
//! are writers for good.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_storage::table::Table;

use crate::canary::Canary;

/// A set of stripes.
pub(super) type Mask = u64;

/// How far beyond a reader's timestamp *read* is raised.
const LEASE: u64 = 1024;
/// Said of *writers* when there are some for good; *written* is then beyond all timestamps.
const OFTEN: u64 = 1 << 63;
/// So many writes, each less than [`CLOSE`] behind the one before, are often.
const CLOSE_MAX: u64 = 16;
/// A few leases, as each write may move the clock by one.
const CLOSE: u64 = 4 * LEASE;

/// Of the tables of a stripe.
#[derive(Default)]
#[repr(align(128))]
struct Group {
    read: AtomicU64,
    written: AtomicU64,
    writers: AtomicU64,
    /// How many of the writes came soon after the one before.
    close: AtomicU64,
}

/// The words of all tables; see the module's documentation.
pub(super) struct Groups(Box<[Group; Groups::STRIPES]>);

impl Groups {
    const STRIPES: usize = Mask::BITS as usize;

    pub fn new() -> Groups {
        let groups = Groups(Box::new(std::array::from_fn(|_| Group::default())));
        for (number, group) in groups.0.iter().enumerate() {
            let address = std::ptr::from_ref(group).addr();
            name_range(address, size_of::<Group>(), || {
                format!("mvcc.split columns[{number}]")
            });
        }
        groups
    }

    /// The stripe of a table.
    #[inline(always)]
    pub fn number(table: &Table) -> u8 {
        (table.id().0 as usize % Groups::STRIPES) as u8
    }

    fn each(&self, mut mask: Mask) -> impl Iterator<Item = &Group> {
        std::iter::from_fn(move || {
            let number = mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
            self.0.get(number as usize)
        })
    }

    /// Whether no version newer than this one wrote split columns of the stripe's tables, as far as
    /// the caller can have seen what such a version wrote.
    #[inline(always)]
    pub fn is_written_before(&self, number: u8, version: u64) -> bool {
        // Sequentially consistent: after the look at the writers in `hold`. Elsewhere an acquire
        // load would do: it is raised before the version is committed, and so before its words come
        // into any row.
        self.0[number as usize].written.load(Ordering::SeqCst) <= version
    }

    /// Keeps all that is not counted yet from writing split columns at `timestamp` or before.
    /// Returns whether that is all there is, and no writer is about to.
    #[inline]
    pub fn hold(&self, number: u8, timestamp: u64) -> bool {
        let group = &self.0[number as usize];
        // Relaxed: who misses that there are writers for good raises a word in vain. The others are
        // sequentially consistent: see the module's documentation.
        if group.writers.load(Ordering::Relaxed) & OFTEN == 0
            && group.read.load(Ordering::SeqCst) < timestamp
        {
            group.read.fetch_max(timestamp + LEASE, Ordering::SeqCst);
        }
        group.writers.load(Ordering::SeqCst) == 0 || Canary::GroupWritersIgnored.sings()
    }

    /// Counts the attempt among the writers of these stripes. Returns those where it has to be
    /// taken off again.
    pub fn enter(&self, mask: Mask) -> Mask {
        let mut counted = 0;
        let mut rest = mask;
        for group in self.each(mask) {
            let number = rest.trailing_zeros();
            rest &= rest - 1;
            // Sequentially consistent: before the timestamp is taken.
            if group.writers.load(Ordering::SeqCst) & OFTEN == 0 {
                group.writers.fetch_add(1, Ordering::SeqCst);
                counted |= 1 << number;
            }
        }
        counted
    }

    /// Up to when split columns of these stripes were read, of which an attempt that is counted
    /// takes no timestamp.
    pub fn read_until(&self, mask: Mask) -> u64 {
        // Sequentially consistent: after the count.
        let read = |group: &Group| group.read.load(Ordering::SeqCst);
        self.each(mask).map(read).max().unwrap_or(0)
    }

    /// Says that an attempt that is counted writes split columns of these stripes at `timestamp`,
    /// unless it fails.
    pub fn write(&self, mask: Mask, timestamp: u64) {
        for group in self.each(mask) {
            // Sequentially consistent: before any of its versions is committed, and before it
            // leaves the count.
            let last = group.written.fetch_max(timestamp, Ordering::SeqCst);
            // Relaxed: `close` is a count that orders nothing else.
            if last != u64::MAX
                && timestamp < last + CLOSE
                && group.close.fetch_add(1, Ordering::Relaxed) >= CLOSE_MAX
            {
                group.written.store(u64::MAX, Ordering::SeqCst);
                // For good. A writer that sees it has the readers' word before it, and needs no
                // count.
                group.writers.fetch_or(OFTEN, Ordering::SeqCst);
            }
        }
    }

    /// Takes an attempt off the count, when its versions are decided.
    pub fn leave(&self, counted: Mask) {
        for group in self.each(counted) {
            // Release, at least: a reader that finds no writer there sees what was committed.
            group.writers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_after_a_reader_sees_up_to_when_it_read() {
        let groups = Groups::new();
        assert!(groups.hold(3, 10) && groups.is_written_before(3, 0));
        let counted = groups.enter(1 << 3 | 1 << 5);
        assert_eq!(counted, 1 << 3 | 1 << 5);
        assert!(groups.read_until(counted) >= 10);
        assert!(!groups.hold(3, 12) && groups.hold(4, 12), "one is about to");
        groups.write(1 << 3, 40_000);
        groups.leave(counted);
        assert!(groups.hold(3, 13) && !groups.is_written_before(3, 39_999));
        assert!(groups.is_written_before(3, 40_000) && groups.is_written_before(5, 0));
    }

    #[test]
    fn where_split_columns_are_often_written_there_are_writers_for_good() {
        let groups = Groups::new();
        for timestamp in 1..=CLOSE_MAX + 2 {
            let counted = groups.enter(1);
            groups.write(1, timestamp);
            groups.leave(counted);
        }
        assert!(!groups.hold(0, 50) && !groups.is_written_before(0, 1 << 40));
        assert_eq!(groups.enter(1), 0);
    }
}
