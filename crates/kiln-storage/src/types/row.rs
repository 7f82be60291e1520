//! Rows as values: composite types, the row types of tables, and records, which have no name.
//!
//! A value of such a type is a byte string wherever values are kept ([`crate::slot::row`]).

use std::fmt;
use std::hash::{Hash, Hasher};

use kiln_platform::sync::Arc;

use super::{DataType, Style, Value, format_value_in, parse_value_in};
use crate::error::{Error, Result, SqlState};

/// The number of `record`, the type of rows without a named type.
const RECORD: u32 = 2249;

/// The number of arrays of these.
const RECORDS: u32 = 2287;

/// The most fields of a row, as in PostgreSQL.
pub const FIELDS_MAX: usize = 1664;

/// How deep rows may lie in rows.
const DEPTH_MAX: u8 = 16;

/// The most fields of a row and of the rows in it.
const WEIGHT_MAX: usize = 20_000;

/// The type of a row. Two that have a number are one type if they have the same; others are, if
/// their fields have the same types.
#[derive(Clone, Debug)]
pub struct RowType {
    oid: u32,
    array_oid: u32,
    name: String,
    array_name: String,
    printed: String,
    printed_array: String,
    fields: Vec<RowField>,
    depth: u8,
    weight: usize,
}

/// A field of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowValue {
    /// Its type.
    pub of: Arc<RowType>,
    /// A value for each of its fields.
    pub fields: Vec<Value>,
}

impl PartialEq for RowType {
    fn eq(&self, other: &RowType) -> bool {
        let types = |row: &'_ RowType| row.fields.len();
        match (self.oid, other.oid) {
            (RECORD, RECORD) if types(self) == types(other) => {
                let mut pairs = self.fields.iter().zip(&other.fields);
                pairs.all(|(one, other)| one.data_type == other.data_type)
            }
            (RECORD, RECORD) => false,
            (one, other) => one == other,
        }
    }
}

impl Eq for RowType {}

impl Hash for RowType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
        if self.is_record() {
            let mut types = self.fields.iter().map(|field| &field.data_type);
            types.by_ref().for_each(|data_type| data_type.hash(state));
        }
    }
}

