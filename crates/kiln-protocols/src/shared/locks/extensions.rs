//! What some locks do besides: an access asks for those of these traits that it needs.

use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use super::Locks;
use crate::shared::planning::{Claim, Planned};

/// Locks that are taken all together before the transaction runs: by [`PlannedLocks::take_all`],
/// once, or by its scheduler. What it meets beyond is taken only if that needs no wait.
pub trait PlannedLocks: Locks + TravellingLocks {
    /// Whether claims on records may be put [in words](crate::shared::planning::Footprint::add_word):
    /// they are taken one after the other, and looked at in no other way.
    const MAY_BE_IN_WORDS: bool = true;

    /// Whether a record whose lock is held may be touched now.
    ///
    /// # Errors
    /// Why the attempt fails instead: the record's maker has not ended, and has no lock of it.
    #[inline(always)]
    fn admits(&self, _record: RecordRef, _held: Self::Held) -> Result<(), AbortCause> {
        Ok(())
    }

    /// What such locks ask of plans: by default claims in the order of their records' addresses,
    /// and nothing else.
    #[inline(always)]
    fn planned() -> Planned {
        Planned::default()
    }

    /// Takes the locks of records, each named once, [as they were planned](PlannedLocks::planned);
    /// `hold` gets each that is held.
    ///
    /// # Errors
    /// Why the attempt fails instead; what `hold` got is held all the same.
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        hold: impl FnMut(Claim, Self::Held),
    ) -> Result<(), AbortCause>
    where
        Self: Sized;
}

/// Locks of attempts that may travel: what is done with records is done by the owner of their
/// partition.
pub trait TravellingLocks {
    /// Whether they do.
    const TRAVELS: bool = false;

    /// The partition of a part of the data, if this one is not there.
    #[inline(always)]
    fn elsewhere(&self, _part: Part) -> Option<u16> {
        None
    }
}

/// Exclusive locks on partitions: a record whose part is [covered](CoveringLocks::covers) needs
/// none of its own.
pub trait CoveringLocks: PlannedLocks {
    /// Whether locks that are held cover the records of a part.
    fn covers(&self, part: Part, exclusive: bool) -> bool;

    /// As [`PlannedLocks::admits`], for a record that is covered.
    ///
    /// # Errors
    /// As there.
    fn admits_covered(&self, record: RecordRef) -> Result<(), AbortCause>;
}

/// Locks that stand back where a scheduler has decided what an attempt may touch.
pub trait GrantingLocks: PlannedLocks {
    /// Whether the attempt has what it may touch already, and takes no lock:
    /// [`GrantingLocks::is_granted`] says what that is, and nothing is let go.
    fn has_grant(&self) -> bool;

    /// Whether the attempt may touch a record; asked where it has a grant.
    ///
    /// # Errors
    /// Why it fails instead.
    fn is_granted(&self, record: RecordRef, exclusive: bool) -> Result<(), AbortCause>;

    /// Whether attempts that have a grant ever leave updates to their commit (STO §6.1), and
    /// several of them may be granted the same record for that; asked once.
    fn leaves_updates(&self) -> bool;

    /// Whether the attempt leaves updates to its commit.
    fn defers(&self) -> bool;

    /// Whether all who have a grant of the record only defer updates of it to their commits.
    fn is_deferred(&self, record: RecordRef) -> bool;

    /// Takes the lock of a record that [is deferred](GrantingLocks::is_deferred): taken in the
    /// order of addresses, for the time of a commit.
    ///
    /// # Errors
    /// Why the attempt fails instead.
    fn take_deferred(&mut self, record: RecordRef) -> Result<(), AbortCause>;

    /// Lets go of it.
    fn release_deferred(&mut self, record: RecordRef);
}
