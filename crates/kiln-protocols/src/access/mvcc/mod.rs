//! Multiversion concurrency control: read-only procedures read the past, and always commit.
//!
//! Source: MSTO in Huang et al., *Opportunities for Optimism in Contended Main-Memory Multicore
//! Transactions* (STO), PVLDB 13, 2020, §2.2; its commit protocol and inlined versions are those of
//! Cicada (Lim, Kaminsky, Andersen, SIGMOD 2017, §3).
//!
//! # The idea
//!
//! A record has a chain of versions, each with the timestamp of its transaction (`wts`), the
//! greatest timestamp at which its being the newest was validated (`rts`), and a state. A
//! transaction that writes reads the newest versions and keeps what it writes to itself. At commit
//! it takes a timestamp and then makes sure that it could have run at it, all at once:
//!
//! 1. **Insert** a *pending* version in front of each one that it writes over. It fails if a newer
//!    one is there, or if an attempt has validated at a greater timestamp that there is none.
//! 2. **Validate**: what it has read is the newest version up to its timestamp; it raises the `rts`
//!    of these versions, so that it stays so. Index nodes are as they were.
//! 3. **Decide**: its pending versions become *committed*; or *aborted*, and are unlinked.
//!
//! A procedure that writes nothing, which the analysis of its program tells, takes the newest
//! timestamp up to which everything is decided, and reads the newest versions up to it. It
//! validates nothing, writes nothing, and is never repeated.
//!
//! # Where versions are
//!
//! The storage keeps one version of a record, in its row, and two words (`version.rs`). We use the
//! row for the *oldest* version that a transaction may still want, which for almost all records is
//! the newest, too: `tid` is its `wts`, and `aux` its `rts`. Newer versions are nodes from
//! per-worker pools with the columns that their transactions changed, `aux` leads to them, and
//! columns that a node does not have are found further down. When no snapshot wants the versions
//! before a node any more, it is copied into the row (`reclaim.rs`). So
//!
//! - a record that has not been changed lately is read as under `silo`: one tid before, one look
//!   after, no indirection, no memory but the row;
//! - an update writes as many words as under `silo`, plus a node's header;
//! - the row is the whole truth again as soon as all notes are settled, which the engine does,
//!   alone, before it looks at rows or changes tables ([`settle`](MvccState::settle)). Then only
//!   timestamps are left in `aux`, and they go when another protocol takes over.
//!
//! The alternative, the newest version in the row and the older ones in the chain, would spare a
//! look at the chain of a record that was just changed, but the row would change under every reader
//! of a snapshot, who would have to wait for writers.
//!
//! Every write relies here on the version that it replaces, as it keeps the columns that it does
//! not write. So a version never gets between two others: of two over the same one, only one can
//! commit, and it is refused at once. Chains are sorted because they grow at the front. With `+cu`
//! (STO §6.1) a record of which nothing is observed may be replaced in whatever version it has at
//! the commit (`updates.rs`). With `+ts` (STO §6.2) so may one of which only split columns are
//! observed, and no reader of these minds versions that write others (`split.rs`).
//!
//! # Invariants
//!
//! - Along a chain, timestamps fall. At most the first version is pending; below a committed
//!   version none can be inserted any more.
//! - `rts` is kept where it may grow: in `aux`, or in the first node, for the newest committed
//!   version. It never falls while its record lives, even if the node that had it was aborted.
//! - `aux` changes by compare-and-swap, but for the owner of the pending version in front, and for
//!   the worker that holds the latch in it.
//! - An attempt that waits for a pending version has a greater timestamp, or holds none: none waits
//!   in a circle. Waits are bounded; then the attempt is repeated.
//! - A new record is absent until its transaction commits, and stands in all indexes from its
//!   insertion on, but for keys that it takes over (`entries.rs`). A record's keys never change.
//! - A deleted record stays in the indexes until no snapshot has it. A dead record's tid never
//!   changes again.
//!
//! # Phantoms
//!
//! *Writers* guard the index nodes that they rely on, and compare them at commit, as under `silo`.
//! Is that right with timestamps, where a transaction may commit later with a smaller one? An
//! insertion into an index happens before its transaction takes its timestamp, and nodes are
//! compared after the validating transaction has taken its own. If the comparison misses the
//! insertion, then it came before it; the inserting transaction's timestamp is then taken later
//! than the validating one's, as the counter orders both, and is greater. So what was not seen
//! comes later in the order. If the insertion is seen, the attempt is repeated, or the scan has met
//! the new record: then it validates that the record is absent at its timestamp, as it does with
//! any read. A key that is taken over changes no node in a hash index; an attempt that found it
//! free has read the deleted record, over which the new one writes a version.
//!
//! *Snapshots* need no guards. All transactions up to the snapshot's timestamp were decided before
//! it began, and so were their insertions. What comes in meanwhile is newer, and is not in the
//! snapshot. What goes was deleted at or before the oldest snapshot. A key that has changed hands
//! leads to its former record, too.
//!
//! # Order and real time
//!
//! Transactions are ordered by their timestamps; snapshots come behind the transaction whose
//! timestamp they have, and see all of those. Timestamps come from one counter, and a snapshot's is
//! as new as the counter when it began: what had committed before is in it. So the order is strict;
//! the price is that a reader waits at its beginning for those who are in the middle of their
//! commit, which is a matter of a microsecond. See `clock.rs`. With `+lagging` a reader waits for
//! none of them, and may miss what committed just before it began: the order is still that of
//! timestamps, and not strict.
//!
//! A raised error is reported after the attempt was validated at a timestamp of its own: that all
//! versions are the newest at one moment is not enough, as a transaction with a smaller timestamp
//! may still be about to commit.

