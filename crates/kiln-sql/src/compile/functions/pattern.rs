//! PostgreSQL's regular expressions (AREs) and the patterns of SIMILAR TO, in the syntax of
//! `regex-automata`.
//!
//! What is left out is refused by name: back references and constraints that look ahead or behind.
//! Letters outside of ASCII have no case, as under the C collation.

use kiln_storage::error::{Error, Result, SqlState};

/// A pattern in the other syntax.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub text: String,
    /// Whether the shortest match is wanted: the first quantifier is not greedy.
    pub is_shortest: bool,
    /// Whether quantifiers of both kinds are in it.
    pub is_mixed: bool,
}

/// The longest pattern that is looked at, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 16;

/// How deep parentheses may nest.
const NESTING_MAX: usize = 100;

/// The most repetitions that a bound may ask for, as in PostgreSQL.
const REPETITIONS_MAX: u32 = 255;

#[cold]
pub(super) fn invalid(what: &str) -> Error {
    Error::new(
        SqlState::INVALID_REGULAR_EXPRESSION,
        format!("invalid regular expression: {what}"),
    )
}

#[cold]
fn refused(what: &str) -> Error {
    Error::unsupported(format!("{what} in a regular expression is not supported"))
}

/// What the letters before a pattern, and the operator, say of it.
#[derive(Clone, Copy, Default)]
struct Options {
    ignores_case: bool,
    /// White space and comments do not count.
    is_expanded: bool,
    /// `.` and `[^…]` do not match a newline.
    stops_at_newline: bool,
    /// `^` and `$` match at newlines.
    anchors_at_newline: bool,
}

impl Options {
    fn set(&mut self, letter: char) -> Result<()> {
        match letter {
            'c' => self.ignores_case = false,
            'i' => self.ignores_case = true,
            'm' | 'n' => (self.stops_at_newline, self.anchors_at_newline) = (true, true),
            'p' => (self.stops_at_newline, self.anchors_at_newline) = (true, false),
            's' => (self.stops_at_newline, self.anchors_at_newline) = (false, false),
            't' => self.is_expanded = false,
            'w' => (self.stops_at_newline, self.anchors_at_newline) = (false, true),
            'x' => self.is_expanded = true,
            'e' => {}
            'b' => return Err(refused("the form of basic regular expressions")),
            _ => return Err(invalid("invalid embedded option")),
        }
        Ok(())
    }
}

