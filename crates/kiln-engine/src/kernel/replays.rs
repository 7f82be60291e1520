//! How blocks of sessions were run again after conflicts.

use kiln_platform::atomic::{AtomicU64, Ordering};

/// How blocks were replayed since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replays {
    /// Replays, each after a conflict.
    pub replays: u64,
    /// Those of them that ran alone, after others that had lost.
    pub alone: u64,
    /// Those in which a result was another one, so that the client was told (40001).
    pub differing: u64,
    /// Conflicts of blocks that were not kept, so that they could not be replayed and the client
    /// was told (40001).
    pub refused: u64,
}

/// The same, while it is counted. Replays are rare, so that one place for all threads will do.
#[derive(Debug, Default)]
pub(crate) struct ReplayCounts {
    replays: AtomicU64,
    alone: AtomicU64,
    differing: AtomicU64,
    refused: AtomicU64,
}

impl ReplayCounts {
    /// A block was run again, alone or beside others.
    pub fn count(&self, is_alone: bool) {
        // Relaxed, here and below: the counts are for reports.
        self.replays.fetch_add(1, Ordering::Relaxed);
        self.alone.fetch_add(is_alone.into(), Ordering::Relaxed);
    }

    /// A conflict of a block that was not kept.
    pub fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A result was another one.
    pub fn note_differing(&self) {
        self.differing.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn read(&self) -> Replays {
        Replays {
            replays: self.replays.load(Ordering::Relaxed),
            alone: self.alone.load(Ordering::Relaxed),
            differing: self.differing.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}
