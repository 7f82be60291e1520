//! STRIFE: batches of transactions are clustered by the data they share, and clusters run without
//! concurrency control.
//!
//! Source: G. Prasaad, A. Cheung, D. Suciu, *Handling highly contended OLTP workloads using fast
//! dynamic partitioning*, SIGMOD 2020, §2 to §4.
//!
//! # The idea
//!
//! Hot records are hot because many transactions want them; so in a batch of transactions most of
//! those that conflict have a hot record in common, and batches fall apart into clusters around
//! these, whatever the partitions of the database are. The workers find the clusters of a batch
//! together. Then each cluster is run by one worker, one transaction after the other, with no locks
//! and no validation of records. The few transactions that belong to several clusters, the
//! *residuals*, run afterwards, with locks.
//!
//! # Stages of a batch
//!
//! | stage | what happens | where |
//! |---|---|---|
//! | collect | workers draw calls, plan them (a reconnaissance), label what they will write (PREPARE) | `worker.rs`, `gather` |
//! | exclude | with `+cu`: a record that a transaction reads is not left to commits | `analysis.rs`
//! |
//! | spot | random transactions make special clusters | `analysis.rs` |
//! | fuse | each transaction's records become one cluster, unless that made one of two special ones; MERGE | `analysis.rs` |
//! | allocate | transactions of one cluster get into its queue, others among the residuals | `analysis.rs` |
//! | conflict-free | queues are taken from a shared list, the largest first, and run | `run.rs` |
//! | residual | residuals run under two-phase locking without waiting | `run.rs` |
//! | last | what has failed with locks often runs, one after the other | `run.rs` |
//!
//! A batch is closed when it has as many calls as it should have, when all workers that serve have
//! no more calls, or when its first call has waited long enough. How stages follow each other
//! without waiting for any worker: `stages.rs`, `advance.rs`. Data nodes and their clusters:
//! `forest.rs`. Labels, and what an attempt may touch: `locks.rs`. How large batches are, and `k`
//! and `α`: `tuning`.
//!
//! # Invariants
//!
//! - Labels of a batch are put while it is collected. A worker that puts some keeps it from being
//!   closed.
//! - In the stages from spot to conflict-free no record is locked, and none gets a label but new
//!   ones, which get one of the cluster that made them. So `aux` alone says of every record which
//!   cluster has it, or that no transaction will write it.
//! - No transaction writes a record without a label in the conflict-free stage. Only the worker
//!   that has taken its cluster touches a record with a label.
//! - A worker stays while a call that it drew is in a batch.
//!
//! # Inserts, deletes, ranges
//!
//! A record that a transaction inserts has no data node when the batch is analysed. It joins the
//! cluster of its transaction; transactions of other clusters that meet it are residuals. A
//! deletion is planned as a write. A scan plans the records that it meets, a failed look-up
//! nothing: that no others come in is checked at the commit by the versions of index nodes, also in
//! the conflict-free stage, and who finds one changed is a residual.
//!
//! # Between plan and run
//!
//! Calls are planned by one worker, in an epoch that it leaves again, and run by any worker some
//! batches later at most. What the reconnaissance found is only used when the run is in the same
//! epoch: why it is the same record then, whichever workers plan and run the call, is argued in
//! [`findings`](crate::shared::planning::findings). Labels, footprints and prefetches by addresses
//! that are out of date do no harm: a label on another row's cell is one data node too many, and a
//! new row whose cell has a label of another cluster is refused to its maker (`locks.rs`).
//!
//! # Records that are left
//!
//! With `+cu` a record is *deferred* to which a batch only adds, by updates that can be deferred to
//! the commit: it ties nothing together, and who commits such updates locks it for the time of the
//! commit (`locks.rs`, `access/granted_locking/deferral.rs`). A label says so from PREPARE on, and
//! does not any more after the stage *exclude* if a transaction wants more of the record. In the
//! conflict-free stage no label changes in that.
//!
//! # Transactions of several statements
//!
//! They are in no batch, and what they will touch is not known. They begin when no stage runs that
//! is without locks, and as long as one is open batches are not analysed: all their transactions
//! are residuals. A residual that cannot go on because of one stays for a later batch, when one has
//! ended or after a pause (`in_flight/parking.rs`), so no other transaction waits for it.
//!
//! # Which anomalies are excluded, and how
//!
//! All. In the conflict-free stage a cluster holds all its records, as if it had locked them before
//! the first transaction and let them go after the last one; transactions of different clusters
//! have only gaps in common, whose guards are checked while both hold theirs, and records that are
//! left, which each has locked when its guards are checked. With locks: as in strict two-phase
//! locking.
//!
//! # Order of latches
//!
//! The lock of the collection, then none.

mod advance;
mod analysis;
mod batch;
mod context;
mod explain;
mod forest;
mod isolated;
mod list;
mod locks;
mod plan;
pub(crate) mod registration;
mod run;
mod spare;
mod stages;
mod tuning;
mod worker;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::plain;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time;

use batch::Batch;
use context::Context;
use explain::Explanation;
use spare::Spare;
use stages::{Between, Stage, Stages};
use tuning::{Bounds, Tuner};

