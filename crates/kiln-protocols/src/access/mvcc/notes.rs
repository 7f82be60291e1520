//! What workers note of old versions and deleted records, to look after it later (`reclaim.rs`).

use std::cell::UnsafeCell;
use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_storage::record::RecordRef;
use kiln_storage::schema::TableId;
use kiln_storage::table::Table;

/// Room in notes that a list has at most when its notes were taken over: enough for the steady
/// state, whatever it grew to.
const KEPT_CAPACITY: usize = 4_096;

/// A version of a record that is to be folded.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub(super) record: RecordRef,
    pub(super) table: *const Table,
    /// Its timestamp; of those that wait, the oldest that is not folded.
    pub(super) wts: u64,
}

/// A record that left the indexes when the clock was at `stamp`.
pub(super) struct Grave {
    pub(super) record: RecordRef,
    pub(super) table: *const Table,
    pub(super) stamp: u64,
}

/// What one worker has noted.
#[derive(Default)]
pub(super) struct Notes {
    /// Versions committed since.
    pub(super) fresh: VecDeque<Noted>,
    /// Versions that snapshots under way are in front of; their records have
    /// [`WAITING`](super::version::WAITING) set, and one entry each over all workers.
    pub(super) waiting: VecDeque<Noted>,
    pub(super) graves: VecDeque<Grave>,
    /// Graves that transactions have left since the last look: of rows that came and went in one.
    pub(super) left: usize,
}

impl Notes {
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.waiting.is_empty() && self.graves.is_empty()
    }

    /// Takes all notes out, and leaves room for the next ones.
    pub(super) fn take(&mut self) -> Notes {
        fn take<T>(list: &mut VecDeque<T>) -> VecDeque<T> {
            let room = list.capacity().min(KEPT_CAPACITY);
            std::mem::replace(list, VecDeque::with_capacity(room))
        }
        Notes {
            fresh: take(&mut self.fresh),
            waiting: take(&mut self.waiting),
            graves: take(&mut self.graves),
            left: std::mem::take(&mut self.left),
        }
    }

    /// Takes out what concerns one table.
    pub(super) fn take_of(&mut self, table: TableId) -> Notes {
        // SAFETY: the engine settles before it changes tables.
        let is_of = |noted: *const Table| unsafe { &*noted }.id() == table;
        fn split<T>(list: &mut VecDeque<T>, is_taken: impl Fn(&T) -> bool) -> VecDeque<T> {
            let (taken, left) = std::mem::take(list).into_iter().partition(is_taken);
            *list = left;
            taken
        }
        Notes {
            fresh: split(&mut self.fresh, |noted| is_of(noted.table)),
            waiting: split(&mut self.waiting, |noted| is_of(noted.table)),
            graves: split(&mut self.graves, |grave| is_of(grave.table)),
            left: 0,
        }
    }

    /// Adds what another worker has noted.
    pub(super) fn append(&mut self, mut other: Notes) {
        self.fresh.append(&mut other.fresh);
        self.waiting.append(&mut other.waiting);
        self.graves.append(&mut other.graves);
        self.left += other.left;
    }
}

/// The notes of the worker with one number.
#[repr(align(128))]
pub(super) struct NotesCell {
    pub(super) notes: UnsafeCell<Notes>,
    /// The epoch when the worker looked after its notes last, or noted the first one;
    /// [`NOTHING_NOTED`] if it has none.
    pub(super) since: AtomicU64,
}

/// The value of [`NotesCell::since`] without notes.
pub(super) const NOTHING_NOTED: u64 = u64::MAX;

impl Default for NotesCell {
    fn default() -> NotesCell {
        NotesCell {
            notes: UnsafeCell::default(),
            since: AtomicU64::new(NOTHING_NOTED),
        }
    }
}

impl NotesCell {
    /// Shows that there is something to look after, noted in `epoch`.
    #[inline]
    pub(super) fn show_noted(&self, epoch: u64) {
        // Relaxed: the ticker takes it for a reason to look closer.
        if self.since.load(Ordering::Relaxed) == NOTHING_NOTED {
            self.since.store(epoch, Ordering::Relaxed);
        }
    }

    /// Shows what is left after a look in `epoch`.
    pub(super) fn show_looked(&self, notes: &Notes, epoch: u64) {
        let since = match notes.is_empty() {
            true => NOTHING_NOTED,
            false => epoch,
        };
        self.since.store(since, Ordering::Relaxed);
    }
}

// SAFETY: used by the worker that has the number while its participant is active, by the one worker
// that has seized the participant, and by the one that settles while the gate is shut. The tables
// that notes point to live: the engine settles a table before it changes it.
unsafe impl Sync for NotesCell {}
// SAFETY: as for `Sync`: one thread at a time uses the notes, whichever that is.
unsafe impl Send for NotesCell {}
