//! Window functions: binding.
//!
//! A SELECT with window functions becomes two: the inner one gives the rows, with all that windows
//! and the output look at, and the outer one the output. Between them, [`Windowed`] adds a column
//! for each call; `windowed` emits that.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, NamedWindowDefinition,
    NamedWindowExpr, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::aggregate::{self, Clauses};
use super::bound::{
    AggregateKind, Body, Bound, BoundQuery, Definition, Frame, FrameBound, ItemKind, Kind, Offset,
    OrderKey, PlacedCall, Select, Window, WindowCall, WindowFunction, Windowed, rewrite_in_place,
};
use super::category::common_type;
use super::coerce::{CastContext, coerce};
use super::collected::Ordered;
use super::functions::in_range::in_range;
use super::json::Maker;
use super::leaves::{Leaves, plain_columns};
use super::order::order_key;
use super::scope::AggregatePolicy;
use crate::parse::Exclusion;

use super::{Compiler, Position, fail, functions, name_of, object_name, position_of, unsupported};

impl Compiler<'_> {
    /// Binds a call with OVER.
    pub(super) fn bind_window_call(&mut self, function: &Function) -> Result<Bound> {
        let position = position_of(function);
        let name = object_name(&function.name)?;
        let Some(output) = self.output.take() else {
            let policy = self.levels.last().map(|level| level.aggregates);
            let (state, message) = match policy {
                Some(AggregatePolicy::Inside) => (
                    SqlState::GROUPING_ERROR,
                    "aggregate function calls cannot contain window function calls",
                ),
                _ => (
                    SqlState::WINDOWING_ERROR,
                    "window functions are not allowed here",
                ),
            };
            return Err(fail(state, message, position));
        };
        let bound = self.bind_window_parts(function, &name, position);
        self.output = Some(output);
        bound
    }

    fn bind_window_parts(
        &mut self,
        function: &Function,
        name: &str,
        position: Position,
    ) -> Result<Bound> {
        let level = self.levels.last().map_or(0, |level| level.number);
        let refuse = |what: &str| Err(unsupported(what, position));
        let missing = |message: &str| {
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            Err(fail(state, message, position))
        };
        if function.null_treatment.is_some() {
            let message = "syntax error at or near \"NULLS\"";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
        let FunctionArguments::List(list) = &function.args else {
            return refuse("this form of a call");
        };
        if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            return missing("DISTINCT is not implemented for window functions");
        }
        if !list.clauses.is_empty() {
            return missing("aggregate ORDER BY is not implemented for window functions");
        }
        if Ordered::of(name).is_some() && !self.knows_routine(name) {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
        }
        let maker = Maker::of(name).filter(|maker| maker.is_aggregate());
        let mut arguments = Vec::with_capacity(list.args.len());
        let mut elements = Vec::new();
        let mut is_star = false;
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if maker.is_some() => {
                    elements.push(expr);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                    arguments.push(self.bind(expr)?);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => is_star = true,
                _ => return refuse("this argument"),
            }
        }
        if let Some(maker) = maker {
            arguments = vec![self.bind_json_element(maker, name, &elements, position)?];
        }
        let filter = match &function.filter {
            Some(filter) => Some(self.bind_condition(filter, "FILTER")?),
            None => None,
        };
        let window = match &function.over {
            Some(WindowType::NamedWindow(name)) => {
                let known = self.windows.len();
                let (spec, at) = self.named_window(&name_of(name), known, position)?;
                self.bind_window(&spec, at, position)?
            }
            Some(WindowType::WindowSpec(spec)) => {
                self.bind_window(spec, self.windows.len(), position)?
            }
            None => Window::default(),
        };
        let (function, arguments, data_type) = match WindowFunction::of(name) {
            Some(function) => {
                if filter.is_some() {
                    let what = "FILTER is not implemented for non-aggregate window functions";
                    return missing(what);
                }
                let (arguments, data_type) =
                    window_arguments(&function, name, arguments, position)?;
                (function, arguments, data_type)
            }
            None => {
                let collects = maker.map(|_| AggregateKind::ArrayAgg);
                let known = collects.or_else(|| AggregateKind::of(name));
                let known = known.filter(|kind| !kind.is_statistic() || !self.knows_routine(name));
                let Some(kind) = known else {
                    return Err(self.no_window_function(name, &arguments, position));
                };
                let clauses = Clauses {
                    is_star,
                    distinct: false,
                    filter,
                    order: Vec::new(),
                    level,
                };
                let bound = aggregate::call(kind, name, arguments, clauses, position)?;
                let Kind::Aggregate(call) = bound.kind else {
                    return refuse("this call");
                };
                let function = WindowFunction::Aggregate(call);
                (function, Vec::new(), bound.data_type)
            }
        };
        let call = WindowCall {
            function,
            arguments,
            window,
            level,
        };
        let bound = Bound::new(Kind::Window(Box::new(call)), data_type, position);
        Ok(match maker {
            Some(maker) => maker.finish(bound, position),
            None => bound,
        })
    }

    fn no_window_function(
        &self,
        name: &str,
        arguments: &[Bound],
        position: Position,
    ) -> super::Error {
        if functions::exists(name) || self.knows_routine(name) {
            return fail(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                ),
                position,
            );
        }
        let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        fail(SqlState::UNDEFINED_FUNCTION, message, position)
    }

    /// What the first `known` definitions of WINDOW say that a name stands for, and which of them.
    fn named_window(
        &self,
        name: &str,
        known: usize,
        position: Position,
    ) -> Result<(WindowSpec, usize)> {
        let mut all = self.windows.iter().take(known).enumerate();
        let found = all.find(|(_, NamedWindowDefinition(known, _))| name_of(known) == name);
        match found {
            Some((at, NamedWindowDefinition(_, NamedWindowExpr::WindowSpec(spec)))) => {
                Ok((spec.clone(), at))
            }
            Some((_, NamedWindowDefinition(_, NamedWindowExpr::NamedWindow(other)))) => {
                let message = format!("syntax error at or near \"{}\"", other.value);
                Err(fail(SqlState::SYNTAX_ERROR, message, position))
            }
            None => Err(fail(
                SqlState::UNDEFINED_OBJECT,
                format!("window \"{name}\" does not exist"),
                position,
            )),
        }
    }

    /// Binds a window that may refine one of the first `known` that have names.
    fn bind_window(
        &mut self,
        spec: &WindowSpec,
        known: usize,
        position: Position,
    ) -> Result<Window> {
        let mut window = Window::default();
        let exclusion = spec.partition_by.first().and_then(Exclusion::of_mark);
        let partition_by = &spec.partition_by[usize::from(exclusion.is_some())..];
        if let Some(name) = &spec.window_name {
            let name = name_of(name);
            let (base, at) = self.named_window(&name, known, position)?;
            let conflict = |what: String| Err(fail(SqlState::WINDOWING_ERROR, what, position));
            if !partition_by.is_empty() {
                return conflict(format!(
                    "cannot override PARTITION BY clause of window \"{name}\""
                ));
            }
            if !base.order_by.is_empty() && !spec.order_by.is_empty() {
                return conflict(format!(
                    "cannot override ORDER BY clause of window \"{name}\""
                ));
            }
            if base.window_frame.is_some() {
                return conflict(format!(
                    "cannot copy window \"{name}\" because it has a frame clause"
                ));
            }
            window = self.bind_window(&base, at, position)?;
        }
        for expr in partition_by {
            let bound = self.bind_expected(expr, None)?;
            if bound.as_constant().is_none() {
                window.partition.push(bound);
            }
        }
        for item in &spec.order_by {
            let bound = self.bind_expected(&item.expr, None)?;
            if window.order.iter().all(|key| key.bound != bound) {
                window.order.push(order_key(bound, item.options.clone())?);
            }
        }
        if let Some(frame) = &spec.window_frame {
            window.frame = self.bind_frame(frame, &window, position)?;
            window.frame.exclusion = exclusion.unwrap_or_default();
        }
        Ok(window)
    }

    /// Binds the windows that have names, whether a call uses them or not: what they say must make
    /// sense. Returns the expressions that they look at.
    pub(super) fn bind_named_windows(
        &mut self,
        windows: &[NamedWindowDefinition],
    ) -> Result<Vec<OrderKey>> {
        let output = self.output.take();
        let mut bound = Ok(Vec::new());
        for (at, window) in windows.iter().enumerate() {
            let position = position_of(window);
            let window = self
                .named_window(&name_of(&window.0), at + 1, position)
                .and_then(|(spec, at)| self.bind_window(&spec, at, position));
            match (&mut bound, window) {
                (Ok(keys), Ok(window)) => {
                    let partition = window.partition.into_iter().map(|bound| OrderKey {
                        bound,
                        descending: false,
                        nulls_first: false,
                    });
                    keys.extend(partition.chain(window.order));
                }
                (_, Err(error)) => {
                    bound = Err(error);
                    break;
                }
                (Err(_), _) => {}
            }
        }
        self.output = output;
        bound
    }

    fn bind_frame(
        &mut self,
        frame: &ast::WindowFrame,
        window: &Window,
        position: Position,
    ) -> Result<Frame> {
        check_ends(frame, position)?;
        if frame.units == WindowFrameUnits::Groups && window.order.is_empty() {
            let message = "GROUPS mode requires an ORDER BY clause";
            return Err(fail(SqlState::WINDOWING_ERROR, message, position));
        }
        let order = window.order.as_slice();
        let start = self.bind_frame_bound(&frame.start_bound, frame.units, order, position)?;
        let end = match &frame.end_bound {
            Some(end) => self.bind_frame_bound(end, frame.units, order, position)?,
            None => FrameBound::Current,
        };
        let has_offset = start.offset().or(end.offset()).is_some();
        let by_value = has_offset && frame.units == WindowFrameUnits::Range;
        let key = order.first().filter(|_| by_value);
        let in_range = key.and_then(|key| in_range(&key.bound.data_type));
        Ok(Frame {
            units: frame.units,
            start,
            end,
            exclusion: Exclusion::Nothing,
            in_range: in_range.map(|(named, _)| named),
        })
    }

    fn bind_frame_bound(
        &mut self,
        bound: &WindowFrameBound,
        units: WindowFrameUnits,
        order: &[OrderKey],
        position: Position,
    ) -> Result<FrameBound> {
        let level = self.levels.last();
        let (policy, sources) = level.map_or((AggregatePolicy::Allowed, Vec::new()), |level| {
            (level.aggregates, level.sources.clone())
        });
        let mut offset = |expr: &Expr| {
            self.allow_aggregates(AggregatePolicy::Refused(match units {
                WindowFrameUnits::Rows => "window ROWS",
                WindowFrameUnits::Range => "window RANGE",
                WindowFrameUnits::Groups => "window GROUPS",
            }));
            let bound = match units {
                WindowFrameUnits::Range => self.bind_distance(expr, order, position),
                _ => self.bind_as(expr, &DataType::BigInt, CastContext::Assignment),
            };
            self.allow_aggregates(policy);
            let bound = bound?;
            let varies = bound.sources().iter().any(|one| sources.contains(one));
            match varies {
                false => Ok(bound),
                true => Err(fail(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("argument of {units} must not contain variables"),
                    position,
                )),
            }
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => FrameBound::Current,
            WindowFrameBound::Preceding(None) => FrameBound::First,
            WindowFrameBound::Following(None) => FrameBound::Last,
            WindowFrameBound::Preceding(Some(expr)) => FrameBound::Preceding(offset(expr)?),
            WindowFrameBound::Following(Some(expr)) => FrameBound::Following(offset(expr)?),
        })
    }

    /// Binds the offset of RANGE, whose type follows from the only column of the order.
    fn bind_distance(
        &mut self,
        expr: &Expr,
        order: &[OrderKey],
        position: Position,
    ) -> Result<Bound> {
        let [key] = order else {
            let message =
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(fail(SqlState::WINDOWING_ERROR, message, position));
        };
        let bound = self.bind(expr)?;
        let column = &key.bound.data_type;
        let refuse = |of: String| {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {of}"
            );
            fail(SqlState::FEATURE_NOT_SUPPORTED, message, position)
        };
        let Some((_, distances)) = in_range(column) else {
            return Err(refuse(key.bound.type_name()));
        };
        let given = bound.data_type.without_modifier();
        let exact = distances.iter().find(|distance| match bound.is_unknown() {
            true => true,
            false => **distance == given,
        });
        if let Some(distance) = exact {
            return coerce(bound, distance, CastContext::Implicit);
        }
        let name = bound.type_name();
        for distance in distances {
            if let Ok(bound) = coerce(bound.clone(), distance, CastContext::Implicit) {
                return Ok(bound);
            }
        }
        let both = format!("{} and offset type {name}", key.bound.type_name());
        Err(refuse(both).with_hint("Cast the offset value to an appropriate type."))
    }

    /// Splits a SELECT at its window functions, if it has some: the rows with the results of these
    /// become the source of what remains. `order` are the keys by which the output is sorted.
    pub(super) fn split_at_windows(
        &mut self,
        select: &mut Select,
        order: &mut [OrderKey],
        level: usize,
    ) -> Result<()> {
        let mut parts = Parts {
            leaves: Leaves::of(select),
            level,
            offsets: Vec::new(),
            definitions: Vec::new(),
            calls: Vec::new(),
        };
        for bound in select.output_expressions(order) {
            parts.collect(bound);
        }
        if parts.calls.is_empty() {
            return Ok(());
        }
        if parts.leaves.columns.is_empty() {
            parts.leaves.columns.push(Bound::boolean(true));
        }
        let base = parts.leaves.columns.len();
        let all = parts.leaves.columns.iter().chain(&parts.calls);
        let metas = plain_columns(all);
        let source = self.add_derived_source("", &metas, None);
        let mut replace =
            |bound: &Bound| match parts.calls.iter().position(|call| is_call(call, bound)) {
                Some(at) => {
                    let column = (base + at) as u16;
                    let kind = Kind::Column { source, column };
                    Some(Bound::new(kind, bound.data_type.clone(), bound.position))
                }
                None => parts.leaves.in_rows_of(source, bound),
            };
        for bound in select.output_expressions_mut(order) {
            rewrite_in_place(bound, &mut replace);
        }
        let input = Select {
            items: std::mem::take(&mut select.items),
            filters: std::mem::take(&mut select.filters),
            outputs: parts.leaves.columns,
            grouping: select.grouping.take(),
            ..Select::default()
        };
        let windowed = BoundQuery {
            body: Body::Windowed(Box::new(Windowed {
                input: BoundQuery {
                    columns: metas[..base].to_vec(),
                    ..BoundQuery::of(input)
                },
                offsets: parts.offsets,
                definitions: parts.definitions,
            })),
            columns: metas,
            with: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
        };
        let kind = ItemKind::Derived(Box::new(windowed));
        let outer = Select::over(source, kind, Vec::new());
        select.items = outer.items;
        Ok(())
    }
}

