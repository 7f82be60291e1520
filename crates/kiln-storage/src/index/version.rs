//! The version word of a node: latch, sequence lock and phantom guard in one.
//!
//! ```text
//!  63                              16 15              2   1        0
//! ┌──────────────────────────────────┬─────────────────┬────────┬───────┐
//! │ changes                          │ removals since  │changing│latched│
//! └──────────────────────────────────┴─────────────────┴────────┴───────┘
//!  └───────────── guard ────────────┘                   └guard─┘
//! ```
//!
//! Readers compare the whole word (sequence lock). A phantom guard compares only the part that
//! insertions change: *changes* and *changing*. Removing a key moves entries, so readers in the
//! node must start again, but it invalidates no guard: who relied on the removed key being there
//! notices by its record, which the remover has marked absent before.
//!
//! Invariant: the word never returns to an earlier value but from "latched" to what it was before
//! latching, when nothing was changed. When `removals` is used up, a removal counts as a change.

use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_platform::spin::Spinner;

const LATCHED: u64 = 1;
const CHANGING: u64 = 2;
const REMOVAL: u64 = 4;
const REMOVALS: u64 = 0xfffc;
const CHANGE: u64 = 1 << 16;
const GUARD: u64 = !(REMOVALS | LATCHED);

/// The phantom guard of one node: which node, and what was observed of it.
///
/// Valid as long as the index that it came from lives: the word is part of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeVersion {
    /// The version word of the node.
    pub node: NonNull<AtomicU64>,
    /// The part of the word that insertions change, as it was.
    pub observed: u64,
}

// SAFETY: the pointer is the address of an atomic word that any thread may load while the index
// lives; a thread that may hold the guard may hold the index.
unsafe impl Send for NodeVersion {}
// SAFETY: as above.
unsafe impl Sync for NodeVersion {}

impl NodeVersion {
    /// Whether nothing was inserted into the node's key range since the guard was taken. False
    /// also while an insertion is under way.
    ///
    /// The index must still exist. At commit, a sequentially consistent fence (or, on x86-64, any
    /// atomic read-modify-write) must lie between the transaction's own insertions and its first
    /// call: of two transactions that insert into each other's gaps, one has to see the other.
    #[inline]
    pub fn is_current(&self) -> bool {
        // SAFETY: the node belongs to a living index, which never gives nodes back.
        let word = unsafe { self.node.as_ref() };
        // Acquire pairs with the acquiring compare-exchange plus release fence of
        // `try_latch_change` in the other direction: a reader that already saw the new entry also
        // finds the word changed here, because the entry was written after the word.
        word.load(Ordering::Acquire) & GUARD == self.observed
    }
}

/// The guard for the word at `word`, which was read as `seen`.
#[inline]
pub(super) fn guard(word: &AtomicU64, seen: u64) -> NodeVersion {
    NodeVersion {
        node: NonNull::from(word),
        observed: seen & GUARD,
    }
}

/// The part of a word that guards compare.
#[inline]
pub(super) fn guard_part(seen: u64) -> u64 {
    seen & GUARD
}

/// The version of a node that no thread is changing; waits for the latch to be free.
///
/// Acquire pairs with the release in `unlatch_*`: what is read of the node afterwards is at least
/// as new as this version.
#[inline]
pub(super) fn read(word: &AtomicU64) -> u64 {
    let seen = word.load(Ordering::Acquire);
    if seen & LATCHED == 0 {
        return seen;
    }
    wait(word)
}

#[cold]
fn wait(word: &AtomicU64) -> u64 {
    let mut spinner = Spinner::default();
    loop {
        spinner.spin();
        let seen = word.load(Ordering::Acquire);
        if seen & LATCHED == 0 {
            return seen;
        }
    }
}

/// Whether all that was read of the node since `seen` belongs to that version.
///
/// The fence pairs with the release fence in `try_latch_*`: if any relaxed load before it took a
/// value that a writer stored under the latch, the load after it finds the latch taken or a newer
/// version. Without the fence, the version could be loaded before the data.
#[inline]
pub(super) fn validate(word: &AtomicU64, seen: u64) -> bool {
    fence(Ordering::Acquire);
    word.load(Ordering::Relaxed) == seen
}

/// Latches the node for an insertion or a structural change if it is still at version `seen`.
/// Guards fail from here on, before anything is changed.
#[inline]
pub(super) fn try_latch_change(word: &AtomicU64, seen: u64) -> bool {
    try_latch(word, seen, seen | LATCHED | CHANGING)
}

/// Latches the node for a removal if it is still at version `seen`. Guards stay valid.
#[inline]
pub(super) fn try_latch_removal(word: &AtomicU64, seen: u64) -> bool {
    try_latch(word, seen, seen | LATCHED)
}

#[inline]
fn try_latch(word: &AtomicU64, seen: u64, latched: u64) -> bool {
    // Acquire pairs with the release in `unlatch_*`: the node is as its last writer left it.
    let won = word
        .compare_exchange(seen, latched, Ordering::Acquire, Ordering::Relaxed)
        .is_ok();
    // Pairs with the acquire fence in `validate`: the latched word is visible no later than any
    // of the relaxed stores to the node that follow.
    fence(Ordering::Release);
    won
}

/// Latches a node that no reader can be led to, whatever its version; returns that.
#[inline]
pub(super) fn latch_unlinked(word: &AtomicU64) -> u64 {
    let seen = word.load(Ordering::Relaxed);
    word.store(seen | LATCHED | CHANGING, Ordering::Relaxed);
    // A reader with an outdated address may still be in the node; see `try_latch`.
    fence(Ordering::Release);
    seen
}

/// Unlatches after an insertion or a structural change; returns the new version.
#[inline]
pub(super) fn unlatch_changed(word: &AtomicU64, seen: u64) -> u64 {
    let next = (seen & !REMOVALS) + CHANGE;
    // Release pairs with the acquires in `read` and `try_latch`: the node's new content, and the
    // record that a new payload points to, come before the version under which they are found.
    word.store(next, Ordering::Release);
    next
}

/// Unlatches after a removal; guards stay valid.
#[inline]
pub(super) fn unlatch_removed(word: &AtomicU64, seen: u64) {
    if seen & REMOVALS == REMOVALS {
        unlatch_changed(word, seen);
    } else {
        // Release as in `unlatch_changed`.
        word.store(seen + REMOVAL, Ordering::Release);
    }
}

/// Unlatches when nothing was changed after all.
#[inline]
pub(super) fn unlatch_unchanged(word: &AtomicU64, seen: u64) {
    word.store(seen, Ordering::Release);
}
