//! Functions with syntax or typing of their own, and calls of the others.

use kiln_procedure::ir::{Comparison, Instruction};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, ObjectName, Representation, Value};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    CeilFloorKind, DateTimeField, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, TrimWhereField,
};

use super::arrays;
use super::bind::{as_array, case};
use super::bound::{AggregateKind, Bound, Callee, Kind, RowFunction, WindowFunction};
use super::category::common_type;
use super::coerce::{CastContext, coalesce, coerce, padded};
use super::collected::Ordered;
use super::constant::call;
use super::domain::{coerce_to, type_of_value};
use super::expression::Call;
use super::extensions::Extension;
use super::functions::Now;
use super::json::Maker;
use super::order::{Needs, class_in};
use super::overload;
use super::row_value;
use super::types::digits_of_seconds;
use super::{
    Compiler, Position, fail, functions, name_of, object_name, operators, position_of,
    quote_identifier, routine_name,
};
use super::{SessionValue, unsupported};
use crate::catalog::functions::{type_object, unknown_type};

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
                overload::bind("ceil", vec![value], position)
            }
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => {
                let value = self.bind(expr)?;
                overload::bind("floor", vec![value], position)
            }
            Expr::Position { expr, r#in } => {
                let (needle, text) = (self.bind(expr)?, self.bind(r#in)?);
                overload::bind("position", vec![text, needle], position)
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
                overload::bind(name, arguments, position)
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
                overload::bind(name, arguments, position)
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
                overload::bind("overlay", arguments, position)
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
                let target = type_of_value(&typed.data_type, self, position)?;
                let literal = self.bind(&Expr::Value(typed.value.clone()))?;
                coerce_to(literal, &target, CastContext::Explicit)
            }
            Expr::Interval(interval) => {
                if interval.last_field.is_some() || interval.leading_precision.is_some() {
                    return Err(unsupported("a range of an interval's fields", position));
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
                let digits = digits_of_seconds(interval.fractional_seconds_precision);
                coerce(literal, &DataType::Interval(digits), CastContext::Explicit)
            }
            Expr::Array(array) => self.bind_array(&array.elem, None, position),
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let value = self.bind(timestamp)?;
                let zone = self.bind(time_zone)?;
                if !value.is_unknown() && matches!(value.data_type, DataType::Time(_)) {
                    return Err(unsupported("AT TIME ZONE of a time", position));
                }
                overload::bind("timezone", vec![zone, value], position)
            }
            Expr::Like { .. } | Expr::ILike { .. } => {
                Err(unsupported("LIKE with ANY or ALL", position))
            }
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => {
                Err(unsupported("GROUPING SETS, CUBE and ROLLUP", position))
            }
            Expr::JsonAccess { .. } | Expr::IsJson { .. } => Err(unsupported("JSON", position)),
            Expr::Wildcard(_) => Err(fail(
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
        let mut operands = vec![Bound::text(name)];
        let has_zone = matches!(value.data_type, DataType::TimestampTz(_));
        operands.push(value);
        if has_zone {
            operands.push(super::coerce::session_style(position));
        }
        Ok(call(named, operands, DataType::NUMERIC, position))
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
        if callee.gives_values() {
            let call = RowFunction::Routine(Box::new(callee), arguments);
            return self.add_row_function(call, position);
        }
        let data_type = callee.value_type(position)?;
        Ok(Bound::new(
            Kind::Routine(Box::new(callee), arguments),
            data_type,
            position,
        ))
    }

    /// Binds a call whose arguments are no plain expressions: COLLATION FOR, and NORMALIZE with the
    /// name of a form; `None` for others.
    fn bind_in_words(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Option<Bound>> {
        match (name, arguments) {
            ("normalize", [text, Expr::Identifier(form)]) if form.quote_style.is_none() => {
                let known = ["nfc", "nfd", "nfkc", "nfkd"];
                if !known.contains(&form.value.as_str()) {
                    let message = format!("syntax error at or near \"{}\"", form.value);
                    return Err(fail(SqlState::SYNTAX_ERROR, message, position));
                }
                let arguments = vec![self.bind(text)?, Bound::text(form.value.clone())];
                overload::bind(name, arguments, position).map(Some)
            }
            ("pg_collation_for", [argument]) => self.bind_collation(argument, position).map(Some),
            ("timeofday", []) => {
                let clock = overload::bind("clock_timestamp", Vec::new(), position)?;
                let template = Bound::text("Dy Mon DD HH24:MI:SS.US YYYY TZ".to_owned());
                overload::bind("to_char", vec![clock, template], position).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `COLLATION FOR (value)`.
    fn bind_collation(&mut self, argument: &Expr, position: Position) -> Result<Bound> {
        let bound = self.bind(argument)?;
        let mut written = argument;
        while let Expr::Nested(inner) = written {
            written = inner;
        }
        let name = match written {
            Expr::Collate { collation, .. } => Some(object_name(collation)?),
            _ if bound.is_unknown() => None,
            _ => {
                let element = bound.data_type.element();
                let of = element.as_ref().unwrap_or(&bound.data_type);
                match of {
                    DataType::Catalog(CatalogType::Name) => Some("C".to_owned()),
                    of if of.is_string() => Some("default".to_owned()),
                    _ => {
                        let of = bound.type_name();
                        let message = format!("collations are not supported by type {of}");
                        return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
                    }
                }
            }
        };
        let has_inner = written.to_string().to_lowercase().contains(" collate ");
        if has_inner && !matches!(written, Expr::Collate { .. }) {
            return Err(unsupported(
                "COLLATION FOR an expression with COLLATE",
                position,
            ));
        }
        Ok(match name {
            Some(name) => Bound::text(quote_identifier(&name)),
            None => Bound::null(DataType::Text, position),
        })
    }

    /// Binds a call with arguments that are given by name, or with VARIADIC.
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
        let name = routine_name(self.catalog, &function.name)?;
        if !self.knows_routine(&name) {
            if let Some(bound) = self.bind_variadic_call(function, &name)? {
                return Ok(Some(bound));
            }
            let call = self.placed(function, &name)?;
            return self.bind_function(&call).map(Some);
        }
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
        if let FunctionArguments::Subquery(query) = &function.args {
            return self.bind_array_subquery(query, position_of(function));
        }
        if function.over.is_some() {
            return self.bind_window_call(function);
        }
        if let Some(function) = with_rows(function) {
            return self.bind_function(&function);
        }
        let call = read_call(function)?;
        let Call { name, position, .. } = &call;
        let position = *position;
        if let Some(bound) = self.bind_row_function(&call)? {
            return Ok(bound);
        }
        if let Some(maker) = Maker::of(name) {
            if maker.is_aggregate() {
                let collected = self.bind_aggregate(AggregateKind::ArrayAgg, &call)?;
                return Ok(maker.finish(collected, position));
            }
            if !call.is_star && !call.distinct && call.filter.is_none() && call.order.is_empty() {
                return self.bind_json(maker, name, &call.arguments, position);
            }
        }
        if name == "grouping" {
            return self.bind_grouping(&call);
        }
        if !self.knows_routine(name)
            && let Some(bound) = self.bind_in_words(name, &call.arguments, position)?
        {
            return Ok(bound);
        }
        if let Some(ordered) = Ordered::of(name)
            && !self.knows_routine(name)
        {
            return self.bind_ordered(ordered, call);
        }
        if !call.within.is_empty() {
            return Err(self.no_such_call(&call));
        }
        if let Some(kind) = AggregateKind::of(name)
            && (!kind.is_statistic() || !self.knows_routine(name))
        {
            if call.is_star && *name != "count" {
                return Err(fail(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("function {name}() does not exist"),
                    position,
                ));
            }
            return self.bind_aggregate(kind, &call);
        }
        if WindowFunction::of(name).is_some() && !self.knows_routine(name) {
            return Err(fail(
                SqlState::WRONG_OBJECT_TYPE,
                format!("window function {name} requires an OVER clause"),
                position,
            ));
        }
        if call.is_star || call.distinct || call.filter.is_some() || !call.order.is_empty() {
            let what = if call.is_star {
                "(*)"
            } else if call.distinct {
                "DISTINCT"
            } else if !call.order.is_empty() {
                "ORDER BY"
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
        let refused = (name == "coalesce").then_some("COALESCE");
        let mut arguments = self.without_rows(refused, |compiler| {
            let each = call.arguments.iter();
            let mut bound = Vec::with_capacity(call.arguments.len());
            for argument in each {
                match (name.as_str(), argument) {
                    // Its columns are fields.
                    ("row", Expr::QualifiedWildcard(row, _)) => {
                        let row = compiler.bind_row_of(row)?;
                        let fields = row_value::fields(&row, position)?;
                        bound.extend(fields.into_iter().map(|(_, field)| field));
                    }
                    _ => bound.push(compiler.bind(argument)?),
                }
            }
            Ok::<_, super::Error>(bound)
        })?;
        arguments.retain(|bound| !bound.is_void());
        if functions::takes_role(name, arguments.len()) {
            let role = self.ask_session(SessionValue::Role, name, position)?;
            arguments.insert(0, role);
        }
        if let "nextval" | "currval" | "lastval" | "setval" = name.as_str() {
            arguments = match self.bind_sequence_call(name, arguments, position)? {
                Ok(bound) => return Ok(bound),
                Err(arguments) => arguments,
            };
        }
        let count = arguments.len();
        match (name.as_str(), count) {
            ("coalesce", 1..) => {
                let all: Vec<&Bound> = arguments.iter().collect();
                let data_type = common_type("COALESCE", &all, position)?;
                coalesce(arguments, data_type, position)
            }
            ("array_fill", 2) => array_fill(arguments, position),
            ("make_timestamptz", 6 | 7) => {
                let zone = (count == 7).then(|| arguments.pop()).flatten();
                let local = overload::bind("make_timestamp", arguments, position)?;
                match zone {
                    Some(zone) => {
                        let zone = coerce(zone, &DataType::Text, CastContext::Implicit)?;
                        let operands = vec![zone, local];
                        let of = DataType::TIMESTAMPTZ;
                        Ok(functions::direct(
                            functions::MOMENT_IN_ZONE,
                            operands,
                            of,
                            position,
                        ))
                    }
                    None => coerce(local, &DataType::TIMESTAMPTZ, CastContext::Explicit),
                }
            }
            ("nullif", 2) => {
                let mut arguments = arguments.into_iter();
                let (Some(left), Some(right)) = (arguments.next(), arguments.next()) else {
                    return Err(unsupported("this call", position));
                };
                // The result has the type that the comparison takes the left side for; dates and
                // timestamps compare as they are.
                let is_moment = |bound: &Bound| {
                    !bound.is_unknown()
                        && matches!(
                            bound.data_type,
                            DataType::Date | DataType::Timestamp(_) | DataType::TimestampTz(_)
                        )
                };
                let (left, right) = match is_moment(&left) && is_moment(&right) {
                    true => (left, right),
                    false => operators::comparable("=", left, right, position)?,
                };
                // A CHAR without a length is for comparisons only.
                let left = match left.data_type {
                    DataType::Char(u32::MAX) => left.relabel(DataType::Text),
                    _ => left,
                };
                let left = self.share(left);
                let same = operators::compare(Comparison::Equal, left.clone(), right, position)?;
                let null = Bound::null(left.data_type.clone(), position);
                case(vec![(same, null)], Some(left), position)
            }
            ("greatest" | "least", 1..) => {
                let all: Vec<&Bound> = arguments.iter().collect();
                let data_type = common_type(&name.to_uppercase(), &all, position)?;
                let class = class_in(name, Needs::Order, &data_type, position)?;
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
                row_value::written(row, position)
            }
            ("now" | "current_timestamp" | "transaction_timestamp", 0) => {
                Ok(self.now(Now::Transaction, position))
            }
            ("pg_typeof", 1) => {
                let argument = &arguments[0];
                let object = match self.domain_shown(argument) {
                    _ if argument.is_unknown() => unknown_type(),
                    Some(domain) => {
                        let oid = self.catalog.domain_oid(&domain);
                        let name = functions::quote_identifier(&domain);
                        Value::Object(Box::new(ObjectName { oid, name }))
                    }
                    None => type_object(&argument.data_type),
                };
                let data_type = DataType::Catalog(CatalogType::RegType);
                Ok(Bound::constant(object, data_type, position))
            }
            ("statement_timestamp", 0) => Ok(self.now(Now::Statement, position)),
            ("localtimestamp", 0) => {
                let now = self.now(Now::Transaction, position);
                coerce(now, &DataType::TIMESTAMP, CastContext::Explicit)
            }
            ("localtime", 0) => {
                let now = self.now(Now::Transaction, position);
                coerce(now, &DataType::TIME, CastContext::Explicit)
            }
            ("current_timestamp" | "localtimestamp" | "localtime", 1)
                if let Kind::Constant(Value::Integer(digits)) = arguments[0].kind =>
            {
                let digits = u8::try_from(digits.clamp(0, 6)).ok();
                let target = match name.as_str() {
                    "current_timestamp" => DataType::TimestampTz(digits),
                    "localtimestamp" => DataType::Timestamp(digits),
                    _ => DataType::Time(digits),
                };
                let now = self.now(Now::Transaction, position);
                coerce(now, &target, CastContext::Explicit)
            }
            ("current_date", 0) => {
                let now = self.now(Now::Transaction, position);
                coerce(now, &DataType::Date, CastContext::Explicit)
            }
            ("age", 1) => {
                let today = self.now(Now::Transaction, position);
                let today = coerce(today, &DataType::Date, CastContext::Explicit)?;
                let today = coerce(today, &DataType::TIMESTAMP, CastContext::Explicit)?;
                arguments.insert(0, today);
                overload::bind("age", arguments, position)
            }
            ("array_position" | "array_positions" | "array_remove", 2)
            | ("array_position" | "array_replace", 3) => arrays::search(name, arguments, position),
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
                overload::bind(name, padded_arguments, position)
            }
            ("quote_literal" | "quote_nullable", 1)
                if !arguments[0].is_unknown() && !arguments[0].data_type.is_string() =>
            {
                let text = super::coerce::to_text(arguments.remove(0))?;
                overload::bind(name, vec![text], position)
            }
            ("array_to_string", 2 | 3) if !arguments[0].is_unknown() => {
                let array = arguments.remove(0);
                arguments.insert(0, self.texts_of(array, position)?);
                overload::bind(name, arguments, position)
            }
            _ if !functions::exists(name) && self.knows_routine(name) => {
                let given = arguments.into_iter().map(|bound| (None, bound)).collect();
                self.bind_routine(name, given, position)
            }
            _ => overload::bind(name, arguments, position),
        }
    }

    /// The elements of an array as they are printed.
    pub(super) fn texts_of(&mut self, array: Bound, position: Position) -> Result<Bound> {
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
            DataType::Array(element)
                if element.is_string() && !matches!(**element, DataType::Char(_)) =>
            {
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
            DataType::Array(element) => {
                let element = Bound::text(element.described());
                let style = super::coerce::style_for(&[&array.data_type], position);
                let named = functions::cast_array::ARRAY_TO_OUTPUT_TEXTS;
                Ok(call(named, vec![array, element, style], texts, position))
            }
            _ => Err(unsupported("array_to_string of this type", position)),
        }
    }

    /// The session's style: read once, before anything else.
    pub(super) fn style(&mut self) -> Bound {
        let target = self.style.unwrap_or_else(|| {
            let target = self.builder.register(DataType::Bytea);
            let (name, function) = functions::STYLE;
            self.builder.prologue(Instruction::Call {
                function,
                name,
                target,
                arguments: Box::default(),
            });
            self.style = Some(target);
            target
        });
        Bound::register(target, DataType::Bytea, None)
    }

    /// The time at which the transaction or the statement began: read once, before anything else.
    pub(super) fn now(&mut self, now: Now, position: Position) -> Bound {
        let now = match self.is_one_moment {
            true => Now::Transaction,
            false => now,
        };
        let known = self.clocks.iter().find(|(known, _)| *known == now);
        let register = known.map(|(_, register)| *register);
        let register = register.unwrap_or_else(|| {
            let target = self.builder.register(DataType::TIMESTAMPTZ);
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
        Bound::register(register, DataType::TIMESTAMPTZ, position)
    }
}

/// The name of what is called. Functions of extensions are found in every schema: a procedure that
/// calls one keeps its meaning whatever becomes of the extension and its schema.
fn callee_name(name: &sqlparser::ast::ObjectName) -> Result<String> {
    if let [_, last] = name.0.as_slice()
        && let Some(last) = last.as_ident().map(name_of)
        && Extension::has_function(&last)
    {
        return Ok(last);
    }
    object_name(name)
}

/// The call with `row.*` among its arguments as expressions; `None` where there is none.
fn with_rows(function: &Function) -> Option<Function> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let is_row = |argument: &FunctionArg| {
        matches!(
            argument,
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_))
        )
    };
    if !list.args.iter().any(is_row) {
        return None;
    }
    let mut function = function.clone();
    if let FunctionArguments::List(list) = &mut function.args {
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = argument {
                let row = Expr::QualifiedWildcard(name.clone(), AttachedToken::empty());
                *argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(row));
            }
        }
    }
    Some(function)
}

fn read_call(function: &Function) -> Result<Call<'_>> {
    let position = position_of(function);
    let schema = function.name.0.first().and_then(|part| part.as_ident());
    if schema.is_some_and(|schema| name_of(schema) == "information_schema") {
        let what = format!("function {}", function.name);
        return Err(unsupported(what, position));
    }
    let name = callee_name(&function.name)?;
    let refuse = |what: &str| Err(unsupported(what, position));
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
        order: &[],
        within: &function.within_group,
        position,
    };
    let list = match &function.args {
        FunctionArguments::None => return Ok(call),
        FunctionArguments::Subquery(_) => return refuse("a subquery as the arguments of a call"),
        FunctionArguments::List(list) => list,
    };
    match list.clauses.first() {
        None => {}
        Some(FunctionArgumentClause::OrderBy(order)) => call.order = order,
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

/// `array_fill(value, lengths)`.
///
/// # Errors
/// 42804 for a value without a type.
fn array_fill(mut arguments: Vec<Bound>, position: Position) -> Result<Bound> {
    let (Some(lengths), Some(value)) = (arguments.pop(), arguments.pop()) else {
        return Err(unsupported("this call", position));
    };
    if value.is_unknown() {
        let message = "could not determine polymorphic type because input has type unknown";
        return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
    }
    if value.data_type.element().is_some() {
        return Err(unsupported("an array of more than one dimension", position));
    }
    let wanted = DataType::array(DataType::Integer);
    let lengths = coerce(lengths, &wanted, CastContext::Implicit)?;
    let data_type = DataType::array(value.data_type.without_modifier());
    let operands = vec![value, lengths];
    Ok(functions::direct(
        functions::ARRAY_FILL,
        operands,
        data_type,
        position,
    ))
}