/// Reads `pattern`, with the letters of `flags` as options.
///
/// # Errors
/// 2201B for what is no regular expression, 0A000 for what cannot be translated.
pub(super) fn translate(pattern: &str, flags: &str) -> Result<Translated> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(invalid("regular expression is too complex"));
    }
    let mut options = Options::default();
    let mut is_literal = false;
    for letter in flags.chars() {
        match letter {
            'q' => is_literal = true,
            letter => options.set(letter)?,
        }
    }
    let mut rest = pattern;
    if let Some(literal) = rest.strip_prefix("***=") {
        (rest, is_literal) = (literal, true);
    } else if let Some(advanced) = rest.strip_prefix("***:") {
        rest = advanced;
    } else if rest.starts_with("***") {
        return Err(invalid("quantifier operand invalid"));
    }
    if !is_literal
        && let Some(embedded) = rest.strip_prefix("(?")
        && embedded.starts_with(|first: char| first.is_ascii_alphabetic())
    {
        let (letters, after) = embedded
            .split_once(')')
            .ok_or_else(|| invalid("invalid embedded option"))?;
        for letter in letters.chars() {
            match letter {
                'q' => is_literal = true,
                letter => options.set(letter)?,
            }
        }
        rest = after;
    }
    let mut reader = Reader {
        rest: rest.chars().collect(),
        at: 0,
        options,
        text: String::with_capacity(rest.len() + 16),
        greedy: 0,
        reluctant: 0,
        is_shortest: None,
    };
    if is_literal {
        while let Some(letter) = reader.next() {
            reader.literal(letter);
        }
    } else {
        reader.branches()?;
    }
    Ok(Translated {
        is_shortest: reader.is_shortest == Some(true),
        is_mixed: reader.greedy > 0 && reader.reluctant > 0,
        text: reader.text,
    })
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    options: Options,
    text: String,
    greedy: usize,
    reluctant: usize,
    is_shortest: Option<bool>,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn peek_after(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn skip(&mut self, wanted: &str) -> bool {
        let found = wanted
            .chars()
            .enumerate()
            .all(|(ahead, letter)| self.peek_after(ahead) == Some(letter));
        if found {
            self.at += wanted.chars().count();
        }
        found
    }

    /// Skips what does not count: comments, and white space in the expanded form.
    fn skip_blanks(&mut self) {
        loop {
            if self.skip("(?#") {
                while self.next().is_some_and(|letter| letter != ')') {}
            } else if self.options.is_expanded && self.peek().is_some_and(char::is_whitespace) {
                self.at += 1;
            } else if self.options.is_expanded && self.peek() == Some('#') {
                while self.next().is_some_and(|letter| letter != '\n') {}
            } else {
                return;
            }
        }
    }

    /// The whole pattern.
    fn branches(&mut self) -> Result<()> {
        let mut open = 0_usize;
        let mut may_repeat = false;
        loop {
            self.skip_blanks();
            let Some(letter) = self.next() else { break };
            may_repeat = match letter {
                '|' => {
                    self.text.push('|');
                    false
                }
                '(' => {
                    self.open_group()?;
                    open += 1;
                    if open > NESTING_MAX {
                        return Err(invalid("regular expression is too complex"));
                    }
                    false
                }
                ')' if open > 0 => {
                    open -= 1;
                    self.text.push(')');
                    true
                }
                ')' => return Err(invalid("parentheses () not balanced")),
                '*' | '+' | '?' => {
                    self.check_operand(may_repeat)?;
                    self.text.push(letter);
                    self.end_quantifier();
                    false
                }
                '{' if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                    self.check_operand(may_repeat)?;
                    self.bound()?;
                    self.end_quantifier();
                    false
                }
                '^' | '$' => {
                    self.anchor(letter);
                    false
                }
                _ => self.atom(letter)?,
            };
        }
        match open {
            0 => Ok(()),
            _ => Err(invalid("parentheses () not balanced")),
        }
    }

    fn check_operand(&self, may_repeat: bool) -> Result<()> {
        match may_repeat {
            true => Ok(()),
            false => Err(invalid("quantifier operand invalid")),
        }
    }

    fn open_group(&mut self) -> Result<()> {
        if self.skip("?:") {
            self.text.push_str("(?:");
        } else if self.skip("?=") || self.skip("?!") {
            return Err(refused("a lookahead constraint"));
        } else if self.skip("?<=") || self.skip("?<!") {
            return Err(refused("a lookbehind constraint"));
        } else if self.peek() == Some('?') {
            return Err(invalid("quantifier operand invalid"));
        } else {
            self.text.push('(');
        }
        Ok(())
    }

    /// `{m}`, `{m,}` or `{m,n}`, whose brace is read.
    fn bound(&mut self) -> Result<()> {
        let least = self.number()?;
        let mut most = Some(least);
        if self.skip(",") {
            most = match self.peek() {
                Some(next) if next.is_ascii_digit() => Some(self.number()?),
                _ => None,
            };
        }
        if !self.skip("}") || most.is_some_and(|most| most < least) {
            return Err(invalid("invalid repetition count(s)"));
        }
        self.text.push_str(&match most {
            None => format!("{{{least},}}"),
            Some(most) => format!("{{{least},{most}}}"),
        });
        Ok(())
    }

    fn number(&mut self) -> Result<u32> {
        let mut number = 0;
        while let Some(digit) = self.peek().and_then(|letter| letter.to_digit(10)) {
            self.at += 1;
            number = number * 10 + digit;
            if number > REPETITIONS_MAX {
                return Err(invalid("invalid repetition count(s)"));
            }
        }
        Ok(number)
    }

    /// After a quantifier: `?` makes it prefer the shortest match.
    fn end_quantifier(&mut self) {
        let is_reluctant = self.skip("?");
        if is_reluctant {
            self.text.push('?');
            self.reluctant += 1;
        } else {
            self.greedy += 1;
        }
        self.is_shortest.get_or_insert(is_reluctant);
    }

    fn anchor(&mut self, letter: char) {
        self.text
            .push_str(match (letter, self.options.anchors_at_newline) {
                ('^', false) => "\\A",
                ('^', true) => "(?m:^)",
                (_, false) => "\\z",
                (_, true) => "(?m:$)",
            });
    }

    /// One character, class or constraint; says whether it can be repeated.
    fn atom(&mut self, letter: char) -> Result<bool> {
        match letter {
            '.' => self.text.push_str(match self.options.stops_at_newline {
                true => "[^\\n]",
                false => "(?s:.)",
            }),
            '[' => return self.bracket(),
            '\\' => return self.escape(),
            letter => self.literal(letter),
        }
        Ok(true)
    }

    fn literal(&mut self, letter: char) {
        if self.options.ignores_case && letter.is_ascii_alphabetic() {
            let (lower, upper) = (letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
            self.text.push_str(&format!("[{lower}{upper}]"));
        } else {
            push_letter(&mut self.text, letter);
        }
    }

    fn escape(&mut self) -> Result<bool> {
        let Some(letter) = self.next() else {
            return Err(invalid("invalid escape \\ sequence"));
        };
        let class = class_of(letter);
        if let Some((items, is_negated)) = class {
            let negation = if is_negated { "^" } else { "" };
            self.text.push_str(&format!("[{negation}{items}]"));
            return Ok(true);
        }
        let constraint = match letter {
            'A' => "\\A",
            'Z' => "\\z",
            'm' => "(?-u:\\b{start})",
            'M' => "(?-u:\\b{end})",
            'y' => "(?-u:\\b)",
            'Y' => "(?-u:\\B)",
            '1'..='9' => return Err(refused("a back reference")),
            letter => {
                let letter = self.escaped_letter(letter)?;
                self.literal(letter);
                return Ok(true);
            }
        };
        self.text.push_str(constraint);
        Ok(false)
    }

    /// The character that an escape stands for.
    fn escaped_letter(&mut self, letter: char) -> Result<char> {
        Ok(match letter {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0' => '\0',
            'c' => {
                let next = self.next();
                let next = next.ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                char::from((u32::from(next) & 0x1f) as u8)
            }
            'u' => self.hexadecimal(4, 4)?,
            'U' => self.hexadecimal(8, 8)?,
            'x' => self.hexadecimal(1, 8)?,
            letter if letter.is_ascii_alphanumeric() => {
                return Err(invalid("invalid escape \\ sequence"));
            }
            letter => letter,
        })
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Result<char> {
        let (mut number, mut digits) = (0_u32, 0);
        while let Some(digit) = self.peek().and_then(|letter| letter.to_digit(16)) {
            if digits == most {
                break;
            }
            self.at += 1;
            digits += 1;
            number = number << 4 | digit;
        }
        let letter = char::from_u32(number).filter(|_| digits >= least);
        letter.ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// `[…]`, whose bracket is read.
    fn bracket(&mut self) -> Result<bool> {
        for (word, constraint) in [("[:<:]]", "(?-u:\\b{start})"), ("[:>:]]", "(?-u:\\b{end})")] {
            if self.skip(word) {
                self.text.push_str(constraint);
                return Ok(false);
            }
        }
        let is_negated = self.skip("^");
        let mut items = String::new();
        let mut is_first = true;
        loop {
            let Some(letter) = self.next() else {
                return Err(invalid("brackets [] not balanced"));
            };
            match letter {
                ']' if !is_first => break,
                '[' if self.peek() == Some(':') => self.named_class(&mut items)?,
                '\\' if self.peek().and_then(class_of).is_some() => {
                    let class = self.next().and_then(class_of);
                    match class {
                        Some((class, false)) => items.push_str(class),
                        _ => return Err(invalid("invalid escape \\ sequence")),
                    }
                }
                _ => self.range(letter, &mut items)?,
            }
            is_first = false;
        }
        if is_negated && self.options.stops_at_newline {
            items.push_str("\\n");
        }
        let negation = if is_negated { "^" } else { "" };
        self.text.push_str(&format!("[{negation}{items}]"));
        Ok(true)
    }

    /// `[:name:]` within brackets, of which the first is read.
    fn named_class(&mut self, items: &mut String) -> Result<()> {
        let rest: String = self.rest[self.at + 1..].iter().collect();
        let name = rest.split_once(":]").map(|(name, _)| name);
        let name = name.ok_or_else(|| invalid("brackets [] not balanced"))?;
        let class = match name {
            "alnum" => "0-9A-Za-z",
            "alpha" => "A-Za-z",
            "ascii" => "\\x00-\\x7F",
            "blank" => "\\t ",
            "cntrl" => "\\x00-\\x1F\\x7F",
            "digit" => "0-9",
            "graph" => "!-~",
            "lower" | "upper" if self.options.ignores_case => "A-Za-z",
            "lower" => "a-z",
            "print" => " -~",
            "punct" => "!-/:-@\\[-`{-~",
            "space" => "\\t\\n\\x0B\\x0C\\r ",
            "upper" => "A-Z",
            "word" => "0-9A-Za-z_",
            "xdigit" => "0-9A-Fa-f",
            _ => return Err(invalid("invalid character class")),
        };
        items.push_str(class);
        self.at += 1 + name.chars().count() + 2;
        Ok(())
    }

    /// A character within brackets, or a range that begins with it.
    fn range(&mut self, letter: char, items: &mut String) -> Result<()> {
        let first = self.end_of_range(letter)?;
        let is_range = self.peek() == Some('-') && self.peek_after(1) != Some(']');
        let mut last = first;
        if is_range {
            self.at += 1;
            let letter = self.next();
            let letter = letter.ok_or_else(|| invalid("brackets [] not balanced"))?;
            last = self.end_of_range(letter)?;
        }
        if last < first {
            return Err(invalid("invalid character range"));
        }
        let mut push = |first: char, last: char| {
            push_letter(items, first);
            items.push('-');
            push_letter(items, last);
        };
        push(first, last);
        if self.options.ignores_case {
            for (least, most, turn) in [('a', 'z', -32), ('A', 'Z', 32)] {
                let (from, to) = (first.max(least), last.min(most));
                if from <= to {
                    let turned = |letter: char| ((letter as i32 + turn) as u8) as char;
                    push(turned(from), turned(to));
                }
            }
        }
        Ok(())
    }

    /// One end of a range: a character, an escape, `[.x.]` or `[=x=]`.
    fn end_of_range(&mut self, letter: char) -> Result<char> {
        match (letter, self.peek()) {
            ('\\', Some(next)) => {
                self.at += 1;
                self.escaped_letter(next)
            }
            ('[', Some(mark @ ('.' | '='))) => {
                self.at += 1;
                let element = self.next();
                let is_closed = self.next() == Some(mark) && self.next() == Some(']');
                let element = element.filter(|_| is_closed);
                element.ok_or_else(|| invalid("invalid collating element"))
            }
            _ => Ok(letter),
        }
    }
}

/// What a class of characters that is written as an escape has in it, and whether that is what it
/// has not.
fn class_of(letter: char) -> Option<(&'static str, bool)> {
    Some(match letter {
        'd' | 'D' => ("0-9", letter == 'D'),
        's' | 'S' => ("\\t\\n\\x0B\\x0C\\r ", letter == 'S'),
        'w' | 'W' => ("0-9A-Za-z_", letter == 'W'),
        _ => return None,
    })
}

/// A character that stands for itself.
fn push_letter(text: &mut String, letter: char) {
    if letter.is_alphanumeric() {
        text.push(letter);
    } else {
        text.push_str(&format!("\\x{{{:X}}}", u32::from(letter)));
    }
}

/// The regular expression that a pattern of SIMILAR TO stands for; `escape` is empty when nothing
/// is escaped.
///
/// # Errors
/// 22025 for an escape of more than one character, 2200C for more than two separators.
pub(super) fn similar(pattern: &str, escape: &str) -> Result<String> {
    let parts = similar_parts(pattern, escape)?.into_iter();
    let parts: String = parts.map(|part| format!("(?:{part})")).collect();
    Ok(format!("^{parts}$"))
}

/// The same for each part of the pattern between its separators: the escape character and a double
/// quote.
///
/// # Errors
/// Those of [`similar`].
pub(super) fn similar_parts(pattern: &str, escape: &str) -> Result<Vec<String>> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err(
            Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                .with_hint("Escape string must be empty or one character."),
        );
    }
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut in_brackets = 0_usize;
    let mut is_escaped = false;
    for letter in pattern.chars() {
        if is_escaped {
            is_escaped = false;
            if letter == '"' && in_brackets == 0 {
                parts.push(std::mem::take(&mut text));
                if parts.len() > 2 {
                    return Err(too_many_separators());
                }
                continue;
            }
            text.push('\\');
            text.push(letter);
        } else if Some(letter) == escape {
            is_escaped = true;
        } else if in_brackets > 0 {
            match letter {
                '\\' => text.push('\\'),
                '[' => in_brackets += 1,
                ']' => in_brackets -= 1,
                _ => {}
            }
            text.push(letter);
        } else {
            match letter {
                '%' => text.push_str(".*"),
                '_' => text.push('.'),
                '(' => text.push_str("(?:"),
                '[' => {
                    in_brackets = 1;
                    text.push('[');
                }
                '\\' | '.' | '^' | '$' => {
                    text.push('\\');
                    text.push(letter);
                }
                letter => text.push(letter),
            }
        }
    }
    parts.push(text);
    Ok(parts)
}

