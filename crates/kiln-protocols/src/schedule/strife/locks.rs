//! A worker's side of the records: a record's `aux` has a label, or a lock.
//!
//! ```text
//!  63  62  61  60  59          22 21             0
//! ┌───┬───┬───┬───┬──────────────┬────────────────┐
//! │ C │ 1 │ L │ O │ batch number │ data node      │   a label: the record's data node in that batch
//! ├───┼───┼───┴───┴──────────────┴────────────────┤
//! │ X │ 0 │ sharers                               │   a lock; with X it is exclusive
//! └───┴───┴───────────────────────────────────────┘
//! ```
//!
//! With O the record has the node to itself: several transactions of the batch write it. Else the
//! node stands for all that one transaction, and no other, has labelled.
//!
//! With L the record is *left*: every transaction of the batch leaves what it does to the record to
//! its commit (`+cu`), so it ties nothing together. A transaction that commits such updates, in
//! whatever cluster, sets C meanwhile.
//!
//! Labels are not taken away again. One of a former batch says nothing, and where locks are used a
//! label is the same as no lock: taking one puts it in the label's place. A label is put where no
//! lock is held.
//!
//! # What an attempt may touch
//!
//! - *With locks* what it gets the lock of: those of its plan, taken in the order of addresses
//!   before it begins ([`ClusterLocks::take_planned`]), and of what it meets besides, without
//!   waiting.
//! - *Of a cluster* each record whose label leads to the cluster: no other worker in this stage may
//!   touch it. And it may read records without a label, planned or not: no transaction of the batch
//!   has planned to write these, and one that has not planned to write a record without a label may
//!   not write it. New records get a label of the cluster, so that its later transactions find
//!   them, and others do not. Of records that are left it may leave updates to its commit. All else
//!   is a footprint miss, and the transaction a residual.
//! - *Alone* all.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::StrifeState;
use crate::canary::Canary;
use crate::shared::locks::{
    ByPlannedRecord, GrantingLocks, Locks, PlannedLocks, Taken, TravellingLocks,
};
use crate::shared::planning::Claim;

const EXCLUSIVE: u64 = 1 << 63;
const LABEL: u64 = 1 << 62;
/// The record is left.
const DEFERRED: u64 = 1 << 61;
/// The record has its data node to itself.
const OWN: u64 = 1 << 60;
/// A transaction commits updates of a record that is left.
const COMMITTING: u64 = 1 << 63;

/// Bits of a data node's number.
pub(super) const NODE_BITS: u32 = 22;
/// Numbers of batches are below this. Then there are no clusters any more, in some months at the
/// earliest: a label of a former batch might be taken for one of the present.
pub(super) const NUMBERS_MAX: u64 = 1 << 38;

/// The label of a data node of a batch.
#[inline(always)]
fn label(number: u64, node: u32) -> u64 {
    LABEL | number << NODE_BITS | u64::from(node)
}

/// The data node of a word that is a label of the batch with this number.
#[inline(always)]
fn node_in(word: u64, number: u64) -> Option<u32> {
    let node = word % (1 << NODE_BITS);
    let plain = word & !(DEFERRED | OWN | COMMITTING);
    (plain - node == label(number, 0)).then_some(node as u32)
}

/// The data node that a record has in a batch, if a worker labelled it.
#[inline(always)]
pub(super) fn node_of(record: RecordRef, number: u64) -> Option<u32> {
    // Relaxed: labels are put before the stage in which they are looked at, or, at new records,
    // before the index leads there.
    node_in(record.aux().load(Ordering::Relaxed), number)
}

/// A label that was put, or was there.
pub(super) struct Label {
    /// The record's data node.
    pub node: u32,
    pub origin: Origin,
    /// Whether the record is left so far.
    pub is_deferred: bool,
}

/// Where the data node of a label comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The record had it.
    Known,
    /// The record had no label: it has the node of the transaction that labels it.
    New,
    /// The record had this node together with others that one transaction labelled, and has one to
    /// itself now.
    Parted(u32),
}

/// Which data node a label needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// That of the transaction.
    Common,
    /// One that no record has.
    Own,
}

/// Labels a record with the data node that `spare` gives, unless it has a label of the batch. It is
/// left as long as all who label it say so; else the second transaction that writes it gives it a
/// node of its own, as long as there are any: what ties the first one's records together is that
/// transaction, and not what they stand for. None when the record is locked, or when there are no
/// more nodes.
#[inline]
pub(super) fn put_label(
    record: RecordRef,
    number: u64,
    is_deferred: bool,
    mut spare: impl FnMut(Wanted) -> Option<u32>,
) -> Option<Label> {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let (new, put) = if let Some(node) = node_in(seen, number) {
            let was_deferred = seen & DEFERRED != 0;
            let is_deferred = was_deferred && is_deferred;
            let own = match is_deferred || seen & OWN != 0 {
                true => None,
                false => spare(Wanted::Own),
            };
            let (node, origin) = match own {
                Some(own) => (own, Origin::Parted(node)),
                None => (node, Origin::Known),
            };
            let put = Label {
                node,
                origin,
                is_deferred,
            };
            match origin {
                Origin::Known if is_deferred == was_deferred => return Some(put),
                Origin::Known => (seen & !DEFERRED, put),
                _ => (label(number, node) | OWN, put),
            }
        } else {
            if seen != 0 && seen & LABEL == 0 {
                return None;
            }
            let node = spare(Wanted::Common)?;
            let new = Label {
                node,
                origin: Origin::New,
                is_deferred,
            };
            (
                label(number, node) | if is_deferred { DEFERRED } else { 0 },
                new,
            )
        };
        // Relaxed: as in `node_of`.
        match word.compare_exchange_weak(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(put),
            Err(now) => seen = now,
        }
    }
}

