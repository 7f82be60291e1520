//! Queues of requests, for a lock manager that knows which transactions wait for which. They are
//! kept under one latch.
//!
//! A request is granted when it is in the way of none before it, and keeps its lock until it goes.
//! One who has requests in several queues runs when all are granted. Requests are made in one
//! critical section, so no transactions wait in a circle: in each queue they are in the order of
//! their critical sections.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_storage::table::WORKERS_MAX;

use crate::shared::ranges::nodes::Modes;

/// No entry.
pub const NONE: u32 = u32::MAX;

/// A request.
#[derive(Clone, Copy)]
struct Entry {
    next: u32,
    txn: u32,
    modes: Modes,
    is_granted: bool,
}

/// Where a request is kept, in two words: the next one, and the rest.
#[derive(Default)]
struct Kept {
    next: Word,
    rest: Word,
}

impl Kept {
    #[inline(always)]
    fn get(&self) -> Entry {
        let rest = self.rest.get();
        Entry {
            next: self.next.get(),
            txn: rest >> 5,
            modes: Modes((rest & 15) as u8),
            is_granted: rest & 16 != 0,
        }
    }

    #[inline(always)]
    fn set(&self, entry: Entry) {
        self.next.set(entry.next);
        let granted = u32::from(entry.is_granted) << 4;
        self.rest
            .set(entry.txn << 5 | granted | u32::from(entry.modes.0));
    }
}

/// A word of what is kept under a latch: an atomic one, so that the machine model sees who touches
/// it.
#[derive(Default)]
pub struct Word(AtomicU32);

impl Word {
    /// Its value.
    #[inline(always)]
    pub fn get(&self) -> u32 {
        // Relaxed, as below: the latch orders them.
        self.0.load(Ordering::Relaxed)
    }

    /// Gives it another value.
    #[inline(always)]
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// The requests for one lock, the first one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    first: u32,
}

impl Queue {
    /// No requests.
    pub const EMPTY: Queue = Queue { first: NONE };

    /// The one whose first request is at a place.
    pub fn at(first: u32) -> Queue {
        Queue { first }
    }

    /// The place of its first request.
    pub fn first(self) -> u32 {
        self.first
    }

    /// Whether there are no requests.
    pub fn is_empty(self) -> bool {
        self.first == NONE
    }
}

/// The requests of all queues, in memory that is used again.
pub struct Queues {
    entries: Vec<Kept>,
    free: u32,
    /// By transaction, known by its worker: its requests that are not granted.
    pending: Box<[u32]>,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues {
            entries: Vec::new(),
            free: NONE,
            pending: vec![0; WORKERS_MAX].into(),
        }
    }
}

impl Queues {
    fn allocate(&mut self, entry: Entry) -> u32 {
        match self.free {
            NONE => {
                let kept = Kept::default();
                kept.set(entry);
                self.entries.push(kept);
                self.entries.len() as u32 - 1
            }
            free => {
                let kept = &self.entries[free as usize];
                self.free = kept.next.get();
                kept.set(entry);
                free
            }
        }
    }

    /// Whether a transaction has all its locks.
    pub fn has_all(&self, txn: u32) -> bool {
        self.pending[txn as usize] == 0
    }

    /// Whether one of these has, or waits for, what is in the way of these modes.
    pub fn is_taken(&self, queue: Queue, by: impl Fn(u32) -> bool, modes: Modes) -> bool {
        let (mut at, conflicts) = (queue.first, modes.conflicts().0);
        while at != NONE {
            let entry = self.entries[at as usize].get();
            if by(entry.txn) && entry.modes.0 & conflicts != 0 {
                return true;
            }
            at = entry.next;
        }
        false
    }

