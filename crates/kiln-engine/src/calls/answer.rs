//! Answers: how a call with an idempotency key ended, as bytes that outlast the database's memory.
//!
//! Numbers are little-endian; a *text* is its length in 4 bytes and its UTF-8, a *list* the number
//! of its members in 4 bytes and these.
//!
//! | part | bytes |
//! |---|---|
//! | answer | the procedure's name, a text; the arguments as they were given, a list of values; the outcome |
//! | outcome 0, committed | the columns, a list of names and types; the notices, a list of levels (1, see [`LEVELS`]) and texts; the rows, a list |
//! | outcome 1, rejected | the SQLSTATE (5); the message, a text; which of these follow, a bit each (1): the detail, the hint, the constraint, the schema, the table, the column and the type, which are texts, and line and column (4 each), whose bit is the one behind the constraint's |
//! | row | a value for each column; of a row without columns a byte that is 0 |
//! | value | as [`kiln_storage::types::bytes`] has it |
//! | type | its form (1) and what the form has, see [`write_type`] |
//!
//! The format of the file that the bytes are in has a version; they have none of their own.
//!
//! Values are not in the form that rows have in a log ([`kiln_storage::layout`]): a result may have
//! values of types that no column has, and its columns belong to no table.

use kiln_platform::sync::Arc;
use kiln_procedure::Arguments;
use kiln_procedure::arguments::convert;
use kiln_procedure::frame::Notice;
use kiln_storage::bytes::{Reader, append_string, corrupt, read_text};
use kiln_storage::error::{Error, Position, Result, SqlState, Subject};
use kiln_storage::types::bytes::DEPTH_MAX;
use kiln_storage::types::{CatalogType, DataType, EnumType, RowType, Value};

use super::reply::{Reply, Rows};

/// An answer that was read.
pub(crate) struct Answer {
    /// The procedure's name.
    pub procedure: Arc<str>,
    /// As they were given, before they were bound to the procedure.
    pub arguments: Arguments,
    /// How the call ended: it committed, or was rejected.
    pub reply: Reply,
}

const COMMITTED: u8 = 0;
const REJECTED: u8 = 1;

/// The levels of notices, by their numbers. One that a program made up counts as the first.
const LEVELS: [&str; 5] = ["NOTICE", "WARNING", "INFO", "LOG", "DEBUG"];

const HAS_DETAIL: u8 = 1;
const HAS_HINT: u8 = 2;
const HAS_CONSTRAINT: u8 = 4;
const HAS_POSITION: u8 = 8;
const HAS_SCHEMA: u8 = 16;
const HAS_TABLE: u8 = 32;
const HAS_COLUMN: u8 = 64;
const HAS_TYPE: u8 = 128;

/// Appends the answer of a call of `procedure` that has ended in this way.
pub(crate) fn write(
    procedure: &str,
    arguments: &Arguments,
    outcome: std::result::Result<&Rows, &Error>,
    target: &mut Vec<u8>,
) {
    append_string(target, procedure.as_bytes());
    let arguments = (0..arguments.len()).map(|position| arguments.value(position));
    write_length(arguments.len(), target);
    arguments.for_each(|value| value.append_to(target));
    match outcome {
        Ok(rows) => {
            target.push(COMMITTED);
            write_rows(rows, target);
        }
        Err(error) => {
            target.push(REJECTED);
            write_error(error, target);
        }
    }
}

/// Reads an answer. Each value that it allocates memory for has at least one of the bytes.
///
/// # Errors
/// XX001 for bytes that [`write`] has not written.
pub(crate) fn read(bytes: &[u8]) -> Result<Answer> {
    let reader = &mut Reader::new(bytes);
    let procedure = read_text(reader)?.into();
    let mut arguments = Arguments::new();
    for _ in 0..reader.number(4)? {
        arguments.push(&Value::read_from(reader)?);
    }
    let reply = match reader.number(1)? as u8 {
        COMMITTED => Reply::Committed(read_rows(reader)?),
        REJECTED => Reply::Rejected(read_error(reader)?),
        other => return Err(corrupt(format!("no call ends in the way {other}"))),
    };
    match reader.rest().len() {
        0 => Ok(Answer {
            procedure,
            arguments,
            reply,
        }),
        left => Err(corrupt(format!("{left} bytes come after an answer"))),
    }
}

fn write_length(length: usize, target: &mut Vec<u8>) {
    let length = u32::try_from(length).expect("a procedure's memory has fewer than 4 Gi values");
    target.extend_from_slice(&length.to_le_bytes());
}

