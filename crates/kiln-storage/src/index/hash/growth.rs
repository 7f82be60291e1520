//! How the index grows: chains get longer and shorter, segments are split, the directory doubles.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::lock;

use super::super::{Key, version};
use super::bucket::{Bucket, Coverage, DEPTH_MAX};
use super::segment::{Segment, new_segment};
use super::{DIRECTORY_DEPTH, HashIndex};
use crate::epoch::Participant;

impl<K: Key> HashIndex<K> {
    /// Appends an overflow bucket to the chain that ends with `last`; the chain is latched.
    #[cold]
    pub(super) fn extend(
        &self,
        segment: Segment<K>,
        last: Bucket<K>,
        participant: &Participant,
    ) -> Bucket<K> {
        let (address, seen) = self.pool.alloc(participant.arena());
        let bucket = Bucket::<K>::at(address);
        bucket.set_meta(0);
        bucket.set_next(None);
        version::unlatch_changed(bucket.version(), seen);
        last.set_next(Some(bucket));
        segment.overflow().fetch_add(1, Ordering::Relaxed);
        bucket
    }

    /// Moves entries from the end of a latched chain into free slots before it, and frees the
    /// overflow buckets that become empty.
    #[inline]
    pub(super) fn shorten(&self, segment: Segment<K>, home: Bucket<K>, participant: &Participant) {
        while home.next().is_some() {
            let (mut before, mut last) = (home, home);
            let mut free = None;
            while let Some(next) = last.next() {
                if free.is_none() {
                    free = last.free_slot().map(|slot| (last, slot));
                }
                (before, last) = (last, next);
            }
            let occupied = last.occupied();
            if occupied == 0 {
                before.set_next(None);
                segment.overflow().fetch_sub(1, Ordering::Relaxed);
                self.pool.free(participant.arena(), last.0);
                continue;
            }
            let Some((bucket, slot)) = free else { return };
            let from = occupied.trailing_zeros() as usize;
            bucket.put(slot, &last.key(from), last.payload(from));
            last.clear(from);
        }
    }

    /// Splits `segment`, unless another thread just did.
    #[cold]
    pub(super) fn split(&self, segment: Segment<K>, participant: &Participant) {
        segment.latch();
        if !segment.wants_split() {
            segment.unlatch();
            return;
        }
        let coverage = segment.coverage();
        if coverage.depth == DEPTH_MAX {
            // No bits left: the chains grow instead.
            let overflow_max = segment.overflow_max().load(Ordering::Relaxed);
            segment
                .overflow_max()
                .store(overflow_max.saturating_mul(2), Ordering::Relaxed);
            segment.unlatch();
            return;
        }
        let depth = coverage.depth + 1;
        let stays = Coverage {
            depth,
            pattern: coverage.pattern,
        };
        let goes = Coverage {
            depth,
            pattern: coverage.pattern | 1 << (DEPTH_MAX - depth),
        };
        let sibling = new_segment::<K>(&self.pool, goes);
        // Latched until the directory leads to it, so that it is not split before.
        sibling.latch();
        // Release pairs with the acquire in `look_again`: the sibling's buckets are set up.
        segment
            .sibling()
            .store(sibling.0.as_ptr() as u64, Ordering::Release);
        for index in 0..Segment::<K>::BUCKETS {
            let home = segment.bucket(index);
            let seen = loop {
                let seen = version::read(home.version());
                if version::try_latch_change(home.version(), seen) {
                    break seen;
                }
            };
            // No thread reaches the sibling's bucket before this bucket's `meta` says that it is
            // divided.
            let target = (sibling.bucket(index), sibling);
            self.divide((home, segment), target, goes, participant);
            home.set_meta(home.occupied() | stays.to_meta());
            version::unlatch_changed(home.version(), seen);
        }
        segment
            .coverage_word()
            .store(stays.to_meta(), Ordering::Relaxed);
        self.publish(sibling, goes);
        // Keys with equal hashes cannot be split apart. When a half has as much overflow as
        // before, it is split again only when that has doubled.
        for half in [segment, sibling] {
            let overflow = half.overflow().load(Ordering::Relaxed);
            half.overflow_max().store(
                (overflow * 2).max(Segment::<K>::OVERFLOW_MAX),
                Ordering::Relaxed,
            );
        }
        sibling.unlatch();
        segment.unlatch();
    }

    /// Moves the entries that `goes` covers from one chain to another; the first is latched, and
    /// the second is not reachable yet.
    fn divide(
        &self,
        (home, segment): (Bucket<K>, Segment<K>),
        (target, sibling): (Bucket<K>, Segment<K>),
        goes: Coverage,
        participant: &Participant,
    ) {
        let mut last = target;
        let mut next = Some(home);
        while let Some(bucket) = next {
            let mut occupied = bucket.occupied();
            while occupied != 0 {
                let slot = occupied.trailing_zeros() as usize;
                occupied &= occupied - 1;
                let key = bucket.key(slot);
                if goes.covers(self.hash_of(&key)) {
                    let (to, free) = match last.free_slot() {
                        Some(free) => (last, free),
                        None => (self.extend(sibling, last, participant), 0),
                    };
                    last = to;
                    to.put(free, &key, bucket.payload(slot));
                    bucket.clear(slot);
                }
            }
            next = bucket.next();
        }
        self.shorten(segment, home, participant);
    }

    /// Makes the directory lead to `segment` for what it covers; doubles it when it cannot tell
    /// the segment from its sibling.
    fn publish(&self, segment: Segment<K>, coverage: Coverage) {
        let _growth = lock(&self.growth);
        let directory = self.directory.load(Ordering::Relaxed);
        let mut depth = (directory & DIRECTORY_DEPTH) as u32;
        let mut entries = (directory & !DIRECTORY_DEPTH) as *const AtomicU64;
        let grows = depth < coverage.depth;
        if grows {
            let doubled = self.pool.take(16 << depth);
            for position in 0..2_usize << depth {
                // SAFETY: the old directory has 1 << depth entries, the new one twice as many.
                let (from, to) =
                    unsafe { (&*entries.add(position / 2), doubled.add(position).as_ref()) };
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            depth += 1;
            entries = doubled.as_ptr();
        }
        let first = (coverage.pattern >> (DEPTH_MAX - depth.min(DEPTH_MAX))) as usize;
        for position in first..first + (1 << (depth - coverage.depth)) {
            // SAFETY: below 1 << depth, because the pattern has `DEPTH_MAX` bits.
            let entry = unsafe { &*entries.add(position) };
            // Release pairs with the acquire in `segment_of`: the segment is complete.
            entry.store(segment.0.as_ptr() as u64, Ordering::Release);
        }
        if grows {
            // Release as above. The old directory stays allocated for readers that are in it;
            // all old ones together are smaller than the new one.
            self.directory
                .store(entries as u64 | u64::from(depth), Ordering::Release);
        }
    }
}
