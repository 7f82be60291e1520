//! `UPDATE t SET a[2] = …`: the SQL parser knows no subscripts in the target of an assignment. It
//! gets `a."[]"(2)`, a name with a function as a part; for a slice `a."[_:_]"(2, 3)`, whose name
//! says which bounds there are.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart};
use sqlparser::tokenizer::Token;
use std::collections::BTreeMap;

use super::tokens::Tokens;

/// What stands for a subscript among the parts of a name.
const SUBSCRIPT: &str = "[]";

/// What stands for a slice, by whether it has a lower and an upper bound.
const SLICES: [[&str; 2]; 2] = [["[:]", "[:_]"], ["[_:]", "[_:_]"]];

/// A subscript in the target of an assignment.
#[derive(Clone, Copy)]
pub enum Subscript<'e> {
    /// `[2]`.
    Element(&'e Expr),
    /// `[2:3]`, with the bounds that are written.
    Slice(Option<&'e Expr>, Option<&'e Expr>),
}

/// The tokens that stand for the brackets behind targets of assignments, by the indexes of these.
pub(super) struct Subscripts(BTreeMap<usize, Vec<Token>>);

impl Subscripts {
    /// Those among some tokens of a statement.
    pub(super) fn of(tokens: &Tokens<'_>, indexes: &[usize]) -> Subscripts {
        let mut found = Subscripts(BTreeMap::new());
        let is_bracket = |index: &usize| *tokens.get(*index) == Token::LBracket;
        if indexes.iter().any(is_bracket) {
            found.look(tokens, indexes);
        }
        found
    }

    /// What stands for a token.
    pub(super) fn at(&self, index: usize) -> Option<&[Token]> {
        self.0.get(&index).map(Vec::as_slice)
    }

    fn look(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) {
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
                Token::Comma if is_in_set => self.target(tokens, &indexes[at + 1..]),
                _ if word == "set" => {
                    sets.push(open);
                    self.target(tokens, &indexes[at + 1..]);
                }
                _ if is_in_set
                    && ends_assignments(tokens, word, at.checked_sub(1).map(|at| indexes[at])) =>
                {
                    sets.pop();
                }
                _ => {}
            }
        }
    }

    /// Notes the brackets of the name that these tokens begin with, if `=` is behind them.
    fn target(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) {
        let name = indexes
            .iter()
            .take_while(|index| matches!(tokens.get(**index), Token::Word(_) | Token::Period));
        let rest = &indexes[name.count()..];
        let (mut open, mut brackets) = (0_usize, Vec::new());
        // Where the subscript begins that is open, and the colon of its slice.
        let (mut begin, mut colon) = (0, None);
        for (at, index) in rest.iter().copied().enumerate() {
            match tokens.get(index) {
                Token::LBracket if open == 0 => {
                    (begin, colon) = (at, None);
                    open = 1;
                }
                Token::RBracket if open == 1 => {
                    let name = match colon {
                        None => SUBSCRIPT,
                        Some(colon) => {
                            let (has_lower, has_upper) = (colon > begin + 1, at > colon + 1);
                            let separator = (has_lower && has_upper).then_some(Token::Comma);
                            brackets.push((rest[colon], separator.into_iter().collect()));
                            SLICES[usize::from(has_lower)][usize::from(has_upper)]
                        }
                    };
                    let name = Token::make_word(name, Some('"'));
                    brackets.push((rest[begin], vec![Token::Period, name, Token::LParen]));
                    brackets.push((index, vec![Token::RParen]));
                    open = 0;
                }
                Token::Colon if open == 1 && colon.is_none() => colon = Some(at),
                Token::LBracket | Token::LParen => open += 1,
                Token::RBracket | Token::RParen if open > 0 => open -= 1,
                Token::Eq if open == 0 && !brackets.is_empty() => {
                    self.0.extend(brackets);
                    return;
                }
                Token::Word(_) | Token::Period if open == 0 && !brackets.is_empty() => {}
                _ if open == 0 => return,
                _ => {}
            }
        }
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
    let is_slice = || SLICES.as_flattened().contains(&ident.value.as_str());
    !before.is_empty() && ident.quote_style.is_some() && (ident.value == SUBSCRIPT || is_slice())
}

/// The subscript that a part of a name stands for.
pub fn subscript(part: &ObjectNamePart) -> Option<Subscript<'_>> {
    let ObjectNamePart::Function(call) = part else {
        return None;
    };
    let mut bounds = call.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(bound)) => Some(bound),
        _ => None,
    });
    if call.name.value == SUBSCRIPT {
        return bounds.next().map(Subscript::Element);
    }
    let name = call.name.value.as_str();
    let slices = SLICES.as_flattened().iter();
    let form = slices.enumerate().find(|(_, known)| **known == name)?.0;
    let lower = if form & 2 != 0 { bounds.next() } else { None };
    let upper = if form & 1 != 0 { bounds.next() } else { None };
    Some(Subscript::Slice(lower, upper))
}
