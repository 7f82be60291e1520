use kiln_platform::random::Random;

use super::*;

#[test]
fn canonical_texts_are_those_of_postgresql() {
    for (text, wanted) in [
        ("null", "null"),
        (
            " [ 1 , 2.50, -0 , 1e3, 12.5e-4, 0.0 ] ",
            "[1, 2.50, 0, 1000, 0.00125, 0.0]",
        ),
        (
            r#"{"bb":1,"a":{"x":[]},"a":2,"":{}}"#,
            r#"{"": {}, "a": 2, "bb": 1}"#,
        ),
        (r#""\u00e9\/\ud83d\ude00\n\u0001\"""#, r#""é/😀\n\u0001\"""#),
        ("[-1.5e1, 0e5, 0e-2, 123e-1, 5e-324]", &{
            let tiny = format!("0.{}5", "0".repeat(323));
            format!("[-15, 0, 0.00, 12.3, {tiny}]")
        }),
    ] {
        assert_eq!(canonical(text).unwrap(), wanted);
        assert_eq!(
            canonical(wanted).unwrap(),
            wanted,
            "it is its own canonical text"
        );
    }
}

#[test]
fn what_is_no_json_is_refused_with_postgresqls_detail() {
    for (text, state, detail) in [
        ("", "22P02", "The input string ended unexpectedly."),
        ("[1,", "22P02", "The input string ended unexpectedly."),
        ("]", "22P02", "Expected JSON value, but found \"]\"."),
        (
            "[1 2]",
            "22P02",
            "Expected \",\" or \"]\", but found \"2\".",
        ),
        (
            "{1:2}",
            "22P02",
            "Expected string or \"}\", but found \"1\".",
        ),
        ("{\"a\",2}", "22P02", "Expected \":\", but found \",\"."),
        ("{\"a\":1,}", "22P02", "Expected string, but found \"}\"."),
        ("1 2", "22P02", "Expected end of input, but found \"2\"."),
        ("nul", "22P02", "Token \"nul\" is invalid."),
        ("01", "22P02", "Token \"01\" is invalid."),
        ("1.", "22P02", "Token \"1.\" is invalid."),
        ("'a'", "22P02", "Token \"'\" is invalid."),
        (
            "\"a\nb\"",
            "22P02",
            "Character with value 0x0a must be escaped.",
        ),
        (r#""\x""#, "22P02", "Escape sequence \"\\x\" is invalid."),
        (
            r#""\u00g0""#,
            "22P02",
            "\"\\u\" must be followed by four hexadecimal digits.",
        ),
        (
            r#""\u0000""#,
            "22P05",
            "\\u0000 cannot be converted to text.",
        ),
        (
            r#""\ud800""#,
            "22P02",
            "Unicode low surrogate must follow a high surrogate.",
        ),
        ("1e131073", "22003", ""),
    ] {
        let error = canonical(text).unwrap_err();
        assert_eq!(error.state().as_str(), state, "{text}");
        assert_eq!(error.detail().unwrap_or_default(), detail, "{text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let error = read(&"[".repeat(100_000)).unwrap_err();
    assert_eq!(error.state().as_str(), "54001");
}

#[test]
fn values_are_ordered_as_in_postgresql() {
    let ordered = [
        "[]",
        "null",
        r#""""#,
        r#""a""#,
        r#""b""#,
        "-2",
        "-1.5",
        "0",
        "0.5",
        "1.50",
        "10",
        "false",
        "true",
        "[0]",
        "[1]",
        "[0, 0]",
        "{}",
        r#"{"a": 1}"#,
        r#"{"a": 2}"#,
        r#"{"b": 1}"#,
    ];
    let parsed: Vec<Json<'_>> = ordered.iter().map(|text| read(text).unwrap()).collect();
    for (left_place, left) in parsed.iter().enumerate() {
        for (right_place, right) in parsed.iter().enumerate() {
            // What is empty is below what is neither array nor object alone.
            let is_list =
                |value: &Json<'_>| value.elements().is_some() || value.members().is_some();
            if left.text == "[]" && is_list(right) || right.text == "[]" && is_list(left) {
                continue;
            }
            let order = left_place.cmp(&right_place);
            assert_eq!(
                compare(left, right),
                order,
                "{} and {}",
                left.text,
                right.text
            );
        }
    }
    let (one, other) = (read("[1.0]").unwrap(), read("[1.00]").unwrap());
    assert!(compare(&one, &other).is_eq());
}

#[test]
fn containment_is_that_of_postgresql() {
    for (left, right, wanted) in [
        (r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#, true),
        (r#"{"a": {"b": 1}}"#, r#"{"b": 1}"#, false),
        ("[1, 2, 3]", "[3, 1, 1]", true),
        ("[1, 2, [3]]", "[3]", false),
        ("[1, 2, [3, 4]]", "[[3]]", true),
        ("[1, \"x\"]", "\"x\"", true),
        ("\"x\"", "[\"x\"]", false),
        (r#"[{"a": 1}]"#, r#"{"a": 1}"#, false),
        ("[]", "{}", false),
        ("1.0", "1", true),
    ] {
        let (left, right) = (read(left).unwrap(), read(right).unwrap());
        assert_eq!(
            contains(&left, &right),
            wanted,
            "{} @> {}",
            left.text,
            right.text
        );
    }
}

/// Texts that are JSON, or nearly, are read as `serde_json` reads them.
#[test]
fn the_same_texts_are_json_as_for_another_reader() {
    let mut random = Random::from_seed(7);
    let mut accepted = 0;
    for case in 0..20_000 {
        let mut text = String::new();
        random_value(&mut random, 3, &mut text);
        if random.below(2) == 0 {
            // One byte goes, or another one comes.
            let at = random.below(text.len() + 1);
            let strange = "{}[]:,\"\\u0eE+-.1tn x\u{1}".as_bytes();
            let strange = char::from(strange[random.below(strange.len())]);
            match at < text.len() && random.below(2) == 0 {
                true if text.is_char_boundary(at) && text.is_char_boundary(at + 1) => {
                    text.remove(at);
                }
                _ if text.is_char_boundary(at) => text.insert(at, strange),
                _ => {}
            }
        }
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        let ours = canonical(&text);
        accepted += u32::from(ours.is_ok());
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let again: serde_json::Value = serde_json::from_str(&ours).unwrap();
                assert_eq!(
                    with_rounded(again),
                    with_rounded(theirs),
                    "case {case}: {text}"
                );
                assert_eq!(canonical(&ours).unwrap(), ours, "case {case}: {text}");
            }
            // Numbers of theirs are no larger than a DOUBLE PRECISION; the character 0 is one of
            // theirs alone.
            (Ok(_), Err(error)) => {
                assert!(
                    error.to_string().contains("out of range"),
                    "case {case}: {text}: {error}"
                );
            }
            (Err(error), Ok(_)) => {
                let state = error.state();
                assert!(
                    ["22P05", "22003"].contains(&state.as_str()),
                    "case {case}: {text}: {error}"
                );
            }
            (Err(_), Err(_)) => {}
        }
    }
    assert!(accepted > 10_000, "{accepted} texts were JSON");
}

/// The same with all numbers to eleven digits: theirs tell integers apart, and are not exact.
fn with_rounded(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => {
            format!("{:.10e}", number.as_f64().unwrap_or_default() + 0.0).into()
        }
        serde_json::Value::Array(values) => values.into_iter().map(with_rounded).collect(),
        serde_json::Value::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(key, value)| (key, with_rounded(value)))
                .collect()
        }
        other => other,
    }
}

fn random_value(random: &mut Random, depth: u32, out: &mut String) {
    let blank = |random: &mut Random, out: &mut String| {
        if random.below(8) == 0 {
            out.push([' ', '\n', '\t'][random.below(3)]);
        }
    };
    blank(random, out);
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => out.push_str("null"),
        1 => out.push_str("true"),
        2 => out.push_str(&random.below(1_000).to_string()),
        3 => {
            let (whole, fraction) = (random.below(1_000), random.below(1_000));
            let exponent = random.below(40) as i64 - 20;
            out.push_str(&format!("-{whole}.{fraction}e{exponent}"));
        }
        4 => random_string(random, out),
        5 | 6 => {
            out.push('[');
            for position in 0..random.below(4) {
                if position > 0 {
                    out.push(',');
                }
                random_value(random, depth - 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for position in 0..random.below(4) {
                if position > 0 {
                    out.push(',');
                }
                random_string(random, out);
                blank(random, out);
                out.push(':');
                random_value(random, depth - 1, out);
            }
            out.push('}');
        }
    }
    blank(random, out);
}

fn random_string(random: &mut Random, out: &mut String) {
    out.push('"');
    for _ in 0..random.below(4) {
        let parts = [
            "a",
            "b",
            "é",
            "\\n",
            "\\\"",
            "\\u0041",
            "\\ud83d\\ude00",
            "\\u001f",
            "/",
            "😀",
        ];
        out.push_str(parts[random.below(parts.len())]);
    }
    out.push('"');
}
