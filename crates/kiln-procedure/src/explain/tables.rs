//! The column groups of tables and the conflicts of statements.

use kiln_platform::sync::Arc;
use std::borrow::Cow;

use kiln_storage::schema::{ColumnSet, Partitioning};
use kiln_storage::table::Table;

use super::grid::Grid;
use crate::workload::conflicts::{self, ConflictKind, Resolution, Statement};
use crate::workload::groups::{self, Grouping, Weighted};

/// The numbers of timestamps that are compared.
const MORE_MAX: usize = 4;

fn names(table: &Table, columns: ColumnSet) -> String {
    let schema = table.schema();
    if columns.len() == schema.columns.len() {
        return "all".to_owned();
    }
    let names: Vec<Cow<'_, str>> = columns
        .iter()
        .map(|column| schema.columns[column.index()].label())
        .collect();
    match names.is_empty() {
        true => "–".to_owned(),
        false => names.join(", "),
    }
}

/// The split of every table that the programs use, as it is in force, and what it costs with
/// commit-time updates.
fn groupings(programs: &[Weighted<'_>]) -> Vec<(Arc<Table>, Grouping)> {
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for Weighted { program, .. } in programs {
        for table in &program.tables {
            if !tables.iter().any(|known| known.id() == table.id()) {
                tables.push(table.clone());
            }
        }
    }
    tables.sort_by_key(|table| table.id());
    tables
        .into_iter()
        .map(|table| {
            let usages = groups::usages(programs, table.id(), true);
            let grouping = Grouping::of(table.schema().columns.len(), table.split(), usages);
            (table, grouping)
        })
        .collect()
}

fn percent(share: f64) -> String {
    // The sum of nothing is -0.
    format!("{:.0} %", share.abs() * 100.0)
}

/// How a table's rows are divided over partitions, where that was declared: `; partitioned by
/// w_id`.
fn partitioning(table: &Table) -> String {
    let schema = table.schema();
    match schema.partition_by {
        Some(Partitioning::Column(column)) => {
            format!("; partitioned by {}", schema.columns[column.index()].name)
        }
        Some(Partitioning::Replicated) => "; replicated".to_owned(),
        None => String::new(),
    }
}

/// The column groups of every table that the programs use, as they are in force, what the cost rule
/// says of them, and how rows are divided over partitions.
pub fn tables(programs: &[Weighted<'_>]) -> String {
    let mut out = String::new();
    for (table, grouping) in groupings(programs) {
        let name = &table.schema().name;
        if !out.is_empty() {
            out.push('\n');
        }
        if grouping.usages.is_empty() {
            out.push_str(&format!(
                "{name}: one timestamp; no procedure looks rows up{}\n",
                partitioning(&table)
            ));
            continue;
        }
        let because = match grouping.is_split() {
            true if grouping.is_read_only() => {
                "2 timestamps; no procedure updates a column".to_owned()
            }
            true => format!(
                "{} timestamps; cost {:.2}, with one {:.2}",
                grouping.groups.len(),
                grouping.cost,
                grouping.cost_of_one
            ),
            false => format!("one timestamp; cost {:.2}", grouping.cost),
        };
        // What further timestamps would be good for.
        let (columns, usages) = (table.schema().columns.len(), grouping.usages.clone());
        let more = groups::derive(columns, usages.clone(), MORE_MAX);
        let mut others = match more.groups.len() > grouping.groups.len().max(2) {
            true => format!(", with {} {:.2}", more.groups.len(), more.cost),
            false => String::new(),
        };
        let best = groups::best(columns, usages);
        if best.split() != grouping.split() {
            others.push_str(&format!(
                ", with {} apart {:.2}",
                names(&table, best.split()),
                best.cost
            ));
        }
        let partitioning = partitioning(&table);
        out.push_str(&format!("{name}: {because}{others}{partitioning}\n"));
        if grouping.is_split() {
            let headings = ["group", "observed by", "written by", "columns"];
            let mut grid = Grid::new(&headings, &[1, 2]);
            for (number, group) in grouping.groups.iter().enumerate() {
                let label = match number {
                    0 => "base".to_owned(),
                    number => number.to_string(),
                };
                grid.row(vec![
                    label,
                    percent(group.observed),
                    percent(group.written),
                    names(&table, group.columns),
                ]);
            }
            out.push_str(&grid.render("  "));
        }
        let headings = ["usage", "line", "share", "observes", "writes"];
        let mut grid = Grid::new(&headings, &[1, 2]);
        for usage in &grouping.usages {
            grid.row(vec![
                format!("{} op {}", usage.procedure, usage.op.0),
                usage.line.map_or_else(String::new, |line| line.to_string()),
                percent(usage.share),
                names(&table, usage.observed),
                names(&table, usage.written),
            ]);
        }
        out.push_str(&grid.render("  "));
    }
    out
}

/// The static conflict matrix of the programs: every pair of statements that may conflict, what
/// about, and whether commit-time updates (cu) or timestamp splitting (ts) remove it.
pub fn conflicts(programs: &[Weighted<'_>]) -> String {
    let groupings = groupings(programs);
    let statements = conflicts::statements(programs);
    let grouping = |table| {
        let mut known = groupings.iter();
        known
            .find(|(known, _)| known.id() == table)
            .map(|(_, grouping)| grouping)
    };
    let found = conflicts::conflicts(&statements, grouping);
    let place = |statement: &Statement| format!("{}:{}", statement.procedure, statement.line);
    let mut out = String::new();
    for (table, _) in &groupings {
        let of_table =
            |conflict: &&conflicts::Conflict| statements[conflict.one].table == table.id();
        let mut grid = Grid::new(
            &["statement", "and", "conflict", "columns", "removed by"],
            &[],
        );
        let mut count = 0;
        for conflict in found.iter().filter(of_table) {
            count += 1;
            let writer = &statements[conflict.other];
            grid.row(vec![
                place(&statements[conflict.one]),
                place(writer),
                match conflict.kind {
                    ConflictKind::ReadWrite => "read–write",
                    ConflictKind::WriteWrite => "write–write",
                    ConflictKind::Phantom if writer.inserts => "insert",
                    ConflictKind::Phantom if writer.deletes => "delete",
                    ConflictKind::Phantom => "moved key",
                }
                .to_owned(),
                match conflict.columns.is_empty() {
                    true => "none in common".to_owned(),
                    false => names(table, conflict.columns),
                },
                match conflict.resolution {
                    Resolution::Stays => "stays",
                    Resolution::Waits => "waits",
                    Resolution::CommitTimeUpdate => "cu",
                    Resolution::TimestampSplitting => "ts",
                    Resolution::Both => "cu+ts",
                }
                .to_owned(),
            ]);
        }
        if count > 0 {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&format!("{}\n{}", table.schema().name, grid.render("  ")));
        }
    }
    let count = |wanted: Resolution| {
        found
            .iter()
            .filter(|conflict| conflict.resolution == wanted)
            .count()
    };
    let cu = count(Resolution::CommitTimeUpdate);
    let (ts, both) = (
        count(Resolution::TimestampSplitting),
        count(Resolution::Both),
    );
    out.push_str(&format!(
        "\n{} pairs may conflict: cu removes {cu}, ts {ts}, both together {both}; in {} they wait and neither fails; {} stay\n",
        found.len(),
        count(Resolution::Waits),
        count(Resolution::Stays),
    ));
    out
}
