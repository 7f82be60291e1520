//! A concurrent hash index that grows by segments (extendible hashing, as CCEH does it: Nam et
//! al., FAST 2019), with buckets that are read optimistically.
//!
//! ```text
//!  directory             segment                          bucket (u64 keys: two cache lines)
//!  top bits of the hash  header │ bucket 0 │ bucket 1 …   version │ meta │ keys …
//!  [ · │ · │ · │ · ] ──►                                  link │ payloads …
//!                                                          └─► overflow bucket ─► …
//! ```
//!
//! The top bits of a hash lead through the directory to a segment, its low bits to a bucket there.
//! A full bucket continues in overflow buckets, all guarded by the version of the first. When a
//! segment has too many of those it is split: the entries whose next hash bit is 1 move to a new
//! segment, bucket by bucket, each in the time that its few entries take; readers and writers of
//! other buckets go on.
//!
//! # Invariants
//!
//! 1. A bucket's meta word names the hashes that the bucket covers (the segment's `pattern`, of
//!    which the top `depth` bits count). It changes under the bucket's latch, in the same step in
//!    which entries move. So a reader that came by an outdated directory, or in the middle of a
//!    split, notices from the bucket itself, and looks again.
//! 2. At any time exactly one bucket that can be reached covers a hash.
//! 3. The directory leads to the covering segment or, while that is being split off, to the one it
//!    is split from, whose `sibling` it is.
//!
//! Guards: an insertion changes the guard of its bucket, and a split the guards of the buckets
//! that it divides. Removals, and what they move between a bucket and its overflow, change none.

mod bucket;
mod growth;
mod segment;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::Mutex;
use kiln_platform::work::{Work, charge};

use bucket::{Bucket, Coverage, DEPTH_MAX, find, snapshot};
use segment::{Segment, new_segment};

use super::pool::Pool;
use super::{InsertEffect, Insertion, Key, Lookup, Sighting, Withdrawal, version};
use crate::epoch::Participant;

/// The low bits of the directory word hold the depth; directories are aligned to more than that.
const DIRECTORY_DEPTH: u64 = 0x3f;

/// How many of the lowest bits of a number tell the parts of a split index from each other: as many
/// parts have segments of their own.
pub const SPLIT_BITS: u32 = 6;

/// The `split_at` of an index that is not split.
const NOT_SPLIT: u32 = u32::MAX;
/// A hash index from keys to payloads, usable by many threads at once.
pub struct HashIndex<K: Key> {
    /// The address of the directory and, in the low bits, its depth.
    directory: AtomicU64,
    pool: Pool,
    /// Held while the directory is changed or replaced.
    growth: Mutex<()>,
    /// Where in the key, from its end on, the number is that the index is split by; [`NOT_SPLIT`]
    /// if it is not.
    split_at: u32,
    keys: PhantomData<fn(K)>,
}

impl<K: Key> HashIndex<K> {
    /// Entries a bucket holds on average in an index that was created large enough.
    const ENTRIES_PER_BUCKET: usize = 4;

    /// An empty index with room for `capacity` entries before it has to grow.
    pub fn with_capacity(capacity: usize) -> HashIndex<K> {
        Self::with_segments(capacity, NOT_SPLIT)
    }

    /// An empty index that is split: entries whose keys differ in the lowest six bits of a number
    /// are in different segments, so that workers on different parts share only the directory. The
    /// number ends so many bits from the first one of the key.
    ///
    /// # Panics
    /// When the number's lowest bits are not among the first 64 of the key.
    pub fn split_by(capacity: usize, bits: u32) -> HashIndex<K> {
        assert!((SPLIT_BITS..=64).contains(&bits), "{bits} bits");
        Self::with_segments(capacity, 64 - bits)
    }

    fn with_segments(capacity: usize, split_at: u32) -> HashIndex<K> {
        let least = match split_at {
            NOT_SPLIT => 1,
            _ => 1 << SPLIT_BITS,
        };
        let segments = capacity
            .div_ceil(Segment::<K>::BUCKETS * Self::ENTRIES_PER_BUCKET)
            .max(least)
            .next_power_of_two();
        let depth = segments.ilog2().min(DEPTH_MAX);
        let pool = Pool::new(Bucket::<K>::BYTES);
        let directory = pool.take(8 << depth);
        for position in 0..1_u64 << depth {
            let coverage = Coverage {
                depth,
                pattern: position << (DEPTH_MAX - depth),
            };
            let segment = new_segment::<K>(&pool, coverage);
            // SAFETY: the directory has `1 << depth` words.
            let entry = unsafe { directory.add(position as usize).as_ref() };
            entry.store(segment.0.as_ptr() as u64, Ordering::Relaxed);
        }
        HashIndex {
            directory: AtomicU64::new(directory.as_ptr() as u64 | u64::from(depth)),
            pool,
            growth: Mutex::new(()),
            split_at,
            keys: PhantomData,
        }
    }

