//! What became of a batch, for people: its clusters, and its data access graph (STRIFE Fig. 2, 3
//! and 5).

use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::{Mutex, lock};

use super::batch::Batch;
use super::locks::{node_of, tie_of};
use super::stages::Between;
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
    #[inline]
    pub fn look(&self, batch: &Batch, between: &mut Between) {
        // Relaxed: which batch it is does not matter.
        if self.is_wanted.load(Ordering::Relaxed) {
            self.explain(batch, between);
        }
    }

    #[cold]
    fn explain(&self, batch: &Batch, between: &mut Between) {
        let mut known = lock(&self.explained);
        let length = batch.length(between) as usize;
        if known
            .as_ref()
            .is_none_or(|known| known.transactions.len() < length)
        {
            *known = Some(explain(batch, between));
        }
        if length * 2 >= batch.tuned.size() as usize {
            self.is_wanted.store(false, Ordering::Relaxed);
        }
    }
}

/// What became of a batch, after ALLOCATE.
fn explain(batch: &Batch, between: &mut Between) -> Explained {
    let mut roots = batch.roots();
    roots.retain(|(_, length)| *length > 0);
    roots.sort_unstable_by_key(|&(root, length)| (u32::MAX - length, root));
    let mut explained = Explained {
        clusters: batch.clusters(between),
        transactions: vec![ExplainedTransaction::default(); batch.length(between) as usize],
        records: Vec::new(),
        left: 0,
    };
    let mut position_of: BTreeMap<u32, usize> = BTreeMap::new();
    for (position, &(root, _)) in roots.iter().enumerate() {
        position_of.insert(batch.forest.find(root), position);
        let mut next = batch.queue(root).load(Ordering::Relaxed) as u32;
        while next > 0 {
            explained.transactions[next as usize - 1].cluster = Some(position);
            next = batch.next_between(between, next - 1);
        }
    }
    let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
    let mut left: BTreeSet<u64> = BTreeSet::new();
    for (at, transaction) in explained.transactions.iter_mut().enumerate() {
        let context = batch.context_between(between, at as u32);
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
