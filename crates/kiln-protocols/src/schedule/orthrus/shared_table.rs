//! A lock table that all CC workers share (ORTHRUS §3.4), with a latch for each bucket.
//!
//! One CC worker takes all locks of a transaction, in the order of their addresses, as transactions
//! that others lock at the same time come between. Where it has to wait it is left in the queue of
//! that lock, and the thread that grants the lock goes on for it. So no transaction waits for a
//! lock before one that it has, and there are no deadlocks.
//!
//! # Whose a demand is
//!
//! A demand is with one thread at a time: with the one that takes locks for it, or, while it waits,
//! with the one that has the latch of the bucket in which it waits. `pending` are the locks that it
//! has not asked for yet: it is set before a request enters its queue, as another thread may go on
//! at once.
//!
//! One that is withdrawn is found by its CC worker where it waits, as it looks through its requests
//! in their order, each under its latch; or the thread that goes on for it has not come to that
//! request yet, and finds out when it has: it comes to the same latch afterwards, before it can
//! wait. It lets go what it has, and ends there.

use std::cell::UnsafeCell;
use std::ptr::null_mut;

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;

use crate::canary::Canary;
use crate::schedule::owned::queues::{self, dequeue, enqueue};
use crate::schedule::owned::{Demand, PartitionTable, Request, RequestState, Span, hash};
use crate::shared::locks::ByPlannedRecord;

/// Locks on a cache line of their own, used under their latch.
#[repr(align(64))]
struct Bucket {
    latch: AtomicBool,
    locks: UnsafeCell<queues::Bucket>,
}

/// One CC worker's handle to the locks of all.
pub struct SharedLockTable {
    buckets: Arc<[Bucket]>,
}

// SAFETY: the locks are used under the latch; requests belong to the thread that uses their bucket.
unsafe impl Sync for Bucket {}
// SAFETY: as above.
unsafe impl Send for Bucket {}

/// How far a demand has got.
enum Progress {
    /// It waits, and another thread may have it already.
    Waits,
    /// It has all its locks, or none as it was withdrawn.
    Through,
}

impl SharedLockTable {
    /// The number of buckets as a power of two.
    const BITS: u32 = 14;

    /// Uses the bucket of a request's lock, when no other thread does.
    ///
    /// # Safety
    /// The request is alive, and its lock does not change.
    #[inline]
    unsafe fn with_bucket<R>(
        &self,
        request: *const Request,
        body: impl FnOnce(&mut queues::Bucket) -> R,
    ) -> R {
        // SAFETY: the caller says that the request is alive, and that its lock does not change.
        let hash = hash(unsafe { (*request).lock });
        let bucket = &self.buckets[(hash >> (64 - SharedLockTable::BITS)) as usize];
        let mut spinner = Spinner::default();
        // Acquire pairs with the release below.
        while bucket.latch.load(Ordering::Relaxed) || bucket.latch.swap(true, Ordering::Acquire) {
            spinner.spin();
        }
        // SAFETY: under the latch.
        let result = body(unsafe { &mut *bucket.locks.get() });
        bucket.latch.store(false, Ordering::Release);
        result
    }

    /// Asks for the locks that a demand has not asked for yet, until it has to wait for one.
    /// `woken` gets the requests of others that have their lock now.
    ///
    /// # Safety
    /// This thread alone may use the demand.
    unsafe fn go_on(&self, demand: *mut Demand, woken: &mut *mut Request) -> Progress {
        // SAFETY: this thread alone may use the demand, as the caller says; a request that waits is
        // not touched any more.
        unsafe {
            Demand::note_reads(demand);
            Demand::note_progress(demand);
            let span = (&(*demand).spans)[(*demand).stage];
            let requests = (*demand).first;
            while (*demand).pending > 0 {
                let at = span.end - (*demand).pending;
                (*demand).pending -= 1;
                let request = requests.add(at as usize);
                let progress = self.with_bucket(request, |bucket| {
                    if enqueue(bucket, request) {
                        return None;
                    }
                    if Canary::ForwardedEarly.sings() {
                        // No thread goes on for it a second time.
                        (*request).demand = null_mut();
                        return None;
                    }
                    if !(*demand).is_withdrawn() {
                        (*demand).has_waited = true;
                        return Some(Progress::Waits);
                    }
                    dequeue(bucket, request, &mut |_| unreachable!("it was the last"));
                    Some(Progress::Through)
                });
                match progress {
                    None => {}
                    Some(Progress::Through) => {
                        (*demand).give_up();
                        self.let_go(requests, span.start..at, woken);
                        return Progress::Through;
                    }
                    Some(Progress::Waits) => return Progress::Waits,
                }
            }
            Progress::Through
        }
    }

