//! Functions with syntax or typing of their own, and calls of the others.

use kiln_procedure::ir::{Class, Comparison, Instruction};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, Representation};
use sqlparser::ast::{
    CeilFloorKind, DateTimeField, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, TrimWhereField,
};

use super::aggregate;
use super::bind::{as_array, case};
use super::bound::{Bound, Kind};
use super::coerce::{CastContext, call, coerce, common_type, padded};
use super::functions::Now;
use super::plpgsql::Callee;
use super::scope::{AggregatePolicy, SourceId};
use super::{Compiler, Position, fail, functions, object_name, operators, position_of};
use super::{SessionValue, types, unsupported};
use crate::catalog::functions::{type_object, unknown_type};

/// The arguments of a call as they were written.
struct Call<'e> {
    name: String,
    arguments: Vec<&'e Expr>,
    is_star: bool,
    distinct: bool,
    filter: Option<&'e Expr>,
    position: Position,
}

impl Compiler<'_> {
    /// Expressions with keywords of their own.
    pub(super) fn bind_special(&mut self, expr: &Expr) -> Result<Bound> {
        let position = position_of(expr);
        match expr {
            Expr::Extract { field, expr, .. } => {
                let value = self.bind(expr)?;
                self.bind_extract(field, value, position)
            }
            Expr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => {
                let value = self.bind(expr)?;
                functions::bind("ceil", vec![value], position)
            }
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => {
                let value = self.bind(expr)?;
                functions::bind("floor", vec![value], position)
            }
            Expr::Position { expr, r#in } => {
                let (needle, text) = (self.bind(expr)?, self.bind(r#in)?);
                functions::bind("position", vec![text, needle], position)
            }
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special: _,
                shorthand,
            } => {
                let text = self.bind(expr)?;
                let mut arguments = vec![text];
                match (substring_from, substring_for) {
                    (Some(from), length) => {
                        arguments.push(self.bind(from)?);
                        if let Some(length) = length {
                            arguments.push(self.bind(length)?);
                        }
                    }
                    (None, Some(length)) => {
                        arguments.push(Bound::integer(1));
                        arguments.push(self.bind(length)?);
                    }
                    (None, None) => {}
                }
                let name = if *shorthand { "substr" } else { "substring" };
                functions::bind(name, arguments, position)
            }
            Expr::Trim {
                trim_where,
                trim_what,
                expr,
                trim_characters,
            } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let mut arguments = vec![self.bind(expr)?];
                let characters = trim_what
                    .as_deref()
                    .or(trim_characters.as_ref().and_then(|list| list.first()));
                if let Some(characters) = characters {
                    arguments.push(self.bind(characters)?);
                }
                functions::bind(name, arguments, position)
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut arguments = vec![
                    self.bind(expr)?,
                    self.bind(overlay_what)?,
                    self.bind(overlay_from)?,
                ];
                if let Some(length) = overlay_for {
                    arguments.push(self.bind(length)?);
                }
                functions::bind("overlay", arguments, position)
            }
            Expr::Collate { expr, collation } => {
                let name = object_name(collation)?;
                if !matches!(name.as_str(), "C" | "POSIX" | "default" | "ucs_basic") {
                    return Err(unsupported(format!("collation \"{name}\""), position));
                }
                let bound = self.bind(expr)?;
                if !bound.is_unknown() && !bound.data_type.is_string() {
                    return Err(fail(
                        SqlState::DATATYPE_MISMATCH,
                        format!("collations are not supported by type {}", bound.type_name()),
                        position,
                    ));
                }
                Ok(bound)
            }
            Expr::TypedString(typed) => {
                let target = types::data_type(&typed.data_type, position)?;
                let literal = self.bind(&Expr::Value(typed.value.clone()))?;
                coerce(literal, &target, CastContext::Explicit)
            }
            Expr::Interval(interval) => {
                if interval.last_field.is_some()
                    || interval.leading_precision.is_some()
                    || interval.fractional_seconds_precision.is_some()
                {
                    return Err(unsupported("a precision or range of an interval", position));
                }
                let value = self.bind(&interval.value)?;
                let Kind::Unknown(Some(text)) = &value.kind else {
                    return Err(unsupported("an interval that is no literal", position));
                };
                let text = match &interval.leading_field {
                    None => text.clone(),
                    // INTERVAL '3' DAY: the field is the unit of a plain number.
                    Some(field) if text.trim().parse::<f64>().is_ok() => format!("{text} {field}"),
                    Some(_) => {
                        return Err(unsupported("an interval with a field", position));
                    }
                };
                let literal = Bound::new(Kind::Unknown(Some(text)), DataType::Text, position);
                coerce(literal, &DataType::Interval, CastContext::Explicit)
            }
            Expr::Array(array) => {
                let items: Result<Vec<Bound>> =
                    array.elem.iter().map(|item| self.bind(item)).collect();
                let items = items?;
                if items.is_empty() {
                    return Err(fail(
                        SqlState::INDETERMINATE_DATATYPE,
                        "cannot determine type of empty array",
                        position,
                    )
                    .with_hint(
                        "Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                    ));
                }
                let all: Vec<&Bound> = items.iter().collect();
                let element = common_type("ARRAY", &all, position)?.without_modifier();
                if matches!(element, DataType::Array(_)) {
                    return Err(unsupported("an array of more than one dimension", position));
                }
                let items: Result<Vec<Bound>> = items
                    .into_iter()
                    .map(|item| coerce(item, &element, CastContext::Implicit))
                    .collect();
                let named = functions::construct_array();
                Ok(call(named, items?, DataType::array(element), position))
            }
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let value = self.bind(timestamp)?;
                let zone = self.bind(time_zone)?;
                let is_utc = matches!(
                    &zone.kind,
                    Kind::Unknown(Some(zone))
                        if zone.eq_ignore_ascii_case("utc") || zone.eq_ignore_ascii_case("gmt")
                );
                if !is_utc {
                    return Err(unsupported("a time zone other than UTC", position));
                }
                match value.data_type {
                    DataType::Timestamp if !value.is_unknown() => {
                        coerce(value, &DataType::TimestampTz, CastContext::Explicit)
                    }
                    DataType::TimestampTz => {
                        coerce(value, &DataType::Timestamp, CastContext::Explicit)
                    }
                    _ => Err(unsupported("AT TIME ZONE on this type", position)),
                }
            }
            Expr::SimilarTo { .. } => Err(unsupported("SIMILAR TO", position)),
            Expr::Like { .. } | Expr::ILike { .. } => {
                Err(unsupported("LIKE with ANY or ALL", position))
            }
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => {
                Err(unsupported("GROUPING SETS, CUBE and ROLLUP", position))
            }
            Expr::JsonAccess { .. } | Expr::IsJson { .. } => Err(unsupported("JSON", position)),
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => Err(fail(
                SqlState::SYNTAX_ERROR,
                "syntax error at or near \"*\"",
                position,
            )),
            other => {
                let text = other.to_string();
                let short: String = text.chars().take(60).collect();
                Err(unsupported(format!("the expression {short}"), position))
            }
        }
    }

    fn bind_extract(
        &mut self,
        field: &DateTimeField,
        value: Bound,
        position: Position,
    ) -> Result<Bound> {
        let name = match field {
            DateTimeField::Custom(ident) => ident.value.to_lowercase(),
            DateTimeField::DayOfWeek => "dow".to_owned(),
            DateTimeField::DayOfYear => "doy".to_owned(),
            other => other.to_string().to_lowercase(),
        };
        let name = name.trim_matches('\'').to_owned();
        let value = if value.is_unknown() {
            return Err(fail(
                SqlState::AMBIGUOUS_FUNCTION,
                "function pg_catalog.extract(unknown, unknown) is not unique",
                position,
            ));
        } else {
            value
        };
        let Some(named) = functions::extract(&value.data_type) else {
            return Err(fail(
                SqlState::UNDEFINED_FUNCTION,
                format!(
                    "function pg_catalog.extract(unknown, {}) does not exist",
                    value.data_type.base_name()
                ),
                position,
            ));
        };
        Ok(call(
            named,
            vec![Bound::text(name), value],
            DataType::NUMERIC,
            position,
        ))
    }

    /// Binds a call of a user's function.
    fn bind_routine(
        &mut self,
        name: &str,
        given: Vec<(Option<&Ident>, Bound)>,
        position: Position,
    ) -> Result<Bound> {
        let is_over_rows = self.levels.iter().any(|level| !level.sources.is_empty());
        let (callee, arguments) = Callee::bind(self, name, given, is_over_rows, position)?;
        let data_type = callee.value_type(position)?;
        Ok(Bound::new(
            Kind::Routine(Box::new(callee), arguments),
            data_type,
            position,
        ))
    }

    /// Binds a call with arguments that are given by name, which only users' functions have.
    fn bind_named_call(&mut self, function: &Function) -> Result<Option<Bound>> {
        let FunctionArguments::List(list) = &function.args else {
            return Ok(None);
        };
        let is_named = |argument: &FunctionArg| {
            matches!(
                argument,
                FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. }
            )
        };
        if !list.args.iter().any(is_named) {
            return Ok(None);
        }
        let position = position_of(function);
        let name = object_name(&function.name)?;
        let mut given = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let (name, value) = match argument {
                FunctionArg::Named { name, arg, .. } => (Some(name), arg),
                FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg,
                    ..
                } => (Some(name), arg),
                FunctionArg::ExprNamed { .. } => {
                    return Err(unsupported("this argument", position));
                }
                FunctionArg::Unnamed(arg) => (None, arg),
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(unsupported("this argument", position));
            };
            given.push((name, self.bind(value)?));
        }
        self.bind_routine(&name, given, position).map(Some)
    }

    /// Binds a call.
    pub(super) fn bind_function(&mut self, function: &Function) -> Result<Bound> {
        if let Some(bound) = self.bind_named_call(function)? {
            return Ok(bound);
        }
        let call = read_call(function)?;
        let Call { name, position, .. } = &call;
        let position = *position;
        if let Some(kind) = aggregate::AggregateKind::of(name) {
            if call.is_star && *name != "count" {
                return Err(fail(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("function {name}() does not exist"),
                    position,
                ));
            }
            return self.bind_aggregate(kind, &call);
        }
        if call.is_star || call.distinct || call.filter.is_some() {
            let what = if call.is_star {
                "(*)"
            } else if call.distinct {
                "DISTINCT"
            } else {
                "FILTER"
            };
            return Err(fail(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{what} specified, but {name} is not an aggregate function"),
                position,
            ));
        }
        if let Some(bound) = self.bind_session_value(name, &call.arguments, position)? {
            return Ok(bound);
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.bind(argument)?);
        }
        if functions::takes_role(name, arguments.len()) {
            let role = self.ask_session(SessionValue::Role, name, position)?;
            arguments.insert(0, role);
        }
        let count = arguments.len();
        match (name.as_str(), count) {
            ("coalesce", 1..) => {
                let all: Vec<&Bound> = arguments.iter().collect();
                let data_type = common_type("COALESCE", &all, position)?;
                coalesce(arguments, data_type, position)
            }
            ("nullif", 2) => {
                let mut arguments = arguments.into_iter();
                let (Some(left), Some(right)) = (arguments.next(), arguments.next()) else {
                    return Err(unsupported("this call", position));
                };
                let left = if left.is_unknown() && right.is_unknown() {
                    coerce(left, &DataType::Text, CastContext::Implicit)?
                } else if left.is_unknown() {
                    let target = right.data_type.without_modifier();
                    coerce(left, &target, CastContext::Implicit)?
                } else {
                    left
                };
                let left = self.share(left);
                let same = operators::compare(Comparison::Equal, left.clone(), right, position)?;
                let null = Bound::null(left.data_type.clone(), position);
                case(vec![(same, null)], Some(left), position)
            }
            ("greatest" | "least", 1..) => {
                let all: Vec<&Bound> = arguments.iter().collect();
                let data_type = common_type(&name.to_uppercase(), &all, position)?;
                let Some(class) = Class::of(&data_type) else {
                    return Err(unsupported(format!("{name} of arrays"), position));
                };
                let arguments: Result<Vec<Bound>> = arguments
                    .into_iter()
                    .map(|argument| coerce(argument, &data_type, CastContext::Implicit))
                    .collect();
                let named = functions::extreme(class, name == "greatest");
                Ok(functions::direct(named, arguments?, data_type, position))
            }
            ("row", _) => {
                let shared = arguments.into_iter().map(|item| self.share(item));
                let row = shared.collect();
                Ok(Bound::new(Kind::Row(row), DataType::Text, position))
            }
            ("now" | "current_timestamp" | "transaction_timestamp", 0) => {
                Ok(self.now(Now::Transaction, position))
            }
            ("pg_typeof", 1) => {
                let argument = &arguments[0];
                let object = match argument.is_unknown() {
                    true => unknown_type(),
                    false => type_object(&argument.data_type),
                };
                let data_type = DataType::Catalog(CatalogType::RegType);
                Ok(Bound::constant(object, data_type, position))
            }
            // There are no advisory locks, so that none is left.
            ("pg_advisory_unlock_all", 0) => Ok(Bound::text("")),
            ("statement_timestamp", 0) => Ok(self.now(Now::Statement, position)),
            ("localtimestamp", 0) => {
                let now = self.now(Now::Transaction, position);
                coerce(now, &DataType::Timestamp, CastContext::Explicit)
            }
            ("current_date", 0) => {
                let now = self.now(Now::Transaction, position);
                coerce(now, &DataType::Date, CastContext::Explicit)
            }
            ("age", 1) => {
                let today = self.now(Now::Transaction, position);
                let today = coerce(today, &DataType::Date, CastContext::Explicit)?;
                let today = coerce(today, &DataType::Timestamp, CastContext::Explicit)?;
                arguments.insert(0, today);
                functions::bind("age", arguments, position)
            }
            ("array_position" | "array_remove", 2) => {
                let mut arguments = arguments.into_iter();
                let (Some(array), Some(element)) = (arguments.next(), arguments.next()) else {
                    return Err(unsupported("this call", position));
                };
                let inner = match &array.data_type {
                    DataType::Array(inner) if !array.is_unknown() => (**inner).clone(),
                    _ => return functions::bind(name, vec![array, element], position),
                };
                let element = coerce(element, &inner.without_modifier(), CastContext::Implicit)?;
                let Some(class) = Class::of(&inner) else {
                    return Err(unsupported("an array of arrays", position));
                };
                let (named, data_type) = if name == "array_position" {
                    (functions::array_position(class), DataType::Integer)
                } else {
                    (functions::array_remove(class), array.data_type.clone())
                };
                Ok(functions::direct(
                    named,
                    vec![array, element],
                    data_type,
                    position,
                ))
            }
            ("octet_length" | "bit_length" | "concat" | "concat_ws", _) => {
                // They see the padding of CHAR(n).
                let padded_arguments = arguments
                    .into_iter()
                    .map(|argument| match argument.data_type {
                        DataType::Char(length) if !argument.is_unknown() => {
                            padded(argument, length)
                        }
                        _ => argument,
                    })
                    .collect();
                functions::bind(name, padded_arguments, position)
            }
            ("quote_literal" | "quote_nullable", 1)
                if !arguments[0].is_unknown() && !arguments[0].data_type.is_string() =>
            {
                let text = super::coerce::to_text(arguments.remove(0))?;
                functions::bind(name, vec![text], position)
            }
            ("array_to_string", 2) if !arguments[0].is_unknown() => {
                let delimiter = arguments.pop();
                let array = arguments.pop();
                match (array, delimiter) {
                    (Some(array), Some(delimiter)) => {
                        let array = self.texts_of(array, position)?;
                        functions::bind(name, vec![array, delimiter], position)
                    }
                    _ => Err(unsupported("this call", position)),
                }
            }
            _ if !functions::exists(name) && self.knows_routine(name) => {
                let given = arguments.into_iter().map(|bound| (None, bound)).collect();
                self.bind_routine(name, given, position)
            }
            _ => functions::bind(name, arguments, position),
        }
    }

    /// The elements of an array as they are printed.
    fn texts_of(&mut self, array: Bound, position: Position) -> Result<Bound> {
        let texts = DataType::array(DataType::Text);
        let array = as_array(array)?;
        match &array.data_type {
            DataType::Array(element)
                if matches!(&**element, DataType::Catalog(catalog)
                    if catalog.representation() == Representation::Text) =>
            {
                Ok(array.relabel(texts))
            }
            DataType::Array(element) if matches!(**element, DataType::Catalog(_)) => {
                let text = super::coerce::to_output_text(array)?;
                coerce(text, &texts, CastContext::Explicit)
            }
            DataType::Array(element) if element.is_string() => {
                coerce(array, &texts, CastContext::Explicit)
            }
            DataType::Array(element)
                if element.is_number()
                    || matches!(**element, DataType::Date | DataType::Boolean) =>
            {
                // The array's own text is its elements between commas.
                let text = super::coerce::to_output_text(array)?;
                coerce(text, &texts, CastContext::Explicit)
            }
            _ => Err(unsupported("array_to_string of this type", position)),
        }
    }

    fn bind_aggregate(&mut self, kind: aggregate::AggregateKind, call: &Call<'_>) -> Result<Bound> {
        let position = call.position;
        let name = &call.name;
        let policy = self.levels.last().map(|level| level.aggregates);
        match policy {
            Some(AggregatePolicy::Allowed) => {}
            Some(AggregatePolicy::Inside) => {
                return Err(fail(
                    SqlState::GROUPING_ERROR,
                    "aggregate function calls cannot be nested",
                    position,
                ));
            }
            Some(AggregatePolicy::Refused(clause)) => {
                return Err(fail(
                    SqlState::GROUPING_ERROR,
                    format!("aggregate functions are not allowed in {clause}"),
                    position,
                ));
            }
            None => return Err(unsupported("an aggregate outside of a query", position)),
        }
        if let Some(level) = self.levels.last_mut() {
            level.aggregates = AggregatePolicy::Inside;
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        let mut bind = || -> Result<Option<Bound>> {
            for argument in &call.arguments {
                arguments.push(self.bind(argument)?);
            }
            match call.filter {
                Some(filter) => self.bind_condition(filter, "FILTER").map(Some),
                None => Ok(None),
            }
        };
        let filter = bind();
        if let Some(level) = self.levels.last_mut() {
            level.aggregates = AggregatePolicy::Allowed;
        }
        if self.is_of_outer_rows(
            arguments
                .iter()
                .chain(filter.as_ref().ok().into_iter().flatten()),
        ) {
            return Err(unsupported(
                "an aggregate of the rows of an outer query",
                position,
            ));
        }
        aggregate::call(
            kind,
            name,
            arguments,
            call.is_star,
            call.distinct,
            filter?,
            position,
        )
    }

    /// Whether expressions name rows, but none of the innermost query: PostgreSQL takes an
    /// aggregate of them for one of the outer query.
    fn is_of_outer_rows<'b>(&self, expressions: impl Iterator<Item = &'b Bound>) -> bool {
        let own = self.levels.last().map(|level| level.sources.as_slice());
        let outer = self.levels.iter().rev().skip(1);
        let outer: Vec<SourceId> = outer.flat_map(|level| level.sources.clone()).collect();
        let (mut of_own, mut of_outer) = (false, false);
        for source in expressions.flat_map(Bound::sources) {
            of_own |= own.is_some_and(|own| own.contains(&source));
            of_outer |= outer.contains(&source);
        }
        of_outer && !of_own
    }

    /// The time at which the transaction or the statement began: read once, before anything else.
    fn now(&mut self, now: Now, position: Position) -> Bound {
        let known = self.clocks.iter().find(|(known, _)| *known == now);
        let register = known.map(|(_, register)| *register);
        let register = register.unwrap_or_else(|| {
            let target = self.builder.register(DataType::TimestampTz);
            let (name, function) = functions::clock(now);
            let arguments = Box::default();
            self.builder.prologue(Instruction::Call {
                function,
                name,
                target,
                arguments,
            });
            self.clocks.push((now, target));
            target
        });
        Bound::register(register, DataType::TimestampTz, position)
    }
}

