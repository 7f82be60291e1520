//! Expressions as PostgreSQL prints them: with all parentheses, and with the casts that it put in
//! when it analysed them.
//!
//! The catalog keeps CHECK conditions and default values as they were written. Their types are
//! asked of the compiler.

use std::collections::BTreeSet;

use sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator, Value as Literal,
};

use kiln_storage::schema::TableSchema;
use kiln_storage::types::DataType;

use crate::compile::{
    ddl::without_rows, expression_columns, expression_type, name_of, plain_type, quote_identifier,
    stored_expression,
};

/// The condition of a CHECK constraint.
pub(super) fn check(schema: &TableSchema, text: &str) -> String {
    Printer::of(Some(schema)).print_text(text)
}

/// The condition of a domain, of which the only column of `schema` is VALUE.
pub(super) fn of_value(schema: &TableSchema, text: &str) -> String {
    let printer = Printer {
        is_of_value: true,
        ..Printer::of(Some(schema))
    };
    printer.print_text(text)
}

/// An expression over the rows `old` and `new` of a table.
pub(super) fn of_rows(schema: &TableSchema, text: &str) -> String {
    let printer = Printer {
        is_of_rows: true,
        ..Printer::of(Some(schema))
    };
    printer.print_text(text)
}

/// A default value of a type.
pub(super) fn printed_default(expr: &Expr, data_type: &DataType) -> String {
    let printer = Printer::of(None);
    match open_literal(expr) {
        Some(text) => constant(text, data_type),
        None => printer.print(expr),
    }
}

/// The columns of a table that an expression names, in their order.
pub(super) fn columns_of(schema: &TableSchema, text: &str) -> Vec<usize> {
    let mut found = BTreeSet::new();
    if let Ok(expr) = stored_expression(text) {
        found.extend(expression_columns(&expr, schema));
    }
    found.into_iter().collect()
}

/// The text of a literal without a type of its own.
fn open_literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => open_literal(inner),
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) | Literal::EscapedStringLiteral(text) => Some(text),
            Literal::DollarQuotedString(text) => Some(&text.value),
            _ => None,
        },
        _ => None,
    }
}

/// A literal of a type.
fn constant(text: &str, data_type: &DataType) -> String {
    let name = match data_type {
        // PostgreSQL's name for CHAR without a length.
        DataType::Char(_) => "bpchar",
        other => other.base_name(),
    };
    match (data_type, text) {
        (DataType::Boolean, "t" | "true") => "true".to_owned(),
        (DataType::Boolean, "f" | "false") => "false".to_owned(),
        _ => format!("'{}'::{name}", text.replace('\'', "''")),
    }
}

/// The type of a cast that was written, as it is printed.
pub(super) fn cast_target(written: &sqlparser::ast::DataType) -> String {
    match plain_type(written, None) {
        Ok(data_type) => data_type.to_string(),
        Err(_) => written.to_string().to_lowercase(),
    }
}

struct Printer<'a> {
    /// The table whose columns may be named.
    schema: Option<&'a TableSchema>,
    /// Whether columns are named with their rows.
    is_of_rows: bool,
    /// Whether the only column is the VALUE of a domain.
    is_of_value: bool,
}

impl<'a> Printer<'a> {
    fn of(schema: Option<&'a TableSchema>) -> Printer<'a> {
        Printer {
            schema,
            is_of_rows: false,
            is_of_value: false,
        }
    }
}

impl Printer<'_> {
    fn print_text(&self, text: &str) -> String {
        match stored_expression(text) {
            Ok(expr) => self.print(&expr),
            Err(_) => text.to_owned(),
        }
    }

    fn type_of(&self, expr: &Expr) -> Option<DataType> {
        match open_literal(expr) {
            Some(_) => None,
            None if self.is_of_rows => expression_type(&without_rows(expr), self.schema),
            None => expression_type(expr, self.schema),
        }
    }

