//! What PostgreSQL 15 reads and writes, and that no data make the decoder panic.

use kiln_storage::error::Error;
use kiln_storage::types::{DataType, Value};

use super::{Columns, Decoder, Encoder, Layout, Options};

const TYPES: [DataType; 3] = [DataType::Integer, DataType::Text, DataType::Bytea];
const NAMES: [&str; 3] = ["id", "name", "raw"];

fn options(given: &[(&str, &[&str])], is_in: bool) -> Result<Options, Error> {
    let given: Vec<(&str, Vec<String>)> = given
        .iter()
        .map(|(name, values)| (*name, values.iter().map(|it| (*it).to_owned()).collect()))
        .collect();
    Options::of(
        given
            .iter()
            .map(|(name, values)| (*name, values.as_slice())),
        is_in,
    )
}

fn written(given: &[(&str, &[&str])], rows: &[Vec<Value>]) -> Vec<u8> {
    let mut encoder =
        Encoder::new(options(given, false).expect("they fit"), &NAMES).expect("they are there");
    let mut bytes = Vec::new();
    encoder.start(&NAMES, &mut bytes);
    let types: Vec<&DataType> = TYPES.iter().collect();
    rows.iter()
        .for_each(|row| encoder.row(row, &types, &mut bytes));
    encoder.end(&mut bytes);
    bytes
}

/// Reads data that come in pieces of these many bytes.
fn read_with(
    options: Options,
    bytes: &[u8],
    piece: usize,
) -> Result<Vec<Vec<Value>>, (Error, u64)> {
    let columns: Vec<(&str, &DataType)> = NAMES.into_iter().zip(&TYPES).collect();
    let mut decoder = Decoder::new(options, &columns).map_err(|error| (error, 0))?;
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    let mut take = |decoder: &mut Decoder| {
        loop {
            match decoder.next(&mut values) {
                Ok(true) => rows.push(values.clone()),
                Ok(false) => return Ok(()),
                Err(error) => return Err((error, decoder.line())),
            }
        }
    };
    for piece in bytes.chunks(piece) {
        decoder.feed(piece);
        take(&mut decoder)?;
    }
    decoder.finish();
    take(&mut decoder)?;
    Ok(rows)
}

fn read(given: &[(&str, &[&str])], bytes: &[u8]) -> Result<Vec<Vec<Value>>, (Error, u64)> {
    let options = options(given, true).expect("they fit");
    let whole = read_with(options.clone(), bytes, bytes.len().max(1));
    for piece in 1..8 {
        let pieces = read_with(options.clone(), bytes, piece);
        assert_eq!(pieces, whole, "pieces of {piece} are read as the whole");
    }
    whole
}

fn row(id: i32, name: Option<&str>, raw: &[u8]) -> Vec<Value> {
    let name = name.map_or(Value::Null, Value::from);
    vec![Value::Integer(id), name, Value::Bytea(raw.to_vec())]
}

fn rows() -> Vec<Vec<Value>> {
    vec![
        row(1, Some("plain"), b""),
        row(-2, None, b"\0\xff"),
        row(3, Some(""), b"x"),
        row(
            4,
            Some("tab\tline\nreturn\rback\\slash\u{8}\u{c}\u{b}"),
            b"\\",
        ),
        row(5, Some("\"quoted\", and, more"), b"\""),
        row(6, Some("\\N"), b""),
        row(7, Some("\\."), b""),
        row(8, Some(" äö "), b""),
    ]
}

const CSV: (&str, &[&str]) = ("format", &["csv"]);
const BINARY: (&str, &[&str]) = ("format", &["binary"]);

/// `COPY (SELECT …) TO STDOUT` of PostgreSQL 15.
#[test]
fn rows_are_written_as_by_postgresql() {
    let text = "1\tplain\t\\\\x\n-2\t\\N\t\\\\x00ff\n3\t\t\\\\x78\n\
                4\ttab\\tline\\nreturn\\rback\\\\slash\\b\\f\\v\t\\\\x5c\n";
    assert_eq!(String::from_utf8_lossy(&written(&[], &rows()[..4])), text);
    let csv = "id,name,raw\n-2,,\\x00ff\n3,\"\",\\x78\n5,\"\"\"quoted\"\", and, more\",\\x22\n";
    let some = [rows()[1].clone(), rows()[2].clone(), rows()[4].clone()];
    let given: &[(&str, &[&str])] = &[CSV, ("header", &[])];
    assert_eq!(String::from_utf8_lossy(&written(given, &some)), csv);
    let forced: &[(&str, &[&str])] = &[CSV, ("force_quote", &["name"]), ("null", &["NIL"])];
    let written = written(forced, &some[..2]);
    assert_eq!(
        String::from_utf8_lossy(&written),
        "-2,NIL,\\x00ff\n3,\"\",\\x78\n"
    );
}

#[test]
fn what_is_written_is_read() {
    let given: [&[(&str, &[&str])]; 8] = [
        &[],
        &[CSV],
        &[BINARY],
        &[("delimiter", &["|"]), ("null", &["nil"])],
        &[CSV, ("quote", &["'"]), ("escape", &["\\"])],
        &[CSV, ("header", &["true"]), ("delimiter", &[";"])],
        &[CSV, ("null", &["\\N"])],
        &[("header", &["on"])],
    ];
    for given in given {
        let bytes = written(given, &rows());
        assert_eq!(read(given, &bytes), Ok(rows()), "{given:?}");
    }
}

