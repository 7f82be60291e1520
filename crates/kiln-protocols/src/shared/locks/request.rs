//! Requests for locks, and the pool that a worker takes its own from.

use std::ops::Deref;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The owner has what it asked for.
pub(super) const GRANTED: u8 = 0;
/// The owner looks at the state from time to time.
pub(super) const WAITING: u8 = 1;
/// The owner sleeps, and is to be woken when the state changes.
pub(super) const PARKED: u8 = 2;
/// The owner is to look at the queue: it waits for others than it did, as one of those ahead has
/// left without having been served or another one came in between; or the lock is free, and it is
/// the next.
pub(super) const CHANGED: u8 = 3;

/// One worker's request for one lock: a cache line, which is in the lock's queue from the moment it
/// is made until it is released or given up.
///
/// Everything but `state` is read and written under the latch of its queue, so that relaxed
/// accesses are enough. The second half describes the whole queue and is kept in its first request
/// alone: so a lock has no memory of its own, and a lock that only one worker wants costs that
/// worker's line.
#[repr(C, align(64))]
pub struct Request {
    /// What the owner waits to see as [`GRANTED`]; the others write it under the latch.
    pub(super) state: AtomicU8,
    /// Whether the lock is, or shall be, held exclusively.
    pub(super) exclusive: AtomicBool,
    /// Whether the lock is held: also while its upgrade is waited for.
    pub(super) is_holder: AtomicBool,
    /// Of the queue: whether one of the sharers waits to be alone.
    pub(super) upgrade_pending: AtomicBool,
    /// Whether no other request may take the lock before the owner does, which is the first waiter.
    pub(super) insists: AtomicBool,
    /// The owner's number.
    worker: u16,
    /// The record's address.
    pub(super) key: AtomicU64,
    /// What the owner's deadlock policy knows its transaction by: an age, a number.
    pub(super) stamp: AtomicU64,
    /// The one behind.
    pub(super) next: Link,
    /// The one ahead.
    pub(super) previous: Link,
    /// Of the queue: its end.
    pub(super) last: Link,
    /// Of the queue: the first request of another lock in the same bucket.
    pub(super) next_lock: Link,
    /// Of the queue: how many hold the lock.
    pub(super) holders: AtomicU32,
    /// Of the queue: how many wait behind the holders.
    pub(super) waiters: AtomicU32,
}

const _: () = assert!(size_of::<Request>() == 64);

impl Request {
    fn new(worker: u32) -> Request {
        Request {
            state: AtomicU8::new(GRANTED),
            exclusive: AtomicBool::new(false),
            is_holder: AtomicBool::new(false),
            upgrade_pending: AtomicBool::new(false),
            insists: AtomicBool::new(false),
            worker: u16::try_from(worker).expect("workers are few"),
            key: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
            next: Link::default(),
            previous: Link::default(),
            last: Link::default(),
            next_lock: Link::default(),
            holders: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
        }
    }

    /// The number of the worker that it belongs to.
    #[inline(always)]
    pub fn worker(&self) -> u32 {
        u32::from(self.worker)
    }

    /// What the owner's deadlock policy knows its transaction by.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    /// Whether the lock is, or shall be, held exclusively; asked under the latch or by the owner.
    #[inline(always)]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive.load(Ordering::Relaxed)
    }

    /// Whether the owner has what it asked for.
    #[inline(always)]
    pub(super) fn is_granted(&self) -> bool {
        // Acquire pairs with the release in `Queue::tell`: what former holders did is visible.
        self.state.load(Ordering::Acquire) == GRANTED
    }

    /// Whether the lock is held, be it that its upgrade is waited for.
    #[inline(always)]
    pub(super) fn is_holder(&self) -> bool {
        self.is_holder.load(Ordering::Relaxed)
    }
}

/// A request that is in a queue, or that its owner holds ready.
///
/// A pool's memory is kept while any of its requests is out (see `Pool`), and a request is only
/// followed by its owner, or by others under the latch of the queue that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestRef(NonNull<Request>);

// SAFETY: a request is atomics only; see the type's documentation for its lifetime.
unsafe impl Send for RequestRef {}
// SAFETY: as above.
unsafe impl Sync for RequestRef {}

impl Deref for RequestRef {
    type Target = Request;

    #[inline(always)]
    fn deref(&self) -> &Request {
        // SAFETY: by the type's documentation the request's memory is there.
        unsafe { self.0.as_ref() }
    }
}

impl RequestRef {
    /// The request whose [`RequestRef::address`] is `address`; none for 0.
    ///
    /// # Safety
    /// The address is 0, or that of a request in a queue whose latch the caller holds.
    #[inline(always)]
    pub(super) unsafe fn from_address(address: u64) -> Option<RequestRef> {
        NonNull::new(address as *mut Request).map(RequestRef)
    }

