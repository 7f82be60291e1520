//! Functions and procedures: what their headers say, and `pg_proc`.

use kiln_engine::Object;
use kiln_storage::types::Value;

use super::snapshot::{
    RECORD, RoutineArgument, RoutineEntry, RoutineFacts, RoutineResult, Snapshot,
};
use super::values::{Row, array, boolean, no_function, oid, optional, small, text};
use super::{PUBLIC_OID, builtin, roles};

use crate::parse::{RoutineKind, Volatility};

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
    let variadic = facts.arguments.iter().find(|argument| argument.mode == 'v');
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
        oid(variadic.map_or(0, |argument| argument.element_oid)),
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
