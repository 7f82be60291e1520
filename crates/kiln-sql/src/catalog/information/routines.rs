//! Functions and procedures: the users' own. PostgreSQL's are in `pg_proc`.

use kiln_engine::Object;

use super::super::builtin;
use super::super::snapshot::{RoutineEntry, RoutineFacts, RoutineResult, Snapshot};
use super::super::values::{Row, integer, optional, yes_or_no};
use super::{Maker, RowOf, position, tables};
use crate::parse::{RoutineKind, Volatility};

fn all(snapshot: &Snapshot) -> impl Iterator<Item = (&RoutineEntry, &RoutineFacts)> {
    let routines = snapshot.routines.iter();
    routines.filter_map(|routine| routine.facts.as_ref().map(|facts| (routine, facts)))
}

/// A name that no other routine has, whatever its arguments.
fn specific_name(routine: &RoutineEntry) -> String {
    format!("{}_{}", routine.name, routine.oid)
}

/// Functions and procedures.
pub(super) fn routines(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("routines");
    let rows = all(snapshot).map(|(routine, facts)| {
        let header = &facts.source.header;
        let is_function = facts.kind == RoutineKind::Function;
        let language = facts.source.language.to_uppercase();
        let row = maker
            .row()
            .named("specific", "public", &specific_name(routine))
            .named("routine", "public", &routine.name)
            .with(
                "routine_type",
                if is_function { "FUNCTION" } else { "PROCEDURE" },
            )
            .with(
                "routine_body",
                if language == "SQL" { "SQL" } else { "EXTERNAL" },
            )
            .with("routine_definition", facts.source.body.as_str())
            .with("external_language", language)
            .with("parameter_style", "GENERAL")
            .with(
                "is_deterministic",
                yes_or_no(header.volatility == Volatility::Immutable),
            )
            .with("sql_data_access", "MODIFIES")
            .with("schema_level_routine", yes_or_no(true))
            .with("max_dynamic_result_sets", integer(0))
            .with(
                "security_type",
                if header.is_definer {
                    "DEFINER"
                } else {
                    "INVOKER"
                },
            )
            .with("as_locator", yes_or_no(false))
            .with("is_udt_dependent", yes_or_no(false));
        if !is_function {
            return row.row;
        }
        let row = row.with("is_null_call", yes_or_no(header.strict));
        with_result(row, facts).row
    });
    rows.collect()
}

fn with_result<'m>(row: RowOf<'m>, facts: &RoutineFacts) -> RowOf<'m> {
    let row = row.with("dtd_identifier", "0");
    match &facts.result {
        RoutineResult::RowOf(table) => row
            .of_qualified("type_udt", table)
            .with("data_type", "USER-DEFINED"),
        RoutineResult::Of(oid, printed) => {
            let known = builtin::type_by_oid(*oid);
            let is_array = known.is_some_and(|known| known.is_array);
            row.named(
                "type_udt",
                "pg_catalog",
                known.map_or("", |known| known.name),
            )
            .with(
                "data_type",
                if is_array { "ARRAY" } else { printed.as_str() },
            )
        }
    }
}

/// Arguments.
pub(super) fn parameters(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("parameters");
    let mut rows = Vec::new();
    for (routine, facts) in all(snapshot) {
        for (at, argument) in facts.arguments.iter().enumerate() {
            let mode = match argument.mode {
                'i' | 'v' => "IN",
                'b' => "INOUT",
                _ => "OUT",
            };
            let known = builtin::type_by_oid(argument.type_oid);
            let is_array = known.is_some_and(|known| known.is_array);
            let name = (!argument.name.is_empty()).then(|| argument.name.clone());
            let row = maker
                .row()
                .named("specific", "public", &specific_name(routine))
                .with("ordinal_position", position(at))
                .with("parameter_mode", mode)
                .with("is_result", yes_or_no(false))
                .with("as_locator", yes_or_no(false))
                .with("parameter_name", optional(name))
                .with(
                    "data_type",
                    if is_array {
                        "ARRAY"
                    } else {
                        argument.printed.as_str()
                    },
                )
                .named("udt", "pg_catalog", known.map_or("", |known| known.name))
                .with("dtd_identifier", (at + 1).to_string())
                .with("parameter_default", optional(argument.default.clone()));
            rows.push(row.row);
        }
    }
    rows
}

/// The privileges to call routines.
pub(super) fn routine_privileges(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("routine_privileges");
    let mut rows = Vec::new();
    for (routine, _) in all(snapshot) {
        let owner = snapshot.owner(&Object::routine(routine.name.clone()));
        let row = |grantee: &str, is_owner: bool| {
            maker
                .row()
                .with("grantor", owner)
                .with("grantee", grantee)
                .named("specific", "public", &specific_name(routine))
                .named("routine", "public", &routine.name)
                .with("privilege_type", "EXECUTE")
                .with("is_grantable", yes_or_no(is_owner))
                .row
        };
        let granted = tables::granted(snapshot, &Object::routine(routine.name.clone()));
        rows.extend(granted.iter().map(|(grantee, _)| row(grantee, false)));
        rows.push(row(owner, true));
    }
    rows
}
