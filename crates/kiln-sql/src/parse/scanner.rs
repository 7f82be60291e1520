//! Cuts text into PostgreSQL's lexical elements. It never fails: what is wrong with an element is
//! noted in it, so that splitting a script goes on where parsing a statement reports an error.

use super::position::after;
use kiln_storage::error::Position;

/// One lexical element; white space and comments are skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub kind: Kind,
    /// Bytes of the text.
    pub start: usize,
    pub end: usize,
    /// Place of the first and of the character after the last.
    pub position: Position,
    pub end_position: Position,
    /// A line break stands between this element and the one before it. Adjacent string literals
    /// are one literal then.
    pub after_line_break: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    QuotedIdentifier,
    Number,
    /// Digits run into letters, as in `12ab`.
    NumberWithJunk,
    /// `'…'`
    String,
    /// `E'…'`
    EscapeString,
    /// `B'…'`
    BitString,
    /// `X'…'`
    HexString,
    /// `N'…'`
    NationalString,
    /// `U&'…'` or `U&"…"`
    UnicodeEscapes,
    /// `$tag$…$tag$`; the length of `$tag$` in bytes.
    DollarString {
        tag: usize,
    },
    /// `$1`
    Placeholder,
    /// The two dots of a range.
    Range,
    Operator,
    /// One character: parentheses, brackets, comma, semicolon, period, colon or a stranger.
    Character,
    /// `::` or `:=`
    ColonPair,
    /// Text that a missing quote makes run to the end.
    Unterminated(Open),
}

/// What was never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    String,
    Identifier,
    DollarString,
    Comment,
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    offset: usize,
    position: Position,
}

fn starts_word(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
}

fn continues_word(character: char) -> bool {
    starts_word(character) || character.is_ascii_digit() || character == '$'
}

