//! Input that nests or repeats far too often gives an error, quickly, and never a stack overflow.

use super::{is_inside, parse};
use crate::parse::{script, statement};
use kiln_platform::time::now_ns;

/// Parses and drops; whatever the result, an error has its place in the text.
fn survive(text: &str) -> bool {
    for source in script(text) {
        if let Err(error) = statement(&source) {
            let position = error
                .position()
                .unwrap_or_else(|| panic!("{error} has no place"));
            assert!(is_inside(text, position), "{error} is not inside the text");
            return false;
        }
    }
    true
}

#[test]
fn ten_thousand_levels_are_an_error() {
    let n = 10_000;
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("(", "", ""),
        ("-", "1", ""),
        ("- ", "1", ""),
        ("not ", "true", ""),
        ("f(", "1", ")"),
        ("array[", "1", "]"),
        ("case when ", "1", " then 1 end"),
        ("(select ", "1", ")"),
        ("1 + (", "1", ")"),
        ("exists (select ", "1", ")"),
        ("cast(", "1", " as int)"),
        ("1 between ", "1", " and 1"),
        ("1 in (", "1", ")"),
        ("interval ", "'1'", ""),
        ("1 + ", "1", ""),
        ("a[", "1", "]"),
        ("a.", "b", ""),
        ("1 = any (", "1", ")"),
    ] {
        let text = format!("select {}{middle}{}", open.repeat(n), close.repeat(n));
        // Two signs begin a comment, and SELECT needs no columns.
        let is_deep = !matches!(open, "a." | "-");
        assert!(!survive(&text) || !is_deep, "{open} was accepted");
    }
    for (open, middle, close) in [
        ("(", "select 1", ")"),
        ("select * from (", "t", ") a"),
        ("select * from ((", "t", "))"),
        ("with a as (", "select 1", ") select 1"),
        ("select 1 union ", "select 1", ""),
        ("explain ", "select 1", ""),
        ("select 1 from a join ", "b", " on true"),
        ("select 1 /*", "", "*/"),
    ] {
        survive(&format!("{}{middle}{}", open.repeat(n), close.repeat(n)));
    }
    for (prefix, repeated) in [
        ("select 1", "::int"),
        ("select a", "[1]"),
        ("select a", " is null"),
        ("select a", " collate \"C\""),
        ("select a", " at time zone 'UTC'"),
        ("select * from a", " join b"),
        ("select * from a", " join (b join c"),
        ("select * from a", " left join b using join"),
        ("select * from a", " natural join b"),
        ("create table t (a int", "[]"),
        ("create function f(a int", "[]"),
        ("create table t (a int", " default 1"),
    ] {
        survive(&format!("{prefix}{}", repeated.repeat(n)));
    }
}

#[test]
fn ten_thousand_nested_statements_are_an_error() {
    let n = 10_000;
    for (open, close) in [
        ("begin ", "end; "),
        ("if a then ", "end if; "),
        ("loop ", "end loop; "),
        ("case when a then ", "end case; "),
        ("for i in 1..2 loop ", "end loop; "),
        ("declare a int; begin ", "end; "),
        ("<<l>> ", ""),
    ] {
        let text = format!(
            "do $$ begin {} null; {} end $$",
            open.repeat(n),
            close.repeat(n)
        );
        assert!(!survive(&text), "{open}");
    }
}

#[test]
fn ordinary_depth_is_accepted() {
    let nested = |n: usize| format!("select {}1{}", "(".repeat(n), ")".repeat(n));
    assert!(parse(&nested(40)).is_ok());
    let chain = |n: usize| format!("select 1 where a = 0{}", " or a = 1".repeat(n));
    assert!(parse(&chain(500)).is_ok());
    let list = format!("select 1 where a in (0{})", ", 1".repeat(100_000));
    assert!(parse(&list).is_ok());
    let rows = format!(
        "insert into t values (0, 'a'){}",
        ", (1, 'b')".repeat(20_000)
    );
    assert!(parse(&rows).is_ok());
    let ifs = |n: usize| {
        format!(
            "do $$ begin {}{} end $$",
            "if a then ".repeat(n),
            "end if; ".repeat(n)
        )
    };
    assert!(parse(&ifs(50)).is_ok());
}

/// The SQL parser tries some things twice. Nested, twice is a power of two unless it is bounded.
#[test]
fn nesting_takes_no_exponential_time() {
    let begun_ns = now_ns();
    for depth in [20, 30, 60, 200] {
        for (open, close) in [
            ("select * from (", ")"),
            ("select * from ((", "))"),
            ("select * from (a join (", "b) on true)"),
            ("select (", ")"),
            ("select f(", ")"),
            ("select (a, (", "))"),
            ("select a in (", ")"),
            ("select case when (", ") then 1 end"),
            ("select interval (", ")"),
            ("select date (", ")"),
            ("select not (", ")"),
            ("select array[(", ")]"),
            ("select (a).b.c((", "))"),
            ("insert into t (", ")"),
            ("create table t (a int default (", "))"),
            ("create table t (", ")"),
        ] {
            let head = open.find(['(', '[']).unwrap_or(0);
            let repeated = &open[head..];
            survive(&format!(
                "{open}{}1{}",
                repeated.repeat(depth),
                close.repeat(depth + 1)
            ));
            survive(&format!("{open}{}", repeated.repeat(depth)));
            survive(&format!("{open}{}1", "(".repeat(depth)));
            survive(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    let took_ms = (now_ns() - begun_ns) / 1_000_000;
    assert!(took_ms < 20_000, "took {took_ms} ms");
}
