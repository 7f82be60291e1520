//! The locks of records: exclusive, first come, first served, and waited for away from the record.
//!
//! A worker that restores an attempt holds the record that others want, so that how fast a hot
//! record goes from one to the next is the pace of all. Those that look at its lock again and again
//! take its cache line from the lock's holder, and those that look seldom leave it unused for as
//! long. So each that waits has a ticket, and looks at one of the cells of a *waiting array*; who
//! lets go of the lock hands it to the next ticket and rings that cell (Dice and Kogan, *TWA:
//! Ticket Locks Augmented with a Waiting Array*, Euro-Par 2019).
//!
//! # The word
//!
//! `aux`: the claim, [`EXCLUSIVE`] while the record is locked, the next ticket, and how many
//! tickets were served. All but the claim is 0 when no worker holds the lock: who finds that takes
//! it without a ticket, and who lets go of it with no ticket out leaves that.
//!
//! # Invariants
//!
//! - While tickets are out the record is locked: the lock is handed over and never free in between.
//!   So who has locked the record's tid and then looks at the lock (`undisturbed.rs`) sees it.
//! - Who has a ticket waits until it is served. Only a breakdown ends that earlier, and the
//!   database with it.
//! - Cells are shared between tickets: who hears its cell looks at the word. The first of those
//!   that wait reads its cell before it looks at the word once more, so that no ring is missed.
//!   Those behind it need not look: should their turn come before they have read their cells, they
//!   find out, as they look now and then though nothing rings.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::{memory, thread};
use kiln_storage::record::RecordRef;

use crate::shared::optimistic::CLAIMED;
use crate::shared::optimistic::record_lock::EXCLUSIVE;
use crate::shared::record_map::RecordMap;

/// The bits of one counter of tickets.
const TICKETS: u64 = (1 << 31) - 1;
/// Where the next ticket is in the word.
const NEXT_SHIFT: u32 = 31;

/// Looks at a cell before the word is looked at all the same, and the core given up for a moment:
/// the holder of the lock may be without one.
const LOOKS_BEFORE_YIELD: u32 = 512;

/// A worker does not ring more often than this many bits can count.
const RINGS_BITS: u32 = 48;

/// The next ticket, and how many were served.
fn tickets(word: u64) -> (u64, u64) {
    (word >> NEXT_SHIFT & TICKETS, word & TICKETS)
}

/// `word` with other tickets.
fn with_tickets(word: u64, next: u64, served: u64) -> u64 {
    word & (CLAIMED | EXCLUSIVE) | (next & TICKETS) << NEXT_SHIFT | served & TICKETS
}

/// What those that wait look at.
#[repr(align(128))]
#[derive(Default)]
struct Cell(AtomicU64);

/// The cells of the workers of one database.
pub struct WaitingArray {
    cells: Box<[Cell]>,
    /// How many workers share them.
    workers: AtomicU64,
}

impl Default for WaitingArray {
    fn default() -> WaitingArray {
        WaitingArray {
            cells: (0..WaitingArray::CELLS).map(|_| Cell::default()).collect(),
            workers: AtomicU64::new(0),
        }
    }
}

impl WaitingArray {
    /// More than there are cores, so that few share one.
    const CELLS: usize = 256;

    fn cell(&self, record: RecordRef, ticket: u64) -> &AtomicU64 {
        let at = (memory::hash(record.address()) >> 40).wrapping_add(ticket);
        &self.cells[at as usize % WaitingArray::CELLS].0
    }