pub(crate) fn write_rows(rows: &Rows, target: &mut Vec<u8>) {
    write_length(rows.columns().len(), target);
    for (name, data_type) in rows.columns() {
        append_string(target, name.as_bytes());
        write_type(data_type, target);
    }
    write_length(rows.notices().len(), target);
    for notice in rows.notices() {
        let level = LEVELS.iter().position(|level| *level == notice.level);
        target.push(level.unwrap_or_default() as u8);
        append_string(target, notice.message.as_bytes());
    }
    write_length(rows.len(), target);
    for row in rows.values() {
        if row.is_empty() {
            target.push(0);
        }
        row.iter().for_each(|value| value.append_to(target));
    }
}

fn read_rows(reader: &mut Reader<'_>) -> Result<Rows> {
    // Nothing is reserved for a number of members that was read: there may be fewer bytes than
    // that.
    let mut columns = Vec::new();
    for _ in 0..reader.number(4)? {
        columns.push((read_text(reader)?.to_owned(), read_type(reader, 0)?));
    }
    let mut notices = Vec::new();
    for _ in 0..reader.number(4)? {
        let level = LEVELS.get(reader.number(1)? as usize);
        let level = level.ok_or_else(|| corrupt("no notice has such a level"))?;
        let message = read_text(reader)?.to_owned();
        notices.push(Notice { level, message });
    }
    let mut rows = Vec::new();
    for _ in 0..reader.number(4)? {
        if columns.is_empty() && reader.number(1)? != 0 {
            return Err(corrupt("a row without columns has a value"));
        }
        let values = columns.iter().map(|(_, data_type)| {
            let value = Value::read_from(reader)?;
            let is_named = data_type.enumeration().is_some() || data_type.row().is_some();
            match is_named {
                true => convert(value, data_type),
                false => Ok(value),
            }
        });
        rows.push(values.collect::<Result<_>>()?);
    }
    Ok(Rows::of(columns.into(), rows, notices))
}

fn write_error(error: &Error, target: &mut Vec<u8>) {
    target.extend_from_slice(error.state().as_str().as_bytes());
    append_string(target, error.message().as_bytes());
    let subject = error.subject();
    let texts = [
        (HAS_DETAIL, error.detail()),
        (HAS_HINT, error.hint()),
        (HAS_CONSTRAINT, subject.constraint.as_deref()),
        (HAS_SCHEMA, subject.schema.as_deref()),
        (HAS_TABLE, subject.table.as_deref()),
        (HAS_COLUMN, subject.column.as_deref()),
        (HAS_TYPE, subject.data_type.as_deref()),
    ];
    let present = texts.iter().filter(|(_, text)| text.is_some());
    let mut parts = present.fold(0, |parts, (part, _)| parts | part);
    if error.position().is_some() {
        parts |= HAS_POSITION;
    }
    target.push(parts);
    let texts = texts.iter().filter_map(|(_, text)| *text);
    texts.for_each(|text| append_string(target, text.as_bytes()));
    if let Some(Position { line, column }) = error.position() {
        target.extend_from_slice(&line.to_le_bytes());
        target.extend_from_slice(&column.to_le_bytes());
    }
}

fn read_error(reader: &mut Reader<'_>) -> Result<Error> {
    let state = std::str::from_utf8(reader.take(5)?).ok();
    let state = state.and_then(SqlState::parse);
    let state = state.ok_or_else(|| corrupt("no SQLSTATE has such characters"))?;
    let mut error = Error::new(state, read_text(reader)?);
    let parts = reader.number(1)? as u8;
    if parts & HAS_DETAIL != 0 {
        error = error.with_detail(read_text(reader)?);
    }
    if parts & HAS_HINT != 0 {
        error = error.with_hint(read_text(reader)?);
    }
    let mut named = |part| match parts & part != 0 {
        true => read_text(reader).map(|name| Some(name.to_owned())),
        false => Ok(None),
    };
    let subject = Subject {
        constraint: named(HAS_CONSTRAINT)?,
        schema: named(HAS_SCHEMA)?,
        table: named(HAS_TABLE)?,
        column: named(HAS_COLUMN)?,
        data_type: named(HAS_TYPE)?,
    };
    error = error.about(subject);
    if parts & HAS_POSITION != 0 {
        error = error.at(reader.number(4)? as u32, reader.number(4)? as u32);
    }
    Ok(error)
}

