//! Bound queries: what the compiler knows of a query before it emits it.

use std::borrow::Cow;

use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::types::{DataType, Value};

use super::{Bound, ItemKind, Select, SourceId, Windowed};

/// A bound query.
#[derive(Clone, Debug)]
pub(crate) struct BoundQuery {
    /// The queries of its WITH.
    pub with: Vec<WithQuery>,
    pub body: Body,
    pub columns: Vec<ColumnMeta>,
    pub order: Vec<OrderKey>,
    pub limit: Option<Bound>,
    pub offset: Option<Bound>,
}

/// Where a query's rows come from.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Bound>>),
    /// UNION, INTERSECT or EXCEPT; `all` says that equal rows are kept.
    Set {
        operation: SetOperation,
        left: Box<BoundQuery>,
        right: Box<BoundQuery>,
        all: bool,
    },
    /// Rows with the results of window functions.
    Windowed(Box<Windowed>),
    /// WITH RECURSIVE.
    Recursive(Box<Recursive>),
}

impl Body {
    /// The queries that it is made of, apart from those of a SELECT.
    pub(in super::super) fn queries(&self) -> Vec<&BoundQuery> {
        match self {
            Body::Select(_) | Body::Values(_) => Vec::new(),
            Body::Set { left, right, .. } => vec![left, right],
            Body::Windowed(windowed) => vec![&windowed.input],
            Body::Recursive(recursive) => vec![&recursive.first, &recursive.next],
        }
    }

    fn queries_mut(&mut self) -> Vec<&mut BoundQuery> {
        match self {
            Body::Select(_) | Body::Values(_) => Vec::new(),
            Body::Set { left, right, .. } => vec![left, right],
            Body::Windowed(windowed) => vec![&mut windowed.input],
            Body::Recursive(recursive) => vec![&mut recursive.first, &mut recursive.next],
        }
    }
}

/// A key of ORDER BY.
#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    /// An expression over the rows of a SELECT, or [`Kind::Slot`] of an output column, counted
    /// from 0, for the other bodies.
    pub bound: Bound,
    pub descending: bool,
    pub nulls_first: bool,
}

impl BoundQuery {
    /// The query of a SELECT alone, whose columns have no names yet.
    pub(in super::super) fn of(select: Select) -> BoundQuery {
        BoundQuery {
            with: Vec::new(),
            body: Body::Select(Box::new(select)),
            columns: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
        }
    }

    /// Calls `f` for every expression node.
    pub(in super::super) fn visit(&self, f: &mut dyn FnMut(&Bound)) {
        self.with.iter().for_each(|with| with.query.visit(f));
        match &self.body {
            Body::Select(select) => select.visit(f),
            Body::Values(rows) => rows.iter().flatten().for_each(|bound| bound.visit(f)),
            body => {
                body.queries().into_iter().for_each(|query| query.visit(f));
                if let Body::Windowed(windowed) = body {
                    let offsets = windowed.offsets.iter();
                    offsets.for_each(|offset| offset.value.visit(f));
                }
            }
        }
        self.order.iter().for_each(|key| key.bound.visit(f));
        self.limit
            .iter()
            .chain(&self.offset)
            .for_each(|bound| bound.visit(f));
    }

    /// Rewrites every expression; see [`Bound::rewrite`].
    pub(in super::super) fn rewrite(&mut self, replace: &mut dyn FnMut(&Bound) -> Option<Bound>) {
        for with in &mut self.with {
            with.query.rewrite(replace);
        }
        match &mut self.body {
            Body::Select(select) => select.rewrite(replace),
            Body::Values(rows) => {
                for bound in rows.iter_mut().flatten() {
                    rewrite_in_place(bound, replace);
                }
            }
            body => {
                for query in body.queries_mut() {
                    query.rewrite(replace);
                }
                if let Body::Windowed(windowed) = body {
                    for offset in &mut windowed.offsets {
                        rewrite_in_place(&mut offset.value, replace);
                    }
                }
            }
        }
        for key in &mut self.order {
            rewrite_in_place(&mut key.bound, replace);
        }
        for bound in self.limit.iter_mut().chain(&mut self.offset) {
            rewrite_in_place(bound, replace);
        }
    }

    /// Calls `f` for the sources of its FROM, of its parts and of subqueries in FROM.
    pub(in super::super) fn visit_from(&self, f: &mut dyn FnMut(&ItemKind)) {
        self.with.iter().for_each(|with| with.query.visit_from(f));
        match &self.body {
            Body::Select(select) => {
                for item in &select.items {
                    item.kind.visit_from(f);
                }
            }
            Body::Values(_) => {}
            body => body
                .queries()
                .into_iter()
                .for_each(|query| query.visit_from(f)),
        }
    }

    /// Calls `f` for each query of WITH that is named in FROM.
    pub(in super::super) fn visit_own_references(&self, f: &mut dyn FnMut(WithReference)) {
        self.visit_from(&mut |kind| {
            if let ItemKind::With(reference) = kind {
                f(*reference);
            }
        });
    }

