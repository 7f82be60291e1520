//! Backups of a database that is open.

use std::path::Path;

use kiln_durability::backup::{self, BackupReport, Source, Watch};
use kiln_durability::check_is_free;
use kiln_platform::time;
use kiln_storage::error::{Error, Result};

use super::checkpoint::with_checkpoint;
use crate::engine::Engine;

impl Engine {
    /// Copies the database to `target`, where nothing is or an empty directory: writes a
    /// checkpoint, and copies it and the log after it. All that was acknowledged before the call is
    /// in the backup. Transactions go on meanwhile; other checkpoints wait. `watch` is told how
    /// many bytes are copied, and how many there are.
    ///
    /// # Errors
    /// 55000 without a data directory, or when `target` is not empty; those of
    /// [`Engine::checkpoint`] and of [`backup::write`].
    pub fn backup(&self, target: &Path, watch: Watch<'_>) -> Result<BackupReport> {
        check_is_free(target)?;
        let inner = self.inner();
        with_checkpoint(inner, |directory, report| {
            let Some(log) = inner.log() else {
                return Err(Error::internal("a data directory has no log"));
            };
            // Before the log's end is determined: what was acknowledged until then is before that.
            let taken_us = time::wall_clock_us();
            log.wait(log.newest())?;
            let manifest = directory.manifest();
            let checkpoint = manifest.checkpoints.last().cloned();
            debug_assert!(
                checkpoint
                    .as_ref()
                    .is_some_and(|it| it.number == report.number)
            );
            let source = Source {
                directory,
                checkpoint,
                end: log.end(),
                taken_us,
            };
            backup::write(&source, target, watch)
        })
    }
}
