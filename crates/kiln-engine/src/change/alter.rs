//! Tables and indexes that become others: under another name, declared in another way, or with
//! their rows in another layout.
//!
//! What is declared in another way only shares rows and indexes with the table before. A table of
//! another layout gets a number of its own and a copy of each row, while no transaction runs. A
//! recovery makes that again from the rows that it has restored: what is computed depends on these,
//! on the moment that the statement notes, and on sequences, which go on from a state that the log
//! has.

use kiln_platform::sync::{Arc, lock};
use kiln_platform::time;
use kiln_procedure::{Arguments, Frame, Program};
use kiln_storage::error::{Error, Result};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{ColumnId, IndexDefinition, TableSchema};
use kiln_storage::sequence::SequenceDefinition;
use kiln_storage::slot::Slot;
use kiln_storage::table::Table;
use kiln_storage::types::Value;

use super::catalog_change::CatalogChange;
use super::still;
use crate::catalog::{NumberedObject, Procedure};
use crate::errors;
use crate::roles::Object;

/// Where the values of a column of a table in another layout come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewColumn {
    /// From this column of the table before.
    Kept(ColumnId),
    /// From what the program emits at this position.
    Computed(usize),
}

/// The rows of a table in another layout.
pub struct NewRows {
    /// The table; its name is that of the table before.
    pub schema: TableSchema,
    /// Its indexes besides the first.
    pub indexes: Vec<IndexDefinition>,
    /// Where the values of each column come from.
    pub columns: Vec<NewColumn>,
    /// Computes the others, of a row of the table before; it emits one row.
    pub program: Option<Arc<Program>>,
    /// The columns of the table before that are the program's parameters.
    pub arguments: Vec<ColumnId>,
}

