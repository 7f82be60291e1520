//! WITH: queries that other parts of a statement name.
//!
//! Such a query is bound once, where it is written. As in PostgreSQL, one that is named once and is
//! not volatile stands for a subquery in FROM; any other is computed once, when its rows are first
//! asked for, and its rows are kept in a buffer for all that name it. A flag says whether they are
//! there; it is taken down where the query with the WITH begins, which may run several times in a
//! loop.

use std::rc::Rc;

use kiln_procedure::ir::{BufferId, Instruction, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{self, CteAsMaterialized, SetExpr};

use super::Compiler;
use super::bound::{Bound, Kind};
use super::from::rename;
use super::limit::Limits;
use super::query::{BoundQuery, ColumnMeta, QueryOptions};
use super::{fail, name_of, position_of_span, unsupported};

/// A name of WITH that is in scope.
#[derive(Clone, Debug)]
pub(super) struct WithName {
    name: String,
    columns: Vec<ColumnMeta>,
    reference: WithReference,
    /// How many times it was named.
    uses: usize,
}

/// A query of WITH in FROM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithReference {
    /// By which its definition is found.
    number: usize,
    /// Whether it gives one row at most.
    pub gives_one_row: bool,
    /// Whether it gives the same whatever rows are around it.
    is_independent: bool,
}

/// A query of WITH, kept with the query that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct WithQuery {
    number: usize,
    pub query: BoundQuery,
    /// Whether its rows are computed once and kept.
    is_kept: bool,
}

/// A query of WITH while what names it is emitted.
#[derive(Clone)]
pub(super) struct OpenWith {
    number: usize,
    query: Rc<BoundQuery>,
    /// Whether its rows are there, and where.
    kept: Option<(Reg, BufferId)>,
}

