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

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering, prefetch};
use kiln_platform::spin::Spinner;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::work::{Work, charge};

use super::pool::Pool;
use super::{InsertEffect, Insertion, Key, Lookup, Sighting, Withdrawal, version};
use crate::epoch::Participant;

/// The most bits by which the directory tells segments apart; what a meta word holds of a pattern.
const DEPTH_MAX: u32 = 24;

/// The low bits of the directory word hold the depth; directories are aligned to more than that.
const DIRECTORY_DEPTH: u64 = 0x3f;

/// How many of the lowest bits of a number tell the parts of a split index from each other: as many
/// parts have segments of their own.
pub const SPLIT_BITS: u32 = 6;

/// The `split_at` of an index that is not split.
const NOT_SPLIT: u32 = u32::MAX;

/// A view of a bucket: the words at an address.
struct Bucket<K>(NonNull<AtomicU64>, PhantomData<K>);

impl<K> Clone for Bucket<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Bucket<K> {}

/// What a bucket's meta word says, apart from the occupied slots in the lowest eight bits.
#[derive(Clone, Copy)]
struct Coverage {
    depth: u32,
    /// The top [`DEPTH_MAX`] bits of the hashes covered; only the top `depth` of them count.
    pattern: u64,
}

impl Coverage {
    #[inline]
    fn of_meta(meta: u64) -> Coverage {
        Coverage {
            depth: (meta >> 8 & 0xff) as u32,
            pattern: meta >> 16,
        }
    }

    fn to_meta(self) -> u64 {
        self.pattern << 16 | u64::from(self.depth) << 8
    }

    #[inline]
    fn covers(self, hash: u64) -> bool {
        ((hash >> (64 - DEPTH_MAX)) ^ self.pattern) >> (DEPTH_MAX - self.depth) == 0
    }
}

impl<K: Key> Bucket<K> {
    /// As many as fit into whole cache lines with one- and two-word keys.
    const SLOTS: usize = if K::WORDS == 2 { 7 } else { 6 };
    const ALL_SLOTS: u64 = (1 << Self::SLOTS) - 1;
    const META: usize = 1;
    const KEYS: usize = 2;
    const LINK: usize = Self::KEYS + Self::SLOTS * K::WORDS;
    const PAYLOADS: usize = Self::LINK + 1;
    const BYTES: usize = ((Self::PAYLOADS + Self::SLOTS) * 8).next_multiple_of(64);

    #[inline]
    fn at(address: NonNull<AtomicU64>) -> Bucket<K> {
        Bucket(address, PhantomData)
    }

    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < Self::BYTES / 8);
        // SAFETY: views are made of buckets of `BYTES` bytes that live as long as the index, and
        // all indexes are constants of the layout plus a slot below `SLOTS`.
        unsafe { self.0.add(index).as_ref() }
    }

    #[inline(always)]
    fn key_words(&self, slot: usize) -> &[AtomicU64] {
        debug_assert!(slot < Self::SLOTS);
        let index = Self::KEYS + slot * K::WORDS;
        // SAFETY: as in `word`.
        unsafe { std::slice::from_raw_parts(self.0.add(index).as_ptr(), K::WORDS) }
    }

    /// The version word; only that of the first bucket of a chain is used.
    #[inline]
    fn version(&self) -> &AtomicU64 {
        self.word(0)
    }

    #[inline]
    fn meta(&self) -> u64 {
        self.word(Self::META).load(Ordering::Relaxed)
    }

    fn set_meta(&self, meta: u64) {
        self.word(Self::META).store(meta, Ordering::Relaxed);
    }

    fn coverage(&self) -> Coverage {
        Coverage::of_meta(self.meta())
    }

    #[inline]
    fn occupied(&self) -> u64 {
        self.meta() & Self::ALL_SLOTS
    }

    fn free_slot(&self) -> Option<usize> {
        let free = !self.meta() & Self::ALL_SLOTS;
        (free != 0).then(|| free.trailing_zeros() as usize)
    }

    #[inline]
    fn payload(&self, slot: usize) -> u64 {
        self.word(Self::PAYLOADS + slot).load(Ordering::Relaxed)
    }

    fn key(&self, slot: usize) -> K {
        K::load(self.key_words(slot))
    }

    /// The next bucket of the chain.
    #[inline]
    fn next(&self) -> Option<Bucket<K>> {
        let link = self.word(Self::LINK).load(Ordering::Relaxed);
        NonNull::new(link as *mut AtomicU64).map(Bucket::at)
    }

    fn set_next(&self, next: Option<Bucket<K>>) {
        let link = next.map_or(0, |next| next.0.as_ptr() as u64);
        self.word(Self::LINK).store(link, Ordering::Relaxed);
    }

    /// The slot that holds `key`. All slots are compared before the one jump, which is cheaper
    /// than a jump per slot that is taken at an unpredictable one.
    #[inline]
    fn find(&self, key: &K) -> Option<usize> {
        let mut equal = 0;
        for slot in 0..Self::SLOTS {
            equal |= u64::from(key.equals_stored(self.key_words(slot))) << slot;
        }
        equal &= self.occupied();
        (equal != 0).then(|| equal.trailing_zeros() as usize)
    }

    fn put(&self, slot: usize, key: &K, payload: u64) {
        key.store(self.key_words(slot));
        self.word(Self::PAYLOADS + slot)
            .store(payload, Ordering::Relaxed);
        self.set_meta(self.meta() | 1 << slot);
    }

    fn clear(&self, slot: usize) {
        self.set_meta(self.meta() & !(1 << slot));
    }

    #[inline]
    fn prefetch(&self) {
        for line in 0..(Self::BYTES / 64).min(4) {
            prefetch(self.0.as_ptr().wrapping_add(line * 8));
        }
    }
}

