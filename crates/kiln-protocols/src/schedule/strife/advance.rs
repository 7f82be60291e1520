//! What follows a stage: the one that is opened next, and the end of a batch.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::lock;
use kiln_platform::time;

use super::analysis::Analyst;
use super::locks::NUMBERS_MAX;
use super::stages::Stage;
use super::{Collection, Shared};
use crate::batches::{BatchStatistics, Step};

impl Shared {
    /// Closes the batch that is collected, which has so many transactions: opens its first stage.
    pub(super) fn close(&self, collection: &Collection, length: u32) {
        // SAFETY: no worker can take an item before the stage is open.
        unsafe { self.batch.note_end(Step::Collect) };
        let is_shared = collection.open > 0 || collection.is_disturbed;
        if is_shared || self.batch.number() >= NUMBERS_MAX {
            for at in 0..length {
                // SAFETY: no worker can take an item before the stage is open.
                unsafe { self.batch.context(at) }.is_residual = true;
                self.batch.residuals.push(at);
            }
            // SAFETY: as above.
            let items = unsafe { self.batch.arrange_among_statements() };
            self.stages.open(Stage::Residual, items);
        } else if length == 1 {
            // SAFETY: no worker can take an item before the stage is open.
            unsafe { self.batch.arrange_alone() };
            self.stages.open(Stage::ConflictFree, 1);
        } else {
            // SAFETY: as above.
            unsafe { self.batch.divide(collection.serving) };
            if self.batch.has_left() {
                // SAFETY: as above.
                let items = unsafe { self.batch.chunks() };
                self.stages.open(Stage::Settle, items);
            } else {
                self.stages.open(Stage::Spot, 1);
            }
        }
    }

    /// All items of a stage are done: opens the next one that has any. What becomes of the batch is
    /// added to `counts` when it ends.
    pub(super) fn advance(&self, stage: Stage, counts: &mut BatchStatistics) {
        let (stages, batch) = (&self.stages, &self.batch);
        // SAFETY: the caller has done the last item.
        unsafe { batch.note_end(stage.step()) };
        match stage {
            Stage::Collect => unreachable!("it has no items"),
            Stage::Settle => return stages.open(Stage::Spot, 1),
            Stage::Spot => {
                // SAFETY: the caller has done the last item, here and below.
                return stages.open(Stage::Fuse, unsafe {
                    batch.note_serial(batch.plan().began_ns);
                    batch.chunks()
                });
            }
            Stage::Fuse => {
                let began_ns = time::now_ns();
                Analyst::merge(batch);
                // SAFETY: as above.
                return stages.open(Stage::Allocate, unsafe {
                    batch.note_end(Step::Merge);
                    batch.note_serial(began_ns);
                    batch.chunks()
                });
            }
            Stage::Allocate => {
                // SAFETY: as above.
                let items = unsafe {
                    self.explanation.look(batch);
                    let items = batch.arrange();
                    batch.note_clusters();
                    items
                };
                if items > 0 {
                    return stages.open(Stage::ConflictFree, items);
                }
            }
            Stage::ConflictFree | Stage::Residual | Stage::Last => {}
        }
        let is_before = |other: Stage| (stage as u8) < (other as u8);
        if is_before(Stage::Residual) && batch.residuals.length() > 0 {
            // SAFETY: the caller has done the last item of a stage.
            let items = unsafe { batch.arrange_residuals() };
            stages.open(Stage::Residual, items);
        } else if is_before(Stage::Last) && batch.lasts.length() > 0 {
            stages.open(Stage::Last, 1);
        } else {
            self.finish(counts);
        }
    }

    /// The batch is done; the next one is collected.
    pub(super) fn finish(&self, counts: &mut BatchStatistics) {
        let mut collection = lock(&self.collection);
        // SAFETY: all stages are done, and no worker adds to it yet.
        let shown = unsafe {
            counts.add(&self.batch.take_counted());
            let shown = self.batch.take_shown();
            self.batch.clear();
            shown
        };
        collection.tuner.learn(&shown);
        self.batch.tuned.set(collection.tuner.now());
        collection.ready = 0;
        collection.is_disturbed = false;
        // Relaxed: the opening of the stage publishes it.
        self.taken.0.store(0, Ordering::Relaxed);
        self.stages.open(Stage::Collect, 0);
    }
}
