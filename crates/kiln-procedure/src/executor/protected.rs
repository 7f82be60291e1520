//! Protected regions: errors that are caught, and what is taken back then.
//!
//! A region's body is run by a call, as that of a scan is, so that an error arrives where the
//! region began, out of whatever loops the body was in. The changes since then are taken back
//! through the access, the last one first, as if the procedure itself had updated, deleted and
//! inserted: that is the same under every protocol, and what the attempt reads afterwards is its
//! own state.
//!
//! An error may come from a state that never was. The attempt goes on all the same: what led to the
//! error is among what it has read or relies on, so that its commit fails, as after a branch taken
//! wrongly.
//!
//! Not caught, whatever the handlers say: an abort; a call that is canceled, whose time is over, or
//! that holds too much memory; what goes wrong while changes are taken back; and an error of an
//! update that an earlier statement has deferred to the commit.

use kiln_history::WriteKind;
use kiln_storage::error::SqlState;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Slot;

use super::{Executor, Leave, Stopped};
use crate::access::{Access, Halt, Stop};
use crate::code::{Label, Protect};
use crate::ir::*;
use crate::journey::{Level, OpenRegion, Stage};

impl<'a, A: Access> Executor<'a, A> {
    /// Runs a region. [`Leave::Iteration`] says that the procedure goes on behind it.
    #[inline(never)]
    pub(super) fn protect(&mut self, protect: &Protect, body: Label) -> Leave {
        self.set(protect.caught, Slot::from_i64(0));
        let region = OpenRegion {
            body,
            before: self.frame.undo.len(),
            around: self.frame.undo.begin(),
            notified: self.frame.notifications.len(),
            stage: Stage::Body,
        };
        let leave = self.iteration(body);
        self.left_body(protect, region, leave)
    }

    /// Goes on with a region that was left to go on elsewhere; `inside` goes on with its body.
    pub(super) fn protect_from(
        &mut self,
        protect: &Protect,
        region: OpenRegion,
        inside: impl FnOnce(&mut Self) -> Leave,
    ) -> Leave {
        match region.stage {
            Stage::Body => {
                let leave = inside(self);
                let leave = self.after_iteration(leave);
                self.left_body(protect, region, leave)
            }
            Stage::TakesBack => self.take_back(region),
        }
    }

    fn left_body(&mut self, protect: &Protect, region: OpenRegion, leave: Option<Leave>) -> Leave {
        match leave {
            Some(Leave::Stop) if self.catches(protect) => self.take_back(region),
            Some(Leave::Away) => {
                self.away_in(Level::Region(region));
                Leave::Away
            }
            leave => {
                self.frame.undo.end(region.around);
                leave.unwrap_or(Leave::Iteration)
            }
        }
    }

    /// Whether a handler of the region catches what stopped its body; then the procedure knows
    /// which.
    #[cold]
    fn catches(&mut self, protect: &Protect) -> bool {
        let Some(Halt::Stop(Stop::Raise(error))) = &self.halt else {
            return false;
        };
        let state = error.state();
        if self.is_final || state == SqlState::QUERY_CANCELED && self.frame.is_over() {
            return false;
        }
        let catches = |handler: &[Condition]| {
            let mut conditions = handler.iter();
            conditions.any(|condition| condition.catches(state))
        };
        let mut handlers = protect.handlers.iter();
        let Some(handler) = handlers.position(|handler| catches(handler)) else {
            return false;
        };
        if let Some(Halt::Stop(Stop::Raise(error))) = self.halt.take() {
            self.frame.raised[protect.region.0 as usize] = Some(error);
        }
        self.set(protect.caught, Slot::from_i64(handler as i64 + 1));
        true
    }

