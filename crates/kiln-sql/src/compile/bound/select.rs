//! Bound SELECTs, and walks over them.

use kiln_platform::sync::Arc;
use kiln_storage::sequence::Sequence;
use kiln_storage::table::Table;
use kiln_storage::types::Value;

use super::{
    AggregateCall, Bound, BoundQuery, Kind, OrderKey, RowFunction, RowFunctions, SourceId,
    WithReference, rewrite_in_place,
};
use crate::catalog::Relation;

/// A bound SELECT.
#[derive(Clone, Debug, Default)]
pub(crate) struct Select {
    pub items: Vec<FromItem>,
    /// The conjuncts of WHERE and of the inner joins' ON.
    pub filters: Vec<Bound>,
    pub outputs: Vec<Bound>,
    /// Which outputs are literals without a type of their own.
    pub open_outputs: Vec<usize>,
    pub distinct: bool,
    /// The expressions of DISTINCT ON.
    pub distinct_on: Vec<Bound>,
    /// Functions in the output that give rows, and the sources whose columns are their values.
    pub row_functions: Vec<(SourceId, RowFunctions)>,
    pub grouping: Option<Grouping>,
}

/// What the output of a SELECT asks for besides expressions.
#[derive(Debug, Default)]
pub(in super::super) struct Output {
    pub row_functions: Vec<(SourceId, RowFunctions)>,
    /// What cannot call a function that gives rows, where that is bound.
    pub refuses_rows: Option<&'static str>,
}

/// GROUP BY, or aggregates without it.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    /// Each key over the rows, and the slot by which outputs name it.
    pub keys: Vec<(Bound, usize)>,
    /// Each aggregate and its slot.
    pub aggregates: Vec<(AggregateCall, usize)>,
    pub having: Option<Bound>,
}

/// One source of rows in FROM.
#[derive(Clone, Debug)]
pub(crate) struct FromItem {
    pub source: SourceId,
    pub kind: ItemKind,
    /// The conjuncts of ON when this is the right side of a LEFT JOIN.
    pub left: Option<Vec<Bound>>,
}

#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    Table(Arc<Table>),
    Derived(Box<BoundQuery>),
    /// A query of WITH.
    With(WithReference),
    /// A relation of the system; what the session tells it, if it asks for something.
    Catalog(&'static Relation, Option<Bound>),
    /// A sequence as a relation.
    Sequence(Arc<Sequence>),
    /// `a FULL JOIN b`.
    Full(Box<FullJoin>),
    /// Calls of functions.
    Functions(Box<RowFunctions>),
}

impl ItemKind {
    /// Whether it gives at most one row by its form alone.
    pub(in super::super) fn gives_one_row(&self) -> bool {
        match self {
            ItemKind::Derived(query) => query.gives_one_row(),
            ItemKind::Sequence(_) => true,
            ItemKind::With(reference) => reference.gives_one_row,
            _ => false,
        }
    }

    /// The expressions that are its own, apart from those of queries.
    pub(in super::super) fn expressions(&self) -> Vec<&Bound> {
        match self {
            ItemKind::Table(_)
            | ItemKind::With(_)
            | ItemKind::Derived(_)
            | ItemKind::Catalog(..)
            | ItemKind::Sequence(_) => Vec::new(),
            ItemKind::Full(join) => join.expressions().collect(),
            ItemKind::Functions(calls) => {
                let parts = calls.parts.iter();
                parts.flat_map(RowFunction::expressions).collect()
            }
        }
    }

    /// Calls `f` for every expression node.
    pub(in super::super) fn visit(&self, f: &mut dyn FnMut(&Bound)) {
        match self {
            ItemKind::Derived(query) => query.visit(f),
            ItemKind::Full(join) => join.sides.iter().for_each(|(_, kind)| kind.visit(f)),
            _ => {}
        }
        self.expressions()
            .into_iter()
            .for_each(|bound| bound.visit(f));
    }

    fn rewrite(&mut self, replace: &mut dyn FnMut(&Bound) -> Option<Bound>) {
        let mut each = |bounds: &mut dyn Iterator<Item = &mut Bound>| {
            bounds.for_each(|bound| rewrite_in_place(bound, replace));
        };
        match self {
            ItemKind::Table(_)
            | ItemKind::With(_)
            | ItemKind::Catalog(..)
            | ItemKind::Sequence(_) => {}
            ItemKind::Derived(query) => query.rewrite(replace),
            ItemKind::Full(join) => {
                each(&mut join.expressions_mut());
                join.kinds_mut().for_each(|kind| kind.rewrite(replace));
            }
            ItemKind::Functions(calls) => {
                let parts = calls.parts.iter_mut();
                each(&mut parts.flat_map(RowFunction::expressions_mut));
            }
        }
    }

    /// Whether a function in it is volatile.
    pub(in super::super) fn calls_volatile(&self) -> bool {
        matches!(self, ItemKind::Functions(calls)
            if calls.parts.iter().any(RowFunction::calls_volatile))
    }

    /// Calls `f` for it and for what it is made of.
    pub(in super::super) fn visit_from(&self, f: &mut dyn FnMut(&ItemKind)) {
        f(self);
        match self {
            ItemKind::Derived(query) => query.visit_from(f),
            ItemKind::Full(join) => join.sides.iter().for_each(|(_, kind)| kind.visit_from(f)),
            _ => {}
        }
    }

    /// The columns of other sources that its rows depend on; those of its own queries too.
    pub(in super::super) fn columns(&self) -> Vec<(SourceId, u16)> {
        let mut columns = Vec::new();
        self.visit(&mut |bound| {
            if let Kind::Column { source, column } = bound.kind {
                columns.push((source, column));
            }
        });
        columns
    }
}