    /// Takes back granted requests.
    ///
    /// # Safety
    /// They are granted, and this thread alone may use them.
    unsafe fn let_go(
        &self,
        requests: *mut Request,
        range: std::ops::Range<u32>,
        woken: &mut *mut Request,
    ) {
        for at in range {
            // SAFETY: the caller says that the requests are granted and this thread's alone. One
            // that is granted here is its demand's, which waits until a thread goes on for it; only
            // this thread knows of it.
            unsafe {
                let request = requests.add(at as usize);
                self.with_bucket(request, |bucket| {
                    dequeue(bucket, request, &mut |next| note(next, woken));
                });
            }
        }
    }

    /// Goes on for those who waited for what was let go.
    ///
    /// # Safety
    /// Their requests were granted by this thread.
    unsafe fn wake(&self, mut woken: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        while !woken.is_null() {
            point("orthrus.woken");
            // SAFETY: this thread has granted the request, as the caller says, so the demand is its
            // own until that waits again.
            unsafe {
                let demand = (*woken).demand;
                woken = (*woken).sibling;
                if let Progress::Through = self.go_on(demand, &mut woken) {
                    granted(demand);
                }
            }
        }
    }
}

/// Remembers a request that was granted, for whose demand this thread is to go on.
///
/// # Safety
/// It waited, and this thread has the latch of its bucket.
unsafe fn note(request: *mut Request, woken: &mut *mut Request) {
    // SAFETY: the request is in the bucket whose latch the caller has.
    unsafe {
        if !(*request).demand.is_null() {
            (*request).sibling = *woken;
            *woken = request;
        }
    }
}

impl PartitionTable for SharedLockTable {
    const DEDICATED: bool = true;
    type Naming = ByPlannedRecord;
    const PARTITIONS_MAX: usize = 32;

    fn several(count: usize) -> Vec<SharedLockTable> {
        let bucket = |_| Bucket {
            latch: AtomicBool::new(false),
            locks: UnsafeCell::new(null_mut()),
        };
        let buckets: Arc<[Bucket]> = (0..1 << SharedLockTable::BITS).map(bucket).collect();
        for (number, bucket) in buckets.iter().enumerate() {
            let address = std::ptr::from_ref(bucket).addr();
            name_range(address, size_of::<Bucket>(), || {
                format!("lock_table.bucket[{number}]")
            });
        }
        let table = |_| SharedLockTable {
            buckets: buckets.clone(),
        };
        (0..count).map(table).collect()
    }

    unsafe fn acquire_span(
        &mut self,
        demand: *mut Demand,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool {
        let mut woken = null_mut();
        // SAFETY: the caller says that the transaction waits, and that this thread alone may use
        // its demand.
        unsafe {
            (*demand).pending = span.end - span.start;
            let progress = self.go_on(demand, &mut woken);
            self.wake(woken, granted);
            matches!(progress, Progress::Through)
        }
    }

    unsafe fn release_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) {
        let mut woken = null_mut();
        // SAFETY: the transaction has all locks of the span, as the caller says, and other
        // partitions use none of its requests.
        unsafe {
            self.let_go(requests, span.start..span.end, &mut woken);
            self.wake(woken, granted);
        }
    }

    unsafe fn withdraw_span(
        &mut self,
        requests: *mut Request,
        span: Span,
        granted: &mut impl FnMut(*mut Demand),
    ) -> bool {
        let mut woken = null_mut();
        for at in span.start..span.end {
            // SAFETY: the demand's memory stays, as the caller says, and a request is looked at
            // under its latch. Where it waits there, the demand is this thread's once it is out of
            // the queue.
            unsafe {
                let request = requests.add(at as usize);
                let state = self.with_bucket(request, |bucket| {
                    let state = (*request).state;
                    if state == RequestState::Here {
                        dequeue(bucket, request, &mut |next| note(next, &mut woken));
                    }
                    state
                });
                match state {
                    RequestState::Granted => {}
                    RequestState::Elsewhere => return false,
                    RequestState::Here => {
                        self.let_go(requests, span.start..at, &mut woken);
                        self.wake(woken, granted);
                        return true;
                    }
                }
            }
        }
        false
    }

    unsafe fn take_free(&mut self, request: *mut Request, _: &mut impl FnMut(*mut Demand)) -> bool {
        // SAFETY: the request is this thread's and stays where it is, as the caller says; it is
        // linked under the bucket's latch.
        unsafe {
            self.with_bucket(request, |bucket| {
                let is_granted = enqueue(bucket, request);
                if !is_granted {
                    dequeue(bucket, request, &mut |_| unreachable!("it was the last"));
                }
                is_granted
            })
        }
    }

    unsafe fn upgrade(&mut self, request: *mut Request) -> bool {
        // SAFETY: the request was put in by `take_free`, as the caller says, and is looked at under
        // the bucket's latch.
        unsafe { self.with_bucket(request, |_| queues::upgrade(request)) }
    }

    unsafe fn give_back(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: the request was granted by `take_free`, as the caller says, and is this thread's.
        unsafe {
            let mut woken = null_mut();
            self.let_go(request, 0..1, &mut woken);
            self.wake(woken, granted);
        }
    }
}
