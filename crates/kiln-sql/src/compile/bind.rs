//! Syntax trees of expressions to bound expressions.

use kiln_procedure::ir::{Arithmetic, Comparison};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value, parse_numeric};
use sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Ident, ObjectName, UnaryOperator, Value as Literal,
    ValueWithSpan,
};

use super::arrays;
use super::bound::{Bound, Kind};
use super::category::{common_type, no_operator};
use super::coerce::{CastContext, STORED_LITERAL, coerce, without_length};
use super::constant::call;
use super::domain::{coerce_to, type_of_value};
use super::order::{Needs, class_in};
use super::overload;
use super::patterns::{Pattern, Syntax, pattern_test};
use super::row_value;
use super::types::is_bpchar;
use super::unsupported;
use super::{
    Compiler, Position, fail, functions, operators, position_of, position_of_span, row_name,
};

/// How deep expressions and queries may nest; chains of one operator do not count.
const NESTING_MAX: usize = 200;

impl Compiler<'_> {
    /// Binds `expr`; a literal without a type becomes `expected`, or TEXT.
    pub(super) fn bind_expected(
        &mut self,
        expr: &Expr,
        expected: Option<&DataType>,
    ) -> Result<Bound> {
        let bound = self.bind(expr)?;
        if bound.is_unknown() {
            let data_type = expected.unwrap_or(&bound.data_type).clone();
            return coerce(bound, &data_type, CastContext::Assignment);
        }
        Ok(bound)
    }

    /// Binds `expr` and converts it.
    pub(super) fn bind_as(
        &mut self,
        expr: &Expr,
        data_type: &DataType,
        context: CastContext,
    ) -> Result<Bound> {
        let bound = self.bind(expr)?;
        coerce(bound, data_type, context)
    }

    /// Binds a condition, which must be BOOLEAN.
    pub(super) fn bind_condition(&mut self, expr: &Expr, clause: &str) -> Result<Bound> {
        let bound = self.bind(expr)?;
        as_boolean(bound, clause)
    }

    /// Binds `expr`.
    pub(super) fn bind(&mut self, expr: &Expr) -> Result<Bound> {
        self.nesting += 1;
        let result = if self.nesting > NESTING_MAX {
            Err(fail(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
                position_of(expr),
            ))
        } else {
            self.bind_node(expr)
        };
        self.nesting -= 1;
        result
    }

    fn bind_node(&mut self, expr: &Expr) -> Result<Bound> {
        match expr {
            // A function that is called without parentheses.
            Expr::Identifier(ident)
                if ident.quote_style.is_none() && ident.value == "current_schema" =>
            {
                overload::bind("current_schema", Vec::new(), position_of(expr))
            }
            Expr::Identifier(ident) => self.resolve(std::slice::from_ref(ident)),
            Expr::CompoundIdentifier(idents) => self.resolve(idents),
            Expr::Value(value) => self.bind_literal(value),
            Expr::Nested(inner) => self.bind(inner),
            Expr::BinaryOp { .. } => self.bind_chain(expr),
            Expr::UnaryOp { op, expr } => self.bind_unary(*op, expr),
            Expr::Function(function) => self.bind_function(function),
            Expr::Cast {
                kind,
                expr,
                data_type,
                format,
            } => {
                if format.is_some() || !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
                    return Err(unsupported("this form of cast", position_of(&**expr)));
                }
                let position = position_of(&**expr);
                if is_bpchar(data_type) {
                    return self.bind_bpchar(expr);
                }
                let target = type_of_value(data_type, self, position)?;
                let bound = match (&**expr, &target.data_type) {
                    (Expr::Array(array), DataType::Array(element)) => {
                        self.bind_array(&array.elem, Some(element), position)?
                    }
                    _ => self.bind(expr)?,
                };
                coerce_to(bound, &target, CastContext::Explicit)
            }
            Expr::Case { .. } => {
                self.without_rows(Some("CASE"), |compiler| compiler.bind_case(expr))
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.bind_access(root, access_chain)
            }
            _ => self.bind_test(expr),
        }
    }

    /// `… :: bpchar`, as PostgreSQL writes constants of CHAR. It has no length of its own, but that
    /// of its operand.
    fn bind_bpchar(&mut self, expr: &Expr) -> Result<Bound> {
        let position = position_of(expr);
        let bound = self.bind(expr)?;
        let length = match (&bound.kind, &bound.data_type) {
            (Kind::Unknown(None) | Kind::Constant(Value::Null), _) => 1,
            (Kind::Unknown(Some(text)) | Kind::Constant(Value::Text(text)), _) => {
                text.chars().count().max(1) as u32
            }
            (_, DataType::Char(_)) => return Ok(bound),
            (_, DataType::VarChar(Some(length))) => *length,
            _ => return Err(unsupported("type bpchar without a length", position)),
        };
        coerce(bound, &DataType::Char(length), CastContext::Explicit)
    }

    /// Predicates and what is left after [`Compiler::bind_node`].
    fn bind_test(&mut self, expr: &Expr) -> Result<Bound> {
        let position = position_of(expr);
        match expr {
            Expr::IsNull(inner) => operators::is_null(self.bind(inner)?, false, position),
            Expr::IsNotNull(inner) => operators::is_null(self.bind(inner)?, true, position),
            Expr::IsTrue(inner) => self.bind_truth(inner, "IS TRUE", Some(true), false),
            Expr::IsNotTrue(inner) => self.bind_truth(inner, "IS NOT TRUE", Some(true), true),
            Expr::IsFalse(inner) => self.bind_truth(inner, "IS FALSE", Some(false), false),
            Expr::IsNotFalse(inner) => self.bind_truth(inner, "IS NOT FALSE", Some(false), true),
            Expr::IsUnknown(inner) => self.bind_truth(inner, "IS UNKNOWN", None, false),
            Expr::IsNotUnknown(inner) => self.bind_truth(inner, "IS NOT UNKNOWN", None, true),
            Expr::IsNormalized {
                expr,
                form,
                negated,
            } => {
                let form = form.map_or("NFC".to_owned(), |form| form.to_string());
                let arguments = vec![self.bind(expr)?, Bound::text(form)];
                let is_normal = overload::bind("is_normalized", arguments, position)?;
                match negated {
                    true => Ok(operators::not(is_normal)),
                    false => Ok(is_normal),
                }
            }
            Expr::IsDistinctFrom(left, right) => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                operators::compare(Comparison::Distinct, left, right, position)
            }
            Expr::IsNotDistinctFrom(left, right) => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                operators::compare(Comparison::NotDistinct, left, right, position)
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => {
                let left = self.bind(expr)?;
                let items: Result<Vec<Bound>> = list.iter().map(|item| self.bind(item)).collect();
                let (left, items) = alike(left, items?, position)?;
                let left = self.share(left);
                let mut tests = Vec::with_capacity(items.len());
                for item in items {
                    tests.push(operators::compare(
                        Comparison::Equal,
                        left.clone(),
                        item,
                        position,
                    )?);
                }
                let test = operators::any(tests);
                Ok(if *negated { operators::not(test) } else { test })
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let operand = self.bind(expr)?;
                let operand = self.share(operand);
                let low = self.bind(low)?;
                let lower =
                    operators::compare(Comparison::GreaterOrEqual, operand.clone(), low, position)?;
                // A parameter has got its type from the lower bound.
                let operand = match operand.is_open_parameter() {
                    true => self.bind(expr)?,
                    false => operand,
                };
                let high = self.bind(high)?;
                let upper = operators::compare(Comparison::LessOrEqual, operand, high, position)?;
                let test = operators::all(vec![lower, upper]);
                Ok(if *negated { operators::not(test) } else { test })
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => {
                let test = Pattern::like(false, *negated);
                self.bind_pattern(test, expr, pattern, escape_char.as_deref())
            }
            Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => {
                let test = Pattern::like(true, *negated);
                self.bind_pattern(test, expr, pattern, escape_char.as_deref())
            }
            Expr::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => {
                let test = Pattern {
                    syntax: Syntax::Similar,
                    ignore_case: false,
                    negated: *negated,
                };
                self.bind_pattern(test, expr, pattern, escape_char.as_deref())
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.bind_quantified(left, compare_op, right, false),
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => self.bind_quantified(left, compare_op, right, true),
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let equal =
                    |row, column| operators::compare(Comparison::Equal, row, column, position);
                let test = self.bind_subquery_test(expr, &equal, subquery, position)?;
                Ok(if *negated { operators::not(test) } else { test })
            }
            Expr::Exists { subquery, negated } => {
                let test = self.bind_exists(subquery, position)?;
                Ok(if *negated { operators::not(test) } else { test })
            }
            Expr::Subquery(query) => self.bind_scalar_subquery(query, position),
            Expr::Tuple(items) => {
                let mut row = Vec::with_capacity(items.len());
                for item in items {
                    // A comparison of rows may name an item several times.
                    let item = self.bind(item)?;
                    row.push(self.share(item));
                }
                row_value::written(row, position)
            }
            Expr::QualifiedWildcard(name, _) => self.bind_row_of(name),
            _ => self.bind_special(expr),
        }
    }

    /// The value of `row.*`, which is that of the row.
    pub(super) fn bind_row_of(&mut self, name: &ObjectName) -> Result<Bound> {
        let position = position_of(name);
        let row = row_name(name)?;
        match self.row_named(&row) {
            Some(source) => self.whole_row(source, position),
            None => self.resolve(&[Ident::with_quote('"', row)]),
        }
    }

    /// Binds a chain of binary operators without recursing along its left side.
    fn bind_chain(&mut self, expr: &Expr) -> Result<Bound> {
        let mut rest = Vec::new();
        let mut first = expr;
        while let Expr::BinaryOp { left, op, right } = first {
            rest.push((op, right));
            first = left;
        }
        let mut result = self.bind(first)?;
        // Runs of AND and of OR are collected: the tree is as flat as it can be.
        let mut pending: Option<(bool, Vec<Bound>)> = None;
        let join = |pending: Option<(bool, Vec<Bound>)>, last: Bound| match pending {
            None => last,
            Some((is_and, mut operands)) => {
                operands.push(last);
                if is_and {
                    operators::all(operands)
                } else {
                    operators::any(operands)
                }
            }
        };
        while let Some((op, right)) = rest.pop() {
            let is_and = match op {
                BinaryOperator::And => Some(true),
                BinaryOperator::Or => Some(false),
                _ => None,
            };
            let Some(is_and) = is_and else {
                let left = join(pending.take(), result);
                result = self.bind_operator(left, op, right)?;
                continue;
            };
            let name = if is_and { "AND" } else { "OR" };
            match &mut pending {
                Some((known, operands)) if *known == is_and => operands.push(result),
                _ => {
                    let left = as_boolean(join(pending.take(), result), name)?;
                    pending = Some((is_and, vec![left]));
                }
            }
            result = as_boolean(self.bind(right)?, name)?;
        }
        Ok(join(pending, result))
    }

    fn bind_operator(&mut self, left: Bound, op: &BinaryOperator, right: &Expr) -> Result<Bound> {
        let position = left.position;
        if let Some(comparison) = comparison_of(op) {
            let right = self.bind(right)?;
            return operators::compare(comparison, left, right, position);
        }
        let arithmetic = match op {
            BinaryOperator::Plus => Some(Arithmetic::Add),
            BinaryOperator::Minus => Some(Arithmetic::Subtract),
            BinaryOperator::Multiply => Some(Arithmetic::Multiply),
            BinaryOperator::Divide => Some(Arithmetic::Divide),
            BinaryOperator::Modulo => Some(Arithmetic::Remainder),
            _ => None,
        };
        if let Some(arithmetic) = arithmetic {
            let right = self.bind(right)?;
            return operators::arithmetic(arithmetic, left, right, position);
        }
        let right = self.bind(right)?;
        match op {
            BinaryOperator::StringConcat => operators::concatenate(left, right, position),
            BinaryOperator::PGExp => operators::power(left, right, position),
            BinaryOperator::BitwiseAnd => operators::bitwise("&", left, right, position),
            BinaryOperator::BitwiseOr => operators::bitwise("|", left, right, position),
            BinaryOperator::PGBitwiseXor => operators::bitwise("#", left, right, position),
            BinaryOperator::PGBitwiseShiftLeft => operators::bitwise("<<", left, right, position),
            BinaryOperator::PGBitwiseShiftRight => operators::bitwise(">>", left, right, position),
            BinaryOperator::PGStartsWith => {
                overload::bind("starts_with", vec![left, right], position)
            }
            BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::AtArrow
            | BinaryOperator::ArrowAt
            | BinaryOperator::HashMinus
            | BinaryOperator::AtQuestion
            | BinaryOperator::AtAt
            | BinaryOperator::Question
            | BinaryOperator::QuestionAnd
            | BinaryOperator::QuestionPipe
            | BinaryOperator::PGOverlap => {
                let symbol = op.to_string();
                let is_of_sets = matches!(symbol.as_str(), "@>" | "<@" | "&&");
                let is_array = |bound: &Bound| arrays::element_of(bound).is_some();
                match is_of_sets && (is_array(&left) || is_array(&right)) {
                    true => arrays::compare_sets(&symbol, left, right, position),
                    false => operators::by_symbol(&symbol, left, right, position),
                }
            }
            other => match Pattern::of(other) {
                Some(pattern) => pattern_test(pattern, left, right, None, position),
                None if let BinaryOperator::PGCustomBinaryOperator(name) = other => {
                    Err(unknown_operator(name, &left, &right, position))
                }
                None => Err(unsupported(format!("operator {other}"), position)),
            },
        }
    }

    fn bind_unary(&mut self, op: UnaryOperator, operand: &Expr) -> Result<Bound> {
        let position = position_of(operand);
        match op {
            UnaryOperator::Minus => {
                // `-9223372036854775808` is one literal: its digits alone would be too large.
                if let Expr::Value(ValueWithSpan {
                    value: Literal::Number(digits, _),
                    ..
                }) = operand
                {
                    return number(&format!("-{digits}"), position);
                }
                let bound = self.bind(operand)?;
                operators::negate(bound, position)
            }
            UnaryOperator::Plus => {
                let bound = self.bind(operand)?;
                if bound.is_unknown() {
                    return coerce(bound, &DataType::Double, CastContext::Implicit);
                }
                if !operators::is_number(&bound.data_type) {
                    return Err(operators::no_unary("+", &bound.type_name(), position));
                }
                Ok(bound)
            }
            UnaryOperator::Not => {
                let bound = self.bind(operand)?;
                Ok(operators::not(as_boolean(bound, "NOT")?))
            }
            UnaryOperator::BitwiseNot => {
                let bound = self.bind(operand)?;
                match functions::integer_operator("~", 8) {
                    Some(named) if !bound.is_unknown() && bound.data_type.is_integer() => {
                        let data_type = bound.data_type.clone();
                        Ok(call(named, vec![bound], data_type, position))
                    }
                    _ => Err(operators::no_unary("~", &bound.type_name(), position)),
                }
            }
            UnaryOperator::PGAbs => {
                let bound = self.bind(operand)?;
                overload::bind("abs", vec![bound], position)
            }
            UnaryOperator::PGSquareRoot => {
                let bound = self.bind(operand)?;
                let bound = coerce(bound, &DataType::Double, CastContext::Implicit)?;
                overload::bind("sqrt", vec![bound], position)
            }
            UnaryOperator::PGCubeRoot => {
                let bound = self.bind(operand)?;
                overload::bind("cbrt", vec![bound], position)
            }
            other => Err(unsupported(format!("operator {other}"), position)),
        }
    }

    fn bind_literal(&mut self, literal: &ValueWithSpan) -> Result<Bound> {
        let position = position_of_span(literal.span);
        let data_type = match position {
            Some(_) => DataType::Text,
            None => STORED_LITERAL,
        };
        let open = |text: Option<String>| Bound::new(Kind::Unknown(text), data_type, position);
        Ok(match &literal.value {
            Literal::Number(digits, _) => return number(digits, position),
            Literal::SingleQuotedString(text)
            | Literal::EscapedStringLiteral(text)
            | Literal::UnicodeStringLiteral(text)
            | Literal::NationalStringLiteral(text) => open(Some(text.clone())),
            Literal::DollarQuotedString(text) => open(Some(text.value.clone())),
            Literal::Boolean(value) => {
                Bound::constant(Value::Boolean(*value), DataType::Boolean, position)
            }
            Literal::Null => open(None),
            Literal::Placeholder(name) => return self.placeholder(name, position),
            other => return Err(unsupported(format!("the literal {other}"), position)),
        })
    }

    /// `operand IS [NOT] TRUE`, FALSE or UNKNOWN.
    fn bind_truth(
        &mut self,
        operand: &Expr,
        name: &str,
        value: Option<bool>,
        negated: bool,
    ) -> Result<Bound> {
        let position = position_of(operand);
        let bound = as_boolean(self.bind(operand)?, name)?;
        match value {
            None => operators::is_null(bound, negated, position),
            Some(value) => {
                let comparison = if negated {
                    Comparison::Distinct
                } else {
                    Comparison::NotDistinct
                };
                operators::compare(comparison, bound, Bound::boolean(value), position)
            }
        }
    }

    fn bind_case(&mut self, expr: &Expr) -> Result<Bound> {
        let position = position_of(expr);
        let Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } = expr
        else {
            return Err(unsupported("this expression", position));
        };
        let operand = match operand {
            Some(operand) => {
                let bound = self.bind(operand)?;
                let bound = if bound.is_unknown() {
                    coerce(bound, &DataType::Text, CastContext::Implicit)?
                } else {
                    bound
                };
                Some(self.share(bound))
            }
            None => None,
        };
        let mut branches = Vec::with_capacity(conditions.len());
        for when in conditions {
            let condition = self.bind(&when.condition)?;
            let condition = match &operand {
                Some(operand) => operators::compare(
                    Comparison::Equal,
                    operand.clone(),
                    condition,
                    position_of(&when.condition),
                )?,
                None => as_boolean(condition, "CASE/WHEN")?,
            };
            branches.push((condition, self.bind(&when.result)?));
        }
        let otherwise = match else_result {
            Some(expr) => Some(self.bind(expr)?),
            None => None,
        };
        case(branches, otherwise, position)
    }

    /// `left <op> ANY (array or subquery)`, or ALL.
    fn bind_quantified(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        all: bool,
    ) -> Result<Bound> {
        let position = position_of(left);
        let mut inner = right;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        let test = match (comparison_of(op), inner) {
            (Some(comparison), inner) => {
                // `x < ALL (…)` is `NOT (x >= ANY (…))`, in three values too.
                let comparison = if all { inverse(comparison) } else { comparison };
                match inner {
                    Expr::Subquery(query) => self.bind_subquery_test(
                        left,
                        &|row, column| operators::compare(comparison, row, column, position),
                        query,
                        position,
                    )?,
                    _ => {
                        let left = self.bind(left)?;
                        let right = self.bind(inner)?;
                        any_of_array(comparison, left, right, position)?
                    }
                }
            }
            (None, inner) => {
                let Some(mut pattern) = Pattern::of(op) else {
                    let what = format!("operator {op} with ANY or ALL");
                    return Err(unsupported(what, position));
                };
                pattern.negated ^= all;
                let test = |row, column| pattern_test(pattern, row, column, None, position);
                match inner {
                    Expr::Subquery(query) => {
                        self.bind_subquery_test(left, &test, query, position)?
                    }
                    _ => {
                        let array = self.bind(inner)?;
                        self.bind_array_test(left, &test, array, position)?
                    }
                }
            }
        };
        Ok(if all { operators::not(test) } else { test })
    }

    /// Makes an operand that is used several times be computed once.
    pub(super) fn share(&mut self, bound: Bound) -> Bound {
        if bound.is_simple() || matches!(bound.kind, Kind::Row(_)) {
            return bound;
        }
        self.shared = self.shared.wrapping_add(1);
        let Bound {
            data_type,
            position,
            ..
        } = &bound;
        let (data_type, position) = (data_type.clone(), *position);
        Bound::new(
            Kind::Shared(self.shared, Box::new(bound)),
            data_type,
            position,
        )
    }
}

