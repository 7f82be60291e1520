//! A partition of the locks: its lock table, and what its one owner does with it.
//!
//! Everything here is plain memory that one thread uses, as it owns the partition. A lock is a list of
//! requests in the order in which they came; requests are in the memory of their transactions, which stay
//! where they are until the last request was taken back. The table is a list of locks for each bucket,
//! linked through the first request of each lock.

use std::ptr::null_mut;

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::memory;

use crate::canary::Canary;
use crate::shared::planning::Claim;

/// A transaction's request for one lock.
pub struct Request {
    /// The record's address, by which the lock is known.
    address: u64,
    exclusive: bool,
    is_granted: bool,
    /// The transaction; none for a lock that is taken at once or not at all.
    demand: *mut Demand,
    previous: *mut Request,
    next: *mut Request,
    /// In the first request of a lock: the last one.
    last: *mut Request,
    /// In the first request of a lock: the next lock of the bucket.
    next_lock: *mut Request,
}

impl Request {
    pub(super) fn new(claim: Claim, demand: *mut Demand) -> Request {
        Request {
            address: claim.record.address(),
            exclusive: claim.exclusive,
            is_granted: false,
            demand,
            previous: null_mut(),
            next: null_mut(),
            last: null_mut(),
            next_lock: null_mut(),
        }
    }
}

/// The requests of a transaction that lie in one partition.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub partition: u16,
    pub start: u32,
    pub end: u32,
}

/// What a transaction wants of the partitions, and how far it has got. It belongs to whoever has the last
/// message about it.
pub(super) struct Demand {
    /// The worker that waits for it.
    pub home: u32,
    requests: Vec<Request>,
    /// Where they are: threads reach them through this alone.
    first: *mut Request,
    /// In the order of the partitions.
    pub spans: Vec<Span>,
    /// The span whose locks are being taken.
    pub stage: usize,
    /// Locks of that span that are not granted yet.
    pending: u32,
    /// Partitions that still have locks of it, while it gives them back.
    pub holds: AtomicU32,
}

impl Demand {
    pub fn new(home: u32) -> Box<Demand> {
        Box::new(Demand {
            home,
            requests: Vec::new(),
            first: null_mut(),
            spans: Vec::new(),
            stage: 0,
            pending: 0,
            holds: AtomicU32::new(0),
        })
    }

    /// Asks for these claims, each of which lies in the partition that `partition_of` says.
    pub fn set(&mut self, claims: &[Claim], partition_of: impl Fn(Claim) -> u16) {
        self.requests.clear();
        self.spans.clear();
        self.stage = 0;
        let demand: *mut Demand = self;
        self.requests
            .extend(claims.iter().map(|&claim| Request::new(claim, demand)));
        let partition = |request: &Request| {
            // SAFETY: the address is that of the claim's record.
            let record = unsafe { kiln_storage::record::RecordRef::from_address(request.address) };
            partition_of(Claim {
                record,
                exclusive: request.exclusive,
            })
        };
        self.requests.sort_unstable_by_key(partition);
        for (at, request) in self.requests.iter().enumerate() {
            let (partition, at) = (partition(request), at as u32);
            match self.spans.last_mut() {
                Some(span) if span.partition == partition => span.end = at + 1,
                _ => self.spans.push(Span {
                    partition,
                    start: at,
                    end: at + 1,
                }),
            }
        }
        self.first = self.requests.as_mut_ptr();
    }
}

/// The locks of a partition, used by its owner.
pub(super) struct LockTable {
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

    pub fn new() -> LockTable {
        LockTable {
            buckets: vec![null_mut(); 1 << LockTable::BITS].into(),
        }
    }

    /// Finds the lock of an address, or the end of its bucket.
    ///
    /// # Safety
    /// All requests in the table are alive, and the caller owns the partition.
    #[inline]
    unsafe fn find(&self, address: u64) -> Found {
        let hash = memory::hash(address);
        let bucket = (hash >> (64 - LockTable::BITS)) as usize;
        let (mut first, mut before) = (self.buckets[bucket], null_mut());
        // SAFETY: requests in the table are alive, and the caller's alone.
        unsafe {
            while !first.is_null() && (*first).address != address {
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
    pub unsafe fn acquire(&mut self, request: *mut Request) -> bool {
        // SAFETY: by the contract, for this request and all that are in the table.
        unsafe {
            let found = self.find((*request).address);
            let first = found.first;
            (*request).next = null_mut();
            if first.is_null() {
                (*request).previous = null_mut();
                (*request).last = request;
                (*request).next_lock = null_mut();
                (*request).is_granted = true;
                self.point(&found, request);
                return true;
            }
            let last = (*first).last;
            (*request).previous = last;
            (*last).next = request;
            (*first).last = request;
            // If the last one shares the lock, then all do.
            (*request).is_granted =
                !(*request).exclusive && (*last).is_granted && !(*last).exclusive;
            (*request).is_granted
        }
    }

    /// Makes a shared lock exclusive if nobody else has it or waits for it; whether it is.
    ///
    /// # Safety
    /// The request was granted; the caller owns the partition.
    pub unsafe fn upgrade(&mut self, request: *mut Request) -> bool {
        // SAFETY: by the contract.
        unsafe {
            let is_alone = (*request).previous.is_null() && (*request).next.is_null();
            (*request).exclusive |= is_alone;
            is_alone
        }
    }

    /// Takes a request out of the queue of its lock, granted or not; `granted` gets each transaction that
    /// has all locks of its span now.
    ///
    /// # Safety
    /// The request was put in; the caller owns the partition.
    pub unsafe fn release(&mut self, request: *mut Request, granted: &mut impl FnMut(*mut Demand)) {
        // SAFETY: by the contract, for this request and all that are in the table.
        unsafe {
            let found = self.find((*request).address);
            let first = found.first;
            debug_assert!(!first.is_null(), "a request that is taken back is there");
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
            while !at.is_null() && !(*at).is_granted {
                if (*at).exclusive && at != now_first {
                    break;
                }
                (*at).is_granted = true;
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

    /// Asks for all locks of the span that a transaction has come to; whether they are granted at once.
    ///
    /// # Safety
    /// The transaction waits, and this thread alone may use its demand; the caller owns the partition.
    pub unsafe fn acquire_span(&mut self, demand: *mut Demand) -> bool {
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

    /// Takes back all locks that a transaction has in this partition.
    ///
    /// # Safety
    /// It has all that it asked for here; other partitions may do the same at the same time, and nobody
    /// else uses its demand. The caller owns the partition.
    pub unsafe fn release_span(
        &mut self,
        demand: *mut Demand,
        partition: u16,
        granted: &mut impl FnMut(*mut Demand),
    ) {
        // SAFETY: by the contract; each partition touches its own requests, and the counter is atomic.
        unsafe {
            let requests = (*demand).first;
            let spans = &(*demand).spans;
            let own = spans.iter().find(|span| span.partition == partition);
            let Some(span) = own.copied() else { return };
            for at in span.start..span.end {
                self.release(requests.add(at as usize), granted);
            }
            // Release pairs with the acquire of the worker that uses the demand again.
            (*demand).holds.fetch_sub(1, Ordering::Release);
        }
    }
}