    /// The hash of a key. Its top bits lead to the segment: in a split index they are the number's.
    #[inline(always)]
    fn hash_of(&self, key: &K) -> u64 {
        let hash = key.hash();
        match self.split_at {
            NOT_SPLIT => hash,
            at => key.top() >> at << (64 - SPLIT_BITS) | hash & (u64::MAX >> SPLIT_BITS),
        }
    }

    /// The payload of `key`, or the guard of its absence.
    #[inline]
    pub fn get(&self, key: &K) -> Lookup {
        charge(Work::Lookup);
        let hash = self.hash_of(key);
        let mut segment = self.segment_of(hash);
        loop {
            let home = segment.bucket_of(hash);
            home.prefetch();
            let seen = version::read(home.version());
            charge(Work::Level);
            let probe = find(home, seen, key);
            let payload = probe.found.map(|(bucket, slot)| bucket.payload(slot));
            let covered = home.coverage().covers(hash);
            if !version::validate(home.version(), seen) {
                continue;
            }
            if let Some(payload) = payload {
                return Lookup::Found(payload);
            }
            if covered {
                return Lookup::Missing(version::guard(home.version(), seen));
            }
            segment = self.look_again(segment, hash);
        }
    }

    /// Finds `key` as [`HashIndex::get`] does, and notes where.
    #[inline]
    pub fn sight(&self, key: &K) -> Option<Sighting> {
        let hash = self.hash_of(key);
        let home = self.segment_of(hash).bucket_of(hash);
        let seen = version::read(home.version());
        let (bucket, slot) = find(home, seen, key).found?;
        let payload = bucket.payload(slot);
        // Not found for whatever reason: who needs the key looks it up.
        let is_whole = version::validate(home.version(), seen);
        is_whole.then(|| Sighting::new(payload, home.version(), seen))
    }

    /// Starts fetching the bucket of `key` into the cache.
    #[inline]
    pub fn prefetch(&self, key: &K) {
        let hash = self.hash_of(key);
        self.segment_of(hash).bucket_of(hash).prefetch();
    }

    /// Inserts `key` with `payload`, which is not zero, unless the key is there already. The
    /// participant's slot picks where new buckets come from; it need not be in an epoch.
    ///
    /// When the insertion splits its segment first, the guard of its bucket changes without an
    /// [`InsertEffect`]; a transaction that has just missed the key then fails its validation,
    /// about once in a thousand insertions into a growing index.
    ///
    /// # Panics
    /// When `payload` is zero, or the system has no memory for another bucket.
    pub fn insert(&self, key: &K, payload: u64, participant: &Participant) -> Insertion {
        assert!(payload != 0, "a payload is the address of a record");
        charge(Work::IndexChange);
        let hash = self.hash_of(key);
        let mut segment = self.segment_of(hash);
        loop {
            let home = segment.bucket_of(hash);
            home.prefetch();
            let seen = version::read(home.version());
            let probe = find(home, seen, key);
            if let Some((bucket, slot)) = probe.found {
                let existing = bucket.payload(slot);
                if version::validate(home.version(), seen) {
                    return Insertion::Exists(existing);
                }
                continue;
            }
            if !home.coverage().covers(hash) {
                if version::validate(home.version(), seen) {
                    segment = self.look_again(segment, hash);
                }
                continue;
            }
            if probe.free.is_none() && segment.wants_split() {
                if version::validate(home.version(), seen) {
                    self.split(segment, participant);
                }
                continue;
            }
            if !version::try_latch_change(home.version(), seen) {
                continue;
            }
            let (bucket, slot) = match probe.free {
                Some(free) => free,
                None => (self.extend(segment, probe.last, participant), 0),
            };
            bucket.put(slot, key, payload);
            let after = version::unlatch_changed(home.version(), seen);
            return Insertion::Inserted(InsertEffect {
                node: NonNull::from(home.version()),
                before: version::guard_part(seen),
                after: version::guard_part(after),
                splits: [None, None],
            });
        }
    }

    /// Removes `key` if it has this `payload`; says whether it did.
    ///
    /// No guard changes. Who has read the key must notice by other means that it is gone: the
    /// record is marked absent, with a new tid, before its key is removed.
    pub fn remove(&self, key: &K, payload: u64, participant: &Participant) -> bool {
        charge(Work::IndexChange);
        let hash = self.hash_of(key);
        let mut segment = self.segment_of(hash);
        loop {
            let home = segment.bucket_of(hash);
            let seen = version::read(home.version());
            let probe = find(home, seen, key);
            let Some((bucket, slot)) = probe.found else {
                let covered = home.coverage().covers(hash);
                if !version::validate(home.version(), seen) {
                    continue;
                }
                if covered {
                    return false;
                }
                segment = self.look_again(segment, hash);
                continue;
            };
            if bucket.payload(slot) != payload {
                if version::validate(home.version(), seen) {
                    return false;
                }
                continue;
            }
            if !version::try_latch_removal(home.version(), seen) {
                continue;
            }
            bucket.clear(slot);
            self.shorten(segment, home, participant);
            version::unlatch_removed(home.version(), seen);
            return true;
        }
    }

