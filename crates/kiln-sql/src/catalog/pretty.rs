//! Expressions as PostgreSQL prints them for people: without the parentheses that nothing needs.

use sqlparser::ast::{
    Array, BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, UnaryOperator,
};

use super::expression::cast_target;
use crate::compile::ddl::over_value;
use crate::compile::stored_expression;

/// An expression that [`super::expression`] has printed, without superfluous parentheses.
pub(super) fn pretty(text: &str) -> String {
    match stored_expression(text) {
        Ok(expr) => print(&expr),
        Err(_) => text.to_owned(),
    }
}

/// The same, of an expression over the VALUE of a domain.
pub(super) fn pretty_over_value(text: &str) -> String {
    match stored_expression(text) {
        Ok(expr) => print(&over_value(&expr)),
        Err(_) => text.to_owned(),
    }
}

/// What an expression stands in.
#[derive(Clone, Copy, PartialEq)]
enum Parent<'a> {
    /// AND or OR.
    Connective(&'a BinaryOperator),
    /// NOT.
    Not,
    /// An operator, and whether the expression is its first operand.
    Operator(&'a str, bool),
    /// A cast, IS NULL, and the like.
    Other,
}

fn without_nesting(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => without_nesting(inner),
        other => other,
    }
}

/// An expression within another one.
fn within(expr: &Expr, parent: Parent<'_>) -> String {
    let expr = without_nesting(expr);
    let printed = print(expr);
    match is_simple(expr, parent) {
        true => printed,
        false => format!("({printed})"),
    }
}

/// Whether an expression needs no parentheses, as PostgreSQL decides it (`isSimpleNode` of its
/// `ruleutils.c`).
fn is_simple(expr: &Expr, parent: Parent<'_>) -> bool {
    let priority = |op: &str| match op {
        "+" | "-" => Some(0),
        "*" | "/" | "%" => Some(1),
        _ => None,
    };
    match expr {
        Expr::BinaryOp { op, .. } if matches!(op, BinaryOperator::And | BinaryOperator::Or) => {
            match parent {
                Parent::Connective(outer) => {
                    *op == BinaryOperator::And || *outer == BinaryOperator::Or
                }
                _ => false,
            }
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            ..
        } => matches!(parent, Parent::Connective(_)),
        Expr::BinaryOp { op, .. } => match parent {
            Parent::Connective(_) | Parent::Not => true,
            Parent::Operator(outer, is_first) => {
                match (priority(&op.to_string()), priority(outer)) {
                    (Some(own), Some(outer)) => own > outer || own == outer && is_first,
                    _ => false,
                }
            }
            Parent::Other => false,
        },
        Expr::UnaryOp { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsDistinctFrom(..)
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => matches!(parent, Parent::Connective(_) | Parent::Not),
        _ => true,
    }
}

fn print(expr: &Expr) -> String {
    let test = |operand: &Expr, test: &str| format!("{} {test}", within(operand, Parent::Other));
    match without_nesting(expr) {
        Expr::BinaryOp { left, op, right } => {
            let printed = op.to_string();
            let (first, second) = match op {
                BinaryOperator::And | BinaryOperator::Or => {
                    (Parent::Connective(op), Parent::Connective(op))
                }
                _ => (
                    Parent::Operator(&printed, true),
                    Parent::Operator(&printed, false),
                ),
            };
            format!(
                "{} {printed} {}",
                within(left, first),
                within(right, second)
            )
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: operand,
        } => format!("NOT {}", within(operand, Parent::Not)),
        Expr::UnaryOp { op, expr: operand } => {
            format!("{op} {}", within(operand, Parent::Operator("", false)))
        }
        Expr::IsNull(operand) => test(operand, "IS NULL"),
        Expr::IsNotNull(operand) => test(operand, "IS NOT NULL"),
        Expr::IsTrue(operand) => test(operand, "IS TRUE"),
        Expr::IsNotTrue(operand) => test(operand, "IS NOT TRUE"),
        Expr::IsFalse(operand) => test(operand, "IS FALSE"),
        Expr::IsNotFalse(operand) => test(operand, "IS NOT FALSE"),
        Expr::IsDistinctFrom(left, right) => format!(
            "{} IS DISTINCT FROM {}",
            within(left, Parent::Other),
            within(right, Parent::Other)
        ),
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => quantified(left, compare_op, "ANY", right),
        Expr::AllOp {
            left,
            compare_op,
            right,
        } => quantified(left, compare_op, "ALL", right),
        Expr::Cast {
            kind: CastKind::DoubleColon | CastKind::Cast,
            expr: operand,
            data_type,
            ..
        } => format!(
            "{}::{}",
            within(operand, Parent::Other),
            cast_target(data_type)
        ),
        Expr::Array(Array { elem, .. }) => {
            let elements: Vec<String> = elem.iter().map(print).collect();
            format!("ARRAY[{}]", elements.join(", "))
        }
        Expr::Function(function) => call(function),
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            let mut text = "\nCASE".to_owned();
            if let Some(operand) = operand {
                text += &format!(" {}", print(operand));
            }
            for when in conditions {
                let (condition, result) = (print(&when.condition), print(&when.result));
                text += &format!("\n    WHEN {condition} THEN {result}");
            }
            let otherwise = else_result.as_ref().map(|expr| print(expr));
            text + &format!(
                "\n    ELSE {}\nEND",
                otherwise.unwrap_or_else(|| "NULL".to_owned())
            )
        }
        other => other.to_string(),
    }
}

