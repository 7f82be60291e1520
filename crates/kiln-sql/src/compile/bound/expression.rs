//! Bound expressions: names resolved, types known, operators chosen.

use kiln_engine::{Domain, Signal};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Arithmetic, Class, Comparison, Reg, ScalarFunction, Width};
use kiln_storage::types::{CatalogType, DataType, Value};

use super::super::Position;
use super::{AggregateCall, Callee, OpenParameter, Subquery, WindowCall};
use crate::catalog::{CatalogCall, SequenceCall};

/// What the builtin is called that gives the style of the session that calls.
pub(in super::super) const SESSION_STYLE: &str = "session_style";

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub kind: Kind,
    pub data_type: DataType,
    pub position: Position,
}

/// What a bound expression does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A literal whose type the context decides; `None` is NULL. Its `data_type` is TEXT.
    Unknown(Option<String>),
    /// A parameter whose type the context decides. Its `data_type` is TEXT.
    Parameter(OpenParameter),
    /// A constant of the expression's type.
    Constant(Value),
    /// A variable, or something computed before.
    Register(Reg),
    /// A column of a row source.
    Column { source: SourceId, column: u16 },
    /// The value of an aggregate or a group key, by its number in the compiler's list.
    Slot(usize),
    /// Computed by one instruction from operands that are all evaluated.
    Operation(Operation, Vec<Bound>),
    /// `CASE WHEN … THEN … ELSE … END`.
    Case {
        branches: Vec<(Bound, Bound)>,
        otherwise: Option<Box<Bound>>,
    },
    /// The first operand that is not NULL.
    Coalesce(Vec<Bound>),
    /// Three-valued AND of at least two operands; the later ones only where they matter.
    And(Vec<Bound>),
    /// Three-valued OR.
    Or(Vec<Bound>),
    /// Used at several places and computed once where possible.
    Shared(u16, Box<Bound>),
    /// An aggregate of the query level that is being bound.
    Aggregate(Box<AggregateCall>),
    /// A call with OVER, of the query level that is being bound.
    Window(Box<WindowCall>),
    /// A subquery.
    Subquery(Box<Subquery>),
    /// `(a, b)`: an operand of a row comparison only.
    Row(Vec<Bound>),
    /// A call of a user's function with these arguments, compiled in its place.
    Routine(Box<Callee>, Vec<Bound>),
    /// A value that becomes one of a domain.
    OfDomain(Box<Bound>, Arc<Domain>),
}

/// The instruction of a [`Kind::Operation`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Integer(Arithmetic, Width),
    Decimal(Arithmetic),
    Double(Arithmetic),
    Compare(Comparison, Class),
    IsNull {
        negated: bool,
    },
    Not,
    IntegerToDecimal,
    IntegerToDouble,
    CheckWidth(Width),
    Rescale {
        precision: u16,
        scale: i16,
    },
    Concat,
    Element,
    Call(Builtin),
    /// A function over the catalog.
    Consult(CatalogCall),
    /// A function of sequences.
    Sequence(SequenceCall),
    /// The lock of a row that a query finds.
    LockRow(LockRow),
    /// A signal to a session.
    Signal(Signal),
    /// A notification to those that listen: of a channel and a payload that were checked.
    Notify,
}