impl RowType {
    /// A type with its number and that of its array type. `printed` is its name as SQL writes it.
    ///
    /// # Errors
    /// 54011 for more than 1,664 fields, 54001 for rows in rows that are too deep, or too many.
    pub fn new(
        (oid, array_oid): (u32, u32),
        (name, printed): (&str, &str),
        fields: Vec<RowField>,
    ) -> Result<RowType> {
        if fields.len() > FIELDS_MAX {
            let message = format!("ROW expressions can have at most {FIELDS_MAX} entries");
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let within = |field: &RowField| field.data_type.row().cloned();
        let within: Vec<Arc<RowType>> = fields.iter().filter_map(within).collect();
        let depth = within.iter().map(|row| row.depth).max();
        let depth = depth.map_or(0, |depth| depth + 1);
        let weights = within.iter().map(|row| row.weight);
        let weight = weights.fold(fields.len(), usize::saturating_add);
        if depth > DEPTH_MAX || weight > WEIGHT_MAX {
            let message = "a row has too many rows in it";
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        Ok(RowType {
            oid,
            array_oid,
            name: name.to_owned(),
            array_name: format!("_{name}"),
            printed: printed.to_owned(),
            printed_array: format!("{printed}[]"),
            fields,
            depth,
            weight,
        })
    }

    /// The type of a row that has no named one.
    ///
    /// # Errors
    /// As [`RowType::new`].
    pub fn record(fields: Vec<RowField>) -> Result<RowType> {
        RowType::new((RECORD, RECORDS), ("record", "record"), fields)
    }

    /// Whether it has no name.
    pub fn is_record(&self) -> bool {
        self.oid == RECORD
    }

    /// Its number.
    pub fn oid(&self) -> u32 {
        self.oid
    }

    /// The number of its array type.
    pub fn array_oid(&self) -> u32 {
        self.array_oid
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its array type.
    pub fn array_name(&self) -> &str {
        &self.array_name
    }

    /// Its name as SQL writes it: quoted where that is needed.
    pub fn printed(&self) -> &str {
        &self.printed
    }

    /// The name of its array type as it is printed.
    pub fn printed_array(&self) -> &str {
        &self.printed_array
    }

    /// Its fields, in order.
    pub fn fields(&self) -> &[RowField] {
        &self.fields
    }

    /// The number of the field with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The same under another name.
    #[must_use]
    pub fn renamed(&self, name: &str, printed: &str) -> RowType {
        RowType {
            name: name.to_owned(),
            array_name: format!("_{name}"),
            printed: printed.to_owned(),
            printed_array: format!("{printed}[]"),
            ..self.clone()
        }
    }

    /// The same with other fields.
    ///
    /// # Errors
    /// As [`RowType::new`].
    pub fn with_fields(&self, fields: Vec<RowField>) -> Result<RowType> {
        let numbers = (self.oid, self.array_oid);
        RowType::new(numbers, (&self.name, &self.printed), fields)
    }

    /// The type that [`Display`](fmt::Display) writes; nothing comes behind it.
    pub fn read(description: &str) -> Option<RowType> {
        read(description, 0)
    }

    /// The row that a text writes, as PostgreSQL's `record_in` reads it.
    ///
    /// # Errors
    /// 22P02 for another text, 0A000 for a type without a name, and those of the fields' types.
    pub(super) fn parse(self: &Arc<RowType>, text: &str, style: &Style<'_>) -> Result<Value> {
        if self.is_record() {
            let message = "input of anonymous composite types is not implemented";
            return Err(Error::unsupported(message));
        }
        let malformed = |detail: &str| {
            let message = format!("malformed record literal: \"{text}\"");
            Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message).with_detail(detail)
        };
        let Some(mut rest) = text.trim_ascii_start().strip_prefix('(') else {
            return Err(malformed("Missing left parenthesis."));
        };
        let mut fields = Vec::with_capacity(self.fields.len());
        for (number, field) in self.fields.iter().enumerate() {
            if number > 0 {
                let next = rest.strip_prefix(',');
                rest = next.ok_or_else(|| malformed("Too few columns."))?;
            }
            if rest.starts_with([',', ')']) {
                fields.push(Value::Null);
                continue;
            }
            let mut content = String::new();
            let mut is_quoted = false;
            while is_quoted || !rest.starts_with([',', ')']) {
                let mut characters = rest.chars();
                let end = || malformed("Unexpected end of input.");
                match characters.next().ok_or_else(end)? {
                    '\\' => content.push(characters.next().ok_or_else(end)?),
                    '"' if !is_quoted => is_quoted = true,
                    '"' if characters.as_str().starts_with('"') => {
                        characters.next();
                        content.push('"');
                    }
                    '"' => is_quoted = false,
                    character => content.push(character),
                }
                rest = characters.as_str();
            }
            fields.push(parse_value_in(&field.data_type, &content, style)?);
        }
        let Some(behind) = rest.strip_prefix(')') else {
            return Err(malformed("Too many columns."));
        };
        if !behind.trim_ascii_start().is_empty() {
            return Err(malformed("Junk after right parenthesis."));
        }
        Ok(RowValue::value(self, fields))
    }
}

impl RowValue {
    /// A row of this type.
    pub fn value(of: &Arc<RowType>, fields: Vec<Value>) -> Value {
        let of = of.clone();
        Value::Row(Box::new(RowValue { of, fields }))
    }

    /// The fields with their types.
    pub fn typed(&self) -> impl Iterator<Item = (&Value, &DataType)> {
        let types = self.of.fields.iter().map(|field| &field.data_type);
        self.fields.iter().zip(types)
    }

    /// The row as PostgreSQL's `record_out` prints it.
    pub(super) fn print(&self, style: &Style<'_>) -> String {
        let mut out = String::from("(");
        for (number, (value, data_type)) in self.typed().enumerate() {
            if number > 0 {
                out.push(',');
            }
            if value.is_null() {
                continue;
            }
            let text = format_value_in(value, data_type, style);
            let is_special = |character: char| {
                matches!(character, '"' | '\\' | '(' | ')' | ',' | '\x0b')
                    || character.is_ascii_whitespace()
            };
            if !text.is_empty() && !text.contains(is_special) {
                out.push_str(&text);
                continue;
            }
            out.push('"');
            for character in text.chars() {
                if matches!(character, '"' | '\\') {
                    out.push(character);
                }
                out.push(character);
            }
            out.push('"');
        }
        out.push(')');
        out
    }
}

impl fmt::Display for RowType {
    /// All of the type, as [`RowType::read`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, printed) = (&self.name, &self.printed);
        write!(f, "row {} {} ", self.oid, self.array_oid)?;
        write!(f, "{}:{name} {}:{printed} ", name.len(), printed.len())?;
        for RowField { name, data_type } in &self.fields {
            let described = data_type.described();
            write!(f, "{}:{name} {}:{described} ", name.len(), described.len())?;
        }
        f.write_str("end")
    }
}

fn read(description: &str, depth: u8) -> Option<RowType> {
    if depth > DEPTH_MAX {
        return None;
    }
    let mut rest = description.strip_prefix("row ")?;
    let mut number = || {
        let (word, behind) = rest.split_once(' ')?;
        rest = behind;
        word.parse().ok()
    };
    let numbers = (number()?, number()?);
    let mut counted = || {
        let (length, behind) = rest.split_once(':')?;
        let (text, behind) = behind.split_at_checked(length.parse().ok()?)?;
        rest = behind.strip_prefix(' ')?;
        Some((text, rest))
    };
    let (name, _) = counted()?;
    let (printed, mut left) = counted()?;
    let mut fields = Vec::new();
    while left != "end" {
        let (name, _) = counted()?;
        let (described, behind) = counted()?;
        left = behind;
        fields.push(RowField {
            name: name.to_owned(),
            data_type: read_type(described, depth)?,
        });
    }
    RowType::new(numbers, (name, printed), fields).ok()
}

/// The type of a field, in which rows are as deep as they may be.
fn read_type(described: &str, depth: u8) -> Option<DataType> {
    let (element, is_array) = match described.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (described, false),
    };
    if !element.starts_with("row ") {
        return described.parse().ok();
    }
    let row = DataType::Row(Arc::new(read(element, depth + 1)?));
    Some(match is_array {
        true => DataType::array(row),
        false => row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{format_value, parse_value};

    fn field(name: &str, data_type: DataType) -> RowField {
        let name = name.to_owned();
        RowField { name, data_type }
    }

    fn pair() -> Arc<RowType> {
        let fields = vec![
            field("a", DataType::Integer),
            field("b c", DataType::VarChar(Some(5))),
        ];
        let made = RowType::new((20_000, 20_001), ("Pair", "\"Pair\""), fields);
        Arc::new(made.expect("a type"))
    }

    /// A row of an array of pairs, and others.
    fn nested() -> Arc<RowType> {
        let pair = DataType::Row(pair());
        let fields = vec![
            field("p", pair.clone()),
            field("ps", DataType::array(pair)),
            field("t", DataType::array(DataType::Text)),
            field("c", DataType::Char(3)),
            field("r", DataType::REAL),
        ];
        Arc::new(RowType::new((20_002, 20_003), ("n", "n"), fields).expect("a type"))
    }

    #[test]
    fn a_type_comes_back_from_its_description() {
        for row in [pair(), nested()] {
            let data_type = DataType::Row(row.clone());
            for data_type in [data_type.clone(), DataType::array(data_type)] {
                let text = data_type.described();
                let read: DataType = text.parse().expect("it was written");
                assert_eq!((&read, read.described()), (&data_type, text));
            }
        }
        for damaged in [
            "row 1 2 1:a 1:a 1:x end",
            "row 1 2 1:a 1:a 1:x 4:text",
            "row 1 2 1:a 1:a 1:x 4:texx end",
            "row 1 2 1:a 9:a end",
            "row 1 x 1:a 1:a end",
        ] {
            assert!(RowType::read(damaged).is_none(), "{damaged}");
        }
    }

    /// What a server of PostgreSQL 15 prints for these literals.
    #[test]
    fn texts_are_those_of_postgresql() {
        for (row, text, printed) in [
            (pair(), "(1,abc)", "(1,abc)"),
            (pair(), "  (1,) ", "(1,)"),
            (pair(), "(,\"\")", "(,\"\")"),
            (pair(), "(1, a b)", "(1,\" a b\")"),
            (pair(), "(1,\"a\"\"\\\\\")", "(1,\"a\"\"\\\\\")"),
            (pair(), "(1,a\"b,\"c)", "(1,\"ab,c\")"),
            (pair(), "(1,\\))", "(1,\")\")"),
            (
                nested(),
                "(\"(1,\"\"x y\"\")\",\"{\"\"(1,a)\"\",NULL}\",{},ab,1.5)",
                "(\"(1,\"\"x y\"\")\",\"{\"\"(1,a)\"\",NULL}\",{},\"ab \",1.5)",
            ),
        ] {
            let data_type = DataType::Row(row);
            let value = parse_value(&data_type, text).expect(text);
            assert_eq!(format_value(&value, &data_type), printed, "{text}");
        }
        for (text, detail) in [
            ("1,2", "Missing left parenthesis."),
            ("(1)", "Too few columns."),
            ("(1,2,3)", "Too many columns."),
            ("(1,2", "Unexpected end of input."),
            ("(1,\\", "Unexpected end of input."),
            ("(1,\"2)", "Unexpected end of input."),
            ("(1,2) x", "Junk after right parenthesis."),
        ] {
            let error = parse_value(&DataType::Row(pair()), text).expect_err(text);
            assert_eq!(error.state(), SqlState::INVALID_TEXT_REPRESENTATION);
            assert_eq!(error.detail(), Some(detail), "{text}");
        }
        let error = parse_value(&DataType::Row(pair()), "(1,abcdef)").expect_err("too long");
        assert_eq!(error.state(), SqlState::STRING_DATA_RIGHT_TRUNCATION);
    }

    #[test]
    fn rows_in_rows_are_bounded() {
        let mut row = pair();
        let error = loop {
            let inner = DataType::Row(row.clone());
            match RowType::record(vec![field("f1", inner.clone()), field("f2", inner)]) {
                Ok(made) => row = Arc::new(made),
                Err(error) => break error,
            }
        };
        assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
        let many = (0..=FIELDS_MAX).map(|_| field("f", DataType::Integer));
        let error = RowType::record(many.collect()).expect_err("too many");
        assert_eq!(error.state(), SqlState::TOO_MANY_COLUMNS);
    }
}
