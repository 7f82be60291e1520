//! What follows a stage: the one that is opened next, and the end of a batch.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::lock;
use kiln_platform::time;

use super::analysis::Analyst;
use super::locks::NUMBERS_MAX;
use super::stages::{Between, Stage};
use super::{Collection, StrifeState};
use crate::batches::{BatchStatistics, Step};

impl StrifeState {
    /// Closes the batch that is collected, to which no worker adds any more: opens its first stage.
    pub(super) fn close(&self, collection: &Collection, mut between: Between) {
        let (stages, batch) = (&self.stages, &self.batch);
        batch.note_end(&mut between, Step::Collect);
        let length = batch.length(&between);
        let is_shared = collection.open > 0 || collection.is_disturbed;
        if is_shared || batch.number() >= NUMBERS_MAX {
            for at in 0..length {
                batch.context_between(&mut between, at).is_residual = true;
                batch.residuals.push(at);
            }
            let items = batch.arrange_among_statements(&mut between);
            stages.open(between, Stage::Residual, items);
        } else if length == 1 {
            batch.arrange_alone(&mut between);
            stages.open(between, Stage::ConflictFree, 1);
        } else {
            batch.divide(&mut between, collection.serving);
            match batch.has_left() {
                true => {
                    let items = batch.chunks(&between);
                    stages.open(between, Stage::Exclude, items);
                }
                false => stages.open(between, Stage::Spot, 1),
            }
        }
    }

    /// All items of a stage are done: opens the next one that has any. What becomes of the batch is
    /// added to `counts` when it ends.
    pub(super) fn advance(&self, stage: Stage, mut between: Between, counts: &mut BatchStatistics) {
        let (stages, batch) = (&self.stages, &self.batch);
        batch.note_end(&mut between, stage.step());
        match stage {
            Stage::Collect => unreachable!("it has no items"),
            Stage::Exclude => return stages.open(between, Stage::Spot, 1),
            Stage::Spot => {
                let began_ns = batch.plan_between(&between).began_ns;
                batch.note_serial(&mut between, began_ns);
                let items = batch.chunks(&between);
                return stages.open(between, Stage::Fuse, items);
            }
            Stage::Fuse => {
                let began_ns = time::now_ns();
                Analyst::merge(batch);
                batch.note_end(&mut between, Step::Merge);
                batch.note_serial(&mut between, began_ns);
                let items = batch.chunks(&between);
                return stages.open(between, Stage::Allocate, items);
            }
            Stage::Allocate => {
                self.explanation.look(batch, &mut between);
                let items = batch.arrange(&mut between);
                batch.note_clusters(&mut between);
                if items > 0 {
                    return stages.open(between, Stage::ConflictFree, items);
                }
            }
            Stage::ConflictFree | Stage::Residual | Stage::Last => {}
        }
        let is_before = |other: Stage| (stage as u8) < (other as u8);
        if is_before(Stage::Residual) && batch.residuals.length() > 0 {
            let items = batch.arrange_residuals(&mut between);
            stages.open(between, Stage::Residual, items);
        } else if is_before(Stage::Last) && batch.lasts.length() > 0 {
            stages.open(between, Stage::Last, 1);
        } else {
            self.finish(between, counts);
        }
    }

    /// The batch is done; the next one is collected.
    pub(super) fn finish(&self, mut between: Between, counts: &mut BatchStatistics) {
        let mut collection = lock(&self.collection);
        counts.add(&self.batch.take_counted(&mut between));
        let shown = self.batch.take_shown(&mut between);
        self.batch.clear(&mut between);
        collection.tuner.learn(&shown);
        self.batch.tuned.set(collection.tuner.now());
        collection.ready = 0;
        collection.is_disturbed = false;
        // Relaxed: the opening of the stage publishes it.
        self.taken.0.store(0, Ordering::Relaxed);
        self.stages.open(between, Stage::Collect, 0);
    }
}
