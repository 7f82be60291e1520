//! Aggregates that are functions of all their values: these are collected as `array_agg` does, and
//! the function is asked when the group is complete.
//!
//! | aggregates | of |
//! |---|---|
//! | `stddev`, `variance` and their kin | NUMERIC, DOUBLE PRECISION |
//! | `corr`, `covar_pop`, `regr_slope` and their kin | pairs of DOUBLE PRECISIONs |
//! | `bit_and`, `bit_or`, `bit_xor` | integers |
//! | `percentile_cont`, `percentile_disc`, `mode`, with WITHIN GROUP | values in an order |

use kiln_procedure::ir::Class;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;

use super::bound::{AggregateKind, Bound};
use super::coerce::{CastContext, coerce};
use super::expression::Call;
use super::functions::regression;
use super::functions::statistics::{self, Bits, Deviation};
use super::{Compiler, Position, fail, functions, unsupported};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collected {
    Deviation(Deviation),
    Bits(Bits),
}

/// An aggregate of pairs of numbers.
#[derive(Clone, Copy)]
pub(super) struct Paired {
    named: functions::Named,
    data_type: fn() -> DataType,
}

impl Paired {
    /// The aggregate of this name.
    pub(super) fn of(name: &str) -> Option<Paired> {
        if name == "regr_count" {
            return Some(Paired {
                named: regression::COUNT,
                data_type: || DataType::BigInt,
            });
        }
        let named = regression::aggregate(name)?;
        Some(Paired {
            named,
            data_type: || DataType::Double,
        })
    }
}

/// An aggregate over the order that WITHIN GROUP gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordered {
    PercentileCont,
    PercentileDisc,
    Mode,
}

impl Collected {
    /// The aggregate of this name.
    pub(super) fn of(name: &str) -> Option<Collected> {
        let deviation =
            |of_sample, is_root| Some(Collected::Deviation(Deviation { of_sample, is_root }));
        match name {
            "stddev" | "stddev_samp" => deviation(true, true),
            "stddev_pop" => deviation(false, true),
            "variance" | "var_samp" => deviation(true, false),
            "var_pop" => deviation(false, false),
            "bit_and" => Some(Collected::Bits(Bits::And)),
            "bit_or" => Some(Collected::Bits(Bits::Or)),
            "bit_xor" => Some(Collected::Bits(Bits::Xor)),
            _ => None,
        }
    }

    /// The only argument, as it is collected.
    ///
    /// # Errors
    /// 42883 for others, 42725 for a literal without a type.
    pub(super) fn argument(
        self,
        name: &str,
        mut arguments: Vec<Bound>,
        position: Position,
    ) -> Result<Bound> {
        let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
        let undefined = || {
            let message = format!("function {name}({}) does not exist", types.join(", "));
            let hint = "No function matches the given name and argument types. You might need to \
                        add explicit type casts.";
            fail(SqlState::UNDEFINED_FUNCTION, message, position).with_hint(hint)
        };
        let (Some(argument), true) = (arguments.pop(), arguments.is_empty()) else {
            return Err(undefined());
        };
        if argument.is_unknown() && matches!(self, Collected::Deviation(_)) {
            return coerce(argument, &DataType::Double, CastContext::Implicit);
        }
        if argument.is_unknown() {
            let message = format!("function {name}(unknown) is not unique");
            let hint = "Could not choose a best candidate function. You might need to add \
                        explicit type casts.";
            return Err(fail(SqlState::AMBIGUOUS_FUNCTION, message, position).with_hint(hint));
        }
        let wanted = match (self, argument.data_type.clone()) {
            (Collected::Deviation(_), DataType::Double | DataType::REAL) => DataType::Double,
            (Collected::Deviation(_), number) if number.is_number() => DataType::NUMERIC,
            (Collected::Bits(_), integer) if integer.is_integer() => return Ok(argument),
            _ => return Err(undefined()),
        };
        coerce(argument, &wanted, CastContext::Implicit)
    }

    /// What the aggregate gives for the array that was collected.
    pub(super) fn finish(self, collected: Bound, position: Position) -> Bound {
        let element = collected.data_type.element().unwrap_or(DataType::NUMERIC);
        let named = match self {
            Collected::Deviation(asked) => {
                statistics::deviation(asked, element == DataType::Double)
            }
            Collected::Bits(how) => statistics::bits(how),
        };
        functions::direct(named, vec![collected], element, position)
    }
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

    /// Binds a call of an aggregate of pairs, whose parts are collected each by itself.
    ///
    /// # Errors
    /// 42883 for arguments that are not two numbers.
    pub(super) fn bind_paired(&mut self, paired: Paired, call: Call<'_>) -> Result<Bound> {
        let position = call.position;
        let [dependent, independent] = call.arguments.as_slice() else {
            return Err(self.no_such_call(&call));
        };
        if call.distinct || call.is_star {
            return Err(unsupported("DISTINCT in an aggregate of pairs", position));
        }
        let mut arrays = Vec::with_capacity(2);
        for part in [dependent, independent] {
            let collecting = Call {
                name: "array_agg".to_owned(),
                arguments: vec![*part],
                ..call.clone()
            };
            let array = self.bind_aggregate(AggregateKind::ArrayAgg, &collecting)?;
            let is_number = |element: DataType| element.is_number();
            if !array.data_type.element().is_some_and(is_number) {
                return Err(self.no_such_call(&call));
            }
            let wanted = DataType::array(DataType::Double);
            arrays.push(coerce(array, &wanted, CastContext::Explicit)?);
        }
        let data_type = (paired.data_type)();
        Ok(functions::direct(paired.named, arrays, data_type, position))
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
