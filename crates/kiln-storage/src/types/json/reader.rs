//! Reading JSON.

use std::borrow::Cow;

use super::error::{invalid, no_text, too_deep};
use crate::error::Result;

/// Arrays and objects in each other, at most.
const DEPTH_MAX: usize = 1_000;

/// A JSON value with the text that wrote it.
#[derive(Clone, Debug)]
pub struct Json<'a> {
    /// The text, without the blanks around it.
    pub text: &'a str,
    /// What it says.
    pub node: Node<'a>,
}

/// What a JSON text says.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, as its text.
    Number,
    /// A string: what is between its quotes, with its escapes; see [`unescape`].
    String(&'a str),
    /// The elements.
    Array(Vec<Json<'a>>),
    /// The members in the order of the text: each key as a string's content, and its value.
    Object(Vec<(&'a str, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// The elements of an array.
    pub fn elements(&self) -> Option<&[Json<'a>]> {
        match &self.node {
            Node::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn members(&self) -> Option<&[(&'a str, Json<'a>)]> {
        match &self.node {
            Node::Object(members) => Some(members),
            _ => None,
        }
    }

    /// PostgreSQL's name of what it is, as `json_typeof` gives it.
    pub fn type_name(&self) -> &'static str {
        match self.node {
            Node::Null => "null",
            Node::Boolean(_) => "boolean",
            Node::Number => "number",
            Node::String(_) => "string",
            Node::Array(_) => "array",
            Node::Object(_) => "object",
        }
    }
}

/// Reads a text that is one JSON value.
///
/// # Errors
/// 22P02 with a detail that says what is wrong, 54001 for one that is nested too deeply.
pub fn read(text: &str) -> Result<Json<'_>> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0, "JSON value")?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.expected("end of input")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|byte| b" \t\n\r".contains(byte));
        self.at += blanks.count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// The error of a token that is not what belongs there.
    #[cold]
    fn expected(&mut self, wanted: &str) -> crate::error::Error {
        if self.peek().is_none() {
            return invalid("The input string ended unexpectedly.");
        }
        match self.token() {
            Ok(token) => invalid(format!("Expected {wanted}, but found \"{token}\".")),
            Err(error) => error,
        }
    }

    /// The token at the reader's place, for an error.
    fn token(&mut self) -> Result<&'a str> {
        let start = self.at;
        match self.text.as_bytes()[start] {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => self.at += 1,
            b'"' => drop(self.string()?),
            b'-' | b'0'..=b'9' => self.number()?,
            _ => drop(self.word()?),
        }
        Ok(&self.text[start..self.at])
    }

    fn value(&mut self, depth: usize, wanted: &str) -> Result<Json<'a>> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        let next = self.peek();
        let start = self.at;
        let node = match next {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Node::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Node::Number
            }
            None | Some(b'}' | b']' | b':' | b',') => return Err(self.expected(wanted)),
            Some(_) => self.word()?,
        };
        Ok(Json {
            text: &self.text[start..self.at],
            node,
        })
    }

    fn array(&mut self, depth: usize) -> Result<Node<'a>> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::Array(elements));
        }
        loop {
            let wanted = match elements.is_empty() {
                true => "array element or \"]\"",
                false => "JSON value",
            };
            elements.push(self.value(depth + 1, wanted)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.expected("\",\" or \"]\"")),
            }
        }
        self.at += 1;
        Ok(Node::Array(elements))
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>> {
        self.at += 1;
        let mut members = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                let wanted = match members.is_empty() {
                    true => "string or \"}\"",
                    false => "string",
                };
                return Err(self.expected(wanted));
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.expected("\":\""));
            }
            self.at += 1;
            members.push((key, self.value(depth + 1, "JSON value")?));
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.expected("\",\" or \"}\"")),
            }
        }
        self.at += 1;
        Ok(Node::Object(members))
    }

    /// A string whose quote comes next: what is between its quotes.
    fn string(&mut self) -> Result<&'a str> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            let Some(&byte) = bytes.get(self.at) else {
                let token = &self.text[start..];
                return Err(invalid(format!("Token \"{token}\" is invalid.")));
            };
            match byte {
                b'"' => break,
                b'\\' => self.escape(start)?,
                0..0x20 => {
                    let detail = format!("Character with value 0x{byte:02x} must be escaped.");
                    return Err(invalid(detail));
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(&self.text[start + 1..self.at - 1])
    }

    fn escape(&mut self, start: usize) -> Result<()> {
        let mut rest = self.text[self.at + 1..].chars();
        match rest.next() {
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => self.at += 2,
            Some('u') => {
                let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(invalid(
                        "\"\\u\" must be followed by four hexadecimal digits.",
                    ));
                }
                self.at += 6;
            }
            Some(other) => {
                let detail = format!("Escape sequence \"\\{other}\" is invalid.");
                return Err(invalid(detail));
            }
            None => {
                let token = &self.text[start..];
                return Err(invalid(format!("Token \"{token}\" is invalid.")));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start;
        let digits = |at: usize| {
            let rest = bytes[at..].iter();
            rest.take_while(|byte| byte.is_ascii_digit()).count()
        };
        if bytes[at] == b'-' {
            at += 1;
        }
        let whole = digits(at);
        let mut is_number = whole == 1 || whole > 1 && bytes[at] != b'0';
        at += whole;
        if bytes.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            is_number &= fraction > 0;
            at += 1 + fraction;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            if let Some(b'+' | b'-') = bytes.get(at) {
                at += 1;
            }
            let exponent = digits(at);
            is_number &= exponent > 0;
            at += exponent;
        }
        // What goes on as a word is all one token.
        self.at = at;
        let more = self.word_end();
        if !is_number || more > at {
            let token = &self.text[start..more];
            return Err(invalid(format!("Token \"{token}\" is invalid.")));
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Node<'a>> {
        let start = self.at;
        let end = self.word_end();
        self.at = end;
        Ok(match &self.text[start..end] {
            "true" => Node::Boolean(true),
            "false" => Node::Boolean(false),
            "null" => Node::Null,
            "" => {
                let strange = self.text[start..].chars().next().unwrap_or_default();
                return Err(invalid(format!("Token \"{strange}\" is invalid.")));
            }
            word => return Err(invalid(format!("Token \"{word}\" is invalid."))),
        })
    }

    /// Where the letters and digits from the reader's place on end.
    fn word_end(&self) -> usize {
        let rest = &self.text[self.at..];
        let is_inside = |character: char| {
            character.is_ascii_alphanumeric() || character == '_' || !character.is_ascii()
        };
        self.at
            + rest
                .find(|character| !is_inside(character))
                .unwrap_or(rest.len())
    }
}

/// What a string says whose content is `raw`.
///
/// # Errors
/// 22P05 for the character 0; 22P02 for half a character.
pub fn unescape(raw: &str) -> Result<Cow<'_, str>> {
    if !raw.contains('\\') {
        return Ok(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (escape, behind) = rest[at + 1..].split_at(1);
        rest = behind;
        text.push(match escape {
            "b" => '\u{8}',
            "f" => '\u{c}',
            "n" => '\n',
            "r" => '\r',
            "t" => '\t',
            "u" => unicode(&mut rest)?,
            // A quote, a slash, a backslash.
            other => other.chars().next().unwrap_or_default(),
        });
    }
    text.push_str(rest);
    Ok(Cow::Owned(text))
}

/// The character of `\u`, and of the second one that belongs to it; `rest` begins with the digits.
fn unicode(rest: &mut &str) -> Result<char> {
    const LOW: &str = "Unicode low surrogate must follow a high surrogate.";
    let first = four_digits(rest);
    match first {
        0 => Err(no_text("\\u0000 cannot be converted to text.")),
        0xdc00..0xe000 => Err(invalid(LOW)),
        0xd800..0xdc00 => {
            let Some(mut second) = rest.strip_prefix("\\u") else {
                return Err(invalid(LOW));
            };
            let low = four_digits(&mut second);
            *rest = second;
            match low {
                0xdc00..0xe000 => {
                    let code = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                    char::from_u32(code).ok_or_else(|| invalid(LOW))
                }
                0xd800..0xdc00 => Err(invalid(
                    "Unicode high surrogate must not follow a high surrogate.",
                )),
                _ => Err(invalid(LOW)),
            }
        }
        _ => char::from_u32(first).ok_or_else(|| invalid(LOW)),
    }
}

/// Takes the four digits that the reader has seen behind `\u`.
fn four_digits(rest: &mut &str) -> u32 {
    let (digits, behind) = rest.split_at_checked(4).unwrap_or((rest, ""));
    *rest = behind;
    u32::from_str_radix(digits, 16).unwrap_or(0)
}