/// COALESCE over bound operands of one type.
fn coalesce(arguments: Vec<Bound>, data_type: DataType, position: Position) -> Result<Bound> {
    let arguments: Result<Vec<Bound>> = arguments
        .into_iter()
        .map(|argument| coerce(argument, &data_type, CastContext::Implicit))
        .collect();
    let mut kept = Vec::new();
    for argument in arguments? {
        if argument.is_null_literal() {
            continue;
        }
        let decides = argument.as_constant().is_some();
        kept.push(argument);
        if decides {
            break;
        }
    }
    if kept.len() < 2 {
        let only = kept
            .pop()
            .unwrap_or_else(|| Bound::null(data_type, position));
        return Ok(Bound { position, ..only });
    }
    Ok(Bound::new(Kind::Coalesce(kept), data_type, position))
}

fn read_call(function: &Function) -> Result<Call<'_>> {
    let position = position_of(function);
    let name = object_name(&function.name)?;
    let refuse = |what: &str| Err(unsupported(what, position));
    if function.over.is_some() {
        return refuse("a window function");
    }
    if !function.within_group.is_empty() {
        return refuse("WITHIN GROUP");
    }
    if function.null_treatment.is_some() || function.uses_odbc_syntax {
        return refuse("this form of a call");
    }
    if !matches!(function.parameters, FunctionArguments::None) {
        return refuse("a call with parameters");
    }
    let mut call = Call {
        name,
        arguments: Vec::new(),
        is_star: false,
        distinct: false,
        filter: function.filter.as_deref(),
        position,
    };
    let list = match &function.args {
        FunctionArguments::None => return Ok(call),
        FunctionArguments::Subquery(_) => return refuse("a subquery as the arguments of a call"),
        FunctionArguments::List(list) => list,
    };
    match list.clauses.first() {
        None => {}
        Some(FunctionArgumentClause::OrderBy(_)) => {
            return refuse("ORDER BY within an aggregate");
        }
        Some(_) => return refuse("this form of a call"),
    }
    call.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => call.arguments.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => call.is_star = true,
            FunctionArg::Unnamed(_) => return refuse("a whole row as an argument"),
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                return refuse("an argument by name");
            }
        }
    }
    if call.is_star && (!call.arguments.is_empty() || call.distinct) {
        return Err(fail(
            SqlState::SYNTAX_ERROR,
            "syntax error at or near \"*\"",
            position,
        ));
    }
    Ok(call)
}