/// A view of a segment: a header, then its buckets.
struct Segment<K>(NonNull<AtomicU64>, PhantomData<K>);

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
    const BUCKETS: usize = if K::WORDS <= 2 { 256 } else { 64 };
    const HEADER_BYTES: usize = 128;
    const BYTES: usize = Self::HEADER_BYTES + Self::BUCKETS * Bucket::<K>::BYTES;
    /// A segment is split when it would get more overflow buckets than one for eight buckets.
    /// With uniform hashes that is when about 70 % of the slots are taken.
    const OVERFLOW_MAX: u64 = Self::BUCKETS as u64 / 8;

    #[inline]
    fn header(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < Self::HEADER_BYTES / 8);
        // SAFETY: segments are `BYTES` long and live as long as the index.
        unsafe { self.0.add(index).as_ref() }
    }

    /// 1 while the segment is being split, or visited as a whole.
    fn latch_word(&self) -> &AtomicU64 {
        self.header(0)
    }

    /// The number of overflow buckets in use.
    fn overflow(&self) -> &AtomicU64 {
        self.header(1)
    }

    /// The number of overflow buckets at which the segment is split.
    fn overflow_max(&self) -> &AtomicU64 {
        self.header(2)
    }

    /// The segment that was split off last.
    fn sibling(&self) -> &AtomicU64 {
        self.header(3)
    }

    /// What the segment covers, as a meta word; written under the latch.
    fn coverage_word(&self) -> &AtomicU64 {
        self.header(4)
    }

    fn coverage(&self) -> Coverage {
        Coverage::of_meta(self.coverage_word().load(Ordering::Relaxed))
    }

    #[inline]
    fn bucket(&self, index: usize) -> Bucket<K> {
        debug_assert!(index < Self::BUCKETS);
        let offset = Self::HEADER_BYTES / 8 + index * (Bucket::<K>::BYTES / 8);
        // SAFETY: inside the segment's `BYTES`.
        Bucket::at(unsafe { self.0.add(offset) })
    }

    #[inline]
    fn bucket_of(&self, hash: u64) -> Bucket<K> {
        self.bucket(hash as usize % Self::BUCKETS)
    }

    fn latch(&self) {
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

    fn unlatch(&self) {
        self.latch_word().store(0, Ordering::Release);
    }

    fn wants_split(&self) -> bool {
        self.overflow().load(Ordering::Relaxed) >= self.overflow_max().load(Ordering::Relaxed)
    }
}

/// What a walk along a bucket's chain found for a key.
struct Probe<K: Key> {
    found: Option<(Bucket<K>, usize)>,
    free: Option<(Bucket<K>, usize)>,
    last: Bucket<K>,
}

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
        Segment(unsafe { NonNull::new_unchecked(segment) }, PhantomData)
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
        NonNull::new(sibling).map_or(segment, |sibling| Segment(sibling, PhantomData))
    }

    /// Appends an overflow bucket to the chain that ends with `last`; the chain is latched.
    #[cold]
    fn extend(&self, segment: Segment<K>, last: Bucket<K>, participant: &Participant) -> Bucket<K> {
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
    fn shorten(&self, segment: Segment<K>, home: Bucket<K>, participant: &Participant) {
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
    fn split(&self, segment: Segment<K>, participant: &Participant) {
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

/// A segment that covers `coverage` and is empty.
fn new_segment<K: Key>(pool: &Pool, coverage: Coverage) -> Segment<K> {
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

/// Looks for `key` in the chain that begins with `home`, whose version was `seen`. If it has
/// changed meanwhile, the result means nothing.
#[inline]
fn find<K: Key>(home: Bucket<K>, seen: u64, key: &K) -> Probe<K> {
    let mut probe = Probe {
        found: None,
        free: None,
        last: home,
    };
    loop {
        let bucket = probe.last;
        if let Some(slot) = bucket.find(key) {
            probe.found = Some((bucket, slot));
            return probe;
        }
        if probe.free.is_none() {
            probe.free = bucket.free_slot().map(|slot| (bucket, slot));
        }
        match bucket.next() {
            // A link that was read after a change may lead into another chain, and from there
            // on and on; the version tells before it is followed.
            Some(next) if version::validate(home.version(), seen) => probe.last = next,
            _ => return probe,
        }
    }
}

/// Appends the entries of one chain, as they are at one moment.
fn snapshot<K: Key>(home: Bucket<K>, entries: &mut Vec<(K, u64)>) {
    let length = entries.len();
    loop {
        let seen = version::read(home.version());
        let mut next = Some(home);
        while let Some(bucket) = next {
            for slot in 0..Bucket::<K>::SLOTS {
                if bucket.occupied() & 1 << slot != 0 {
                    entries.push((bucket.key(slot), bucket.payload(slot)));
                }
            }
            next = bucket
                .next()
                .filter(|_| version::validate(home.version(), seen));
        }
        if version::validate(home.version(), seen) {
            return;
        }
        entries.truncate(length);
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
