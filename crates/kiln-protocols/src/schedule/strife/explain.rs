//! What became of a batch, for people: its clusters, and its data access graph (STRIFE Fig. 2, 3
//! and 5).

use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::{Mutex, lock};

use super::batch::Batch;
use super::locks::{node_of, tie_of};
use crate::batches::{Explained, ExplainedTransaction};

/// The batch that a caller asked for.
#[derive(Default)]
pub(super) struct Explanation {
    is_wanted: AtomicBool,
    explained: Mutex<Option<Explained>>,
}

impl Explanation {
    /// Asks for a batch: the next one that is at least half as large as it should be, or the
    /// largest one until then.
    pub fn want(&self) {
        *lock(&self.explained) = None;
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// The batch that was asked for, if there was one.
    pub fn take(&self) -> Option<Explained> {
        self.is_wanted.store(false, Ordering::Relaxed);
        lock(&self.explained).take()
    }

    /// A batch was analysed.
    ///
    /// # Safety
    /// The caller has done the last item of ALLOCATE, and has not opened the next stage.
    #[inline]
    pub unsafe fn look(&self, batch: &Batch) {
        // Relaxed: which batch it is does not matter.
        if self.is_wanted.load(Ordering::Relaxed) {
            // SAFETY: the caller has done the last item of ALLOCATE, and has not opened the next
            // stage.
            unsafe { self.explain(batch) };
        }
    }

    #[cold]
    unsafe fn explain(&self, batch: &Batch) {
        let mut known = lock(&self.explained);
        // SAFETY: it is not collected any more.
        let length = unsafe { batch.contexts() }.len();
        if known
            .as_ref()
            .is_none_or(|known| known.transactions.len() < length)
        {
            // SAFETY: the analysis is done, and the next stage is not open: `look` passes its
            // promise on.
            *known = Some(unsafe { explain(batch) });
        }
        if length * 2 >= batch.tuned.size() as usize {
            self.is_wanted.store(false, Ordering::Relaxed);
        }
    }
}

/// What became of a batch.
///
/// # Safety
/// The caller has done the last item of ALLOCATE, and has not opened the next stage.
unsafe fn explain(batch: &Batch) -> Explained {
    // SAFETY: the caller has done the last item of ALLOCATE, and no stage is open.
    let (contexts, clusters) = unsafe { (batch.contexts(), batch.clusters()) };
    let mut roots = batch.roots();
    roots.retain(|(_, length)| *length > 0);
    roots.sort_unstable_by_key(|&(root, length)| (u32::MAX - length, root));
    let mut explained = Explained {
        clusters,
        transactions: vec![ExplainedTransaction::default(); contexts.len()],
        records: Vec::new(),
        left: 0,
    };
    let mut position_of: BTreeMap<u32, usize> = BTreeMap::new();
    for (position, &(root, _)) in roots.iter().enumerate() {
        position_of.insert(batch.forest.find(root), position);
        let mut next = batch.queue(root).load(Ordering::Relaxed) as u32;
        while next > 0 {
            explained.transactions[next as usize - 1].cluster = Some(position);
            // SAFETY: no stage is open, so no worker uses the batch's transactions.
            next = unsafe { batch.next_of(next - 1) };
        }
    }
    let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
    let mut left: BTreeSet<u64> = BTreeSet::new();
    for (at, transaction) in explained.transactions.iter_mut().enumerate() {
        // SAFETY: no stage is open, so no worker uses the batch's transactions.
        let context = unsafe { batch.context(at as u32) };
        for claim in context.footprint.claims() {
            let Some(node) = tie_of(claim.record, batch.number()) else {
                if node_of(claim.record, batch.number()).is_some() {
                    left.insert(claim.record.address());
                }
                continue;
            };
            let number = *numbers.entry(claim.record.address()).or_insert_with(|| {
                let root = batch.forest.find(node);
                explained.records.push(position_of.get(&root).copied());
                explained.records.len() - 1
            });
            transaction.records.push((number, claim.exclusive));
        }
    }
    explained.left = left.len();
    explained
}