mod access;
mod clock;
mod commit;
mod entries;
mod execute;
mod groups;
mod notes;
mod reclaim;
pub(crate) mod registration;
mod split;
mod takeovers;
mod updates;
mod version;

use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, OnceLock};
use kiln_procedure::{AbortCause, Handle};
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnSet, TableId};
use kiln_storage::slot::Heap;
use kiln_storage::table::{ARENAS_MAX, Table, WORKERS_MAX};

use crate::phases::{Phase, Phases};
use crate::shared::emptied::EmptiedNodes;
use crate::shared::node_set::NodeSet;
use crate::shared::record_map::RecordMap;
use crate::shared::recorder::Recorder;
use crate::shared::report::Reporter;
use crate::shared::updates::Updates;
use clock::{Clock, Horizon};
use groups::{Groups, Mask};
use notes::NotesCell;
use takeovers::Takeovers;
use version::{NodeRef, Pools, status};

/// How often a version that is not decided is looked at again before the attempt gives up: about
/// four microseconds, several times what a commit takes.
const SPINS_MAX: u32 = 128;

/// Marks an [`Item`] without a write.
const NO_WRITE: u32 = u32::MAX;

/// What the workers of a database share while the protocol is in force.
pub struct MvccState {
    clock: Clock,
    /// What is known of split columns, with timestamp splitting.
    groups: Groups,
    /// Always there, but for the moment in which it goes.
    pools: Box<Pools>,
    /// What each worker has still to do.
    notes: Box<[NotesCell]>,
    /// The epochs of the database, once there is a worker.
    epochs: OnceLock<Epochs>,
}

impl MvccState {
    /// For workers that are numbered by their participants' slots, whose snapshots lag or wait.
    pub fn new(lags: bool) -> MvccState {
        MvccState {
            clock: Clock::new(WORKERS_MAX, lags),
            groups: Groups::new(),
            pools: Box::new(Pools::new(ARENAS_MAX)),
            notes: (0..WORKERS_MAX).map(|_| NotesCell::default()).collect(),
            epochs: OnceLock::new(),
        }
    }

    /// Brings all rows up to date, and takes what was deleted out of the indexes. No transaction
    /// runs, and the tables that transactions have used are there.
    pub fn settle(&self, participant: &Participant) {
        reclaim::settle(self, participant, None);
    }

