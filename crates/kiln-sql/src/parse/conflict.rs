//! `ON CONFLICT (lower(a)) WHERE b`: the SQL parser knows columns alone. It gets one name in a
//! quote that no statement can write, which has the text of the target.

use std::collections::BTreeMap;

use kiln_storage::error::{Error, Result};
use sqlparser::ast::{CreateIndex, Ident};
use sqlparser::tokenizer::Token;

use super::script::SourceStatement;
use super::statement::{Statement, statement};
use super::tokens::Tokens;

/// The quote of a name that stands for a target.
const QUOTE: char = '`';

/// The tokens that stand for others in targets of ON CONFLICT, by the indexes of these.
pub(super) struct ConflictTargets(BTreeMap<usize, Vec<Token>>);

impl ConflictTargets {
    /// Those among some tokens of a statement.
    pub(super) fn of(tokens: &Tokens<'_>, indexes: &[usize]) -> ConflictTargets {
        let mut found = ConflictTargets(BTreeMap::new());
        for (at, index) in indexes.iter().enumerate() {
            if tokens.words(*index, &["on", "conflict"]) && *tokens.get(index + 2) == Token::LParen
            {
                found.look(tokens, &indexes[at + 2..]);
            }
        }
        found
    }

    /// What stands for a token.
    pub(super) fn at(&self, index: usize) -> Option<&[Token]> {
        self.0.get(&index).map(Vec::as_slice)
    }

    /// Looks at a target, whose first parenthesis is the first of `indexes`.
    fn look(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) {
        let Some(closing) = closing(tokens, indexes) else {
            return;
        };
        let is_name = |index: &usize| matches!(tokens.get(*index), Token::Word(_) | Token::Comma);
        let behind = indexes.get(closing + 1).copied().unwrap_or_default();
        let has_predicate = tokens.word(behind) == "where";
        if closing < 2 || (indexes[1..closing].iter().all(is_name) && !has_predicate) {
            return;
        }
        let mut behind = indexes[closing + 1..].iter();
        let end = match has_predicate {
            true => behind.position(|index| tokens.word(*index) == "do"),
            false => Some(0),
        };
        let Some(end) = end.map(|end| closing + 1 + end) else {
            return;
        };
        let text = tokens.text(indexes[0]..indexes[end - 1] + 1);
        for index in indexes[1..closing].iter().chain(&indexes[closing + 1..end]) {
            self.0.insert(*index, Vec::new());
        }
        let name = Token::make_word(text, Some(QUOTE));
        self.0.insert(indexes[1], vec![name]);
    }
}

/// Where the parenthesis closes that is the first of some tokens.
fn closing(tokens: &Tokens<'_>, indexes: &[usize]) -> Option<usize> {
    let mut open = 0_usize;
    indexes.iter().position(|index| {
        match tokens.get(*index) {
            Token::LParen => open += 1,
            Token::RParen => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0
    })
}

/// The target that a name stands for, as that of an index on a table of another name; `None` for a
/// name that was written.
///
/// # Errors
/// 42601.
pub fn conflict_target(ident: &Ident) -> Result<Option<CreateIndex>> {
    if ident.quote_style != Some(QUOTE) {
        return Ok(None);
    }
    let index = format!("CREATE INDEX ON t {}", ident.value);
    match statement(&SourceStatement::from(index.as_str())) {
        Ok(Statement::CreateIndex(index)) => Ok(Some(*index)),
        Ok(_) => Err(Error::internal("a target of ON CONFLICT is none")),
        Err(error) => Err(error.without_position()),
    }
}
