//! FOR UPDATE and FOR SHARE: where they may stand, and SKIP LOCKED and NOWAIT, which lock rows by
//! their keys.

use kiln_engine::{Object, Privilege};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Instruction, Reg};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::types::DataType;
use sqlparser::ast::{
    self, GroupByExpr, LockClause, LockType, NonBlock, ObjectName, Query, SetExpr, TableFactor,
    TableWithJoins,
};

use super::bound::{
    Body, Bound, BoundQuery, ColumnMeta, FromItem, ItemKind, Kind, LockRow, Operation, Select,
    SourceId,
};
use super::coerce::to_output_text;
use super::session_value::SessionValue;
use super::{Compiler, Position, fail, name_of, position_of, relation_name, unsupported};
use crate::catalog::RowLock;
use crate::parse::stored_query;

/// Checks that the locking clauses of a query may stand there, and that their tables are in its
/// FROM.
///
/// # Errors
/// 0A000 and 42P01, as PostgreSQL.
pub(super) fn check(query: &Query) -> Result<()> {
    let Some(first) = query.locks.first() else {
        return Ok(());
    };
    let position = position_of(query);
    let refused = |what: &str| {
        let message = format!("FOR {} is not allowed with {what}", first.lock_type);
        fail(SqlState::FEATURE_NOT_SUPPORTED, message, position)
    };
    let select = match &*query.body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => return Err(refused("UNION/INTERSECT/EXCEPT")),
        SetExpr::Values(_) => {
            let message = format!("FOR {} cannot be applied to VALUES", first.lock_type);
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
        }
        _ => return Ok(()),
    };
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(expressions, _) => !expressions.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if select.distinct.is_some() {
        return Err(refused("DISTINCT clause"));
    }
    if is_grouped {
        return Err(refused("GROUP BY clause"));
    }
    if select.having.is_some() {
        return Err(refused("HAVING clause"));
    }
    let mut names = Vec::new();
    for item in &select.from {
        let joined = item.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&item.relation).chain(joined) {
            collect_names(factor, &mut names);
        }
    }
    let mut locks = query.locks.iter();
    locks.try_for_each(|lock| check_table(lock, &names, position))
}

/// The names by which a part of FROM is known.
fn collect_names(factor: &TableFactor, names: &mut Vec<String>) {
    let alias = match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            None => {
                let last = name.0.last().and_then(|part| part.as_ident());
                names.extend(last.map(name_of));
                return;
            }
            alias => alias,
        },
        TableFactor::NestedJoin {
            table_with_joins,
            alias,
        } => {
            let joined = table_with_joins.joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(&table_with_joins.relation).chain(joined) {
                collect_names(factor, names);
            }
            alias
        }
        TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias,
        _ => return,
    };
    names.extend(
        alias
            .as_ref()
            .map(|ast::TableAlias { name, .. }| name_of(name)),
    );
}

