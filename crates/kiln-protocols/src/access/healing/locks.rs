//! The locks of records, exclusive, and who waits for them.
//!
//! A hot record's cache line has the lock, the tid and often the row. Whoever has the lock restores an attempt with it, and
//! each who comes to wait, or looks whether it is free, takes the line away: that sets the pace of the chain of those that
//! write the record. So those that wait form a queue elsewhere, in a *waiting room*. It has a queue for each of some records, and
//! cells to look at (after Dice and Kogan, *TWA: Ticket Locks Augmented with a Waiting Array*, Euro-Par 2019). Who lets
//! go of a lock rings the cell of the first in the queue, who comes and takes it.
//!
//! # Invariants
//!
//! - A lock is had by who set [`EXCLUSIVE`] in the record's `aux`. The room says only who tries when.
//! - No ring is missed: who joins a queue looks at the lock afterwards, and who lets go of a lock looks at the
//!   queue afterwards. These four accesses are sequentially consistent. A cell is read before what it is about.
//! - Who has a ticket leaves the queue with the lock, and passes on when it lets go. Only a breakdown ends waiting
//!   earlier, and the database with it.
//! - A queue is of one record. Where another record has the place, one waits beside the record: nobody waits for those
//!   that want something else.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::Arc;
use kiln_platform::{memory, thread};
use kiln_storage::record::RecordRef;

use crate::shared::optimistic::CLAIMED;
use crate::shared::optimistic::record_lock::EXCLUSIVE;
use crate::shared::record_map::RecordMap;

/// Looks at a cell before the core is given up for a moment: whoever holds the lock may be without one.
const LOOKS_BEFORE_YIELD: u32 = 512;

/// The longest pause between two looks at a lock that is waited for beside its record, in spins. The pauses double, so
/// that nobody waits for twice as long as it has to.
const PAUSE_MAX: u64 = 256;

/// The bits of a counter of tickets, and of a record's address, which is a multiple of sixteen.
const TICKET_BITS: u32 = 10;
const TICKETS: u64 = (1 << TICKET_BITS) - 1;
const ADDRESS_BITS: u32 = 48;

/// A queue of a record in one word: the record, the next ticket, and how many tickets have passed. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Queue(u64);

impl Queue {
    const NONE: Queue = Queue(0);

    fn of(record: RecordRef, next: u64, passed: u64) -> Queue {
        let address = record.address() & ((1 << ADDRESS_BITS) - 1);
        Queue(
            address >> 4 << (2 * TICKET_BITS) | (next & TICKETS) << TICKET_BITS | passed & TICKETS,
        )
    }

    fn is_of(self, record: RecordRef) -> bool {
        self.0 >> (2 * TICKET_BITS) == Queue::of(record, 0, 0).0 >> (2 * TICKET_BITS)
    }

    fn next(self) -> u64 {
        self.0 >> TICKET_BITS & TICKETS
    }

    /// The ticket of the first that waits.
    fn first(self) -> u64 {
        self.0 & TICKETS
    }

    /// With another one at its end, unless it is full.
    fn joined(self, record: RecordRef) -> Option<Queue> {
        let joined = Queue::of(record, self.next() + 1, self.first());
        (joined.next() != joined.first()).then_some(joined)
    }

    /// Without its first.
    fn passed(self, record: RecordRef) -> Queue {
        let passed = Queue::of(record, self.next(), self.first() + 1);
        match passed.next() == passed.first() {
            true => Queue::NONE,
            false => passed,
        }
    }
}

/// A word with cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Cell(AtomicU64);

/// The queues and cells of the workers of one database.
pub struct WaitingRoom {
    queues: Box<[Cell]>,
    cells: Box<[Cell]>,
}

impl Default for WaitingRoom {
    fn default() -> WaitingRoom {
        let cells = || (0..WaitingRoom::PLACES).map(|_| Cell::default()).collect();
        WaitingRoom {
            queues: cells(),
            cells: cells(),
        }
    }
}

impl WaitingRoom {
    /// More than there are cores, so that few share one.
    const PLACES: usize = 256;

    fn place(record: RecordRef) -> usize {
        (memory::hash(record.address()) >> 40) as usize
    }

