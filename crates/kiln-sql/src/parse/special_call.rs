//! Calls in words that the SQL parser does not know, as calls that it knows.
//!
//! | written | parsed |
//! |---|---|
//! | `SUBSTRING(x SIMILAR p ESCAPE e)` | `SUBSTRING(x, p, e)` |
//! | `TRIM(TRAILING FROM x)` | `TRIM(TRAILING ' ' FROM x)` |
//! | `TRIM(FROM x)` | `TRIM(x)` |
//! | `COLLATION FOR (x)` | `pg_collation_for(x)` |

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

/// Puts commas and names into the place of the words.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    let get = |at: usize| tokens.get_among(indexes, at);
    let word = |at: usize| tokens.word_among(indexes, at);
    for at in 0..indexes.len() {
        match word(at) {
            "substring" if *get(at + 1) == Token::LParen => {
                let words = separators(tokens, &indexes[at + 2..]);
                if let [similar, escape] = words.as_slice() {
                    instead.insert(*similar, vec![Token::Comma]);
                    instead.insert(*escape, vec![Token::Comma]);
                }
            }
            "trim" if *get(at + 1) == Token::LParen => match word(at + 2) {
                "both" | "leading" | "trailing" if word(at + 3) == "from" => {
                    let from = indexes[at + 3];
                    let blank = Token::SingleQuotedString(" ".to_owned());
                    instead.insert(from, vec![blank, tokens.get(from).clone()]);
                }
                "from" => {
                    instead.insert(indexes[at + 2], Vec::new());
                }
                _ => {}
            },
            "collation" if word(at + 1) == "for" && *get(at + 2) == Token::LParen => {
                let name = Token::make_word("pg_collation_for", None);
                instead.insert(indexes[at], vec![name]);
                instead.insert(indexes[at + 1], Vec::new());
            }
            _ => {}
        }
    }
    Ok(())
}

/// The words SIMILAR and ESCAPE between the arguments of a call, which begin here.
fn separators(tokens: &Tokens<'_>, indexes: &[usize]) -> Vec<usize> {
    let (mut open, mut found) = (0_usize, Vec::new());
    for (at, index) in indexes.iter().copied().enumerate() {
        let next = tokens.word_among(indexes, at + 1);
        match tokens.get(index) {
            Token::LParen | Token::LBracket => open += 1,
            Token::RParen | Token::RBracket if open == 0 => break,
            Token::RParen | Token::RBracket => open -= 1,
            _ if open > 0 => {}
            _ => match (tokens.word(index), found.len()) {
                ("similar", 0) if next != "to" => found.push(index),
                ("escape", 1) => found.push(index),
                _ => {}
            },
        }
    }
    found
}