fn is_operator(character: char) -> bool {
    "+-*/<>=~!@#%^&|`?".contains(character)
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, position: Position) -> Scanner<'a> {
        Scanner {
            text,
            offset: 0,
            position,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        self.position = after(self.position, character);
        Some(character)
    }

    fn advance_bytes(&mut self, bytes: usize) {
        let end = self.offset + bytes;
        while self.offset < end && self.advance().is_some() {}
    }

    fn advance_while(&mut self, accept: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&accept) {
            self.advance();
        }
    }

    /// The next element, or `None` at the end of the text.
    pub(super) fn next(&mut self) -> Option<Element> {
        let line = self.position.line;
        loop {
            self.advance_while(char::is_whitespace);
            let (start, position) = (self.offset, self.position);
            if self.rest().starts_with("--") {
                self.advance_while(|character| character != '\n');
            } else if self.rest().starts_with("/*") {
                if !self.skip_comment() {
                    return Some(Element {
                        kind: Kind::Unterminated(Open::Comment),
                        start,
                        end: self.offset,
                        position,
                        end_position: self.position,
                        after_line_break: position.line > line,
                    });
                }
            } else {
                break;
            }
        }
        let (start, position) = (self.offset, self.position);
        let first = self.advance()?;
        let kind = self.element(first);
        Some(Element {
            kind,
            start,
            end: self.offset,
            position,
            end_position: self.position,
            after_line_break: position.line > line,
        })
    }

    /// Skips a comment with the comments inside it; false when it is never closed.
    fn skip_comment(&mut self) -> bool {
        let mut depth = 0_usize;
        loop {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.advance_bytes(2);
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.advance_bytes(2);
                if depth == 0 {
                    return true;
                }
            } else if self.advance().is_none() {
                return false;
            }
        }
    }

    fn element(&mut self, first: char) -> Kind {
        match first {
            '\'' => self.quoted('\'', false, Kind::String),
            '"' => self.quoted('"', false, Kind::QuotedIdentifier),
            '$' => self.dollar(),
            '0'..='9' => self.number(),
            '.' if self.peek() == Some('.') => {
                self.advance();
                Kind::Range
            }
            '.' if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                self.advance_while(|character| character.is_ascii_digit());
                self.exponent_and_junk()
            }
            ':' if matches!(self.peek(), Some(':' | '=')) => {
                self.advance();
                Kind::ColonPair
            }
            _ if starts_word(first) => self.word(first),
            _ if is_operator(first) => self.operator(),
            _ => Kind::Character,
        }
    }

    fn word(&mut self, first: char) -> Kind {
        if self.peek() == Some('\'') {
            let (backslashes, kind) = match first {
                'e' | 'E' => (true, Kind::EscapeString),
                'b' | 'B' => (false, Kind::BitString),
                'x' | 'X' => (false, Kind::HexString),
                'n' | 'N' => (false, Kind::NationalString),
                _ => return Kind::Word,
            };
            self.advance();
            return self.quoted('\'', backslashes, kind);
        }
        if matches!(first, 'u' | 'U')
            && self.peek() == Some('&')
            && let Some(quote @ ('\'' | '"')) = self.peek_second()
        {
            self.advance_bytes(2);
            return self.quoted(quote, false, Kind::UnicodeEscapes);
        }
        self.advance_while(continues_word);
        Kind::Word
    }

    /// The rest of a quoted element whose opening quote has been read. A doubled quote is part of
    /// it.
    fn quoted(&mut self, quote: char, backslashes: bool, kind: Kind) -> Kind {
        while let Some(character) = self.advance() {
            if character == quote {
                if self.peek() != Some(quote) {
                    return kind;
                }
                self.advance();
            } else if backslashes && character == '\\' {
                self.advance();
            }
        }
        Kind::Unterminated(if quote == '"' {
            Open::Identifier
        } else {
            Open::String
        })
    }

    fn dollar(&mut self) -> Kind {
        if self.peek().is_some_and(|next| next.is_ascii_digit()) {
            self.advance_while(|character| character.is_ascii_digit());
            return Kind::Placeholder;
        }
        let rest = self.rest();
        let name = rest
            .find(|character| !continues_word(character) || character == '$')
            .unwrap_or(rest.len());
        if !rest[name..].starts_with('$') {
            return Kind::Character;
        }
        // The opening dollar has been read, so the tag begins one byte back.
        let tag = &self.text[self.offset - 1..self.offset + name + 1];
        match rest[name + 1..].find(tag) {
            Some(length) => {
                self.advance_bytes(name + 1 + length + tag.len());
                Kind::DollarString { tag: tag.len() }
            }
            None => {
                self.advance_bytes(rest.len());
                Kind::Unterminated(Open::DollarString)
            }
        }
    }

    fn number(&mut self) -> Kind {
        self.advance_while(|character| character.is_ascii_digit());
        // In `1..10` the dots are a range, not the end of `1.`.
        if self.peek() == Some('.') && self.peek_second() != Some('.') {
            self.advance();
            self.advance_while(|character| character.is_ascii_digit());
        }
        self.exponent_and_junk()
    }

    fn exponent_and_junk(&mut self) -> Kind {
        if matches!(self.peek(), Some('e' | 'E')) {
            let after = self.rest()[1..].trim_start_matches(['+', '-']);
            let signs = self.rest().len() - 1 - after.len();
            if signs <= 1 && after.starts_with(|character: char| character.is_ascii_digit()) {
                self.advance_bytes(1 + signs);
                self.advance_while(|character| character.is_ascii_digit());
            }
        }
        if self.peek().is_some_and(starts_word) {
            self.advance_while(continues_word);
            return Kind::NumberWithJunk;
        }
        Kind::Number
    }

    /// Operators follow PostgreSQL's rule: the longest run of operator characters, which a comment
    /// ends, and which ends in `+` or `-` only when it holds one of `~ ! @ # % ^ & | ? \``.
    fn operator(&mut self) -> Kind {
        let start = self.offset - 1;
        let run = &self.text[start..];
        let mut length = run
            .find(|character| !is_operator(character))
            .unwrap_or(run.len());
        for comment in ["--", "/*"] {
            if let Some(at) = run[1..length].find(comment) {
                length = at + 1;
            }
        }
        while length > 1
            && run[..length].ends_with(['+', '-'])
            && !run[..length].contains(['~', '!', '@', '#', '%', '^', '&', '|', '?', '`'])
        {
            length -= 1;
        }
        self.advance_bytes(length - 1);
        Kind::Operator
    }
}