    /// Its address, a multiple of 64.
    #[inline(always)]
    pub(super) fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }
}

/// A request, or none.
#[derive(Default)]
pub(super) struct Link(AtomicPtr<Request>);

impl Link {
    #[inline(always)]
    pub(super) fn get(&self) -> Option<RequestRef> {
        NonNull::new(self.0.load(Ordering::Relaxed)).map(RequestRef)
    }

    #[inline(always)]
    pub(super) fn set(&self, request: Option<RequestRef>) {
        let pointer = request.map_or(std::ptr::null_mut(), |request| request.0.as_ptr());
        self.0.store(pointer, Ordering::Relaxed);
    }
}

/// A worker's requests: taken and given back without an allocator, and without another worker.
///
/// A worker that ends in the middle of a transaction leaves requests in queues; then the pool's
/// memory stays for ever, as others may follow them.
pub struct Pool {
    worker: u32,
    chunks: Vec<Box<[Request]>>,
    /// The first free request; each has the next free one in `next`.
    free: Option<RequestRef>,
    /// How many are not free.
    out: usize,
}

impl Pool {
    /// Requests of a chunk: a page.
    const CHUNK: usize = 64;
    /// Chunks kept when nothing is out: what a rare large transaction needed beyond is given back.
    const CHUNKS_KEPT: usize = 256;

    /// The pool of the worker with this number.
    pub fn new(worker: u32) -> Pool {
        Pool {
            worker,
            chunks: Vec::new(),
            free: None,
            out: 0,
        }
    }

    /// The number of the worker.
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// A request for the lock of the record at address `key`, which has it alone until it is told
    /// otherwise.
    #[inline]
    pub(super) fn take(&mut self, key: u64, exclusive: bool, stamp: u64) -> RequestRef {
        let request = match self.free {
            Some(request) => request,
            None => self.grow(),
        };
        self.free = request.next.get();
        self.out += 1;
        request.state.store(GRANTED, Ordering::Relaxed);
        request.exclusive.store(exclusive, Ordering::Relaxed);
        request.is_holder.store(true, Ordering::Relaxed);
        request.upgrade_pending.store(false, Ordering::Relaxed);
        request.insists.store(false, Ordering::Relaxed);
        request.key.store(key, Ordering::Relaxed);
        request.stamp.store(stamp, Ordering::Relaxed);
        request.next.set(None);
        request.previous.set(None);
        request.last.set(Some(request));
        request.next_lock.set(None);
        request.holders.store(1, Ordering::Relaxed);
        request.waiters.store(0, Ordering::Relaxed);
        request
    }

    /// Takes a request back, which is in no queue any more.
    #[inline]
    pub(super) fn put(&mut self, request: RequestRef) {
        request.next.set(self.free);
        self.free = Some(request);
        self.out -= 1;
        if self.out == 0 && self.chunks.len() > Self::CHUNKS_KEPT {
            self.shrink();
        }
    }

    /// Whether no request is out.
    #[cfg(test)]
    pub(super) fn is_whole(&self) -> bool {
        self.out == 0
    }

    #[cold]
    fn grow(&mut self) -> RequestRef {
        let chunk = (0..Self::CHUNK)
            .map(|_| Request::new(self.worker))
            .collect();
        self.chunks.push(chunk);
        let newest = self.chunks.len() - 1;
        self.thread(newest);
        self.free.expect("a chunk has requests")
    }

    /// Puts the requests of a chunk into the list of free ones.
    fn thread(&mut self, chunk: usize) {
        for request in self.chunks[chunk].iter().rev() {
            request.next.set(self.free);
            self.free = Some(RequestRef(NonNull::from(request)));
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.chunks.truncate(Self::CHUNKS_KEPT);
        self.free = None;
        for chunk in 0..self.chunks.len() {
            self.thread(chunk);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.out > 0 {
            std::mem::forget(std::mem::take(&mut self.chunks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_used_again_and_a_large_pool_shrinks() {
        let mut pool = Pool::new(3);
        let first = pool.take(16, false, 1);
        assert_eq!(first.worker(), 3);
        pool.put(first);
        assert_eq!(pool.take(32, true, 2), first);
        pool.put(first);
        let many = Pool::CHUNK * (Pool::CHUNKS_KEPT + 2);
        let requests: Vec<RequestRef> = (0..many).map(|_| pool.take(16, false, 1)).collect();
        let mut addresses: Vec<u64> = requests.iter().map(|request| request.address()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), many);
        for request in requests {
            pool.put(request);
        }
        assert_eq!(pool.chunks.len(), Pool::CHUNKS_KEPT);
        for _ in 0..many {
            pool.take(16, false, 1);
        }
    }
}
