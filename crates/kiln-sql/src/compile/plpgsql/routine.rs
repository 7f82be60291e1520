//! Headers of functions and procedures.

use kiln_engine::Domain;
use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{Expr, ObjectName};

use super::super::domain::domain_of;
use super::super::{
    CatalogView, DeclaredType, declared_type, fail, name_of, position_of_span, refuse_reserved,
    relation_name, routine_name, unsupported, written_name,
};
use super::{Shape, at};
use crate::parse::{
    ArgumentMode, FunctionHeader, Returns, RoutineKind, TypeKind, TypeReference, Volatility,
};

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
    pub(super) table: Shape,
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

/// What a type reference names.
#[derive(Clone, Debug)]
pub(super) enum Declared {
    /// A type with values of its own.
    Scalar(DeclaredType),
    /// A table's row, and the domains of its columns.
    Row(Shape, Vec<Option<Arc<Domain>>>),
    /// RECORD.
    Record,
}

impl Routine {
    /// What a header declares.
    ///
    /// # Errors
    /// 42704 for unknown types, 42P13 where parameters and result do not go together, 0A000 for
    /// what is not supported.
    pub fn of(catalog: &dyn CatalogView, definition: &FunctionHeader) -> Result<Routine> {
        let outer = catalog.see_along(definition.path.clone());
        let routine = Routine::along_path(catalog, definition);
        catalog.see_along(outer);
        routine
    }

