//! Frames of windows, as far as the SQL parser does not know them. For `EXCLUDE …` it gets a mark as
//! the first expression of PARTITION BY, and an offset that begins with a literal in parentheses: it
//! would take it for an interval.

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::ast::Expr;
use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

/// What a frame leaves out of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exclusion {
    #[default]
    Nothing,
    CurrentRow,
    /// The row and those that are equal to it in the order.
    Group,
    /// Those that are equal to it in the order, but not itself.
    Ties,
}

/// Parentheses in each other, at most, that a window is looked for behind.
const DEPTH_MAX: usize = 100;

/// Each with the words behind EXCLUDE, and with its mark.
const EXCLUSIONS: [(&[&str], Exclusion, &str); 4] = [
    (
        &["current", "row"],
        Exclusion::CurrentRow,
        "EXCLUDE CURRENT ROW\u{0}",
    ),
    (&["group"], Exclusion::Group, "EXCLUDE GROUP\u{0}"),
    (&["ties"], Exclusion::Ties, "EXCLUDE TIES\u{0}"),
    (
        &["no", "others"],
        Exclusion::Nothing,
        "EXCLUDE NO OTHERS\u{0}",
    ),
];

impl Exclusion {
    /// What an expression of PARTITION BY says, if it is a mark. No name of a column is one: a name
    /// has no byte 0.
    pub(crate) fn of_mark(expr: &Expr) -> Option<Exclusion> {
        let Expr::Identifier(ident) = expr else {
            return None;
        };
        let mut all = EXCLUSIONS.iter();
        let found = all.find(|(_, _, mark)| *mark == ident.value);
        found.map(|(_, exclusion, _)| *exclusion)
    }
}

/// Puts marks into windows whose frames exclude rows, and parentheses around offsets.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    for at in 0..indexes.len() {
        let word = |at: usize| indexes.get(at).map_or("", |index| tokens.word(*index));
        if let "preceding" | "following" = word(at) {
            enclose_offset(tokens, &indexes[..at], instead);
        }
        if word(at) != "exclude" {
            continue;
        }
        let known = EXCLUSIONS.iter().find(|(words, _, _)| {
            let end = indexes.get(at + 1 + words.len());
            let mut each = words.iter().enumerate();
            each.all(|(offset, one)| word(at + 1 + offset) == *one)
                && end.is_some_and(|end| *tokens.get(*end) == Token::RParen)
        });
        let Some((words, _, mark)) = known else {
            continue;
        };
        let Some((place, has_frame)) = clause_before(tokens, &indexes[..at]) else {
            continue;
        };
        if !has_frame {
            continue;
        }
        let mark = Token::make_word(mark, Some('"'));
        match tokens.word(place) {
            "partition" => {
                let Some(by) = indexes.iter().find(|index| **index > place) else {
                    continue;
                };
                let by_marked = vec![tokens.get(*by).clone(), mark, Token::Comma];
                instead.insert(*by, by_marked);
            }
            _ => {
                let first = tokens.get(place).clone();
                let [partition, by] = ["partition", "by"].map(Token::make_keyword);
                instead.insert(place, vec![partition, by, mark, first]);
            }
        }
        for index in &indexes[at..=at + words.len()] {
            instead.insert(*index, Vec::new());
        }
    }
    Ok(())
}

/// The first clause of the window that the last of these tokens stand in, and whether it has a
/// frame.
fn clause_before(tokens: &Tokens<'_>, indexes: &[usize]) -> Option<(usize, bool)> {
    let mut depth = 0_usize;
    let (mut first, mut has_frame) = (None, false);
    for index in indexes.iter().rev() {
        match tokens.get(*index) {
            // A statement that deep is refused; to look through it would take long.
            Token::RParen | Token::RBracket if depth == DEPTH_MAX => return None,
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth == 0 => {
                return first.map(|at| (at, has_frame));
            }
            Token::LParen | Token::LBracket => depth -= 1,
            _ if depth == 0 => match tokens.word(*index) {
                "partition" | "order" => first = Some(*index),
                "rows" | "range" | "groups" => {
                    first = Some(*index);
                    has_frame = true;
                }
                _ => {}
            },
            _ => {}
        }
    }
    None
}

/// Puts the last of these tokens into parentheses, if they are an offset that begins with a literal.
fn enclose_offset(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) {
    let mut depth = 0_usize;
    let mut first = None;
    for index in indexes.iter().rev() {
        match tokens.get(*index) {
            Token::RParen | Token::RBracket if depth == DEPTH_MAX => return,
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth == 0 => return,
            Token::LParen | Token::LBracket => depth -= 1,
            Token::SingleQuotedString(_) if depth == 0 => {
                first = Some(*index);
                continue;
            }
            _ if depth > 0 => {}
            _ => match tokens.word(*index) {
                "between" | "and" | "rows" | "range" | "groups" => break,
                // An offset has neither, so that no token is looked at again and again.
                "preceding" | "following" => break,
                _ => {}
            },
        }
        first = None;
    }
    if let (Some(first), Some(last)) = (first, indexes.last().copied()) {
        let literal = tokens.get(first).clone();
        instead.insert(first, vec![Token::LParen, literal]);
        let end = instead
            .entry(last)
            .or_insert_with(|| vec![tokens.get(last).clone()]);
        end.push(Token::RParen);
    }
}
