//! A routine among a catalog's objects: what its header says.

use kiln_engine::{Catalog, Domain, NumberedObject, Procedure};
use kiln_platform::sync::Arc;
use kiln_storage::types::DataType;
use sqlparser::ast::ObjectName;

use super::super::expression;
use super::super::view::{relation_of, routine_of};
use super::type_oid;
use crate::compile::plpgsql::{ResultKind, Routine};
use crate::compile::quote_identifier;
use crate::parse::{
    ArgumentMode, FunctionSource, Returns, RoutineKind, SourceStatement, TypeKind, function_source,
};

/// The number of the type VOID.
const VOID: u32 = 2278;

/// The number of the type TRIGGER.
const TRIGGER: u32 = 2279;

/// The number of the type RECORD.
pub(in super::super) const RECORD: u32 = 2249;

/// What a routine's header says.
pub(crate) struct RoutineFacts {
    pub kind: RoutineKind,
    /// Those of RETURNS TABLE behind the others.
    pub arguments: Vec<RoutineArgument>,
    pub result: RoutineResult,
    pub is_set: bool,
    pub source: FunctionSource,
}

/// An argument of a routine, or a column of RETURNS TABLE.
pub(crate) struct RoutineArgument {
    /// Empty where it has none.
    pub name: String,
    /// PostgreSQL's letter: `i`, `o`, `b`, `v` or `t`.
    pub mode: char,
    pub type_oid: u32,
    /// The type of its elements, where it is an array.
    pub element_oid: u32,
    /// Its type as it is printed.
    pub printed: String,
    /// As it is printed.
    pub default: Option<String>,
}

/// The type that a function returns.
pub(crate) enum RoutineResult {
    /// A type, as it is printed.
    Of(u32, String),
    /// The rows of a table.
    RowOf(String),
}

impl RoutineArgument {
    /// Whether callers give it a value.
    pub fn is_input(&self) -> bool {
        matches!(self.mode, 'i' | 'b' | 'v')
    }
}

impl RoutineFacts {
    /// What the statement says that created the routine.
    pub fn of(catalog: &Catalog, procedure: &Procedure) -> Option<RoutineFacts> {
        let routine = routine_of(catalog, procedure)?;
        let created = procedure.source()?;
        let source = function_source(&SourceStatement {
            text: &created.text,
            line: created.line,
            column: created.column,
        });
        let source = source.ok()?;
        let parameters = routine.parameters.iter().map(|parameter| RoutineArgument {
            name: parameter.name.clone(),
            mode: match parameter.mode {
                ArgumentMode::In => 'i',
                ArgumentMode::Out => 'o',
                ArgumentMode::InOut => 'b',
                ArgumentMode::Variadic => 'v',
            },
            type_oid: numbered(catalog, &parameter.data_type, parameter.domain.as_ref()),
            element_oid: parameter.data_type.element().map_or(0, |of| type_oid(&of)),
            printed: printed(&parameter.data_type, parameter.domain.as_ref()),
            default: parameter
                .default
                .as_ref()
                .map(|default| expression::printed_default(default, &parameter.data_type)),
        });
        let mut arguments: Vec<RoutineArgument> = parameters.collect();
        if let Some(Returns::Table(_)) = &source.header.returns {
            arguments.extend(
                routine
                    .result_columns()
                    .into_iter()
                    .zip(&routine.result_domains)
                    .map(|((name, data_type), domain)| RoutineArgument {
                        name,
                        mode: 't',
                        type_oid: numbered(catalog, &data_type, domain.as_ref()),
                        element_oid: 0,
                        printed: printed(&data_type, domain.as_ref()),
                        default: None,
                    }),
            );
        }
        Some(RoutineFacts {
            kind: routine.kind,
            arguments,
            result: result_of(catalog, &routine, &source),
            is_set: routine.result.is_set(),
            source,
        })
    }

    /// The numbers of the types of its input arguments.
    pub fn input_oids(&self) -> Vec<u32> {
        let inputs = self.arguments.iter().filter(|argument| argument.is_input());
        inputs.map(|argument| argument.type_oid).collect()
    }
}

/// The number of a type, or of the domain over it that was declared.
fn numbered(catalog: &Catalog, data_type: &DataType, domain: Option<&Arc<Domain>>) -> u32 {
    let numbers = catalog.numbers();
    let domain = domain.map(|domain| NumberedObject::Domain(domain.name.clone()));
    let number = domain.and_then(|domain| numbers.get(&domain));
    number.unwrap_or_else(|| type_oid(data_type))
}

fn printed(data_type: &DataType, domain: Option<&Arc<Domain>>) -> String {
    match domain {
        Some(domain) => quote_identifier(&domain.name),
        None => data_type.base_name().to_owned(),
    }
}

fn result_of(catalog: &Catalog, routine: &Routine, source: &FunctionSource) -> RoutineResult {
    let record = || RoutineResult::Of(RECORD, "record".to_owned());
    match &routine.result {
        ResultKind::Void => RoutineResult::Of(VOID, "void".to_owned()),
        ResultKind::Trigger => RoutineResult::Of(TRIGGER, "trigger".to_owned()),
        _ if routine.kind == RoutineKind::Procedure => record(),
        ResultKind::Scalar(data_type) | ResultKind::SetOfScalar(data_type) => {
            let domain = routine.result_domains.first().and_then(Option::as_ref);
            let number = numbered(catalog, data_type, domain);
            RoutineResult::Of(number, printed(data_type, domain))
        }
        ResultKind::Row(_) | ResultKind::SetOfRows(_) => match &source.header.returns {
            Some(Returns::Type(reference) | Returns::SetOf(reference)) => {
                match row_type(catalog, &reference.kind) {
                    Some(table) => RoutineResult::RowOf(table),
                    None => record(),
                }
            }
            _ => record(),
        },
    }
}

/// The table whose rows a type names.
fn row_type(catalog: &Catalog, kind: &TypeKind) -> Option<String> {
    let name = match kind {
        TypeKind::RowOf(path) => relation_of(catalog, &ObjectName::from(path.clone())).ok()?,
        TypeKind::Sql(sqlparser::ast::DataType::Custom(name, _)) => {
            relation_of(catalog, name).ok()?
        }
        _ => return None,
    };
    catalog.table(&name).map(|_| name)
}