#[test]
fn data_of_others_are_read() {
    for (given, bytes, rows) in [
        (&[][..], &b"1\ta\\\nb\t\\x00\r\\\\x\n"[..], None),
        (
            &[],
            b"1\t\\141\\x62\\q\t\\\\x00",
            Some(row(1, Some("abq"), b"\0")),
        ),
        (
            &[],
            b"1\ta\\\nb\t\\\\x\n\\.\nrubbish",
            Some(row(1, Some("a\nb"), b"")),
        ),
        (&[], b"1\ta\t\\\\x\r\n", Some(row(1, Some("a"), b""))),
        (
            &[CSV],
            b"1,a\"b,c\"d,\\x\r\n",
            Some(row(1, Some("ab,cd"), b"")),
        ),
        (
            &[CSV],
            b"1,\"two\nlines\",\\x",
            Some(row(1, Some("two\nlines"), b"")),
        ),
        (
            &[CSV, ("force_null", &["name"])],
            b"1,\"\",\\x\n",
            Some(row(1, None, b"")),
        ),
        (
            &[CSV, ("force_not_null", &["*"])],
            b"1,,\\x\n",
            Some(row(1, Some(""), b"")),
        ),
        (
            &[CSV, ("header", &["match"])],
            b"id,name,raw\n1,,\\x\n",
            Some(row(1, None, b"")),
        ),
    ] {
        let read = read(given, bytes);
        match rows {
            Some(expected) => assert_eq!(read, Ok(vec![expected])),
            None => assert!(read.is_err()),
        }
    }
}

#[test]
fn mistakes_are_told_with_their_line() {
    let header: &[(&str, &[&str])] = &[CSV, ("header", &["match"])];
    for (given, bytes, state, line, message) in [
        (
            &[][..],
            &b"1\ta\t\\\\x\n2\tb\n"[..],
            "22P04",
            2,
            "missing data for column \"raw\"",
        ),
        (
            &[],
            b"1\ta\t\\\\x\tmore\n",
            "22P04",
            1,
            "extra data after last expected column",
        ),
        (
            &[],
            b"1\ta\t\\\\x\nx\ta\t\\\\x\n",
            "22P02",
            2,
            "invalid input syntax for type integer: \"x\"",
        ),
        (
            &[],
            b"1\t\\xff\t\\\\x\n",
            "22021",
            1,
            "invalid byte sequence for encoding \"UTF8\": 0xff",
        ),
        (
            &[],
            b"1\ta\t\\\\x\n1\ta\t\\\\x\r\n",
            "22P04",
            2,
            "literal carriage return found in data",
        ),
        (
            &[CSV],
            b"1,\"a,\\x\n",
            "22P04",
            1,
            "unterminated CSV quoted field",
        ),
        (
            header,
            b"id,nam,raw\n",
            "22P04",
            1,
            "column name mismatch in header line: got \"nam\", expected \"name\"",
        ),
        (
            &[BINARY],
            b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02",
            "22P04",
            1,
            "row field count is 2, expected 3",
        ),
        (
            &[BINARY],
            b"COPY",
            "22P04",
            0,
            "COPY file signature not recognized",
        ),
    ] {
        let (error, at) = read(given, bytes).expect_err(message);
        assert_eq!(
            (error.state().as_str(), error.message(), at),
            (state, message, line)
        );
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    for (given, is_in, state) in [
        (&[("format", &["xml"][..])][..], true, "22023"),
        (&[("colour", &["red"])], true, "42601"),
        (&[("delimiter", &["ab"])], true, "0A000"),
        (&[("delimiter", &["a"])], true, "22023"),
        (&[("quote", &["'"])], true, "0A000"),
        (&[BINARY, ("delimiter", &[","])], true, "0A000"),
        (&[CSV, ("quote", &[","])], true, "22023"),
        (&[CSV, ("force_quote", &["*"])], true, "0A000"),
        (&[CSV, ("force_null", &["name"])], false, "0A000"),
        (&[("header", &["match"])], false, "0A000"),
        (&[("null", &["a\tb"])], true, "22023"),
        (&[("encoding", &["latin1"])], true, "0A000"),
        (&[CSV, CSV], true, "42601"),
        (&[("header", &["perhaps"])], true, "42601"),
    ] {
        let refused = options(given, is_in).map_err(|error| error.state().as_str().to_owned());
        assert_eq!(refused, Err(state.to_owned()), "{given:?}");
    }
    let mut unknown = Options::new(Layout::Csv);
    unknown.force_null = Columns::Named(vec!["colour".to_owned()]);
    assert!(read_with(unknown, b"", 1).is_err());
    assert!(options(&[("freeze", &["on"]), ("encoding", &["UTF-8"])], true).is_ok());
}

#[test]
fn no_data_make_the_decoder_panic() {
    let mut state = 7_u64;
    let mut random = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let given: [&[(&str, &[&str])]; 4] = [
        &[],
        &[CSV],
        &[BINARY],
        &[CSV, ("escape", &["\\"]), ("header", &["match"])],
    ];
    const LIKELY: &[u8] = b"1\t,\"\\\n\r.Nx0\xff\0\0\x03";
    for round in 0..20_000 {
        let given = given[round % given.len()];
        let mut bytes = match random(2) {
            0 => written(&given[..given.len().min(1)], &rows()),
            _ => Vec::new(),
        };
        bytes.truncate(random(bytes.len() + 1));
        for _ in 0..random(20) {
            let byte = LIKELY[random(LIKELY.len())];
            bytes.insert(random(bytes.len() + 1), byte);
        }
        let options = options(given, true).expect("they fit");
        let whole = read_with(options.clone(), &bytes, bytes.len().max(1));
        let pieces = read_with(options, &bytes, 1 + random(5));
        assert_eq!(pieces, whole, "{given:?} {bytes:?}");
    }
}
