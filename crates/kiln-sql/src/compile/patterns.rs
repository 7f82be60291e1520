//! Tests of texts by patterns: LIKE, SIMILAR TO and regular expressions.

use kiln_storage::error::Result;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{BinaryOperator, Expr};

use super::bound::Bound;
use super::category::no_operator;
use super::coerce::{CastContext, coerce, padded};
use super::constant::call;
use super::{Compiler, Position, functions, operators, position_of};

/// A test of a text by a pattern.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    pub syntax: Syntax,
    pub ignore_case: bool,
    pub negated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Like,
    Similar,
    Regex,
}

impl Pattern {
    pub(super) fn like(ignore_case: bool, negated: bool) -> Pattern {
        Pattern {
            syntax: Syntax::Like,
            ignore_case,
            negated,
        }
    }

    /// The test that an operator makes.
    pub(super) fn of(op: &BinaryOperator) -> Option<Pattern> {
        let (syntax, ignore_case, negated) = match op {
            BinaryOperator::PGLikeMatch => (Syntax::Like, false, false),
            BinaryOperator::PGILikeMatch => (Syntax::Like, true, false),
            BinaryOperator::PGNotLikeMatch => (Syntax::Like, false, true),
            BinaryOperator::PGNotILikeMatch => (Syntax::Like, true, true),
            BinaryOperator::PGRegexMatch => (Syntax::Regex, false, false),
            BinaryOperator::PGRegexIMatch => (Syntax::Regex, true, false),
            BinaryOperator::PGRegexNotMatch => (Syntax::Regex, false, true),
            BinaryOperator::PGRegexNotIMatch => (Syntax::Regex, true, true),
            _ => return None,
        };
        Some(Pattern {
            syntax,
            ignore_case,
            negated,
        })
    }

    /// The operator, for messages.
    fn symbol(self) -> &'static str {
        match (self.syntax, self.ignore_case, self.negated) {
            (Syntax::Similar, _, false) => "SIMILAR TO",
            (Syntax::Similar, _, true) => "NOT SIMILAR TO",
            (Syntax::Like, false, false) => "~~",
            (Syntax::Like, false, true) => "!~~",
            (Syntax::Like, true, false) => "~~*",
            (Syntax::Like, true, true) => "!~~*",
            (Syntax::Regex, false, false) => "~",
            (Syntax::Regex, false, true) => "!~",
            (Syntax::Regex, true, false) => "~*",
            (Syntax::Regex, true, true) => "!~*",
        }
    }
}

/// Binds a test of a text by a pattern.
pub(super) fn pattern_test(
    test: Pattern,
    left: Bound,
    right: Bound,
    escape: Option<Bound>,
    position: Position,
) -> Result<Bound> {
    let is_text = |bound: &Bound| bound.is_unknown() || bound.data_type.is_string();
    if !is_text(&left) || !is_text(&right) {
        return Err(no_operator(test.symbol(), &left, &right, position));
    }
    // A pattern sees the padding of CHAR(n).
    let left = match left.data_type {
        DataType::Char(length) if !left.is_unknown() => padded(left, length),
        _ => coerce(left, &DataType::Text, CastContext::Implicit)?,
    };
    let right = coerce(right, &DataType::Text, CastContext::Implicit)?;
    let known = match right.as_constant() {
        Some(Value::Text(pattern)) => Some(pattern.clone()),
        _ => None,
    };
    let (named, instead) = match test.syntax {
        Syntax::Like => functions::like(known.as_deref(), test.ignore_case, escape.is_some()),
        Syntax::Similar => (functions::similar_to(escape.is_some()), None),
        Syntax::Regex => (functions::regex_match(test.ignore_case), None),
    };
    let right = match instead {
        Some(text) => Bound::text(text),
        None => right,
    };
    let mut operands = vec![left, right];
    operands.extend(escape);
    let matches = call(named, operands, DataType::Boolean, position);
    Ok(match test.negated {
        true => operators::not(matches),
        false => matches,
    })
}

impl Compiler<'_> {
    pub(super) fn bind_pattern(
        &mut self,
        test: Pattern,
        operand: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
    ) -> Result<Bound> {
        let position = position_of(operand);
        let left = self.bind(operand)?;
        let right = self.bind(pattern)?;
        let escape = match escape {
            Some(escape) => Some(self.bind_as(escape, &DataType::Text, CastContext::Implicit)?),
            None => None,
        };
        pattern_test(test, left, right, escape, position)
    }
}
