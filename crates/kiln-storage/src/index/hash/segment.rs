//! Segments: as many buckets as are split together.

use std::marker::PhantomData;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::spin::Spinner;

use super::super::Key;
use super::super::pool::Pool;
use super::bucket::{Bucket, Coverage};

/// A view of a segment: a header, then its buckets.
pub(super) struct Segment<K>(pub(super) NonNull<AtomicU64>, PhantomData<K>);

impl<K> Clone for Segment<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Segment<K> {}

impl<K> PartialEq for Segment<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: Key> Segment<K> {
    pub(super) const BUCKETS: usize = if K::WORDS <= 2 { 256 } else { 64 };
    const HEADER_BYTES: usize = 128;
    pub(super) const BYTES: usize = Self::HEADER_BYTES + Self::BUCKETS * Bucket::<K>::BYTES;
    /// A segment is split when it would get more overflow buckets than one for eight buckets.
    /// With uniform hashes that is when about 70 % of the slots are taken.
    pub(super) const OVERFLOW_MAX: u64 = Self::BUCKETS as u64 / 8;

    #[inline]
    fn header(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < Self::HEADER_BYTES / 8);
        // SAFETY: segments are `BYTES` long and live as long as the index.
        unsafe { self.0.add(index).as_ref() }
    }

    /// The segment at an address.
    #[inline]
    pub(super) fn at(address: NonNull<AtomicU64>) -> Segment<K> {
        Segment(address, PhantomData)
    }

    /// 1 while the segment is being split, or visited as a whole.
    #[inline]
    fn latch_word(&self) -> &AtomicU64 {
        self.header(0)
    }

    /// The number of overflow buckets in use.
    #[inline]
    pub(super) fn overflow(&self) -> &AtomicU64 {
        self.header(1)
    }

    /// The number of overflow buckets at which the segment is split.
    #[inline]
    pub(super) fn overflow_max(&self) -> &AtomicU64 {
        self.header(2)
    }

    /// The segment that was split off last.
    #[inline]
    pub(super) fn sibling(&self) -> &AtomicU64 {
        self.header(3)
    }

    /// What the segment covers, as a meta word; written under the latch.
    #[inline]
    pub(super) fn coverage_word(&self) -> &AtomicU64 {
        self.header(4)
    }

    #[inline]
    pub(super) fn coverage(&self) -> Coverage {
        Coverage::of_meta(self.coverage_word().load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn bucket(&self, index: usize) -> Bucket<K> {
        debug_assert!(index < Self::BUCKETS);
        let offset = Self::HEADER_BYTES / 8 + index * (Bucket::<K>::BYTES / 8);
        // SAFETY: inside the segment's `BYTES`.
        Bucket::at(unsafe { self.0.add(offset) })
    }

    #[inline]
    pub(super) fn bucket_of(&self, hash: u64) -> Bucket<K> {
        self.bucket(hash as usize % Self::BUCKETS)
    }

    #[inline]
    pub(super) fn latch(&self) {
        let mut spinner = Spinner::default();
        // Acquire pairs with the release in `unlatch`: the header is as the last holder left it.
        while self
            .latch_word()
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spinner.spin();
        }
    }

    #[inline]
    pub(super) fn unlatch(&self) {
        self.latch_word().store(0, Ordering::Release);
    }

    #[inline]
    pub(super) fn wants_split(&self) -> bool {
        self.overflow().load(Ordering::Relaxed) >= self.overflow_max().load(Ordering::Relaxed)
    }
}

/// A segment that covers `coverage` and is empty.
pub(super) fn new_segment<K: Key>(pool: &Pool, coverage: Coverage) -> Segment<K> {
    let segment = Segment::<K>(pool.take(Segment::<K>::BYTES), PhantomData);
    segment
        .overflow_max()
        .store(Segment::<K>::OVERFLOW_MAX, Ordering::Relaxed);
    segment
        .coverage_word()
        .store(coverage.to_meta(), Ordering::Relaxed);
    for index in 0..Segment::<K>::BUCKETS {
        segment.bucket(index).set_meta(coverage.to_meta());
    }
    segment
}