/// The operands of IN. Where the list has several items that are no columns, open parameters get
/// the type that all of these have in common with the left side.
fn alike(left: Bound, items: Vec<Bound>, position: Position) -> Result<(Bound, Vec<Bound>)> {
    let is_column = |bound: &Bound| bound.any(|part| matches!(part.kind, Kind::Column { .. }));
    let values = items.iter().filter(|item| !is_column(item));
    let mut all: Vec<&Bound> = values.collect();
    all.insert(0, &left);
    if all.len() < 3 || !all.iter().any(|bound| bound.is_open_parameter()) {
        return Ok((left, items));
    }
    let Ok(common) = common_type("IN", &all, position) else {
        return Ok((left, items));
    };
    let decide = |bound: Bound| match bound.is_open_parameter() {
        true => coerce(bound, &without_length(&common), CastContext::Implicit),
        false => Ok(bound),
    };
    let items: Result<Vec<Bound>> = items.into_iter().map(decide).collect();
    Ok((decide(left)?, items?))
}

/// A vector as an array; anything else as it is.
pub(super) fn as_array(bound: Bound) -> Result<Bound> {
    match (&bound.data_type, bound.data_type.element()) {
        (DataType::Catalog(_), Some(element)) => {
            coerce(bound, &DataType::array(element), CastContext::Implicit)
        }
        _ => Ok(bound),
    }
}