/// Refuses the ends of a frame that are the wrong way round whatever the rows are.
///
/// # Errors
/// 42P20.
fn check_ends(frame: &ast::WindowFrame, position: Position) -> Result<()> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let end = frame.end_bound.as_ref().unwrap_or(&CurrentRow);
    let message = match (&frame.start_bound, end) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Preceding(None)) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Preceding(_)) => "frame starting from current row cannot have preceding rows",
        (Following(_), CurrentRow) if frame.end_bound.is_none() => {
            "frame starting from following row cannot end with current row"
        }
        (Following(_), CurrentRow | Preceding(_)) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    Err(fail(SqlState::WINDOWING_ERROR, message, position))
}

/// What a SELECT with window functions is taken apart into.
struct Parts {
    /// What the rows have.
    leaves: Leaves,
    level: usize,
    offsets: Vec<Offset>,
    definitions: Vec<Definition>,
    calls: Vec<Bound>,
}

impl Parts {
    /// Notes the calls in an output, and what else it looks at.
    fn collect(&mut self, bound: &Bound) {
        let Parts { leaves, level, .. } = self;
        let mut calls = Vec::new();
        leaves.collect(bound, &mut |node| match &node.kind {
            Kind::Window(call) if call.level == *level => {
                calls.push(node.clone());
                true
            }
            _ => false,
        });
        for node in calls {
            if let Kind::Window(call) = &node.kind
                && !self.calls.iter().any(|known| is_call(known, &node))
            {
                self.define(call, &node.data_type);
                self.calls.push(node);
            }
        }
    }

