//! The paths that a Rust source names.

use crate::sources::{Piece, name_length};

/// Reads the path or tree of paths that starts at `tokens[at]` and gives the place after it.
/// `found` is told each one: its segments, its line, and whether it is renamed.
pub fn read_paths(
    tokens: &[Token],
    at: usize,
    prefix: &[String],
    found: &mut dyn FnMut(&[String], usize, bool),
) -> usize {
    let mut at = at;
    let mut segments = prefix.to_vec();
    let mut line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        match &token.kind {
            Kind::Name(name) => {
                segments.push(name.clone());
                line = token.line;
                at += 1;
            }
            Kind::Other('*') => {
                segments.push("*".to_owned());
                line = token.line;
                at += 1;
                break;
            }
            Kind::Other('{') => {
                at += 1;
                while let Some(token) = tokens.get(at) {
                    match token.kind {
                        Kind::Other('}') => return at + 1,
                        Kind::Name(_) | Kind::Other('*' | '{') => {
                            at = read_paths(tokens, at, &segments, found);
                        }
                        _ => at += 1,
                    }
                }
                return at;
            }
            _ => break,
        }
        match tokens.get(at).map(|token| &token.kind) {
            Some(Kind::PathSeparator) => at += 1,
            _ => break,
        }
    }
    if segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let renamed = matches!(tokens.get(at).map(|t| &t.kind), Some(Kind::Name(n)) if n == "as");
    if renamed {
        at += 2;
    }
    found(&segments, line, renamed);
    at
}

/// What a token is.
pub enum Kind {
    Name(String),
    PathSeparator,
    Other(char),
}

/// A token, and its line.
pub struct Token {
    pub kind: Kind,
    pub line: usize,
}

/// Cuts Rust source into names, `::` and single characters; comments, strings, characters and
/// lifetimes are left out.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let (length, kind) =
            if let Some(Piece::Comment(length) | Piece::Literal(length)) = Piece::at_start(rest) {
                (length, None)
            } else if rest.starts_with("::") {
                (2, Some(Kind::PathSeparator))
            } else if let Some(length) = name_length(rest) {
                let name = &rest[..length];
                if name == "r" && rest[1..].starts_with('#') {
                    (2, None)
                } else {
                    (length, Some(Kind::Name(name.to_owned())))
                }
            } else if next.is_whitespace() {
                (next.len_utf8(), None)
            } else {
                (next.len_utf8(), Some(Kind::Other(next)))
            };
        found.extend(kind.map(|kind| Token { kind, line }));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}
