//! Every line of `postgresql_vectors.tsv` against this module: an operation, its arguments and
//! what PostgreSQL 15 (UTF-8, C collation, zone UTC) gave for it, separated by tabs. `<NL>` and
//! `<TAB>` stand for those characters; `ERR:` begins a SQLSTATE and a message.

use super::datetime::*;
use super::double::{format_double, parse_double};
use super::*;
use crate::error::{Error, Result};

fn decimal(text: &str) -> Result<Decimal> {
    Decimal::parse(text)
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a number in the vectors")
}

fn unescape(text: &str) -> String {
    text.replace("<NL>", "\n").replace("<TAB>", "\t")
}

fn data_type(name: &str) -> DataType {
    if let Some(element) = name.strip_suffix("[]") {
        return DataType::array(data_type(element));
    }
    match name {
        "smallint" => DataType::SmallInt,
        "integer" => DataType::Integer,
        "bigint" => DataType::BigInt,
        "numeric" => DataType::NUMERIC,
        "numeric(5,2)" => DataType::numeric(5, 2),
        "numeric(4,4)" => DataType::numeric(4, 4),
        "double precision" => DataType::Double,
        "boolean" => DataType::Boolean,
        "text" => DataType::Text,
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "timestamp" => DataType::TIMESTAMP,
        "timestamptz" => DataType::TIMESTAMPTZ,
        "uuid" => DataType::Uuid,
        "interval" => DataType::INTERVAL,
        _ => panic!("the vectors name an unknown type {name}"),
    }
}

fn evaluate_decimal(operation: &str, arguments: &[&str]) -> Result<Option<String>> {
    let first = || decimal(arguments[0]);
    let second = || decimal(arguments[1]);
    let result = match operation {
        "add" => first()?.try_add(second()?)?,
        "sub" => first()?.try_sub(second()?)?,
        "mul" => first()?.try_mul(second()?)?,
        "div" => first()?.try_div(second()?)?,
        "divt" => first()?.try_div_trunc(second()?)?,
        "rem" => first()?.try_rem(second()?)?,
        "round" => first()?.round(number(arguments[1]))?,
        "trunc" => first()?.trunc(number(arguments[1]))?,
        "ceil" => first()?.ceil()?,
        "floor" => first()?.floor()?,
        "sqrt" => first()?.sqrt()?,
        "exp" => first()?.exp()?,
        "ln" => first()?.ln()?,
        "log" => first()?.log10()?,
        "logb" => second()?.log(first()?)?,
        "power" => first()?.power(second()?)?,
        "rescale" => first()?.rescale(number(arguments[1]), number(arguments[2]))?,
        "fromf64" => Decimal::from_f64(parse_double(arguments[0])?)?,
        "cmp" => return Ok(Some((first()?.cmp(&second()?) as i32).to_string())),
        "i64" => return Ok(Some(first()?.to_i64()?.to_string())),
        "i32" => return Ok(Some(first()?.to_i32()?.to_string())),
        "f64" => return Ok(Some(format_double(first()?.to_f64()))),
        "minscale" => return Ok(Some(first()?.min_scale().to_string())),
        _ => return Ok(None),
    };
    Ok(Some(result.to_string()))
}

fn evaluate_datetime(operation: &str, arguments: &[&str]) -> Result<Option<String>> {
    let date = |index: usize| parse_date(arguments[index]);
    let timestamp = |index: usize| parse_timestamp(arguments[index]);
    let interval = |index: usize| parse_interval(arguments[index]);
    let integer = |index: usize| number::<i32>(arguments[index]);
    let field = |data_type: DataType| Field::parse(arguments[0], data_type.base_name());
    let part = |part: Option<Part>| part.map_or_else(String::new, |part| part.to_string());
    Ok(Some(match operation {
        "date+" => format_date(date_add_days(date(0)?, number(arguments[1]))?),
        "date-" => date_difference(date(0)?, date(1)?)?.to_string(),
        "date+i" => format_timestamp(date_add_interval(date(0)?, interval(1)?)?),
        "ts+i" => format_timestamp(timestamp_add_interval(timestamp(0)?, interval(1)?)?),
        "ts-i" => format_timestamp(timestamp_sub_interval(timestamp(0)?, interval(1)?)?),
        "ts-" => timestamp_difference(timestamp(0)?, timestamp(1)?)?.to_string(),
        "age" => age(timestamp(0)?, timestamp(1)?)?.to_string(),
        "i+" => interval(0)?.try_add(interval(1)?)?.to_string(),
        "i-" => interval(0)?.try_sub(interval(1)?)?.to_string(),
        "i*" => interval(0)?
            .try_mul(parse_double(arguments[1])?)?
            .to_string(),
        "i/" => interval(0)?
            .try_div(parse_double(arguments[1])?)?
            .to_string(),
        "icmp" => (interval(0)?.cmp(&interval(1)?) as i32).to_string(),
        "ex_ts" => part(extract_from_timestamp(
            field(DataType::TIMESTAMP)?,
            timestamp(1)?,
        )?),
        "ex_tz" => {
            let timestamp = parse_timestamptz(arguments[1])?;
            let field = field(DataType::TIMESTAMPTZ)?;
            part(extract_from_timestamptz(field, timestamp, &Zone::UTC)?)
        }
        "ex_d" => part(extract_from_date(field(DataType::Date)?, date(1)?)?),
        "ex_i" => extract_from_interval(field(DataType::INTERVAL)?, interval(1)?)?.to_string(),
        "tr_ts" => format_timestamp(date_trunc(field(DataType::TIMESTAMP)?, timestamp(1)?)?),
        "tr_i" => date_trunc_interval(field(DataType::INTERVAL)?, interval(1)?)?.to_string(),
        "to_char" => to_char(timestamp(0)?, arguments[1]).unwrap_or_default(),
        "make_date" => format_date(make_date(integer(0), integer(1), integer(2))?),
        "make_ts" => format_timestamp(make_timestamp(
            integer(0),
            integer(1),
            integer(2),
            integer(3),
            integer(4),
            number(arguments[5]),
        )?),
        _ => return Ok(None),
    }))
}