    fn along_path(catalog: &dyn CatalogView, definition: &FunctionHeader) -> Result<Routine> {
        let position = at(definition.position);
        let invalid =
            |message: String| fail(SqlState::INVALID_FUNCTION_DEFINITION, message, position);
        for ident in definition.name.0.iter().filter_map(|part| part.as_ident()) {
            refuse_reserved(ident)?;
        }
        let name = routine_name(catalog, &definition.name)?;
        let mut parameters: Vec<RoutineParameter> = Vec::new();
        for argument in &definition.arguments {
            let (data_type, domain) = match declared(catalog, &argument.data_type)? {
                Declared::Scalar(of) => (of.data_type.without_modifier(), of.domain),
                Declared::Row(..) | Declared::Record => {
                    return Err(unsupported(
                        "a parameter of a row type",
                        at(argument.position),
                    ));
                }
            };
            let name = argument.name.as_ref().map(name_of).unwrap_or_default();
            if !name.is_empty() && parameters.iter().any(|known| known.name == name) {
                let message = format!("parameter name \"{name}\" used more than once");
                return Err(fail(
                    SqlState::INVALID_FUNCTION_DEFINITION,
                    message,
                    at(argument.position),
                ));
            }
            let default = argument
                .default
                .as_ref()
                .map(|default| default.expr.clone());
            let is_gap = default.is_none()
                && argument.mode.is_input()
                && parameters.iter().any(|known| known.default.is_some());
            if is_gap {
                return Err(invalid(
                    "input parameters after one with a default value must also have defaults"
                        .to_owned(),
                ));
            }
            if default.is_some() && !argument.mode.is_input() {
                return Err(invalid(
                    "only input parameters can have default values".to_owned(),
                ));
            }
            parameters.push(RoutineParameter {
                name,
                mode: argument.mode,
                data_type,
                domain,
                default,
            });
        }
        let outputs: Vec<(String, DataType)> = parameters
            .iter()
            .filter(|parameter| parameter.mode.is_output())
            .enumerate()
            .map(|(index, parameter)| {
                let name = match parameter.name.as_str() {
                    "" => format!("column{}", index + 1),
                    name => name.to_owned(),
                };
                (name, parameter.data_type.clone())
            })
            .collect();
        let mut table: Shape = Vec::new();
        let of_outputs = parameters.iter().filter(|one| one.mode.is_output());
        let mut result_domains: Vec<_> = of_outputs.map(|one| one.domain.clone()).collect();
        let result = match &definition.returns {
            None if definition.kind == RoutineKind::Procedure => match outputs.is_empty() {
                true => ResultKind::Void,
                false => ResultKind::Row(outputs),
            },
            None => match outputs.as_slice() {
                [] => return Err(invalid("function result type must be specified".to_owned())),
                [(_, data_type)] => ResultKind::Scalar(data_type.clone()),
                _ => ResultKind::Row(outputs),
            },
            Some(Returns::Void) if outputs.is_empty() => ResultKind::Void,
            Some(Returns::Void) => return Err(invalid(because_of_outputs(&outputs))),
            Some(Returns::Table(_)) if !outputs.is_empty() => {
                return Err(fail(
                    SqlState::SYNTAX_ERROR,
                    "OUT and INOUT arguments aren't allowed in TABLE functions",
                    position,
                ));
            }
            Some(Returns::Table(columns)) => {
                for column in columns {
                    let name = name_of(&column.name);
                    let clash = table.iter().any(|(known, _)| *known == name)
                        || parameters.iter().any(|known| known.name == name);
                    if clash {
                        let message = format!("parameter name \"{name}\" used more than once");
                        return Err(fail(
                            SqlState::INVALID_FUNCTION_DEFINITION,
                            message,
                            position_of_span(column.name.span),
                        ));
                    }
                    match declared(catalog, &column.data_type)? {
                        Declared::Scalar(of) => {
                            table.push((name, of.data_type.without_modifier()));
                            result_domains.push(of.domain);
                        }
                        Declared::Row(..) | Declared::Record => {
                            return Err(unsupported(
                                "a column of a row type",
                                at(column.data_type.position),
                            ));
                        }
                    }
                }
                match table.as_slice() {
                    [(_, data_type)] => ResultKind::SetOfScalar(data_type.clone()),
                    _ => ResultKind::SetOfRows(table.clone()),
                }
            }
            Some(Returns::Type(reference)) if reference.kind == TypeKind::Trigger => {
                if !parameters.is_empty() {
                    let message = "trigger functions cannot have declared arguments".to_owned();
                    return Err(invalid(message).with_hint(
                        "The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV \
                         instead.",
                    ));
                }
                ResultKind::Trigger
            }
            Some(Returns::Type(reference) | Returns::SetOf(reference)) => {
                let is_set = matches!(definition.returns, Some(Returns::SetOf(_)));
                let of_one = |data_type: DataType| match is_set {
                    true => ResultKind::SetOfScalar(data_type),
                    false => ResultKind::Scalar(data_type),
                };
                let of_row = |columns| match is_set {
                    true => ResultKind::SetOfRows(columns),
                    false => ResultKind::Row(columns),
                };
                match (declared(catalog, reference)?, outputs.as_slice()) {
                    (Declared::Scalar(of), []) => {
                        result_domains.push(of.domain);
                        of_one(of.data_type.without_modifier())
                    }
                    (Declared::Scalar(of), [(_, only)])
                        if of.data_type.without_modifier() == *only =>
                    {
                        of_one(only.clone())
                    }
                    (Declared::Row(columns, _), []) => of_row(columns),
                    (Declared::Record, [_, _, ..]) => of_row(outputs),
                    (Declared::Record, []) => {
                        return Err(unsupported(
                            "a result of type record without OUT parameters",
                            at(reference.position),
                        ));
                    }
                    _ => return Err(invalid(because_of_outputs(&outputs))),
                }
            }
        };
        Ok(Routine {
            name,
            kind: definition.kind,
            parameters,
            result,
            strict: definition.strict,
            volatility: definition.volatility,
            table,
            result_domains,
        })
    }

    /// The columns of RETURNS TABLE, which are variables of its body.
    pub fn table(&self) -> &[(String, DataType)] {
        &self.table
    }

    /// The header of a DO block.
    pub fn anonymous() -> Routine {
        Routine {
            name: "inline_code_block".to_owned(),
            kind: RoutineKind::Procedure,
            parameters: Vec::new(),
            result: ResultKind::Void,
            strict: false,
            volatility: Volatility::Volatile,
            table: Vec::new(),
            result_domains: Vec::new(),
        }
    }

