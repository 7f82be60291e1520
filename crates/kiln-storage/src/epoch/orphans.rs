//! Retired objects that belong to no participant any more, and owners of memory that go as a whole.
//!
//! Orphans are batches: each is the queue of a limbo, which its participant left behind or which
//! was taken from an idle one. A collector takes a batch out, frees a portion of it without a lock,
//! and puts the rest back.

use std::collections::VecDeque;

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, MutexGuard, lock};

use super::limbo::{Amount, Limbo, NOTHING_WAITS, Tagged};

/// An object that is freed as a whole, with everything that was retired into it.
pub(super) struct RetiredOwner {
    /// The global epoch when the owner was retired.
    pub epoch: u64,
    pub owner: Box<dyn Send>,
}

/// The batches; see the module's documentation.
#[derive(Default)]
pub(super) struct Orphans {
    batches: Mutex<VecDeque<VecDeque<Tagged>>>,
    /// The number of batches, so that collectors take the lock only when there are any.
    count: AtomicUsize,
    /// What waits in all of them, for reports; those that are being freed count.
    objects: AtomicUsize,
    bytes: AtomicUsize,
}

/// The batches, locked.
pub(super) type Batches<'a> = MutexGuard<'a, VecDeque<VecDeque<Tagged>>>;

impl Orphans {
    /// Whether there are none but those that collectors are freeing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// What waits.
    pub fn waiting(&self) -> Amount {
        Amount {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Takes over what waits in `limbo`.
    ///
    /// # Safety
    /// The caller has the limbo's arena.
    pub unsafe fn adopt(&self, limbo: &Limbo) {
        // SAFETY: the caller has the arena.
        let batch = unsafe { limbo.take_all() };
        if !batch.is_empty() {
            let amount = Amount::of(&batch);
            self.objects.fetch_add(amount.objects, Ordering::Relaxed);
            self.bytes.fetch_add(amount.bytes, Ordering::Relaxed);
            let mut batches = lock(&self.batches);
            batches.push_back(batch);
            self.count.store(batches.len(), Ordering::Relaxed);
        }
        // Not before the batch is among the others: `drop_owners` sees it there or here.
        limbo.oldest_tag.store(NOTHING_WAITS, Ordering::Release);
    }

    /// Takes a batch out if its oldest object is `reclaimable`; meanwhile the oldest tag of
    /// `limbo`, which is the collector's, stands for it.
    pub fn take(&self, reclaimable: u64, limbo: &Limbo) -> Option<VecDeque<Tagged>> {
        let mut batches = lock(&self.batches);
        let front = |batch: &VecDeque<Tagged>| batch.front().map_or(0, |&(tag, _)| tag);
        let position = batches
            .iter()
            .position(|batch| front(batch) <= reclaimable)?;
        let batch = batches.remove(position)?;
        self.count.store(batches.len(), Ordering::Relaxed);
        // Under the lock, which `drop_owners` takes before it looks at limbos.
        let oldest = limbo.oldest_tag.load(Ordering::Relaxed).min(front(&batch));
        limbo.oldest_tag.store(oldest, Ordering::Relaxed);
        Some(batch)
    }

    /// Puts back what is left of a batch, of which `freed` was freed.
    pub fn put_back(&self, batch: VecDeque<Tagged>, freed: Amount) {
        self.objects.fetch_sub(freed.objects, Ordering::Relaxed);
        self.bytes.fetch_sub(freed.bytes, Ordering::Relaxed);
        if !batch.is_empty() {
            let mut batches = lock(&self.batches);
            batches.push_front(batch);
            self.count.store(batches.len(), Ordering::Relaxed);
        }
    }

    /// The batches, none of which comes or goes meanwhile.
    pub fn lock(&self) -> Batches<'_> {
        lock(&self.batches)
    }
}
