//! The counters of a partition, and the queue of its transactions.
//!
//! Plain memory that one thread uses, as it owns the partition.

use std::collections::VecDeque;
use std::ptr::null_mut;

use crate::canary::Canary;
use crate::schedule::owned::{Demand, PartitionTable, Request, RequestState, Span};
use crate::shared::locks::ByPart;

/// How many want a lock, or another one with the same counter.
#[derive(Clone, Copy, Default)]
struct Counter {
    /// Requests for it exclusively (Cx).
    exclusive: u32,
    /// Requests to share it (Cs).
    shared: u32,
    /// Of the exclusive ones, those of statements, which are in no queue.
    exclusive_taken: u32,
    /// Of the shared ones, those of statements.
    shared_taken: u32,
    /// The worker of all those statements, and one more, while it is the only one.
    taker: u32,
}

impl Counter {
    /// Whether no transaction has a request that is in the way.
    #[inline(always)]
    fn is_free_for(&self, exclusive: bool) -> bool {
        self.exclusive == 0 && !(exclusive && self.shared > 0)
    }

    /// Whether no statement has it in a way that is in the way.
    #[inline(always)]
    fn is_left_for(&self, exclusive: bool) -> bool {
        self.exclusive_taken == 0 && !(exclusive && self.shared_taken > 0)
    }

    /// Whether statements of one worker have all that there is, and of no other: their locks may
    /// share a counter.
    #[inline(always)]
    fn is_of(&self, taker: u32) -> bool {
        (self.exclusive, self.shared, self.taker)
            == (self.exclusive_taken, self.shared_taken, taker)
    }

    #[inline(always)]
    fn count(&mut self, exclusive: bool) -> &mut u32 {
        match exclusive {
            true => &mut self.exclusive,
            false => &mut self.shared,
        }
    }

    #[inline(always)]
    fn taken(&mut self, exclusive: bool) -> &mut u32 {
        match exclusive {
            true => &mut self.exclusive_taken,
            false => &mut self.shared_taken,
        }
    }
}

/// A transaction in the queue.
#[derive(Clone, Copy)]
struct Entry {
    /// None when it has left.
    demand: *mut Demand,
    /// Its requests in this partition.
    requests: *mut Request,
    count: u32,
    /// Whether it waits for earlier ones here. Else it runs, or waits for other partitions.
    is_blocked: bool,
}

/// The locks of a partition, used by its owner.
pub struct CounterTable {
    counters: Box<[Counter]>,
    /// The transactions that have requests here, in the order in which they came (TxnQueue).
    txn_queue: VecDeque<Entry>,
    /// The place of the first one.
    first: u32,
    /// How many entries behind the first one have left.
    left: usize,
}

impl CounterTable {
    /// The number of counters as a power of two: 256 KiB, as much as a core's own cache holds
    /// beside the rest.
    const BITS: u32 = 14;
    /// Entries that have left, at least, when the queue is closed up.
    const LEFT_MIN: usize = 64;

    #[inline(always)]
    fn counter(&mut self, request: &Request) -> &mut Counter {
        &mut self.counters[(request.hash() >> (64 - CounterTable::BITS)) as usize]
    }

    /// Lets the first of the queue run, if it waits: all that came before it have ended, and all
    /// that came after are blocked where they conflict. Only statements may be in its way; where
    /// one is, it leaves, as those behind it would wait for its client as well, whatever they want.
    #[inline]
    fn wake_first(&mut self, granted: &mut impl FnMut(*mut Demand)) {
        loop {
            while self
                .txn_queue
                .front()
                .is_some_and(|entry| entry.demand.is_null())
            {
                self.txn_queue.pop_front();
                self.first = self.first.wrapping_add(1);
                self.left -= 1;
            }
            let Some(first) = self.txn_queue.front_mut().filter(|entry| entry.is_blocked) else {
                return;
            };
            first.is_blocked = false;
            let (demand, count) = (first.demand, first.count as usize);
            // SAFETY: the transaction waits, and its requests here are this partition's.
            let requests = unsafe { std::slice::from_raw_parts_mut(first.requests, count) };
            let is_left = requests.iter().all(|request| {
                let exclusive = request.exclusive;
                self.counter(request).is_left_for(exclusive)
            });
            if !is_left {
                self.take_back(requests);
                // SAFETY: the transaction waited here.
                unsafe { (*demand).give_up() };
            }
            granted(demand);
            if is_left {
                return;
            }
        }
    }

    /// Takes the requests of a transaction back, which leaves the queue.
    fn take_back(&mut self, requests: &mut [Request]) {
        for request in requests.iter() {
            let exclusive = request.exclusive;
            *self.counter(request).count(exclusive) -= 1;
        }
        requests[0].state = RequestState::Elsewhere;
        let position = requests[0].place.wrapping_sub(self.first);
        self.txn_queue[position as usize].demand = null_mut();
        self.left += 1;
    }