/// A function written in Rust.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtin {
    pub name: &'static str,
    pub function: ScalarFunction,
    /// Not a function of its arguments alone: never folded.
    pub volatile: bool,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Operation) -> bool {
        use Operation::*;
        match (self, other) {
            (Integer(a, b), Integer(c, d)) => a == c && b == d,
            (Decimal(a), Decimal(b)) | (Double(a), Double(b)) => a == b,
            (Compare(a, b), Compare(c, d)) => a == c && b == d,
            (IsNull { negated: a }, IsNull { negated: b }) => a == b,
            (CheckWidth(a), CheckWidth(b)) => a == b,
            (
                Rescale {
                    precision: a,
                    scale: b,
                },
                Rescale {
                    precision: c,
                    scale: d,
                },
            ) => a == c && b == d,
            (Call(a), Call(b)) => a.name == b.name,
            (Consult(a), Consult(b)) => a.name == b.name,
            (Sequence(a), Sequence(b)) => a == b,
            (LockRow(a), LockRow(b)) => a == b,
            (Signal(a), Signal(b)) => a == b,
            (Not, Not)
            | (Notify, Notify)
            | (IntegerToDecimal, IntegerToDecimal)
            | (IntegerToDouble, IntegerToDouble)
            | (Concat, Concat)
            | (Element, Element) => true,
            _ => false,
        }
    }
}

impl PartialEq for Bound {
    /// Whether both give the same value where both are computed; where they stand in the source
    /// does not matter. Subqueries are equal to their own copies only, and so is what is volatile:
    /// two calls of `random()` differ.
    fn eq(&self, other: &Bound) -> bool {
        self.is_same(other, false)
    }
}

impl Bound {
    /// Whether both are written the same way, volatile calls included. This is how PostgreSQL finds
    /// what GROUP BY and ORDER BY say among the output.
    pub(in super::super) fn has_form_of(&self, other: &Bound) -> bool {
        self.is_same(other, true)
    }

    pub(in super::super) fn is_same(&self, other: &Bound, by_form: bool) -> bool {
        if self.data_type != other.data_type {
            return false;
        }
        let each = |one: &[Bound], other: &[Bound]| {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| one.is_same(other, by_form))
        };
        match (&self.kind, &other.kind) {
            (Kind::Unknown(a), Kind::Unknown(b)) => a == b,
            (Kind::Parameter(a), Kind::Parameter(b)) => a == b,
            // NaN is itself, and zero is not its negative.
            (Kind::Constant(Value::Double(a)), Kind::Constant(Value::Double(b))) => {
                a.to_bits() == b.to_bits()
            }
            (Kind::Constant(a), Kind::Constant(b)) => a == b,
            (Kind::Register(a), Kind::Register(b)) => a == b,
            (
                Kind::Column {
                    source: a,
                    column: b,
                },
                Kind::Column {
                    source: c,
                    column: d,
                },
            ) => a == c && b == d,
            (Kind::Slot(a), Kind::Slot(b)) => a == b,
            (Kind::Subquery(a), Kind::Subquery(b)) => a.number == b.number,
            (Kind::Operation(a, b), Kind::Operation(c, d)) => {
                (by_form || !a.is_volatile()) && a == c && each(b, d)
            }
            (
                Kind::Case {
                    branches: a,
                    otherwise: b,
                },
                Kind::Case {
                    branches: c,
                    otherwise: d,
                },
            ) => {
                let mut pairs = a.iter().zip(c);
                let has_otherwise = match (b, d) {
                    (Some(b), Some(d)) => b.is_same(d, by_form),
                    (b, d) => b.is_none() && d.is_none(),
                };
                a.len() == c.len()
                    && pairs.all(|(one, other)| {
                        one.0.is_same(&other.0, by_form) && one.1.is_same(&other.1, by_form)
                    })
                    && has_otherwise
            }
            (Kind::Coalesce(a), Kind::Coalesce(b))
            | (Kind::And(a), Kind::And(b))
            | (Kind::Or(a), Kind::Or(b))
            | (Kind::Row(a), Kind::Row(b)) => each(a, b),
            (Kind::Shared(one, _), Kind::Shared(other, _)) if one == other => true,
            (Kind::Shared(_, a), _) => a.is_same(other, by_form),
            (_, Kind::Shared(_, b)) => self.is_same(b, by_form),
            (Kind::OfDomain(a, b), Kind::OfDomain(c, d)) => {
                Arc::ptr_eq(b, d) && a.is_same(c, by_form)
            }
            (Kind::Aggregate(a), Kind::Aggregate(b)) => a.is_same(b, by_form),
            (Kind::Window(a), Kind::Window(b)) => a.is_same(b, by_form),
            (Kind::Routine(a, b), Kind::Routine(c, d)) => {
                (by_form || !a.is_volatile()) && a.is_same(c) && each(b, d)
            }
            _ => false,
        }
    }
}