    /// Brings the rows of one table up to date, and takes what was deleted out of its indexes. No
    /// statement runs, no open transaction has used the table, and none reads a snapshot: what they
    /// read, they validate when they commit.
    pub fn settle_table(&self, participant: &Participant, table: TableId) {
        reclaim::settle(self, participant, Some(table));
    }

    /// Looks after what idle workers have noted, in place of them: shortens chains and takes
    /// deleted rows out of the indexes. Returns whether it did all that could be done.
    /// `participant` has a number of its own among the workers, and is not used by one.
    pub fn look_after_idle(&self, participant: &Participant) -> bool {
        reclaim::look_after_idle(self, participant)
    }

    /// Bytes taken from the system for versions, used or not.
    pub fn version_bytes(&self) -> usize {
        self.pools.bytes_reserved()
    }

    /// Versions outside of rows, those that wait for their epoch included. Exact when no
    /// transaction runs.
    pub fn versions(&self) -> usize {
        self.pools.nodes_in_use()
    }
}

impl Drop for MvccState {
    fn drop(&mut self) {
        if let Some(epochs) = self.epochs.get() {
            // Nodes that wait for their epoch go back to the pools.
            let pools = std::mem::replace(&mut self.pools, Box::new(Pools::new(0)));
            epochs.retire_owner(pools);
        }
    }
}

/// A record that the attempt met, and the version that it found newest.
struct Item {
    record: RecordRef,
    version: u64,
    /// The version's node, if it was not the row's.
    node: Option<NodeRef>,
    /// The position of its write, or [`NO_WRITE`].
    write: u32,
    /// Whether there was no row.
    absent: bool,
    /// Whether no column was observed so far: if the attempt writes the record, any version will
    /// do.
    is_unobserved: bool,
    /// The stripe of its table if
    /// only split columns were observed so far, or [`split::WHOLE`].
    split: u8,
}

impl Item {
    #[inline(always)]
    fn new(record: RecordRef, version: u64, node: Option<NodeRef>, absent: bool) -> Item {
        Item {
            record,
            version,
            node,
            write: NO_WRITE,
            absent,
            is_unobserved: false,
            split: split::WHOLE,
        }
    }
}

/// What the attempt does to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteKind {
    Update,
    Insert,
    Delete,
    /// An insert of this attempt that it deleted again.
    Forget,
    /// A record that is deleted already, and loses a key to another.
    Touch,
}

impl WriteKind {
    /// What its node is.
    fn node_kind(self) -> u64 {
        match self {
            WriteKind::Update => 0,
            WriteKind::Insert => status::LINKS,
            WriteKind::Delete | WriteKind::Forget | WriteKind::Touch => status::ABSENT,
        }
    }
}

/// A record that the attempt writes.
struct Write {
    record: RecordRef,
    table: *const Table,
    /// The first item that met it.
    item: u32,
    kind: WriteKind,
    /// The columns that the image of `node` holds.
    columns: ColumnSet,
    /// The columns that updates deferred to the commit will write, and those that these will read.
    pending: ColumnSet,
    pending_read: ColumnSet,
    node: Option<NodeRef>,
    /// Where the attempt has moved the row.
    moved_to: Option<Handle>,
    /// Whether others see that the attempt is about to commit a version.
    published: bool,
}

impl Write {
    #[inline(always)]
    fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }
}

/// The access of one worker; see the module's documentation.
pub struct Mvcc {
    shared: Arc<MvccState>,
    /// The worker's number.
    worker: usize,
    participant: Participant,
    recorder: Recorder,
    reporter: Reporter,
    /// The timestamp of the snapshot that the attempt reads, if it writes nothing.
    snapshot: Option<u64>,
    items: Vec<Item>,
    writes: Vec<Write>,
    /// From a record to its write.
    written: RecordMap,
    nodes: NodeSet,
    takeovers: Takeovers,
    emptied: EmptiedNodes,
    /// Whether updates are deferred to the commit where the program says that they can be.
    pub(crate) defers: bool,
    /// Whether split columns of tables are relied on by themselves.
    pub(crate) splits: bool,
    /// Where the attempt is counted among those who write such columns.
    counted: Mask,
    /// As `defers`, for the present attempt.
    is_deferring: bool,
    updates: Updates,
    /// Whether the attempt has a timestamp to commit at.
    committing: bool,
    /// For keys computed outside a procedure's own memory.
    heap: Heap,
    /// For reclamation.
    horizon: Horizon,
    chain: Vec<NodeRef>,
    until_look: u32,
    phases: Phases,
}