    /// Closes the queue up where most of its entries have left: behind a first transaction that
    /// waits for a client who thinks, the others come and go.
    #[inline]
    fn close_up(&mut self) {
        if self.left >= CounterTable::LEFT_MIN && self.left > self.txn_queue.len() / 2 {
            self.remove_left();
        }
    }

    #[cold]
    fn remove_left(&mut self) {
        self.txn_queue.retain(|entry| !entry.demand.is_null());
        self.left = 0;
        for (position, entry) in self.txn_queue.iter().enumerate() {
            let place = self.first.wrapping_add(position as u32);
            // SAFETY: the transaction is in the queue, and what a request says of its place is this
            // partition's. The place that counts is that of its first request here.
            unsafe { (*entry.requests).place = place };
        }
    }
}

impl PartitionTable for CounterTable {
    type Naming = ByPart;
    const DEDICATED: bool = false;
    const PARTITIONS_MAX: usize = 64;
    const SEQUENCED: bool = true;

    fn several(count: usize) -> Vec<CounterTable> {
        let table = |_| CounterTable {
            counters: vec![Counter::default(); 1 << CounterTable::BITS].into(),
            txn_queue: VecDeque::with_capacity(1024),
            first: 0,
            left: 0,
        };
        (0..count).map(table).collect()
    }

    unsafe fn acquire_span(
        &mut self,
        demand: *mut Demand,
        span: Span,
        _: &mut impl FnMut(*mut Demand),
    ) -> bool {
        // SAFETY: the requests of the span are this thread's, as the caller says, and lie in the
        // demand's memory, which stays where it is.
        let requests = unsafe {
            let first = (*demand).first.add(span.start as usize);
            std::slice::from_raw_parts_mut(first, (span.end - span.start) as usize)
        };
        // All are compared before any is counted: two of them may have the same counter.
        let mut is_free = true;
        for request in requests.iter() {
            let exclusive = request.exclusive;
            is_free &= self.counter(request).is_free_for(exclusive);
        }
        if !is_free && self.txn_queue.is_empty() && !Canary::ForwardedEarly.sings() {
            // A statement is in its way: see `wake_first`.
            // SAFETY: the demand waits, so it is there; the flag is an atomic.
            unsafe { (*demand).give_up() };
            return true;
        }
        let place = self.first.wrapping_add(self.txn_queue.len() as u32);
        for request in requests.iter() {
            let exclusive = request.exclusive;
            *self.counter(request).count(exclusive) += 1;
        }
        // The first one stands for all.
        (requests[0].place, requests[0].state) = (place, RequestState::Here);
        is_free |= Canary::ForwardedEarly.sings();
        self.txn_queue.push_back(Entry {
            demand,
            requests: requests.as_mut_ptr(),
            count: requests.len() as u32,
            is_blocked: !is_free,
        });
        is_free
    }

    unsafe fn release_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) {
        // SAFETY: the requests of the span are in this partition, and each partition touches its
        // own.
        let requests = unsafe {
            let first = requests.add(span.start as usize);
            std::slice::from_raw_parts_mut(first, (span.end - span.start) as usize)
        };
        self.take_back(requests);
        self.wake_first(granted);
        self.close_up();
    }

    unsafe fn withdraw_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool {
        // SAFETY: the requests of the span are this partition's or on their way to it, and each
        // partition touches its own.
        let first = unsafe { &*requests.add(span.start as usize) };
        let waits = first.state == RequestState::Here && {
            let position = first.place.wrapping_sub(self.first);
            self.txn_queue[position as usize].is_blocked
        };
        if waits {
            // SAFETY: the span is in this partition's queue, whose owner the caller is.
            unsafe { self.release_span(requests, span, granted) };
        }
        waits
    }

    unsafe fn take_free(&mut self, request: *mut Request, _: &mut impl FnMut(*mut Demand)) -> bool {
        // SAFETY: the request stays where it is, and the caller alone uses it.
        let request = unsafe { &*request };
        let exclusive = request.exclusive;
        let taker = request.place + 1;
        let counter = self.counter(request);
        let is_free = counter.is_free_for(exclusive) || counter.is_of(taker);
        if is_free {
            let is_first = counter.exclusive_taken + counter.shared_taken == 0;
            counter.taker = match is_first || counter.taker == taker {
                true => taker,
                false => 0,
            };
            *counter.count(exclusive) += 1;
            *counter.taken(exclusive) += 1;
        }
        is_free
    }

    unsafe fn upgrade(&mut self, request: *mut Request) -> bool {
        // SAFETY: `take_free` has taken the lock for the request, which the caller alone uses.
        let request = unsafe { &mut *request };
        let counter = self.counter(request);
        let is_alone = counter.exclusive == 0 && counter.shared == 1;
        if is_alone {
            *counter = Counter {
                exclusive: 1,
                exclusive_taken: 1,
                taker: counter.taker,
                ..Counter::default()
            };
            request.exclusive = true;
        }
        is_alone
    }

    unsafe fn give_back(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: `take_free` has taken the lock for the request, which the caller alone uses.
        let request = unsafe { &*request };
        let exclusive = request.exclusive;
        let counter = self.counter(request);
        *counter.count(exclusive) -= 1;
        *counter.taken(exclusive) -= 1;
        self.wake_first(granted);
    }
}

