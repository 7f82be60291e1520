//! Triggers of a written catalog.

use std::fmt;

use kiln_storage::error::Result;
use kiln_storage::schema::{Trigger, TriggerEvent, TriggerTime};

use crate::catalog::text_form::{Columns, Counted, Reader};

/// The words for the events.
const EVENTS: [(&str, TriggerEvent); 3] = [
    ("insert", TriggerEvent::Insert),
    ("delete", TriggerEvent::Delete),
    ("update", TriggerEvent::Update),
];

/// Writes a trigger of a table.
pub(super) fn write(f: &mut fmt::Formatter<'_>, trigger: &Trigger) -> fmt::Result {
    // Without `..`: what is added to a trigger has to be written, too.
    let Trigger {
        name,
        time,
        events,
        columns,
        condition,
        function,
        arguments,
        is_enabled,
    } = trigger;
    let time = match time {
        TriggerTime::Before => "before",
        TriggerTime::After => "after",
    };
    write!(f, "  trigger {} {time}", Counted(name))?;
    for (word, event) in EVENTS {
        if events.contains(&event) {
            write!(f, " {word}")?;
        }
    }
    if !columns.is_empty() {
        write!(f, " of {}", Columns(columns))?;
    }
    if let Some(condition) = condition {
        write!(f, " when {}", Counted(condition))?;
    }
    write!(f, " calls {}", Counted(function))?;
    for argument in arguments {
        write!(f, " with {}", Counted(argument))?;
    }
    writeln!(f, "{}", if *is_enabled { "" } else { " disabled" })
}

/// Reads what [`write`] writes, behind the first word.
///
/// # Errors
/// XX001.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Trigger> {
    let name = reader.counted()?.to_owned();
    let time = match reader.word() {
        "before" => TriggerTime::Before,
        "after" => TriggerTime::After,
        _ => return Err(reader.damaged("the time of a trigger before it")),
    };
    let events = EVENTS.into_iter().filter(|(word, _)| reader.takes(word));
    let events: Vec<TriggerEvent> = events.map(|(_, event)| event).collect();
    let columns = match reader.takes("of") {
        true => reader.columns()?,
        false => Vec::new(),
    };
    let condition = match reader.takes("when") {
        true => Some(reader.counted()?.to_owned()),
        false => None,
    };
    reader.expect("calls")?;
    let function = reader.counted()?.to_owned();
    let mut arguments = Vec::new();
    while reader.takes("with") {
        arguments.push(reader.counted()?.to_owned());
    }
    Ok(Trigger {
        name,
        time,
        events,
        columns,
        condition,
        function,
        arguments,
        is_enabled: !reader.takes("disabled"),
    })
}
