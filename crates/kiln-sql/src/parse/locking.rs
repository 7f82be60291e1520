//! `FOR NO KEY UPDATE`, `FOR KEY SHARE` and `FOR UPDATE OF a, b`: the SQL parser knows FOR UPDATE
//! and FOR SHARE of one table, several times. It gets the stronger of two strengths that differ in
//! what they leave to foreign keys, and a clause for each table.

use std::collections::BTreeMap;

use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

/// The tokens that stand for others in locking clauses, by the indexes of these.
pub(super) struct LockingClauses(BTreeMap<usize, Vec<Token>>);

impl LockingClauses {
    /// Those among some tokens of a statement.
    pub(super) fn of(tokens: &Tokens<'_>, indexes: &[usize]) -> LockingClauses {
        let mut found = LockingClauses(BTreeMap::new());
        for (at, index) in indexes.iter().enumerate() {
            if tokens.word(*index) == "for" {
                found.look(tokens, &indexes[at + 1..]);
            }
        }
        found
    }

    /// What stands for a token.
    pub(super) fn at(&self, index: usize) -> Option<&[Token]> {
        self.0.get(&index).map(Vec::as_slice)
    }

    /// Looks at what stands behind FOR.
    fn look(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) {
        let word = |at: usize| indexes.get(at).map_or("", |index| tokens.word(*index));
        let left_out = match [word(0), word(1), word(2)] {
            ["update" | "share", ..] => 0,
            ["key", "share", _] => 1,
            ["no", "key", "update"] => 2,
            _ => return,
        };
        for index in &indexes[..left_out] {
            self.0.insert(*index, Vec::new());
        }
        let strength = word(left_out).to_owned();
        if word(left_out + 1) != "of" {
            return;
        }
        for index in &indexes[left_out + 2..] {
            match tokens.get(*index) {
                Token::Comma => {
                    let clause = ["for", strength.as_str(), "of"].map(Token::make_keyword);
                    self.0.insert(*index, clause.to_vec());
                }
                Token::Word(_) | Token::Period
                    if !matches!(tokens.word(*index), "for" | "nowait" | "skip") => {}
                _ => return,
            }
        }
    }
}
