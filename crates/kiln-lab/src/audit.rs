//! The audit after each run: is the data still consistent, and are the committed calls all there?

use kiln_platform::time;
use kiln_sql::Database;
use kiln_storage::error::Result;
use kiln_storage::types::{Decimal, Value, format_value};
use kiln_workloads::{Totals, Workload};

/// A condition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The condition's short name.
    pub name: String,
    /// What should hold.
    pub what: String,
    /// The columns of the rows.
    pub columns: Vec<String>,
    /// The rows that violate it, as texts.
    pub rows: Vec<Vec<String>>,
}

/// What one or several audits found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditReport {
    /// Audits made.
    pub audits: usize,
    /// Conditions checked, over all of them.
    pub conditions: usize,
    /// How long the audits took.
    pub seconds: f64,
    /// Those that did not hold.
    pub violations: Vec<Violation>,
}

impl AuditReport {
    /// Whether every condition held.
    pub fn passed(&self) -> bool {
        self.violations.is_empty()
    }

    /// One word for tables: `passed`, `FAILED`, or `none` when no audit was made.
    pub fn verdict(&self) -> &'static str {
        match (self.audits, self.passed()) {
            (0, _) => "none",
            (_, true) => "passed",
            (_, false) => "FAILED",
        }
    }

    /// Adds the findings of another audit.
    pub fn add(&mut self, other: AuditReport) {
        self.audits += other.audits;
        self.conditions += other.conditions;
        self.seconds += other.seconds;
        self.violations.extend(other.violations);
    }
}

/// Checks the conditions that hold at any time.
///
/// # Errors
/// A query that does not run.
pub fn conditions(database: &Database, workload: &Workload) -> Result<AuditReport> {
    let begin = time::now_ns();
    let mut report = AuditReport {
        audits: 1,
        ..AuditReport::default()
    };
    for audit in workload.audits() {
        report.conditions += 1;
        let found = database.query(audit.sql, ())?;
        if found.rows.is_empty() {
            continue;
        }
        let text = |row: &Vec<Value>| {
            let typed = row.iter().zip(&found.columns);
            typed
                .map(|(value, (_, data_type))| format_value(value, data_type))
                .collect()
        };
        report.violations.push(Violation {
            name: audit.name.to_owned(),
            what: audit.description.to_owned(),
            columns: found.columns.iter().map(|(name, _)| name.clone()).collect(),
            rows: found.rows.iter().map(text).collect(),
        });
    }
    report.seconds = (time::now_ns() - begin) as f64 / 1e9;
    Ok(report)
}

/// Checks the workload's conditions, and that the numbers are those which `totals`, the committed
/// calls since the population of `seed`, add up to.
///
/// # Errors
/// A query that does not run.
pub fn audit(
    database: &Database,
    workload: &Workload,
    seed: u64,
    totals: &Totals,
) -> Result<AuditReport> {
    let mut report = conditions(database, workload)?;
    let begin = time::now_ns();
    for check in workload.closing_checks(seed, totals) {
        report.conditions += 1;
        let found = database.query(check.sql, ())?;
        let value = found.rows.first().and_then(|row| row.first());
        if value.and_then(number) != Some(check.expected) {
            let found = value.map_or_else(|| "no row".to_owned(), Value::to_string);
            report.violations.push(Violation {
                name: check.name.to_owned(),
                what: format!("{} is {}", check.sql, check.expected),
                columns: vec!["found".to_owned()],
                rows: vec![vec![found]],
            });
        }
    }
    report.seconds += (time::now_ns() - begin) as f64 / 1e9;
    Ok(report)
}

/// A number of any type without a fraction of its own, as a decimal.
fn number(value: &Value) -> Option<Decimal> {
    match value {
        Value::SmallInt(number) => Some(Decimal::from_i64(i64::from(*number))),
        Value::Integer(number) => Some(Decimal::from_i64(i64::from(*number))),
        Value::BigInt(number) => Some(Decimal::from_i64(*number)),
        Value::Numeric(number) => Some(*number),
        _ => None,
    }
}
