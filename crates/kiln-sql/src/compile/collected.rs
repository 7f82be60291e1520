//! Aggregates that are functions of all their values: these are collected as `array_agg` does, and
//! the function is asked when the group is complete.
//!
//! | aggregates | of |
//! |---|---|
//! | `percentile_cont`, `percentile_disc`, `mode`, with WITHIN GROUP | values in an order |

use kiln_procedure::ir::Class;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;

use super::bound::{AggregateKind, Bound};
use super::coerce::{CastContext, coerce};
use super::expression::Call;
use super::functions::statistics;
use super::{Compiler, Position, fail, functions, unsupported};

/// An aggregate over the order that WITHIN GROUP gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordered {
    PercentileCont,
    PercentileDisc,
    Mode,
}

impl Ordered {
    /// The aggregate of this name.
    pub(super) fn of(name: &str) -> Option<Ordered> {
        match name {
            "percentile_cont" => Some(Ordered::PercentileCont),
            "percentile_disc" => Some(Ordered::PercentileDisc),
            "mode" => Some(Ordered::Mode),
            _ => None,
        }
    }

    /// How many arguments it takes before WITHIN GROUP.
    pub(super) fn arguments(self) -> usize {
        usize::from(self != Ordered::Mode)
    }

    /// The value of a row, as it is collected.
    ///
    /// # Errors
    /// 42804 for one that is no number, of `percentile_cont`.
    pub(super) fn value(self, value: Bound) -> Result<Bound> {
        match self {
            Ordered::PercentileCont => coerce(value, &DataType::Double, CastContext::Implicit),
            _ if value.is_unknown() => coerce(value, &DataType::Text, CastContext::Implicit),
            _ => Ok(value),
        }
    }

    /// What the aggregate gives for the sorted array.
    ///
    /// # Errors
    /// 42883 for values that do not compare.
    pub(super) fn finish(
        self,
        collected: Bound,
        fraction: Option<Bound>,
        position: Position,
    ) -> Result<Bound> {
        let element = collected.data_type.element().unwrap_or(DataType::Text);
        let mut operands = vec![collected];
        if let Some(fraction) = fraction {
            operands.push(coerce(fraction, &DataType::Double, CastContext::Implicit)?);
        }
        let named = match (self, Class::of(&element)) {
            (Ordered::PercentileCont, _) => statistics::PERCENTILE_CONT,
            (Ordered::PercentileDisc, _) => statistics::PERCENTILE_DISC,
            (Ordered::Mode, Some(class)) => statistics::mode(class),
            (Ordered::Mode, None) => {
                let message = format!("could not identify an ordering operator for type {element}");
                return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position));
            }
        };
        Ok(functions::direct(named, operands, element, position))
    }
}

impl Compiler<'_> {
    /// The error of a call that no function answers; what stands behind WITHIN GROUP counts as
    /// further arguments.
    pub(super) fn no_such_call(&mut self, call: &Call<'_>) -> Error {
        let within = call.within.iter().map(|by| &by.expr);
        let mut types = Vec::new();
        for argument in call.arguments.iter().copied().chain(within) {
            match self.bind(argument) {
                Ok(bound) => types.push(bound.type_name()),
                Err(error) => return error,
            }
        }
        let message = format!(
            "function {}({}) does not exist",
            call.name,
            types.join(", ")
        );
        let hint = "No function matches the given name and argument types. You might need to add \
                    explicit type casts.";
        fail(SqlState::UNDEFINED_FUNCTION, message, call.position).with_hint(hint)
    }

    /// Binds a call of an aggregate over the order that WITHIN GROUP gives.
    ///
    /// # Errors
    /// 42883 without WITHIN GROUP, and for a wrong number of arguments.
    pub(super) fn bind_ordered(&mut self, ordered: Ordered, call: Call<'_>) -> Result<Bound> {
        let position = call.position;
        let [by] = call.within else {
            return Err(self.no_such_call(&call));
        };
        if call.arguments.len() != ordered.arguments() || call.distinct || call.is_star {
            return Err(self.no_such_call(&call));
        }
        let fraction = match call.arguments.first() {
            Some(fraction) => Some(self.bind(fraction)?),
            None => None,
        };
        if fraction
            .as_ref()
            .is_some_and(|it| it.data_type.element().is_some())
        {
            return Err(unsupported("an array of fractions", position));
        }
        let collecting = Call {
            arguments: vec![&by.expr],
            order: call.within,
            ..call
        };
        let array = self.bind_aggregate(AggregateKind::ArrayAgg, &collecting)?;
        ordered.finish(array, fraction, position)
    }
}
