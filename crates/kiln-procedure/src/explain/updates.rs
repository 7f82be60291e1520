//! Which updates are deferred to the commit, and why the others are not.

use kiln_storage::schema::{ColumnId, ColumnSet};

use super::grid::Grid;
use super::terms::Terms;
use crate::analysis::{Reason, Verdict};
use crate::ir::*;
use crate::names::{for_each_step, step_operation};
use crate::program::Program;

/// Every column that the procedure updates, one a line: its new value, whether a protocol with
/// commit-time updates leaves it to the commit, and why or why not; and which look-ups find records
/// to which it only adds. Empty when it updates none.
pub fn updates(program: &Program) -> String {
    let verdicts = program.analysis.verdicts();
    if verdicts.is_empty() {
        return String::new();
    }
    let terms = Terms::new(program);
    let headings = ["op", "column", "new value", "at commit", "why", "line"];
    let mut grid = Grid::new(&headings, &[0, 5]);
    let mut last = None;
    for verdict in verdicts {
        let Some((table, register)) = written(program, verdict.op, verdict.column) else {
            continue;
        };
        let is_new = last.replace(verdict.op) != Some(verdict.op);
        let name = |column: ColumnId| terms.column(table, column.index());
        let line = program.operations[verdict.op.0 as usize].position;
        let number = |text: String| if is_new { text } else { String::new() };
        let (at_commit, why) = why(program, table, verdict.from, &verdict.verdict, &terms);
        grid.row(vec![
            number(verdict.op.0.to_string()),
            name(verdict.column).into_owned(),
            terms.of(register),
            at_commit.to_owned(),
            why,
            number(line.map_or_else(String::new, |(line, _)| line.to_string())),
        ]);
    }
    let found: Vec<String> = (0..program.operations.len() as u16)
        .filter(|op| program.analysis.observed(OpId(*op)).is_deferred)
        .map(|op| op.to_string())
        .collect();
    let left = match found.is_empty() {
        true => String::new(),
        false => format!(
            "  only added to: what {} finds; under strife+cu it ties no calls together while a batch does no more to it\n",
            found.join(", ")
        ),
    };
    format!("updates\n{}{left}", grid.render("  "))
}

/// The table of an update and the register with a column's new value.
fn written(program: &Program, op: OpId, column: ColumnId) -> Option<(TableRef, Reg)> {
    let mut found = None;
    for_each_step(&program.body, &mut |step| {
        if let Step::Update { table, columns, .. } = step
            && step_operation(step) == Some(op)
        {
            let value = columns.iter().find(|(known, _)| *known == column);
            found = value.map(|(_, register)| (*table, *register));
        }
    });
    found
}

fn why(
    program: &Program,
    table: TableRef,
    from: ColumnSet,
    verdict: &Verdict,
    terms: &Terms<'_>,
) -> (&'static str, String) {
    match verdict {
        Verdict::Blind => ("blind", "takes no old value of the row".to_owned()),
        Verdict::Deferred {
            can_raise,
            not_null_proven,
        } => {
            let names: Vec<_> = from
                .iter()
                .map(|column| terms.column(table, column.index()))
                .collect();
            let mut text = format!("nobody else looks at {}", names.join(", "));
            if *can_raise {
                text.push_str("; an error rejects the call then");
            }
            if *not_null_proven {
                text.push_str("; NOT NULL is known from the operands");
            }
            ("yes", text)
        }
        Verdict::Observed(observers) => {
            let mut reasons: Vec<String> = Vec::new();
            for observer in observers {
                let column = terms.column(table, observer.column.index());
                let reason = format!("{column} {}", reason(program, observer.reason));
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            ("no", reasons.join("; "))
        }
    }
}

fn reason(program: &Program, reason: Reason) -> String {
    let of = |op: OpId| {
        let operation = &program.operations[op.0 as usize];
        let table = program
            .tables
            .iter()
            .find(|table| table.id() == operation.table);
        let name = table.map_or("", |table| table.schema().name.as_str());
        format!("op {} on {name}", op.0)
    };
    match reason {
        Reason::Returned => "is returned".to_owned(),
        Reason::Key(op) => format!("decides the key of {}", of(op)),
        Reason::Written(op) => format!("is written by {}", of(op)),
        Reason::Indexed(_) => {
            "is taken for an indexed column, whose entry moves at once".to_owned()
        }
        Reason::Branch => "decides what runs".to_owned(),
        Reason::Kept => "goes into a row buffer or a message".to_owned(),
        Reason::Order => "is used in an order that the commit would change".to_owned(),
        Reason::Notice => "may raise an error, and a NOTICE could come before it".to_owned(),
        Reason::Protected => "may raise an error, and the procedure catches errors".to_owned(),
        Reason::ReadApart(op) => format!("was read by {}", of(op)),
    }
}
