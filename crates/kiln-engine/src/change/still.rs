//! Programs that run while no transaction does, within a change of the catalog: they read rows as
//! they are.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::Arc;
use kiln_procedure::access::{
    Access, Deferring, Flawed, Inserted, Planning, Recording, Remembering, Scanning, Travelling,
    Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Arguments, Executor, Frame, Halt, Handle, Program, Stop};
use kiln_storage::error::{Error, Result};
use kiln_storage::index::NodeVersion;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};
use kiln_storage::types::Style;

/// Runs a program that changes no rows, whose tables are claimed. What it emits is in `frame`; for
/// its clocks it is `moment_us`. With `has_style` it must not ask for the style of its session.
///
/// # Errors
/// What the program raises; 0A000 when it changes rows.
pub(crate) fn run(
    program: &Program,
    frame: &mut Frame,
    arguments: &mut Arguments,
    (moment_us, has_style): (i64, bool),
) -> Result<()> {
    // A handler might catch the refusal.
    if program.regions > 0 && !program.analysis.is_read_only() {
        return Err(writes());
    }
    if has_style {
        arguments.set_style(Some(&Arc::from(Style::REFUSED)));
    }
    arguments.bind(program)?;
    frame.begin(None, None);
    frame.memory.heap.transaction_began_us = Some(moment_us);
    match Executor::run(program, &mut Still, frame, arguments) {
        Ok(()) => Ok(()),
        Err(Stop::Raise(error)) => Err(error),
        Err(Stop::Abort(cause)) => {
            let cause = cause.name();
            Err(Error::internal(format!(
                "{cause} while no transaction runs"
            )))
        }
    }
}

/// Nothing changes: what is met is there, and stays.
struct Still;

impl Access for Still {
    fn begin(&mut self) {}

    fn visit(
        &mut self,
        _: &Table,
        record: RecordRef,
        _: Intent,
        _: &Observed,
    ) -> std::result::Result<Visit, Halt> {
        // Relaxed: the gate has ordered what transactions did before.
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        Ok(match tid.is_absent() {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note: 0 }),
        })
    }

    fn guard(
        &mut self,
        _: &Table,
        _: usize,
        _: NodeVersion,
    ) -> std::result::Result<(), AbortCause> {
        Ok(())
    }

    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> std::result::Result<(), Halt> {
        let row = table.row(handle.record);
        for (column, register) in columns {
            let value = table.column_value(*column, row, &mut memory.heap);
            memory.slots[register.0 as usize] = value;
        }
        Ok(())
    }

    fn update(
        &mut self,
        _: &Table,
        _: &mut Handle,
        _: &[(ColumnId, Reg)],
        _: &mut Memory,
    ) -> std::result::Result<(), Halt> {
        Err(writes().into())
    }

    fn insert(
        &mut self,
        _: &Table,
        _: &[Reg],
        _: &mut Memory,
    ) -> std::result::Result<Inserted, Halt> {
        Err(writes().into())
    }

    fn delete(
        &mut self,
        _: &Table,
        _: &mut Handle,
        _: &mut Memory,
    ) -> std::result::Result<(), Halt> {
        Err(writes().into())
    }

    fn bring_back(
        &mut self,
        _: &Table,
        _: &mut Handle,
        _: &[Reg],
        _: &mut Memory,
    ) -> std::result::Result<(), Halt> {
        Err(writes().into())
    }

    fn moves_entries(&self) -> bool {
        false
    }

    fn resolve(
        &self,
        _: &Table,
        _: usize,
        entry: Entry,
    ) -> std::result::Result<Option<RecordRef>, AbortCause> {
        Ok(Some(entry.record()))
    }

    fn commit(&mut self) -> std::result::Result<(), Stop> {
        Ok(())
    }

    fn confirm(&mut self) -> std::result::Result<(), AbortCause> {
        Ok(())
    }

    fn roll_back(&mut self) {}
}

impl Planning for Still {}
impl Remembering for Still {}
impl Scanning for Still {}
impl Travelling for Still {}
impl Deferring for Still {}
impl Recording for Still {}
impl Flawed for Still {}

#[cold]
fn writes() -> Error {
    Error::unsupported("changing rows within a change of the catalog is not supported")
}
