//! The routine that a call names: its header, its types resolved.

use kiln_engine::Domain;
use kiln_platform::sync::Arc;
use kiln_storage::types::{DataType, RowType};
use sqlparser::ast::Expr;

use crate::parse::{ArgumentMode, FunctionDefinition, RoutineKind, Volatility};

/// A function's or procedure's header, its types resolved.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its name.
    pub name: String,
    /// Function or procedure; a DO block counts as a procedure.
    pub kind: RoutineKind,
    /// All its parameters in the order of declaration, OUT parameters included.
    pub parameters: Vec<RoutineParameter>,
    /// What comes back.
    pub result: ResultKind,
    /// A NULL argument makes the result NULL without running the body. The program does so itself.
    pub strict: bool,
    /// What a function's result may depend on.
    pub volatility: Volatility,
    /// The columns of RETURNS TABLE, which are variables too.
    pub(in super::super) table: Shape,
    /// The type of a row of the result, if that has a name.
    pub(in super::super) row_type: Option<Arc<RowType>>,
    /// The domain of each value of a row of the result, if it is of one.
    pub result_domains: Vec<Option<Arc<Domain>>>,
}

/// A parameter of a [`Routine`].
#[derive(Clone, Debug)]
pub struct RoutineParameter {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its direction.
    pub mode: ArgumentMode,
    /// Its type. As in PostgreSQL, length, precision and scale of the declaration do not count;
    /// only CHAR keeps its length.
    pub data_type: DataType,
    /// The domain that it was declared with. The body checks what a call gives.
    pub domain: Option<Arc<Domain>>,
    /// The value where a call leaves it out; no names can be used in it.
    pub default: Option<Expr>,
}

/// The rows that a routine's program emits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// None.
    Void,
    /// The row of a trigger; it is no result of a call.
    Trigger,
    /// One row of one value, of the function's name.
    Scalar(DataType),
    /// One row with these columns.
    Row(Vec<(String, DataType)>),
    /// Any number of rows of one value, of the function's name.
    SetOfScalar(DataType),
    /// Any number of rows with these columns.
    SetOfRows(Vec<(String, DataType)>),
}

impl ResultKind {
    /// Whether any number of rows may come back.
    pub fn is_set(&self) -> bool {
        matches!(self, ResultKind::SetOfScalar(_) | ResultKind::SetOfRows(_))
    }

    /// The types of a row.
    pub fn types(&self) -> Vec<DataType> {
        match self {
            ResultKind::Void | ResultKind::Trigger => Vec::new(),
            ResultKind::Scalar(data_type) | ResultKind::SetOfScalar(data_type) => {
                vec![data_type.clone()]
            }
            ResultKind::Row(columns) | ResultKind::SetOfRows(columns) => columns
                .iter()
                .map(|(_, data_type)| data_type.clone())
                .collect(),
        }
    }
}

impl Routine {
    /// Names and types of the result's columns, as `SELECT * FROM name(…)` and CALL name them;
    /// none for [`ResultKind::Void`].
    pub fn result_columns(&self) -> Vec<(String, DataType)> {
        match &self.result {
            ResultKind::Void | ResultKind::Trigger => Vec::new(),
            ResultKind::Scalar(data_type) | ResultKind::SetOfScalar(data_type) => {
                let outputs = self
                    .parameters
                    .iter()
                    .filter(|parameter| parameter.mode.is_output());
                let mut names = outputs
                    .map(|parameter| &parameter.name)
                    .chain(self.table.iter().map(|(name, _)| name));
                let name = match (names.next(), names.next()) {
                    (Some(only), None) if !only.is_empty() => only.clone(),
                    _ => self.name.clone(),
                };
                vec![(name, data_type.clone())]
            }
            ResultKind::Row(columns) | ResultKind::SetOfRows(columns) => columns.clone(),
        }
    }

    /// Whether output parameters or the columns of RETURNS TABLE hold the result.
    pub(in super::super) fn has_outputs(&self) -> bool {
        !self.table.is_empty()
            || self
                .parameters
                .iter()
                .any(|parameter| parameter.mode.is_output())
    }
}

/// Names and types of a record's fields.
pub(in super::super) type Shape = Vec<(String, DataType)>;

/// A routine that a call names.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub definition: Arc<FunctionDefinition>,
    pub routine: Routine,
    /// The call may run once for each row of a query: then it must not write, since the query
    /// would meet what it writes.
    pub over_rows: bool,
}

impl Callee {
    /// Whether both are the same routine.
    pub(in super::super) fn is_same(&self, other: &Callee) -> bool {
        Arc::ptr_eq(&self.definition, &other.definition)
    }

    /// Whether a call may give something else each time, or do something, as the function's
    /// declaration says.
    pub(in super::super) fn is_volatile(&self) -> bool {
        self.routine.volatility == Volatility::Volatile
    }

    /// The columns of a call in FROM, when `alias` is its name there.
    pub(in super::super) fn columns_in_from(&self, alias: &str) -> Vec<(String, DataType)> {
        match &self.routine.result {
            ResultKind::Void => vec![(alias.to_owned(), DataType::Text)],
            ResultKind::Scalar(data_type) | ResultKind::SetOfScalar(data_type)
                if !self.routine.has_outputs() =>
            {
                vec![(alias.to_owned(), data_type.clone())]
            }
            _ => self.routine.result_columns(),
        }
    }
}
