//! Aborts by unwinding: the abort mechanism that STO §4.3 advises against, to be measured.
//!
//! What an access returns as an abort is thrown here, through the executor's frames, and caught by
//! the scheduler, as a C++ exception would be. Errors that procedures raise are still return
//! values.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use kiln_history::{Log, Version};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recording, Remembering, Scanning, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop};
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use crate::phases::{Phased, Phases};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

/// An access whose aborts unwind.
pub struct Unwinding<A>(pub A);

/// Throws an abort.
#[cold]
fn throw(cause: AbortCause) -> ! {
    // Not a panic: no hook runs, and nothing is printed.
    resume_unwind(Box::new(cause))
}

/// Returns what is no abort, throws what is.
#[inline(always)]
fn or_throw<T>(result: Result<T, AbortCause>) -> Result<T, AbortCause> {
    match result {
        Ok(value) => Ok(value),
        Err(cause) => throw(cause),
    }
}

/// As [`or_throw`], for what may also raise.
#[inline(always)]
fn or_throw_stop<T>(result: Result<T, Stop>) -> Result<T, Stop> {
    match result {
        Err(Stop::Abort(cause)) => throw(cause),
        result => result,
    }
}

/// As [`or_throw`], for what may also raise or belong to another thread.
#[inline(always)]
fn or_throw_halt<T>(result: Result<T, Halt>) -> Result<T, Halt> {
    match result {
        Err(Halt::Stop(Stop::Abort(cause))) => throw(cause),
        result => result,
    }
}

/// Runs `attempt`, and returns an abort that is thrown in it.
///
/// # Errors
/// Those of the attempt.
///
/// # Panics
/// When the attempt does for another reason.
pub fn catch(attempt: impl FnOnce() -> Result<(), Stop>) -> Result<(), Stop> {
    // The catcher of an abort rolls the attempt back, which is made for any state of it.
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<AbortCause>() {
            Ok(cause) => Err(Stop::Abort(*cause)),
            Err(panic) => resume_unwind(panic),
        },
    }
}

impl<A: Access> Access for Unwinding<A> {
    #[inline(always)]
    fn begin(&mut self) {
        self.0.begin();
    }

    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        or_throw_halt(self.0.visit(table, record, intent, observed))
    }

    #[inline(always)]
    fn guard(&mut self, table: &Table, index: usize, node: NodeVersion) -> Result<(), AbortCause> {
        or_throw(self.0.guard(table, index, node))
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        or_throw_halt(self.0.read(table, handle, columns, memory))
    }

    #[inline(always)]
    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        or_throw_halt(self.0.update(table, handle, columns, memory))
    }

    #[inline(always)]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        or_throw_halt(self.0.insert(table, values, memory))
    }

    #[inline(always)]
    fn delete(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        or_throw_halt(self.0.delete(table, handle, memory))
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        or_throw_halt(self.0.bring_back(table, handle, values, memory))
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        self.0.moves_entries()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        or_throw(self.0.resolve(table, index, entry))
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<(), Stop> {
        or_throw_stop(self.0.commit())
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        // Asked by the scheduler itself, outside of the attempt.
        self.0.confirm()
    }

    fn roll_back(&mut self) {
        self.0.roll_back();
    }
}

impl<A: Access> Planning for Unwinding<A> {
    #[inline(always)]
    fn prepare(&mut self, failures: u32) {
        self.0.prepare(failures);
    }

    #[inline(always)]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.0.begin_call(deadline_ns);
    }

    #[inline(always)]
    fn end_call(&mut self) {
        self.0.end_call();
    }
}

impl<A: Access> Recording for Unwinding<A> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.0.history()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        self.0.version_of(handle)
    }

    fn version_met(&self, record: RecordRef) -> Version {
        self.0.version_met(record)
    }

    fn version_dead(&self, record: RecordRef) -> Version {
        self.0.version_dead(record)
    }
}

impl<A: Access> Remembering for Unwinding<A> {}
impl<A: Access> Deferring for Unwinding<A> {}
impl<A: Access> Scanning for Unwinding<A> {}
impl<A: Access> Travelling for Unwinding<A> {}
impl<A: Access> Flawed for Unwinding<A> {}

impl<A: Recorded> Recorded for Unwinding<A> {
    fn recorder(&mut self) -> &mut Recorder {
        self.0.recorder()
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.0.attach(journal);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        self.0.reporter()
    }
}

impl<A: Phased> Phased for Unwinding<A> {
    fn phases(&mut self) -> &mut Phases {
        self.0.phases()
    }
}