    fn print(&self, expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => self.print(inner),
            Expr::Identifier(ident) if self.is_of_rows => {
                format!("{}.*", quote_identifier(&name_of(ident)))
            }
            Expr::Identifier(ident) if self.is_of_value && name_of(ident) == "value" => {
                "VALUE".to_owned()
            }
            Expr::Identifier(ident) => quote_identifier(&name_of(ident)),
            Expr::CompoundIdentifier(path) if self.is_of_rows => {
                let names = path.iter().map(|ident| quote_identifier(&name_of(ident)));
                names.collect::<Vec<_>>().join(".")
            }
            Expr::CompoundIdentifier(path) => path
                .last()
                .map(|ident| quote_identifier(&name_of(ident)))
                .unwrap_or_default(),
            Expr::Value(value) => self.literal(expr, &value.value),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::UnaryOp { op, expr: operand } => self.unary(*op, operand),
            Expr::IsNull(operand) => format!("({} IS NULL)", self.print(operand)),
            Expr::IsNotNull(operand) => format!("({} IS NOT NULL)", self.print(operand)),
            Expr::IsTrue(operand) => format!("({} IS TRUE)", self.print(operand)),
            Expr::IsNotTrue(operand) => format!("({} IS NOT TRUE)", self.print(operand)),
            Expr::IsFalse(operand) => format!("({} IS FALSE)", self.print(operand)),
            Expr::IsNotFalse(operand) => format!("({} IS NOT FALSE)", self.print(operand)),
            Expr::IsDistinctFrom(left, right) => self.pair(left, "IS DISTINCT FROM", right),
            Expr::IsNotDistinctFrom(left, right) => {
                format!("(NOT {})", self.pair(left, "IS DISTINCT FROM", right))
            }
            Expr::Between {
                expr: operand,
                negated,
                low,
                high,
            } => {
                let (below, above, connective) = match negated {
                    true => ("<", ">", "OR"),
                    false => (">=", "<=", "AND"),
                };
                let (low, high) = (
                    self.pair(operand, below, low),
                    self.pair(operand, above, high),
                );
                format!("({low} {connective} {high})")
            }
            Expr::InList {
                expr: operand,
                list,
                negated,
            } => self.list(operand, list, *negated),
            Expr::Like {
                negated,
                expr: operand,
                pattern,
                escape_char: None,
                ..
            } => self.pair(operand, if *negated { "!~~" } else { "~~" }, pattern),
            Expr::ILike {
                negated,
                expr: operand,
                pattern,
                escape_char: None,
                ..
            } => self.pair(operand, if *negated { "!~~*" } else { "~~*" }, pattern),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr: operand,
                data_type: written,
                ..
            } => self.cast(operand, written),
            Expr::Function(function) => self.function(function),
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let mut text = "\nCASE".to_owned();
                if let Some(operand) = operand {
                    text += &format!(" {}", self.print(operand));
                }
                for when in conditions {
                    let (condition, result) =
                        (self.print(&when.condition), self.print(&when.result));
                    text += &format!("\n    WHEN {condition} THEN {result}");
                }
                let otherwise = else_result.as_ref().map(|expr| self.print(expr));
                let otherwise = otherwise.unwrap_or_else(|| "NULL".to_owned());
                text + &format!("\n    ELSE {otherwise}\nEND")
            }
            other => other.to_string(),
        }
    }

    fn literal(&self, expr: &Expr, value: &Literal) -> String {
        match value {
            Literal::Number(digits, _) => digits.clone(),
            Literal::Boolean(value) => value.to_string(),
            Literal::Null => "NULL".to_owned(),
            other => match open_literal(expr) {
                Some(text) => constant(text, &DataType::Text),
                None => other.to_string(),
            },
        }
    }

    fn binary(&self, left: &Expr, op: &BinaryOperator, right: &Expr) -> String {
        match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let mut operands = Vec::new();
                flatten(left, op, &mut operands);
                flatten(right, op, &mut operands);
                let operands: Vec<String> = operands.iter().map(|it| self.print(it)).collect();
                format!("({})", operands.join(&format!(" {op} ")))
            }
            _ => self.pair(left, &op.to_string(), right),
        }
    }

    fn unary(&self, op: UnaryOperator, operand: &Expr) -> String {
        match op {
            UnaryOperator::Not => format!("(NOT {})", self.print(operand)),
            UnaryOperator::Minus => match operand {
                Expr::Value(value) if matches!(value.value, Literal::Number(..)) => {
                    let data_type = self.type_of(operand).unwrap_or(DataType::Integer);
                    format!("'-{}'::{}", self.print(operand), data_type.base_name())
                }
                _ => format!("(- {})", self.print(operand)),
            },
            other => format!("({other} {})", self.print(operand)),
        }
    }

    /// An operator with two operands, each as it is after the casts that the operator calls for.
    fn pair(&self, left: &Expr, op: &str, right: &Expr) -> String {
        let op = if op == "!=" { "<>" } else { op };
        let common = operand_type(
            self.type_of(left).as_ref(),
            self.type_of(right).as_ref(),
            op,
        );
        let (left, right) = (
            self.operand(left, common.as_ref()),
            self.operand(right, common.as_ref()),
        );
        format!("({left} {op} {right})")
    }

    /// An operand as a value of a type; as it is where no type is asked for.
    fn operand(&self, expr: &Expr, wanted: Option<&DataType>) -> String {
        let Some(wanted) = wanted else {
            return self.print(expr);
        };
        if let Some(text) = open_literal(expr) {
            return constant(text, wanted);
        }
        let is_cast = self.type_of(expr).is_some_and(|own| is_cast(&own, wanted));
        match is_cast {
            true => format!("({})::{}", self.print(expr), wanted.base_name()),
            false => self.print(expr),
        }
    }

    fn list(&self, operand: &Expr, list: &[Expr], negated: bool) -> String {
        let op = if negated { "<>" } else { "=" };
        if let [only] = list {
            return self.pair(operand, op, only);
        }
        let quantifier = if negated { "ALL" } else { "ANY" };
        let own = self.type_of(operand);
        let types = list.iter().map(|item| self.type_of(item));
        let common = types.fold(own.clone(), |common, next| {
            operand_type(common.as_ref(), next.as_ref(), "").or(common)
        });
        let items: Vec<String> = list
            .iter()
            .map(|item| self.operand(item, common.as_ref()))
            .collect();
        let array = format!("ARRAY[{}]", items.join(", "));
        match own {
            Some(DataType::VarChar(_)) => {
                let operand = self.print(operand);
                format!("(({operand})::text {op} {quantifier} (({array})::text[]))")
            }
            _ => {
                let operand = self.operand(operand, common.as_ref());
                format!("({operand} {op} {quantifier} ({array}))")
            }
        }
    }

    fn cast(&self, operand: &Expr, written: &sqlparser::ast::DataType) -> String {
        let Ok(target) = plain_type(written, None) else {
            if let Some(text) = open_literal(operand) {
                return format!("'{}'::{written}", text.replace('\'', "''"));
            }
            return format!("({})::{written}", self.print(operand));
        };
        if let Some(text) = open_literal(operand) {
            let plain = constant(text, &target);
            return match target.without_modifier() == target {
                true => plain,
                false => format!("({plain})::{target}"),
            };
        }
        if self.type_of(operand).as_ref() == Some(&target) {
            return self.print(operand);
        }
        format!("({})::{target}", self.print(operand))
    }

    fn function(&self, function: &Function) -> String {
        let name = function.name.to_string().to_lowercase();
        let arguments = match &function.args {
            FunctionArguments::List(list) => list.args.as_slice(),
            _ => {
                return match name.as_str() {
                    "current_timestamp" | "current_date" | "current_user" | "localtimestamp"
                    | "current_role" | "session_user" => name.to_uppercase(),
                    _ => format!("{name}()"),
                };
            }
        };
        let printed: Vec<String> = arguments
            .iter()
            .map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                    let wanted = match self.type_of(expr) {
                        None | Some(DataType::VarChar(_)) => Some(DataType::Text),
                        _ => None,
                    };
                    self.operand(expr, wanted.as_ref())
                }
                other => other.to_string(),
            })
            .collect();
        let name = match name.as_str() {
            "coalesce" | "nullif" | "greatest" | "least" => name.to_uppercase(),
            _ => name,
        };
        format!("{name}({})", printed.join(", "))
    }
}

