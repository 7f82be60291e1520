//! What the tests of several workloads need.

use kiln_storage::types::Value;

use crate::{ArgumentValues, Call, RowSink, Workload};

/// Keeps every row, by table.
#[derive(Default, PartialEq)]
pub(crate) struct Rows(Vec<Part>);

/// A table's name, its columns and its rows.
type Part = (String, Vec<String>, Vec<Vec<Value>>);

impl RowSink for Rows {
    fn table(&mut self, name: &str, columns: &[&str], _: u64) {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        self.0.push((name.to_owned(), columns, Vec::new()));
    }

    fn row(&mut self, values: &[Value]) {
        let (_, columns, rows) = self.0.last_mut().expect("a table was announced");
        assert_eq!(columns.len(), values.len());
        rows.push(values.to_vec());
    }
}

impl Rows {
    /// A workload's population.
    pub(crate) fn populated(workload: &Workload, seed: u64) -> Rows {
        let mut rows = Rows::default();
        workload.populate(seed, &mut rows);
        rows
    }

    /// The rows of a table.
    pub(crate) fn of(&self, table: &str) -> impl Iterator<Item = &Vec<Value>> {
        self.0
            .iter()
            .filter(move |(name, ..)| name == table)
            .flat_map(|(.., rows)| rows)
    }

    /// The values of one column.
    pub(crate) fn column(&self, table: &str, column: &str) -> Vec<Value> {
        let (_, columns, ..) = self
            .0
            .iter()
            .find(|(name, ..)| name == table)
            .expect("a table");
        let at = columns
            .iter()
            .position(|name| name == column)
            .expect("a column");
        self.of(table).map(|row| row[at].clone()).collect()
    }

    /// The values of a column of integers of any width.
    pub(crate) fn integers(&self, table: &str, column: &str) -> Vec<i64> {
        self.column(table, column).iter().map(integer).collect()
    }

    /// The number of rows, over all tables.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|(.., rows)| rows.len()).sum()
    }
}

/// An integer of any width.
pub(crate) fn integer(value: &Value) -> i64 {
    match value {
        Value::SmallInt(number) => (*number).into(),
        Value::Integer(number) => (*number).into(),
        Value::BigInt(number) => *number,
        other => panic!("{other:?} is no integer"),
    }
}

/// The elements of an array of integers, or one integer.
pub(crate) fn integers(value: &Value) -> Vec<i64> {
    match value {
        Value::Array(elements) => elements.iter().map(integer).collect(),
        single => vec![integer(single)],
    }
}

/// The first calls of one worker, with their arguments.
pub(crate) fn calls(workload: &Workload, seed: u64, count: usize) -> Vec<(Call, Vec<Value>)> {
    let mut terminal = workload.terminals(seed, 1).remove(0);
    let mut arguments = ArgumentValues::default();
    let mut drawn = Vec::new();
    for _ in 0..count {
        let call = terminal.next(&mut arguments);
        let procedure = &workload.procedures()[call.procedure.0];
        assert_eq!(arguments.values().len(), procedure.parameters.len());
        drawn.push((call, arguments.values().to_vec()));
    }
    drawn
}
