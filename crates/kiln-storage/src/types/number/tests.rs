//! Every line of `postgresql_vectors.tsv` against this module: an operation, its arguments and what
//! PostgreSQL 15 gave for it, separated by tabs. `ERR:` begins a SQLSTATE and a message.

use kiln_platform::random::Random;

use super::*;
use crate::types::double::format_double;

fn number(text: &str) -> Result<Number> {
    Number::parse(text)
}

fn evaluate(operation: &str, arguments: &[&str]) -> Result<String> {
    let first = || number(arguments[0]);
    let second = || number(arguments[1]);
    let integer = |at: usize| -> i32 { arguments[at].parse().expect("an integer") };
    let scale = |scale: Option<u16>| scale.map_or("NULL".to_owned(), |scale| scale.to_string());
    let result = match operation {
        "add" => first()?.try_add(&second()?)?,
        "sub" => first()?.try_sub(&second()?)?,
        "mul" => first()?.try_mul(&second()?)?,
        "div" => first()?.try_div(&second()?)?,
        "divt" => first()?.try_div_trunc(&second()?)?,
        "rem" => first()?.try_rem(&second()?)?,
        "gcd" => first()?.gcd(&second()?)?,
        "lcm" => first()?.lcm(&second()?)?,
        "abs" => first()?.abs(),
        "sign" => first()?.signum(),
        "round" => first()?.round(integer(1))?,
        "trunc" => first()?.trunc(integer(1))?,
        "trim" => first()?.normalize(),
        "ceil" => first()?.ceil()?,
        "floor" => first()?.floor()?,
        "sqrt" => first()?.sqrt()?,
        "exp" => first()?.exp()?,
        "ln" => first()?.ln()?,
        "log" => first()?.log10()?,
        "logb" => second()?.log(&first()?)?,
        "power" => first()?.power(&second()?)?,
        "rescale" => first()?.rescale(integer(1) as u16, integer(2) as i16)?,
        "fact" => Number::factorial(integer(0).into())?,
        "fromf64" => Number::from_f64(parse_double(arguments[0])?)?,
        "in" => number(&arguments[1].replace("<NL>", "\n").replace("<TAB>", "\t"))?,
        "cmp" => return Ok((first()?.cmp(&second()?) as i32).to_string()),
        "i64" => return Ok(first()?.to_i64()?.to_string()),
        "i32" => return Ok(first()?.to_i32()?.to_string()),
        "f64" => return Ok(format_double(first()?.to_f64()?)),
        "minscale" => return Ok(scale(first()?.min_scale())),
        "scale" => return Ok(scale(first()?.scale())),
        _ => panic!("the vectors name an unknown operation {operation}"),
    };
    Ok(result.to_string())
}

fn differences(vectors: &str, is_mine: impl Fn(&str) -> bool) -> (usize, Vec<String>) {
    let (mut checked, mut differences) = (0, Vec::new());
    for line in vectors.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [operation, arguments @ .., expected] = &fields[..] else {
            panic!("a vector has too few fields: {line}")
        };
        if !is_mine(operation) || *operation == "in" && arguments[0] != "numeric" {
            continue;
        }
        let found = evaluate(operation, arguments)
            .unwrap_or_else(|error: Error| format!("ERR:{}:{}", error.state(), error.message()));
        if found != *expected {
            differences.push(format!("{line}\n    but here {found}"));
        }
        checked += 1;
    }
    (checked, differences)
}

#[test]
fn results_and_errors_are_those_of_postgresql() {
    let (checked, differences) = differences(include_str!("postgresql_vectors.tsv"), |_| true);
    let (count, text) = (differences.len(), differences.join("\n"));
    assert!(differences.is_empty(), "{count} differ:\n{text}");
    assert!(checked > 2_000, "only {checked} vectors were found");
}

/// What numbers of few digits give does not depend on the form that they have.
#[test]
fn results_of_few_digits_are_those_of_postgresql_too() {
    const OPERATIONS: [&str; 19] = [
        "add", "sub", "mul", "div", "divt", "rem", "round", "trunc", "ceil", "floor", "sqrt",
        "exp", "ln", "log", "logb", "power", "fromf64", "cmp", "minscale",
    ];
    let vectors = include_str!("../postgresql_vectors.tsv");
    let (checked, differences) = differences(vectors, |operation| {
        OPERATIONS.contains(&operation) || operation == "in"
    });
    let (count, text) = (differences.len(), differences.join("\n"));
    assert!(differences.is_empty(), "{count} differ:\n{text}");
    assert!(checked > 800, "only {checked} vectors were found");
}

