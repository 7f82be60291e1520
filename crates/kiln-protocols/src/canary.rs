//! Canaries: protocols broken on purpose, one flaw at a time, to show that the judge of histories
//! would find such a flaw if we had made it.
//!
//! The flaws are compiled in by the feature `canaries` alone, which only that test turns on. In
//! every other build `Canary::sings` is `false` where it stands, and nothing of them is left.

/// A deliberate flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Canary {
    /// `silo`, `occ` and `tictoc` do not compare what they read with what is there at their commit.
    ReadValidationSkipped = 1,
    /// No protocol compares the index nodes whose gaps it relied on.
    NodeValidationSkipped,
    /// An attempt's own insertion into a node whose gaps it relied on hides those of others before.
    OwnInsertionHidesOthers,
    /// `silo` installs without having locked.
    InstalledWithoutLocks,
    /// `silo` commits with the greatest version that it has met, and not one above.
    VersionReused,
    /// `silo` takes no note of a record that it found absent.
    AbsenceNotNoted,
    /// `silo` lets others see an inserted record before it commits.
    InsertedPresent,
    /// `silo` ignores that a record changed between its reading and its locking.
    LockedAtAnyVersion,
    /// Other attempts follow an entry that is only moving, and find a record under two keys.
    MovingEntryFollowed,
    /// A record that was found under a key may have gone on to another one before it is looked at.
    /// This was an error of ours once: a look-up took an entry from the index, then another attempt
    /// moved the record and committed, and only then the look-up met the record.
    FoundWhereItWas,
    /// `silo` lets two attempts move the same record. This was an error of ours once: each took the
    /// other's moving entry for its own, and found the record under a key that it never had.
    MovedByTwo,
    /// An attempt that takes a row through a unique key, and on again, forgets that it relies on no
    /// other attempt having had the key. This was an error of ours once, in all protocols that
    /// guard nodes.
    LeftKeyForgotten,
    /// `2pl` reads without a lock.
    SharedLockSkipped,
    /// `2pl` lets go of its locks before the versions of what it wrote are there.
    ReleasedBeforeInstall,
    /// `2pl` lets go of a record that it only reads as soon as it has it.
    SharedLockReleasedEarly,
    /// Locks with queues: a holder that lets go does not pass the lock on.
    LockNotPassedOn,
    /// Locks with queues: one of two sharers lets go, and the lock is passed on to a writer.
    LockPassedToTwo,
    /// `2pl-wait-die` lets younger transactions wait for older ones.
    YoungerWaits,
    /// Locks with queues: who waits shows only for a moment whom it waits for.
    EdgesRemovedEarly,
    /// Writing in place leaves the updates of an attempt that is rolled back.
    UndoLost,
    /// `tictoc` does not tell writers up to when it has read.
    NotExtended,
    /// `tictoc` gives no time to who saw a gap, and in which order with who filled it.
    GapsWithoutTime,
    /// `hybrid` lets optimistic attempts write what pessimistic ones share.
    SharersIgnored,
    /// `mvcc` writes over a version that was read at a greater timestamp.
    ReadTimestampIgnored,
    /// `mvcc` takes a version that is not decided for one that will not be.
    PendingVersionIgnored,
    /// `mvcc` folds and prunes versions that snapshots still want.
    PrunedTooEarly,
    /// `mvcc` reads a snapshot of which some transactions are not decided.
    SnapshotNotAwaited,
    /// `+cu` runs an updater when the update comes and not when the record is locked.
    UpdaterOnStaleValue,
    /// `+cu` without second timestamps: an attempt that reads a record of which it has left an
    /// update to its commit writes over whatever version is there then all the same.
    ReadStaysUnobserved,
    /// `+ts` writes a split column without advancing its timestamp.
    GroupNotAdvanced,
    /// TicToc with timestamp splitting: an attempt that observes split columns may come before
    /// the one that wrote them.
    GroupWithoutTime,
    /// TicToc with timestamp splitting: who repeats an attempt reads copies of what it did not
    /// reserve.
    CopyNotReserved,
    /// TicToc with timestamp splitting: who repeats an attempt reads copies of records that have
    /// moved since.
    CopyOfMovedRecord,
    /// `mvcc` with timestamp splitting: an attempt that observes split columns does not look
    /// whether another is about to write them.
    GroupWritersIgnored,
    /// Protocols that plan read a record that was not planned, and that another transaction has.
    FootprintMissIgnored,
    /// Protocols that plan take the record that the plan has found for a key, though it went on to
    /// another one before it was locked.
    FindingOutdated,
    /// Locks that are planned: the run takes the record that the plan has found at a look-up site,
    /// though its row is gone since.
    HandleOfGoneRow,
    /// Locks that are planned: what the plan has read of an index is taken for what is there, and
    /// not guarded.
    ScanOutdated,
    /// `vll` leaves its queue before it has run, while it still has its locks.
    LeftBeforeUnlocking,
    /// `vll-sca` takes the hashes of a context's former transaction for those of the present one.
    ScaHashReused,
    /// `orthrus`, `orthrus-shared` and `vll-single` pass a demand on before its locks are granted.
    ForwardedEarly,
    /// `vll-single`: transactions come to several partitions in different orders, and wait for each
    /// other.
    OutOfSequence,
    /// `vll`: no worker hears that the first of the queue may run.
    HeadNotWoken,
    /// `strife` merges special clusters, and leaves each its queue.
    SpecialsMergedByName,
    /// `strife` runs residuals in the conflict-free stage.
    ResidualWithoutLocks,
    /// `strife` loses unions of data nodes.
    UnionLost,
    /// `strife+cu` leaves updates of a record to commits that a transaction of the batch reads.
    LeftThoughRead,
    /// `healing` reads anew what was found to have changed first, and leaves the values of what
    /// depends on it, and has changed too, as they were.
    DependentNotRestored,
    /// `healing` forgets that updates depend on what was read: what is read anew does not reach
    /// them.
    DependencyForgotten,
    /// `healing` takes the record that a look-up led to before, though it looks for another key
    /// now.
    StaleHandleKept,
    /// `healing` installs what another attempt has locked, which heals.
    LockOfHealerIgnored,
    /// `healing` neither locks nor compares a record that came in by a restoration and lies before
    /// what was validated already.
    EarlierElementIgnored,
    /// `partitioned` reads what is in a partition that it does not have.
    PartitionGuardIgnored,
    /// `dora` lets go of the locks of a partition when a transaction leaves it.
    LocksLeftBehind,
    /// Locks on ranges: scans take none.
    RangeNotLocked,
    /// Locks on ranges: a transaction that locks a key exclusively does not say so to the prefixes
    /// above it.
    IntentionForgotten,
    /// `vllr-sca` does not look at the intentions of the transactions before.
    ScaIntentionsIgnored,
    /// Owners of partitions, and concurrency controllers, pass a lock on to the one behind the
    /// holder that lets it go, and not to the first who waits: others that share it may still be
    /// before that one.
    UnlockedOutOfOrder,
    /// Owners of partitions, and concurrency controllers, are given other data while transactions
    /// have locks.
    DividedInUse,
    /// Commits are reported, and take their log epoch, when others may have their records already.
    LogEpochAfterUnlocking,
    /// Reports of several changes lack the last one.
    WriteLeftOut,
    /// A row that gets another primary key is reported as updated, and not under both keys.
    KeyChangeAsUpdate,
    /// A transaction that inserts a key takes no note of the version of the one that deleted it.
    DeletionForgotten,
    /// Calls are logged without their order. Not among [`Canary::ALL`]: histories do not show it,
    /// recovered tables do.
    CommandsUnordered,
    /// `silo` without early aborts: the attempt that has put a record into the indexes takes it at
    /// its commit, though another one has committed its row there.
    PlaceholderTaken,
    /// Claims by column group: readers take one column that is written for an unwritten one.
    WrittenColumnForgotten,
    /// A protected region that catches an error leaves its last change in place. Not among
    /// [`Canary::ALL`]: histories do not show it, audits do.
    ChangeNotTakenBack,
}

