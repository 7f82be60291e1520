//! Turns scanned elements into the tokens that the SQL parser reads.
//!
//! The tokens are `sqlparser`'s, the scanner is ours, for four reasons: `1..10` is a range in
//! PL/pgSQL, every token knows its bytes so that an error can quote the source, positions count
//! from the start of the whole script, and splitting a script can never disagree with parsing it.
//! Unquoted identifiers are folded to lower case here, once: no later stage folds again.

use super::position::location;
use super::scanner::{Element, Kind, Open, Scanner};
use super::unicode;
use kiln_storage::error::{Error, Position, Result, SqlState};
use sqlparser::ast::DollarQuotedString;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use std::iter::Peekable;

/// The two dots of `FOR i IN 1..10`. The SQL parser knows no such token and has none that fits,
/// so it must be one that no expression contains.
pub(super) const RANGE: Token = Token::Char('.');

/// A token and where it stands in the text.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub token: TokenWithSpan,
    pub position: Position,
    /// Bytes of the text.
    pub start: usize,
    pub end: usize,
}

/// The tokens of `text`, whose first character stands at `position` of the script.
pub(super) fn lex(text: &str, position: Position) -> Result<Vec<Lexeme>> {
    let mut scanner = Scanner::new(text, position);
    let mut elements: Vec<Element> = Vec::new();
    while let Some(element) = scanner.next() {
        elements.push(element);
    }
    let mut elements = elements.into_iter().peekable();
    let mut lexemes: Vec<Lexeme> = Vec::new();
    while let Some(mut element) = elements.next() {
        let token = match element.kind {
            Kind::UnicodeEscapes => with_escapes(text, &mut element, &mut elements)?,
            _ => token(text, &element)?,
        };
        // String literals on successive lines are one literal.
        if let Token::SingleQuotedString(more) = &token
            && element.kind == Kind::String
            && element.after_line_break
            && let Some(last) = lexemes.last_mut()
            && let Token::SingleQuotedString(value) | Token::EscapedStringLiteral(value) =
                &mut last.token.token
        {
            value.push_str(more);
            last.token.span.end = location(element.end_position);
            last.end = element.end;
            continue;
        }
        // The SQL parser does not know the operator ISNULL, which it would take for an alias.
        let is_isnull = matches!(&token, Token::Word(word)
            if word.quote_style.is_none() && word.value == "isnull");
        let tokens = if is_isnull {
            vec![Token::make_word("is", None), Token::make_word("null", None)]
        } else {
            vec![token]
        };
        let span = Span::new(location(element.position), location(element.end_position));
        lexemes.extend(tokens.into_iter().map(|token| Lexeme {
            token: TokenWithSpan { token, span },
            position: element.position,
            start: element.start,
            end: element.end,
        }));
    }
    Ok(lexemes)
}

/// The token of `U&'…'` or `U&"…"`, which takes with it what belongs to it behind it: more of a
/// literal on the next lines, and UESCAPE.
fn with_escapes(
    text: &str,
    element: &mut Element,
    rest: &mut Peekable<impl Iterator<Item = Element>>,
) -> Result<Token> {
    let source = &text[element.start..element.end];
    let at =
        |error: Error, element: &Element| error.at(element.position.line, element.position.column);
    let is_name = source[2..].starts_with('"');
    let mut written = match is_name {
        true => source[3..source.len() - 1].replace("\"\"", "\""),
        false => undouble(&source[3..]),
    };
    let is_more = |next: &Element| next.kind == Kind::String && next.after_line_break;
    while let Some(more) = rest.next_if(|next| !is_name && is_more(next)) {
        written.push_str(&undouble(&text[more.start + 1..more.end]));
        (element.end, element.end_position) = (more.end, more.end_position);
    }
    let is_uescape = |next: &Element| {
        next.kind == Kind::Word && text[next.start..next.end].eq_ignore_ascii_case("uescape")
    };
    let mut escape = '\\';
    if let Some(word) = rest.next_if(is_uescape) {
        let Some(character) = rest.next_if(|next| next.kind == Kind::String) else {
            let message = "UESCAPE must be followed by a simple string literal";
            let (next, near) = match rest.next() {
                Some(next) => {
                    let near = format!("at or near \"{}\"", abridged(&text[next.start..next.end]));
                    (next, near)
                }
                None => (word, "at end of input".to_owned()),
            };
            let error = Error::new(SqlState::SYNTAX_ERROR, format!("{message} {near}"));
            return Err(at(error, &next));
        };
        let name = undouble(&text[character.start + 1..character.end]);
        let found = unicode::escape_character(&name);
        escape = found.map_err(|error| at(error, &character))?;
        (element.end, element.end_position) = (character.end, character.end_position);
    }
    let value = unicode::decoded(&written, escape).map_err(|error| at(error, element))?;
    match is_name {
        true if value.is_empty() => {
            let message = "zero-length delimited identifier at or near \"U&\"\"\"";
            Err(at(Error::new(SqlState::SYNTAX_ERROR, message), element))
        }
        true => Ok(Token::make_word(&value, Some('"'))),
        false => Ok(Token::SingleQuotedString(value)),
    }
}

