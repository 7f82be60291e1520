//! SQL/JSON paths: the expressions of PostgreSQL's type JSONPATH.
//!
//! | module | holds |
//! |---|---|
//! | here | the tree of a path |
//! | `lexer` | its words |
//! | `parser` | from words to the tree |
//! | `print` | the canonical text, which is a value of the type |

mod lexer;
mod parser;
mod print;
#[cfg(test)]
mod tests;

use crate::error::Result;

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    /// Whether arrays are unwrapped and structural errors ignored, as without `strict`.
    pub is_lax: bool,
    /// What is computed.
    pub steps: Steps,
}

/// A value, and the accessors that are applied one after the other: never empty.
pub type Steps = Vec<Step>;

/// A value, or an accessor.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, as the canonical text of JSONB.
    Number(String),
    /// A text.
    Text(String),
    /// `$name`.
    Variable(String),
    /// `$`.
    Root,
    /// `@`.
    Current,
    /// `last`, in a subscript.
    Last,
    /// An operator between two.
    Binary(Operator, Steps, Steps),
    /// `+` or `-` before one; whether it negates.
    Sign(bool, Steps),
    /// `!(…)`.
    Not(Steps),
    /// `(…) is unknown`.
    IsUnknown(Steps),
    /// `exists (…)`.
    Exists(Steps),
    /// `… like_regex "pattern" flag "flags"`.
    LikeRegex {
        /// What is matched.
        subject: Steps,
        /// The regular expression.
        pattern: String,
        /// Those of `i`, `s`, `m`, `x` and `q` that were given.
        flags: String,
    },
    /// `[*]`.
    AnyElement,
    /// `.*`.
    AnyMember,
    /// `.key`.
    Member(String),
    /// `[from to to, …]`.
    Elements(Vec<(Steps, Option<Steps>)>),
    /// `.**{first to last}`: the levels below; `None` for `last`, the leaves.
    Levels {
        /// The first level.
        first: Option<u32>,
        /// The last one.
        last: Option<u32>,
    },
    /// `.method()`.
    Method(Method),
    /// `?(…)`.
    Filter(Steps),
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `||`.
    Or,
    /// `&&`.
    And,
    /// `==`.
    Equal,
    /// `!=` or `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `starts with`.
    StartsWith,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Modulo,
}

/// A method of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `.type()`.
    Type,
    /// `.size()`.
    Size,
    /// `.abs()`.
    Abs,
    /// `.floor()`.
    Floor,
    /// `.ceiling()`.
    Ceiling,
    /// `.double()`.
    Double,
    /// `.keyvalue()`.
    KeyValue,
    /// `.datetime()`.
    Datetime,
}

impl Operator {
    /// As it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Operator::Or => "||",
            Operator::And => "&&",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::StartsWith => "starts with",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Modulo => "%",
        }
    }

    /// Whether it computes a number, and no truth value.
    pub const fn is_arithmetic(self) -> bool {
        matches!(
            self,
            Operator::Add
                | Operator::Subtract
                | Operator::Multiply
                | Operator::Divide
                | Operator::Modulo
        )
    }
}

impl Method {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::KeyValue => "keyvalue",
            Method::Datetime => "datetime",
        }
    }
}

impl Step {
    /// Whether it is a truth value that is computed.
    pub fn is_predicate(&self) -> bool {
        match self {
            Step::Binary(operator, ..) => !operator.is_arithmetic(),
            Step::Not(_) | Step::IsUnknown(_) | Step::Exists(_) | Step::LikeRegex { .. } => true,
            _ => false,
        }
    }
}

/// Reads a path.
///
/// # Errors
/// 42601 for a text that is none, 22P02 for an empty one, 54001 for one that is nested too deep,
/// 0A000 for what is not supported.
pub fn read_path(text: &str) -> Result<JsonPath> {
    parser::parse(text)
}

/// The canonical text of a path.
///
/// # Errors
/// Those of [`read_path`], also where it is the canonical text, which has a pair of parentheses for
/// each operator, that is nested too deep.
pub fn canonical_path(text: &str) -> Result<String> {
    let canonical = read_path(text)?.to_string();
    read_path(&canonical)?;
    Ok(canonical)
}