/// A transaction reads a record: if it was left, it is a record like others from now on. No
/// transaction of the batch runs.
#[inline]
pub(super) fn claim_deferred(record: RecordRef, number: u64) {
    let word = record.aux();
    // Relaxed: as in `node_of`; the next stage looks at it. Labels are put no more, and this is all
    // that is done to them.
    let seen = word.load(Ordering::Relaxed);
    if seen & DEFERRED != 0 && node_in(seen, number).is_some() {
        word.fetch_and(!DEFERRED, Ordering::Relaxed);
    }
}

/// The data node of a record that ties together those who touch it: of one that is not left.
#[inline(always)]
pub(super) fn tie_of(record: RecordRef, number: u64) -> Option<u32> {
    let word = record.aux().load(Ordering::Relaxed);
    match word & DEFERRED {
        0 => node_in(word, number),
        _ => None,
    }
}

/// What an attempt may touch; see the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Records whose locks it gets.
    Locking,
    /// Records of the cluster with this root, in the batch with this number.
    Cluster { root: u32, number: u64 },
    /// All: no other transaction runs.
    Alone,
}

/// See the module's documentation.
pub struct ClusterLocks {
    shared: Arc<StrifeState>,
    pub(super) mode: Mode,
    /// Whether updates may be deferred to the commit.
    leaves_updates: bool,
}

impl ClusterLocks {
    /// For a worker that shares its batches with others.
    pub(super) fn new(shared: Arc<StrifeState>, leaves_updates: bool) -> ClusterLocks {
        ClusterLocks {
            shared,
            mode: Mode::Locking,
            leaves_updates,
        }
    }

    /// Takes the locks of a residual's plan, which are in the order of their addresses, and waits
    /// for each if it `waits`; false when one was not to be had in time, and then it has none. A
    /// plan is older than the attempt, so a lock may be that of a cell whose record is gone; who
    /// makes a record there takes it like any other lock.
    pub(super) fn take_planned(&mut self, claims: &[Claim], waits: bool) -> bool {
        debug_assert!(claims.is_sorted_by_key(Claim::lock));
        for (position, claim) in claims.iter().enumerate() {
            let waits_max = if waits { WAITS_MAX } else { 0 };
            let is_taken = wait_for(waits_max, || match claim.exclusive {
                true => take(claim.record),
                false => share(claim.record),
            });
            if !is_taken {
                for held in &claims[..position] {
                    self.release(held.record, (), held.exclusive);
                }
                return false;
            }
        }
        true
    }
}

/// How often a lock is waited for that is taken in the order of addresses, the longest pause in
/// between in spins, and after how many of them the core is given away: some milliseconds in all.
const WAITS_MAX: u32 = 1 << 12;
const PAUSE_MAX: u64 = 64;
const WAITS_YIELD: u32 = 16;