fn quantified(left: &Expr, op: &BinaryOperator, quantifier: &str, right: &Expr) -> String {
    let left = within(left, Parent::Other);
    format!("{left} {op} {quantifier} ({})", print(right))
}

fn call(function: &Function) -> String {
    let FunctionArguments::List(list) = &function.args else {
        return function.to_string().to_uppercase();
    };
    let arguments: Vec<String> = list
        .args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => print(expr),
            other => other.to_string(),
        })
        .collect();
    format!("{}({})", function.name, arguments.join(", "))
}

#[cfg(test)]
mod tests {
    use super::pretty;

    /// What `pg_get_constraintdef(oid, true)` of PostgreSQL 15 makes of what it prints otherwise.
    #[test]
    fn parentheses_that_nothing_needs_are_left_out() {
        for (text, printed) in [
            ("(price >= (0)::numeric)", "price >= 0::numeric"),
            (
                "((length((name)::text) > 2) AND ((name)::text <> 'bad'::text))",
                "length(name::text) > 2 AND name::text <> 'bad'::text",
            ),
            ("((a + b) * 2)", "(a + b) * 2"),
            ("((a * b) + 2)", "a * b + 2"),
            ("((a - b) - c)", "a - b - c"),
            ("(a - (b - c))", "a - (b - c)"),
            ("((a OR b) AND c)", "(a OR b) AND c"),
            ("((a AND b) OR c)", "a AND b OR c"),
            ("(NOT (a IS NULL))", "NOT a IS NULL"),
            ("(NOT (a AND b))", "NOT (a AND b)"),
            ("(NOT (a = 3))", "NOT a = 3"),
            ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
            ("now()", "now()"),
            (
                "(kind = ANY (ARRAY['a'::text, 'b'::text]))",
                "kind = ANY (ARRAY['a'::text, 'b'::text])",
            ),
            ("((a + b) > (c)::numeric)", "(a + b) > c::numeric"),
            ("'abc'::bpchar", "'abc'::bpchar"),
            ("'-5'::integer", "'-5'::integer"),
            (
                "(name = ('x'::bpchar)::character(3))",
                "name = 'x'::bpchar::character(3)",
            ),
        ] {
            assert_eq!(pretty(text), printed);
        }
    }
}