    /// Adds a transaction's request at the end of a queue, or more modes to the one that it has.
    /// What is behind that one is not in the way of the modes that it had, and must not be in the
    /// way of these.
    pub fn request(&mut self, queue: &mut Queue, txn: u32, modes: Modes) {
        let (mut at, mut last, mut own) = (queue.first, NONE, NONE);
        let mut others = 0;
        while at != NONE {
            let entry = self.entries[at as usize].get();
            match entry.txn == txn {
                true => own = at,
                false => others |= entry.modes.0,
            }
            (last, at) = (at, entry.next);
        }
        if own == NONE {
            let entry = Entry {
                next: NONE,
                txn,
                modes: Modes(0),
                is_granted: true,
            };
            own = self.allocate(entry);
            match last {
                NONE => queue.first = own,
                last => self.entries[last as usize].next.set(own),
            }
        }
        let kept = &self.entries[own as usize];
        let mut entry = kept.get();
        entry.modes.0 |= modes.0;
        if entry.is_granted && modes.conflicts().0 & others != 0 {
            entry.is_granted = false;
            self.pending[txn as usize] += 1;
        }
        kept.set(entry);
    }

    /// Takes a transaction's request back, if it has one here. `granted` gets those who have all
    /// their locks because of that.
    pub fn withdraw(&mut self, queue: &mut Queue, txn: u32, granted: &mut Vec<u32>) {
        let (mut at, mut before) = (queue.first, NONE);
        let mut earlier = 0;
        while at != NONE {
            let kept = &self.entries[at as usize];
            let mut entry = kept.get();
            let next = entry.next;
            if entry.txn == txn {
                if !entry.is_granted {
                    self.pending[txn as usize] -= 1;
                }
                kept.next.set(self.free);
                self.free = at;
                match before {
                    NONE => queue.first = next,
                    before => self.entries[before as usize].next.set(next),
                }
                at = next;
                continue;
            }
            if !entry.is_granted && entry.modes.conflicts().0 & earlier == 0 {
                entry.is_granted = true;
                kept.set(entry);
                let pending = &mut self.pending[entry.txn as usize];
                *pending -= 1;
                if *pending == 0 {
                    granted.push(entry.txn);
                }
            }
            earlier |= entry.modes.0;
            (before, at) = (at, next);
        }
    }

    /// A copy of a queue, for a part of what it was for.
    pub fn copy(&mut self, queue: Queue) -> Queue {
        let (mut at, mut copy, mut last) = (queue.first, Queue::EMPTY, NONE);
        while at != NONE {
            let entry = self.entries[at as usize].get();
            if !entry.is_granted {
                self.pending[entry.txn as usize] += 1;
            }
            let new = self.allocate(Entry {
                next: NONE,
                ..entry
            });
            match last {
                NONE => copy.first = new,
                last => self.entries[last as usize].next.set(new),
            }
            (last, at) = (new, entry.next);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_more_of_what_it_has_keeps_it_and_nobody_waits_for_ever() {
        let (exclusive, shared) = (Modes::of(true).0, Modes::of(false).0);
        let mut queues = Queues::default();
        let mut queue = Queue::EMPTY;
        queues.request(&mut queue, 1, exclusive);
        queues.request(&mut queue, 2, shared);
        assert!(queues.has_all(1) && !queues.has_all(2));
        // As an attempt does that meets more than it planned.
        assert!(!queues.is_taken(queue, |txn| txn != 1, shared));
        queues.request(&mut queue, 1, shared);
        assert!(queues.has_all(1), "it runs");
        queues.request(&mut queue, 3, exclusive);
        let mut granted = Vec::new();
        queues.withdraw(&mut queue, 3, &mut granted);
        assert_eq!(granted, [], "one that runs is not let in again");
        queues.withdraw(&mut queue, 1, &mut granted);
        assert_eq!(granted, [2]);
        queues.withdraw(&mut queue, 2, &mut granted);
        assert!((1..=3).all(|txn| queues.has_all(txn)) && queue.is_empty());
    }

    #[test]
    fn who_wants_to_write_what_others_read_waits_for_them() {
        let (exclusive, shared) = (Modes::of(true).0, Modes::of(false).0);
        let mut queues = Queues::default();
        let mut queue = Queue::EMPTY;
        queues.request(&mut queue, 1, shared);
        queues.request(&mut queue, 2, shared);
        queues.request(&mut queue, 2, exclusive);
        assert!(!queues.has_all(2));
        let mut granted = Vec::new();
        queues.withdraw(&mut queue, 1, &mut granted);
        assert_eq!(granted, [2]);
    }
}
