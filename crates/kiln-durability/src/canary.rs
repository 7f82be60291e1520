//! Canaries: a log and a recovery that are broken on purpose, one flaw at a time, to show that
//! crashes on virtual cores would find such a flaw if we had made it.
//!
//! The flaws are compiled in by the feature `canaries` alone, which only those tests turn on. In
//! every other build [`Canary::sings`] is `false` where it stands, and nothing of them is left.

/// A deliberate flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Canary {
    /// The watermark goes up before the group is written.
    AcknowledgedBeforeWrite = 1,
    /// The directory of a new segment is not synced.
    DirectoryNotSynced,
    /// A worker tells what a call has read before that is on disk.
    ReaderNotAwaited,
    /// After a write that failed the log syncs the segment once more, and goes on when that works.
    SyncRepeated,
    /// Recovery applies the entries that it finds in a group without its last block.
    GroupWithoutEndApplied,
    /// Recovery goes on behind a block that is not whole.
    TornBlockSkipped,
    /// The ranges of sequences are not logged.
    SequencesNotLogged,
}

impl Canary {
    /// All flaws.
    pub const ALL: [Canary; 7] = [
        Canary::AcknowledgedBeforeWrite,
        Canary::DirectoryNotSynced,
        Canary::ReaderNotAwaited,
        Canary::SyncRepeated,
        Canary::GroupWithoutEndApplied,
        Canary::TornBlockSkipped,
        Canary::SequencesNotLogged,
    ];

    /// Whether the flaw is there.
    #[inline(always)]
    pub fn sings(self) -> bool {
        #[cfg(feature = "canaries")]
        {
            released::is(self)
        }
        #[cfg(not(feature = "canaries"))]
        {
            false
        }
    }
}

#[cfg(feature = "canaries")]
pub use released::release;

#[cfg(feature = "canaries")]
mod released {
    use kiln_platform::atomic::{AtomicU32, Ordering};

    use super::Canary;

    /// The number of the flaw that is there; 0 is none.
    static RELEASED: AtomicU32 = AtomicU32::new(0);

    /// Puts one flaw into all logs of the process, or none. No database is open.
    pub fn release(canary: Option<Canary>) {
        RELEASED.store(canary.map_or(0, |canary| canary as u32), Ordering::SeqCst);
    }

    pub(super) fn is(canary: Canary) -> bool {
        // Relaxed: nothing is open when it changes.
        RELEASED.load(Ordering::Relaxed) == canary as u32
    }
}