    /// Takes back what the region has changed, and what it has told.
    #[cold]
    fn take_back(&mut self, region: OpenRegion) -> Leave {
        self.frame.notifications.truncate(region.notified);
        let is_first = region.stage == Stage::Body && self.frame.undo.len() > region.before;
        if is_first && self.access.forgets_change() {
            self.frame.undo.pop();
        }
        let region = OpenRegion {
            stage: Stage::TakesBack,
            ..region
        };
        while self.frame.undo.len() > region.before {
            if self.take_back_last(region.before).is_err() {
                if A::TRAVELS && self.leaves() {
                    self.away_in(Level::Region(region));
                    return Leave::Away;
                }
                self.is_final = true;
                return Leave::Stop;
            }
            if A::TRAVELS {
                self.access.has_done();
            }
            self.frame.undo.pop();
        }
        self.frame.undo.end(region.around);
        Leave::Iteration
    }

    fn take_back_last(&mut self, before: usize) -> Result<(), Stopped> {
        let code = self.code;
        let frame = &mut *self.frame;
        let Some((change, values)) = frame.undo.last(before) else {
            return Ok(());
        };
        let noted = &code.undos[change.undo as usize];
        for (register, value) in noted.back.registers().zip(values) {
            frame.memory.slots[register.0 as usize] = *value;
        }
        let (table, mut handle, memory) = (&*noted.table, change.handle, &mut frame.memory);
        let done = match &noted.back {
            Undo::Update(columns) => self.access.update(table, &mut handle, columns, memory),
            Undo::Insert => self.access.delete(table, &mut handle, memory),
            Undo::Delete(values) => self.access.bring_back(table, &mut handle, values, memory),
        };
        self.noted(done)?;
        if self.access.history().is_some() {
            let record = handle.record;
            match &noted.back {
                Undo::Update(columns) => {
                    let columns = columns.iter().copied();
                    self.record_write(table, record, WriteKind::Update, columns);
                }
                Undo::Insert => {
                    let nothing = [(ColumnId(0), Reg(0)); 0].into_iter();
                    self.record_write(table, record, WriteKind::Delete, nothing);
                }
                Undo::Delete(values) => {
                    let columns = (0..values.len() as u16).map(ColumnId);
                    let columns = columns.map(|column| (column, values[column.index()]));
                    self.record_write(table, record, WriteKind::Insert, columns);
                }
            }
        }
        Ok(())
    }

    /// Notes how a change is taken back.
    #[inline(never)]
    pub(super) fn note_undo(&mut self, undo: u32) -> Result<(), Stopped> {
        let noted = &self.code.undos[undo as usize];
        let handle = self.handle(noted.record);
        let frame = &mut *self.frame;
        let slots = &frame.memory.slots;
        let values = noted.undo.registers();
        let values = values.map(|register| slots[register.0 as usize]);
        let pushed = frame.undo.push(undo, handle, values);
        self.noted(pushed)
    }

    /// What the error that a region has caught says.
    #[cold]
    pub(super) fn diagnose(&mut self, region: RegionId, item: DiagnosticItem) -> Slot {
        let frame = &mut *self.frame;
        let error = frame.raised[region.0 as usize].as_ref();
        let text = error.and_then(|error| {
            let subject = error.subject();
            Some(match item {
                DiagnosticItem::ReturnedSqlState => {
                    return Some(frame.memory.heap.push_str(error.state().as_str()));
                }
                DiagnosticItem::MessageText => error.message(),
                DiagnosticItem::Detail => error.detail()?,
                DiagnosticItem::Hint => error.hint()?,
                DiagnosticItem::Context => error.context()?,
                DiagnosticItem::ColumnName => subject.column.as_deref()?,
                DiagnosticItem::ConstraintName => subject.constraint.as_deref()?,
                DiagnosticItem::DataTypeName => subject.data_type.as_deref()?,
                DiagnosticItem::TableName => subject.table.as_deref()?,
                DiagnosticItem::SchemaName => subject.schema.as_deref()?,
            })
            .map(|text| frame.memory.heap.push_str(text))
        });
        text.unwrap_or_else(|| frame.memory.heap.push_str(""))
    }

    /// The error that a region has caught, to be raised again.
    #[cold]
    pub(super) fn caught_again(&mut self, region: RegionId) -> Stop {
        let error = self.frame.raised[region.0 as usize].clone();
        Stop::Raise(error.expect("a handler runs after its region has caught an error"))
    }
}