impl Bound {
    pub(in super::super) fn new(kind: Kind, data_type: DataType, position: Position) -> Bound {
        Bound {
            kind,
            data_type,
            position,
        }
    }

    pub(in super::super) fn register(
        register: Reg,
        data_type: DataType,
        position: Position,
    ) -> Bound {
        Bound::new(Kind::Register(register), data_type, position)
    }

    pub(in super::super) fn constant(
        value: Value,
        data_type: DataType,
        position: Position,
    ) -> Bound {
        Bound::new(Kind::Constant(value), data_type, position)
    }

    pub(in super::super) fn null(data_type: DataType, position: Position) -> Bound {
        Bound::constant(Value::Null, data_type, position)
    }

    pub(in super::super) fn boolean(value: bool) -> Bound {
        Bound::constant(Value::Boolean(value), DataType::Boolean, None)
    }

    pub(in super::super) fn integer(value: i32) -> Bound {
        Bound::constant(Value::Integer(value), DataType::Integer, None)
    }

    pub(in super::super) fn text(value: impl Into<String>) -> Bound {
        Bound::constant(Value::Text(value.into()), DataType::Text, None)
    }

    /// The same where another expression stands.
    pub(in super::super) fn at(mut self, position: Position) -> Bound {
        self.position = position;
        self
    }

    /// Whether it is no value: a parameter that the client declares as such, which is no argument.
    pub(in super::super) fn is_void(&self) -> bool {
        let is_computed = matches!(self.kind, Kind::Operation(..));
        self.data_type == DataType::Catalog(CatalogType::Void) && !is_computed
    }

    /// Whether its type is not decided yet.
    pub(in super::super) fn is_unknown(&self) -> bool {
        matches!(self.kind, Kind::Unknown(_) | Kind::Parameter(_))
    }

    /// Whether it is a parameter whose type is open.
    pub(in super::super) fn is_open_parameter(&self) -> bool {
        matches!(self.kind, Kind::Parameter(_))
    }

    /// Whether it is the literal NULL, typed or not.
    pub(in super::super) fn is_null_literal(&self) -> bool {
        matches!(self.kind, Kind::Unknown(None) | Kind::Constant(Value::Null))
    }

