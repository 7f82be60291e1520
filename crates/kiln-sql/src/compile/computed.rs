//! Hidden columns on the planner's side: which expressions they hold, and which partial indexes
//! have all rows that a query wants.

use std::rc::Rc;

use kiln_platform::sync::Arc;
use kiln_storage::table::Table;

use super::Compiler;
use super::bound::{Bound, Kind, SourceId, conjuncts};
use super::implication::implies;

/// A hidden column of a source.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    column: u16,
    /// What it is computed from, over the source.
    value: Bound,
}

impl Compiler<'_> {
    /// Binds what the hidden columns of a table hold, over a source of its rows. What does not bind
    /// helps no plan.
    pub(super) fn note_computed(&mut self, source: SourceId, table: &Arc<Table>) {
        let hidden = table.schema().hidden_columns().collect();
        let Ok(values) = self.bind_generated(table, source, hidden) else {
            return;
        };
        let values = values.into_iter().map(|(column, value)| Computed {
            column: column.0,
            value,
        });
        let values: Rc<[Computed]> = values.collect();
        if !values.is_empty() {
            self.computed.push((source, values));
        }
    }

    fn computed_of(&self, source: SourceId) -> &[Computed] {
        let mut known = self.computed.iter();
        let found = known.find(|(of, _)| *of == source);
        found.map_or(&[], |(_, values)| values)
    }

    /// The column of a source that an expression is: one that was declared, or one that holds what
    /// the expression gives.
    pub(super) fn column_with(&self, source: SourceId, bound: &Bound) -> Option<u16> {
        match bound.kind {
            Kind::Column { source: of, column } => (of == source).then_some(column),
            _ => {
                let mut computed = self.computed_of(source).iter();
                computed
                    .find(|known| known.value == *bound)
                    .map(|known| known.column)
            }
        }
    }

    /// A condition over the hidden columns of a source, where it compares what they hold; `None`
    /// where the source has none.
    pub(super) fn over_computed(&self, source: SourceId, bound: &Bound) -> Option<Bound> {
        if self.computed_of(source).is_empty() {
            return None;
        }
        let named = |operand: &Bound| match self.column_with(source, operand) {
            Some(column) => Bound::new(
                Kind::Column { source, column },
                operand.data_type.clone(),
                operand.position,
            ),
            None => operand.clone(),
        };
        let kind = match &bound.kind {
            Kind::Operation(operation, operands) => {
                Kind::Operation(*operation, operands.iter().map(named).collect())
            }
            Kind::Or(operands) => {
                let operands = operands.iter();
                Kind::Or(
                    operands
                        .filter_map(|it| self.over_computed(source, it))
                        .collect(),
                )
            }
            _ => return Some(bound.clone()),
        };
        Some(Bound::new(kind, bound.data_type.clone(), bound.position))
    }

    /// The hidden columns that are TRUE in all rows that satisfy `filters`: of partial indexes that
    /// have these rows.
    pub(super) fn implied_predicates(
        &self,
        source: SourceId,
        table: &Table,
        filters: &[Bound],
    ) -> Vec<u16> {
        let indexes = table.indexes().iter().map(|index| index.definition());
        let predicates = indexes.filter_map(|index| index.predicate());
        let holds = |column: &u16| {
            let mut computed = self.computed_of(source).iter();
            let predicate = computed.find(|known| known.column == *column);
            predicate.is_some_and(|known| {
                condition_of(&known.value).is_some_and(|condition| implies(filters, condition))
            })
        };
        predicates.map(|column| column.0).filter(holds).collect()
    }
}

/// The predicate of a partial index, of which a hidden column holds `CASE WHEN predicate THEN true
/// END`.
fn condition_of(value: &Bound) -> Option<&Bound> {
    match &value.kind {
        Kind::Case { branches, .. } => branches.first().map(|(condition, _)| condition),
        Kind::Shared(_, inner) => condition_of(inner),
        _ => None,
    }
}

/// The parts of a condition of which each has to hold.
pub(super) fn split_conjuncts(condition: Option<Bound>) -> Vec<Bound> {
    let mut filters = Vec::new();
    if let Some(condition) = condition {
        conjuncts(condition, &mut filters);
    }
    filters
}
