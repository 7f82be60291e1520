//! REFERENCES constraints and unique keys that are DEFERRABLE: their checks may wait until the
//! transaction ends.
//!
//! A statement asks when it begins whether a constraint waits: what SET CONSTRAINTS has said, or
//! what was declared. The keys that wait are kept in a buffer of the program, one for each
//! constraint and side. At its end the program checks them itself; unless it is a part of a larger
//! transaction, whose session takes the buffer and has [`deferred_check_program`] check it before
//! it commits.
//!
//! ```text
//! CALL ship(7)                              alone: ship(7), then its keys    in a block: ship(7), …; COMMIT checks all keys
//! ```
//!
//! A key that waits may be of a row that has changed or gone again by then, also where a
//! subtransaction was undone. So the last check asks for both sides: it fails if a row still refers
//! to a key that is not there.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Class, Instruction, Reg, Step};
use kiln_procedure::procedure::DeferredKeys;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::deferral::DeferredCheck;
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnId, ReferentialAction};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::super::{CatalogView, Compiler, Position};
use super::references::{Change, ReferenceCheck, Side};

/// How a check that may wait does.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    /// Whether it waits now.
    is_deferred: Reg,
    /// Where its keys are kept then.
    buffer: BufferId,
}

/// A constraint whose keys the program keeps.
pub(in super::super) struct Waiting {
    /// The table whose rows are changed.
    table: Arc<Table>,
    check: ReferenceCheck,
    buffer: BufferId,
}

impl Waiting {
    fn new(table: &Arc<Table>, check: &ReferenceCheck, buffer: BufferId) -> Waiting {
        let mut check = check.clone();
        check.side = match check.side {
            Side::Child { .. } => Side::Child { may_change: true },
            Side::Parent { .. } => Side::Parent { may_remain: true },
            Side::Unique { nulls_equal } => Side::Unique { nulls_equal },
        };
        Waiting {
            table: table.clone(),
            check,
            buffer,
        }
    }

    fn types(&self) -> Vec<DataType> {
        types_of(&self.table, &self.check.columns)
    }

    fn deferred(&self) -> DeferredCheck {
        let (own, other) = (&self.table.schema().name, &self.check.other.schema().name);
        let is_of_referenced = self.check.is_of_old_key();
        let (table, referenced) = match is_of_referenced {
            true => (other, own),
            false => (own, other),
        };
        DeferredCheck {
            table: table.clone(),
            constraint: self.check.key.name.clone(),
            referenced: referenced.clone(),
            is_of_referenced,
        }
    }
}

fn types_of(table: &Table, columns: &[ColumnId]) -> Vec<DataType> {
    let columns = columns.iter();
    let types = columns.map(|column| table.schema().columns[column.index()].data_type.clone());
    types.collect()
}

impl Compiler<'_> {
    /// Says which of the checks of a change may wait. Actions do not, and RESTRICT does not.
    pub(super) fn plan_waiting(
        &mut self,
        table: &Arc<Table>,
        change: Change,
        checks: &mut [ReferenceCheck],
    ) {
        for check in checks {
            let may_wait = check.key.deferral.is_deferrable()
                && check.action(change) == ReferentialAction::NoAction;
            if may_wait {
                check.waits = Some(Waits {
                    is_deferred: self.whether_deferred(table, check),
                    buffer: self.waiting_keys(table, check),
                });
            }
        }
    }

    /// Whether the constraint waits in the transaction that the program runs in.
    fn whether_deferred(&mut self, table: &Arc<Table>, check: &ReferenceCheck) -> Reg {
        let key = &check.key;
        let referring = match check.is_of_old_key() {
            true => &check.other,
            false => table,
        };
        let names = [&referring.schema().name, &key.name];
        let mut arguments = names.map(|name| {
            let name = Value::Text(name.clone());
            self.builder.constant(DataType::Text, name)
        });
        let initially = Value::Boolean(key.deferral.is_initially_deferred());
        let initially = self.builder.constant(DataType::Boolean, initially);
        let arguments = [&mut arguments[..], &mut [initially]].concat();
        self.truth_of("is_deferred", is_deferred, arguments)
    }

    /// Where the program keeps keys of a constraint.
    fn waiting_keys(&mut self, table: &Arc<Table>, check: &ReferenceCheck) -> BufferId {
        let is_it = |known: &&Waiting| {
            known.table.id() == table.id()
                && known.check.other.id() == check.other.id()
                && known.check.key.name == check.key.name
                && known.check.is_of_old_key() == check.is_of_old_key()
        };
        if let Some(known) = self.waiting.iter().find(is_it) {
            return known.buffer;
        }
        let buffer = self.builder.buffer(check.columns.len());
        self.waiting.push(Waiting::new(table, check, buffer));
        buffer
    }

    /// Keeps a key whose check waits now; else does `check_now`.
    pub(super) fn keep_or(
        &mut self,
        table: &Arc<Table>,
        check: &ReferenceCheck,
        key: &[Reg],
        position: Position,
        check_now: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some(Waits {
            is_deferred,
            buffer,
        }) = check.waits
        else {
            return check_now(self);
        };
        self.when(is_deferred, |compiler| {
            compiler.refuse_half_null(table, check, key, position)?;
            let keep = |compiler: &mut Self| {
                let types = types_of(table, &check.columns);
                let classes = types.iter().map(Class::of).collect::<Option<Vec<Class>>>();
                compiler.push_found(buffer, key, classes.as_deref());
                Ok(())
            };
            if check.side == (Side::Unique { nulls_equal: true }) {
                return keep(compiler);
            }
            let target = compiler.builder.register(DataType::Boolean);
            compiler.builder.scalar(Instruction::AnyNull {
                target,
                sources: key.into(),
            });
            compiler.unless(target, keep)
        })?;
        self.unless(is_deferred, check_now)
    }

    /// The program, which is at its end; see [`Compiler::end`].
    ///
    /// # Errors
    /// Those of [`Compiler::end`].
    pub(crate) fn finish(mut self) -> Result<Program> {
        self.end()?;
        Ok(self.builder.finish())
    }

    /// Appends the end of the program: the keys that it has kept are checked, or left to the
    /// transaction that it is a part of.
    ///
    /// # Errors
    /// Those of the constraints' tables.
    pub(crate) fn end(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        self.builder.go_on_after_return();
        let is_part = self.truth_of("is_part", is_part, Vec::new());
        for keys in waiting {
            let types = keys.types();
            self.unless(is_part, |compiler| {
                let registers = types.iter();
                let row: Vec<Reg> = registers
                    .map(|data_type| compiler.builder.register(data_type.clone()))
                    .collect();
                compiler.open_ir_loop();
                let result = compiler.emit_reference(&keys.table, &keys.check, &row, None);
                let body = compiler.close_ir_loop();
                compiler.builder.push(Step::ForBuffer {
                    buffer: keys.buffer,
                    matching: Box::default(),
                    row: row.into(),
                    body,
                });
                result
            })?;
            self.builder.defer(DeferredKeys {
                check: keys.deferred(),
                buffer: keys.buffer,
                types,
            });
        }
        Ok(())
    }

    fn truth_of(
        &mut self,
        name: &'static str,
        function: kiln_procedure::ir::ScalarFunction,
        arguments: Vec<Reg>,
    ) -> Reg {
        let target = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target,
            arguments: arguments.into(),
        });
        target
    }
}