#[cold]
fn too_many_separators() -> Error {
    let state = SqlState::parse("2200C").unwrap_or(SqlState::INVALID_ESCAPE_SEQUENCE);
    let message =
        "SQL regular expression may not contain more than two escape-double-quote separators";
    Error::new(state, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: &str) -> String {
        translate(pattern, "").expect("it is a pattern").text
    }

    #[test]
    fn anchors_classes_and_bounds() {
        assert_eq!(text("^(a|b)$"), "\\A(a|b)\\z");
        assert_eq!(text("[[:digit:]]{2,}"), "[0-9]{2,}");
        assert_eq!(text("[^]a-c]"), "[^\\x{5D}-\\x{5D}a-c]");
        assert_eq!(text("a{,2}"), "a\\x{7B}\\x{2C}2\\x{7D}");
        assert_eq!(text("(?i)aB"), "[aA][bB]");
        assert_eq!(text("***=a.b"), "a\\x{2E}b");
    }

    #[test]
    fn faults_are_named() {
        for pattern in [
            "*", "a**", "(", ")", "[a", "a{2,1}", "a{256}", "\\", "[b-a]", "[[:x:]]",
        ] {
            let error = translate(pattern, "").expect_err(pattern);
            assert_eq!(
                error.state(),
                SqlState::INVALID_REGULAR_EXPRESSION,
                "{pattern}"
            );
        }
        for pattern in ["(a)\\1", "a(?=b)", "(?<!a)b"] {
            let error = translate(pattern, "").expect_err(pattern);
            assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED, "{pattern}");
        }
    }

    #[test]
    fn similar_patterns() {
        assert_eq!(
            similar("a%_(b|c)", "\\").expect("it is one"),
            "^(?:a.*.(?:b|c))$"
        );
        assert_eq!(similar("a.\\%", "\\").expect("it is one"), "^(?:a\\.\\%)$");
        assert!(similar("a", "xy").is_err());
        assert_eq!(
            similar("a#\"b%#\"c", "#").expect("it is one"),
            "^(?:a)(?:b.*)(?:c)$"
        );
        assert!(similar("#\"#\"#\"", "#").is_err());
    }
}
