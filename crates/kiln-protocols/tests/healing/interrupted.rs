//! An access between whose operations others change rows.

use kiln_history::{Log, Version};
use kiln_platform::random::Random;
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recalled, Recording, Remembering, Scanning, Sought,
    Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, OpId, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop, Updater};
use kiln_protocols::access::healing::Healing;
use kiln_storage::index::NodeVersion;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use super::changes::Others;

/// Changes that are still to come, and when.
pub(super) struct Pending {
    /// How many.
    pub(super) left: usize,
    /// Operations before the next one; `None`: it comes at the end of the run.
    pub(super) after: Option<usize>,
    pub(super) random: Random,
}

impl Pending {
    /// Operations from one change to the next, at most.
    const OPERATIONS_MAX: usize = 12;

    /// Draws when the next change comes.
    pub(super) fn draw(&mut self) {
        self.after = Some(self.random.below(Pending::OPERATIONS_MAX));
    }
}

/// A run of a program under healing, in which others change rows before some of its operations.
pub(super) struct Interrupted<'a> {
    pub(super) healing: &'a mut Healing,
    pub(super) others: &'a mut Others,
    pub(super) pending: &'a mut Pending,
    /// Whether the attempt may hold locks from a run before.
    pub(super) has_locks: bool,
}

impl Interrupted<'_> {
    /// An operation is about to begin.
    fn interrupt(&mut self) {
        let pending = &mut *self.pending;
        match &mut pending.after {
            _ if pending.left == 0 => {}
            None => {}
            Some(0) => {
                pending.left -= 1;
                self.others.change(&mut pending.random, self.has_locks);
                pending.draw();
            }
            Some(after) => *after -= 1,
        }
    }
}

impl Access for Interrupted<'_> {
    fn begin(&mut self) {
        unreachable!("only the run is interrupted");
    }

    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        self.interrupt();
        self.healing.visit(table, record, intent, observed)
    }

    fn guard(&mut self, table: &Table, index: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.interrupt();
        self.healing.guard(table, index, node)
    }

    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.interrupt();
        self.healing.read(table, handle, columns, memory)
    }

    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.interrupt();
        self.healing.update(table, handle, columns, memory)
    }

    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        self.interrupt();
        self.healing.insert(table, values, memory)
    }

    fn delete(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.interrupt();
        self.healing.delete(table, handle, memory)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.interrupt();
        self.healing.bring_back(table, handle, values, memory)
    }

    fn moves_entries(&self) -> bool {
        self.healing.moves_entries()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.healing.resolve(table, index, entry)
    }

    fn commit(&mut self) -> Result<(), Stop> {
        unreachable!("only the run is interrupted");
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        unreachable!("only the run is interrupted");
    }

    fn roll_back(&mut self) {
        unreachable!("only the run is interrupted");
    }
}

impl Remembering for Interrupted<'_> {
    fn recalls(&self) -> bool {
        self.healing.recalls()
    }

    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        self.interrupt();
        self.healing.recall(sought, memory)
    }

    fn looked_up(&mut self) {
        self.healing.looked_up();
    }
}

impl Scanning for Interrupted<'_> {
    fn scans(&mut self, op: OpId) {
        self.interrupt();
        self.healing.scans(op);
    }
}

impl Deferring for Interrupted<'_> {
    fn defers(&self) -> bool {
        self.healing.defers()
    }

    fn defer_nothing(&mut self) {
        self.healing.defer_nothing();
    }

    fn defer(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        self.interrupt();
        self.healing.defer(table, handle, updater, operands, memory)
    }
}

impl Recording for Interrupted<'_> {
    fn history(&mut self) -> Option<&mut Log> {
        self.healing.history()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        self.healing.version_of(handle)
    }

    fn version_met(&self, record: RecordRef) -> Version {
        self.healing.version_met(record)
    }

    fn version_dead(&self, record: RecordRef) -> Version {
        self.healing.version_dead(record)
    }
}

impl Planning for Interrupted<'_> {}
impl Travelling for Interrupted<'_> {}
impl Flawed for Interrupted<'_> {}
