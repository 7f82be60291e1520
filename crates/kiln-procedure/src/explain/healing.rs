//! What a protocol that heals does about each operation (healing §4, Figures 2 and 15).

use kiln_storage::schema::TableId;

use super::grid::Grid;
use crate::analysis::{Dependency, DependencyKinds};
use crate::ir::{OpId, OperationKind};
use crate::program::Program;

/// One line an operation: its table's rank in the validation order, how it is restored when an
/// operation that feeds it gave something else, and which operations are restored when this one
/// does: by a *value* edge without a look-up, by a *key* edge with one if the key is another one.
pub fn healing(program: &Program) -> String {
    let mut tables: Vec<TableId> = program.tables.iter().map(|table| table.id()).collect();
    tables.sort_unstable();
    tables.dedup();
    if tables.is_empty() {
        return String::new();
    }
    let headings = [
        "op",
        "operation",
        "validated",
        "restored",
        "restores",
        "line",
    ];
    let mut grid = Grid::new(&headings, &[0, 2, 5]);
    for (position, operation) in program.operations.iter().enumerate() {
        let op = OpId(position as u16);
        let mut named = program.tables.iter();
        let Some(table) = named.find(|table| table.id() == operation.table) else {
            continue;
        };
        let verb = format!("{:?}", operation.kind).to_lowercase();
        let rank = tables.partition_point(|known| *known < operation.table) + 1;
        let line = operation.position.map(|(line, _)| line.to_string());
        grid.row(vec![
            position.to_string(),
            format!("{verb} {}", table.schema().name),
            rank.to_string(),
            restored(program, op),
            restores(program, op),
            line.unwrap_or_default(),
        ]);
    }
    format!(
        "healing: tables are validated in the order of their creation\n{}",
        grid.render("  ")
    )
}

/// The operations at the other ends of some edges.
fn list(edges: &[&Dependency], end: impl Fn(&Dependency) -> OpId) -> String {
    let numbers: Vec<String> = edges.iter().map(|edge| end(edge).0.to_string()).collect();
    numbers.join(", ")
}

/// How an operation is restored.
fn restored(program: &Program, op: OpId) -> String {
    let kind_of = |op: OpId| program.operations[op.0 as usize].kind;
    let fed_by = |kind: DependencyKinds| -> Vec<&Dependency> {
        let edges = program.analysis.dependencies_of(op).iter();
        edges.filter(|edge| edge.kinds.intersects(kind)).collect()
    };
    // What an operation finds feeds the key of those that read or write that record: these only
    // follow.
    let keys = list(&fed_by(DependencyKinds::KEY), |edge| edge.from);
    let values = list(&fed_by(DependencyKinds::VALUE), |edge| edge.from);
    match (kind_of(op), keys.as_str()) {
        (OperationKind::Lookup, "") => "no look-up: its key is known beforehand".to_owned(),
        (OperationKind::Lookup, keys) => format!("look-up if {keys} give another key"),
        (OperationKind::Scan, "") => "through the index, records from the cache".to_owned(),
        (OperationKind::Scan, keys) => {
            format!("through the index, records from the cache; another range by {keys}")
        }
        (OperationKind::Read, _) => "no look-up: if the columns read differ".to_owned(),
        (OperationKind::Update, _) if values.is_empty() => {
            "no look-up: takes nothing that was read".to_owned()
        }
        (OperationKind::Update, _) => format!("no look-up: value of {values}"),
        (OperationKind::Delete, _) => "no look-up".to_owned(),
        (OperationKind::Insert, _) => match program.analysis.inserts_late() {
            true => "nothing: enters the indexes when all is validated".to_owned(),
            false => "taken back, and made again".to_owned(),
        },
    }
}

/// What is restored after it.
fn restores(program: &Program, op: OpId) -> String {
    let mut parts = Vec::new();
    for (name, kind) in [
        ("value", DependencyKinds::VALUE),
        ("key", DependencyKinds::KEY),
        ("control", DependencyKinds::CONTROL),
    ] {
        let edges: Vec<&Dependency> = (program.analysis.dependents_of(op))
            .filter(|edge| edge.kinds.intersects(kind))
            .collect();
        if !edges.is_empty() {
            parts.push(format!("{name} → {}", list(&edges, |edge| edge.to)));
        }
    }
    parts.join("; ")
}
