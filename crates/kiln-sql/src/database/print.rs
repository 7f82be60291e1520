//! Results as psql prints them.

use std::fmt::Write;

use kiln_storage::types::{DataType, Style, format_value_in};

use super::result::ResultSet;

impl ResultSet {
    /// As `psql --csv` prints it: a line of names, a line for each row that has columns, NULL as
    /// nothing.
    pub fn to_csv(&self) -> String {
        self.to_csv_in(&Style::default())
    }

    /// [`ResultSet::to_csv`] in the style of a session.
    pub fn to_csv_in(&self, style: &Style<'_>) -> String {
        let mut out = String::new();
        push_csv_line(&mut out, self.columns.iter().map(|(name, _)| name.clone()));
        if self.columns.is_empty() {
            return out;
        }
        for row in &self.rows {
            let values = row.iter().zip(&self.columns);
            push_csv_line(
                &mut out,
                values.map(|(value, (_, data_type))| format_value_in(value, data_type, style)),
            );
        }
        out
    }

    /// As psql prints it for people: aligned columns and the number of rows.
    pub fn to_table(&self) -> String {
        self.to_table_in(&Style::default())
    }

    /// [`ResultSet::to_table`] in the style of a session.
    pub fn to_table_in(&self, style: &Style<'_>) -> String {
        let mut out = String::new();
        let cells: Vec<Vec<Vec<String>>> = self
            .rows
            .iter()
            .map(|row| {
                let values = row.iter().zip(&self.columns);
                values
                    .map(|(value, (_, data_type))| lines(&format_value_in(value, data_type, style)))
                    .collect()
            })
            .collect();
        let names: Vec<Vec<String>> = self.columns.iter().map(|(name, _)| lines(name)).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let all = cells.iter().map(|row| &row[column]).chain([&names[column]]);
                all.flatten().map(|line| width(line)).max().unwrap_or(0)
            })
            .collect();
        self.push_header(&mut out, &names, &widths);
        for row in &cells {
            self.push_row(&mut out, row, &widths);
        }
        let rows = self.rows.len();
        let _ = writeln!(out, "({rows} row{})", if rows == 1 { "" } else { "s" });
        out
    }

    fn push_header(&self, out: &mut String, names: &[Vec<String>], widths: &[usize]) {
        if names.is_empty() {
            out.push_str("--\n");
            return;
        }
        let height = names.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            for (column, (name, full)) in names.iter().zip(widths).enumerate() {
                let text = name.get(line).map_or("", String::as_str);
                let free = full - width(text);
                let left = free / 2;
                let more = if line + 1 < name.len() { '+' } else { ' ' };
                let _ = write!(
                    out,
                    " {:left$}{text}{:right$}{more}",
                    "",
                    "",
                    right = free - left
                );
                if column + 1 < names.len() {
                    out.push('|');
                }
            }
            out.push('\n');
        }
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        let _ = writeln!(out, "{}", rules.join("+"));
    }

    fn push_row(&self, out: &mut String, row: &[Vec<String>], widths: &[usize]) {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            for (column, (cell, full)) in row.iter().zip(widths).enumerate() {
                let text = cell.get(line).map_or("", String::as_str);
                let free = full - width(text);
                let last = column + 1 == row.len();
                let more = line + 1 < cell.len();
                out.push(' ');
                if is_right_aligned(&self.columns[column].1) {
                    let _ = write!(out, "{:free$}{text}", "");
                } else {
                    out.push_str(text);
                    // The end of a line stays bare.
                    if !last || more {
                        let _ = write!(out, "{:free$}", "");
                    }
                }
                if more {
                    out.push('+');
                } else if !last {
                    out.push(' ');
                }
                if !last {
                    out.push('|');
                }
            }
            out.push('\n');
        }
    }
}

fn is_right_aligned(data_type: &DataType) -> bool {
    data_type.is_number()
}

fn lines(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// The columns of a terminal that a text takes: two for the wide characters of East Asia.
fn width(text: &str) -> usize {
    text.chars()
        .map(|character| match u32::from(character) {
            0x0300..=0x036f | 0x200b..=0x200f => 0,
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0xffe0..=0xffe6
            | 0x1f300..=0x1f64f
            | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

fn push_csv_line(out: &mut String, fields: impl Iterator<Item = String>) {
    for (position, field) in fields.enumerate() {
        if position > 0 {
            out.push(',');
        }
        if field == "\\." || field.contains(['"', ',', '\n', '\r']) {
            let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
        } else {
            out.push_str(&field);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_storage::types::Value;

    fn sample() -> ResultSet {
        ResultSet {
            columns: vec![
                ("id".to_owned(), DataType::Integer),
                ("a name".to_owned(), DataType::Text),
                ("c".to_owned(), DataType::Char(3)),
            ],
            rows: vec![
                vec![Value::Integer(1), Value::from("x, \"y\""), Value::from("a")],
                vec![Value::Integer(-20), Value::from("two\nlines"), Value::Null],
            ],
        }
    }

    #[test]
    fn csv_is_that_of_psql() {
        assert_eq!(
            sample().to_csv(),
            "id,a name,c\n1,\"x, \"\"y\"\"\",a  \n-20,\"two\nlines\",\n"
        );
        let empty = ResultSet {
            rows: Vec::new(),
            ..sample()
        };
        assert_eq!(empty.to_csv(), "id,a name,c\n");
    }

    #[test]
    fn tables_are_those_of_psql() {
        assert_eq!(
            sample().to_table(),
            " id  | a name |  c  \n\
             -----+--------+-----\n\
             \u{20}  1 | x, \"y\" | a  \n\
             \u{20}-20 | two   +| \n\
             \u{20}    | lines  | \n\
             (2 rows)\n"
        );
        let one = ResultSet {
            columns: vec![("?column?".to_owned(), DataType::Integer)],
            rows: vec![vec![Value::Integer(1)]],
        };
        assert_eq!(
            one.to_table(),
            " ?column? \n----------\n        1\n(1 row)\n"
        );
    }
}
