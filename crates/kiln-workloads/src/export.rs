//! Populations and calls as PostgreSQL text.
//!
//! A [`CopySink`] or [`InsertSink`] writes a population as a script for psql; [`render_call`]
//! writes one call as a statement. Both forms load into Kiln as well where it has the statement.

use std::fmt::Write as _;
use std::io;

use kiln_storage::types::Value;

use crate::definition::{Procedure, ProcedureKind};
use crate::population::RowSink;

/// Writes a population as `COPY … FROM stdin` blocks, the quickest form for psql.
#[derive(Debug)]
pub struct CopySink<W: io::Write> {
    out: Script<W>,
    in_table: bool,
    line: String,
}

impl<W: io::Write> CopySink<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> CopySink<W> {
        CopySink {
            out: Script { out, error: None },
            in_table: false,
            line: String::new(),
        }
    }

    fn end_table(&mut self) {
        if self.in_table {
            self.out.write("\\.\n");
            self.in_table = false;
        }
    }

    /// Ends the last block and returns the writer.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_table();
        self.out.finish()
    }
}

impl<W: io::Write> RowSink for CopySink<W> {
    fn table(&mut self, name: &str, columns: &[&str], _rows_expected: u64) {
        self.end_table();
        self.out.write(&format!(
            "COPY {name} ({}) FROM stdin;\n",
            columns.join(", ")
        ));
        self.in_table = true;
    }

    fn row(&mut self, values: &[Value]) {
        self.line.clear();
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.line.push('\t');
            }
            push_copy_field(&mut self.line, value);
        }
        self.line.push('\n');
        self.out.write(&self.line);
    }
}

/// Appends a field of COPY's text format.
fn push_copy_field(line: &mut String, value: &Value) {
    let special = |byte: u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
    match value {
        Value::Null => line.push_str("\\N"),
        Value::Text(text) if !text.bytes().any(special) => line.push_str(text),
        Value::Text(text) => push_escaped(line, text),
        Value::SmallInt(number) => push_display(line, number),
        Value::Integer(number) => push_display(line, number),
        Value::Numeric(number) => push_display(line, number),
        _ => push_escaped(line, &value.to_text().unwrap_or_default()),
    }
}

fn push_display(line: &mut String, value: &impl std::fmt::Display) {
    write!(line, "{value}").expect("writing to a string does not fail");
}

fn push_escaped(line: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\\' => line.push_str("\\\\"),
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            _ => line.push(character),
        }
    }
}

/// Writes a population as INSERT statements of a few hundred rows each.
#[derive(Debug)]
pub struct InsertSink<W: io::Write> {
    out: Script<W>,
    /// `INSERT INTO table (columns) VALUES`.
    head: String,
    /// Rows of the statement that is being written.
    rows: usize,
    statement: String,
}

/// Rows of one INSERT statement.
const INSERT_ROWS: usize = 250;

impl<W: io::Write> InsertSink<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> InsertSink<W> {
        let out = Script { out, error: None };
        InsertSink {
            out,
            head: String::new(),
            rows: 0,
            statement: String::new(),
        }
    }

    fn end_statement(&mut self) {
        if self.rows > 0 {
            self.statement.push_str(";\n");
            self.out.write(&self.statement);
            self.statement.clear();
            self.rows = 0;
        }
    }

    /// Ends the last statement and returns the writer.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_statement();
        self.out.finish()
    }
}

impl<W: io::Write> RowSink for InsertSink<W> {
    fn table(&mut self, name: &str, columns: &[&str], _rows_expected: u64) {
        self.end_statement();
        self.head = format!("INSERT INTO {name} ({}) VALUES", columns.join(", "));
    }

    fn row(&mut self, values: &[Value]) {
        self.statement
            .push_str(if self.rows == 0 { &self.head } else { "," });
        self.statement.push_str("\n(");
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.statement.push_str(", ");
            }
            push_literal(&mut self.statement, value);
        }
        self.statement.push(')');
        self.rows += 1;
        if self.rows == INSERT_ROWS {
            self.end_statement();
        }
    }
}

/// A writer that remembers its first error.
#[derive(Debug)]
struct Script<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: io::Write> Script<W> {
    fn write(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
    }

    fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }
}

/// Appends a value as an SQL literal. Arrays are cast by the caller, who knows their type.
pub fn push_literal(out: &mut String, value: &Value) {
    let quoted = |out: &mut String, prefix: &str, text: &str| {
        out.push_str(prefix);
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    };
    let text = || value.to_text().unwrap_or_default();
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Boolean(value) => out.push_str(if *value { "TRUE" } else { "FALSE" }),
        Value::SmallInt(number) => push_display(out, number),
        Value::Integer(number) => push_display(out, number),
        Value::BigInt(number) => push_display(out, number),
        Value::Numeric(number) => push_display(out, number),
        Value::LongNumeric(_) => quoted(out, "NUMERIC ", &text()),
        Value::Double(_) => quoted(out, "DOUBLE PRECISION ", &text()),
        Value::Text(text) => quoted(out, "", text),
        Value::Bytea(_) => quoted(out, "BYTEA ", &text()),
        Value::Date(_) => quoted(out, "DATE ", &text()),
        Value::Timestamp(_) => quoted(out, "TIMESTAMP ", &text()),
        Value::TimestampTz(_) => quoted(out, "TIMESTAMPTZ ", &text()),
        Value::Time(_) => quoted(out, "TIME ", &text()),
        Value::Uuid(_) => quoted(out, "UUID ", &text()),
        Value::Enum(_) | Value::Row(_) => quoted(out, "", &text()),
        Value::Interval(_) => quoted(out, "INTERVAL ", &text()),
        Value::Object(_) => quoted(out, "", &text()),
        Value::Array(elements) => {
            out.push_str("ARRAY[");
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                push_literal(out, element);
            }
            out.push(']');
        }
    }
}

