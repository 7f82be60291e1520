//! `UPDATE t SET a[2] = …`: the SQL parser knows no subscripts in the target of an assignment. It
//! gets `a."[]"(2)`, a name with a function as its last part.

use kiln_storage::error::Result;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart};
use sqlparser::tokenizer::Token;
use std::collections::BTreeMap;

use super::tokens::Tokens;

/// What stands for a subscript among the parts of a name.
const SUBSCRIPT: &str = "[]";

/// The tokens that stand for the brackets behind targets of assignments, by the indexes of these.
pub(super) struct Subscripts(BTreeMap<usize, Vec<Token>>);

impl Subscripts {
    /// Those among some tokens of a statement.
    ///
    /// # Errors
    /// 0A000 for a slice.
    pub(super) fn of(tokens: &Tokens<'_>, indexes: &[usize]) -> Result<Subscripts> {
        let mut found = Subscripts(BTreeMap::new());
        let is_bracket = |index: &usize| *tokens.get(*index) == Token::LBracket;
        if indexes.iter().any(is_bracket) {
            found.look(tokens, indexes)?;
        }
        Ok(found)
    }

    /// What stands for a token.
    pub(super) fn at(&self, index: usize) -> Option<&[Token]> {
        self.0.get(&index).map(Vec::as_slice)
    }

    fn look(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) -> Result<()> {
        // How many parentheses were open at each SET whose assignments are not at their end.
        let (mut open, mut sets) = (0_usize, Vec::new());
        for (at, index) in indexes.iter().copied().enumerate() {
            let word = tokens.word(index);
            let is_in_set = sets.last() == Some(&open);
            match tokens.get(index) {
                Token::LParen | Token::LBracket => open += 1,
                Token::RParen | Token::RBracket => {
                    open = open.saturating_sub(1);
                    sets.retain(|set| *set <= open);
                }
                Token::Comma if is_in_set => self.target(tokens, &indexes[at + 1..])?,
                _ if word == "set" => {
                    sets.push(open);
                    self.target(tokens, &indexes[at + 1..])?;
                }
                _ if is_in_set
                    && ends_assignments(tokens, word, at.checked_sub(1).map(|at| indexes[at])) =>
                {
                    sets.pop();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes the brackets of the name that these tokens begin with, if `=` is behind them.
    fn target(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) -> Result<()> {
        let name = indexes
            .iter()
            .take_while(|index| matches!(tokens.get(**index), Token::Word(_) | Token::Period));
        let rest = &indexes[name.count()..];
        let (mut open, mut brackets, mut slice) = (0_usize, Vec::new(), None);
        for index in rest.iter().copied() {
            match tokens.get(index) {
                Token::LBracket if open == 0 => {
                    let name = Token::make_word(SUBSCRIPT, Some('"'));
                    brackets.push((index, vec![Token::Period, name, Token::LParen]));
                    open = 1;
                }
                Token::RBracket if open == 1 => {
                    brackets.push((index, vec![Token::RParen]));
                    open = 0;
                }
                Token::Colon if open == 1 => slice = slice.or(Some(index)),
                Token::LBracket | Token::LParen => open += 1,
                Token::RBracket | Token::RParen if open > 0 => open -= 1,
                Token::Eq if open == 0 && !brackets.is_empty() => {
                    if let Some(colon) = slice {
                        return Err(tokens.unsupported(colon, "an assignment to a slice"));
                    }
                    self.0.extend(brackets);
                    return Ok(());
                }
                _ if open == 0 => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether the assignments of a SET end before this word.
fn ends_assignments(tokens: &Tokens<'_>, word: &str, before: Option<usize>) -> bool {
    match word {
        "where" | "returning" => true,
        "from" => before.is_none_or(|before| tokens.word(before) != "distinct"),
        _ => false,
    }
}

/// Whether a part of a name stands for a subscript.
pub(super) fn is_subscript(ident: &Ident, before: &[ObjectNamePart]) -> bool {
    !before.is_empty() && ident.quote_style.is_some() && ident.value == SUBSCRIPT
}

/// The subscript that a part of a name stands for.
pub fn subscript(part: &ObjectNamePart) -> Option<&Expr> {
    let ObjectNamePart::Function(call) = part else {
        return None;
    };
    match call.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(index))] if call.name.value == SUBSCRIPT => {
            Some(index)
        }
        _ => None,
    }
}
