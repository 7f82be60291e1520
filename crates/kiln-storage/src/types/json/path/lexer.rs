//! The words of a path.

use crate::error::{Error, Result, SqlState};

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name without quotes: a key, or a word of the language.
    Name(String),
    /// A text in quotes.
    Text(String),
    /// `$name`.
    Variable(String),
    /// A number, as it was written.
    Number(String),
    /// Punctuation.
    Symbol(&'static str),
}

/// A word, and where it begins and ends in the text.
pub(super) struct Place {
    pub word: Word,
    pub start: usize,
    pub end: usize,
}

/// Longer ones first.
const SYMBOLS: [&str; 30] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "$", "@", "?", "%", ".", "[", "]", "{", "}",
    "(", ")", "|", "&", "!", "=", "<", ">", ",", "*", "-", "+", "/",
];

/// Whether a character ends a name.
fn is_special(character: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(character) || is_blank(character)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

#[cold]
pub(super) fn syntax(message: &str, near: &str) -> Error {
    let message = match near.is_empty() {
        true => format!("{message} at end of jsonpath input"),
        false => format!("{message} at or near \"{near}\" of jsonpath input"),
    };
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// The words of a text.
pub(super) fn words(text: &str) -> Result<Vec<Place>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut words = Vec::new();
    while let Some(word) = lexer.next(&mut words)? {
        words.push(word);
    }
    Ok(words)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_blank);
            self.at += rest.len() - trimmed.len();
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            match self.rest().find("*/") {
                Some(end) => self.at += end + 2,
                None => return Err(syntax("unexpected end of comment", "")),
            }
        }
    }

    fn next(&mut self, before: &mut [Place]) -> Result<Option<Place>> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        let second = self.rest().chars().nth(1);
        let is_number =
            first.is_ascii_digit() || first == '.' && second.is_some_and(|it| it.is_ascii_digit());
        let word = if first == '"' {
            Word::Text(self.quoted()?)
        } else if is_number && !self.is_behind_accessed(before, first) {
            self.number()?
        } else if first == '$' && second.is_some_and(|it| it == '"' || !is_special(it)) {
            self.at += 1;
            Word::Variable(match second {
                Some('"') => self.quoted()?,
                _ => self.name()?,
            })
        } else if let Some(symbol) = SYMBOLS.iter().find(|it| self.rest().starts_with(**it)) {
            self.at += symbol.len();
            Word::Symbol(symbol)
        } else if first == '\\' || !is_special(first) {
            Word::Name(self.name()?)
        } else {
            return Err(syntax("syntax error", &first.to_string()));
        };
        let end = self.at;
        Ok(Some(Place { word, start, end }))
    }

    /// A point and digits behind it are no number where a value ends.
    fn is_behind_accessed(&self, before: &[Place], first: char) -> bool {
        let accessed = |word: &Word| {
            matches!(
                word,
                Word::Symbol("$" | "@" | "]" | ")" | "*") | Word::Variable(_)
            )
        };
        first == '.' && before.last().is_some_and(|it| accessed(&it.word))
    }

    /// A name, with its escapes.
    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        while let Some(character) = self.peek() {
            match character {
                '\\' => self.escape(&mut name)?,
                character if is_special(character) => break,
                character => {
                    name.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
        Ok(name)
    }

    /// A text in quotes.
    fn quoted(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(syntax("unterminated quoted string", "")),
                Some('"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') => self.escape(&mut text)?,
                Some(character) => {
                    text.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
    }

    /// The character behind a backslash.
    fn escape(&mut self, into: &mut String) -> Result<()> {
        self.at += 1;
        let Some(letter) = self.peek() else {
            return Err(syntax("unexpected end after backslash", ""));
        };
        self.at += letter.len_utf8();
        into.push(match letter {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => self.hexadecimal(2, "invalid hexadecimal character sequence")?,
            'u' => self.unicode()?,
            other => other,
        });
        Ok(())
    }

    fn hexadecimal(&mut self, digits: usize, message: &str) -> Result<char> {
        let number = self.digits(digits).ok_or_else(|| syntax(message, ""))?;
        match char::from_u32(number) {
            Some('\0') | None => Err(Error::new(
                SqlState::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            )),
            Some(character) => Ok(character),
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        let are_digits = digits.bytes().all(|it| it.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| are_digits)?;
        self.at += count;
        Some(number)
    }

    /// What follows `\u`: four digits, perhaps of a surrogate pair, or up to six in braces.
    fn unicode(&mut self) -> Result<char> {
        const INVALID: &str = "invalid Unicode escape sequence";
        if self.rest().starts_with('{') {
            let end = self.rest().find('}').filter(|end| (2..=7).contains(end));
            let end = end.ok_or_else(|| syntax(INVALID, ""))?;
            self.at += 1;
            let character = self.hexadecimal(end - 1, INVALID)?;
            self.at += 1;
            return Ok(character);
        }
        let start = self.at;
        let high = self.digits(4).ok_or_else(|| syntax(INVALID, ""))?;
        if (0xd800..0xdc00).contains(&high) && self.rest().starts_with("\\u") {
            self.at += 2;
            let low = self.digits(4).filter(|low| (0xdc00..0xe000).contains(low));
            let pair = low
                .and_then(|low| char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
            return pair.ok_or_else(surrogate);
        }
        if (0xd800..0xe000).contains(&high) {
            return Err(surrogate());
        }
        self.at = start;
        self.hexadecimal(4, INVALID)
    }

    /// An integer or decimal, perhaps with an exponent.
    fn number(&mut self) -> Result<Word> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut at = digits(start);
        let has_zero = at > start + 1 && bytes[start] == b'0';
        if bytes.get(at) == Some(&b'.') {
            at = digits(at + 1);
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let end = digits(at + 1 + sign);
            if end == at + 1 + sign {
                let near = &self.text[start..end];
                return Err(syntax("trailing junk after numeric literal", near));
            }
            at = end;
        }
        let next = self.text[at..].chars().next();
        if has_zero || next.is_some_and(|it| !is_special(it)) {
            let end = at + next.map_or(0, char::len_utf8);
            let near = match has_zero {
                true => &self.text[start..start + 2],
                false => &self.text[start..end],
            };
            return Err(syntax("trailing junk after numeric literal", near));
        }
        self.at = at;
        Ok(Word::Number(self.text[start..at].to_owned()))
    }
}

#[cold]
fn surrogate() -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type jsonpath",
    )
    .with_detail("Unicode low surrogate must follow a high surrogate.")
}
