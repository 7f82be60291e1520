//! Runs as text, for the golden files and for people.

use std::fmt::Write;

use crate::runner::{End, Event, Run};
use crate::script::Script;
use crate::subject::Answer;

/// Everything that happened, in its order, and what came of it.
pub fn transcript(script: &Script, run: &Run) -> String {
    let mut out = format!(
        "== {}: {} ({})\n",
        script.name, script.title, script.anomaly
    );
    let line = |step: usize| {
        let step = &script.steps[step];
        format!("{}: {}", script.transactions[step.transaction], step.sql)
    };
    // Writing to a string cannot fail.
    for event in &run.events {
        let _ = match event {
            Event::Waits(step) => writeln!(out, "{}\n    waits", line(*step)),
            Event::Queued(step) => writeln!(out, "{}\n    waits its turn", line(*step)),
            Event::Answered(step, waited) => {
                let late = if *waited { "  (waited)" } else { "" };
                write!(
                    out,
                    "{}{late}\n{}",
                    line(*step),
                    answer(&run.answers[*step])
                )
            }
        };
    }
    let ends = script.transactions.iter().zip(&run.ends);
    let ends: Vec<String> = ends
        .map(|(name, end)| match end {
            End::Committed => format!("{name} committed"),
            End::RolledBack => format!("{name} rolled back"),
            End::Conflict => format!("{name} met a conflict"),
            End::Rejected => format!("{name} was rejected"),
        })
        .collect();
    let _ = writeln!(out, "-- {}", ends.join(", "));
    let rows = match run.final_rows.as_slice() {
        [] => "none".to_owned(),
        rows => rows.join(" "),
    };
    let _ = writeln!(out, "-- final rows: {rows}");
    let order = match &run.order {
        Some(order) if order.is_empty() => "as if nobody had run".to_owned(),
        Some(order) => {
            let names: Vec<&str> = order
                .iter()
                .map(|&transaction| script.transactions[transaction].as_str())
                .collect();
            format!("as if one after the other: {}", names.join(", "))
        }
        None => "no serial order".to_owned(),
    };
    let _ = writeln!(out, "-- {order}");
    out
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) if rows.is_empty() => "    no rows\n".to_owned(),
        Answer::Rows(rows) => rows.iter().map(|row| format!("    {row}\n")).collect(),
        Answer::Done(tag) => format!("    {tag}\n"),
        Answer::Refused { state, detail } => format!("    {state}: {detail}\n"),
    }
}

/// The first line in which two texts differ, with a few before it; `None` when they are equal.
pub fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), actual.lines().collect());
    let same = expected.iter().zip(&actual).take_while(|(e, a)| e == a);
    let place = same.count();
    let before = expected[place.saturating_sub(4)..place].join("\n");
    let or_end = |lines: &[&str]| (*lines.get(place).unwrap_or(&"(the end)")).to_owned();
    Some(format!(
        "line {}:\n{before}\n  expected: {}\n  happened: {}",
        place + 1,
        or_end(&expected),
        or_end(&actual)
    ))
}

#[test]
fn differences_are_found() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let found = difference("a\nb\nc\n", "a\nx\nc\n").expect("they differ");
    assert!(
        found.starts_with("line 2:\na\n") && found.contains("happened: x"),
        "{found}"
    );
    let found = difference("a\nb\n", "a\n").expect("they differ");
    assert!(
        found.contains("expected: b\n  happened: (the end)"),
        "{found}"
    );
}
