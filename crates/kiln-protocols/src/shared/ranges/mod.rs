//! Locks on ranges of keys (VLL §2.7): what they cover, how they are named, and how a call's are
//! planned.
//!
//! | module | holds |
//! |---|---|
//! | [`claim`] | a range of keys with the mode in which it is wanted |
//! | [`nodes`] | the nodes of the prefix hierarchy that a claim asks for, in which modes, and which of these conflict |
//! | [`plan`] | the claims of a transaction, in order, and what they cover |
//! | [`reconnaissance`] | the access that collects them, without isolation and without effects |
//! | [`planner`] | a worker's plans |
//!
//! # What is locked
//!
//! A table's keys are in [key spaces](kiln_storage::table::KeySpace), one for each kind of key that
//! it has indexes of. A lock belongs to a key, or a range of keys, whether there are records or
//! not:
//!
//! | who | locks |
//! |---|---|
//! | a look-up | its key, in the space of its index |
//! | a scan | its range |
//! | an update or a delete | the keys of the record in all spaces of its table, exclusively |
//! | an insert | the keys that it brings, exclusively |
//! | an update of a key | the old key and the new one, exclusively |
//!
//! So a transaction that has a key's lock, by whichever space, relies on the record with all its
//! columns, or on there being none: writers have the record's keys in all spaces. There are no
//! locks on records, and no gaps to be compared.
//!
//! # The hierarchy
//!
//! ```text
//!  space ──┬── 0··· ──┬── 00·· ── …            a range is covered by up to eight nodes of one level;
//!          │          └── 01·· ── … ── 0110    intentions go on all nodes above them
//!          └── 1··· ── …
//! ```
//!
//! The paper locks prefixes of bit strings and puts intentions on each shorter one, bit by bit:
//! sixteen for the keys of its experiments. Our keys have 32 to 2048 bits, of which most never
//! differ. So only some prefixes are nodes
//! ([`KeyLayout::cuts`](kiln_storage::key::KeyLayout::cuts)): one for all keys, one behind each
//! column, and within the last two columns one for each four bits of the last sixteen of a number.
//! A range is covered by the finest nodes of which eight will do, so it locks at most some
//! fifteenths of its neighbourhood besides. Keys longer than 128 bits are locked by their
//! first 128.

pub mod claim;
pub mod nodes;
pub mod plan;
pub mod planner;
pub mod reconnaissance;

use kiln_procedure::AbortCause;

pub use claim::RangeClaim;
pub use plan::{Naming, RangePlan};
pub use planner::RangePlanner;

/// One worker's side of locks on ranges.
pub trait RangeManager: Send {
    /// How the nodes of its locks are named.
    type Naming: Naming;

    /// Whether it takes what an attempt plans. Else a scheduler does, before the attempt begins.
    const TAKES_PLANS: bool = false;

    /// A call begins that ends at `deadline_ns` if ever.
    fn begin_call(&mut self, _deadline_ns: Option<u64>) {}

    /// Takes what the attempt that has begun plans, and waits for it.
    ///
    /// # Errors
    /// When it has waited in vain. The attempt lets go then of what was taken.
    fn take_plan(&mut self, _plan: &RangePlan<Self::Naming>) -> Result<(), AbortCause> {
        unreachable!("a scheduler takes what is planned")
    }

    /// An attempt has begun, of the transaction with a number, that holds what it planned, as a
    /// scheduler has taken it.
    fn hold(&mut self, _plan: &RangePlan<Self::Naming>, _txn: u32) {
        unreachable!("attempts take what they plan")
    }

    /// Takes what was not planned, if that needs no wait. What it has taken before it has.
    fn take(&mut self, claim: &RangeClaim) -> bool;

    /// Lets all go that it has taken.
    fn release(&mut self);
}