// SAFETY: the table pointers inside are only followed by the thread that runs the access, while the
// tables are kept; nodes are only followed inside an epoch.
unsafe impl Send for Mvcc {}

impl Mvcc {
    /// An access for the worker that `participant` stands for.
    pub fn new(shared: Arc<MvccState>, participant: Participant) -> Mvcc {
        let worker = participant.slot();
        let epochs = shared.epochs.get_or_init(|| participant.epochs().clone());
        // Other protocols number versions by epochs: all timestamps are above those.
        shared
            .clock
            .raise((epochs.current() + 1) << Tid::SEQUENCE_BITS);
        shared.clock.join(worker);
        Mvcc {
            shared,
            worker,
            participant,
            recorder: Recorder::default(),
            reporter: Reporter::default(),
            snapshot: None,
            items: Vec::new(),
            writes: Vec::new(),
            written: RecordMap::default(),
            nodes: NodeSet::default(),
            takeovers: Takeovers::default(),
            emptied: EmptiedNodes::default(),
            defers: false,
            splits: false,
            counted: 0,
            is_deferring: false,
            updates: Updates::default(),
            committing: false,
            heap: Heap::new(),
            horizon: Horizon::default(),
            chain: Vec::new(),
            until_look: 1,
            phases: Phases::default(),
        }
    }

    /// Takes a timestamp, and makes sure that all that was read is what a transaction has to read
    /// at it.
    #[inline]
    fn take_timestamp(&mut self) -> u64 {
        self.committing = true;
        self.shared.clock.begin_commit(self.worker)
    }

    /// The attempt commits at its timestamp no more, or has.
    #[inline]
    fn drop_timestamp(&mut self) {
        if std::mem::take(&mut self.committing) {
            self.shared.clock.end_commit(self.worker);
        }
        if self.counted != 0 {
            self.leave_groups();
        }
    }

    /// The whole commit of an attempt that may write.
    #[inline]
    fn commit_writes(&mut self) -> Result<(), AbortCause> {
        point("mvcc.executed");
        let timestamp = match self.splits {
            true => self.take_timestamp_after_readers(),
            false => self.take_timestamp(),
        };
        point("mvcc.numbered");
        self.phases.enter(Phase::Lock);
        self.insert_versions(timestamp)?;
        point("mvcc.inserted");
        self.phases.enter(Phase::Validate);
        self.validate(timestamp)?;
        if !self.takeovers.is_empty() && !self.can_take_over() {
            return Err(AbortCause::KeyInTransit);
        }
        point("mvcc.validated");
        self.phases.enter(Phase::Install);
        self.run_updates()?;
        self.install(timestamp);
        self.drop_timestamp();
        point("mvcc.installed");
        self.remove_forgotten();
        Ok(())
    }

    /// Whether all that was read was so at one moment.
    fn confirm_reads(&mut self) -> Result<(), AbortCause> {
        if self.snapshot.is_some() {
            return Ok(());
        }
        self.phases.enter(Phase::Validate);
        let timestamp = self.take_timestamp();
        let validated = self.validate(timestamp);
        self.drop_timestamp();
        validated
    }

    /// Forgets the attempt and leaves the epoch.
    #[inline]
    fn finish(&mut self) {
        if self.snapshot.take().is_some() {
            self.shared.clock.end_reading(self.worker);
        }
        self.items.clear();
        self.writes.clear();
        self.written.clear();
        self.nodes.clear();
        self.takeovers.clear();
        self.emptied.unlink(&self.participant);
        self.updates.clear();
        self.heap.clear();
        self.reclaim();
        self.participant.leave();
    }
}