    fn queue(&self, record: RecordRef) -> &AtomicU64 {
        &self.queues[WaitingRoom::place(record) % WaitingRoom::PLACES].0
    }

    fn cell(&self, record: RecordRef, ticket: u64) -> &AtomicU64 {
        let place = WaitingRoom::place(record).wrapping_add(ticket as usize);
        &self.cells[place % WaitingRoom::PLACES].0
    }

    /// Joins the record's queue; gives the ticket. `None` where another record has its place.
    fn join(&self, record: RecordRef) -> Option<u64> {
        let word = self.queue(record);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let queue = match Queue(seen) {
                Queue::NONE => Queue::of(record, 0, 0),
                queue if queue.is_of(record) => queue,
                _ => return None,
            };
            let joined = queue.joined(record)?;
            // Sequentially consistent: see the module's documentation.
            let left =
                word.compare_exchange_weak(seen, joined.0, Ordering::SeqCst, Ordering::Relaxed);
            match left {
                Ok(_) => return Some(queue.next()),
                Err(now) => seen = now,
            }
        }
    }

    /// The record's lock was let go of, by one who has a ticket or by another one: rings the first in its queue.
    #[inline]
    fn pass_on(&self, record: RecordRef, has_ticket: bool) {
        let word = self.queue(record);
        // Sequentially consistent: see the module's documentation.
        let mut seen = word.load(Ordering::SeqCst);
        while has_ticket {
            let passed = Queue(seen).passed(record).0;
            match word.compare_exchange_weak(seen, passed, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    seen = passed;
                    break;
                }
                Err(now) => seen = now,
            }
        }
        if seen != Queue::NONE.0 && Queue(seen).is_of(record) {
            let first = Queue(seen).first();
            // Release: who hears it finds the lock free. Two that ring one cell may undo each other: who waits looks by
            // itself after a while.
            let cell = self.cell(record, first);
            let heard = cell.load(Ordering::Relaxed);
            cell.store(heard.wrapping_add(1), Ordering::Release);
        }
    }
}

/// The locks of one attempt.
#[derive(Default)]
pub(super) struct Locks {
    room: Arc<WaitingRoom>,
    /// Each record once, and how it is held.
    held: Vec<(RecordRef, Held)>,
    by_record: RecordMap,
}

/// How an attempt holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Not any more.
    No,
    /// It was free.
    Alone,
    /// It has stood in the queue for it.
    WithTicket,
}

impl Locks {
    /// Locks of which others of the same database hear.
    pub fn sharing(room: Arc<WaitingRoom>) -> Locks {
        Locks {
            room,
            ..Locks::default()
        }
    }

    /// Whether the attempt holds `record`.
    #[inline]
    pub fn holds(&self, record: RecordRef) -> bool {
        let position = self.by_record.get(record);
        position.is_some_and(|position| self.held[position as usize].1 != Held::No)
    }

    /// Takes the lock if nobody holds it; whether the attempt has it.
    #[inline]
    pub fn try_hold(&mut self, record: RecordRef) -> bool {
        if self.holds(record) {
            return true;
        }
        let is_taken = try_take(record);
        if is_taken {
            self.note_as(record, Held::Alone);
        }
        is_taken
    }

    /// Takes the lock, after those that wait for it already. Says no when `gives_up` did.
    pub fn hold(&mut self, record: RecordRef, gives_up: impl Fn() -> bool) -> bool {
        // Relaxed: a hint. Who finds a queue does not touch the record.
        let queue = Queue(self.room.queue(record).load(Ordering::Relaxed));
        if !queue.is_of(record) && self.try_hold(record) {
            return true;
        }
        let held = match self.room.join(record) {
            Some(ticket) => self
                .wait(record, ticket, gives_up)
                .then_some(Held::WithTicket),
            None => wait_beside(record, gives_up).then_some(Held::Alone),
        };
        if let Some(held) = held {
            self.note_as(record, held);
        }
        held.is_some()
    }

