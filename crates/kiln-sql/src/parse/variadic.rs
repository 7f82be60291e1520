//! `f(VARIADIC array)`, which the SQL parser does not know: it gets an argument with a name that no
//! argument has. One that has a name, `f(VARIADIC a => array)`, gets the same before it.

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

/// What the name of an argument that stands behind VARIADIC begins with.
const VARIADIC: &str = "VARIADIC\u{0}";

/// What the name of an argument says: whether it stands behind VARIADIC, and its own name, which
/// is empty where it has none.
pub(crate) fn behind_variadic(name: &Ident) -> Option<&str> {
    name.value.strip_prefix(VARIADIC)
}

/// The name of an argument that stands behind VARIADIC, which has this one itself, or none.
pub(super) fn marked(name: &str) -> Ident {
    Ident::with_quote('"', format!("{VARIADIC}{name}"))
}

/// Puts names into the place of VARIADIC.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    for pair in indexes.windows(2) {
        let [before, index] = pair else { continue };
        let is_argument = matches!(tokens.get(*before), Token::LParen | Token::Comma);
        if is_argument && tokens.word(*index) == "variadic" {
            mark(tokens, *index, instead);
        }
    }
    Ok(())
}

fn mark(tokens: &Tokens<'_>, index: usize, instead: &mut BTreeMap<usize, Vec<Token>>) {
    let marked = |name: &str| Token::make_word(&marked(name).value, Some('"'));
    let is_named = matches!(tokens.get(index + 2), Token::RArrow | Token::Assignment);
    match tokens.get(index + 1) {
        Token::Word(word) if is_named => {
            instead.insert(index, Vec::new());
            instead.insert(index + 1, vec![marked(&word.value)]);
        }
        _ => {
            instead.insert(index, vec![marked(""), Token::RArrow]);
        }
    }
}
