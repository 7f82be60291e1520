//! Contexts without a call, left by workers that are without a core slot to those that are
//! inside.

use kiln_platform::sync::{Mutex, lock};

use super::context::Context;
use crate::schedule::in_flight::Own;

/// What workers have left.
#[derive(Default)]
pub(super) struct Spare(Mutex<Vec<Vec<Own<Context>>>>);

impl Spare {
    /// Leaves those of a worker.
    pub fn leave(&self, pool: &mut Vec<Own<Context>>) {
        if !pool.is_empty() {
            lock(&self.0).push(std::mem::take(pool));
        }
    }

    /// Those that were left last, for a worker that has none.
    pub fn take(&self, pool: &mut Vec<Own<Context>>) {
        if pool.is_empty() {
            *pool = lock(&self.0).pop().unwrap_or_default();
        }
    }
}
