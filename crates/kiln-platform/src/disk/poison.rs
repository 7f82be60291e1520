//! A handle that has failed once stays failed.

use super::error::{Error, Result};
use crate::sync::{Mutex, OnceLock, lock};

/// The first error of a handle's changes and syncs.
#[derive(Debug, Default)]
pub(super) struct Poison {
    first: OnceLock<Error>,
    /// Held during a sync: the system reports a failure to one of two syncs that run at a time, and
    /// the other one must see the poison before it reports success.
    syncing: Mutex<()>,
}

impl Poison {
    /// Refuses if an earlier change or sync has failed.
    pub(super) fn check(&self) -> Result<()> {
        match self.first.get() {
            Some(first) => Err(first.clone()),
            None => Ok(()),
        }
    }

    /// Makes a change unless an earlier change or sync has failed. If this one fails, it is the
    /// last.
    pub(super) fn change<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check()?;
        change().map_err(|error| self.first.get_or_init(|| error).clone())
    }

    /// As [`Poison::change`], for a sync: one at a time, so that each sees the failure of those
    /// before. A change that fails beside a sync makes it fail as well.
    pub(super) fn sync(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let _syncing = lock(&self.syncing);
        self.change(sync)?;
        self.check()
    }
}