fn check_table(lock: &LockClause, names: &[String], position: Position) -> Result<()> {
    let Some(of) = &lock.of else {
        return Ok(());
    };
    let unqualified = match of.0.as_slice() {
        [part] => part.as_ident().map(name_of),
        _ => {
            let message = format!(
                "FOR {} must specify unqualified relation names",
                lock.lock_type
            );
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
    };
    let name = unqualified.ok_or_else(|| Error::internal("a name without an identifier"))?;
    match names.contains(&name) {
        true => Ok(()),
        false => {
            let lock = &lock.lock_type;
            let message =
                format!("relation \"{name}\" in FOR {lock} clause not found in FROM clause");
            Err(fail(SqlState::UNDEFINED_TABLE, message, position))
        }
    }
}

/// The only relation of FROM that a locking clause is about, if it names one.
fn name_of_locked(lock: &LockClause) -> Option<String> {
    let of = lock.of.as_ref()?;
    of.0.last()?.as_ident().map(name_of)
}

/// The tables whose rows a locking clause locks, and how.
struct Clause {
    sources: Vec<SourceId>,
    is_shared: bool,
    no_wait: bool,
}

impl Compiler<'_> {
    /// Refuses locking clauses about rows that cannot be changed, and says that who runs the query
    /// must be allowed to change those that it locks.
    ///
    /// # Errors
    /// 42809 for a materialized view or a sequence.
    pub(super) fn check_locked(&mut self, bound: &BoundQuery, query: &Query) -> Result<()> {
        if query.locks.is_empty() {
            return Ok(());
        }
        let refused = |what: &str| {
            let message = format!(
                "FOR {} is not allowed with {what}",
                query.locks[0].lock_type
            );
            let position = position_of(query);
            Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position))
        };
        let is_windowed = |item: &FromItem| matches!(&item.kind, ItemKind::Derived(query) if matches!(query.body, Body::Windowed(_)));
        let select = match &bound.body {
            Body::Select(select) if select.items.iter().any(is_windowed) => {
                return refused("window functions");
            }
            Body::Select(select) if select.has_aggregates() => {
                return refused("aggregate functions");
            }
            Body::Select(select) if !select.row_functions.is_empty() => {
                return refused("set-returning functions in the target list");
            }
            Body::Select(select) => select,
            _ => return Ok(()),
        };
        for lock in &query.locks {
            let of = name_of_locked(lock);
            for item in &select.items {
                let is_meant = |name: &String| self.source(item.source).name == *name;
                if of.as_ref().is_none_or(is_meant) {
                    self.check_lockable(&item.kind)?;
                }
            }
            self.note_locking(&query.body, of.as_deref())?;
        }
        Ok(())
    }

    /// Notes the privileges for locking rows of the relations in FROM, or of the one that `of`
    /// names. What a view reads is locked for its owner.
    fn note_locking(&mut self, body: &SetExpr, of: Option<&str>) -> Result<()> {
        let SetExpr::Select(select) = body else {
            return Ok(());
        };
        let mut factors: Vec<&TableFactor> = Vec::new();
        let mut joined: Vec<&TableWithJoins> = select.from.iter().collect();
        while let Some(next) = joined.pop() {
            let others = next.joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(&next.relation).chain(others) {
                match factor {
                    TableFactor::NestedJoin {
                        table_with_joins,
                        alias: None,
                    } => joined.push(table_with_joins),
                    _ => factors.push(factor),
                }
            }
        }
        for factor in factors {
            let mut names = Vec::new();
            collect_names(factor, &mut names);
            if of.is_some_and(|of| !names.iter().any(|name| name == of)) {
                continue;
            }
            match factor {
                TableFactor::Table {
                    name, args: None, ..
                } => self.note_locking_of(name)?,
                TableFactor::Derived { subquery, .. } => {
                    self.note_locking(&subquery.body, None)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note_locking_of(&mut self, name: &ObjectName) -> Result<()> {
        let is_of_with = match name.0.as_slice() {
            [part] => part
                .as_ident()
                .is_some_and(|ident| self.is_with_name(&name_of(ident))),
            _ => false,
        };
        if is_of_with || self.system_relation(name)?.is_some() {
            return Ok(());
        }
        let relation = relation_name(self.catalog, name)?;
        self.note_access(Object::table(&relation), Privilege::Update);
        let Some(view) = self.catalog.view(&relation) else {
            return Ok(());
        };
        let query = stored_query(&view.query)?;
        self.by_owner_of(&view.name, |compiler| {
            compiler.along_view(&view, |compiler| compiler.note_locking(&query.body, None))
        })
    }

    fn check_lockable(&self, kind: &ItemKind) -> Result<()> {
        let (what, name) = match kind {
            ItemKind::Table(table) => {
                let name = &table.schema().name;
                if self.catalog.materialized_view(name).is_none() || self.refilled {
                    return Ok(());
                }
                ("materialized view", name_in_schema(name).to_owned())
            }
            ItemKind::Sequence(sequence) => {
                let name = &sequence.definition().name;
                ("sequence", name_in_schema(name).to_owned())
            }
            ItemKind::Derived(query) => {
                let Body::Select(select) = &query.body else {
                    return Ok(());
                };
                let mut items = select.items.iter();
                return items.try_for_each(|item| self.check_lockable(&item.kind));
            }
            ItemKind::Full(join) => {
                let mut sides = join.sides.iter();
                return sides.try_for_each(|(_, kind)| self.check_lockable(kind));
            }
            _ => return Ok(()),
        };
        let message = format!("cannot lock rows in {what} \"{name}\"");
        Err(fail(SqlState::WRONG_OBJECT_TYPE, message, None))
    }

    /// The query without the rows that other transactions have locked, where its locking clauses
    /// say SKIP LOCKED or NOWAIT: a SELECT from it that locks each row it comes to, within the
    /// limits of the query.
    ///
    /// # Errors
    /// 0A000 where rows have no key by which they could be locked, and within a routine.
    pub(super) fn lock_rows(&mut self, mut bound: BoundQuery, query: &Query) -> Result<BoundQuery> {
        let position = position_of(query);
        let mut clauses = Vec::new();
        let Body::Select(select) = &mut bound.body else {
            return Err(unsupported(
                "NOWAIT and SKIP LOCKED of this query",
                position,
            ));
        };
        if select.grouping.is_some() || !select.row_functions.is_empty() {
            return Err(unsupported(
                "NOWAIT and SKIP LOCKED with aggregates and functions that give rows",
                position,
            ));
        }
        for lock in &query.locks {
            if let Some(nonblock) = lock.nonblock {
                clauses.push(Clause {
                    sources: self.locked_sources(select, lock, position)?,
                    is_shared: lock.lock_type == LockType::Share,
                    no_wait: nonblock == NonBlock::Nowait,
                });
            }
        }
        let width = select.outputs.len();
        let mut calls = Vec::new();
        for clause in &clauses {
            for source in &clause.sources {
                let first = select.outputs.len();
                let (call, key) = self.row_lock(select, *source, clause, position)?;
                select.outputs.extend(key);
                calls.push((call, first..select.outputs.len()));
            }
        }
        let hidden = select.outputs[width..].iter().map(|key| ColumnMeta {
            name: String::new(),
            data_type: key.data_type.clone(),
            origin: None,
        });
        let columns = bound.columns.clone();
        bound.columns.extend(hidden);
        let (with, limit, offset) = (
            std::mem::take(&mut bound.with),
            bound.limit.take(),
            bound.offset.take(),
        );
        let session = self.ask_session(SessionValue::RowLocks, "SKIP LOCKED", position)?;
        let mut locked = self.select_from(bound)?;
        for (call, key) in calls {
            let mut operands = vec![session.clone()];
            operands.extend(locked.outputs[key].iter().cloned());
            let kind = Kind::Operation(Operation::LockRow(call), operands);
            locked
                .filters
                .push(Bound::new(kind, DataType::Boolean, position));
        }
        locked.outputs.truncate(width);
        Ok(BoundQuery {
            with,
            body: Body::Select(Box::new(locked)),
            columns,
            order: Vec::new(),
            limit,
            offset,
        })
    }

    /// The tables that a locking clause is about.
    fn locked_sources(
        &self,
        select: &Select,
        lock: &LockClause,
        position: Position,
    ) -> Result<Vec<SourceId>> {
        let of = name_of_locked(lock);
        let is_meant = |item: &&FromItem| match &of {
            Some(name) => self.source(item.source).name == *name,
            None => true,
        };
        let mut sources = Vec::new();
        for item in select.items.iter().filter(is_meant) {
            match &item.kind {
                ItemKind::Table(_) => sources.push(item.source),
                ItemKind::Derived(_) | ItemKind::Full(_) => {
                    return Err(unsupported(
                        "NOWAIT and SKIP LOCKED of a subquery",
                        position,
                    ));
                }
                // Their rows are no table's.
                _ if of.is_none() => {}
                _ => {
                    return Err(unsupported(
                        "NOWAIT and SKIP LOCKED of this relation",
                        position,
                    ));
                }
            }
        }
        match sources.is_empty() && of.is_some() {
            true => Err(unsupported(
                "NOWAIT and SKIP LOCKED of this relation",
                position,
            )),
            false => Ok(sources),
        }
    }

    /// What locks a row of a table, and the texts of its key.
    fn row_lock(
        &self,
        select: &Select,
        source: SourceId,
        clause: &Clause,
        position: Position,
    ) -> Result<(LockRow, Vec<Bound>)> {
        let mut items = select.items.iter();
        let item = items.find(|item| item.source == source);
        let Some(ItemKind::Table(table)) = item.map(|item| &item.kind) else {
            return Err(Error::internal("a locked table is not in FROM"));
        };
        let columns = &table.schema().primary_key;
        if columns.is_empty() {
            let what = "NOWAIT and SKIP LOCKED of a table without a primary key";
            return Err(unsupported(what, position));
        }
        let key = columns.iter().map(|column| {
            let data_type = table.schema().columns[column.0 as usize].data_type.clone();
            let kind = Kind::Column {
                source,
                column: column.0,
            };
            to_output_text(Bound::new(kind, data_type, position))
        });
        let call = LockRow {
            // Sessions number their temporary tables for themselves.
            table: match table.id().is_durable() {
                true => self.catalog.table_oid(&table.schema().name),
                false => table.id().0,
            },
            source,
            is_shared: clause.is_shared,
            no_wait: clause.no_wait,
        };
        Ok((call, key.collect::<Result<_>>()?))
    }

    /// Emits the lock of a row.
    pub(super) fn emit_row_lock(
        &mut self,
        lock: LockRow,
        operands: &[Bound],
        target: Option<Reg>,
    ) -> Result<Reg> {
        let mut arguments = Vec::with_capacity(operands.len());
        for operand in operands {
            arguments.push(self.emit(operand)?);
        }
        let function = RowLock {
            locks: self.current_catalog()?.row_locks().clone(),
            table: lock.table,
            name: self.source(lock.source).name.clone(),
            is_shared: lock.is_shared,
            no_wait: lock.no_wait,
        };
        let target = target.unwrap_or_else(|| self.builder.register(DataType::Boolean));
        self.builder.scalar(Instruction::Consult {
            function: Arc::new(function),
            target,
            arguments: arguments.into(),
        });
        Ok(target)
    }
}
