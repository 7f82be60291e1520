//! Silo: optimistic concurrency control with epoch-based versions and no shared counter.
//!
//! Source: Tu et al., *Speedy Transactions in Multicore In-Memory Databases*, SOSP 2013 (the
//! commit protocol of §4.4, index nodes of §4.6); as the baseline OSTO in STO (PVLDB 13, 2020,
//! §2.1) with that paper's basis factors: bounded spinning instead of sorted write sets (§4.6
//! there), randomised backoff, hash indexes, aborts as return values.
//!
//! # The idea
//!
//! An attempt runs without locks. For each record it meets it notes the tid (`Item`); what it
//! writes goes to a row image of its own (`Write`). Commit has three phases:
//!
//! 1. **Lock** every record of the write set by setting the lock bit of its tid, which succeeds
//!    only if the tid is still the one observed. A lock that is held is waited for with bounded
//!    spinning, so that deadlock resolves itself by an abort.
//! 2. **Validate**: the tid of each record only read is still the one observed and not locked;
//!    each index node relied on is unchanged. Between the phases lies the serialization point: a
//!    full fence and the reading of the global epoch.
//! 3. **Install**: copy the written columns from the image to the record and release the lock by
//!    storing the new tid: larger than every tid observed, in the epoch just read.
//!
//! # Invariants
//!
//! - A record's words change only while its tid's lock bit is set (or before any index has it).
//! - The new tid is greater than the tid of everything read or overwritten, so tids of one record
//!   only grow, and a changed record never has an observed tid again.
//! - An inserted record is *absent* with the version that its cell had last, and stands in all
//!   indexes from the moment of the insert; whoever meets it observes its absence and fails when it
//!   commits first.
//! - A deleted record becomes *absent and dead* in phase 3 and is unlinked afterwards; a dead
//!   record's tid never changes again, so that whoever observed it before fails.
//! - An attempt that moves a record's index entries has claimed the record in its `aux` word until it
//!   ends, so that every moving entry of a record is the same attempt's.
//! - A raised error is reported only after the read set was validated ([`Access::confirm`]): until
//!   then an attempt may have seen a state that never was.
//!
//! # Anomalies excluded
//!
//! Serializable: reads and writes appear to happen at the serialization point, as the write set
//! is locked and the read set unchanged there. Phantoms are excluded by the node set: an insert
//! changes the version of its leaf or bucket before the new entry can be seen.

mod commit;
mod execute;

use kiln_history::{Log, Version};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::schedule::point;
use kiln_platform::spin;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Handle, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Memory};
use kiln_storage::table::{Entry, Table};

use crate::phases::{Phase, Phases};
use crate::shared::index_changes::IndexChanges;
use crate::shared::node_set::NodeSet;
use crate::shared::record_map::RecordMap;
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::scratch::{RowImage, Scratch};

/// How often a lock that is held is looked at again before the attempt gives up: about four
/// microseconds, several times what an install takes.
const LOCK_SPINS_MAX: u32 = 128;

/// Marks an [`Item`] without a write.
const NO_WRITE: u32 = u32::MAX;

/// A record that the attempt met.
struct Item {
    record: RecordRef,
    /// Its tid when it was met.
    observed: u64,
    /// The position of its write, or [`NO_WRITE`].
    write: u32,
}

/// What the attempt does to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteKind {
    Update,
    Insert,
    Delete,
    /// An insert of this attempt that it deleted again.
    Forget,
}

/// A record that the attempt writes.
struct Write {
    record: RecordRef,
    table: *const Table,
    /// The first item that met it.
    item: u32,
    kind: WriteKind,
    /// The columns that `image` holds.
    columns: ColumnSet,
    image: Option<RowImage>,
}

impl Write {
    #[inline(always)]
    fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }

    #[inline(always)]
    fn image<'a>(&self) -> &'a [AtomicU64] {
        let image = self.image.expect("a write with columns has an image");
        // SAFETY: the scratch is cleared only when the attempt has ended.
        unsafe { image.words() }
    }
}

/// The access of one worker; see the module's documentation.
pub struct Silo {
    participant: Participant,
    recorder: Recorder,
    items: Vec<Item>,
    writes: Vec<Write>,
    /// From a record to its write.
    written: RecordMap,
    nodes: NodeSet,
    changes: IndexChanges,
    /// The records whose entries the attempt moves.
    claimed: Vec<RecordRef>,
    scratch: Scratch,
    /// For keys computed outside a procedure's own memory.
    heap: Heap,
    /// The newest tid of this worker: its tids only grow.
    last: Tid,
    phases: Phases,
}

// SAFETY: the table pointers inside are only followed by whoever runs the access, while the
// tables are kept.
unsafe impl Send for Silo {}

impl Silo {
    /// An access for the worker that `participant` stands for.
    pub fn new(participant: Participant) -> Silo {
        Silo {
            participant,
            recorder: Recorder::default(),
            items: Vec::new(),
            writes: Vec::new(),
            written: RecordMap::default(),
            nodes: NodeSet::default(),
            changes: IndexChanges::default(),
            claimed: Vec::new(),
            scratch: Scratch::default(),
            heap: Heap::new(),
            last: Tid(0),
            phases: Phases::default(),
        }
    }

    /// The tid of a record once nobody is installing it; `None` when that takes too long.
    #[inline(always)]
    fn stable_tid(record: RecordRef) -> Option<Tid> {
        // Acquire pairs with the release store of the new tid in `install`: the words read
        // after this are at least those of the version seen here.
        let mut tid = Tid(record.tid().load(Ordering::Acquire));
        if tid.is_locked() {
            spin::until(LOCK_SPINS_MAX, || {
                tid = Tid(record.tid().load(Ordering::Acquire));
                !tid.is_locked()
            });
        }
        (!tid.is_locked()).then_some(tid)
    }
}

impl Access for Silo {
    #[inline]
    fn begin(&mut self) {
        self.participant.enter();
    }

    #[inline]
    fn visit(&mut self, _: &Table, record: RecordRef, _: Intent) -> Result<Visit, AbortCause> {
        charge(Work::Record);
        self.meet(record)
    }

    #[inline]
    fn guard(&mut self, node: NodeVersion) -> Result<(), AbortCause> {
        self.nodes.guard(node)
    }

    #[inline]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        self.load(table, handle, columns, memory)
    }

    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        charge(Work::Record);
        self.buffer(table, handle, columns, memory)
    }

    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        charge(Work::Record);
        self.add(table, values, memory)
    }

    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Stop> {
        self.mark_deleted(table, handle);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        point("silo.executed");
        self.phases.enter(Phase::Lock);
        self.lock()?;
        point("silo.locked");
        self.phases.enter(Phase::Validate);
        let tid = self.validate()?;
        point("silo.validated");
        self.phases.enter(Phase::Install);
        self.install(tid);
        point("silo.installed");
        self.finish();
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        self.phases.enter(Phase::Validate);
        self.validate_reads()
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.changes.is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.changes.resolve(table, index, entry)
    }

    fn roll_back(&mut self) {
        self.undo();
        self.finish();
    }

    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.recorder.log()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        Version(Tid(self.items[handle.note as usize].observed).version())
    }

    fn version_met(&self, record: RecordRef) -> Version {
        self.observed_version(record)
    }
}

impl Recorded for Silo {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }
}

impl crate::phases::Phased for Silo {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