impl Select {
    pub(in super::super) fn has_aggregates(&self) -> bool {
        let grouping = self.grouping.as_ref();
        grouping.is_some_and(|grouping| !grouping.aggregates.is_empty())
    }

    /// A SELECT of `outputs` from one source.
    pub(in super::super) fn over(source: SourceId, kind: ItemKind, outputs: Vec<Bound>) -> Select {
        Select {
            items: vec![FromItem {
                source,
                kind,
                left: None,
            }],
            outputs,
            ..Select::default()
        }
    }

    fn function_expressions(&self) -> impl Iterator<Item = &Bound> {
        let calls = self
            .row_functions
            .iter()
            .flat_map(|(_, calls)| &calls.parts);
        calls.flat_map(RowFunction::expressions)
    }

    /// What is computed after the rows and their groups are there; `order` are the keys of the
    /// sort.
    pub(in super::super) fn output_expressions<'b>(
        &'b self,
        order: &'b [OrderKey],
    ) -> Vec<&'b Bound> {
        let outputs = self.outputs.iter().chain(&self.distinct_on);
        let all = outputs.chain(order.iter().map(|key| &key.bound));
        all.chain(self.function_expressions()).collect()
    }

    /// As [`Select::output_expressions`].
    pub(in super::super) fn output_expressions_mut<'b>(
        &'b mut self,
        order: &'b mut [OrderKey],
    ) -> Vec<&'b mut Bound> {
        let outputs = self.outputs.iter_mut().chain(&mut self.distinct_on);
        let all = outputs.chain(order.iter_mut().map(|key| &mut key.bound));
        let calls = self.row_functions.iter_mut();
        let calls = calls.flat_map(|(_, calls)| &mut calls.parts);
        all.chain(calls.flat_map(RowFunction::expressions_mut))
            .collect()
    }

    /// The expressions over the rows of FROM, apart from those of the items.
    pub(in super::super) fn row_expressions(&self) -> Vec<&Bound> {
        let mut all: Vec<&Bound> = Vec::new();
        match &self.grouping {
            None => {
                all.extend(&self.outputs);
                all.extend(self.function_expressions());
            }
            Some(grouping) => {
                all.extend(grouping.keys.iter().map(|(key, _)| key));
                for (call, _) in &grouping.aggregates {
                    all.extend(call.operands());
                }
            }
        }
        all
    }

    pub(in super::super) fn visit(&self, f: &mut dyn FnMut(&Bound)) {
        for item in &self.items {
            item.kind.visit(f);
            item.left.iter().flatten().for_each(|bound| bound.visit(f));
        }
        self.filters
            .iter()
            .chain(self.output_expressions(&[]))
            .for_each(|bound| bound.visit(f));
        if let Some(grouping) = &self.grouping {
            grouping.keys.iter().for_each(|(key, _)| key.visit(f));
            for (call, _) in &grouping.aggregates {
                call.operands().into_iter().for_each(|bound| bound.visit(f));
            }
            grouping.having.iter().for_each(|bound| bound.visit(f));
        }
    }

    pub(in super::super) fn rewrite(&mut self, replace: &mut dyn FnMut(&Bound) -> Option<Bound>) {
        for item in &mut self.items {
            item.kind.rewrite(replace);
            for bound in item.left.iter_mut().flatten() {
                rewrite_in_place(bound, replace);
            }
        }
        for bound in &mut self.filters {
            rewrite_in_place(bound, replace);
        }
        for bound in self.output_expressions_mut(&mut []) {
            rewrite_in_place(bound, replace);
        }
        if let Some(grouping) = &mut self.grouping {
            for (key, _) in &mut grouping.keys {
                rewrite_in_place(key, replace);
            }
            for (call, _) in &mut grouping.aggregates {
                for bound in call.operands_mut() {
                    rewrite_in_place(bound, replace);
                }
            }
            if let Some(having) = &mut grouping.having {
                rewrite_in_place(having, replace);
            }
        }
    }
}

/// The operands of the ANDs at the top of a condition.
pub(in super::super) fn conjuncts(bound: Bound, into: &mut Vec<Bound>) {
    match bound.kind {
        // What several conjuncts share is computed once only while they stay together.
        Kind::And(ref operands) if operands.iter().any(shares_volatile) => into.push(bound),
        Kind::And(operands) => operands
            .into_iter()
            .for_each(|operand| conjuncts(operand, into)),
        Kind::Constant(Value::Boolean(true)) => {}
        _ => into.push(bound),
    }
}

/// Whether a part of it that is volatile is computed once for several uses.
fn shares_volatile(bound: &Bound) -> bool {
    bound.any(|node| matches!(&node.kind, Kind::Shared(_, inner) if inner.is_volatile()))
}

/// A FULL JOIN of two sources.
#[derive(Clone, Debug)]
pub(crate) struct FullJoin {
    /// The sources and where their rows come from.
    pub sides: [(SourceId, ItemKind); 2],
    pub on: Vec<Bound>,
    /// What a row of the join has, over the columns of both sides.
    pub outputs: Vec<Bound>,
}

impl FullJoin {
    pub(in super::super) fn expressions(&self) -> impl Iterator<Item = &Bound> {
        self.on.iter().chain(&self.outputs)
    }

    pub(in super::super) fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.on.iter_mut().chain(&mut self.outputs)
    }

    pub(in super::super) fn kinds_mut(&mut self) -> impl Iterator<Item = &mut ItemKind> {
        self.sides.iter_mut().map(|(_, kind)| kind)
    }
}
