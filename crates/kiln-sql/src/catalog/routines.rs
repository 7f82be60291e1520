//! Functions and procedures: what their headers say, and `pg_proc`.

use kiln_engine::{Catalog, Domain, NumberedObject, Object, Procedure};
use kiln_platform::sync::Arc;
use kiln_storage::types::{DataType, Value};

use super::snapshot::{RoutineEntry, Snapshot, type_oid};
use super::values::{Row, array, boolean, no_function, oid, optional, small, text};
use super::{PUBLIC_OID, builtin, expression, roles};
use crate::compile::plpgsql::{ResultKind, Routine};
use crate::compile::quote_identifier;
use sqlparser::ast::ObjectName;

use super::view::{relation_of, routine_of};
use crate::parse::{
    ArgumentMode, FunctionSource, Returns, RoutineKind, SourceStatement, TypeKind, Volatility,
    function_source,
};

/// The number of the type VOID.
const VOID: u32 = 2278;
/// The number of the type TRIGGER.
const TRIGGER: u32 = 2279;
/// The number of the type RECORD.
const RECORD: u32 = 2249;

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
    /// PostgreSQL's letter: `i`, `o`, `b` or `t`.
    pub mode: char,
    pub type_oid: u32,
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
        matches!(self.mode, 'i' | 'b')
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
            },
            type_oid: numbered(catalog, &parameter.data_type, parameter.domain.as_ref()),
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

/// Functions and procedures.
pub(super) fn pg_proc(snapshot: &Snapshot) -> Vec<Row> {
    let own = snapshot.routines.iter();
    let own = own.filter_map(|routine| {
        let facts = routine.facts.as_ref()?;
        Some(own_row(snapshot, routine, facts))
    });
    builtin::rows("pg_proc")
        .iter()
        .cloned()
        .chain(own)
        .collect()
}

fn own_row(snapshot: &Snapshot, routine: &RoutineEntry, facts: &RoutineFacts) -> Row {
    let header = &facts.source.header;
    let language = match facts.source.language.as_str() {
        "sql" => "sql",
        _ => "plpgsql",
    };
    let languages = builtin::rows("pg_language").iter();
    let mut languages = languages.filter(|row| row.get(1) == Some(&text(language)));
    let language = languages.next().and_then(|row| row.first().cloned());
    let defaults = facts.arguments.iter().filter(|it| it.default.is_some());
    let all_inputs = facts.arguments.iter().all(|argument| argument.mode == 'i');
    let all_unnamed = facts
        .arguments
        .iter()
        .all(|argument| argument.name.is_empty());
    let unless = |is_absent: bool, values: Vec<Value>| match is_absent {
        true => Value::Null,
        false => array(values),
    };
    let each = |of: &dyn Fn(&RoutineArgument) -> Value| -> Vec<Value> {
        facts.arguments.iter().map(of).collect()
    };
    let printed: Vec<&str> = facts
        .arguments
        .iter()
        .filter_map(|it| it.default.as_deref())
        .collect();
    vec![
        oid(routine.oid),
        text(routine.name.clone()),
        oid(PUBLIC_OID),
        oid(snapshot.owner_oid(&Object::routine(&*routine.name))),
        language.unwrap_or_default(),
        Value::Double(100.0),
        Value::Double(if facts.is_set { 1000.0 } else { 0.0 }),
        oid(0),
        no_function(),
        text(match facts.kind {
            RoutineKind::Function => "f",
            RoutineKind::Procedure => "p",
        }),
        boolean(header.is_definer),
        boolean(false),
        boolean(header.strict),
        boolean(facts.is_set),
        text(match header.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        }),
        text("u"),
        small(facts.input_oids().len()),
        small(defaults.count()),
        oid(snapshot.result_oid(facts)),
        array(facts.input_oids().into_iter().map(oid)),
        unless(all_inputs, each(&|argument| oid(argument.type_oid))),
        unless(all_inputs, each(&|argument| text(argument.mode))),
        unless(all_unnamed, each(&|argument| text(argument.name.clone()))),
        optional((!printed.is_empty()).then(|| printed.join(", "))),
        Value::Null,
        text(facts.source.body.clone()),
        Value::Null,
        Value::Null,
        Value::Null,
        roles::privileges_of(snapshot, &Object::routine(routine.name.clone())),
    ]
}

impl Snapshot {
    /// The number of the type that a routine returns.
    pub fn result_oid(&self, facts: &RoutineFacts) -> u32 {
        match &facts.result {
            RoutineResult::Of(oid, _) => *oid,
            RoutineResult::RowOf(table) => self.table(table).map_or(RECORD, |table| table.row_type),
        }
    }
}
