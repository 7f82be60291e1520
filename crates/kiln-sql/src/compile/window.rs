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
    AggregateKind, Body, Bound, BoundQuery, ColumnMeta, Definition, Frame, FrameBound, ItemKind,
    Kind, OrderKey, PlacedCall, Select, SourceId, Window, WindowCall, WindowFunction, Windowed,
    rewrite_in_place,
};
use super::category::common_type;
use super::coerce::{CastContext, coerce};
use super::collected::Collected;
use super::order::order_key;
use super::scope::AggregatePolicy;
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
        if function.null_treatment.is_some() {
            return refuse("IGNORE NULLS and RESPECT NULLS");
        }
        let FunctionArguments::List(list) = &function.args else {
            return refuse("this form of a call");
        };
        if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            return refuse("DISTINCT in a window function");
        }
        if !list.clauses.is_empty() {
            return refuse("ORDER BY in the arguments of a window function");
        }
        let mut arguments = Vec::with_capacity(list.args.len());
        let mut is_star = false;
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                    arguments.push(self.bind(expr)?);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => is_star = true,
                _ => return refuse("this argument"),
            }
        }
        let filter = match &function.filter {
            Some(filter) => Some(self.bind_condition(filter, "FILTER")?),
            None => None,
        };
        let window = match &function.over {
            Some(WindowType::NamedWindow(name)) => {
                let spec = self.named_window(&name_of(name), position)?;
                self.bind_window(&spec, position)?
            }
            Some(WindowType::WindowSpec(spec)) => self.bind_window(spec, position)?,
            None => Window::default(),
        };
        let (function, arguments, data_type) = match WindowFunction::of(name) {
            Some(function) => {
                if filter.is_some() {
                    return refuse("FILTER for a function that is no aggregate");
                }
                let (arguments, data_type) =
                    window_arguments(&function, name, arguments, position)?;
                (function, arguments, data_type)
            }
            None => {
                if Collected::of(name).is_some() && !self.knows_routine(name) {
                    return refuse(&format!("{name} over a window"));
                }
                let Some(kind) = AggregateKind::of(name) else {
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
        Ok(Bound::new(
            Kind::Window(Box::new(call)),
            data_type,
            position,
        ))
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

    /// What WINDOW says that a name stands for.
    fn named_window(&self, name: &str, position: Position) -> Result<WindowSpec> {
        let known = self
            .windows
            .iter()
            .find(|NamedWindowDefinition(known, _)| name_of(known) == name);
        match known {
            Some(NamedWindowDefinition(_, NamedWindowExpr::WindowSpec(spec))) => Ok(spec.clone()),
            Some(NamedWindowDefinition(_, NamedWindowExpr::NamedWindow(other))) => {
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

    fn bind_window(&mut self, spec: &WindowSpec, position: Position) -> Result<Window> {
        let mut window = Window::default();
        if let Some(name) = &spec.window_name {
            let name = name_of(name);
            let base = self.named_window(&name, position)?;
            let conflict = |what: String| Err(fail(SqlState::WINDOWING_ERROR, what, position));
            if !spec.partition_by.is_empty() {
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
            window = self.bind_window(&base, position)?;
        }
        for expr in &spec.partition_by {
            let bound = self.bind_expected(expr, None)?;
            if bound.as_constant().is_none() {
                window.partition.push(bound);
            }
        }
        for item in &spec.order_by {
            let bound = self.bind_expected(&item.expr, None)?;
            if bound.as_constant().is_none() {
                window.order.push(order_key(bound, item.options.clone())?);
            }
        }
        if let Some(frame) = &spec.window_frame {
            window.frame = self.bind_frame(frame, &window, position)?;
        }
        Ok(window)
    }

    fn bind_frame(
        &mut self,
        frame: &ast::WindowFrame,
        window: &Window,
        position: Position,
    ) -> Result<Frame> {
        let by_rows = frame.units == WindowFrameUnits::Rows;
        if frame.units == WindowFrameUnits::Groups && window.order.is_empty() {
            let message = "GROUPS mode requires an ORDER BY clause";
            return Err(fail(SqlState::WINDOWING_ERROR, message, position));
        }
        let start = self.bind_frame_bound(&frame.start_bound, by_rows, position)?;
        let end = match &frame.end_bound {
            Some(end) => self.bind_frame_bound(end, by_rows, position)?,
            None => FrameBound::Current,
        };
        let wrong = |message: &str| Err(fail(SqlState::WINDOWING_ERROR, message, position));
        match (&start, &end) {
            (FrameBound::Last, _) => wrong("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, FrameBound::First) => wrong("frame end cannot be UNBOUNDED PRECEDING"),
            (start, end) if start.rank() > end.rank() => {
                wrong("the frame's end is before its start")
            }
            _ => Ok(Frame {
                by_rows,
                start,
                end,
            }),
        }
    }

    fn bind_frame_bound(
        &mut self,
        bound: &WindowFrameBound,
        by_rows: bool,
        position: Position,
    ) -> Result<FrameBound> {
        let mut offset = |expr: &Expr| {
            if !by_rows {
                let what = "an offset in a frame of RANGE or GROUPS";
                return Err(unsupported(what, position));
            }
            let bound = self.bind_as(expr, &DataType::BigInt, CastContext::Assignment)?;
            match bound.sources().is_empty() {
                true => Ok(bound),
                false => Err(fail(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "argument of ROWS must not contain variables",
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

    /// Splits a SELECT at its window functions, if it has some: the rows with the results of these
    /// become the source of what remains. `order` are the keys by which the output is sorted.
    pub(super) fn split_at_windows(
        &mut self,
        select: &mut Select,
        order: &mut [OrderKey],
        level: usize,
    ) -> Result<()> {
        let own: Vec<SourceId> = select.items.iter().map(|item| item.source).collect();
        let slots: Vec<usize> = match &select.grouping {
            Some(grouping) => {
                let keys = grouping.keys.iter().map(|(_, slot)| *slot);
                keys.chain(grouping.aggregates.iter().map(|(_, slot)| *slot))
                    .collect()
            }
            None => Vec::new(),
        };
        let mut parts = Parts {
            own,
            slots,
            level,
            columns: Vec::new(),
            definitions: Vec::new(),
            calls: Vec::new(),
        };
        for bound in select.output_expressions(order) {
            parts.collect(bound);
        }
        if parts.calls.is_empty() {
            return Ok(());
        }
        if parts.columns.is_empty() {
            parts.columns.push(Bound::boolean(true));
        }
        let base = parts.columns.len();
        let types = parts.columns.iter().map(|bound| bound.data_type.clone());
        let results = parts.calls.iter().map(|bound| bound.data_type.clone());
        let metas: Vec<ColumnMeta> = types
            .chain(results)
            .map(|data_type| ColumnMeta {
                name: String::new(),
                data_type,
                origin: None,
            })
            .collect();
        let source = self.add_derived_source("", &metas, None);
        let column = |at: usize, bound: &Bound| {
            let column = at as u16;
            let kind = Kind::Column { source, column };
            Bound::new(kind, bound.data_type.clone(), bound.position)
        };
        let mut replace = |bound: &Bound| {
            if let Some(at) = parts.calls.iter().position(|call| is_call(call, bound)) {
                return Some(column(base + at, bound));
            }
            match parts.is_leaf(bound) {
                true => {
                    let at = parts.columns.iter().position(|known| known == bound)?;
                    Some(column(at, bound))
                }
                false => None,
            }
        };
        for bound in select.output_expressions_mut(order) {
            rewrite_in_place(bound, &mut replace);
        }
        let input = Select {
            items: std::mem::take(&mut select.items),
            filters: std::mem::take(&mut select.filters),
            outputs: parts.columns,
            grouping: select.grouping.take(),
            ..Select::default()
        };
        let windowed = BoundQuery {
            body: Body::Windowed(Box::new(Windowed {
                input: BoundQuery {
                    columns: metas[..base].to_vec(),
                    ..BoundQuery::of(input)
                },
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

/// What a SELECT with window functions is taken apart into.
struct Parts {
    own: Vec<SourceId>,
    /// The slots of group keys and aggregates.
    slots: Vec<usize>,
    level: usize,
    /// What the rows have.
    columns: Vec<Bound>,
    definitions: Vec<Definition>,
    calls: Vec<Bound>,
}

impl Parts {
    fn is_leaf(&self, bound: &Bound) -> bool {
        match bound.kind {
            Kind::Column { source, .. } => self.own.contains(&source),
            Kind::Slot(slot) => self.slots.contains(&slot),
            _ => false,
        }
    }

    fn place(&mut self, bound: &Bound) -> usize {
        let known = self.columns.iter().position(|known| known == bound);
        known.unwrap_or_else(|| {
            self.columns.push(bound.clone());
            self.columns.len() - 1
        })
    }

    /// Notes the calls in an output, and what else it looks at.
    fn collect(&mut self, bound: &Bound) {
        if self.is_leaf(bound) {
            self.place(bound);
            return;
        }
        match &bound.kind {
            Kind::Window(call) if call.level == self.level => {
                if !self.calls.iter().any(|known| is_call(known, bound)) {
                    self.define(call, &bound.data_type);
                    self.calls.push(bound.clone());
                }
                return;
            }
            Kind::Subquery(subquery) => {
                let mut leaves = Vec::new();
                subquery.query.visit(&mut |node| {
                    if self.is_leaf(node) {
                        leaves.push(node.clone());
                    }
                });
                for leaf in leaves {
                    self.place(&leaf);
                }
            }
            _ => {}
        }
        for operand in bound.operands() {
            self.collect(operand);
        }
    }

    fn define(&mut self, call: &WindowCall, data_type: &DataType) {
        let partition: Vec<usize> = call
            .window
            .partition
            .iter()
            .map(|bound| self.place(bound))
            .collect();
        let order: Vec<(usize, bool, bool)> = call
            .window
            .order
            .iter()
            .map(|key| (self.place(&key.bound), key.descending, key.nulls_first))
            .collect();
        let (aggregated, sorted_by) = match &call.function {
            WindowFunction::Aggregate(call) => {
                let mut place = |bound: &Option<Bound>| bound.as_ref().map(|one| self.place(one));
                let parts = [
                    place(&call.argument),
                    place(&call.delimiter),
                    place(&call.filter),
                ];
                let by = call.order.iter().map(|key| self.place(&key.bound));
                (parts, by.collect())
            }
            _ => ([None; 3], Vec::new()),
        };
        let Frame { start, end, .. } = &call.window.frame;
        let mut offset = |bound: &FrameBound| bound.offset().map(|one| self.place(one));
        let offsets = [offset(start), offset(end)];
        let placed = PlacedCall {
            call: call.clone(),
            arguments: call.arguments.iter().map(|one| self.place(one)).collect(),
            aggregated,
            sorted_by,
            offsets,
            result: self.calls.len(),
            data_type: data_type.clone(),
        };
        let mut known = self.definitions.iter_mut();
        match known.find(|known| known.partition == partition && known.order == order) {
            Some(definition) => definition.calls.push(placed),
            None => self.definitions.push(Definition {
                partition,
                order,
                calls: vec![placed],
            }),
        }
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