impl CatalogChange<'_> {
    /// Whether the change was made before, and rows have been checked then: a recovery makes it
    /// again.
    pub fn is_made_again(&self) -> bool {
        self.known_splits.is_some()
    }

    /// When the change is made, in microseconds since 1970. A recovery that makes it again is told
    /// the same.
    pub fn moment_us(&mut self) -> i64 {
        *self.moment_us.get_or_insert_with(time::wall_clock_us)
    }

    /// Declares a table in another way; its rows stay as they lie.
    ///
    /// # Errors
    /// 42P01.
    pub fn alter_schema(
        &mut self,
        table: &str,
        alter: impl FnOnce(&mut TableSchema),
    ) -> Result<Arc<Table>> {
        self.claim(table)?;
        let old = self.catalog.require_table(table)?.clone();
        let mut schema = old.schema().clone();
        alter(&mut schema);
        self.claim_referenced(old.schema(), &schema)?;
        Ok(self.replace(table, old.with_schema(schema)))
    }

    /// As [`CatalogChange::alter_schema`], of a table that is claimed and refers to no other one
    /// than before.
    fn redeclare(
        &mut self,
        table: &str,
        alter: impl FnOnce(&mut TableSchema),
    ) -> Result<Arc<Table>> {
        let old = self.catalog.require_table(table)?;
        let mut schema = old.schema().clone();
        alter(&mut schema);
        let new = old.with_schema(schema);
        Ok(self.replace(table, new))
    }

    /// Claims the tables to which a table refers from now on: a block may have deleted a row of one
    /// with a program that knows nothing of that.
    fn claim_referenced(&mut self, before: &TableSchema, after: &TableSchema) -> Result<()> {
        let is_known = |table: &str| before.foreign_keys.iter().any(|key| key.table == table);
        let new = after.foreign_keys.iter().map(|key| key.table.as_str());
        for table in new.filter(|table| !is_known(table) && *table != after.name) {
            self.claim_whole(table)?;
        }
        Ok(())
    }

    /// Calls a table otherwise, with what goes with it. Tables that refer to it say so.
    ///
    /// # Errors
    /// 42P01; 42P07 when a relation has the name; those of the log.
    pub fn rename_table(&mut self, from: &str, to: &str) -> Result<()> {
        self.claim(from)?;
        self.check_no_relation(to)?;
        let referring: Vec<String> = (self.catalog.referencing(from))
            .filter(|name| *name != from)
            .map(str::to_owned)
            .collect();
        let refer = |schema: &mut TableSchema| {
            let keys = schema
                .foreign_keys
                .iter_mut()
                .filter(|key| key.table == from);
            keys.for_each(|key| to.clone_into(&mut key.table));
        };
        for name in referring {
            self.claim(&name)?;
            self.redeclare(&name, refer)?;
        }
        let renamed = self.redeclare(from, |schema| {
            refer(schema);
            if !schema.primary_key.is_empty() && schema.primary_key_name.is_none() {
                schema.primary_key_name = Some(format!("{}_pkey", name_in_schema(from)));
            }
            to.clone_into(&mut schema.name);
        })?;
        self.catalog.tables.remove(from);
        self.catalog.tables.insert(to.to_owned(), renamed);
        if let Some(mut view) = self.catalog.views.remove(from) {
            to.clone_into(&mut Arc::make_mut(&mut view).name);
            self.catalog.views.insert(to.to_owned(), view);
        }
        self.rename_on_commit(from, to);
        self.renumber(|object| rename_in_table(object, from, to));
        (self.roles()).rename(&Object::table(from), Object::table(to));
        self.alter_owned(from, |owner| to.clone_into(&mut owner.table))
    }

    /// Calls a column of a table otherwise.
    ///
    /// # Errors
    /// 42P01, 42703; those of the log.
    pub fn rename_column(&mut self, table: &str, from: &str, to: &str) -> Result<()> {
        let known = self.catalog.require_table(table)?.schema().column(from);
        let column = known.ok_or_else(|| errors::undefined_column(table, from))?;
        self.alter_schema(table, |schema| {
            to.clone_into(&mut schema.columns[column.index()].name);
        })?;
        self.renumber(|object| match object {
            NumberedObject::Default(of, name) if of == table && name == from => {
                Some(NumberedObject::Default(of.clone(), to.to_owned()))
            }
            _ => None,
        });
        self.comments().rename_column(table, from, to);
        self.alter_owned(table, |owner| {
            if owner.column == from {
                to.clone_into(&mut owner.column);
            }
        })
    }

    /// Changes of which column the sequences are that go with a table.
    fn alter_owned(
        &mut self,
        table: &str,
        alter: impl Fn(&mut kiln_storage::sequence::SequenceOwner),
    ) -> Result<()> {
        let owned = self.catalog.owned_sequences(table);
        let owned: Vec<SequenceDefinition> = owned.map(|it| it.definition().clone()).collect();
        for mut definition in owned {
            let before = definition.owner.clone();
            if let Some(owner) = &mut definition.owner {
                alter(owner);
            }
            if definition.owner != before {
                self.alter_sequence(definition, None)?;
            }
        }
        Ok(())
    }

    /// Calls an index of a table otherwise, and the constraint that it belongs to.
    ///
    /// # Errors
    /// 42P01; 42704 when there is no such index; 42P07 when a relation has the name.
    pub fn rename_index(&mut self, table: &str, from: &str, to: &str) -> Result<()> {
        self.claim(table)?;
        let (known, new) = (beside(table, from), beside(table, to));
        self.check_no_relation(&new)?;
        let old = self.catalog.require_table(table)?;
        let mut schema = old.schema().clone();
        let is_first = old.indexes()[0].definition().name == from;
        if is_first || schema.primary_key_name.as_deref() == Some(from) {
            schema.primary_key_name = Some(to.to_owned());
        }
        let mut unbuilt = schema.unbuilt.iter_mut();
        let unbuilt = unbuilt.find(|index| index.definition.name == from);
        let is_built = unbuilt.is_none();
        if let Some(unbuilt) = unbuilt {
            to.clone_into(&mut unbuilt.definition.name);
        }
        let renamed = match is_first || !is_built {
            true => old.with_schema(schema),
            false => {
                let renamed = old.with_renamed_index(from, to);
                let renamed = renamed.ok_or_else(|| errors::undefined_index(from))?;
                renamed.with_schema(schema)
            }
        };
        self.replace(table, renamed);
        self.renumber(|object| match object {
            NumberedObject::Index(name) if *name == known => {
                Some(NumberedObject::Index(new.clone()))
            }
            _ => None,
        });
        self.renumber_constraint(table, from, to);
        Ok(())
    }

    /// A constraint of a table keeps its number under another name.
    pub fn renumber_constraint(&mut self, table: &str, from: &str, to: &str) {
        self.renumber(|object| match object {
            NumberedObject::Constraint(of, name) if of == table && name == from => {
                Some(NumberedObject::Constraint(of.clone(), to.to_owned()))
            }
            _ => None,
        });
    }

    /// A trigger keeps its number under another name.
    pub fn renumber_trigger(&mut self, table: &str, from: &str, to: &str) {
        self.renumber(|object| match object {
            NumberedObject::Trigger(of, name) if of == table && name == from => {
                Some(NumberedObject::Trigger(of.clone(), to.to_owned()))
            }
            _ => None,
        });
    }

    /// Puts a procedure in the place of one of another name.
    ///
    /// # Errors
    /// 42883; 42723 when the name is taken.
    pub fn rename_procedure(&mut self, from: &str, renamed: Procedure) -> Result<()> {
        let old = self.catalog.require_procedure(from)?.clone();
        let to = renamed.name().to_owned();
        self.create_procedure(renamed, false)?;
        self.catalog.procedures.remove(from);
        // It is called as often as before.
        let calls = old.calls();
        if let Some(renamed) = self.catalog.procedure(&to) {
            renamed.assume_calls(calls);
        }
        self.renumber(|object| match object {
            NumberedObject::Routine(name) if name == from => {
                Some(NumberedObject::Routine(to.clone()))
            }
            _ => None,
        });
        (self.roles()).rename(&Object::routine(from), Object::routine(to.clone()));
        Ok(())
    }

    /// Objects keep their numbers, and what is said of them, under other names.
    pub(crate) fn renumber(&mut self, name: impl Fn(&NumberedObject) -> Option<NumberedObject>) {
        Arc::make_mut(&mut self.catalog.numbers).rename(&name);
        self.comments().rename(name);
    }

    /// Puts a table in another one's place that has its rows, as `rows` says; it has a number of
    /// its own. Tables that refer to it are not changed.
    ///
    /// # Errors
    /// 42P01; 23502, 23505 and what the program raises, for rows that cannot be so; those of
    /// [`Table::new`].
    pub fn rewrite_table(&mut self, rows: NewRows) -> Result<Arc<Table>> {
        let name = rows.schema.name.clone();
        self.claim(&name)?;
        if let Some(program) = &rows.program
            && !program.tables.is_empty()
        {
            let feature =
                "an expression that reads tables, for the rows of a table that is altered,";
            return Err(Error::unsupported(format!("{feature} is not supported")));
        }
        let old = self.catalog.require_table(&name)?.clone();
        self.claim_referenced(old.schema(), &rows.schema)?;
        let split = rows.columns.iter().enumerate().filter(|(_, source)| {
            matches!(source, NewColumn::Kept(column) if old.split().contains(*column))
        });
        let split = split.map(|(at, _)| ColumnId(at as u16)).collect();
        let (moment_us, id) = (self.moment_us(), self.next_table_id()?);
        let mut table = Table::new(id, rows.schema.clone(), 0, Vec::new())?;
        self.fill(&old, &table, &rows, moment_us)?;
        for definition in rows.indexes {
            table = match self.inner.is_restoring() {
                true => table.with_empty_index(definition)?,
                false => table.with_index(definition, &lock(&self.inner.maintenance))?,
            };
        }
        table.split_by(split);
        self.inner.common().prepare(&table);
        self.rewritten.push(old);
        Ok(self.replace(&name, table))
    }

    pub(crate) fn fill(
        &self,
        old: &Table,
        new: &Table,
        rows: &NewRows,
        moment_us: i64,
    ) -> Result<()> {
        let participant = lock(&self.inner.maintenance);
        let is_numbered = new.layout().row_number().is_some();
        if is_numbered {
            for (arena, next) in old.row_numbers() {
                new.restore_row_number(arena, next);
            }
        }
        let (mut frame, mut arguments) = (Frame::new(), Arguments::new());
        let (mut values, mut computed) = (Vec::new(), Vec::new());
        old.each_row(|record, number| {
            frame.memory.heap.clear();
            computed.clear();
            if let Some(program) = &rows.program {
                push_arguments(old, record, rows, &mut frame, &mut arguments)?;
                let told = (moment_us, self.has_style);
                still::run(program, &mut frame, &mut arguments, told)?;
                computed.extend_from_slice(frame.rows().1);
            }
            let heap = &mut frame.memory.heap;
            values.clear();
            for source in &rows.columns {
                values.push(match source {
                    NewColumn::Kept(column) => old.column_value(*column, old.row(record), heap),
                    NewColumn::Computed(position) => computed[*position],
                });
            }
            new.append_row(&values, number.filter(|_| is_numbered), heap, &participant)
        })
    }

    /// What a query finds that has no parameters, and changes nothing.
    ///
    /// # Errors
    /// What it raises; 55P03 when an open block uses one of its tables.
    pub fn read(&mut self, program: &Program) -> Result<Vec<Vec<Value>>> {
        for table in &program.tables {
            self.claim_to_read(&table.schema().name)?;
        }
        let mut frame = Frame::new();
        let now_us = time::wall_clock_us();
        let told = (now_us, self.has_style);
        still::run(program, &mut frame, &mut Arguments::new(), told)?;
        Ok(frame.result_values(program))
    }
}

