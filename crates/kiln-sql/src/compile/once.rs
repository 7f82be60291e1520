//! What a statement computes only once: subqueries that have nothing to do with the rows around
//! them.
//!
//! PostgreSQL computes such a subquery when it is first asked for, and so do we: a subquery behind
//! a condition that never holds is not run and cannot fail. What came of it is kept in registers,
//! or in a buffer for `IN (SELECT …)`, which is then searched for each row; a flag says whether it
//! is there. The flags are taken down where the statement begins, because it may run several times
//! in a loop.

use kiln_procedure::ir::{BufferId, Class, Comparison, Instruction, MATCHES_MAX, Match, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::TableId;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{self, SetExpr};

use super::bound::{Bound, ColumnMeta, Kind, Operation, Subquery, SubqueryKind};
use super::query::{QueryOptions, Sink};
use super::{Compiler, Position, fail, unsupported};
use crate::catalog::Relation;

/// The statement that is being compiled.
#[derive(Default)]
pub(super) struct Statement {
    /// How many loops of the IR are around it.
    outside: usize,
    known: Vec<Known>,
    /// The relations of the system that it has asked for: where their rows are kept, and whether
    /// they are there.
    relations: Vec<(&'static Relation, Reg, BufferId)>,
    /// The tables that it reads itself.
    reads: Vec<TableId>,
    /// The tables that functions write which it calls.
    writes: Vec<Written>,
    /// What its WITH has changed before the rest of it.
    changes: Vec<Change>,
}

/// A change that is a part of a statement.
struct Change {
    table: TableId,
    position: Position,
}

/// What a function does that a statement calls.
pub(super) struct Written {
    pub table: TableId,
    pub function: String,
    pub position: Position,
}

/// A subquery that is computed once.
#[derive(Clone, Copy)]
pub(super) struct Known {
    number: usize,
    /// Whether it is computed.
    done: Reg,
    result: Kept,
}

#[derive(Clone, Copy)]
enum Kept {
    /// A value.
    Value(Reg),
    /// Rows, and whether a value to be searched for among them is NULL.
    Rows(BufferId, Reg),
}

/// How a test of rows searches them: `left = right`, of which only the right side depends on them.
pub(super) struct Search<'b> {
    pub left: &'b Bound,
    pub right: &'b Bound,
    pub class: Class,
}

impl Subquery {
    /// Whether it gives the same whatever row it is computed for: it names nothing but its own.
    fn is_independent(&self) -> bool {
        self.query
            .is_independent(&self.own_sources, &self.own_slots)
    }

    /// What its columns equal, if it is `(…) = ANY (SELECT …)` of several columns.
    fn row_search(&self) -> Option<Vec<(Bound, Class)>> {
        let [test] = self.operand.as_slice() else {
            return None;
        };
        let Kind::And(tests) = &test.kind else {
            return None;
        };
        if tests.len() != self.slots.len() || tests.len() > MATCHES_MAX {
            return None;
        }
        let names_row = |bound: &Bound| {
            bound.any(|node| matches!(node.kind, Kind::Slot(slot) if self.slots.contains(&slot)))
        };
        let each = tests.iter().zip(&self.slots).map(|(test, slot)| {
            let Kind::Operation(Operation::Compare(Comparison::Equal, class), operands) =
                &test.kind
            else {
                return None;
            };
            match operands.as_slice() {
                [left, right] if !names_row(left) => {
                    let is_column = matches!(right.kind, Kind::Slot(known) if known == *slot);
                    is_column.then(|| (left.clone(), *class))
                }
                _ => None,
            }
        });
        each.collect()
    }

    /// How its test searches its rows, if it is `left = ANY (SELECT …)`.
    pub(super) fn search(&self) -> Option<Search<'_>> {
        let [test] = self.operand.as_slice() else {
            return None;
        };
        let Kind::Operation(Operation::Compare(Comparison::Equal, class), operands) = &test.kind
        else {
            return None;
        };
        let [left, right] = operands.as_slice() else {
            return None;
        };
        let names_row = |bound: &Bound| {
            bound.any(|node| matches!(node.kind, Kind::Slot(slot) if self.slots.contains(&slot)))
        };
        let is_of_row = names_row(right) && right.columns().is_empty() && !right.is_lazy();
        (is_of_row && !names_row(left)).then_some(Search {
            left,
            right,
            class: *class,
        })
    }
}

