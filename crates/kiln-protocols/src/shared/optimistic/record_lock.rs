//! A reader-writer lock in a record's `aux`, beside the claim: the next-highest bit says exclusive,
//! the bits below count the sharers. Who holds it exclusively may lock the record's tid and
//! install. The locks of an attempt are [`Locks`], and those of its write set are taken by
//! [`lock_write_set`](super::Optimistic::lock_write_set).

use kiln_platform::atomic::Ordering;
use kiln_storage::record::RecordRef;

use super::CLAIMED;
use crate::shared::record_map::RecordMap;

/// Held by one writer.
pub const EXCLUSIVE: u64 = 1 << 62;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Together with others.
    Shared,
    /// Alone.
    Exclusive,
}

/// Takes the shared lock if no writer holds it.
#[inline(always)]
pub fn try_share(record: RecordRef) -> bool {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen & EXCLUSIVE == 0 {
        // Acquire pairs with the release of the last writer: its row and its tid are visible.
        match word.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Takes the exclusive lock if the others that hold it are `own` sharers: none, or the caller
/// alone.
#[inline(always)]
fn try_take(record: RecordRef, own: u64) -> bool {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen & !CLAIMED == own {
        let taken = seen & CLAIMED | EXCLUSIVE;
        // Acquire pairs with the releases of the last writer and of the last sharers: what this one
        // does comes after what they did. Sequentially consistent for attempts that lock a record's
        // tid and then look whether another one has its lock (`healing/undisturbed.rs`).
        match word.compare_exchange_weak(seen, taken, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Takes the exclusive lock if no attempt holds it.
#[inline(always)]
pub fn try_lock(record: RecordRef) -> bool {
    try_take(record, 0)
}

/// Lets go of a lock.
#[inline(always)]
pub fn release(record: RecordRef, mode: Mode) {
    // Release pairs with the acquire of the next to take it.
    match mode {
        Mode::Shared => record.aux().fetch_sub(1, Ordering::Release),
        Mode::Exclusive => record.aux().fetch_and(!EXCLUSIVE, Ordering::Release),
    };
}

/// The locks of one attempt.
#[derive(Default)]
pub struct Locks {
    /// Each record once, with the mode in which it is held, if it still is.
    held: Vec<(RecordRef, Option<Mode>)>,
    by_record: RecordMap,
}

impl Locks {
    /// How the attempt holds `record`.
    #[inline]
    pub fn mode(&self, record: RecordRef) -> Option<Mode> {
        let position = self.by_record.get(record)?;
        self.held[position as usize].1
    }

    /// The greatest address among the records that are held; 0 without any.
    pub fn highest(&self) -> u64 {
        let held = self.held.iter().filter(|(_, mode)| mode.is_some());
        held.map(|(record, _)| record.address()).max().unwrap_or(0)
    }

    /// Takes the lock at once in at least this mode, or keeps what the attempt has and says no.
    #[inline]
    pub fn try_hold(&mut self, record: RecordRef, wanted: Mode) -> bool {
        let own = self.mode(record);
        if own >= Some(wanted) {
            return true;
        }
        let taken = match (wanted, own) {
            (Mode::Shared, _) => try_share(record),
            (Mode::Exclusive, None) => try_take(record, 0),
            (Mode::Exclusive, Some(_)) => try_take(record, 1),
        };
        if taken {
            self.note(record, wanted);
        }
        taken
    }

    /// Notes that the attempt holds a lock that it did not take here: that of a record which it has
    /// made.
    pub fn note(&mut self, record: RecordRef, mode: Mode) {
        match self.by_record.get(record) {
            Some(position) => self.held[position as usize].1 = Some(mode),
            None => {
                self.by_record.insert(record, self.held.len() as u32);
                self.held.push((record, Some(mode)));
            }
        }
    }

    /// Lets go of one record, if it is held.
    pub fn release(&mut self, record: RecordRef) {
        if let Some(position) = self.by_record.get(record)
            && let Some(mode) = self.held[position as usize].1.take()
        {
            release(record, mode);
        }
    }

    /// Lets go of all records that `keeps` says no of.
    pub fn release_unless(&mut self, keeps: impl Fn(RecordRef) -> bool) {
        for (record, mode) in &mut self.held {
            if mode.is_some()
                && !keeps(*record)
                && let Some(mode) = mode.take()
            {
                release(*record, mode);
            }
        }
    }

    /// Lets go of all records at `address` and above.
    pub fn release_from(&mut self, address: u64) {
        for (record, mode) in &mut self.held {
            if record.address() >= address
                && let Some(mode) = mode.take()
            {
                release(*record, mode);
            }
        }
    }

    /// Lets go of everything.
    #[inline]
    pub fn release_all(&mut self) {
        if self.held.is_empty() {
            return;
        }
        for (record, mode) in self.held.drain(..) {
            if let Some(mode) = mode {
                release(record, mode);
            }
        }
        self.by_record.clear();
    }
}