/// Appends the form of a type, and what the form has: of NUMERIC with them the precision and the
/// scale, a byte each, or two bytes each; of CHAR, and of VARCHAR with one, the limit in 4 bytes;
/// of an array the type of its elements; of a type of the catalogs its number in 4 bytes; of an
/// enum the text that describes it.
fn write_type(data_type: &DataType, target: &mut Vec<u8>) {
    let form = match data_type {
        DataType::SmallInt => 0,
        DataType::Integer => 1,
        DataType::BigInt => 2,
        DataType::Numeric {
            precision_scale: None,
        } => 3,
        DataType::Numeric { .. } if bytes_of_numeric(data_type).is_some() => 4,
        DataType::Numeric { .. } => 24,
        DataType::Double => 5,
        DataType::Boolean => 6,
        DataType::Char(_) => 7,
        DataType::VarChar(None) => 8,
        DataType::VarChar(Some(_)) => 9,
        DataType::Text => 10,
        DataType::Bytea => 11,
        DataType::Date => 12,
        DataType::Timestamp(None) => 13,
        DataType::TimestampTz(None) => 14,
        DataType::Uuid => 15,
        DataType::Interval(_) => 16,
        DataType::Array(_) => 17,
        DataType::Catalog(_) => 18,
        DataType::Time(None) => 19,
        DataType::Enum(_) => 20,
        DataType::Row(_) => 25,
        DataType::Timestamp(Some(_)) => 21,
        DataType::TimestampTz(Some(_)) => 22,
        DataType::Time(Some(_)) => 23,
    };
    target.push(form);
    match data_type {
        DataType::Numeric {
            precision_scale: Some((precision, scale)),
        } => match bytes_of_numeric(data_type) {
            Some(bytes) => target.extend_from_slice(&bytes),
            None => {
                target.extend_from_slice(&precision.to_le_bytes());
                target.extend_from_slice(&scale.to_le_bytes());
            }
        },
        DataType::Char(limit) | DataType::VarChar(Some(limit)) => {
            target.extend_from_slice(&limit.to_le_bytes());
        }
        DataType::Timestamp(Some(digits))
        | DataType::TimestampTz(Some(digits))
        | DataType::Time(Some(digits)) => target.push(*digits),
        DataType::Array(element) => write_type(element, target),
        DataType::Enum(of) => append_string(target, of.to_string().as_bytes()),
        DataType::Row(of) => append_string(target, of.to_string().as_bytes()),
        DataType::Catalog(catalog) => target.extend_from_slice(&catalog.oid().to_le_bytes()),
        _ => {}
    }
}

/// Precision and scale of a NUMERIC, where a byte each says them.
fn bytes_of_numeric(data_type: &DataType) -> Option<[u8; 2]> {
    match data_type {
        DataType::Numeric {
            precision_scale: Some((precision, scale)),
        } => Some([u8::try_from(*precision).ok()?, u8::try_from(*scale).ok()?]),
        _ => None,
    }
}

