//! The analysis without the transactions: for measurements and tests.

use kiln_platform::atomic::Ordering;
use kiln_platform::random::Random;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;

use super::StrifeState;
use super::analysis::Analyst;
use super::context::Context;
use super::stages::{Between, Stage};
use crate::batches::{BatchStatistics, Clusters};
use crate::schedule::in_flight::{Lent, Own};
use crate::shared::planning::{Claim, Findings};

/// A worker that adds the same transactions to each batch, analyses it with the others, and runs
/// nothing.
pub struct Isolated {
    shared: Arc<StrifeState>,
    analyst: Analyst,
    random: Random,
    /// Its own, while they are in no batch.
    contexts: Vec<Own<Context>>,
    /// Those in a batch.
    submitted: Vec<Lent<Context>>,
    exhausted: u64,
    /// What became of the batches that it ended.
    counts: BatchStatistics,
}

impl Isolated {
    /// A worker whose transactions touch these records, among all workers that share the batches.
    pub fn new(shared: Arc<StrifeState>, transactions: &[Vec<Claim>], random: Random) -> Isolated {
        let context = |claims: &Vec<Claim>| {
            let mut context = Own::new(Context::new());
            for claim in claims {
                context.footprint.add(*claim);
            }
            context.footprint.order(&mut Findings::default());
            context
        };
        shared.come();
        Isolated {
            shared,
            analyst: Analyst::default(),
            random,
            contexts: transactions.iter().map(context).collect(),
            submitted: Vec::new(),
            exhausted: 0,
            counts: BatchStatistics::default(),
        }
    }

    /// Analyses a batch, together with the other workers, each of which calls this. To one of them,
    /// the one that did the last of it, `look` tells what became of the batch.
    pub fn analyse(&mut self, look: &mut dyn FnMut(Clusters)) {
        self.analyse_and(|shared, between| look(shared.batch.clusters(between)));
    }

    fn analyse_and(&mut self, look: impl FnMut(&StrifeState, &mut Between)) {
        self.analyse_or_run(look, None);
    }

    /// With `run` transactions are run: it is told how many, and whether with locks.
    fn analyse_or_run(
        &mut self,
        mut look: impl FnMut(&StrifeState, &mut Between),
        run: Option<fn(u32, bool)>,
    ) {
        let mut spinner = Spinner::default();
        let number = loop {
            match self.shared.enter() {
                Some(round) => break round.number,
                None => spinner.spin(),
            }
        };
        for context in &mut self.contexts {
            self.analyst.prepare(&self.shared.batch, number, context);
        }
        (self.shared).leave(&mut self.contexts, &mut self.submitted, true);
        assert!(self.contexts.is_empty(), "the batch has room for all");
        while self.shared.batch.number() == number {
            let Some((stage, item)) = self.shared.stages.take(&mut self.exhausted) else {
                spinner.spin();
                continue;
            };
            let batch = &self.shared.batch;
            match stage {
                Stage::Exclude => self.analyst.exclude(batch, item),
                Stage::Spot => self.analyst.spot(batch, &mut self.random),
                Stage::Fuse => self.analyst.fuse(batch, item),
                Stage::Allocate => self.analyst.allocate(batch, item),
                _ => self.shared.pretend(stage, item, run),
            }
            let Some(mut between) = self.shared.stages.complete() else {
                continue;
            };
            if stage == Stage::Allocate {
                look(&self.shared, &mut between);
            }
            if stage == Stage::Allocate && run.is_none() {
                for (root, _) in batch.roots() {
                    batch.queue(root).store(0, Ordering::Relaxed);
                }
                self.shared.finish(between, &mut self.counts);
            } else {
                self.shared.advance(stage, between, &mut self.counts);
            }
        }
        // SAFETY: the batch is done.
        let own = (self.submitted.drain(..)).map(|context| unsafe { context.returned() });
        self.contexts.extend(own);
    }
}

impl StrifeState {
    /// Takes the transactions of an item away, and tells `run` about them.
    fn pretend(&self, stage: Stage, item: u32, run: Option<fn(u32, bool)>) {
        let (batch, run) = (&self.batch, run.unwrap_or(|_, _| {}));
        // SAFETY: the caller has taken the item.
        let plan = unsafe { batch.plan() };
        let run_queue = |root: u32| {
            let queue = batch.queue(root).swap(0, Ordering::Relaxed);
            run((queue >> 32) as u32, false);
        };
        match (stage, plan.large.get(item as usize)) {
            (Stage::ConflictFree, Some(&(special, _))) => run_queue(special),
            (Stage::ConflictFree, None) => {
                let small = batch.small_of(plan, item);
                small.for_each(|at| run_queue(batch.small.get(at)));
            }
            _ => run(batch.residuals_of(plan, item).len() as u32, true),
        }
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.shared.go(0);
    }
}

#[cfg(test)]
mod tests;