fn any_of_array(
    comparison: Comparison,
    left: Bound,
    array: Bound,
    position: Position,
) -> Result<Bound> {
    let array = if array.is_unknown() {
        let element = if left.is_unknown() {
            DataType::Text
        } else {
            left.data_type.clone()
        };
        let target = DataType::array(element.without_modifier());
        coerce(array, &target, CastContext::Implicit)?
    } else {
        array
    };
    let array = as_array(array)?;
    let DataType::Array(element) = array.data_type.clone() else {
        return Err(fail(
            SqlState::WRONG_OBJECT_TYPE,
            "op ANY/ALL (array) requires array on right side",
            position,
        ));
    };
    let sample = Bound::null((*element).clone(), position);
    let symbol = operators::comparison_symbol(comparison);
    let (left, sample) = if left.is_unknown() {
        (coerce(left, &element, CastContext::Implicit)?, sample)
    } else {
        operators::comparable(symbol, left, sample, position)?
    };
    let target = DataType::array(sample.data_type.clone());
    let array = coerce(array, &target, CastContext::Implicit)?;
    let class = class_in("ANY or ALL", Needs::Equality, &sample.data_type, position)?;
    match functions::any_of(comparison, class) {
        Some(named) => Ok(call(named, vec![left, array], DataType::Boolean, position)),
        None => Err(unsupported("this comparison with ANY or ALL", position)),
    }
}