impl Compiler<'_> {
    /// Binds the queries of a WITH, which are in scope from then on.
    pub(super) fn bind_with(&mut self, with: &ast::With) -> Result<Vec<WithQuery>> {
        if with.recursive {
            let position = position_of_span(with.with_token.0.span);
            return Err(unsupported("WITH RECURSIVE", position));
        }
        let first = self.with_names.len();
        let mut queries = Vec::with_capacity(with.cte_tables.len());
        for cte in &with.cte_tables {
            let position = position_of_span(cte.alias.name.span);
            let name = name_of(&cte.alias.name);
            if cte.from.is_some() {
                return Err(unsupported("this form of WITH", position));
            }
            if changes_data(&cte.query.body) {
                return Err(unsupported("INSERT, UPDATE or DELETE in WITH", position));
            }
            let own = &self.with_names[first..];
            if own.iter().any(|known| known.name == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(fail(SqlState::DUPLICATE_ALIAS, message, position));
            }
            let (mut query, own_sources, own_slots) = self.bind_inner(&cte.query)?;
            let columns = cte.alias.columns.iter();
            let columns: Vec<String> = columns.map(|column| name_of(&column.name)).collect();
            rename(&mut query.columns, &columns, &name, position)?;
            let number = self.new_slot();
            self.with_names.push(WithName {
                name,
                columns: query.columns.clone(),
                reference: WithReference {
                    number,
                    gives_one_row: query.gives_one_row(),
                    is_independent: query.is_independent(&own_sources, &own_slots),
                },
                uses: 0,
            });
            queries.push(WithQuery {
                number,
                is_kept: query.is_volatile()
                    || cte.materialized == Some(CteAsMaterialized::Materialized),
                query,
            });
        }
        Ok(queries)
    }

    /// Ends the scope of the names behind the first `known`, those of `with` and `queries`; says
    /// which of the queries are needed and how each is computed.
    pub(super) fn end_with(
        &mut self,
        known: usize,
        with: &ast::With,
        mut queries: Vec<WithQuery>,
    ) -> Vec<WithQuery> {
        let names = self.with_names.split_off(known);
        for ((query, name), cte) in queries.iter_mut().zip(&names).zip(&with.cte_tables) {
            let is_open = cte.materialized == Some(CteAsMaterialized::NotMaterialized);
            query.is_kept |= name.uses > 1 && !is_open;
        }
        // What nothing names is never computed.
        let is_named = |query: &WithQuery| {
            let mut names = names.iter();
            names.any(|name| name.reference.number == query.number && name.uses > 0)
        };
        queries.retain(is_named);
        queries
    }

    /// Whether a query of WITH in scope has this name.
    pub(super) fn is_with_name(&self, name: &str) -> bool {
        self.with_names.iter().any(|known| known.name == name)
    }

    /// The query of WITH that `name` means, with its columns, if it means one.
    pub(super) fn with_query(&mut self, name: &str) -> Option<(WithReference, Vec<ColumnMeta>)> {
        let mut names = self.with_names.iter_mut().rev();
        let known = names.find(|known| known.name == name)?;
        known.uses += 1;
        Some((known.reference, known.columns.clone()))
    }

    /// Makes the queries of the WITH of `query` known to what is emitted next.
    pub(super) fn open_with(&mut self, query: &BoundQuery) {
        for with in &query.with {
            let kept = with.is_kept.then(|| {
                let done = self.builder.register(DataType::Boolean);
                let buffer = self.builder.buffer(with.query.columns.len());
                self.set_with_done(done, false);
                self.builder.push(Step::BufferClear { buffer });
                (done, buffer)
            });
            self.open_with.push(OpenWith {
                number: with.number,
                query: Rc::new(with.query.clone()),
                kept,
            });
        }
    }

    fn set_with_done(&mut self, target: Reg, done: bool) {
        let value = Value::Boolean(done);
        let source = self.builder.constant(DataType::Boolean, value);
        self.builder.scalar(Instruction::Move { target, source });
    }

    /// Emits the rows of a query of WITH.
    pub(super) fn emit_with(
        &mut self,
        reference: WithReference,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let mut open = self.open_with.iter().rev();
        let open = open.find(|open| open.number == reference.number).cloned();
        let Some(OpenWith { query, kept, .. }) = open else {
            return Err(Error::internal("a query of WITH is not at hand"));
        };
        let Some((done, buffer)) = kept else {
            return self.emit_query(&query, QueryOptions::default(), sink);
        };
        self.open();
        let computed = self.emit_query(&query, QueryOptions::default(), &mut |compiler, row| {
            let row = row.into();
            compiler.builder.push(Step::BufferPush { buffer, row });
            Ok(())
        });
        self.set_with_done(done, true);
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: done,
            then: Vec::new(),
            otherwise,
        });
        computed?;
        let types = query.columns.iter();
        let types: Vec<DataType> = types.map(|column| column.data_type.clone()).collect();
        self.emit_buffer_rows(buffer, &types, &Limits::default(), sink)
    }
}

impl BoundQuery {
    /// Whether something in it may give something else each time, or do something.
    pub(super) fn is_volatile(&self) -> bool {
        let mut is_volatile = false;
        self.visit(&mut |bound| is_volatile |= bound.is_volatile_call());
        is_volatile || self.calls_volatile_in_from()
    }

    /// Whether it gives the same whatever row it is computed for: it names nothing but its own
    /// sources and slots, and queries of WITH of which that holds.
    pub(super) fn is_independent(
        &self,
        own_sources: &std::ops::Range<u32>,
        own_slots: &std::ops::Range<usize>,
    ) -> bool {
        let mut independent = true;
        self.visit(&mut |bound| match bound.kind {
            Kind::Column { source, .. } => independent &= own_sources.contains(&source.0),
            Kind::Slot(slot) => independent &= own_slots.contains(&slot),
            Kind::Aggregate(_) => independent = false,
            _ => {}
        });
        self.visit_with_references(&mut |reference| {
            independent &= reference.is_independent || own_slots.contains(&reference.number);
        });
        independent
    }

    /// Calls `f` for each query of WITH that it names.
    fn visit_with_references(&self, f: &mut dyn FnMut(WithReference)) {
        self.visit_own_references(f);
        self.visit(&mut |bound: &Bound| {
            if let Kind::Subquery(subquery) = &bound.kind {
                subquery.query.visit_own_references(f);
            }
        });
    }
}

fn changes_data(body: &SetExpr) -> bool {
    matches!(
        body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}