    pub(in super::super) fn as_constant(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The name of its type for messages.
    pub(in super::super) fn type_name(&self) -> String {
        if self.is_unknown() {
            "unknown".to_owned()
        } else {
            self.data_type.base_name().to_owned()
        }
    }

    /// Whether computing it again costs nothing.
    pub(in super::super) fn is_simple(&self) -> bool {
        matches!(
            self.kind,
            Kind::Unknown(_)
                | Kind::Parameter(_)
                | Kind::Constant(_)
                | Kind::Register(_)
                | Kind::Column { .. }
                | Kind::Slot(_)
                | Kind::Shared(..)
        )
    }

    /// The same value under another type whose representation is the same.
    pub(in super::super) fn relabel(mut self, data_type: DataType) -> Bound {
        self.data_type = data_type;
        self
    }

    /// The direct operands, in order of evaluation; those of subqueries are not among them.
    pub(in super::super) fn operands(&self) -> Vec<&Bound> {
        match &self.kind {
            Kind::Operation(_, operands)
            | Kind::Coalesce(operands)
            | Kind::And(operands)
            | Kind::Or(operands)
            | Kind::Routine(_, operands)
            | Kind::Row(operands) => operands.iter().collect(),
            Kind::Case {
                branches,
                otherwise,
            } => branches
                .iter()
                .flat_map(|(condition, result)| [condition, result])
                .chain(otherwise.as_deref())
                .collect(),
            Kind::Shared(_, inner) | Kind::OfDomain(inner, _) => vec![inner],
            Kind::Aggregate(call) => call.operands(),
            Kind::Window(call) => call.operands(),
            Kind::Subquery(subquery) => subquery.operand.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Calls `f` for this node and every node below it, those inside subqueries included.
    pub(in super::super) fn visit(&self, f: &mut dyn FnMut(&Bound)) {
        f(self);
        for operand in self.operands() {
            operand.visit(f);
        }
        if let Kind::Subquery(subquery) = &self.kind {
            subquery.query.visit(f);
        }
    }

    /// Whether `accept` holds for a node.
    pub(in super::super) fn any(&self, accept: impl Fn(&Bound) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |bound| found |= accept(bound));
        found
    }

    /// The columns that it needs, once each.
    pub(in super::super) fn columns(&self) -> Vec<(SourceId, u16)> {
        let mut columns = Vec::new();
        self.collect_columns(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    pub(in super::super) fn collect_columns(&self, columns: &mut Vec<(SourceId, u16)>) {
        self.visit(&mut |bound| {
            if let Kind::Column { source, column } = bound.kind {
                columns.push((source, column));
            }
        });
    }

    /// The row sources that it needs, once each.
    pub(in super::super) fn sources(&self) -> Vec<SourceId> {
        let mut sources: Vec<SourceId> = self
            .columns()
            .into_iter()
            .map(|(source, _)| source)
            .collect();
        sources.dedup();
        sources
    }

    /// Whether computing it may raise, read records or cost more than a step or two: such
    /// operands are computed only where their value matters.
    pub(in super::super) fn is_lazy(&self) -> bool {
        match &self.kind {
            Kind::Subquery(_) | Kind::Case { .. } | Kind::Routine(..) | Kind::OfDomain(..) => true,
            Kind::Operation(operation, operands) => {
                operation.may_raise() || operands.iter().any(Bound::is_lazy)
            }
            _ => self.operands().into_iter().any(Bound::is_lazy),
        }
    }

    /// Whether it reads `register` (so that the register must not be written before its end).
    pub(in super::super) fn mentions(&self, register: Reg) -> bool {
        self.any(|bound| matches!(bound.kind, Kind::Register(known) if known == register))
    }

    /// Whether its value may change from one evaluation to the next within a statement, or the
    /// evaluation itself matters.
    pub(in super::super) fn is_volatile(&self) -> bool {
        self.any(Bound::is_volatile_call)
    }

    /// Whether it is a call of something volatile itself, or a subquery with one in FROM.
    pub(in super::super) fn is_volatile_call(&self) -> bool {
        match &self.kind {
            Kind::Subquery(subquery) => subquery.query.calls_volatile_in_from(),
            Kind::Operation(operation, _) => operation.is_volatile(),
            Kind::Routine(callee, _) => callee.is_volatile(),
            _ => false,
        }
    }

    /// The expression in the default style, whatever that of its session is.
    pub(in super::super) fn in_default_style(self) -> Bound {
        self.rewrite(&mut |part| match &part.kind {
            Kind::Operation(Operation::Call(style), operands)
                if operands.is_empty() && style.name == SESSION_STYLE =>
            {
                let none = Value::Bytea(Vec::new());
                Some(Bound::constant(none, DataType::Bytea, part.position))
            }
            _ => None,
        })
    }

    /// Rewrites from the root down: where `replace` gives an expression, it stands for the whole
    /// subtree.
    pub(in super::super) fn rewrite(
        self,
        replace: &mut dyn FnMut(&Bound) -> Option<Bound>,
    ) -> Bound {
        if let Some(replaced) = replace(&self) {
            return replaced;
        }
        let Bound {
            kind,
            data_type,
            position,
        } = self;
        let mut each = |list: Vec<Bound>| -> Vec<Bound> {
            list.into_iter()
                .map(|bound| bound.rewrite(&mut *replace))
                .collect()
        };
        let kind = match kind {
            Kind::Operation(operation, operands) => Kind::Operation(operation, each(operands)),
            Kind::Coalesce(operands) => Kind::Coalesce(each(operands)),
            Kind::And(operands) => Kind::And(each(operands)),
            Kind::Or(operands) => Kind::Or(each(operands)),
            Kind::Row(operands) => Kind::Row(each(operands)),
            Kind::Routine(callee, operands) => Kind::Routine(callee, each(operands)),
            Kind::Case {
                branches,
                otherwise,
            } => Kind::Case {
                branches: branches
                    .into_iter()
                    .map(|(condition, result)| {
                        (
                            condition.rewrite(&mut *replace),
                            result.rewrite(&mut *replace),
                        )
                    })
                    .collect(),
                otherwise: otherwise.map(|inner| Box::new(inner.rewrite(&mut *replace))),
            },
            Kind::Shared(id, inner) => Kind::Shared(id, Box::new(inner.rewrite(replace))),
            Kind::OfDomain(inner, domain) => {
                Kind::OfDomain(Box::new(inner.rewrite(replace)), domain)
            }
            Kind::Window(mut call) => {
                for operand in call.operands_mut() {
                    let taken = std::mem::replace(operand, Bound::boolean(true));
                    *operand = taken.rewrite(&mut *replace);
                }
                Kind::Window(call)
            }
            Kind::Subquery(mut subquery) => {
                subquery.operand = subquery
                    .operand
                    .into_iter()
                    .map(|bound| bound.rewrite(&mut *replace))
                    .collect();
                subquery.query.rewrite(replace);
                Kind::Subquery(subquery)
            }
            other => other,
        };
        Bound {
            kind,
            data_type,
            position,
        }
    }
}

impl Operation {
    fn is_volatile(self) -> bool {
        match self {
            Operation::Call(builtin) => builtin.volatile,
            Operation::Sequence(_)
            | Operation::LockRow(_)
            | Operation::Signal(_)
            | Operation::Notify => true,
            _ => false,
        }
    }

    fn may_raise(self) -> bool {
        match self {
            Operation::Integer(..)
            | Operation::Decimal(_)
            | Operation::Double(_)
            | Operation::CheckWidth(_)
            | Operation::Rescale { .. }
            | Operation::Call(_)
            | Operation::Consult(_)
            | Operation::Sequence(_)
            | Operation::LockRow(_)
            | Operation::Signal(_)
            | Operation::Notify => true,
            Operation::Compare(..)
            | Operation::IsNull { .. }
            | Operation::Not
            | Operation::IntegerToDecimal
            | Operation::IntegerToDouble
            | Operation::Concat
            | Operation::Element => false,
        }
    }
}

/// The number of a row source within one compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(in super::super) u32);

/// The lock of a row, as an operation of an expression: its operands are the session's number and
/// the row's key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LockRow {
    /// The number of the table.
    pub table: u32,
    pub source: SourceId,
    pub is_shared: bool,
    pub no_wait: bool,
}

impl Bound {
    /// Whether an expression is this group key. Under an operator a key may have got another type,
    /// such as a wider integer, which its slot has as well.
    pub fn is_key_of(&self, bound: &Bound) -> bool {
        if integer_bytes(&self.data_type) > integer_bytes(&bound.data_type) {
            return false;
        }
        let data_type = bound.data_type.clone();
        Bound::new(self.kind.clone(), data_type, self.position).has_form_of(bound)
    }
}

/// The width of an integer type; 0 for any other type.
fn integer_bytes(data_type: &DataType) -> u8 {
    match data_type {
        DataType::SmallInt => 2,
        DataType::Integer => 4,
        DataType::BigInt => 8,
        _ => 0,
    }
}
