//! Splits a script into its statements.

use super::position::START;
use super::scanner::{Kind, Scanner};
use kiln_storage::error::Position;

/// One statement of a script, as written, without its semicolon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStatement<'a> {
    /// From its first token to its last. A string or comment that is never closed makes it run to
    /// the end of the script.
    pub text: &'a str,
    /// Line of the script on which it begins, from 1.
    pub line: u32,
    /// Character of that line at which it begins, from 1.
    pub column: u32,
}

impl SourceStatement<'_> {
    /// Where it begins.
    pub fn position(&self) -> Position {
        Position {
            line: self.line,
            column: self.column,
        }
    }
}

impl<'a> From<&'a str> for SourceStatement<'a> {
    /// A statement that is a script of its own.
    fn from(text: &'a str) -> SourceStatement<'a> {
        SourceStatement {
            text,
            line: 1,
            column: 1,
        }
    }
}

/// The statements of `text`. Semicolons inside quotes, dollar quotes and comments separate
/// nothing; statements without a token are left out.
pub fn script(text: &str) -> Vec<SourceStatement<'_>> {
    script_at(text, START)
}

/// The statements of `text`, whose first character stands at `start`.
pub(super) fn script_at(text: &str, start: Position) -> Vec<SourceStatement<'_>> {
    let mut statements = Vec::new();
    let mut scanner = Scanner::new(text, start);
    let mut first: Option<(usize, Position)> = None;
    let mut end = 0;
    let mut finish = |first: &mut Option<(usize, Position)>, end: usize| {
        if let Some((start, Position { line, column })) = first.take() {
            statements.push(SourceStatement {
                text: &text[start..end],
                line,
                column,
            });
        }
    };
    while let Some(element) = scanner.next() {
        if element.kind == Kind::Character && text[element.start..].starts_with(';') {
            finish(&mut first, end);
            continue;
        }
        first.get_or_insert((element.start, element.position));
        end = element.end;
    }
    finish(&mut first, end);
    statements
}

/// The highest number of a parameter, `$1`, `$2`, …, that `text` names; 0 when it names none.
pub fn highest_placeholder(text: &str) -> usize {
    let mut scanner = Scanner::new(text, START);
    let mut highest = 0;
    while let Some(element) = scanner.next() {
        if element.kind == Kind::Placeholder {
            let digits = text[element.start..element.end].trim_start_matches('$');
            highest = highest.max(digits.parse().unwrap_or(usize::MAX));
        }
    }
    highest
}

/// `text` without white space that says nothing, without comments, and with a question mark in
/// place of each literal: for logs, which are not to hold what a statement says of people, or a
/// password. What is never closed counts as a literal.
pub fn without_literals(text: &str) -> String {
    let mut scanner = Scanner::new(text, START);
    let mut without = String::new();
    let mut end = None;
    while let Some(element) = scanner.next() {
        let is_literal = !matches!(
            element.kind,
            Kind::Word
                | Kind::QuotedIdentifier
                | Kind::Placeholder
                | Kind::Range
                | Kind::Operator
                | Kind::Character
                | Kind::ColonPair
        );
        if end.is_some_and(|end| end < element.start) {
            without.push(' ');
        }
        without.push_str(match is_literal {
            true => "?",
            false => &text[element.start..element.end],
        });
        end = Some(element.end);
    }
    without
}

/// Whether a shell may run `text` now: every statement has its semicolon, and no quote or comment
/// is open. Text without a statement is complete.
pub fn is_complete(text: &str) -> bool {
    let mut scanner = Scanner::new(text, START);
    let mut complete = true;
    while let Some(element) = scanner.next() {
        complete = element.kind == Kind::Character && text[element.start..].starts_with(';');
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        script(text)
            .iter()
            .map(|statement| statement.text)
            .collect()
    }

    #[test]
    fn literals_are_left_out() {
        for (text, expected) in [
            (
                "SELECT  a + 1, 'it''s'  -- secret\n FROM t",
                "SELECT a + ?, ? FROM t",
            ),
            (
                "ALTER ROLE kiln PASSWORD 'geheim'",
                "ALTER ROLE kiln PASSWORD ?",
            ),
            (
                "SELECT E'a\\'b', X'0f', $$c$$, $x$ d $x$, U&'e', $1",
                "SELECT ?, ?, ?, ?, ?, $1",
            ),
            ("SELECT \"a b\" /* c */ = 1.5e3", "SELECT \"a b\" = ?"),
            ("SELECT 'never closed", "SELECT ?"),
        ] {
            assert_eq!(without_literals(text), expected);
        }
    }

    #[test]
    fn semicolons_inside_quotes_and_comments_separate_nothing() {
        assert_eq!(
            texts("select 'a;b', E'c\\';d', \"e;f\"; -- g;h\n /* i; /* j; */ k; */ select 2;; ;"),
            ["select 'a;b', E'c\\';d', \"e;f\"", "select 2"]
        );
        assert_eq!(
            texts(
                "do $$ a; b $$; do $x$ a; $$ ; $y$ $x$ ; select a$b$c; select $1;select 'it''s;'"
            ),
            [
                "do $$ a; b $$",
                "do $x$ a; $$ ; $y$ $x$",
                "select a$b$c",
                "select $1",
                "select 'it''s;'"
            ]
        );
        assert_eq!(texts(" -- nothing\n/* at all */ ;;"), Vec::<&str>::new());
    }

    #[test]
    fn statements_know_where_they_begin() {
        let statements = script("select 1;\n\n  /* é */ select\n2; select 3");
        let places: Vec<_> = statements
            .iter()
            .map(|one| (one.line, one.column))
            .collect();
        assert_eq!(places, [(1, 1), (3, 11), (4, 4)]);
        assert_eq!(statements[1].text, "select\n2");
    }

    #[test]
    fn what_is_never_closed_runs_to_the_end() {
        for open in [
            "'a; b",
            "\"a; b",
            "$$ a; b",
            "$x$ a; $$ b",
            "/* a; /* */ b",
            "E'\\'; b",
        ] {
            let text = format!("select 1; select {open}");
            assert_eq!(
                texts(&text),
                ["select 1".to_string(), format!("select {open}")]
            );
            assert!(!is_complete(&text), "{text}");
        }
    }

    #[test]
    fn completeness_for_a_shell() {
        for complete in [
            "",
            "  ",
            "-- no\n",
            "select 1;",
            "select 1; -- done",
            "do $$ ; $$;",
            ";",
        ] {
            assert!(is_complete(complete), "{complete}");
        }
        for incomplete in [
            "select 1",
            "select ';",
            "select 1; select",
            "do $$ ; ",
            "/* ;",
            "a;b",
        ] {
            assert!(!is_complete(incomplete), "{incomplete}");
        }
    }
}