    fn define(&mut self, call: &WindowCall, data_type: &DataType) {
        let partition: Vec<usize> = call
            .window
            .partition
            .iter()
            .map(|bound| self.leaves.place(bound))
            .collect();
        let order: Vec<(usize, bool, bool)> = call
            .window
            .order
            .iter()
            .map(|key| {
                (
                    self.leaves.place(&key.bound),
                    key.descending,
                    key.nulls_first,
                )
            })
            .collect();
        let (aggregated, sorted_by) = match &call.function {
            WindowFunction::Aggregate(call) => {
                let mut place =
                    |bound: &Option<Bound>| bound.as_ref().map(|one| self.leaves.place(one));
                let parts = [
                    place(&call.argument),
                    place(&call.delimiter),
                    place(&call.filter),
                ];
                let by = call.order.iter().map(|key| self.leaves.place(&key.bound));
                (parts, by.collect())
            }
            _ => ([None; 3], Vec::new()),
        };
        let mut known = self.definitions.iter();
        let known = known.position(|known| known.partition == partition && known.order == order);
        let offsets = self.offsets_of(call, known);
        let placed = PlacedCall {
            call: call.clone(),
            arguments: call
                .arguments
                .iter()
                .map(|one| self.leaves.place(one))
                .collect(),
            aggregated,
            sorted_by,
            offsets,
            result: self.calls.len(),
            data_type: data_type.clone(),
        };
        match known {
            Some(at) => self.definitions[at].calls.push(placed),
            None => self.definitions.push(Definition {
                partition,
                order,
                calls: vec![placed],
            }),
        }
    }