/// Makes the columns that a program wants of a row its arguments.
fn push_arguments(
    old: &Table,
    record: RecordRef,
    rows: &NewRows,
    frame: &mut Frame,
    arguments: &mut Arguments,
) -> Result<()> {
    arguments.clear();
    for column in &rows.arguments {
        let heap = &mut frame.memory.heap;
        let slot: Slot = old.column_value(*column, old.row(record), heap);
        let data_type = &old.schema().columns[column.index()].data_type;
        let slot = kiln_procedure::packed::from_row(heap, slot, data_type)?;
        arguments.push(&kiln_procedure::frame::to_value(heap, slot, data_type));
    }
    Ok(())
}

/// What an object of a table is called when the table is called otherwise.
fn rename_in_table(object: &NumberedObject, from: &str, to: &str) -> Option<NumberedObject> {
    let to = to.to_owned();
    Some(match object {
        NumberedObject::Table(name) if name == from => NumberedObject::Table(to),
        NumberedObject::RowType(name) if name == from => NumberedObject::RowType(to),
        NumberedObject::RowArrayType(name) if name == from => NumberedObject::RowArrayType(to),
        NumberedObject::Constraint(of, name) if of == from => {
            NumberedObject::Constraint(to, name.clone())
        }
        NumberedObject::Trigger(of, name) if of == from => {
            NumberedObject::Trigger(to, name.clone())
        }
        NumberedObject::Default(of, name) if of == from => {
            NumberedObject::Default(to, name.clone())
        }
        _ => return None,
    })
}