fn read_type(reader: &mut Reader<'_>, depth: usize) -> Result<DataType> {
    Ok(match reader.number(1)? {
        0 => DataType::SmallInt,
        1 => DataType::Integer,
        2 => DataType::BigInt,
        3 => DataType::NUMERIC,
        4 => DataType::Numeric {
            precision_scale: Some((reader.number(1)? as u16, reader.number(1)? as i16)),
        },
        24 => DataType::Numeric {
            precision_scale: Some((reader.number(2)? as u16, reader.number(2)? as i16)),
        },
        5 => DataType::Double,
        6 => DataType::Boolean,
        7 => DataType::Char(reader.number(4)? as u32),
        8 => DataType::VarChar(None),
        9 => DataType::VarChar(Some(reader.number(4)? as u32)),
        10 => DataType::Text,
        11 => DataType::Bytea,
        12 => DataType::Date,
        13 => DataType::TIMESTAMP,
        14 => DataType::TIMESTAMPTZ,
        15 => DataType::Uuid,
        16 => DataType::INTERVAL,
        19 => DataType::TIME,
        18 => {
            let oid = reader.number(4)? as u32;
            let mut known = CatalogType::ALL.into_iter();
            let known = known.find(|known| known.oid() == oid);
            DataType::Catalog(known.ok_or_else(|| corrupt(format!("no type has number {oid}")))?)
        }
        20 => {
            let read = EnumType::read(read_text(reader)?);
            let read = read.ok_or_else(|| corrupt("no type is described so"))?;
            DataType::Enum(Arc::new(read))
        }
        25 => {
            let read = RowType::read(read_text(reader)?);
            let read = read.ok_or_else(|| corrupt("no type is described so"))?;
            DataType::Row(Arc::new(read))
        }
        21 => DataType::Timestamp(Some(reader.number(1)? as u8)),
        22 => DataType::TimestampTz(Some(reader.number(1)? as u8)),
        23 => DataType::Time(Some(reader.number(1)? as u8)),
        17 if depth < DEPTH_MAX => DataType::array(read_type(reader, depth + 1)?),
        form => return Err(corrupt(format!("no type has the form {form}"))),
    })
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;
    use kiln_storage::types::{Decimal, Interval};

    use super::*;

    fn text(random: &mut Random) -> String {
        let letters = ['a', '\0', 'ß', '日', '"'];
        let length = random.below(6);
        (0..length)
            .map(|_| letters[random.below(letters.len())])
            .collect()
    }

    fn number(random: &mut Random) -> i64 {
        let shift = random.below(64);
        random.next_u64() as i64 >> shift
    }

    fn value(random: &mut Random, depth: usize) -> Value {
        match random.below(if depth < 3 { 17 } else { 15 }) {
            0 => Value::Null,
            1 => Value::Boolean(random.below(2) == 0),
            2 => Value::SmallInt(number(random) as i16),
            3 => Value::Integer(number(random) as i32),
            4 => Value::BigInt(number(random)),
            5 => {
                let mantissa = i128::from(number(random)) << random.below(48);
                Value::Numeric(Decimal::new(mantissa, random.below(64) as u8).expect("it fits"))
            }
            6 => Value::Double(f64::from_bits(random.next_u64())),
            7 => Value::Double(number(random) as f64),
            8 => Value::Text(text(random)),
            9 => Value::Bytea(text(random).into_bytes()),
            10 => Value::Date(number(random) as i32),
            11 => Value::Timestamp(number(random)),
            12 => Value::TimestampTz(number(random)),
            13 => Value::Uuid([random.below(256) as u8; 16]),
            14 => Value::Interval(Interval::new(
                number(random) as i32,
                number(random) as i32,
                number(random),
            )),
            _ => {
                let length = random.below(5);
                Value::Array((0..length).map(|_| value(random, depth + 1)).collect())
            }
        }
    }

    fn data_type(random: &mut Random) -> DataType {
        let types = [
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::NUMERIC,
            DataType::numeric(12, 2),
            DataType::numeric(300, -2),
            DataType::Double,
            DataType::Boolean,
            DataType::Char(7),
            DataType::VarChar(None),
            DataType::VarChar(Some(random.below(1 << 20) as u32)),
            DataType::Text,
            DataType::Bytea,
            DataType::Date,
            DataType::TIMESTAMP,
            DataType::TIMESTAMPTZ,
            DataType::Uuid,
            DataType::INTERVAL,
            DataType::Timestamp(Some(3)),
            DataType::TimestampTz(Some(0)),
            DataType::Time(Some(6)),
            DataType::OID,
            DataType::NAME,
        ];
        let data_type = types[random.below(types.len())].clone();
        match random.below(5) {
            0 => DataType::array(data_type),
            _ => data_type,
        }
    }

    fn rows(random: &mut Random) -> Rows {
        let columns: Vec<_> = (0..random.below(4))
            .map(|_| (text(random), data_type(random)))
            .collect();
        let notices = (0..random.below(3)).map(|_| Notice {
            level: LEVELS[random.below(LEVELS.len())],
            message: text(random),
        });
        let notices = notices.collect();
        let values =
            (0..random.below(4)).map(|_| columns.iter().map(|_| value(random, 0)).collect());
        let values = values.collect();
        Rows::of(columns.into(), values, notices)
    }

    fn error(random: &mut Random) -> Error {
        let states = [SqlState::UNIQUE_VIOLATION, SqlState::RAISE_EXCEPTION];
        let state = states[random.below(2)];
        let mut error = Error::new(state, text(random));
        if random.below(2) == 0 {
            error = error.with_detail(text(random));
        }
        if random.below(2) == 0 {
            error = error.with_hint(text(random));
        }
        let mut name = || (random.below(2) == 0).then(|| text(random));
        let subject = Subject {
            schema: name(),
            table: name(),
            column: name(),
            data_type: name(),
            constraint: name(),
        };
        error = error.about(subject);
        if random.below(2) == 0 {
            error = error.at(number(random) as u32, number(random) as u32);
        }
        error
    }

    /// Some answer: its bytes, its arguments and how the call ended.
    fn answer(random: &mut Random) -> (Vec<u8>, Arguments, Reply) {
        let arguments: Vec<Value> = (0..random.below(5)).map(|_| value(random, 0)).collect();
        let arguments = Arguments::from_values(&arguments);
        let reply = match random.below(3) {
            0 => Reply::Rejected(error(random)),
            _ => Reply::Committed(rows(random)),
        };
        let mut bytes = Vec::new();
        let outcome = match &reply {
            Reply::Committed(rows) => Ok(rows),
            Reply::Rejected(error) => Err(error),
            Reply::Expired => unreachable!("it has no answer"),
        };
        write("transfer", &arguments, outcome, &mut bytes);
        (bytes, arguments, reply)
    }

    fn rewritten(read: &Answer) -> Vec<u8> {
        let outcome = match &read.reply {
            Reply::Committed(rows) => Ok(rows),
            Reply::Rejected(error) => Err(error),
            Reply::Expired => unreachable!("it is never read"),
        };
        let mut bytes = Vec::new();
        write(&read.procedure, &read.arguments, outcome, &mut bytes);
        bytes
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        for seed in 0..2_000 {
            let random = &mut Random::from_seed(seed);
            let (bytes, arguments, reply) = answer(random);
            let read = read(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(&*read.procedure, "transfer");
            assert!(read.arguments.is_same(&arguments), "seed {seed}");
            // NaN is no number, and equal numbers may have other digits: the bytes tell all apart.
            assert_eq!(rewritten(&read), bytes, "seed {seed}");
            if let (Reply::Rejected(read), Reply::Rejected(written)) = (&read.reply, &reply) {
                assert_eq!(read, written, "seed {seed}");
            }
            if let (Reply::Committed(read), Reply::Committed(written)) = (&read.reply, &reply) {
                assert_eq!(read.columns(), written.columns(), "seed {seed}");
                assert_eq!(read.notices(), written.notices(), "seed {seed}");
                assert_eq!(format!("{read:?}"), format!("{written:?}"), "seed {seed}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_answer_are_refused_and_never_panic() {
        for seed in 0..2_000 {
            let random = &mut Random::from_seed(seed);
            let (bytes, ..) = answer(random);
            for length in 0..bytes.len() {
                assert!(
                    read(&bytes[..length]).is_err(),
                    "seed {seed}: {length} bytes"
                );
            }
            assert!(read(&[&bytes[..], &[0]].concat()).is_err(), "seed {seed}");
            for _ in 0..20 {
                let mut damaged = bytes.clone();
                for _ in 0..=random.below(3) {
                    let at = random.below(damaged.len());
                    damaged[at] = match random.below(3) {
                        0 => 0xFF,
                        _ => random.below(256) as u8,
                    };
                }
                // What is read all the same is an answer: another one. Its arguments may be of
                // types that calls take for others.
                if let Ok(other) = read(&damaged) {
                    let written = rewritten(&other);
                    let again = read(&written).expect("it was just written");
                    assert_eq!(rewritten(&again), written, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn neither_counts_nor_depth_take_memory_that_bytes_do_not_account_for() {
        let head = [&0_u32.to_le_bytes()[..], &0_u32.to_le_bytes()].concat();
        let many = u32::MAX.to_le_bytes();
        let nested = |form: u8| -> Vec<u8> {
            let level = match form {
                15 => vec![form, 1, 0, 0, 0],
                _ => vec![form],
            };
            level.repeat(1 << 20)
        };
        let with_arguments = [&0_u32.to_le_bytes()[..], &many].concat();
        let columns = [&1_u32.to_le_bytes()[..], &0_u32.to_le_bytes()].concat();
        for bytes in [
            with_arguments.clone(),
            [&with_arguments[..], &nested(15)].concat(),
            [&head[..], &[COMMITTED], &many].concat(),
            [&head[..], &[COMMITTED], &columns, &nested(17)].concat(),
            // Rows without columns.
            [&head[..], &[COMMITTED], &[0; 8], &many].concat(),
            [&head[..], &[REJECTED], b"40001", &many].concat(),
        ] {
            assert!(read(&bytes).is_err());
        }
    }
}
