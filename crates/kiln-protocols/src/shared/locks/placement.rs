//! Where a record's lock is: beside the record, or in a hash table; or in both places, where it has
//! two.

use kiln_platform::atomic::{AtomicPtr, AtomicU32, Ordering};
use kiln_platform::memory::{self, Region, name_range};
use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;
use kiln_storage::record::RecordRef;

use super::queue::Queue;
use super::request::{Link, RequestRef};
use crate::shared::planning::groups::is_unwritten;

/// Where a record's lock is.
pub trait Placement: Clone + Send + Sync {
    /// See [`Locks::GROUPS`](super::Locks::GROUPS).
    const GROUPS: bool = false;

    /// See [`Locks::by_group`](super::Locks::by_group).
    #[inline(always)]
    fn by_group(&self) -> bool {
        false
    }

    /// Takes the lock with a new request, if no other request wants it and that can be seen without
    /// a latch.
    fn take_alone(&self, record: RecordRef, request: RequestRef) -> bool;

    /// Lets the lock go, if no other request wants it and that can be seen without a latch.
    fn release_alone(&self, record: RecordRef, request: RequestRef) -> bool;

    /// Calls `body` with the lock's queue, while no other thread can see the queue.
    #[doc(hidden)]
    fn latched<R>(&self, record: RecordRef, body: impl FnOnce(&mut Latched) -> R) -> R;
}

/// A queue under its latch, for placements outside of this module to hand on.
pub struct Latched(pub(super) Queue);

/// The lock is the record's `aux` word: the address of the queue's first request, which is a
/// multiple of 64, and two bits.
///
/// A record that no transaction wants has 0 there. One that a single worker wants is taken and let
/// go by one compare-and-swap each, without the latch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BesideRecord;

/// A worker changes the queue.
const LATCHED: u64 = 1;
/// There is more than one request.
const SEVERAL: u64 = 2;
const ADDRESS: u64 = !63;

impl Placement for BesideRecord {
    #[inline(always)]
    fn take_alone(&self, record: RecordRef, request: RequestRef) -> bool {
        BesideBits::<0>.take_alone(record, request)
    }

    #[inline(always)]
    fn release_alone(&self, record: RecordRef, request: RequestRef) -> bool {
        BesideBits::<0>.release_alone(record, request)
    }

    #[inline(always)]
    fn latched<R>(&self, record: RecordRef, body: impl FnOnce(&mut Latched) -> R) -> R {
        BesideBits::<0>.latched(record, body)
    }
}

/// As [`BesideRecord`], in a word of which others change the bits `OTHERS` at any time: high ones,
/// which addresses do not have. While one is set, the lock is taken and let go under the latch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BesideBits<const OTHERS: u64>;

