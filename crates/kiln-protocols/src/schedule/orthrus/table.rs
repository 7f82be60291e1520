//! The lock table of a partition.
//!
//! Everything here is plain memory that one thread uses, as it owns the partition. A lock is a list of
//! requests in the order in which they came; requests are in the memory of their transactions, which stay
//! where they are until the last request was taken back. The table is a list of locks for each bucket,
//! linked through the first request of each lock.

use std::ptr::null_mut;

use crate::canary::Canary;
use crate::schedule::owned::{Demand, PartitionTable, Request, RequestState, Span};

/// The locks of a partition, used by its owner.
pub struct LockTable {
    buckets: Box<[*mut Request]>,
}

/// Where a lock is found: its first request, and where the pointer to that is.
struct Found {
    first: *mut Request,
    /// The first request of the lock before it in the bucket; none when it is the bucket's first.
    before: *mut Request,
    bucket: usize,
}

impl LockTable {
    /// The number of buckets as a power of two.
    const BITS: u32 = 12;

    /// Finds a lock, or the end of its bucket.
    ///
    /// # Safety
    /// The request, and all that are in the table, are alive, and the caller owns the partition.
    #[inline]
    unsafe fn find(&self, request: *const Request) -> Found {
        // SAFETY: by the contract.
        let (lock, hash) = unsafe { ((*request).lock, (*request).hash()) };
        let bucket = (hash >> (64 - LockTable::BITS)) as usize;
        let (mut first, mut before) = (self.buckets[bucket], null_mut());
        // SAFETY: requests in the table are alive, and the caller's alone.
        unsafe {
            while !first.is_null() && (*first).lock != lock {
                before = first;
                first = (*first).next_lock;
            }
        }
        Found {
            first,
            before,
            bucket,
        }
    }

    /// Lets the pointer to a lock point to `to`.
    ///
    /// # Safety
    /// As for [`LockTable::find`], which has found it.
    unsafe fn point(&mut self, found: &Found, to: *mut Request) {
        match found.before.is_null() {
            true => self.buckets[found.bucket] = to,
            // SAFETY: alive, by the contract.
            false => unsafe { (*found.before).next_lock = to },
        }
    }

    /// Puts a request into the queue of its lock; whether it is granted at once.
    ///
    /// # Safety
    /// The request stays where it is until it is taken back, and nobody else uses it; the caller owns the
    /// partition.
    unsafe fn acquire(&mut self, request: *mut Request) -> bool {
        // SAFETY: by the contract, for this request and all that are in the table.
        unsafe {
            let found = self.find(request);
            let first = found.first;
            (*request).next = null_mut();
            if first.is_null() {
                (*request).previous = null_mut();
                (*request).last = request;
                (*request).next_lock = null_mut();
                (*request).state = RequestState::Granted;
                self.point(&found, request);
                return true;
            }
            let last = (*first).last;
            (*request).previous = last;
            (*last).next = request;
            (*first).last = request;
            // If the last one shares the lock, then all do.
            let is_granted = !(*request).exclusive
                && (*last).state == RequestState::Granted
                && !(*last).exclusive;
            (*request).state = match is_granted {
                true => RequestState::Granted,
                false => RequestState::Here,
            };
            is_granted
        }
    }

    /// Takes a request out of the queue of its lock, granted or not; `granted` gets each transaction that
    /// has all locks of its span now.
    ///
    /// # Safety
    /// The request was put in; the caller owns the partition.
    unsafe fn release(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: by the contract, for this request and all that are in the table.
        unsafe {
            let found = self.find(request);
            let first = found.first;
            debug_assert!(!first.is_null(), "a request that is taken back is there");
            (*request).state = RequestState::Elsewhere;
            let (previous, next) = ((*request).previous, (*request).next);
            let mut now_first = first;
            if previous.is_null() {
                now_first = next;
                if next.is_null() {
                    self.point(&found, (*request).next_lock);
                    return;
                }
                (*next).previous = null_mut();
                (*next).last = (*request).last;
                (*next).next_lock = (*request).next_lock;
                self.point(&found, next);
            } else {
                (*previous).next = next;
                match next.is_null() {
                    true => (*first).last = previous,
                    false => (*next).previous = previous,
                }
            }
            // Whoever waits, waits for the holders, of whom the first in the queue is one.
            let mut at = now_first;
            while !at.is_null() && (*at).state != RequestState::Granted {
                if (*at).exclusive && at != now_first {
                    break;
                }
                (*at).state = RequestState::Granted;
                let demand = (*at).demand;
                if !demand.is_null() {
                    (*demand).pending -= 1;
                    if (*demand).pending == 0 {
                        granted(demand);
                    }
                }
                if (*at).exclusive {
                    break;
                }
                at = (*at).next;
            }
        }
    }
}

impl PartitionTable for LockTable {
    const DEDICATED: bool = true;
    const PARTITIONS_MAX: usize = 32;

    fn new(_: u16) -> LockTable {
        LockTable {
            buckets: vec![null_mut(); 1 << LockTable::BITS].into(),
        }
    }

    unsafe fn acquire_span(&mut self, demand: *mut Demand) -> bool {
        // SAFETY: by the contract; the requests are in the demand's memory, which stays where it is.
        unsafe {
            let span = (&(*demand).spans)[(*demand).stage];
            let requests = (*demand).first;
            let mut pending = 0;
            for at in span.start..span.end {
                pending += u32::from(!self.acquire(requests.add(at as usize)));
            }
            if Canary::ForwardedEarly.sings() {
                // More than ever come, so that nobody passes it on a second time.
                (*demand).pending = u32::MAX;
                return true;
            }
            (*demand).pending = pending;
            pending == 0
        }
    }

    unsafe fn release_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) {
        for at in span.start..span.end {
            // SAFETY: by the contract; each partition touches its own requests.
            unsafe { self.release(requests.add(at as usize), granted) };
        }
    }

    unsafe fn withdraw_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool {
        let mut own = span.start..span.end;
        // SAFETY: by the contract; each partition touches its own requests.
        let waits =
            own.any(|at| unsafe { (*requests.add(at as usize)).state == RequestState::Here });
        if waits {
            // SAFETY: by the contract.
            unsafe { self.release_span(requests, span, granted) };
        }
        waits
    }

    unsafe fn take_free(
        &mut self,
        request: *mut Request,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool {
        // SAFETY: by the contract.
        unsafe {
            let is_granted = self.acquire(request);
            if !is_granted {
                self.release(request, granted);
            }
            is_granted
        }
    }

    unsafe fn upgrade(&mut self, request: *mut Request) -> bool {
        // SAFETY: by the contract.
        unsafe {
            let is_alone = (*request).previous.is_null() && (*request).next.is_null();
            (*request).exclusive |= is_alone;
            is_alone
        }
    }

    unsafe fn give_back(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: by the contract.
        unsafe { self.release(request, granted) };
    }
}