fn evaluate_text(operation: &str, arguments: &[&str]) -> Result<Option<String>> {
    use super::text::*;
    let first = arguments[0];
    let argument = |index: usize| arguments[index];
    let integer = |index: usize| number::<i32>(arguments[index]);
    Ok(Some(match operation {
        "like" => LikePattern::new(argument(1), false)
            .matches(first)?
            .to_string(),
        "ilike" => LikePattern::new(argument(1), true)
            .matches(first)?
            .to_string(),
        "likee" => LikePattern::with_escape(argument(1), argument(2), false)?
            .matches(first)?
            .to_string(),
        "substr" => substring(first, integer(1), None)?.to_string(),
        "substr2" => substring(first, integer(1), Some(integer(2)))?.to_string(),
        "left" => left(first, integer(1)).to_string(),
        "right" => right(first, integer(1)).to_string(),
        "position" => position(first, argument(1)).to_string(),
        "overlay" => overlay(first, argument(1), integer(2), None)?,
        "overlay2" => overlay(first, argument(1), integer(2), Some(integer(3)))?,
        "lpad" => pad_left(first, integer(1), argument(2))?,
        "rpad" => pad_right(first, integer(1), argument(2))?,
        "ltrim" => trim(first, argument(1), Side::Leading).to_string(),
        "rtrim" => trim(first, argument(1), Side::Trailing).to_string(),
        "btrim" => trim(first, argument(1), Side::Both).to_string(),
        "repeat" => repeat(first, integer(1))?,
        "replace" => replace(first, argument(1), argument(2))?,
        "reverse" => reverse(first),
        "translate" => translate(first, argument(1), argument(2)),
        "split_part" => split_part(first, argument(1), integer(2))?.to_string(),
        "upper" => upper(first),
        "lower" => lower(first),
        "initcap" => initcap(first),
        "ascii" => ascii(first).to_string(),
        "chr" => chr(number(first))?.to_string(),
        "length" => character_length(first).to_string(),
        "encode" => encode(first.as_bytes(), argument(1))?,
        "decode" => format_bytea(&decode(first, argument(1))?),
        _ => return Ok(None),
    }))
}

fn evaluate(operation: &str, arguments: &[&str]) -> Result<String> {
    if operation == "in" {
        let data_type = data_type(arguments[0]);
        return Ok(format_value(
            &parse_value(&data_type, &unescape(arguments[1]))?,
            &data_type,
        ));
    }
    for family in [evaluate_decimal, evaluate_datetime, evaluate_text] {
        if let Some(result) = family(operation, arguments)? {
            return Ok(result);
        }
    }
    panic!("the vectors name an unknown operation {operation}")
}

#[test]
fn results_and_errors_are_those_of_postgresql() {
    let vectors = include_str!("postgresql_vectors.tsv");
    let mut checked = 0;
    let mut differences = Vec::new();
    for line in vectors.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [operation, arguments @ .., expected] = &fields[..] else {
            panic!("a vector has too few fields: {line}")
        };
        let found = evaluate(operation, arguments)
            .unwrap_or_else(|error: Error| format!("ERR:{}:{}", error.state(), error.message()));
        if found.replace('\n', "<NL>") != *expected {
            differences.push(format!("{line}\n    but here {found}"));
        }
        checked += 1;
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(checked > 3_000, "only {checked} vectors were found");
}