    /// Waits until a ticket is the first, and takes the lock.
    fn wait(&self, record: RecordRef, ticket: u64, gives_up: impl Fn() -> bool) -> bool {
        let (queue, cell) = (self.room.queue(record), self.room.cell(record, ticket));
        loop {
            // Sequentially consistent, as is what follows: see the module's documentation.
            let heard = cell.load(Ordering::SeqCst);
            if Queue(queue.load(Ordering::SeqCst)).first() == ticket && try_take(record) {
                return true;
            }
            let mut looks = 0;
            // Relaxed: the queue and the lock say what has happened.
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
        }
    }

    /// Notes that the attempt holds a lock that it did not take here: that of a record which it has made.
    pub fn note(&mut self, record: RecordRef) {
        self.note_as(record, Held::Alone);
    }

    fn note_as(&mut self, record: RecordRef, held: Held) {
        match self.by_record.get(record) {
            Some(position) => self.held[position as usize].1 = held,
            None => {
                self.by_record.insert(record, self.held.len() as u32);
                self.held.push((record, held));
            }
        }
    }

    /// Lets go of one record, if it is held.
    pub fn release(&mut self, record: RecordRef) {
        if let Some(position) = self.by_record.get(record) {
            let held = &mut self.held[position as usize].1;
            self.room.release(record, std::mem::replace(held, Held::No));
        }
    }

    /// Lets go of all records that `keeps` says no of.
    pub fn release_unless(&mut self, keeps: impl Fn(RecordRef) -> bool) {
        for (record, held) in &mut self.held {
            if *held != Held::No && !keeps(*record) {
                self.room
                    .release(*record, std::mem::replace(held, Held::No));
            }
        }
    }

    /// Lets go of everything.
    #[inline]
    pub fn release_all(&mut self) {
        if self.held.is_empty() {
            return;
        }
        for (record, held) in self.held.drain(..) {
            self.room.release(record, held);
        }
        self.by_record.clear();
    }
}

impl WaitingRoom {
    #[inline]
    fn release(&self, record: RecordRef, held: Held) {
        if held == Held::No {
            return;
        }
        // Release pairs with the acquire of the next to take it. Sequentially consistent: see the module's documentation.
        record.aux().fetch_and(!EXCLUSIVE, Ordering::SeqCst);
        self.pass_on(record, held == Held::WithTicket);
    }
}

/// Takes the lock of a record if nobody has it.
#[inline]
fn try_take(record: RecordRef) -> bool {
    let word = record.aux();
    // Sequentially consistent: see the module's documentation.
    let mut seen = word.load(Ordering::SeqCst);
    while seen & !CLAIMED == 0 {
        // Acquire pairs with the release of the last holder. Sequentially consistent for those who lock a record's tid and
        // then look whether somebody has its lock (`undisturbed.rs`).
        let taken = seen | EXCLUSIVE;
        match word.compare_exchange_weak(seen, taken, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Waits for the lock of a record that has no queue, and takes it.
#[cold]
fn wait_beside(record: RecordRef, gives_up: impl Fn() -> bool) -> bool {
    let mut pause = 1;
    while !try_take(record) {
        if gives_up() {
            return false;
        }
        match pause {
            PAUSE_MAX => thread::yield_now(),
            _ => pause *= 2,
        }
        thread::pause(pause);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_go_round_and_the_last_leaves_no_queue() {
        // SAFETY: only its address is looked at.
        let record = |address| unsafe { RecordRef::from_address(address) };
        let (one, other) = (record(0x7fff_1234_5670), record(0x7fff_1234_5680));
        let mut queue = Queue::of(one, 0, 0);
        for ticket in 0..3 * TICKETS {
            assert_eq!(queue.next(), ticket & TICKETS);
            queue = queue.joined(one).expect("it has room");
            queue = queue.joined(one).expect("it has room");
            assert!(queue.is_of(one) && !queue.is_of(other));
            queue = queue.passed(one);
            assert_eq!(queue.first(), (ticket + 1) & TICKETS);
            let last = queue.first();
            assert_eq!(queue.passed(one), Queue::NONE);
            queue = Queue::of(one, last, last);
        }
        let mut full = queue;
        for _ in 0..TICKETS {
            full = full.joined(one).expect("it has room");
        }
        assert_eq!(full.joined(one), None);
    }
}