use crate::batches::{Chosen, Explained};
use crate::factors::Batches;
use crate::schedule::cache_padded::CachePadded;
use crate::schedule::in_flight::{Blocks, Lent, Own};

pub use isolated::Isolated;
pub use worker::Strife;

/// What the workers share.
pub struct StrifeState {
    stages: Stages,
    batch: Batch,
    collection: Mutex<Collection>,
    /// Whether the batch is closed as soon as no worker puts labels any more.
    closing: CachePadded<AtomicBool>,
    /// Places of the batch that workers have taken for calls which they are about to add.
    taken: CachePadded<AtomicU32>,
    /// When the batch that is collected is closed at the latest, or never.
    due_ns: CachePadded<AtomicU64>,
    explanation: Explanation,
    spare: Spare,
    /// Transactions of several statements, as calls see them that are parked.
    blocks: Blocks,
}

const NEVER_NS: u64 = u64::MAX;

/// Who is there, and what is known of the batch that is collected.
struct Collection {
    /// What batches should be like.
    tuner: Tuner,
    /// Workers that serve.
    serving: u32,
    /// Those of them that have no more calls for this batch.
    ready: u32,
    /// Those of them that put labels.
    labelling: u32,
    /// Transactions of several statements that are open.
    open: u32,
    /// Whether one was open after the first label was put: it may have put locks in the place of
    /// labels.
    is_disturbed: bool,
}

/// What a worker that may add to a batch is told.
struct Round {
    number: u64,
    /// Workers that serve.
    serving: u32,
    /// So many calls each of them adds if all have as many.
    share: usize,
}

/// Places of a batch that a worker takes at a time, at least and at most.
const PLACES_TAKEN: std::ops::RangeInclusive<u32> = 2..=32;

impl StrifeState {
    /// For workers that batch their calls so.
    pub fn new(batches: Batches) -> Arc<StrifeState> {
        let bounds = Bounds::new(batches);
        let batch = Batch::new(&bounds, batches.wait_us);
        let collection = Collection {
            tuner: Tuner::new(bounds),
            serving: 0,
            ready: 0,
            labelling: 0,
            open: 0,
            is_disturbed: false,
        };
        let shared = Arc::new(StrifeState {
            stages: Stages::default(),
            batch,
            collection: Mutex::new(collection),
            closing: CachePadded::default(),
            taken: CachePadded::default(),
            due_ns: CachePadded(AtomicU64::new(NEVER_NS)),
            explanation: Explanation::default(),
            spare: Spare::default(),
            blocks: Blocks::default(),
        });
        shared.stages.name_memory();
        shared.batch.name_memory();
        let name = |start: usize, bytes: usize, name: &str| {
            name_range(start, bytes, || format!("strife.{name}"));
        };
        let collection = std::ptr::from_ref(&shared.collection).addr();
        name(collection, size_of_val(&shared.collection), "collection");
        let closing = std::ptr::from_ref(&shared.closing).addr();
        name(closing, size_of_val(&shared.closing), "closing");
        let taken = std::ptr::from_ref(&shared.taken).addr();
        name(taken, size_of_val(&shared.taken), "places taken");
        let due = std::ptr::from_ref(&shared.due_ns).addr();
        name(due, size_of_val(&shared.due_ns), "due");
        shared
    }

    /// Asks for a batch to be explained: the next one that is at least half as large as batches
    /// should be, or the largest one until [`StrifeState::explained`].
    pub fn explain(&self) {
        self.explanation.want();
    }

    /// The batch that was explained, if there was one.
    pub fn explained(&self) -> Option<Explained> {
        self.explanation.take()
    }

    /// What the next batch is analysed with.
    pub fn chosen(&self) -> Chosen {
        self.batch.tuned.chosen()
    }

    /// A worker begins to serve.
    fn come(&self) {
        lock(&self.collection).serving += 1;
    }

    /// A worker serves no more; `ready_in` is the last batch for which it said that it was ready.
    fn go(&self, ready_in: u64) {
        let mut collection = lock(&self.collection);
        collection.serving -= 1;
        if self.stages.now() == Stage::Collect {
            collection.ready -= u32::from(ready_in == self.batch.number());
            self.close_if_due(&collection, 0);
        }
    }

    /// A worker has no call for the batch with this number, unless one comes yet.
    fn ready(&self, number: u64) {
        let mut collection = lock(&self.collection);
        if self.is_collected(number) {
            collection.ready += 1;
            self.close_if_due(&collection, 0);
        }
    }

    /// Whether the batch with this number is collected, for who has the lock.
    fn is_collected(&self, number: u64) -> bool {
        self.stages.now() == Stage::Collect && self.batch.number() == number
    }