fn token(text: &str, element: &Element) -> Result<Token> {
    let source = &text[element.start..element.end];
    let error = |message: String| {
        Error::new(SqlState::SYNTAX_ERROR, message)
            .at(element.position.line, element.position.column)
    };
    Ok(match element.kind {
        Kind::Word => Token::make_word(&source.to_ascii_lowercase(), None),
        Kind::QuotedIdentifier => {
            let name = source[1..source.len() - 1].replace("\"\"", "\"");
            if name.is_empty() {
                return Err(error(
                    "zero-length delimited identifier at or near \"\"\"\"".into(),
                ));
            }
            Token::make_word(&name, Some('"'))
        }
        Kind::Number => Token::Number(source.to_string(), false),
        Kind::NumberWithJunk => {
            return Err(error(format!(
                "trailing junk after numeric literal at or near \"{source}\""
            )));
        }
        Kind::String => Token::SingleQuotedString(undouble(&source[1..])),
        Kind::NationalString => Token::NationalStringLiteral(undouble(&source[2..])),
        Kind::BitString => Token::SingleQuotedByteStringLiteral(undouble(&source[2..])),
        Kind::HexString => Token::HexStringLiteral(undouble(&source[2..])),
        Kind::EscapeString => Token::EscapedStringLiteral(
            unescape(&source[2..source.len() - 1]).map_err(|(state, message)| {
                Error::new(state, message).at(element.position.line, element.position.column)
            })?,
        ),
        Kind::UnicodeEscapes => return Err(error("a Unicode escape out of place".into())),
        Kind::DollarString { tag } => Token::DollarQuotedString(DollarQuotedString {
            value: source[tag..source.len() - tag].to_string(),
            tag: (tag > 2).then(|| source[1..tag - 1].to_string()),
        }),
        Kind::Placeholder => Token::Placeholder(source.to_string()),
        Kind::Range => RANGE,
        Kind::ColonPair if source == "::" => Token::DoubleColon,
        Kind::ColonPair => Token::Assignment,
        Kind::Operator => operator(source),
        Kind::Character => match source {
            "(" => Token::LParen,
            ")" => Token::RParen,
            "[" => Token::LBracket,
            "]" => Token::RBracket,
            "," => Token::Comma,
            ";" => Token::SemiColon,
            "." => Token::Period,
            ":" => Token::Colon,
            _ => return Err(error(format!("syntax error at or near \"{source}\""))),
        },
        Kind::Unterminated(open) => {
            let what = match open {
                Open::String => "unterminated quoted string",
                Open::Identifier => "unterminated quoted identifier",
                Open::DollarString => "unterminated dollar-quoted string",
                Open::Comment => "unterminated /* comment",
            };
            return Err(error(format!("{what} at or near \"{}\"", abridged(source))));
        }
    })
}

/// The first line of `source`, at most 60 characters of it: an unterminated string runs to the end
/// of the script, which is too much to show.
fn abridged(source: &str) -> String {
    let line = source.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(60).collect();
    if shown.len() < source.len() {
        shown.push('…');
    }
    shown
}

/// The contents of a quoted literal, given from after its opening quote to its closing quote.
fn undouble(quoted: &str) -> String {
    quoted[..quoted.len() - 1].replace("''", "'")
}

