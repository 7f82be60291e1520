//! Buckets, and the chains that continue full ones.

use std::marker::PhantomData;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering, prefetch};

use super::super::{Key, version};

/// The most bits by which the directory tells segments apart; what a meta word holds of a pattern.
pub(super) const DEPTH_MAX: u32 = 24;

/// A view of a bucket: the words at an address.
pub(super) struct Bucket<K>(pub(super) NonNull<AtomicU64>, PhantomData<K>);

impl<K> Clone for Bucket<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Bucket<K> {}

/// What a bucket's meta word says, apart from the occupied slots in the lowest eight bits.
#[derive(Clone, Copy)]
pub(super) struct Coverage {
    pub(super) depth: u32,
    /// The top [`DEPTH_MAX`] bits of the hashes covered; only the top `depth` of them count.
    pub(super) pattern: u64,
}

impl Coverage {
    #[inline]
    pub(super) fn of_meta(meta: u64) -> Coverage {
        Coverage {
            depth: (meta >> 8 & 0xff) as u32,
            pattern: meta >> 16,
        }
    }

    #[inline]
    pub(super) fn to_meta(self) -> u64 {
        self.pattern << 16 | u64::from(self.depth) << 8
    }

    #[inline]
    pub(super) fn covers(self, hash: u64) -> bool {
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
    pub(super) const PAYLOADS: usize = Self::LINK + 1;
    pub(super) const BYTES: usize = ((Self::PAYLOADS + Self::SLOTS) * 8).next_multiple_of(64);

    #[inline]
    pub(super) fn at(address: NonNull<AtomicU64>) -> Bucket<K> {
        Bucket(address, PhantomData)
    }

    #[inline(always)]
    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
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
    pub(super) fn version(&self) -> &AtomicU64 {
        self.word(0)
    }

    #[inline]
    fn meta(&self) -> u64 {
        self.word(Self::META).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set_meta(&self, meta: u64) {
        self.word(Self::META).store(meta, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn coverage(&self) -> Coverage {
        Coverage::of_meta(self.meta())
    }

    #[inline]
    pub(super) fn occupied(&self) -> u64 {
        self.meta() & Self::ALL_SLOTS
    }

    #[inline]
    pub(super) fn free_slot(&self) -> Option<usize> {
        let free = !self.meta() & Self::ALL_SLOTS;
        (free != 0).then(|| free.trailing_zeros() as usize)
    }

    #[inline]
    pub(super) fn payload(&self, slot: usize) -> u64 {
        self.word(Self::PAYLOADS + slot).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn key(&self, slot: usize) -> K {
        K::load(self.key_words(slot))
    }

    /// The next bucket of the chain.
    #[inline]
    pub(super) fn next(&self) -> Option<Bucket<K>> {
        let link = self.word(Self::LINK).load(Ordering::Relaxed);
        NonNull::new(link as *mut AtomicU64).map(Bucket::at)
    }

    #[inline]
    pub(super) fn set_next(&self, next: Option<Bucket<K>>) {
        let link = next.map_or(0, |next| next.0.as_ptr() as u64);
        self.word(Self::LINK).store(link, Ordering::Relaxed);
    }

    /// The slot that holds `key`. All slots are compared before the one jump, which is cheaper
    /// than a jump per slot that is taken at an unpredictable one.
    #[inline]
    pub(super) fn find(&self, key: &K) -> Option<usize> {
        let mut equal = 0;
        for slot in 0..Self::SLOTS {
            equal |= u64::from(key.equals_stored(self.key_words(slot))) << slot;
        }
        equal &= self.occupied();
        (equal != 0).then(|| equal.trailing_zeros() as usize)
    }

    #[inline]
    pub(super) fn put(&self, slot: usize, key: &K, payload: u64) {
        key.store(self.key_words(slot));
        self.word(Self::PAYLOADS + slot)
            .store(payload, Ordering::Relaxed);
        self.set_meta(self.meta() | 1 << slot);
    }

    #[inline]
    pub(super) fn clear(&self, slot: usize) {
        self.set_meta(self.meta() & !(1 << slot));
    }

    #[inline]
    pub(super) fn prefetch(&self) {
        for line in 0..(Self::BYTES / 64).min(4) {
            prefetch(self.0.as_ptr().wrapping_add(line * 8));
        }
    }
}

/// What a walk along a bucket's chain found for a key.
pub(super) struct Probe<K: Key> {
    pub(super) found: Option<(Bucket<K>, usize)>,
    pub(super) free: Option<(Bucket<K>, usize)>,
    pub(super) last: Bucket<K>,
}

/// Looks for `key` in the chain that begins with `home`, whose version was `seen`. If it has
/// changed meanwhile, the result means nothing.
#[inline]
pub(super) fn find<K: Key>(home: Bucket<K>, seen: u64, key: &K) -> Probe<K> {
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
pub(super) fn snapshot<K: Key>(home: Bucket<K>, entries: &mut Vec<(K, u64)>) {
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
