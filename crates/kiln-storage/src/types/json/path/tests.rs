use super::canonical_path;
use crate::error::SqlState;

/// Paths, and what PostgreSQL 15 prints.
const PRINTED: [(&str, &str); 34] = [
    ("$", "$"),
    ("strict $", "strict $"),
    ("lax $.a.b[*]", "$.\"a\".\"b\"[*]"),
    ("$.*.type", "$.*.\"type\""),
    (
        "$.a[0, 1 to last].b.size()",
        "$.\"a\"[0,1 to last].\"b\".size()",
    ),
    ("$.**{2}.b", "$.**{2}.\"b\""),
    ("$.**{2 to last}", "$.**{2 to last}"),
    ("$.**{last}", "$.**{last}"),
    (
        "$.a ? (@ > 1 && @.b == \"x\")",
        "$.\"a\"?(@ > 1 && @.\"b\" == \"x\")",
    ),
    ("1 + 2 * 3", "(1 + 2 * 3)"),
    ("(1 + 2) * 3", "((1 + 2) * 3)"),
    ("1 - (2 - 3)", "(1 - (2 - 3))"),
    ("1 - 2 - 3", "((1 - 2) - 3)"),
    ("-$.a + 1", "(-$.\"a\" + 1)"),
    ("-(1)", "-1"),
    ("+1", "1"),
    (".5", "0.5"),
    ("1.", "1"),
    ("1.50", "1.50"),
    ("12e2", "1200"),
    ("$ ? (!(@ == 1))", "$?(!(@ == 1))"),
    (
        "$ ? (exists(@.a ? (@ > 1)))",
        "$?(exists (@.\"a\"?(@ > 1)))",
    ),
    ("$ ? ((@ == 1) is unknown)", "$?((@ == 1) is unknown)"),
    ("$ ? (@ starts with \"a\")", "$?(@ starts with \"a\")"),
    ("$ ? (@ starts with $x)", "$?(@ starts with $\"x\")"),
    (
        "$ ? (@ like_regex \"^a\" flag \"mi\")",
        "$?(@ like_regex \"^a\" flag \"im\")",
    ),
    ("$.\"a b\".\"\\u0063\"", "$.\"a b\".\"c\""),
    ("$.a\\x62c", "$.\"abc\""),
    ("($.a).b", "$.\"a\".\"b\""),
    ("(1 + 2).type()", "(1 + 2).type()"),
    ("(1).type()", "(1).type()"),
    (
        "$.a == 1 || $.b == 2 && $.c == 3",
        "($.\"a\" == 1 || $.\"b\" == 2 && $.\"c\" == 3)",
    ),
    ("$ /* a comment */ . a", "$.\"a\""),
    ("null", "null"),
];

#[test]
fn paths_are_printed_as_in_postgresql() {
    for (text, printed) in PRINTED {
        assert_eq!(canonical_path(text).as_deref(), Ok(printed), "{text}");
        assert_eq!(canonical_path(printed).as_deref(), Ok(printed), "{printed}");
    }
}

#[test]
fn what_is_no_path_is_an_error() {
    let all = [
        ("", SqlState::INVALID_TEXT_REPRESENTATION),
        ("$ ? (1)", SqlState::SYNTAX_ERROR),
        ("@ + 1", SqlState::SYNTAX_ERROR),
        ("last", SqlState::SYNTAX_ERROR),
        ("$[", SqlState::SYNTAX_ERROR),
        ("$.a b", SqlState::SYNTAX_ERROR),
        ("1a", SqlState::SYNTAX_ERROR),
        ("00", SqlState::SYNTAX_ERROR),
        ("1e", SqlState::SYNTAX_ERROR),
        ("\"a", SqlState::SYNTAX_ERROR),
        ("$ ? (@ == 1 == 2)", SqlState::SYNTAX_ERROR),
        (
            "$ ? (@ like_regex \"a\" flag \"z\")",
            SqlState::SYNTAX_ERROR,
        ),
        (
            "$ ? (@ like_regex \"a\" flag \"x\")",
            SqlState::FEATURE_NOT_SUPPORTED,
        ),
        ("$.keyvalue()", SqlState::FEATURE_NOT_SUPPORTED),
        ("/* no end", SqlState::SYNTAX_ERROR),
        ("\"\\u0000\"", SqlState::UNTRANSLATABLE_CHARACTER),
        ("\"\\ud800\"", SqlState::INVALID_TEXT_REPRESENTATION),
    ];
    for (text, state) in all {
        let refused = canonical_path(text).expect_err(text);
        assert_eq!(refused.state(), state, "{text}: {refused}");
    }
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let refused = canonical_path(&deep).expect_err("it is nested too deep");
    assert_eq!(refused.state(), SqlState::STATEMENT_TOO_COMPLEX);
    for many in [
        format!("1{}", "+1".repeat(100_000)),
        format!("${}", ".type()".repeat(100_000)),
        format!("$ ? (@ == 1{})", " && @ == 1".repeat(100_000)),
    ] {
        let refused = canonical_path(&many).expect_err("it has too many steps");
        assert_eq!(refused.state(), SqlState::STATEMENT_TOO_COMPLEX);
    }
    // It can be read, and its canonical text could not.
    let chain = format!("1{}", "+1".repeat(300));
    assert!(super::read_path(&chain).is_ok() && canonical_path(&chain).is_err());
    let signs = format!("{}$", "-".repeat(5_000));
    assert!(canonical_path(&signs).is_err());
}
