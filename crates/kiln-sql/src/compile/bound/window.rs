//! Bound calls with OVER, and queries that add a column for each.

use kiln_procedure::ir::ScalarFunction;
use kiln_storage::types::DataType;
use sqlparser::ast::WindowFrameUnits;

use super::{AggregateCall, Bound, BoundQuery, OrderKey};
use crate::parse::Exclusion;

/// A call with OVER.
#[derive(Clone, Debug)]
pub(crate) struct WindowCall {
    pub function: WindowFunction,
    pub arguments: Vec<Bound>,
    pub window: Window,
    /// The number of the query level whose rows it is over.
    pub level: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Box<AggregateCall>),
}

/// The rows that a call looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    pub partition: Vec<Bound>,
    pub order: Vec<OrderKey>,
    pub frame: Frame,
}

/// The rows of a partition that belong to one of them.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub units: WindowFrameUnits,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclusion: Exclusion,
    /// What finds the ends that are at an offset, by the values in the order.
    pub in_range: Option<(&'static str, ScalarFunction)>,
}

#[derive(Clone, Debug)]
pub(crate) enum FrameBound {
    First,
    Preceding(Bound),
    Current,
    Following(Bound),
    Last,
}

impl Default for Frame {
    fn default() -> Frame {
        Frame {
            units: WindowFrameUnits::Range,
            start: FrameBound::First,
            end: FrameBound::Current,
            exclusion: Exclusion::Nothing,
            in_range: None,
        }
    }
}

impl Frame {
    /// Whether both are written alike.
    pub(in super::super) fn has_form_of(&self, other: &Frame) -> bool {
        let alike = |one: &FrameBound, other: &FrameBound| {
            let same_offset = match (one.offset(), other.offset()) {
                (Some(one), Some(other)) => one.has_form_of(other),
                _ => true,
            };
            one.rank() == other.rank() && same_offset
        };
        self.units == other.units
            && self.exclusion == other.exclusion
            && alike(&self.start, &other.start)
            && alike(&self.end, &other.end)
    }
}

impl FrameBound {
    pub(in super::super) fn offset(&self) -> Option<&Bound> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            _ => None,
        }
    }

    pub(in super::super) fn offset_mut(&mut self) -> Option<&mut Bound> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            _ => None,
        }
    }

    /// Its place among the kinds of bounds, from the first row on.
    pub(in super::super) fn rank(&self) -> u8 {
        match self {
            FrameBound::First => 0,
            FrameBound::Preceding(_) => 1,
            FrameBound::Current => 2,
            FrameBound::Following(_) => 3,
            FrameBound::Last => 4,
        }
    }
}

impl WindowFunction {
    /// The function called `name`, which only OVER makes sense of.
    pub(in super::super) fn of(name: &str) -> Option<WindowFunction> {
        Some(match name {
            "row_number" => WindowFunction::RowNumber,
            "rank" => WindowFunction::Rank,
            "dense_rank" => WindowFunction::DenseRank,
            "percent_rank" => WindowFunction::PercentRank,
            "cume_dist" => WindowFunction::CumeDist,
            "ntile" => WindowFunction::Ntile,
            "lag" => WindowFunction::Lag,
            "lead" => WindowFunction::Lead,
            "first_value" => WindowFunction::FirstValue,
            "last_value" => WindowFunction::LastValue,
            "nth_value" => WindowFunction::NthValue,
            _ => return None,
        })
    }
}

impl WindowCall {
    /// Whether both compute the same, volatile calls included if `by_form`.
    pub(in super::super) fn is_same(&self, other: &WindowCall, by_form: bool) -> bool {
        let same_function = match (&self.function, &other.function) {
            (WindowFunction::Aggregate(one), WindowFunction::Aggregate(other)) => {
                one.is_same(other, by_form)
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        let (one, two) = (&self.window, &other.window);
        let same_order = one.order.iter().zip(&two.order).all(|(one, other)| {
            one.descending == other.descending && one.nulls_first == other.nulls_first
        });
        let (mine, others) = (self.operands(), other.operands());
        same_function
            && self.level == other.level
            && one.partition.len() == two.partition.len()
            && one.order.len() == two.order.len()
            && same_order
            && one.frame.units == two.frame.units
            && one.frame.exclusion == two.frame.exclusion
            && one.frame.start.rank() == two.frame.start.rank()
            && one.frame.end.rank() == two.frame.end.rank()
            && mine.len() == others.len()
            && mine
                .iter()
                .zip(others)
                .all(|(one, other)| one.is_same(other, by_form))
    }

    pub(in super::super) fn operands(&self) -> Vec<&Bound> {
        let mut all: Vec<&Bound> = self.arguments.iter().collect();
        if let WindowFunction::Aggregate(call) = &self.function {
            all.extend(call.operands());
        }
        all.extend(&self.window.partition);
        all.extend(self.window.order.iter().map(|key| &key.bound));
        let Frame { start, end, .. } = &self.window.frame;
        all.extend(start.offset().into_iter().chain(end.offset()));
        all
    }

    pub(in super::super) fn operands_mut(&mut self) -> Vec<&mut Bound> {
        let mut all: Vec<&mut Bound> = self.arguments.iter_mut().collect();
        if let WindowFunction::Aggregate(call) = &mut self.function {
            all.extend(call.operands_mut());
        }
        all.extend(&mut self.window.partition);
        all.extend(self.window.order.iter_mut().map(|key| &mut key.bound));
        let Frame { start, end, .. } = &mut self.window.frame;
        all.extend(start.offset_mut().into_iter().chain(end.offset_mut()));
        all
    }
}

/// Rows with a column more for each call.
#[derive(Clone, Debug)]
pub(crate) struct Windowed {
    pub input: BoundQuery,
    /// Of all frames.
    pub offsets: Vec<Offset>,
    pub definitions: Vec<Definition>,
}

/// How far an end of frames is from the rows that they belong to. It is computed once, before the
/// rows are read.
#[derive(Clone, Debug)]
pub(crate) struct Offset {
    pub value: Bound,
    /// Whether it is that of the frames' end.
    pub ends: bool,
    /// Whether it is a number of rows or groups.
    pub counts: bool,
}

/// Calls over windows of one partition and order, with columns of the input by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub partition: Vec<usize>,
    /// With whether it is descending, and whether NULLs come first.
    pub order: Vec<(usize, bool, bool)>,
    pub calls: Vec<PlacedCall>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlacedCall {
    pub call: WindowCall,
    pub arguments: Vec<usize>,
    /// An aggregate's argument, its delimiter, and its filter.
    pub aggregated: [Option<usize>; 3],
    /// What an aggregate sorts its values by.
    pub sorted_by: Vec<usize>,
    /// Which of all offsets are those of the frame's start and end.
    pub offsets: [Option<usize>; 2],
    /// Which of all results it is.
    pub result: usize,
    pub data_type: DataType,
}
