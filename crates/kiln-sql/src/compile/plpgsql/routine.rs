//! Headers of functions and procedures.

use kiln_engine::Domain;
use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, RowType};
use sqlparser::ast::ObjectName;

use super::super::bound::{ResultKind, Routine, RoutineParameter, Shape};
use super::super::domain::domain_of;
use super::super::{
    CatalogView, DeclaredType, declared_type, fail, name_of, position_of_span, refuse_reserved,
    relation_name, routine_name, unsupported, written_name,
};
use super::at;
use crate::parse::{
    ArgumentMode, FunctionHeader, Returns, RoutineKind, TypeKind, TypeReference, Volatility,
};

/// What a type reference names.
#[derive(Clone, Debug)]
pub(super) enum Declared {
    /// A type with values of its own.
    Scalar(DeclaredType),
    /// A row, the domains of its columns, and its type, if that has a name.
    Row(Shape, Vec<Option<Arc<Domain>>>, Option<Arc<RowType>>),
    /// RECORD.
    Record,
}

impl Declared {
    /// A row of a composite type.
    pub(super) fn of_row(of: Arc<RowType>) -> Declared {
        let fields = of.fields().iter();
        let shape: Shape = fields
            .map(|field| (field.name.clone(), field.data_type.clone()))
            .collect();
        let domains = vec![None; shape.len()];
        Declared::Row(shape, domains, Some(of))
    }
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
                Declared::Row(_, _, Some(of)) => (DataType::Row(of), None),
                Declared::Row(..) | Declared::Record => {
                    return Err(unsupported(
                        "a parameter of type record, or of the rows of a view",
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
            let is_variadic = |one: &RoutineParameter| one.mode == ArgumentMode::Variadic;
            let is_behind = parameters.iter().any(is_variadic);
            match definition.kind {
                RoutineKind::Procedure if is_behind => {
                    return Err(invalid(
                        "VARIADIC parameter must be the last parameter".to_owned(),
                    ));
                }
                RoutineKind::Function if is_behind && argument.mode.is_input() => {
                    let message = "VARIADIC parameter must be the last input parameter";
                    return Err(invalid(message.to_owned()));
                }
                _ => {}
            }
            if argument.mode == ArgumentMode::Variadic && data_type.element().is_none() {
                return Err(invalid("VARIADIC parameter must be an array".to_owned()));
            }
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
        let mut row_type = None;
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
                let declared = match declared(catalog, reference)? {
                    Declared::Scalar(DeclaredType {
                        data_type: DataType::Row(of),
                        domain: None,
                    }) => Declared::of_row(of),
                    other => other,
                };
                match (declared, outputs.as_slice()) {
                    (Declared::Scalar(of), []) => {
                        result_domains.push(of.domain);
                        of_one(of.data_type.without_modifier())
                    }
                    (Declared::Scalar(of), [(_, only)])
                        if of.data_type.without_modifier() == *only =>
                    {
                        of_one(only.clone())
                    }
                    (Declared::Row(columns, _, of), []) => {
                        row_type = of;
                        of_row(columns)
                    }
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
            row_type,
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
            row_type: None,
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
    let of = columns.is_some().then(|| catalog.row_type(name)).flatten();
    Ok(columns.map(|(shape, domains)| Declared::Row(shape, domains, of)))
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
