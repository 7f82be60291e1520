//! Bound calls of aggregate functions.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;

use super::super::fail;
use super::{Bound, OrderKey};

/// What is asked of the deviation of values from their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deviation {
    /// Whether the values are a sample, and not all that there are.
    pub of_sample: bool,
    /// Whether the root is asked for.
    pub is_root: bool,
}

/// How bits are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    And,
    Or,
    Xor,
}

/// The aggregates of pairs of numbers.
const OF_PAIRS: [&str; 12] = [
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    BoolAnd,
    BoolOr,
    StringAgg,
    ArrayAgg,
    Deviation(Deviation),
    Bits(Bits),
    /// The aggregate of this name over pairs of numbers; the second of a pair is the delimiter.
    Pairs(&'static str),
}

impl AggregateKind {
    /// Whether a function of a user may have its name.
    pub(in super::super) fn is_statistic(self) -> bool {
        matches!(
            self,
            AggregateKind::Deviation(_) | AggregateKind::Bits(_) | AggregateKind::Pairs(_)
        )
    }

    /// Whether it has two arguments.
    pub(in super::super) fn takes_two(self) -> bool {
        matches!(self, AggregateKind::StringAgg | AggregateKind::Pairs(_))
    }

    /// The aggregate called `name`.
    pub(in super::super) fn of(name: &str) -> Option<AggregateKind> {
        let deviation =
            |of_sample, is_root| AggregateKind::Deviation(Deviation { of_sample, is_root });
        Some(match name {
            "count" => AggregateKind::Count,
            "sum" => AggregateKind::Sum,
            "avg" => AggregateKind::Average,
            "min" => AggregateKind::Minimum,
            "max" => AggregateKind::Maximum,
            "bool_and" | "every" => AggregateKind::BoolAnd,
            "bool_or" => AggregateKind::BoolOr,
            "string_agg" => AggregateKind::StringAgg,
            "array_agg" => AggregateKind::ArrayAgg,
            "stddev" | "stddev_samp" => deviation(true, true),
            "stddev_pop" => deviation(false, true),
            "variance" | "var_samp" => deviation(true, false),
            "var_pop" => deviation(false, false),
            "bit_and" => AggregateKind::Bits(Bits::And),
            "bit_or" => AggregateKind::Bits(Bits::Or),
            "bit_xor" => AggregateKind::Bits(Bits::Xor),
            _ => {
                let known = OF_PAIRS.into_iter().find(|known| *known == name);
                AggregateKind::Pairs(known?)
            }
        })
    }
}

/// A bound call of an aggregate.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    pub kind: AggregateKind,
    /// `None` for `count(*)`.
    pub argument: Option<Bound>,
    /// The delimiter of `string_agg`, or the second argument of an aggregate of pairs.
    pub delimiter: Option<Bound>,
    pub distinct: bool,
    pub filter: Option<Bound>,
    /// In which order it takes its values, where that matters.
    pub order: Vec<OrderKey>,
    pub data_type: DataType,
    /// The number of the query level whose rows it is over.
    pub level: usize,
}

impl AggregateCall {
    /// Whether what it accumulates over some rows of a group and over the others can be put
    /// together to what it accumulates over all, whichever rows come first. Sums of DOUBLE
    /// PRECISION depend on the order, and what is put one behind the other would be copied again
    /// and again.
    pub(in super::super) fn combines(&self) -> bool {
        match self.kind {
            AggregateKind::Sum | AggregateKind::Average => {
                !matches!(self.data_type, DataType::Double | DataType::REAL)
            }
            AggregateKind::Deviation(_) => self.data_type != DataType::Double,
            AggregateKind::StringAgg | AggregateKind::ArrayAgg | AggregateKind::Pairs(_) => false,
            _ => true,
        }
    }

    /// Whether both compute the same, volatile calls included if `by_form`.
    pub(in super::super) fn is_same(&self, other: &AggregateCall, by_form: bool) -> bool {
        let same = |one: &Option<Bound>, other: &Option<Bound>| match (one, other) {
            (Some(one), Some(other)) => one.is_same(other, by_form),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.kind == other.kind
            && self.distinct == other.distinct
            && self.data_type == other.data_type
            && same(&self.argument, &other.argument)
            && same(&self.delimiter, &other.delimiter)
            && same(&self.filter, &other.filter)
            && self.level == other.level
            && self.order.len() == other.order.len()
            && self.order.iter().zip(&other.order).all(|(one, other)| {
                one.bound.is_same(&other.bound, by_form)
                    && one.descending == other.descending
                    && one.nulls_first == other.nulls_first
            })
    }

    pub(in super::super) fn operands(&self) -> Vec<&Bound> {
        self.argument
            .iter()
            .chain(&self.delimiter)
            .chain(&self.filter)
            .chain(self.order.iter().map(|key| &key.bound))
            .collect()
    }

    pub(in super::super) fn operands_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.argument
            .iter_mut()
            .chain(&mut self.delimiter)
            .chain(&mut self.filter)
            .chain(self.order.iter_mut().map(|key| &mut key.bound))
    }

    /// The order of its values: that which is asked for, and with DISTINCT by the values
    /// themselves. It does not matter to aggregates that take their values in any order.
    ///
    /// # Errors
    /// 42P10 when DISTINCT leaves out what the order is by.
    pub(in super::super) fn set_order(&mut self, order: Vec<OrderKey>) -> Result<()> {
        let values = || self.argument.iter().chain(&self.delimiter);
        if self.distinct
            && let Some(stray) = order
                .iter()
                .find(|key| !values().any(|one| *one == key.bound))
        {
            return Err(fail(
                SqlState::INVALID_COLUMN_REFERENCE,
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                stray.bound.position,
            ));
        }
        if !matches!(
            self.kind,
            AggregateKind::StringAgg | AggregateKind::ArrayAgg
        ) {
            return Ok(());
        }
        let mut order = order;
        if self.distinct {
            for value in self.argument.iter().chain(&self.delimiter) {
                if value.as_constant().is_none() && !order.iter().any(|key| key.bound == *value) {
                    order.push(OrderKey {
                        bound: value.clone(),
                        descending: false,
                        nulls_first: false,
                    });
                }
            }
        }
        self.order = order;
        Ok(())
    }
}
