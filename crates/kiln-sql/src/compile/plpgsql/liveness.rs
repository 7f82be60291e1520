//! Questions to the syntax tree: who reads FOUND, who writes tables, which blocks are left.
//!
//! The answers are on the safe side. Names are looked for in the debug text of the tree, so that a
//! column or a literal of the same name counts too: then the compiler emits a step that no other
//! step needs.

use crate::parse::Expression;
use crate::parse::plpgsql::{RowSource, Statement, StatementKind, Target};

use super::super::name_of;

/// Whether the identifier `name` may occur in a part of the tree.
pub(super) fn mentions(part: &impl std::fmt::Debug, name: &str) -> bool {
    format!("{part:?}").contains(&format!("value: {name:?}"))
}

/// What a statement means for the value that FOUND has before it.
enum Effect {
    /// May look at it.
    Reads,
    /// Overwrites it, or ends the procedure.
    Ends,
    /// Neither.
    Passes,
}

/// Whether the value that FOUND gets from statement `index` of `list` may be looked at;
/// `at_end` says so for the end of the list.
pub(super) fn found_is_read_after(list: &[Statement], index: usize, at_end: bool) -> bool {
    found_is_read_in(&list[index + 1..], at_end)
}

/// Whether the value that FOUND has before `list` may be looked at in it; `at_end` says so for
/// the end of the list.
pub(super) fn found_is_read_in(list: &[Statement], at_end: bool) -> bool {
    for statement in list {
        match effect_on_found(statement) {
            Effect::Reads => return true,
            Effect::Ends => return false,
            Effect::Passes => {}
        }
    }
    at_end
}

fn effect_on_found(statement: &Statement) -> Effect {
    if mentions(&statement.kind, "found") {
        return Effect::Reads;
    }
    match &statement.kind {
        StatementKind::Select { .. }
        | StatementKind::Data { .. }
        | StatementKind::Perform(_)
        | StatementKind::ReturnQuery(_)
        | StatementKind::Return(_) => Effect::Ends,
        StatementKind::Exit { .. } => Effect::Reads,
        _ => match any_statement(std::slice::from_ref(statement), &|inner| {
            matches!(inner.kind, StatementKind::Exit { .. })
        }) {
            true => Effect::Reads,
            false => Effect::Passes,
        },
    }
}

/// The lists of statements within a statement.
pub(super) fn inner_lists(statement: &Statement) -> Vec<&[Statement]> {
    match &statement.kind {
        StatementKind::Block(block) => block.lists().collect(),
        StatementKind::If {
            branches,
            otherwise,
        } => {
            let mut lists: Vec<&[Statement]> =
                branches.iter().map(|(_, body)| body.as_slice()).collect();
            lists.push(otherwise);
            lists
        }
        StatementKind::Case {
            arms, otherwise, ..
        } => {
            let mut lists: Vec<&[Statement]> = arms.iter().map(|arm| arm.body.as_slice()).collect();
            lists.extend(otherwise.as_deref());
            lists
        }
        StatementKind::Loop(body)
        | StatementKind::While { body, .. }
        | StatementKind::ForQuery { body, .. }
        | StatementKind::ForEach { body, .. } => vec![&body.body],
        StatementKind::ForRange(range) => vec![&range.body.body],
        StatementKind::ForCursor(cursor) => vec![&cursor.body.body],
        _ => Vec::new(),
    }
}

/// Whether `accept` accepts a statement of the list or within one.
pub(super) fn any_statement(list: &[Statement], accept: &impl Fn(&Statement) -> bool) -> bool {
    list.iter().any(|statement| {
        accept(statement)
            || inner_lists(statement)
                .into_iter()
                .any(|inner| any_statement(inner, accept))
    })
}

/// Whether running the list may write to a table.
pub(super) fn may_write(list: &[Statement]) -> bool {
    any_statement(list, &|statement| {
        matches!(
            statement.kind,
            StatementKind::Data { .. }
                | StatementKind::Call(_)
                | StatementKind::ForQuery {
                    rows: RowSource::Data(_),
                    ..
                }
                | StatementKind::ReturnQuery(RowSource::Data(_))
        )
    })
}

/// Whether the list may be left before its end other than by an error.
pub(super) fn may_leave(list: &[Statement]) -> bool {
    any_statement(list, &|statement| {
        matches!(
            statement.kind,
            StatementKind::Exit { .. } | StatementKind::Return(_)
        )
    })
}

/// Whether an EXIT in the list names `label`.
pub(super) fn exits_to(list: &[Statement], label: &str) -> bool {
    any_statement(list, &|statement| match &statement.kind {
        StatementKind::Exit {
            label: Some(named), ..
        } => name_of(named) == label,
        _ => false,
    })
}

/// Whether GET DIAGNOSTICS asks for ROW_COUNT somewhere.
pub(super) fn asks_for_row_count(list: &[Statement]) -> bool {
    any_statement(list, &|statement| {
        matches!(statement.kind, StatementKind::GetRowCount(_))
    })
}

/// Calls `visit` for the statements of the list and those within them.
pub(super) fn each_statement<'s>(list: &'s [Statement], visit: &mut dyn FnMut(&'s Statement)) {
    for statement in list {
        visit(statement);
        for inner in inner_lists(statement) {
            each_statement(inner, visit);
        }
    }
}

/// What a statement itself assigns to, but for what a CALL does.
pub(super) fn targets(statement: &Statement) -> Vec<&Target> {
    match &statement.kind {
        StatementKind::Assign { target, .. } | StatementKind::ForEach { target, .. } => {
            vec![target]
        }
        StatementKind::GetRowCount(targets) => targets.iter().collect(),
        StatementKind::GetStacked(items) => items.iter().map(|(target, _)| target).collect(),
        StatementKind::Select { into, .. }
        | StatementKind::Execute {
            into: Some(into), ..
        }
        | StatementKind::Data {
            into: Some(into), ..
        } => into.targets.iter().collect(),
        StatementKind::ForQuery { targets, .. } => targets.iter().collect(),
        StatementKind::CursorStep(step) => step.into.iter().flatten().collect(),
        _ => Vec::new(),
    }
}

/// Whether something of this name is assigned to.
pub(super) fn assigns(list: &[Statement], name: &str) -> bool {
    let is_named = |target: &&Target| target.path.iter().any(|part| name_of(part) == name);
    any_statement(list, &|statement| match &statement.kind {
        StatementKind::Call(call) => call
            .arguments
            .iter()
            .any(|argument| expression_names(&argument.value, name)),
        _ => targets(statement).iter().any(is_named),
    })
}

fn expression_names(expression: &Expression, name: &str) -> bool {
    mentions(&expression.expr, name)
}