#[cfg(test)]
mod tests {
    use kiln_storage::record::RecordRef;
    use kiln_storage::table::Part;

    use super::*;
    use crate::shared::planning::{Claim, Findings};

    fn claim(address: u64) -> Claim {
        Claim {
            // SAFETY: nothing follows it here.
            record: unsafe { RecordRef::from_address(address) },
            exclusive: true,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        }
    }

    fn one(address: u64) -> Box<Demand> {
        let mut demand = Demand::new(0);
        demand.set_in(&[claim(address)], 0);
        demand
    }

    fn acquire(table: &mut CounterTable, demand: &mut Demand) -> bool {
        let span = demand.spans[0];
        // SAFETY: this thread has the table and the demand.
        unsafe { table.acquire_span(demand, span, &mut |_| {}) }
    }

    /// Takes its locks back; returns the transactions that this lets run.
    fn release(table: &mut CounterTable, demand: &mut Demand) -> Vec<*mut Demand> {
        let (requests, span) = (demand.first, demand.spans[0]);
        let mut granted = Vec::new();
        // SAFETY: as above; it was granted.
        unsafe { table.release_span(requests, span, &mut |demand| granted.push(demand)) };
        granted
    }

    #[test]
    fn the_queue_behind_a_first_transaction_that_stays_is_short() {
        let mut tables = CounterTable::several(1);
        let table = &mut tables[0];
        let mut first = one(1 << 20);
        assert!(acquire(table, &mut first));
        let mut longest = 0;
        // Some stay for a while, so that those that are left are all over the queue.
        let mut staying = VecDeque::new();
        for round in 0..100_000_u64 {
            let mut other = one((2 << 20) + round % 64 * 4096);
            if acquire(table, &mut other) {
                staying.push_back(other);
            } else {
                // It shares a counter with one that stays.
                let (requests, span) = (other.first, other.spans[0]);
                // SAFETY: as above; it waits.
                assert!(unsafe { table.withdraw_span(requests, span, &mut |_| {}) });
            }
            if staying.len() > 7 {
                let at = (round % 8) as usize;
                let mut leaves = staying.remove(at).expect("eight stay");
                assert!(release(table, &mut leaves).is_empty());
            }
            longest = longest.max(table.txn_queue.len());
        }
        assert!(longest < 200, "{longest} entries");
        assert_eq!(table.txn_queue.capacity(), 1024);
        for leaves in &mut staying {
            assert!(release(table, leaves).is_empty());
        }
        assert!(release(table, &mut first).is_empty());
        assert!(table.txn_queue.is_empty() && table.left == 0);
        let is_zero = |counter: &Counter| (counter.exclusive, counter.shared) == (0, 0);
        assert!(table.counters.iter().all(is_zero));
    }

    /// A demand for some records, which a test reaches through the pointer alone, as a partition
    /// does.
    fn demand(addresses: &[u64]) -> *mut Demand {
        let claims: Vec<Claim> = addresses.iter().map(|&at| claim(at)).collect();
        let mut demand = Demand::new(0);
        demand.set(&claims, 1, |_| 0);
        Box::into_raw(demand)
    }

    #[test]
    fn a_transaction_that_wants_what_a_statement_has_does_not_stand_in_the_queue() {
        const BLOCK: u64 = 64;
        const HOT: u64 = 128;
        let mut table = CounterTable::several(1).remove(0);
        let mut statement = Request::new(claim(BLOCK), 0, null_mut());
        let demands = [&[HOT][..], &[BLOCK, HOT], &[HOT], &[BLOCK]].map(demand);
        let [runs, wants_both, behind, late] = demands;
        let mut granted = Vec::new();
        // SAFETY: all requests live until the end of the test, which is their only thread.
        unsafe {
            let acquire = |table: &mut CounterTable, demand| {
                let demand: *mut Demand = demand;
                let span = (&(*demand).spans)[0];
                table.acquire_span(demand, span, &mut |_| unreachable!("no transaction leaves"))
            };
            assert!(table.take_free(&mut statement, &mut |_| {}));
            assert!(acquire(&mut table, runs) && !(*runs).is_given_up());
            assert!(!acquire(&mut table, wants_both) && !acquire(&mut table, behind));
            let span = (&(*runs).spans)[0];
            table.release_span((*runs).first, span, &mut |demand| granted.push(demand));
            assert_eq!(granted, [wants_both, behind]);
            assert!((*wants_both).is_given_up() && !(*behind).is_given_up());
            table.release_span((*behind).first, span, &mut |_| unreachable!("nobody waits"));
            assert!(acquire(&mut table, late) && (*late).is_given_up());
            table.give_back(&mut statement, &mut |_| unreachable!("nobody waits"));
            (*late).set(&[claim(BLOCK)], 1, |_| 0);
            assert!(acquire(&mut table, late) && !(*late).is_given_up());
            for demand in demands {
                drop(Box::from_raw(demand));
            }
        }
    }
}