/// A number as PostgreSQL types it: INTEGER or BIGINT when it fits, else NUMERIC.
fn number(digits: &str, position: Position) -> Result<Bound> {
    if !digits.contains(['.', 'e', 'E']) {
        if let Ok(value) = digits.parse::<i32>() {
            return Ok(Bound::constant(
                Value::Integer(value),
                DataType::Integer,
                position,
            ));
        }
        if let Ok(value) = digits.parse::<i64>() {
            return Ok(Bound::constant(
                Value::BigInt(value),
                DataType::BigInt,
                position,
            ));
        }
    }
    // What NUMERIC cannot hold may still become a DOUBLE PRECISION.
    let Ok(value) = parse_numeric(digits) else {
        let open = Kind::Unknown(Some(digits.to_owned()));
        return Ok(Bound::new(open, DataType::NUMERIC, position));
    };
    Ok(Bound::constant(value, DataType::NUMERIC, position))
}

/// CASE over bound parts: brings the results to one type and drops what can never be taken.
pub(super) fn case(
    branches: Vec<(Bound, Bound)>,
    otherwise: Option<Bound>,
    position: Position,
) -> Result<Bound> {
    let results: Vec<&Bound> = branches.iter().map(|(_, result)| result).collect();
    // As in PostgreSQL what is behind ELSE counts first.
    let results: Vec<&Bound> = otherwise.iter().chain(results).collect();
    let data_type = common_type("CASE", &results, position)?;
    let mut kept = Vec::with_capacity(branches.len());
    let mut otherwise = match otherwise {
        Some(bound) => Some(coerce(bound, &data_type, CastContext::Implicit)?),
        None => None,
    };
    for (condition, result) in branches {
        let result = coerce(result, &data_type, CastContext::Implicit)?;
        match condition.as_constant() {
            Some(Value::Boolean(true)) => {
                otherwise = Some(result);
                break;
            }
            Some(Value::Boolean(false) | Value::Null) => {}
            _ => kept.push((condition, result)),
        }
    }
    if kept.is_empty() {
        let result = otherwise.unwrap_or_else(|| Bound::null(data_type.clone(), position));
        return Ok(Bound { position, ..result });
    }
    let kind = Kind::Case {
        branches: kept,
        otherwise: otherwise.map(Box::new),
    };
    Ok(Bound::new(kind, data_type, position))
}

/// The error of `OPERATOR(…)` that names none.
#[cold]
fn unknown_operator(
    name: &[String],
    left: &Bound,
    right: &Bound,
    position: Position,
) -> super::Error {
    match name {
        [schema, _] if schema != "pg_catalog" && schema != "public" => {
            let message = format!("schema \"{schema}\" does not exist");
            fail(SqlState::INVALID_SCHEMA_NAME, message, position)
        }
        _ => {
            let symbol = name.last().map_or("", String::as_str);
            no_operator(symbol, left, right, position)
        }
    }
}

/// The comparison that holds where another one does not.
fn inverse(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
        Comparison::Distinct => Comparison::NotDistinct,
        Comparison::NotDistinct => Comparison::Distinct,
    }
}

fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The operand as BOOLEAN.
///
/// # Errors
/// 42804 that names `what` when it is not.
pub(super) fn as_boolean(bound: Bound, what: &str) -> Result<Bound> {
    if bound.is_unknown() {
        return coerce(bound, &DataType::Boolean, CastContext::Implicit);
    }
    if bound.data_type == DataType::Boolean {
        return Ok(bound);
    }
    Err(fail(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "argument of {what} must be type boolean, not type {}",
            bound.type_name()
        ),
        bound.position,
    ))
}