    /// Names and types of the program's parameters: those that callers pass, in order.
    pub fn inputs(&self) -> Vec<(String, DataType)> {
        let inputs = self
            .parameters
            .iter()
            .filter(|parameter| parameter.mode.is_input());
        inputs
            .map(|parameter| (parameter.name.clone(), parameter.data_type.clone()))
            .collect()
    }

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
    pub(super) fn has_outputs(&self) -> bool {
        !self.table.is_empty()
            || self
                .parameters
                .iter()
                .any(|parameter| parameter.mode.is_output())
    }
}

fn because_of_outputs(outputs: &[(String, DataType)]) -> String {
    let needed = match outputs {
        [(_, data_type)] => data_type.base_name(),
        _ => "record",
    };
    format!("function result type must be {needed} because of OUT parameters")
}

/// What a type reference names, outside of any block of variables.
///
/// # Errors
/// 42704 for an unknown type, 42P01 and 42703 for an unknown table or column.
pub(super) fn declared(catalog: &dyn CatalogView, reference: &TypeReference) -> Result<Declared> {
    let position = at(reference.position);
    match &reference.kind {
        TypeKind::Record => Ok(Declared::Record),
        TypeKind::Trigger => Err(unsupported("type trigger", position)),
        TypeKind::RowOf(path) => {
            let written = ObjectName::from(path.clone());
            row_of(catalog, &relation_name(catalog, &written)?)?.ok_or_else(|| {
                let name = written_name(&written);
                let message = format!("relation \"{name}\" does not exist");
                fail(SqlState::UNDEFINED_TABLE, message, position)
            })
        }
        TypeKind::Like(path) => {
            let names: Vec<String> = path.iter().map(name_of).collect();
            let (relation, column) = match (path.as_slice(), names.as_slice()) {
                ([schema, table, _], [.., column]) => (vec![schema.clone(), table.clone()], column),
                ([table, _], [.., column]) => (vec![table.clone()], column),
                _ => {
                    let message = format!("type \"{}\" does not exist", names.join("."));
                    return Err(fail(SqlState::UNDEFINED_OBJECT, message, position));
                }
            };
            let relation = ObjectName::from(relation);
            let table = written_name(&relation);
            let Some(columns) = columns_of(catalog, &relation_name(catalog, &relation)?) else {
                let message = format!("relation \"{table}\" does not exist");
                return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
            };
            let (shape, domains) = columns?;
            let found = shape.into_iter().zip(domains);
            let found = found.into_iter().find(|((name, _), _)| name == column);
            let Some(((_, data_type), domain)) = found else {
                let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
                return Err(fail(SqlState::UNDEFINED_COLUMN, message, position));
            };
            Ok(Declared::Scalar(DeclaredType { data_type, domain }))
        }
        TypeKind::Sql(written) => {
            if let sqlparser::ast::DataType::Custom(name, modifiers) = written
                && modifiers.is_empty()
                && let Ok(name) = relation_name(catalog, name)
                && let Some(row) = row_of(catalog, &name)?
            {
                return Ok(row);
            }
            declared_type(written, catalog, position).map(Declared::Scalar)
        }
    }
}

/// The row type of a table or view.
fn row_of(catalog: &dyn CatalogView, name: &str) -> Result<Option<Declared>> {
    let columns = columns_of(catalog, name).transpose()?;
    Ok(columns.map(|(shape, domains)| Declared::Row(shape, domains)))
}

/// Names and types of columns, and their domains.
type Columns = (Shape, Vec<Option<Arc<Domain>>>);

/// The columns of a table or view.
fn columns_of(catalog: &dyn CatalogView, name: &str) -> Option<Result<Columns>> {
    let Some(table) = catalog.table(name) else {
        let view = catalog.view(name)?;
        let domains = vec![None; view.columns.len()];
        return Some(Ok((view.columns.clone(), domains)));
    };
    let columns = table.schema().shown().iter();
    let shape = columns.map(|column| (column.name.clone(), column.data_type.clone()));
    let shape = shape.collect();
    let columns = table.schema().shown().iter();
    let domains = columns.map(|column| domain_of(column, catalog));
    Some(
        domains
            .collect::<Result<_>>()
            .map(|domains| (shape, domains)),
    )
}