    /// The offsets of a call's frame, which calls over one window share.
    fn offsets_of(&mut self, call: &WindowCall, definition: Option<usize>) -> [Option<usize>; 2] {
        let frame = &call.window.frame;
        let others = definition.map_or(&[][..], |at| &self.definitions[at].calls);
        let mut others = others.iter();
        if let Some(other) = others.find(|other| other.call.window.frame.has_form_of(frame)) {
            return other.offsets;
        }
        let mut place = |bound: &FrameBound, ends: bool| {
            bound.offset().map(|value| {
                self.offsets.push(Offset {
                    value: value.clone(),
                    ends,
                    counts: frame.in_range.is_none(),
                });
                self.offsets.len() - 1
            })
        };
        [place(&frame.start, false), place(&frame.end, true)]
    }
}

/// Whether a node is the same call as one that was noted: they are copies of each other.
fn is_call(call: &Bound, node: &Bound) -> bool {
    let (Kind::Window(_), Kind::Window(_)) = (&call.kind, &node.kind) else {
        return false;
    };
    call == node || (call.position == node.position && call.has_form_of(node))
}

/// The arguments of a function that is no aggregate, and its type.
fn window_arguments(
    function: &WindowFunction,
    name: &str,
    arguments: Vec<Bound>,
    position: Position,
) -> Result<(Vec<Bound>, DataType)> {
    let counts = match function {
        WindowFunction::Ntile | WindowFunction::FirstValue | WindowFunction::LastValue => 1..=1,
        WindowFunction::NthValue => 2..=2,
        WindowFunction::Lag | WindowFunction::Lead => 1..=3,
        _ => 0..=0,
    };
    let undefined = |arguments: &[Bound]| {
        let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        fail(SqlState::UNDEFINED_FUNCTION, message, position)
    };
    if !counts.contains(&arguments.len()) {
        return Err(undefined(&arguments));
    }
    let types: Vec<DataType> = arguments.iter().map(|one| one.data_type.clone()).collect();
    let as_integer = |bound: Bound| {
        let is_integer =
            bound.is_unknown() || matches!(bound.data_type, DataType::SmallInt | DataType::Integer);
        match is_integer {
            true => coerce(bound, &DataType::Integer, CastContext::Implicit),
            false => Err(undefined(std::slice::from_ref(&bound))),
        }
    };
    let mut rest = arguments.into_iter();
    let mut placed = Vec::with_capacity(3);
    let data_type = match function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => {
            DataType::BigInt
        }
        WindowFunction::PercentRank | WindowFunction::CumeDist => DataType::Double,
        WindowFunction::Ntile => {
            for bound in rest {
                placed.push(as_integer(bound)?);
            }
            DataType::Integer
        }
        _ => {
            let Some(value) = rest.next() else {
                return Err(undefined(&[]));
            };
            let number = rest.next();
            let otherwise = rest.next();
            let mut data_type = match value.is_unknown() {
                true => DataType::Text,
                false => types[0].clone(),
            };
            if let Some(otherwise) = &otherwise {
                data_type = common_type(name, &[&value, otherwise], position)
                    .map_err(|_| undefined(&[value.clone(), otherwise.clone()]))?;
            }
            placed.push(coerce(value, &data_type, CastContext::Implicit)?);
            let is_shift = matches!(function, WindowFunction::Lag | WindowFunction::Lead);
            if is_shift || number.is_some() {
                let one = Bound::constant(Value::Integer(1), DataType::Integer, position);
                placed.push(as_integer(number.unwrap_or(one))?);
            }
            if is_shift {
                let null = Bound::null(data_type.clone(), position);
                let otherwise = otherwise.unwrap_or(null);
                placed.push(coerce(otherwise, &data_type, CastContext::Implicit)?);
            }
            data_type
        }
    };
    Ok((placed, data_type))
}