fn random_number(random: &mut Random) -> Number {
    match random.below(20) {
        0 => Number::NaN,
        1 => Number::Infinity,
        2 => Number::NegativeInfinity,
        3 => Number::ZERO,
        _ => {
            let longest = [10, 40, 300][random.below(3)];
            let length = random.between(1, longest);
            let mut text = String::from(["", "-"][random.below(2)]);
            text.extend((0..length).map(|_| char::from(b'0' + random.below(10) as u8)));
            let shift = random.between(-200, 40);
            number(&format!("{text}e{shift}")).expect("it is within the limits")
        }
    }
}

#[test]
fn text_and_bytes_say_all_of_a_number() {
    let mut random = Random::from_seed(1);
    for _ in 0..5_000 {
        let value = random_number(&mut random);
        let text = value.to_string();
        assert_eq!(number(&text).map(|read| read.to_string()), Ok(text.clone()));
        let mut bytes = Vec::new();
        value.append_bytes_to(&mut bytes);
        let read = Number::from_bytes(&bytes).expect("they were appended");
        assert_eq!(read.to_string(), text);
        assert_eq!(read, value);
        if let Some(decimal) = value.to_decimal() {
            assert_eq!(Number::from(decimal).to_string(), text);
            assert_eq!(decimal.to_string(), text);
        }
        bytes.push(0);
        assert!(Number::from_bytes(&bytes).is_none(), "{text}");
    }
    for bytes in [
        &[][..],
        &[5],
        &[0],
        &[0, 0],
        &[1, 0, 0],
        &[0, 0, 0x40],
        &[2, 0],
    ] {
        assert!(Number::from_bytes(bytes).is_none(), "{bytes:?}");
    }
}

#[test]
fn equal_numbers_have_equal_hashes() {
    fn hash_of(value: &impl Hash) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }
    let mut random = Random::from_seed(2);
    for _ in 0..2_000 {
        let value = random_number(&mut random);
        let more = match value.scale() {
            Some(scale) => value.round(i32::from(scale) + 70).expect("it fits"),
            None => value.clone(),
        };
        assert_eq!(value, more);
        assert_eq!(hash_of(&value), hash_of(&more), "{value}");
        if let Some(decimal) = value.to_decimal() {
            assert_eq!(hash_of(&decimal), hash_of(&more), "{value}");
        }
    }
}

#[test]
fn the_order_is_total() {
    let mut random = Random::from_seed(3);
    let mut numbers: Vec<Number> = (0..300).map(|_| random_number(&mut random)).collect();
    numbers.sort();
    for (at, one) in numbers.iter().enumerate() {
        for other in &numbers[at..] {
            assert!(one <= other, "{one} and {other}");
            assert_eq!(one == other, other <= one);
        }
    }
    assert_eq!(numbers.last(), Some(&Number::NaN));
}

#[test]
fn common_divisors_divide_and_leave_nothing_in_common() {
    let mut random = Random::from_seed(5);
    for round in 0..300 {
        let mut number = |digits: usize| -> Number {
            let digits = (0..digits).map(|_| char::from(b'0' + random.below(10) as u8));
            let digits: String = digits.collect();
            format!("1{digits}").parse().expect("a number")
        };
        let common = number(round % 70);
        let (one, other) = (number(round), number(round * 7 % 300));
        let multiples = [&one, &other].map(|of| of.try_mul(&common).expect("it has few digits"));
        let divisor = multiples[0].gcd(&multiples[1]).expect("it is smaller");
        // As many steps of Euclid's algorithm as it takes, one by one.
        let (mut large, mut small) = (multiples[0].clone(), multiples[1].clone());
        while !small.is_zero() {
            let rest = large.try_rem(&small).expect("it is not zero");
            large = std::mem::replace(&mut small, rest);
        }
        assert_eq!(divisor, large, "{} and {}", multiples[0], multiples[1]);
        assert!(divisor.try_rem(&common).expect("it is not zero").is_zero());
    }
    let zero = Number::ZERO;
    let seven = Number::from(-7);
    assert_eq!(zero.gcd(&seven).expect("seven"), Number::from(7));
    assert_eq!(seven.gcd(&zero).expect("seven"), Number::from(7));
    assert_eq!(zero.gcd(&zero).expect("zero"), zero);
}
