//! Descriptions of statements and portals, and their rows.

use kiln_sql::{Column, DataType, Statement, Style, Value};
use kiln_wire::backend::Field;
use kiln_wire::format;
use kiln_wire::frontend::Format;

use super::Session;

/// How the values of a column are wanted.
fn format_of(formats: &[Format], column: usize) -> Format {
    match formats {
        [] => Format::Text,
        [all] => *all,
        each => each.get(column).copied().unwrap_or_default(),
    }
}

impl Session {
    /// The types of a statement's parameters.
    pub(super) fn answer_parameters(&mut self, statement: &Statement) {
        let types = statement.parameters().iter();
        self.answers.parameter_description(types.map(format::oid));
    }

    /// A statement's columns, or that it has none.
    pub(super) fn answer_columns(&mut self, statement: &Statement, formats: &[Format]) {
        let Some(columns) = statement.columns() else {
            return self.answers.no_data();
        };
        let fields = columns.iter().enumerate();
        self.answers
            .row_description(fields.map(|(position, column)| {
                let Column {
                    name,
                    data_type,
                    origin,
                } = column;
                Field {
                    name,
                    origin: origin.as_ref().map_or((0, 0), |origin| {
                        (origin.table_oid, origin.column.0 as i16 + 1)
                    }),
                    type_oid: format::oid(data_type),
                    type_length: format::type_length(data_type),
                    type_modifier: data_type.modifier(),
                    format: format_of(formats, position),
                }
            }));
    }

    /// A row.
    pub(super) fn answer_row(
        &mut self,
        types: &[&DataType],
        (formats, style): (&[Format], &Style<'_>),
        values: &[Value],
    ) {
        self.answers.row(values.len(), |row| {
            for (position, (value, data_type)) in values.iter().zip(types).enumerate() {
                if matches!(value, Value::Null) {
                    row.null();
                    continue;
                }
                row.value(|bytes| match format_of(formats, position) {
                    Format::Text => format::encode_text(value, data_type, style, bytes),
                    Format::Binary => format::encode_binary(value, data_type, bytes),
                });
            }
        });
    }
}