    /// A worker that has a call asks whether it may add to the batch; it is not closed before
    /// [`StrifeState::leave`] then.
    fn enter(&self) -> Option<Round> {
        let mut collection = lock(&self.collection);
        if self.stages.now() != Stage::Collect || self.is_closing() {
            return None;
        }
        collection.labelling += 1;
        collection.is_disturbed |= collection.open > 0;
        if self.due_ns.0.load(Ordering::Relaxed) == NEVER_NS {
            let due_ns = time::now_ns() + self.batch.wait_ns();
            self.due_ns.0.store(due_ns, Ordering::Relaxed);
        }
        Some(Round {
            number: self.batch.number(),
            serving: collection.serving,
            share: self.batch.tuned.size().div_ceil(collection.serving) as usize,
        })
    }

    /// Whether workers have taken all places of the batch.
    #[inline]
    fn is_full(&self) -> bool {
        // Relaxed, here and below: places are only counted.
        self.taken.0.load(Ordering::Relaxed) >= self.batch.tuned.size()
    }

    /// Takes places of the batch, fewer and fewer the fuller it gets: so all workers are done at
    /// about the same time, whatever they have planned beforehand. None when it is full.
    fn take_room(&self, round: &Round) -> u32 {
        let size = self.batch.tuned.size();
        let left = size.saturating_sub(self.taken.0.load(Ordering::Relaxed));
        if left == 0 {
            return 0;
        }
        let count = (left / (2 * round.serving)).clamp(*PLACES_TAKEN.start(), *PLACES_TAKEN.end());
        let before = self.taken.0.fetch_add(count, Ordering::Relaxed);
        let room = count.min(size.saturating_sub(before));
        self.give_room_back(count - room);
        room
    }

    /// Gives places back that were not used.
    fn give_room_back(&self, room: u32) {
        if room > 0 {
            self.taken.0.fetch_sub(room, Ordering::Relaxed);
        }
    }

    /// A worker has labelled what `added` will write. What there is room for is moved to
    /// `submitted`. `is_ready`: it says so for the first time in this batch.
    fn leave(
        &self,
        added: &mut Vec<Own<Context>>,
        submitted: &mut Vec<Lent<Context>>,
        is_ready: bool,
    ) {
        let mut collection = lock(&self.collection);
        // SAFETY: no worker closes the batch while the caller is inside, and the caller has the
        // lock.
        let contexts = unsafe { self.batch.contexts_mut() };
        let room = self.batch.capacity as usize - contexts.len();
        let moved = added.len().min(room);
        submitted.extend(added.drain(..moved).map(|context| {
            let (lent, loan) = context.lend();
            contexts.push(loan);
            lent
        }));
        plain::writes(&raw const contexts[contexts.len() - moved..]);
        collection.labelling -= 1;
        collection.ready += u32::from(is_ready);
        self.close_if_due(&collection, 0);
    }

    /// Closes the batch if its first call has waited for long enough.
    fn look_at_time(&self) {
        if self.due_ns.0.load(Ordering::Relaxed) == NEVER_NS || self.is_closing() {
            return;
        }
        let now_ns = time::now_ns();
        if now_ns >= self.due_ns.0.load(Ordering::Relaxed) {
            let collection = lock(&self.collection);
            if self.stages.now() == Stage::Collect {
                self.close_if_due(&collection, now_ns);
            }
        }
    }

    /// Whether those who add to the batch should come to an end.
    #[inline]
    fn is_closing(&self) -> bool {
        // Relaxed: who comes in all the same finds out under the lock.
        self.closing.0.load(Ordering::Relaxed)
    }

    /// Closes the batch that is collected, if it is time. If a worker puts labels, the batch is
    /// closed when that worker has finished.
    fn close_if_due(&self, collection: &Collection, now_ns: u64) {
        // SAFETY: the batch is collected, and the caller has the lock.
        let length = unsafe { self.batch.contexts_mut() }.len();
        let is_due = length >= self.batch.tuned.size() as usize
            || collection.ready >= collection.serving
            || now_ns >= self.due_ns.0.load(Ordering::Relaxed)
            || self.is_closing();
        if length == 0 {
            if collection.labelling == 0 {
                // The calls that came had expired.
                self.due_ns.0.store(NEVER_NS, Ordering::Relaxed);
            }
            return;
        }
        if !is_due {
            return;
        }
        let is_closed = collection.labelling == 0;
        self.closing.0.store(!is_closed, Ordering::Relaxed);
        if is_closed {
            self.due_ns.0.store(NEVER_NS, Ordering::Relaxed);
            // SAFETY: the batch is collected, and no worker labels any more; the caller has the
            // lock.
            self.close(collection, unsafe { Between::after_collection() });
        }
    }

    /// Begins a transaction of several statements; false while the stages do not allow it.
    fn open_statements(&self) -> bool {
        let mut collection = lock(&self.collection);
        let stage = self.stages.now();
        if stage.is_without_locks() {
            return false;
        }
        collection.open += 1;
        if stage == Stage::Collect {
            // SAFETY: the batch is collected, and the caller has the lock.
            let has_labels = unsafe { !self.batch.contexts_mut().is_empty() };
            collection.is_disturbed |= has_labels || collection.labelling > 0;
        }
        self.blocks.open();
        true
    }

    /// Ends one.
    fn close_statements(&self) {
        lock(&self.collection).open -= 1;
        self.blocks.close();
    }
}
