//! The audit after each run: is the data still consistent, and are the committed calls all there?

use crate::helpers::helpers;
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::{thread, time};
use kiln_sql::Database;
use kiln_storage::error::Result;
use kiln_storage::types::{Decimal, Value, format_value};
use kiln_workloads::{Audit, ClosingCheck, Totals, Workload};

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

/// A query that must have a certain result.
enum Condition {
    /// No rows.
    Empty(Audit),
    /// One number.
    Number(ClosingCheck),
}

/// Checks the conditions that hold at any time.
///
/// # Errors
/// A query that does not run.
pub fn conditions(database: &Database, workload: &Workload) -> Result<AuditReport> {
    let audits = workload.audits().into_iter();
    check_all(database, &audits.map(Condition::Empty).collect::<Vec<_>>())
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
    let audits = workload.audits().into_iter().map(Condition::Empty);
    let checks = workload.closing_checks(seed, totals).into_iter();
    let all: Vec<Condition> = audits.chain(checks.map(Condition::Number)).collect();
    check_all(database, &all)
}

/// Checks conditions in as many threads as there are cores.
fn check_all(database: &Database, conditions: &[Condition]) -> Result<AuditReport> {
    let begin = time::now_ns();
    let next = AtomicUsize::new(0);
    let body = || {
        let mut violations = Vec::new();
        // Relaxed: a condition's number carries nothing but itself.
        while let Some(condition) = conditions.get(next.fetch_add(1, Ordering::Relaxed)) {
            violations.extend(check(database, condition)?);
        }
        Ok(violations)
    };
    let violations: Result<Vec<Vec<Violation>>> = thread::scope(|scope| {
        let threads = helpers(conditions.len());
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(body)).collect();
        let join = |checker: thread::ScopedJoinHandle<'_, _>| match checker.join() {
            Ok(violations) => violations,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.into_iter().map(join).collect()
    });
    Ok(AuditReport {
        audits: 1,
        conditions: conditions.len(),
        violations: violations?.into_iter().flatten().collect(),
        seconds: (time::now_ns() - begin) as f64 / 1e9,
    })
}

/// How the database violates a condition, if it does.
fn check(database: &Database, condition: &Condition) -> Result<Option<Violation>> {
    match condition {
        Condition::Empty(audit) => {
            let found = database.query(audit.sql, ())?;
            let text = |row: &Vec<Value>| {
                let typed = row.iter().zip(&found.columns);
                typed
                    .map(|(value, (_, data_type))| format_value(value, data_type))
                    .collect()
            };
            Ok((!found.rows.is_empty()).then(|| Violation {
                name: audit.name.to_owned(),
                what: audit.description.to_owned(),
                columns: found.columns.iter().map(|(name, _)| name.clone()).collect(),
                rows: found.rows.iter().map(text).collect(),
            }))
        }
        Condition::Number(check) => {
            let found = database.query(check.sql, ())?;
            let value = found.rows.first().and_then(|row| row.first());
            if value.and_then(number) == Some(check.expected) {
                return Ok(None);
            }
            let found = value.map_or_else(|| "no row".to_owned(), Value::to_string);
            Ok(Some(Violation {
                name: check.name.to_owned(),
                what: format!("{} is {}", check.sql, check.expected),
                columns: vec!["found".to_owned()],
                rows: vec![vec![found]],
            }))
        }
    }
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