/// A call as one SQL statement: `CALL name(…);` with NULL for each OUT parameter, or `SELECT *
/// FROM name(…);`. Arguments are cast to the parameters' types, because PostgreSQL looks for a
/// procedure with the literals' own.
pub fn render_call(procedure: &Procedure, arguments: &[Value]) -> String {
    let mut out = String::from(match procedure.kind {
        ProcedureKind::Procedure => "CALL ",
        ProcedureKind::Function => "SELECT * FROM ",
    });
    out.push_str(procedure.name);
    out.push('(');
    for (index, (argument, sql_type)) in arguments.iter().zip(procedure.parameters).enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        match argument {
            // Types that their literals have anyway.
            Value::Null | Value::Text(_) | Value::Timestamp(_) => push_literal(&mut out, argument),
            Value::BigInt(number) if *sql_type == "integer" && i32::try_from(*number).is_ok() => {
                push_literal(&mut out, argument);
            }
            Value::Numeric(number) if number.scale() > 0 => push_literal(&mut out, argument),
            _ => {
                push_literal(&mut out, argument);
                out.push_str("::");
                out.push_str(sql_type);
            }
        }
    }
    for index in 0..procedure.outputs {
        out.push_str(if index > 0 || !arguments.is_empty() {
            ", NULL"
        } else {
            "NULL"
        });
    }
    out.push_str(");");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{smallbank, tpcc};

    fn sample(sink: &mut dyn RowSink) {
        sink.table("t", &["a", "b", "c"], 2);
        sink.row(&[
            Value::Integer(-1),
            Value::Text("it's\ta \\".to_owned()),
            Value::Null,
        ]);
        sink.row(&[
            Value::SmallInt(2),
            Value::Text(String::new()),
            Value::Timestamp(0),
        ]);
        sink.table("u", &["d"], 1);
        sink.row(&[Value::Numeric(crate::population::decimal(-1_50, 2))]);
    }

    #[test]
    fn a_population_is_written_as_copy() {
        let mut sink = CopySink::new(Vec::new());
        sample(&mut sink);
        let script = String::from_utf8(sink.finish().unwrap()).unwrap();
        assert_eq!(
            script,
            "COPY t (a, b, c) FROM stdin;\n-1\tit's\\ta \\\\\t\\N\n2\t\t2000-01-01 00:00:00\n\\.\n\
             COPY u (d) FROM stdin;\n-1.50\n\\.\n"
        );
    }

    #[test]
    fn a_population_is_written_as_inserts() {
        let mut sink = InsertSink::new(Vec::new());
        sample(&mut sink);
        let script = String::from_utf8(sink.finish().unwrap()).unwrap();
        assert_eq!(
            script,
            "INSERT INTO t (a, b, c) VALUES\n(-1, 'it''s\ta \\', NULL),\n\
             (2, '', TIMESTAMP '2000-01-01 00:00:00');\nINSERT INTO u (d) VALUES\n(-1.50);\n"
        );
    }

    #[test]
    fn inserts_are_split() {
        let mut sink = InsertSink::new(Vec::new());
        sink.table("t", &["a"], 501);
        for number in 0..501 {
            sink.row(&[Value::Integer(number)]);
        }
        let script = String::from_utf8(sink.finish().unwrap()).unwrap();
        assert_eq!(script.matches("INSERT INTO").count(), 3);
        assert_eq!(script.matches(';').count(), 3);
    }

    #[test]
    fn a_failing_writer_is_reported() {
        struct Full;
        impl io::Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("full"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut sink = CopySink::new(Full);
        sample(&mut sink);
        assert_eq!(sink.finish().err().unwrap().to_string(), "full");
    }

    #[test]
    fn calls_are_written_with_casts_and_placeholders() {
        let integer = Value::BigInt;
        let arguments = [
            integer(1),
            integer(2),
            Value::Null,
            Value::Text("BAR'BAR".to_owned()),
        ];
        assert_eq!(
            render_call(&tpcc::PROCEDURES[tpcc::ORDER_STATUS.0], &arguments),
            "SELECT * FROM order_status(1::smallint, 2::smallint, NULL, 'BAR''BAR');"
        );
        let arguments = [
            integer(7),
            Value::Numeric(crate::population::decimal(1_30, 2)),
        ];
        assert_eq!(
            render_call(
                &smallbank::PROCEDURES[smallbank::DEPOSIT_CHECKING.0],
                &arguments
            ),
            "CALL deposit_checking(7, 1.30, NULL);"
        );
        let arguments = [
            integer(1),
            integer(2),
            integer(3),
            Value::Timestamp(0),
            Value::Array(vec![integer(4), integer(5)]),
            Value::Array(vec![integer(1), integer(1)]),
            Value::Array(vec![integer(10), integer(9)]),
        ];
        assert_eq!(
            render_call(&tpcc::PROCEDURES[tpcc::NEW_ORDER.0], &arguments),
            "CALL new_order(1::smallint, 2::smallint, 3, TIMESTAMP '2000-01-01 00:00:00', \
             ARRAY[4, 5]::integer[], ARRAY[1, 1]::smallint[], ARRAY[10, 9]::smallint[], \
             NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);"
        );
    }
}
