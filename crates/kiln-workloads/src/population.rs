//! Where a population's rows go, and helpers to make rows without allocating for each.

use kiln_storage::types::{Decimal, Value};

/// Takes the rows of a population, table by table.
///
/// A sink that fails (no memory, a full disk) keeps its first error and ignores what follows.
pub trait RowSink {
    /// The rows that follow belong to table `name` and have these columns. `rows_expected` is
    /// about how many will come, for preallocation and progress.
    fn table(&mut self, name: &str, columns: &[&str], rows_expected: u64);

    /// One row of the current table; the values are only lent.
    fn row(&mut self, values: &[Value]);
}

/// The text of one column, emptied; the row keeps its buffers from one use to the next.
pub(crate) fn text(column: &mut Value) -> &mut String {
    if !matches!(column, Value::Text(_)) {
        *column = Value::Text(String::new());
    }
    match column {
        Value::Text(text) => {
            text.clear();
            text
        }
        _ => unreachable!("the column has just been made a text"),
    }
}

/// Sets a column to a text that does not change from row to row.
pub(crate) fn fixed_text(column: &mut Value, value: &str) {
    text(column).push_str(value);
}

/// The number `mantissa / 10^scale`.
pub(crate) fn decimal(mantissa: i64, scale: u8) -> Decimal {
    Decimal::new(i128::from(mantissa), scale).expect("a mantissa of 64 bits and a small scale fit")
}

/// An amount of money with two digits after the point.
pub(crate) fn money(cents: i64) -> Value {
    Value::Numeric(decimal(cents, 2))
}

/// The number `value`, to which a closing check compares.
pub(crate) fn count(value: i64) -> Decimal {
    decimal(value, 0)
}

/// Rows that one thread makes at a time.
const PART: u64 = 1 << 14;

/// How many parts a table of so many rows is made in.
pub(crate) fn parts(rows: u64) -> u64 {
    rows.div_ceil(PART)
}

/// The rows of a part, counted from 0; none beyond the last part.
pub(crate) fn part_rows(rows: u64, part: u64) -> std::ops::Range<u64> {
    let first = part.saturating_mul(PART).min(rows);
    first..first.saturating_add(PART).min(rows)
}