    /// [`HashIndex::remove`], which changes no guard.
    pub fn withdraw(&self, key: &K, payload: u64, participant: &Participant) -> Withdrawal {
        match self.remove(key, payload, participant) {
            true => Withdrawal::Done,
            false => Withdrawal::Missing,
        }
    }

    /// Nothing: a bucket stays.
    pub fn unlink_empty_leaf(&self, _: &K, _: &Participant) {}

    /// [`HashIndex::remove`] of a record that lives on under another key. It does nothing more: a
    /// transaction that relies on a present key in a hash index looks it up again.
    pub fn remove_moved(&self, key: &K, payload: u64, participant: &Participant) -> bool {
        self.remove(key, payload, participant)
    }

    /// [`HashIndex::replace`] of a record that lives on under another key; as
    /// [`HashIndex::remove_moved`].
    pub fn replace_moved(&self, key: &K, old: u64, new: u64) -> bool {
        self.replace(key, old, new)
    }

    /// Gives `key` another payload, if it has `old`. Guards stay valid: no key comes or goes.
    /// Returns whether it did.
    pub fn replace(&self, key: &K, old: u64, new: u64) -> bool {
        let hash = self.hash_of(key);
        let mut segment = self.segment_of(hash);
        loop {
            let home = segment.bucket_of(hash);
            let seen = version::read(home.version());
            let Some((bucket, slot)) = find(home, seen, key).found else {
                let covered = home.coverage().covers(hash);
                if !version::validate(home.version(), seen) {
                    continue;
                }
                if covered {
                    return false;
                }
                segment = self.look_again(segment, hash);
                continue;
            };
            if bucket.payload(slot) != old {
                if version::validate(home.version(), seen) {
                    return false;
                }
                continue;
            }
            if version::try_latch_removal(home.version(), seen) {
                bucket
                    .word(Bucket::<K>::PAYLOADS + slot)
                    .store(new, Ordering::Relaxed);
                version::unlatch_removed(home.version(), seen);
                return true;
            }
        }
    }

    /// Calls `visit` with every entry, in no particular order. An entry that is there all the
    /// time is visited exactly once; one that comes or goes meanwhile, at most once.
    pub fn for_each(&self, mut visit: impl FnMut(K, u64)) {
        let mut entries = Vec::new();
        let mut position = 0_u64;
        while position < 1 << DEPTH_MAX {
            let hash = position << (64 - DEPTH_MAX);
            let segment = self.segment_of(hash);
            segment.latch();
            let coverage = segment.coverage();
            // While the latch is held the segment is not split, so its entries stay in it.
            if coverage.covers(hash) {
                for index in 0..Segment::<K>::BUCKETS {
                    snapshot(segment.bucket(index), &mut entries);
                }
                position += 1 << (DEPTH_MAX - coverage.depth);
            }
            segment.unlatch();
            for (key, payload) in entries.drain(..) {
                visit(key, payload);
            }
        }
    }

    /// The number of entries, counted bucket by bucket.
    pub fn len(&self) -> usize {
        let mut total = 0;
        self.for_each(|_, _| total += 1);
        total
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes taken from the system for segments and buckets, used or not.
    pub fn bytes(&self) -> usize {
        self.pool.bytes()
    }

    /// What lies at `address` if it is in its memory, in words for reports.
    pub fn part_at(&self, address: usize) -> Option<String> {
        let (node, offset) = self.pool.node_at(address)?;
        Some(format!("node {node}, byte {offset}"))
    }

    /// The segment that the directory has for `hash`.
    #[inline]
    fn segment_of(&self, hash: u64) -> Segment<K> {
        // Acquire pairs with the release in `publish`: the entries come before the directory.
        let directory = self.directory.load(Ordering::Acquire);
        let depth = directory & DIRECTORY_DEPTH;
        let position = (hash >> 1 >> (63 - depth)) as usize;
        let entries = (directory & !DIRECTORY_DEPTH) as *const AtomicU64;
        // SAFETY: a directory of depth d has 1 << d entries, and lives as long as the index.
        let entry = unsafe { &*entries.add(position) };
        // Acquire pairs with the release in `publish`: the segment's content comes before it.
        let segment = entry.load(Ordering::Acquire) as *mut AtomicU64;
        // SAFETY: the entries of a published directory are addresses of segments.
        Segment::at(unsafe { NonNull::new_unchecked(segment) })
    }

    /// Where to look for `hash` when its bucket in `segment` does not cover it (invariant 3).
    #[cold]
    fn look_again(&self, segment: Segment<K>, hash: u64) -> Segment<K> {
        let now = self.segment_of(hash);
        if now != segment {
            return now;
        }
        // Acquire pairs with the release in `split`. It is not null: the bucket was divided.
        let sibling = segment.sibling().load(Ordering::Acquire) as *mut AtomicU64;
        NonNull::new(sibling).map_or(segment, Segment::at)
    }
}

impl<K: Key> Default for HashIndex<K> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<K: Key> fmt::Debug for HashIndex<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HashIndex")
            .field("bytes", &self.bytes())
            .finish()
    }
}