/// Waits until a lock is taken, whose holder runs or waits for one of a higher address; false when
/// that lasts too long.
fn wait_for(waits_max: u32, mut is_taken: impl FnMut() -> bool) -> bool {
    let (mut pause, mut waits) = (1, 0);
    while !is_taken() {
        if waits >= waits_max {
            return false;
        }
        waits += 1;
        match waits % WAITS_YIELD {
            // The lock's holder may need the core.
            0 => thread::yield_now(),
            _ => thread::pause(pause),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    true
}

/// What the attempt missed: a record of another cluster, or one that no transaction has planned to
/// write.
const MISS: AbortCause = AbortCause::FootprintMiss;

/// Whether a canary lets attempts touch what their cluster does not have.
#[inline(always)]
fn is_unguarded() -> bool {
    Canary::ResidualWithoutLocks.sings() || Canary::UnionLost.sings()
}

impl Locks for ClusterLocks {
    type Held = ();
    type Naming = ByPlannedRecord;
    const NEW_AUX: Option<u64> = None;

    #[inline(always)]
    fn take(&mut self, record: RecordRef, exclusive: bool) -> Result<Taken<()>, AbortCause> {
        let is_taken = match exclusive {
            true => take(record),
            false => share(record),
        };
        match (is_taken, exclusive) {
            (true, _) => Ok(Taken::Now(())),
            (false, true) => Err(AbortCause::WriteLock),
            (false, false) => Err(AbortCause::ReadLock),
        }
    }

    fn take_new(&mut self, record: RecordRef) -> Result<(), AbortCause> {
        let word = record.aux();
        let aux = match self.mode {
            // Another call may have planned the record that was in this cell before.
            Mode::Locking if take(record) => return Ok(()),
            Mode::Locking => return Err(MISS),
            Mode::Alone => 0,
            Mode::Cluster { root, number } => {
                // A transaction has planned the record that was in this cell before.
                if let Some(node) = node_of(record, number)
                    && self.shared.batch.forest.find(node) != root
                {
                    return Err(MISS);
                }
                label(number, root)
            }
        };
        // Relaxed: the index publishes it, with the rest of the record.
        word.store(aux, Ordering::Relaxed);
        Ok(())
    }

    #[inline(always)]
    fn upgrade(&mut self, record: RecordRef, (): ()) -> Result<Taken<()>, AbortCause> {
        // Acquire pairs with the releases of those who shared it: they have read before this one
        // writes.
        let upgraded =
            record
                .aux()
                .compare_exchange(1, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
        upgraded
            .map(|_| Taken::Now(()))
            .map_err(|_| AbortCause::WriteLock)
    }

    fn wait(&mut self, _: RecordRef, (): ()) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn release(&mut self, record: RecordRef, (): (), exclusive: bool) {
        if self.has_grant() {
            return;
        }
        // Release pairs with the acquisitions below.
        if exclusive {
            record.aux().store(0, Ordering::Release);
        } else {
            record.aux().fetch_sub(1, Ordering::Release);
        }
    }
}

impl PlannedLocks for ClusterLocks {
    /// What of it is free: for transactions of several statements, which do not wait.
    fn take_all(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        mut hold: impl FnMut(Claim, ()),
    ) -> Result<(), AbortCause> {
        for claim in claims {
            if self.take(claim.record, claim.exclusive).is_ok() {
                hold(claim, ());
            }
        }
        Ok(())
    }
}

impl GrantingLocks for ClusterLocks {
    #[inline(always)]
    fn has_grant(&self) -> bool {
        self.mode != Mode::Locking
    }

    #[inline(always)]
    fn is_granted(&self, record: RecordRef, exclusive: bool) -> Result<(), AbortCause> {
        let Mode::Cluster { root, number } = self.mode else {
            return Ok(());
        };
        // Relaxed: as in `node_of`.
        let word = record.aux().load(Ordering::Relaxed);
        let may_touch = match node_in(word, number) {
            Some(_) if !exclusive && Canary::FootprintMissIgnored.sings() => true,
            Some(_) if word & DEFERRED != 0 => !exclusive && Canary::LeftThoughRead.sings(),
            Some(node) => node == root || self.shared.batch.forest.find(node) == root,
            None => !exclusive,
        };
        match may_touch || is_unguarded() {
            true => Ok(()),
            false => Err(MISS),
        }
    }

    fn leaves_updates(&self) -> bool {
        self.leaves_updates
    }

    #[inline(always)]
    fn defers(&self) -> bool {
        self.leaves_updates && matches!(self.mode, Mode::Cluster { .. })
    }

    #[inline(always)]
    fn is_deferred(&self, record: RecordRef) -> bool {
        let Mode::Cluster { number, .. } = self.mode else {
            return false;
        };
        // Relaxed: as in `node_of`.
        let word = record.aux().load(Ordering::Relaxed);
        word & DEFERRED != 0 && node_in(word, number).is_some()
    }

    fn take_deferred(&mut self, record: RecordRef) -> Result<(), AbortCause> {
        let word = record.aux();
        let is_taken = wait_for(WAITS_MAX, || {
            word.load(Ordering::Relaxed) & COMMITTING == 0
                // Acquire pairs with the release below: what the one before has written is visible.
                && word.fetch_or(COMMITTING, Ordering::Acquire) & COMMITTING == 0
        });
        match is_taken {
            true => Ok(()),
            false => Err(AbortCause::WriteLock),
        }
    }

    #[inline]
    fn release_deferred(&mut self, record: RecordRef) {
        // Release: see `take_deferred`.
        record.aux().fetch_and(!COMMITTING, Ordering::Release);
    }
}

impl TravellingLocks for ClusterLocks {}

/// Takes the shared lock if no writer holds the record.
#[inline(always)]
fn share(record: RecordRef) -> bool {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen != EXCLUSIVE {
        let sharers = if seen & LABEL == 0 { seen } else { 0 };
        // Acquire pairs with the release of the last writer: its row is visible.
        match word.compare_exchange_weak(seen, sharers + 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Takes the exclusive lock if no transaction holds the record.
#[inline(always)]
fn take(record: RecordRef) -> bool {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen == 0 || seen & LABEL != 0 {
        // Acquire pairs with the releases of the last writer and of the last readers: this one's
        // writes come after their accesses.
        match word.compare_exchange_weak(seen, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}