impl Canary {
    /// All flaws.
    pub const ALL: [Canary; 65] = [
        Canary::ReadValidationSkipped,
        Canary::NodeValidationSkipped,
        Canary::OwnInsertionHidesOthers,
        Canary::InstalledWithoutLocks,
        Canary::VersionReused,
        Canary::AbsenceNotNoted,
        Canary::InsertedPresent,
        Canary::LockedAtAnyVersion,
        Canary::MovingEntryFollowed,
        Canary::FoundWhereItWas,
        Canary::MovedByTwo,
        Canary::LeftKeyForgotten,
        Canary::SharedLockSkipped,
        Canary::ReleasedBeforeInstall,
        Canary::SharedLockReleasedEarly,
        Canary::LockNotPassedOn,
        Canary::LockPassedToTwo,
        Canary::YoungerWaits,
        Canary::EdgesRemovedEarly,
        Canary::UndoLost,
        Canary::NotExtended,
        Canary::GapsWithoutTime,
        Canary::SharersIgnored,
        Canary::ReadTimestampIgnored,
        Canary::PendingVersionIgnored,
        Canary::PrunedTooEarly,
        Canary::SnapshotNotAwaited,
        Canary::UpdaterOnStaleValue,
        Canary::ReadStaysUnobserved,
        Canary::GroupNotAdvanced,
        Canary::GroupWithoutTime,
        Canary::CopyNotReserved,
        Canary::CopyOfMovedRecord,
        Canary::GroupWritersIgnored,
        Canary::FootprintMissIgnored,
        Canary::FindingOutdated,
        Canary::HandleOfGoneRow,
        Canary::ScanOutdated,
        Canary::LeftBeforeUnlocking,
        Canary::ScaHashReused,
        Canary::ForwardedEarly,
        Canary::OutOfSequence,
        Canary::HeadNotWoken,
        Canary::SpecialsMergedByName,
        Canary::ResidualWithoutLocks,
        Canary::UnionLost,
        Canary::LeftThoughRead,
        Canary::DependentNotRestored,
        Canary::DependencyForgotten,
        Canary::StaleHandleKept,
        Canary::LockOfHealerIgnored,
        Canary::EarlierElementIgnored,
        Canary::PartitionGuardIgnored,
        Canary::LocksLeftBehind,
        Canary::RangeNotLocked,
        Canary::IntentionForgotten,
        Canary::ScaIntentionsIgnored,
        Canary::UnlockedOutOfOrder,
        Canary::DividedInUse,
        Canary::LogEpochAfterUnlocking,
        Canary::WriteLeftOut,
        Canary::KeyChangeAsUpdate,
        Canary::DeletionForgotten,
        Canary::PlaceholderTaken,
        Canary::WrittenColumnForgotten,
    ];

    /// Whether the flaw is there.
    #[inline(always)]
    pub(crate) fn sings(self) -> bool {
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

    /// Puts one flaw into all protocols of the process, or none. No transaction runs.
    pub fn release(canary: Option<Canary>) {
        RELEASED.store(canary.map_or(0, |canary| canary as u32), Ordering::SeqCst);
    }

    pub(super) fn is(canary: Canary) -> bool {
        RELEASED.load(Ordering::Relaxed) == canary as u32
    }
}
