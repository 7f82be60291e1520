//! Triggers: `pg_trigger`, `information_schema.triggers`, and how they are printed.

use kiln_storage::schema::{Trigger, TriggerEvent, TriggerTime};
use kiln_storage::types::Value;

use super::expression;
use super::pretty::pretty;
use super::snapshot::{Snapshot, TableEntry};
use super::values::{Row, boolean, column_numbers, oid, optional, small, text};
use crate::compile::{quote_identifier, short_name, sql_name};

/// `pg_trigger.tgtype` of a trigger for each row.
const ROW: i16 = 1;
const BEFORE: i16 = 2;

/// The events in the order in which PostgreSQL prints them, with their bits in `tgtype`.
const EVENTS: [(TriggerEvent, i16); 3] = [
    (TriggerEvent::Insert, 4),
    (TriggerEvent::Delete, 8),
    (TriggerEvent::Update, 16),
];

/// The triggers that users have created, with their tables and numbers.
pub(super) fn all(snapshot: &Snapshot) -> impl Iterator<Item = (&TableEntry, &Trigger, u32)> {
    snapshot.tables.iter().flat_map(|table| {
        let triggers = table.schema().triggers.iter().zip(&table.triggers);
        triggers.map(move |(trigger, oid)| (table, trigger, *oid))
    })
}

/// Triggers. The checks of foreign keys, which are triggers in PostgreSQL, are not among them.
pub(super) fn pg_trigger(snapshot: &Snapshot) -> Vec<Row> {
    let rows = all(snapshot).map(|(table, trigger, number)| {
        let routines = snapshot.routines.iter();
        let mut routines = routines.filter(|routine| routine.name == trigger.function);
        let mut kind = ROW;
        if trigger.time == TriggerTime::Before {
            kind |= BEFORE;
        }
        let events = EVENTS
            .iter()
            .filter(|(event, _)| trigger.events.contains(event));
        kind |= events.map(|(_, bit)| bit).sum::<i16>();
        let arguments = trigger.arguments.iter();
        let arguments = arguments.flat_map(|argument| argument.bytes().chain([0]));
        vec![
            oid(number),
            oid(table.oid),
            oid(0),
            text(trigger.name.clone()),
            oid(routines.next().map_or(0, |routine| routine.oid)),
            Value::SmallInt(kind),
            text(if trigger.is_enabled { "O" } else { "D" }),
            boolean(false),
            oid(0),
            oid(0),
            oid(0),
            boolean(false),
            boolean(false),
            small(trigger.arguments.len()),
            column_numbers(trigger.columns.iter().map(|column| column.index())),
            Value::Bytea(arguments.collect()),
            optional(condition(table, trigger)),
            Value::Null,
            Value::Null,
        ]
    });
    rows.collect()
}

/// The condition of a trigger, as PostgreSQL prints it.
pub(super) fn condition(table: &TableEntry, trigger: &Trigger) -> Option<String> {
    let text = trigger.condition.as_ref()?;
    Some(expression::of_rows(table.schema(), text))
}

/// What stands behind the condition.
pub(super) fn statement(trigger: &Trigger) -> String {
    let arguments = trigger.arguments.iter();
    let arguments = arguments.map(|argument| format!("'{}'", argument.replace('\'', "''")));
    format!(
        "EXECUTE FUNCTION {}({})",
        quote_identifier(&trigger.function),
        arguments.collect::<Vec<_>>().join(", ")
    )
}

/// When a trigger fires.
pub(super) fn time(trigger: &Trigger) -> &'static str {
    match trigger.time {
        TriggerTime::Before => "BEFORE",
        TriggerTime::After => "AFTER",
    }
}

/// The events of a trigger, in their order.
pub(super) fn events(trigger: &Trigger) -> impl Iterator<Item = TriggerEvent> {
    let events = EVENTS.into_iter().map(|(event, _)| event);
    events.filter(|event| trigger.events.contains(event))
}

/// CREATE TRIGGER; for people without what they do not need.
pub(super) fn definition(table: &TableEntry, trigger: &Trigger, is_pretty: bool) -> String {
    let schema = table.schema();
    let events = events(trigger).map(|event| match (event, trigger.columns.as_slice()) {
        (TriggerEvent::Update, [_, ..]) => {
            let columns = super::deparse::column_list(schema, &trigger.columns);
            format!("UPDATE OF {columns}")
        }
        (event, _) => event.name().to_owned(),
    });
    let condition = condition(table, trigger).map(|text| match is_pretty {
        true => format!("WHEN ({}) ", pretty(&text)),
        false => format!("WHEN ({text}) "),
    });
    format!(
        "CREATE TRIGGER {} {} {} ON {} FOR EACH ROW {}{}",
        quote_identifier(&trigger.name),
        time(trigger),
        events.collect::<Vec<_>>().join(" OR "),
        match is_pretty {
            true => short_name(table.qualified()),
            false => sql_name(table.qualified()),
        },
        condition.unwrap_or_default(),
        statement(trigger)
    )
}