impl<const OTHERS: u64> Placement for BesideBits<OTHERS> {
    #[inline(always)]
    fn take_alone(&self, record: RecordRef, request: RequestRef) -> bool {
        // Acquire pairs with the release of the last holder. Release: a worker that finds the
        // request here finds it filled in.
        let taken = record.aux().compare_exchange(
            0,
            request.address(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        taken.is_ok()
    }

    #[inline(always)]
    fn release_alone(&self, record: RecordRef, request: RequestRef) -> bool {
        // Release pairs with the acquisition of the next holder, which sees the row as it is now.
        let released = record.aux().compare_exchange(
            request.address(),
            0,
            Ordering::Release,
            Ordering::Relaxed,
        );
        released.is_ok()
    }

    #[inline]
    fn latched<R>(&self, record: RecordRef, body: impl FnOnce(&mut Latched) -> R) -> R {
        let aux = record.aux();
        let mut spinner = Spinner::default();
        let mut seen = aux.load(Ordering::Relaxed);
        loop {
            if seen & LATCHED != 0 {
                spinner.spin();
                seen = aux.load(Ordering::Relaxed);
                continue;
            }
            // Acquire pairs with the release below, and with those of `take_alone` and
            // `release_alone`.
            match aux.compare_exchange_weak(
                seen,
                seen | LATCHED,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        // SAFETY: while the word, without the bits of others, is not 0 it is the address of a
        // request in this queue.
        let first = unsafe { RequestRef::from_address(seen & ADDRESS & !OTHERS) };
        let mut latched = Latched(Queue::new(first));
        let result = body(&mut latched);
        let word = latched.0.first.map_or(0, |first| {
            let several = first.next.get().is_some();
            first.address() | if several { SEVERAL } else { 0 }
        });
        // Release, both, pairs with the acquire above.
        if OTHERS == 0 {
            aux.store(word, Ordering::Release);
            return result;
        }
        let mut seen = aux.load(Ordering::Relaxed);
        while let Err(now) = aux.compare_exchange_weak(
            seen,
            seen & OTHERS | word,
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            seen = now;
        }
        result
    }
}

/// A bucket of the lock table, on a cache line of its own.
#[repr(C, align(64))]
struct Bucket {
    /// Whether a worker changes any of the queues.
    latch: AtomicU32,
    /// The first requests of its locks, each pointing to the next.
    locks: Link,
}

const _: () = assert!(size_of::<Bucket>() == 64);
const _: () = assert!(size_of::<Link>() == size_of::<AtomicPtr<u8>>());

/// The traditional lock manager: a hash table from records, which it knows by their addresses, to
/// the queues of their locks, with a latch per bucket (ORTHRUS §4, VLL §3.1).
///
/// A bucket is a cache line, a lock has no other memory than its requests: taking a lock that no
/// other transaction wants touches the bucket and the worker's own request.
#[derive(Clone)]
pub struct LockTable {
    buckets: Arc<Buckets>,
    /// See [`LockTable::grouped`].
    by_group: bool,
}

struct Buckets {
    memory: Region,
    /// The number of buckets is 2 to the power of 64 minus this.
    shift: u32,
}

impl LockTable {
    /// The usual number of buckets: a huge page of them.
    pub const BUCKETS: usize = 1 << 15;

    /// A table with at least so many buckets.
    ///
    /// # Panics
    /// When the system grants no memory, as with other allocations.
    pub fn new(buckets: usize) -> LockTable {
        let buckets = buckets.next_power_of_two().max(2);
        // Buckets of zeroes are empty.
        let memory = Region::map(buckets * size_of::<Bucket>()).expect("memory for a lock table");
        let address = memory.start().as_ptr() as usize;
        name_range(address, buckets * size_of::<Bucket>(), || {
            "lock table".to_owned()
        });
        let shift = 64 - buckets.trailing_zeros();
        LockTable {
            buckets: Arc::new(Buckets { memory, shift }),
            by_group: false,
        }
    }

    /// The same with the locks of column groups as well, or without. All workers that use the same
    /// locks make the same choice.
    #[must_use]
    pub fn grouped(mut self, by_group: bool) -> LockTable {
        self.by_group = by_group;
        self
    }

    #[inline(always)]
    fn bucket(&self, address: u64) -> &Bucket {
        let hash = memory::hash(address) >> self.buckets.shift;
        let buckets = self.buckets.memory.start().cast::<Bucket>();
        // SAFETY: the region holds as many buckets as there are hashes, of which all zeroes is a
        // valid one, and lives as long as the table. Buckets are atomics only.
        unsafe { buckets.add(hash as usize).as_ref() }
    }

    /// Whether no transaction wants any lock; asked while none takes or releases one.
    pub fn is_empty(&self) -> bool {
        let buckets = self.buckets.memory.start().cast::<Bucket>();
        (0..1usize << (64 - self.buckets.shift)).all(|number| {
            // SAFETY: as in `bucket`.
            let bucket = unsafe { buckets.add(number).as_ref() };
            bucket.locks.get().is_none()
        })
    }
}

impl Placement for LockTable {
    const GROUPS: bool = true;

    #[inline(always)]
    fn by_group(&self) -> bool {
        self.by_group
    }

    #[inline(always)]
    fn take_alone(&self, _: RecordRef, _: RequestRef) -> bool {
        false
    }

    #[inline(always)]
    fn release_alone(&self, _: RecordRef, _: RequestRef) -> bool {
        false
    }

    #[inline]
    fn latched<R>(&self, record: RecordRef, body: impl FnOnce(&mut Latched) -> R) -> R {
        let address = record.address();
        let bucket = self.bucket(address);
        let mut spinner = Spinner::default();
        // Acquire pairs with the release below.
        while bucket.latch.swap(1, Ordering::Acquire) != 0 {
            while bucket.latch.load(Ordering::Relaxed) != 0 {
                spinner.spin();
            }
        }
        let mut place: &Link = &bucket.locks;
        // Followed by hand, because each link lies in the request before.
        let mut before = place.get();
        let mut holder;
        while let Some(first) = before
            && first.key.load(Ordering::Relaxed) != address
        {
            holder = first;
            // SAFETY: the request is in a queue of this bucket and stays there while the latch is
            // held, which is longer than this reference is used.
            place = unsafe { &*std::ptr::from_ref(&holder.next_lock) };
            before = place.get();
        }
        let mut latched = Latched(Queue::new(before));
        let result = body(&mut latched);
        let after = latched.0.first;
        match (before, after) {
            (Some(last), None) => place.set(last.next_lock.get()),
            // The rest of the bucket moved to the new first request with the queue's description.
            _ if after != before => place.set(after),
            _ => {}
        }
        // Release pairs with the acquire above.
        bucket.latch.store(0, Ordering::Release);
        result
    }
}

/// A record's own lock is beside it, and the one on its [unwritten
/// columns](crate::shared::planning::groups) is in a table.
#[derive(Clone)]
pub struct ByGroup(pub LockTable);

impl Placement for ByGroup {
    const GROUPS: bool = true;

    #[inline(always)]
    fn by_group(&self) -> bool {
        true
    }

    #[inline(always)]
    fn take_alone(&self, record: RecordRef, request: RequestRef) -> bool {
        !is_unwritten(record) && BesideRecord.take_alone(record, request)
    }

    #[inline(always)]
    fn release_alone(&self, record: RecordRef, request: RequestRef) -> bool {
        !is_unwritten(record) && BesideRecord.release_alone(record, request)
    }

    #[inline]
    fn latched<R>(&self, record: RecordRef, body: impl FnOnce(&mut Latched) -> R) -> R {
        match is_unwritten(record) {
            true => self.0.latched(record, body),
            false => BesideRecord.latched(record, body),
        }
    }
}
