//! Queries that prove that a workload's data is still consistent.

use kiln_storage::types::Decimal;

/// A query whose rows are violations: none, and the condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// The condition's short name, such as `condition 3`.
    pub name: &'static str,
    /// What must hold.
    pub description: &'static str,
    /// The query.
    pub sql: &'static str,
}

/// A query that returns one number, which must be the one that the committed calls add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingCheck {
    /// The check's short name.
    pub name: &'static str,
    /// The query; its result is one row with one number.
    pub sql: &'static str,
    /// What the query must return.
    pub expected: Decimal,
}

/// What the committed calls since the population add up to. Terminals count for themselves; the
/// driver merges them at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Committed calls by procedure.
    pub committed: Vec<u64>,
    /// Money that came into the database less what went out, in cents (SmallBank).
    pub money_cents: i128,
    /// Orders delivered (TPC-C).
    pub delivered: u64,
    /// Districts that a delivery skipped because they had no new order (TPC-C, clause 2.7.4.2).
    pub skipped: u64,
    /// The greatest number that a terminal gave an order, committed or not, where terminals do that
    /// (TPC-C).
    pub last_order: u32,
    /// Rows changed, where terminals count them (ranges).
    pub rows_changed: u64,
}

impl Totals {
    /// Nothing yet, for a workload with this many procedures.
    pub fn new(procedures: usize) -> Totals {
        Totals {
            committed: vec![0; procedures],
            ..Totals::default()
        }
    }

    /// Adds another terminal's totals.
    pub fn merge(&mut self, other: &Totals) {
        if self.committed.len() < other.committed.len() {
            self.committed.resize(other.committed.len(), 0);
        }
        for (mine, theirs) in self.committed.iter_mut().zip(&other.committed) {
            *mine += theirs;
        }
        self.money_cents += other.money_cents;
        self.delivered += other.delivered;
        self.skipped += other.skipped;
        self.last_order = self.last_order.max(other.last_order);
        self.rows_changed += other.rows_changed;
    }
}

/// Splits a script into its statements, each introduced by a comment of its own whose first line
/// reads `-- name: description`. Returns name, description and statement with its semicolon.
///
/// This is no SQL parser: a statement ends with a semicolon at the end of a line, and its comment
/// starts after the last empty line before it.
pub fn named_statements(script: &str) -> Vec<(&str, &str, &str)> {
    let mut statements = Vec::new();
    let mut rest = script;
    while let Some(end) = rest.find(";\n").map(|at| at + 1) {
        let (chunk, after) = rest.split_at(end);
        rest = after;
        let start = chunk.rfind("\n\n").map_or(0, |at| at + 2);
        let paragraph = &chunk[start..];
        let Some((heading, _)) = paragraph.split_once('\n') else {
            continue;
        };
        let Some((name, description)) = heading
            .strip_prefix("-- ")
            .and_then(|text| text.split_once(": "))
        else {
            continue;
        };
        let comment: usize = paragraph
            .split_inclusive('\n')
            .take_while(|line| line.starts_with("--"))
            .map(str::len)
            .sum();
        statements.push((name, description, &paragraph[comment..]));
    }
    statements
}

/// The audits of a script of [`named_statements`].
pub(crate) fn audits(script: &'static str) -> Vec<Audit> {
    named_statements(script)
        .into_iter()
        .map(|(name, description, sql)| Audit {
            name,
            description,
            sql,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_by_their_headings() {
        let script = "-- A file: about audits.\n\n-- one: the first\n-- (with a remark)\nSELECT 1\n\
                      FROM t;\n\n-- two: the second\nSELECT 2;\n";
        assert_eq!(
            named_statements(script),
            [
                ("one", "the first", "SELECT 1\nFROM t;"),
                ("two", "the second", "SELECT 2;")
            ]
        );
    }

    #[test]
    fn totals_add_up() {
        let mut totals = Totals::new(2);
        let other = Totals {
            committed: vec![3, 4],
            money_cents: -5,
            delivered: 6,
            skipped: 7,
            last_order: 8,
            rows_changed: 9,
        };
        totals.merge(&other);
        totals.merge(&other);
        assert_eq!(
            totals,
            Totals {
                committed: vec![6, 8],
                money_cents: -10,
                delivered: 12,
                skipped: 14,
                last_order: 8,
                rows_changed: 18,
            }
        );
    }
}
