//! Triggers: a row for each event.

use kiln_storage::schema::Trigger;
use kiln_storage::types::Value;

use super::super::snapshot::{Snapshot, TableEntry};
use super::super::triggers::{all, condition, events, statement, time};
use super::super::values::{Row, integer, optional, text};
use super::Maker;

/// Triggers.
pub(super) fn triggers(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("triggers");
    let mut rows = Vec::new();
    for (table, trigger, _) in all(snapshot) {
        for event in events(trigger) {
            let row = maker
                .row()
                .named("trigger", table.schema_name(), &trigger.name)
                .with("event_manipulation", event.name())
                .with("event_object_catalog", super::DATABASE)
                .with("event_object_schema", table.schema_name())
                .with("event_object_table", table.name())
                .with("action_order", integer(order(table, trigger, event)))
                .with("action_condition", optional(condition(table, trigger)))
                .with("action_statement", statement(trigger))
                .with("action_orientation", text("ROW"))
                .with("action_timing", time(trigger))
                .with("created", Value::Null);
            rows.push(row.row);
        }
    }
    rows
}

/// Which one it is among those that fire at the same time for the same event, from 1.
fn order(table: &TableEntry, trigger: &Trigger, event: kiln_storage::schema::TriggerEvent) -> i32 {
    let all = table.schema().triggers.iter();
    let same = all.filter(|it| it.time == trigger.time && it.events.contains(&event));
    let before = same.take_while(|it| it.name != trigger.name).count();
    i32::try_from(before).map_or(i32::MAX, |before| before.saturating_add(1))
}
