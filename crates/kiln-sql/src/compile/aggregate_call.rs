//! Calls of aggregates: which query their rows are of, and their clauses.

use kiln_storage::error::{Result, SqlState};

use super::aggregate::{self, Clauses};
use super::bound::{AggregateKind, Bound, Kind, OrderKey};
use super::collected::Ordered;
use super::expression::Call;
use super::json::Maker;
use super::order::order_key;
use super::scope::AggregatePolicy;
use super::{Compiler, fail, unsupported};

impl Compiler<'_> {
    /// Binds a call of an aggregate.
    pub(super) fn bind_aggregate(&mut self, kind: AggregateKind, call: &Call<'_>) -> Result<Bound> {
        let position = call.position;
        let name = &call.name;
        let Some(last) = self.levels.len().checked_sub(1) else {
            return Err(unsupported("an aggregate outside of a query", position));
        };
        let output = self.output.take();
        let policy = std::mem::replace(&mut self.levels[last].aggregates, AggregatePolicy::Inside);
        let parts = self.bind_aggregate_parts(call);
        self.levels[last].aggregates = policy;
        self.output = output;
        let (arguments, filter, order) = parts?;
        let expressions = || {
            let keys = order.iter().map(|key: &OrderKey| &key.bound);
            arguments.iter().chain(&filter).chain(keys)
        };
        let owner = self.owner_of(expressions()).unwrap_or(last);
        let number = self.levels[owner].number;
        let is_nested = expressions().any(|bound| {
            let is_inner = |node: &Bound| {
                matches!(&node.kind, Kind::Aggregate(inner) if inner.level == number)
            };
            bound.any(is_inner)
        });
        let refused = match self.levels[owner].aggregates {
            AggregatePolicy::Allowed if !is_nested => None,
            AggregatePolicy::Allowed | AggregatePolicy::Inside => {
                Some("aggregate function calls cannot be nested".to_owned())
            }
            AggregatePolicy::Refused(clause) => {
                Some(format!("aggregate functions are not allowed in {clause}"))
            }
        };
        if let Some(message) = refused {
            return Err(fail(SqlState::GROUPING_ERROR, message, position));
        }
        self.aggregated.insert(self.levels[owner].number);
        let clauses = Clauses {
            is_star: call.is_star,
            distinct: call.distinct,
            filter,
            order,
            level: self.levels[owner].number,
        };
        aggregate::call(kind, name, arguments, clauses, position)
    }

    /// The arguments of an aggregate, its filter and its order.
    fn bind_aggregate_parts(
        &mut self,
        call: &Call<'_>,
    ) -> Result<(Vec<Bound>, Option<Bound>, Vec<OrderKey>)> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        match Maker::of(&call.name) {
            Some(_) if call.distinct => {
                return Err(unsupported(
                    "DISTINCT in an aggregate that makes JSON",
                    call.position,
                ));
            }
            Some(maker) => {
                let (name, position) = (&call.name, call.position);
                arguments.push(self.bind_json_element(maker, name, &call.arguments, position)?);
            }
            None => {
                for argument in &call.arguments {
                    arguments.push(self.bind(argument)?);
                }
                let name = &call.name;
                if let Some(ordered) = Ordered::of(name).filter(|_| !call.within.is_empty()) {
                    let values = arguments.into_iter().map(|value| ordered.value(value));
                    arguments = values.collect::<Result<_>>()?;
                }
            }
        }
        let filter = match call.filter {
            Some(filter) => Some(self.bind_condition(filter, "FILTER")?),
            None => None,
        };
        let mut order = Vec::with_capacity(call.order.len());
        for item in call.order {
            let bound = self.bind_expected(&item.expr, None)?;
            if bound.as_constant().is_none() {
                order.push(order_key(bound, item.options.clone())?);
            }
        }
        Ok((arguments, filter, order))
    }

    /// The innermost level whose rows expressions name: an aggregate of them is over these,
    /// whichever query it stands in.
    fn owner_of<'b>(&self, expressions: impl Iterator<Item = &'b Bound>) -> Option<usize> {
        let sources = expressions.flat_map(Bound::sources);
        let level_of = |source| {
            let levels = &self.levels;
            levels
                .iter()
                .rposition(|level| self.has_source(level, source))
        };
        sources.filter_map(level_of).max()
    }
}