impl<'a> Compiler<'a> {
    /// Compiles a statement.
    pub(super) fn statement<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let statement = Statement {
            outside: self.depth,
            ..Statement::default()
        };
        let around = self.statement.replace(statement);
        self.builder.open();
        let result = body(self);
        let steps = self.builder.close();
        let statement = std::mem::replace(&mut self.statement, around);
        let Some(statement) = statement else {
            return result;
        };
        for known in statement.known {
            self.forget(known);
        }
        for (_, done, buffer) in statement.relations {
            self.set_truth(done, false);
            self.builder.push(Step::BufferClear { buffer });
        }
        for step in steps {
            self.builder.push(step);
        }
        let result = result?;
        // PostgreSQL's statement reads what was there when it began; ours would meet what the
        // function has written.
        let meets = |written: &&Written| statement.reads.contains(&written.table);
        if let Some(Written {
            function, position, ..
        }) = statement.writes.iter().find(meets)
        {
            let feature =
                format!("a call of {function} by a statement that reads what the function writes");
            return Err(unsupported(feature, *position));
        }
        self.check_changes(&statement.changes, &statement.reads)?;
        if let Some(around) = &mut self.statement {
            around.reads.extend(statement.reads);
            around.writes.extend(statement.writes);
        }
        Ok(result)
    }

    /// Refuses to read what a change in WITH has written: PostgreSQL's statement reads what was
    /// there when it began.
    fn check_changes(&self, changes: &[Change], reads: &[TableId]) -> Result<()> {
        match changes.iter().find(|change| reads.contains(&change.table)) {
            None => Ok(()),
            Some(change) => {
                let what = "a statement that reads a table which its WITH changes";
                Err(unsupported(what, change.position))
            }
        }
    }

    /// Makes an INSERT, UPDATE or DELETE that is a part of the statement, before the rest of it.
    pub(super) fn change_apart(
        &mut self,
        body: &SetExpr,
        position: Position,
        keep: Sink<'_, 'a>,
    ) -> Result<Vec<ColumnMeta>> {
        let around = self.statement.replace(Statement {
            outside: self.depth,
            ..Statement::default()
        });
        let hidden = std::mem::take(&mut self.levels);
        let was_apart = std::mem::replace(&mut self.is_change_apart, true);
        let made = self.change(body, Some(keep), None, position);
        self.is_change_apart = was_apart;
        self.levels = hidden;
        let own = std::mem::replace(&mut self.statement, around);
        let (table, columns) = made?;
        let reads = own.map(|own| own.reads).unwrap_or_default();
        let changes = match &mut self.statement {
            Some(statement) => std::mem::take(&mut statement.changes),
            None => Vec::new(),
        };
        let checked = self.check_changes(&changes, &reads);
        if let Some(statement) = &mut self.statement {
            statement.changes = changes;
            statement.changes.push(Change { table, position });
        }
        checked.map(|()| columns)
    }

    /// Compiles an INSERT, UPDATE or DELETE that stands where a query may; RETURNING decides
    /// whether it gives rows.
    pub(super) fn change(
        &mut self,
        body: &SetExpr,
        sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
        position: Position,
    ) -> Result<(TableId, Vec<ColumnMeta>)> {
        let columns = match body {
            SetExpr::Insert(ast::Statement::Insert(insert)) => {
                let sink = sink.filter(|_| insert.returning.is_some());
                self.insert(insert, sink, counter)?
            }
            SetExpr::Update(ast::Statement::Update(update)) => {
                let sink = sink.filter(|_| update.returning.is_some());
                self.update(update, sink, counter)?
            }
            SetExpr::Delete(ast::Statement::Delete(delete)) => {
                let sink = sink.filter(|_| delete.returning.is_some());
                self.delete(delete, sink, counter)?
            }
            SetExpr::Merge(ast::Statement::Merge(merge)) => {
                self.merge(merge, counter)?;
                Vec::new()
            }
            _ => return Err(unsupported("this change", position)),
        };
        let table = self
            .changed
            .ok_or_else(|| Error::internal("a change of no table"))?;
        Ok((table, columns))
    }

    /// Compiles `WITH … INSERT`, UPDATE, DELETE or MERGE.
    ///
    /// # Errors
    /// As those of the statements, and of queries.
    pub fn change_with(
        &mut self,
        query: &ast::Query,
        sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        let is_merge = matches!(*query.body, SetExpr::Merge(_));
        if is_merge && query.with.as_ref().is_some_and(|with| with.recursive) {
            let message = "WITH RECURSIVE is not supported for MERGE statement";
            return Err(fail(SqlState::SYNTAX_ERROR, message, None));
        }
        let (names, open) = (self.with_names.len(), self.open_with.len());
        let result = self.statement(|compiler| {
            if let Some(with) = &query.with {
                compiler.open_changing_with(with)?;
            }
            let made = compiler.change(&query.body, sink, counter, None)?;
            Ok(made.1)
        });
        self.with_names.truncate(names);
        self.open_with.truncate(open);
        result
    }

    /// Notes that the statement reads a table.
    pub(super) fn note_read(&mut self, table: TableId) {
        if let Some(statement) = &mut self.statement {
            statement.reads.push(table);
        }
    }

    /// Notes that a function which the statement calls writes a table.
    pub(super) fn note_written(&mut self, written: Written) {
        if let Some(statement) = &mut self.statement {
            statement.writes.push(written);
        }
    }

    /// Compiles expressions of PL/pgSQL. Where they call functions and read tables too, they are a
    /// statement of their own, as in PostgreSQL.
    pub(super) fn alone<T>(
        &mut self,
        bounds: &[&Bound],
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let has = |accept: fn(&Bound) -> bool| bounds.iter().any(|bound| bound.any(accept));
        let calls = has(|node| matches!(node.kind, Kind::Routine(..)));
        let reads = has(|node| matches!(node.kind, Kind::Subquery(_)));
        match self.statement.is_none() && calls && reads {
            true => self.statement(body),
            false => body(self),
        }
    }

    /// Compiles what is not part of the statement around it although it runs within: the body of a
    /// FOR loop, of a function.
    pub(super) fn outside_statement<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.statement.take();
        let was_apart = std::mem::take(&mut self.is_change_apart);
        let result = body(self);
        self.is_change_apart = was_apart;
        self.statement = around;
        result
    }

    /// Where the rows of a relation are kept, and what says whether they are there; `None` outside
    /// of a statement.
    pub(super) fn kept_relation(&mut self, relation: &'static Relation) -> Option<(Reg, BufferId)> {
        let statement = self.statement.as_ref()?;
        let mut known = statement.relations.iter();
        if let Some((_, done, buffer)) = known.find(|(known, ..)| std::ptr::eq(*known, relation)) {
            return Some((*done, *buffer));
        }
        let done = self.builder.register(DataType::Boolean);
        let buffer = self.builder.buffer(relation.columns.len());
        let statement = self.statement.as_mut()?;
        statement.relations.push((relation, done, buffer));
        Some((done, buffer))
    }

    fn forget(&mut self, known: Known) {
        self.set_truth(known.done, false);
        match known.result {
            Kept::Value(target) => self.builder.scalar(Instruction::SetNull { target }),
            Kept::Rows(buffer, unknown) => {
                self.builder.push(Step::BufferClear { buffer });
                self.set_truth(unknown, false);
            }
        }
    }

    /// `target := value`.
    pub(super) fn set_truth(&mut self, target: Reg, value: bool) {
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(value));
        self.builder.scalar(Instruction::Move { target, source });
    }

    /// Whether what is emitted may be computed several times for the statement.
    pub(super) fn is_in_loop(&self) -> bool {
        let statement = self.statement.as_ref();
        statement.is_some_and(|statement| self.depth > statement.outside)
    }

    /// Whether a subquery would be computed several times and need not be.
    pub(super) fn is_repeated(&self, subquery: &Subquery) -> bool {
        self.is_in_loop() && subquery.is_independent()
    }

    /// Where the rows of the subquery with this number are kept, which have so many columns.
    pub(super) fn known_rows(&mut self, number: usize, width: usize) -> (Known, BufferId) {
        let statement = self.statement.iter().flat_map(|statement| &statement.known);
        let mut statement = statement.copied();
        if let Some(known) = statement.find(|known| known.number == number)
            && let Kept::Rows(buffer, _) = known.result
        {
            return (known, buffer);
        }
        let buffer = self.builder.buffer(width);
        let known = Known {
            number,
            done: self.builder.register(DataType::Boolean),
            result: Kept::Rows(buffer, self.builder.register(DataType::Boolean)),
        };
        if let Some(statement) = &mut self.statement {
            statement.known.push(known);
        }
        (known, buffer)
    }

    /// Computes a subquery unless the statement has done so; says where its value is.
    pub(super) fn emit_once(&mut self, subquery: &Subquery, data_type: &DataType) -> Result<Reg> {
        let known = self.known(subquery, data_type);
        match known.result {
            Kept::Value(value) => {
                self.unless_done(known, |compiler| {
                    compiler.emit_subquery(subquery, data_type, value)
                })?;
                Ok(value)
            }
            Kept::Rows(buffer, unknown) => {
                let search = subquery.search();
                self.unless_done(known, |compiler| {
                    compiler.keep_rows(subquery, search.as_ref(), buffer, unknown)
                })?;
                match &search {
                    Some(search) => self.search_kept(search, buffer, unknown),
                    None => self.find_kept(subquery, buffer, unknown),
                }
            }
        }
    }

    fn known(&mut self, subquery: &Subquery, data_type: &DataType) -> Known {
        let statement = self.statement.iter().flat_map(|statement| &statement.known);
        let mut statement = statement.copied();
        if let Some(known) = statement.find(|known| known.number == subquery.number) {
            return known;
        }
        let done = self.builder.register(DataType::Boolean);
        let result = match subquery.kind {
            SubqueryKind::Any => {
                let width = match subquery.search() {
                    Some(_) => 1,
                    None => subquery.slots.len(),
                };
                let unknown = self.builder.register(DataType::Boolean);
                Kept::Rows(self.builder.buffer(width), unknown)
            }
            SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::Array => {
                Kept::Value(self.builder.register(data_type.clone()))
            }
        };
        let known = Known {
            number: subquery.number,
            done,
            result,
        };
        if let Some(statement) = &mut self.statement {
            statement.known.push(known);
        }
        known
    }

    /// Computes what is not known yet.
    pub(super) fn unless_done(
        &mut self,
        known: Known,
        compute: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.open();
        let result = compute(self);
        self.set_truth(known.done, true);
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: known.done,
            then: Vec::new(),
            otherwise,
        });
        result
    }

    /// Keeps what the rows of a subquery are searched by, or the rows.
    fn keep_rows(
        &mut self,
        subquery: &Subquery,
        search: Option<&Search<'_>>,
        buffer: BufferId,
        unknown: Reg,
    ) -> Result<()> {
        let options = QueryOptions::default();
        self.emit_query(&subquery.query, options, &mut |compiler, row| {
            let Some(search) = search else {
                compiler.builder.push(Step::BufferPush {
                    buffer,
                    row: row.into(),
                });
                compiler.note_null(row, unknown);
                return Ok(());
            };
            compiler.name_row(subquery, row);
            let value = compiler.emit(search.right)?;
            compiler.note_null(&[value], unknown);
            compiler.push_distinct(buffer, &[search.class], &[value]);
            Ok(())
        })
    }

    /// Sets `unknown` when one of `values` is NULL.
    fn note_null(&mut self, values: &[Reg], unknown: Reg) {
        let is_null = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::AnyNull {
            target: is_null,
            sources: values.into(),
        });
        self.builder.scalar(Instruction::Or {
            target: unknown,
            left: unknown,
            right: is_null,
        });
    }

    /// The test of a subquery over its kept rows. Where it compares each column with a value, a row
    /// that equals all of them is looked up first; only NULLs make it necessary to look at the
    /// others.
    fn find_kept(&mut self, subquery: &Subquery, buffer: BufferId, unknown: Reg) -> Result<Reg> {
        let Some(values) = subquery.row_search() else {
            return self.test_kept(subquery, buffer);
        };
        let (bounds, classes): (Vec<Bound>, Vec<Class>) = values.into_iter().unzip();
        let values = self.emit_row(&bounds)?;
        let result = self.builder.register(DataType::Boolean);
        self.set_truth(result, false);
        self.open_ir_loop();
        self.set_truth(result, true);
        self.builder.push(Step::Exit { depth: 0 });
        let body = self.close_ir_loop();
        let matching = values.iter().zip(classes).enumerate();
        let matching = matching.map(|(column, (value, class))| Match {
            column: column as u16,
            value: *value,
            class,
        });
        let columns = subquery.query.columns.iter();
        let row: Vec<Reg> = columns
            .map(|column| self.builder.register(column.data_type.clone()))
            .collect();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: matching.collect(),
            row: row.into(),
            body,
        });
        let maybe = self.builder.register(DataType::Boolean);
        self.set_truth(maybe, false);
        self.note_null(&values, maybe);
        self.builder.scalar(Instruction::Or {
            target: maybe,
            left: maybe,
            right: unknown,
        });
        self.open();
        self.open();
        let tested = self.test_kept(subquery, buffer);
        if let Ok(source) = tested {
            let target = result;
            self.builder.scalar(Instruction::Move { target, source });
        }
        self.close_if(maybe);
        self.close_unless(result);
        tested.map(|_| result)
    }

    /// TRUE when `left` is among the kept values, NULL when that is unknown, else FALSE.
    fn search_kept(&mut self, search: &Search<'_>, buffer: BufferId, unknown: Reg) -> Result<Reg> {
        let left = self.emit(search.left)?;
        let result = self.builder.register(DataType::Boolean);
        self.set_truth(result, false);
        self.open_ir_loop();
        self.set_truth(result, true);
        self.builder.push(Step::Exit { depth: 0 });
        let body = self.close_ir_loop();
        let row = self.builder.register(search.right.data_type.clone());
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: [Match {
                column: 0,
                value: left,
                class: search.class,
            }]
            .into(),
            row: [row].into(),
            body,
        });
        self.open();
        let maybe = self.maybe_among(left, buffer, unknown);
        let null = Step::Scalar(Instruction::SetNull { target: result });
        self.builder.push(Step::If {
            condition: maybe,
            then: vec![null],
            otherwise: Vec::new(),
        });
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: result,
            then: Vec::new(),
            otherwise,
        });
        Ok(result)
    }

    /// Whether a value that was not found may be there: one of those kept is NULL, or the value is
    /// and there are some.
    fn maybe_among(&mut self, value: Reg, buffer: BufferId, unknown: Reg) -> Reg {
        let [count, is_null, some, null_among_some, maybe] = [
            DataType::BigInt,
            DataType::Boolean,
            DataType::Boolean,
            DataType::Boolean,
            DataType::Boolean,
        ]
        .map(|data_type| self.builder.register(data_type));
        self.builder.push(Step::BufferCount {
            buffer,
            target: count,
        });
        let zero = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        for instruction in [
            Instruction::Compare {
                op: Comparison::Greater,
                class: Class::Integer,
                target: some,
                left: count,
                right: zero,
            },
            Instruction::IsNull {
                target: is_null,
                source: value,
                negated: false,
            },
            Instruction::And {
                target: null_among_some,
                left: is_null,
                right: some,
            },
            Instruction::Or {
                target: maybe,
                left: null_among_some,
                right: unknown,
            },
        ] {
            self.builder.scalar(instruction);
        }
        maybe
    }

    /// The test of a subquery over its kept rows, one after the other.
    fn test_kept(&mut self, subquery: &Subquery, buffer: BufferId) -> Result<Reg> {
        let result = self.builder.register(DataType::Boolean);
        self.set_truth(result, false);
        let outside = self.depth;
        self.open_ir_loop();
        let columns = subquery.query.columns.iter();
        let row: Vec<Reg> = columns
            .map(|column| self.builder.register(column.data_type.clone()))
            .collect();
        let tested = self.test_row(subquery, &row, outside, result);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        tested.map(|()| result)
    }
}