/// Whether the constraint of a table, which are the first arguments, waits; the third says whether
/// it does initially.
fn is_deferred(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let [table, constraint, initially] = arguments else {
        return Ok(Slot::NULL);
    };
    let initially = initially.as_bool();
    let is_deferred = match heap.constraint_modes() {
        Some(modes) => modes.is_deferred(heap.str(*table), heap.str(*constraint), initially),
        None => initially,
    };
    Ok(Slot::from_bool(is_deferred))
}

/// Whether the program is a part of a larger transaction.
fn is_part(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
    Ok(Slot::from_bool(heap.constraint_modes().is_some()))
}

/// The check of a constraint, and the table whose rows have changed.
fn found_check(
    catalog: &dyn CatalogView,
    check: &DeferredCheck,
) -> Option<(Arc<Table>, ReferenceCheck)> {
    let referring = catalog.table(&check.table)?;
    let mut keys = referring.schema().foreign_keys.iter();
    let Some(key) = keys.find(|key| key.name == check.constraint).cloned() else {
        let mut indexes = referring.indexes().iter().map(|index| index.definition());
        let index = indexes
            .find(|index| index.deferral.is_deferrable() && index.name == check.constraint)?;
        let check = ReferenceCheck::of_unique_key(&referring, index);
        return Some((referring, check));
    };
    let referenced = catalog.table(&check.referenced)?;
    let (table, other, side, columns) = match check.is_of_referenced {
        true => (
            referenced,
            referring,
            Side::Parent { may_remain: true },
            key.referenced.clone(),
        ),
        false => (
            referring,
            referenced,
            Side::Child { may_change: true },
            key.columns.clone(),
        ),
    };
    Some((table, ReferenceCheck::new(side, key, other, columns)))
}

/// A program that checks keys which were left to the end of a transaction: an array for each column
/// of the constraint. It checks nothing where the constraint is gone.
///
/// # Errors
/// Those of the constraint's types.
pub fn deferred_check_program(catalog: &dyn CatalogView, check: &DeferredCheck) -> Result<Program> {
    let Some((table, check)) = found_check(catalog, check) else {
        return Ok(ProgramBuilder::new("check", []).finish());
    };
    let types = types_of(&table, &check.columns);
    let parameters = types
        .iter()
        .map(|data_type| (String::new(), DataType::array(data_type.clone())));
    let mut compiler = Compiler::new(ProgramBuilder::new("check", parameters), catalog);
    let count = compiler.builder.register(DataType::BigInt);
    let array = compiler.builder.parameter(0);
    compiler.builder.scalar(Instruction::ArrayLength {
        target: count,
        array,
    });
    let one = compiler
        .builder
        .constant(DataType::BigInt, Value::BigInt(1));
    let index = compiler.builder.register(DataType::BigInt);
    compiler.open_ir_loop();
    let mut row = Vec::with_capacity(types.len());
    for (position, data_type) in types.into_iter().enumerate() {
        let target = compiler.builder.register(data_type);
        let array = compiler.builder.parameter(position);
        compiler.builder.scalar(Instruction::Element {
            target,
            array,
            index,
        });
        row.push(target);
    }
    let result = compiler.emit_reference(&table, &check, &row, None);
    let body = compiler.close_ir_loop();
    compiler.builder.push(Step::ForRange {
        variable: index,
        first: one,
        last: count,
        step: one,
        reverse: false,
        body,
    });
    result?;
    compiler.finish()
}
