//! `f(VARIADIC array)`, which the SQL parser does not know: it gets an argument with a name that no
//! argument has.

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

/// The name of an argument that stands behind VARIADIC.
pub(crate) const VARIADIC: &str = "VARIADIC\u{0}";

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
            let name = Token::make_word(VARIADIC, Some('"'));
            instead.insert(*index, vec![name, Token::RArrow]);
        }
    }
    Ok(())
}
