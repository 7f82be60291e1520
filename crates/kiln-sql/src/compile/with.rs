//! WITH: queries that other parts of a statement name.
//!
//! Such a query is bound once, where it is written. As in PostgreSQL, one that is named once and is
//! not volatile stands for a subquery in FROM; any other is computed once, when its rows are first
//! asked for, and its rows are kept in a buffer for all that name it. A flag says whether they are
//! there; it is taken down where the query with the WITH begins, which may run several times in a
//! loop.

use std::rc::Rc;

use kiln_procedure::ir::{BufferId, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{self, CteAsMaterialized, SetExpr};

use super::bound::{Bound, BoundQuery, ColumnMeta, Kind, WithQuery, WithReference};
use super::from::rename;
use super::limit::Limits;
use super::query::{OutputColumn, QueryOptions, changes};
use super::recursion::mentions;
use super::traversal::not_recursive;
use super::{Compiler, Position, fail, name_of, position_of_span, unsupported};
use crate::parse::Traversal;

/// A name of WITH that is in scope.
#[derive(Clone, Debug)]
pub(super) struct WithName {
    name: String,
    columns: Vec<ColumnMeta>,
    reference: WithReference,
    /// How many times it was named.
    uses: usize,
}

/// A query of WITH while what names it is emitted.
#[derive(Clone)]
pub(super) struct OpenWith {
    number: usize,
    rows: OpenRows,
}

/// Where the rows of a query of WITH come from.
#[derive(Clone)]
enum OpenRows {
    /// The query is computed where it is named.
    Query(Rc<BoundQuery>),
    /// The query is computed when its rows are first asked for: whether they are there, and where.
    Kept(Rc<BoundQuery>, Reg, BufferId),
    /// They are there.
    There(BufferId, Rc<[DataType]>),
}

impl Compiler<'_> {
    /// Binds the queries of a WITH, which are in scope from then on.
    pub(super) fn bind_with(&mut self, with: &ast::With) -> Result<Vec<WithQuery>> {
        let first = self.with_names.len();
        let mut queries = Vec::with_capacity(with.cte_tables.len());
        for cte in &with.cte_tables {
            let position = position_of_span(cte.alias.name.span);
            let name = name_of(&cte.alias.name);
            self.check_with_name(&name, first, position)?;
            if changes(&cte.query.body) {
                return Err(fail(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WITH clause containing a data-modifying statement must be at the top level",
                    position,
                ));
            }
            queries.push(self.bind_with_query(cte, &name, with.recursive, position)?);
        }
        Ok(queries)
    }

    /// Refuses a name that a WITH has already, whose names begin at `first`.
    fn check_with_name(&self, name: &str, first: usize, position: Position) -> Result<()> {
        let own = &self.with_names[first..];
        if own.iter().any(|known| known.name == name) {
            let message = format!("WITH query name \"{name}\" specified more than once");
            return Err(fail(SqlState::DUPLICATE_ALIAS, message, position));
        }
        Ok(())
    }

    /// Binds a query of WITH, which can be named from then on.
    fn bind_with_query(
        &mut self,
        cte: &ast::Cte,
        name: &str,
        recursive: bool,
        position: Position,
    ) -> Result<WithQuery> {
        if cte.from.is_some() {
            return Err(unsupported("this form of WITH", position));
        }
        let traversal = Traversal::of(&cte.query);
        let traversed = match &traversal {
            Some(_) if !recursive => return Err(not_recursive(position)),
            Some(traversal) => Some(self.traversed(cte, name, traversal, position)?),
            None => None,
        };
        let cte = traversed.as_ref().unwrap_or(cte);
        let (first_source, first_slot) = (self.sources.len(), self.next_slot + 1);
        let itself = match recursive {
            true => {
                let itself = self.bind_recursive(cte, name, position);
                itself.map_err(|error| invalid_recursion(error, cte, name, recursive))?
            }
            false => None,
        };
        if traversed.is_some() && itself.is_none() {
            return Err(not_recursive(position));
        }
        let mut query = match itself {
            Some(query) => query,
            None => {
                let query = self.bind_inner(&cte.query).map(|(query, ..)| query);
                query.map_err(|error| invalid_recursion(error, cte, name, recursive))?
            }
        };
        let own_sources = first_source as u32..self.sources.len() as u32;
        let own_slots = first_slot..self.next_slot + 1;
        let columns = cte.alias.columns.iter();
        let columns: Vec<String> = columns.map(|column| name_of(&column.name)).collect();
        rename(&mut query.columns, &columns, name, position)?;
        let number = self.new_slot();
        self.with_names.push(WithName {
            name: name.to_owned(),
            columns: query.columns.clone(),
            reference: WithReference {
                number,
                gives_one_row: query.gives_one_row(),
                is_independent: query.is_independent(&own_sources, &own_slots),
                is_recursive: false,
                lacks_rows: false,
            },
            uses: 0,
        });
        Ok(WithQuery {
            number,
            is_kept: query.is_volatile()
                || cte.materialized == Some(CteAsMaterialized::Materialized),
            query,
        })
    }

    /// Binds the queries of a WITH of which some change data, and opens them all: changes are made
    /// here, in the order in which they are written, and before what follows; queries are computed
    /// when their rows are first asked for. Both keep their rows.
    pub(super) fn open_changing_with(&mut self, with: &ast::With) -> Result<()> {
        let first = self.with_names.len();
        for cte in &with.cte_tables {
            let position = position_of_span(cte.alias.name.span);
            let name = name_of(&cte.alias.name);
            self.check_with_name(&name, first, position)?;
            if changes(&cte.query.body) {
                self.make_change(cte, &name, position)?;
                continue;
            }
            let mut query = self.bind_with_query(cte, &name, with.recursive, position)?;
            query.is_kept = true;
            self.open_with_query(&query);
        }
        Ok(())
    }

    /// Makes a change of WITH, whose RETURNING columns can be named from then on.
    fn make_change(&mut self, cte: &ast::Cte, name: &str, position: Position) -> Result<()> {
        if cte.query.with.is_some() {
            return Err(unsupported("WITH before a change within WITH", position));
        }
        if let SetExpr::Merge(_) = &*cte.query.body {
            return Err(unsupported("MERGE within WITH", position));
        }
        self.builder.open();
        let mut buffer = None;
        let mut keep = |compiler: &mut Self, row: &[OutputColumn]| {
            let kept = *buffer.get_or_insert_with(|| compiler.builder.buffer(row.len()));
            let row = row.iter().map(|column| column.register).collect();
            compiler
                .builder
                .push(Step::BufferPush { buffer: kept, row });
            Ok(())
        };
        let made = self.change_apart(&cte.query.body, position, &mut keep);
        let steps = self.builder.close();
        let mut columns = made?;
        let lacks_rows = columns.is_empty();
        let buffer = buffer.unwrap_or_else(|| self.builder.buffer(columns.len()));
        self.builder.push(Step::BufferClear { buffer });
        for step in steps {
            self.builder.push(step);
        }
        let names = cte.alias.columns.iter();
        let names: Vec<String> = names.map(|column| name_of(&column.name)).collect();
        rename(&mut columns, &names, name, position)?;
        let number = self.new_slot();
        let types = columns.iter().map(|column| column.data_type.clone());
        self.open_with.push(OpenWith {
            number,
            rows: OpenRows::There(buffer, types.collect()),
        });
        self.with_names.push(WithName {
            name: name.to_owned(),
            columns,
            reference: WithReference {
                number,
                gives_one_row: false,
                is_independent: true,
                is_recursive: false,
                lacks_rows,
            },
            uses: 0,
        });
        Ok(())
    }

    /// Names the rows of a recursion in its recursive term.
    pub(super) fn name_recursion(&mut self, name: &str, number: usize, columns: &[ColumnMeta]) {
        self.with_names.push(WithName {
            name: name.to_owned(),
            columns: columns.to_vec(),
            reference: WithReference {
                number,
                gives_one_row: false,
                is_independent: false,
                is_recursive: true,
                lacks_rows: false,
            },
            uses: 0,
        });
    }

    /// How often the name at this place of those in scope was used.
    pub(super) fn uses_since(&self, place: usize) -> usize {
        self.with_names.get(place).map_or(0, |name| name.uses)
    }

    /// Says where the rows are that a recursion has come to.
    pub(super) fn open_recursion(
        &mut self,
        number: usize,
        buffer: BufferId,
        types: Rc<[DataType]>,
    ) {
        self.open_with.push(OpenWith {
            number,
            rows: OpenRows::There(buffer, types),
        });
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
    ///
    /// # Errors
    /// 0A000 for a change without RETURNING.
    pub(super) fn with_query(
        &mut self,
        name: &str,
        position: Position,
    ) -> Result<Option<(WithReference, Vec<ColumnMeta>)>> {
        let mut names = self.with_names.iter_mut().rev();
        let Some(known) = names.find(|known| known.name == name) else {
            return Ok(None);
        };
        if known.reference.lacks_rows {
            return Err(fail(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("WITH query \"{name}\" does not have a RETURNING clause"),
                position,
            ));
        }
        known.uses += 1;
        Ok(Some((known.reference, known.columns.clone())))
    }

    /// Makes the queries of the WITH of `query` known to what is emitted next.
    pub(super) fn open_with(&mut self, query: &BoundQuery) {
        for with in &query.with {
            self.open_with_query(with);
        }
    }

    fn open_with_query(&mut self, with: &WithQuery) {
        let query = Rc::new(with.query.clone());
        let rows = match with.is_kept {
            false => OpenRows::Query(query),
            true => {
                let done = self.builder.register(DataType::Boolean);
                let buffer = self.builder.buffer(query.columns.len());
                self.set_truth(done, false);
                self.builder.push(Step::BufferClear { buffer });
                OpenRows::Kept(query, done, buffer)
            }
        };
        self.open_with.push(OpenWith {
            number: with.number,
            rows,
        });
    }

    /// Emits the rows of a query of WITH.
    pub(super) fn emit_with(
        &mut self,
        reference: WithReference,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let mut open = self.open_with.iter().rev();
        let open = open.find(|open| open.number == reference.number).cloned();
        let Some(OpenWith { rows, .. }) = open else {
            return Err(Error::internal("a query of WITH is not at hand"));
        };
        match rows {
            OpenRows::Query(query) => self.emit_query(&query, QueryOptions::default(), sink),
            OpenRows::There(buffer, types) => {
                self.emit_buffer_rows(buffer, &types, &Limits::default(), sink)
            }
            OpenRows::Kept(query, done, buffer) => {
                self.open();
                let options = QueryOptions::default();
                let computed = self.emit_query(&query, options, &mut |compiler, row| {
                    let row = row.into();
                    compiler.builder.push(Step::BufferPush { buffer, row });
                    Ok(())
                });
                self.set_truth(done, true);
                self.close_unless(done);
                computed?;
                let types = query.columns.iter();
                let types: Vec<DataType> = types.map(|column| column.data_type.clone()).collect();
                self.emit_buffer_rows(buffer, &types, &Limits::default(), sink)
            }
        }
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

/// The error of a query of WITH RECURSIVE that names itself in another form than the one there is.
fn invalid_recursion(error: Error, cte: &ast::Cte, name: &str, recursive: bool) -> Error {
    let names_itself = recursive
        && error.state() == SqlState::UNDEFINED_TABLE
        && error.message().contains(&format!("relation \"{name}\""))
        && mentions(&cte.query.to_string(), name);
    if !names_itself {
        return error;
    }
    let message = match &*cte.query.body {
        SetExpr::SetOperation { .. } => format!(
            "recursive reference to query \"{name}\" must not appear within its non-recursive term"
        ),
        _ => format!(
            "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] \
             recursive-term"
        ),
    };
    fail(
        SqlState::INVALID_RECURSION,
        message,
        position_of_span(cte.alias.name.span),
    )
}
