//! The lock table of a partition.
//!
//! Everything here is plain memory that one thread uses, as it owns the partition; see `queues.rs`.

use std::ptr::null_mut;

use kiln_platform::plain;

use super::queues::{self, Bucket, dequeue, enqueue};
use super::{Demand, PartitionTable, Request, RequestState, Span};
use crate::canary::Canary;
use crate::shared::locks::ByPart;

/// The locks of a partition, used by its owner, which also does all work on the partition's records
/// or controls concurrency alone.
pub struct LockTable<const OWNERS_RUN: bool> {
    buckets: Box<[Bucket]>,
}

impl<const OWNERS_RUN: bool> LockTable<OWNERS_RUN> {
    /// The number of buckets as a power of two.
    const BITS: u32 = 12;

    /// The bucket of a request's lock.
    #[inline]
    fn bucket(&mut self, request: &Request) -> &mut Bucket {
        &mut self.buckets[(request.hash() >> (64 - Self::BITS)) as usize]
    }

    /// Puts a request into the queue of its lock; whether it is granted at once.
    ///
    /// # Safety
    /// The request stays where it is until it is taken back, and no other thread uses it; the
    /// caller owns the partition.
    unsafe fn acquire(&mut self, request: *mut Request) -> bool {
        // SAFETY: the caller owns the partition, so this request and all that are in the table are
        // its own; they stay where they are until they are taken back.
        unsafe { enqueue(self.bucket(&*request), request) }
    }

    /// Takes a request out of the queue of its lock, granted or not; `granted` gets each
    /// transaction that has all locks of its span now.
    ///
    /// # Safety
    /// The request was put in; the caller owns the partition.
    unsafe fn release(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: the caller owns the partition, so this request and all that are in the table are
        // its own, with their demands, which wait.
        unsafe {
            dequeue(self.bucket(&*request), request, &mut |next| {
                let demand = (*next).demand;
                if !demand.is_null() {
                    plain::reads_one(&raw const (*demand).pending);
                    plain::writes_one(&raw const (*demand).pending);
                    (*demand).pending -= 1;
                    if (*demand).pending == 0 {
                        granted(demand);
                    }
                }
            });
        }
    }
}

impl<const OWNERS_RUN: bool> PartitionTable for LockTable<OWNERS_RUN> {
    type Naming = ByPart;
    const DEDICATED: bool = !OWNERS_RUN;
    const OWNERS_RUN: bool = OWNERS_RUN;
    const PARTITIONS_MAX: usize = if OWNERS_RUN { 64 } else { 32 };

    fn several(count: usize) -> Vec<Self> {
        let table = |_| LockTable {
            buckets: vec![null_mut(); 1 << Self::BITS].into(),
        };
        (0..count).map(table).collect()
    }

    unsafe fn acquire_span(
        &mut self,
        demand: *mut Demand,
        span: Span,
        _: &mut impl FnMut(*mut Demand),
    ) -> bool {
        // SAFETY: this thread alone may use the demand, as the caller says; the requests are in its
        // memory, which stays where it is.
        unsafe {
            let requests = (*demand).first;
            let mut pending = 0;
            for at in span.start..span.end {
                pending += u32::from(!self.acquire(requests.add(at as usize)));
            }
            if Canary::ForwardedEarly.sings() {
                // More than ever come, so that no thread passes it on a second time.
                (*demand).pending = u32::MAX;
                return true;
            }
            (*demand).pending = pending;
            (*demand).has_waited |= pending > 0;
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
            // SAFETY: the requests of the span are in this partition, and each partition touches
            // its own.
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
        // SAFETY: the requests of the span are this partition's or on their way to it, and each
        // partition touches its own.
        let waits =
            own.any(|at| unsafe { (*requests.add(at as usize)).state == RequestState::Here });
        if waits {
            // SAFETY: one request waits here, so `acquire_span` has put all of the span in.
            unsafe { self.release_span(requests, span, granted) };
        }
        waits
    }

    unsafe fn take_free(
        &mut self,
        request: *mut Request,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool {
        // SAFETY: the request is the caller's and stays where it is; the caller owns the partition.
        unsafe {
            let is_granted = self.acquire(request);
            if !is_granted {
                self.release(request, granted);
            }
            is_granted
        }
    }

    unsafe fn upgrade(&mut self, request: *mut Request) -> bool {
        // SAFETY: `take_free` has put the request in, and the caller owns the partition.
        unsafe { queues::upgrade(request) }
    }

    unsafe fn give_back(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: `take_free` has put the request in, and the caller owns the partition.
        unsafe { self.release(request, granted) };
    }
}