/// The operands of a chain of one connective.
fn flatten<'e>(expr: &'e Expr, op: &BinaryOperator, operands: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Nested(inner) => flatten(inner, op, operands),
        Expr::BinaryOp {
            left,
            op: inner,
            right,
        } if inner == op => {
            flatten(left, op, operands);
            flatten(right, op, operands);
        }
        other => operands.push(other),
    }
}

/// The type that an operator wants of both operands; `None` where it takes them as they are.
fn operand_type(left: Option<&DataType>, right: Option<&DataType>, op: &str) -> Option<DataType> {
    let (left, right) = match (left, right) {
        (None, None) => return Some(DataType::Text),
        (Some(known), None) | (None, Some(known)) => {
            return Some(match known {
                DataType::VarChar(_) => match op {
                    "" => DataType::VarChar(None),
                    _ => DataType::Text,
                },
                DataType::Char(_) if op.contains('~') || op == "||" => DataType::Text,
                // A key of an object, or a path.
                json if matches!(json.base_name(), "json" | "jsonb") => match op {
                    "->" | "->>" | "?" | "-" => DataType::Text,
                    "#>" | "#>>" | "#-" | "?|" | "?&" => DataType::array(DataType::Text),
                    _ => known.clone(),
                },
                other => other.without_modifier(),
            });
        }
        (Some(left), Some(right)) => (left, right),
    };
    if left.is_number() && right.is_number() {
        let is = |accept: fn(&DataType) -> bool| accept(left) || accept(right);
        return match () {
            () if is(|it| *it == DataType::Double) => Some(DataType::Double),
            () if is(|it| matches!(it, DataType::Numeric { .. })) => Some(DataType::NUMERIC),
            () => None,
        };
    }
    match (left, right) {
        (DataType::Char(_), DataType::Char(_)) => None,
        (left, right) if left.is_string() && right.is_string() => Some(DataType::Text),
        _ => None,
    }
}

/// Whether a value of one type is printed with a cast where the other is wanted.
fn is_cast(own: &DataType, wanted: &DataType) -> bool {
    match wanted {
        DataType::Numeric { .. } => own.is_integer(),
        DataType::Double => own.is_number() && *own != DataType::Double,
        DataType::Text => matches!(own, DataType::VarChar(_) | DataType::Char(_)),
        _ => false,
    }
}