    /// Whether a recursion is in it.
    pub(in super::super) fn has_recursion(&self) -> bool {
        let mut found = matches!(self.body, Body::Recursive(_));
        let with = self.with.iter().map(|with| &with.query);
        let mut parts = with.chain(self.body.queries());
        found |= parts.any(BoundQuery::has_recursion);
        self.visit_from(&mut |kind| {
            found |= matches!(kind, ItemKind::Derived(query) if query.has_recursion());
        });
        found
    }

    /// Whether a volatile function is called in FROM.
    pub(in super::super) fn calls_volatile_in_from(&self) -> bool {
        let mut found = false;
        self.visit_from(&mut |kind| {
            found |= kind.calls_volatile();
        });
        found
    }

    /// Whether it gives at most one row by its form alone.
    pub(in super::super) fn gives_one_row(&self) -> bool {
        let limited = self.limit.as_ref().and_then(Bound::as_constant);
        if matches!(limited, Some(Value::BigInt(0 | 1))) {
            return true;
        }
        match &self.body {
            Body::Select(select) => match &select.grouping {
                _ if !select.row_functions.is_empty() => false,
                Some(grouping) => grouping.keys.is_empty(),
                None => select.items.is_empty(),
            },
            Body::Values(rows) => rows.len() < 2,
            Body::Windowed(windowed) => windowed.input.gives_one_row(),
            Body::Set { .. } | Body::Recursive(_) => false,
        }
    }

    /// The query without those columns that nothing looks at, and which columns it has then.
    pub(in super::super) fn with_columns(&self, used: &[u16]) -> (Cow<'_, BoundQuery>, Vec<u16>) {
        let all = 0..self.columns.len() as u16;
        let Body::Select(select) = &self.body else {
            return (Cow::Borrowed(self), all.collect());
        };
        let is_kept = |column: &u16| {
            select.distinct
                || !select.distinct_on.is_empty()
                || used.contains(column)
                || select.outputs[usize::from(*column)].is_volatile()
        };
        let kept: Vec<u16> = all.filter(is_kept).collect();
        if kept.len() == self.columns.len() {
            return (Cow::Borrowed(self), kept);
        }
        let mut query = self.clone();
        let at = |column: &u16| usize::from(*column);
        query.columns = kept
            .iter()
            .map(|one| self.columns[at(one)].clone())
            .collect();
        if let Body::Select(fewer) = &mut query.body {
            fewer.outputs = kept
                .iter()
                .map(|one| select.outputs[at(one)].clone())
                .collect();
            fewer.open_outputs.clear();
        }
        (Cow::Owned(query), kept)
    }

    /// Its own row sources.
    pub(in super::super) fn sources(&self) -> Vec<SourceId> {
        match &self.body {
            Body::Select(select) => select.items.iter().map(|item| item.source).collect(),
            _ => Vec::new(),
        }
    }
}

/// [`Bound::rewrite`] on a mutable reference.
pub(in super::super) fn rewrite_in_place(
    bound: &mut Bound,
    replace: &mut dyn FnMut(&Bound) -> Option<Bound>,
) {
    let taken = std::mem::replace(bound, Bound::boolean(true));
    *bound = taken.rewrite(replace);
}

/// A column of a query's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Its name, as PostgreSQL names it.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The column of a table that it is, where it is one as it stands.
    pub origin: Option<ColumnOrigin>,
}

/// The column of a table that a result column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOrigin {
    /// The table.
    pub table: TableId,
    /// The number of the table in `pg_class`.
    pub table_oid: u32,
    /// Its column.
    pub column: ColumnId,
    /// Whether it is never NULL in the result.
    pub not_null: bool,
}

/// A query that names itself.
#[derive(Clone, Debug)]
pub(crate) struct Recursive {
    /// By which it is named.
    pub number: usize,
    pub first: BoundQuery,
    pub next: BoundQuery,
    /// Whether rows that are there already come again.
    pub all: bool,
}

/// What becomes of the rows of two queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOperation {
    /// Those of both.
    Union,
    /// Those that are in both.
    Intersect,
    /// Those of the first that are not in the second.
    Except,
}

impl SetOperation {
    /// Its keyword.
    pub fn name(self) -> &'static str {
        match self {
            SetOperation::Union => "UNION",
            SetOperation::Intersect => "INTERSECT",
            SetOperation::Except => "EXCEPT",
        }
    }
}

/// A query of WITH, kept with the query that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct WithQuery {
    pub number: usize,
    pub query: BoundQuery,
    /// Whether its rows are computed once and kept.
    pub is_kept: bool,
}

/// A query of WITH in FROM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithReference {
    /// By which its definition is found.
    pub number: usize,
    /// Whether it gives one row at most.
    pub gives_one_row: bool,
    /// Whether it gives the same whatever rows are around it.
    pub is_independent: bool,
    pub is_recursive: bool,
    /// Whether it is a change without RETURNING.
    pub lacks_rows: bool,
}

impl WithReference {
    pub(in super::super) fn is_number(self, number: usize) -> bool {
        self.number == number
    }

    /// Whether it is the round at hand of a recursion.
    pub(in super::super) fn is_recursive(self) -> bool {
        self.is_recursive
    }
}