    /// Hands a lock to the next ticket, or leaves it free. A ring is another number each time, so
    /// that no waiter has to look at the cell first, whose line is with those that wait.
    #[inline]
    fn hand_over(&self, record: RecordRef, rings: &mut u64) {
        let word = record.aux();
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let (next, served) = tickets(seen);
            let left = match next == served {
                true => seen & CLAIMED,
                false => with_tickets(seen, next, served + 1),
            };
            // Release pairs with the acquire of the next to have the lock.
            match word.compare_exchange_weak(seen, left, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if next == served => return,
                Ok(_) => {
                    let cell = self.cell(record, served);
                    *rings += 1;
                    // Release: who hears this finds the word as it is now.
                    cell.store(*rings, Ordering::Release);
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }
}

/// The locks of one attempt.
#[derive(Default)]
pub(super) struct Locks {
    waiting_array: Arc<WaitingArray>,
    /// How often it has rung, above the bits that tell workers apart.
    rings: u64,
    /// Each record once, and whether it is held.
    held: Vec<(RecordRef, bool)>,
    by_record: RecordMap,
}

impl Locks {
    /// Locks of which others of the same database hear.
    pub fn sharing(waiting_array: Arc<WaitingArray>) -> Locks {
        // Relaxed: a number is all that is asked for.
        let worker = waiting_array.workers.fetch_add(1, Ordering::Relaxed);
        Locks {
            waiting_array,
            rings: (worker + 1) << RINGS_BITS,
            ..Locks::default()
        }
    }

    /// Whether the attempt holds `record`.
    #[inline]
    pub fn holds(&self, record: RecordRef) -> bool {
        let position = self.by_record.get(record);
        position.is_some_and(|position| self.held[position as usize].1)
    }

    /// Takes the lock if no worker holds it; whether the attempt has it.
    #[inline]
    pub fn try_hold(&mut self, record: RecordRef) -> bool {
        if self.holds(record) {
            return true;
        }
        let word = record.aux();
        let mut seen = word.load(Ordering::Relaxed);
        while seen & !CLAIMED == 0 {
            // Acquire pairs with the release of the last holder. Sequentially consistent for those
            // who lock a record's tid and then look whether another worker has its lock.
            let taken = seen | EXCLUSIVE;
            match word.compare_exchange_weak(seen, taken, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    self.note(record);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Takes the lock, after those that wait for it already, and does something `meanwhile` if it
    /// has to wait. Says no when `gives_up` did.
    pub fn hold(
        &mut self,
        record: RecordRef,
        meanwhile: impl Fn(),
        gives_up: impl Fn() -> bool,
    ) -> bool {
        if self.holds(record) {
            return true;
        }
        let word = record.aux();
        // The record's line is fetched once, to be written: a look before would fetch it to be
        // read.
        let mut seen = 0;
        loop {
            let is_free = seen & !CLAIMED == 0;
            let (ticket, served) = tickets(seen);
            let wanted = match is_free {
                true => seen | EXCLUSIVE,
                false => with_tickets(seen, ticket + 1, served),
            };
            // As in `try_hold`. Nothing is read before the lock is there.
            match word.compare_exchange(seen, wanted, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) if is_free => break,
                Ok(_) => {
                    if !self.wait((record, ticket), ticket == served, meanwhile, gives_up) {
                        return false;
                    }
                    break;
                }
                Err(now) => seen = now,
            }
        }
        self.note(record);
        true
    }

    /// Waits until a ticket is served. One that `is_next` may have been before it is heard.
    fn wait(
        &self,
        (record, ticket): (RecordRef, u64),
        is_next: bool,
        meanwhile: impl Fn(),
        gives_up: impl Fn() -> bool,
    ) -> bool {
        let (word, cell) = (record.aux(), self.waiting_array.cell(record, ticket));
        let serves = (ticket + 1) & TICKETS;
        let is_served = |seen| tickets(seen).1 == serves;
        // Acquire: the word is read after the cell.
        let mut heard = cell.load(Ordering::Acquire);
        meanwhile();
        // Acquire pairs with the release of the last holder. Sequentially consistent: as in
        // `try_hold`. Of those behind, one that was served already is found by a look without a
        // ring.
        if is_next && is_served(word.load(Ordering::SeqCst)) {
            return true;
        }
        loop {
            let mut looks = 0;
            // Relaxed: the word says what has happened.
            while cell.load(Ordering::Relaxed) == heard {
                looks += 1;
                if looks == LOOKS_BEFORE_YIELD {
                    if gives_up() {
                        return false;
                    }
                    thread::yield_now();
                    break;
                }
                thread::pause(1);
            }
            // Acquire: as above.
            heard = cell.load(Ordering::Acquire);
            if is_served(word.load(Ordering::SeqCst)) {
                return true;
            }
        }
    }

    /// Notes that the attempt holds a lock that it did not take here: that of a record which it has
    /// made.
    pub fn note(&mut self, record: RecordRef) {
        match self.by_record.get(record) {
            Some(position) => self.held[position as usize].1 = true,
            None => {
                self.by_record.insert(record, self.held.len() as u32);
                self.held.push((record, true));
            }
        }
    }

    /// Lets go of one record, if it is held.
    #[inline(always)]
    pub fn release(&mut self, record: RecordRef) {
        if !self.held.is_empty() {
            self.release_held(record);
        }
    }

    fn release_held(&mut self, record: RecordRef) {
        if let Some(position) = self.by_record.get(record)
            && std::mem::take(&mut self.held[position as usize].1)
        {
            self.waiting_array.hand_over(record, &mut self.rings);
        }
    }

    /// Lets go of all records that `keeps` says no of.
    pub fn release_unless(&mut self, keeps: impl Fn(RecordRef) -> bool) {
        for (record, is_held) in &mut self.held {
            if *is_held && !keeps(*record) {
                *is_held = false;
                self.waiting_array.hand_over(*record, &mut self.rings);
            }
        }
    }

    /// Lets go of everything.
    #[inline]
    pub fn release_all(&mut self) {
        if self.held.is_empty() {
            return;
        }
        for (record, is_held) in self.held.drain(..) {
            if is_held {
                self.waiting_array.hand_over(record, &mut self.rings);
            }
        }
        self.by_record.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_go_round_and_leave_the_other_bits() {
        for claim in [0, CLAIMED] {
            let word = with_tickets(claim | EXCLUSIVE, TICKETS, TICKETS - 1);
            assert_eq!(tickets(word), (TICKETS, TICKETS - 1));
            let word = with_tickets(word, TICKETS + 1, TICKETS);
            assert_eq!(tickets(word), (0, TICKETS));
            let word = with_tickets(word, 0, TICKETS + 1);
            assert_eq!((tickets(word), word), ((0, 0), claim | EXCLUSIVE));
        }
    }
}
