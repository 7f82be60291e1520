//! The pieces of a text of a date or time, as PostgreSQL takes it apart (`ParseDateTime`).

use super::input::Fault;

/// Pieces of a text, at most.
const PIECES_MAX: usize = 25;

/// Bytes of all pieces, at most.
const BYTES_MAX: usize = 128;

/// What a piece looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Digits, with a fraction or without.
    #[default]
    Number,
    /// Numbers and words with separators, or the name of a zone.
    Date,
    /// Numbers with colons.
    Time,
    /// A number behind a sign.
    Offset,
    Word,
    /// A word behind a sign.
    SignedWord,
}

/// A piece, in lower case.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece<'t> {
    pub kind: PieceKind,
    /// Behind the sign, if it has one.
    pub text: &'t str,
    pub is_negative: bool,
}

/// The pieces of a text.
pub(super) struct Pieces<'t> {
    all: [Piece<'t>; PIECES_MAX],
    count: usize,
}

/// Takes off what is at the beginning of `text` as long as `belongs` says so.
fn take<'t>(text: &mut &'t str, belongs: impl Fn(u8) -> bool) -> &'t str {
    let end = text.bytes().position(|byte| !belongs(byte));
    let (taken, rest) = text.split_at(end.unwrap_or(text.len()));
    *text = rest;
    taken
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

impl<'t> Pieces<'t> {
    /// The pieces of a text that is in lower case.
    pub fn of(text: &'t str) -> Result<Pieces<'t>, Fault> {
        let mut pieces = Pieces {
            all: [Piece::default(); PIECES_MAX],
            count: 0,
        };
        let (mut rest, mut bytes) = (text, 0);
        while let Some(first) = rest.bytes().next() {
            if is_space(first) {
                rest = &rest[1..];
                continue;
            }
            let piece = match first {
                b'0'..=b'9' => numeric(&mut rest),
                b'.' => {
                    let text = take_more(&mut rest, 1, |byte| byte.is_ascii_digit());
                    Piece {
                        text,
                        ..Piece::default()
                    }
                }
                b'a'..=b'z' => word(&mut rest),
                b'+' | b'-' => signed(&mut rest, first == b'-')?,
                _ if first.is_ascii_punctuation() => {
                    rest = &rest[1..];
                    continue;
                }
                _ => return Err(Fault::Syntax),
            };
            bytes += piece.text.len() + 1;
            if pieces.count == PIECES_MAX || bytes > BYTES_MAX {
                return Err(Fault::Syntax);
            }
            pieces.all[pieces.count] = piece;
            pieces.count += 1;
        }
        Ok(pieces)
    }

    pub fn as_slice(&self) -> &[Piece<'t>] {
        &self.all[..self.count]
    }
}

/// As [`take`], of which the first `known` bytes belong to it in any case.
fn take_more<'t>(text: &mut &'t str, known: usize, belongs: impl Fn(u8) -> bool) -> &'t str {
    let mut rest = &text[known..];
    take(&mut rest, belongs);
    let (taken, rest) = text.split_at(text.len() - rest.len());
    *text = rest;
    taken
}

/// A piece that begins with a digit.
fn numeric<'t>(rest: &mut &'t str) -> Piece<'t> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut behind = *rest;
    let digits = take(&mut behind, is_digit).len();
    let (kind, text) = match behind.bytes().next() {
        Some(b':') => {
            let text = take_more(rest, digits + 1, |byte| {
                is_digit(byte) || matches!(byte, b':' | b'.')
            });
            (PieceKind::Time, text)
        }
        Some(separator @ (b'-' | b'/' | b'.')) => {
            behind = &behind[1..];
            match behind.bytes().next().is_some_and(is_digit) {
                true => {
                    let more = take(&mut behind, is_digit).len();
                    match behind.bytes().next() == Some(separator) {
                        true => {
                            let text = take_more(rest, digits + 1 + more + 1, |byte| {
                                is_digit(byte) || byte == separator
                            });
                            (PieceKind::Date, text)
                        }
                        false => {
                            let kind = match separator {
                                b'.' => PieceKind::Number,
                                _ => PieceKind::Date,
                            };
                            (kind, take_more(rest, digits + 1 + more, |_| false))
                        }
                    }
                }
                // A month's name may be within.
                false => {
                    let text = take_more(rest, digits + 1, |byte| {
                        byte.is_ascii_alphanumeric() || byte == separator
                    });
                    (PieceKind::Date, text)
                }
            }
        }
        _ => (PieceKind::Number, take_more(rest, digits, |_| false)),
    };
    Piece {
        kind,
        text,
        is_negative: false,
    }
}

/// A piece that begins with a letter: a word, or a date or the name of a zone.
fn word<'t>(rest: &mut &'t str) -> Piece<'t> {
    let mut behind = *rest;
    let letters = take(&mut behind, |byte| byte.is_ascii_alphabetic());
    let is_date = match behind.bytes().next() {
        Some(b'-' | b'/' | b'.') => true,
        Some(b'+' | b'0'..=b'9') => super::input_words::word(letters).is_none(),
        _ => false,
    };
    let (kind, text) = match is_date {
        true => {
            let text = take_more(rest, letters.len() + 1, |byte| {
                byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte)
            });
            (PieceKind::Date, text)
        }
        false => (PieceKind::Word, take_more(rest, letters.len(), |_| false)),
    };
    Piece {
        kind,
        text,
        is_negative: false,
    }
}

/// A piece that begins with a sign.
fn signed<'t>(rest: &mut &'t str, is_negative: bool) -> Result<Piece<'t>, Fault> {
    *rest = &rest[1..];
    take(rest, is_space);
    let (kind, text) = match rest.bytes().next() {
        Some(b'0'..=b'9') => {
            let text = take(rest, |byte| byte.is_ascii_digit() || b":.-".contains(&byte));
            (PieceKind::Offset, text)
        }
        Some(b'a'..=b'z') => (
            PieceKind::SignedWord,
            take(rest, |byte| byte.is_ascii_alphabetic()),
        ),
        _ => return Err(Fault::Syntax),
    };
    Ok(Piece {
        kind,
        text,
        is_negative,
    })
}