/// The value of the contents of an `E'…'` literal.
fn unescape(contents: &str) -> std::result::Result<String, (SqlState, String)> {
    let mut value = String::with_capacity(contents.len());
    let mut bytes_written = Vec::new();
    let mut rest = contents.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\'' => {
                rest.next();
                value.push('\'');
            }
            '\\' => {
                let Some(escape) = rest.next() else { break };
                let code = match escape {
                    'b' => 8,
                    'f' => 12,
                    'n' => 10,
                    'r' => 13,
                    't' => 9,
                    'u' => digits(&mut rest, 16, 4, 4)?,
                    'U' => digits(&mut rest, 16, 8, 8)?,
                    'x' if rest.peek().is_some_and(char::is_ascii_hexdigit) => {
                        let byte = digits(&mut rest, 16, 1, 2)?;
                        push_byte(&mut value, &mut bytes_written, byte)?;
                        continue;
                    }
                    '0'..='7' => {
                        let mut byte = escape as u32 - '0' as u32;
                        for _ in 0..2 {
                            let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(8))
                            else {
                                break;
                            };
                            rest.next();
                            byte = byte * 8 + digit;
                        }
                        push_byte(&mut value, &mut bytes_written, byte & 0xff)?;
                        continue;
                    }
                    other => other as u32,
                };
                match char::from_u32(code) {
                    Some(character) if code != 0 => value.push(character),
                    _ => {
                        return Err((
                            SqlState::SYNTAX_ERROR,
                            "invalid Unicode escape value".to_string(),
                        ));
                    }
                }
            }
            other => value.push(other),
        }
        if !bytes_written.is_empty() {
            return Err(invalid_bytes(&bytes_written));
        }
    }
    if bytes_written.is_empty() {
        Ok(value)
    } else {
        Err(invalid_bytes(&bytes_written))
    }
}

fn digits(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    least: usize,
    most: usize,
) -> std::result::Result<u32, (SqlState, String)> {
    let mut value = 0_u32;
    let mut count = 0;
    while count < most {
        let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(radix)) else {
            break;
        };
        rest.next();
        value = value.wrapping_mul(radix).wrapping_add(digit);
        count += 1;
    }
    if count < least {
        return Err((
            SqlState::INVALID_ESCAPE_SEQUENCE,
            "invalid Unicode escape".to_string(),
        ));
    }
    Ok(value)
}

/// Adds a byte given by number. Bytes from 0x80 on gather in `pending` until they are a character
/// of UTF-8.
fn push_byte(
    value: &mut String,
    pending: &mut Vec<u8>,
    byte: u32,
) -> std::result::Result<(), (SqlState, String)> {
    pending.push(byte as u8);
    match std::str::from_utf8(pending) {
        Ok(text) if byte != 0 => {
            value.push_str(text);
            pending.clear();
            Ok(())
        }
        Err(error) if error.error_len().is_none() => Ok(()),
        _ => Err(invalid_bytes(pending)),
    }
}

fn invalid_bytes(bytes: &[u8]) -> (SqlState, String) {
    let shown: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    (
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            shown.join(" ")
        ),
    )
}

fn operator(source: &str) -> Token {
    match source {
        "=" => Token::Eq,
        "<>" | "!=" => Token::Neq,
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "=>" => Token::RArrow,
        "+" => Token::Plus,
        "-" => Token::Minus,
        "*" => Token::Mul,
        "/" => Token::Div,
        "%" => Token::Mod,
        "^" => Token::Caret,
        "#" => Token::Sharp,
        "&" => Token::Ampersand,
        "|" => Token::Pipe,
        "~" => Token::Tilde,
        "@" => Token::AtSign,
        "!" => Token::ExclamationMark,
        "?" => Token::Question,
        "?|" => Token::QuestionPipe,
        "?&" => Token::QuestionAnd,
        "#-" => Token::HashMinus,
        "||" => Token::StringConcat,
        "<<" => Token::ShiftLeft,
        ">>" => Token::ShiftRight,
        "&&" => Token::Overlap,
        "~*" => Token::TildeAsterisk,
        "!~" => Token::ExclamationMarkTilde,
        "!~*" => Token::ExclamationMarkTildeAsterisk,
        "~~" => Token::DoubleTilde,
        "~~*" => Token::DoubleTildeAsterisk,
        "!~~" => Token::ExclamationMarkDoubleTilde,
        "!~~*" => Token::ExclamationMarkDoubleTildeAsterisk,
        "!!" => Token::DoubleExclamationMark,
        "^@" => Token::CaretAt,
        "|/" => Token::PGSquareRoot,
        "||/" => Token::PGCubeRoot,
        "->" => Token::Arrow,
        "->>" => Token::LongArrow,
        "#>" => Token::HashArrow,
        "#>>" => Token::HashLongArrow,
        "@>" => Token::AtArrow,
        "<@" => Token::ArrowAt,
        "@@" => Token::AtAt,
        "@?" => Token::AtQuestion,
        other => Token::CustomBinaryOperator(other.to_string()),
    }
}
