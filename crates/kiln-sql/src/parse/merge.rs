//! MERGE. The SQL parser knows the statement as several other databases have it; what PostgreSQL
//! has beside, it gets in other words, and what PostgreSQL does not have is a syntax error.

use std::collections::BTreeMap;
use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::{
    Expr, Ident, Merge, MergeAction, MergeClauseKind, MergeInsertExpr, MergeInsertKind,
    MergeUpdateKind, Statement as Tree,
};
use sqlparser::tokenizer::Token;

use super::sequence::Overriding;
use super::statement::Statement;
use super::tokens::Tokens;

/// The quote of a name that stands for words. No statement can write it.
const QUOTE: char = '`';

/// What stands for `DEFAULT VALUES`.
const DEFAULT_VALUES: &str = "default values";

/// The tokens that stand for others in MERGE, by the indexes of these.
struct MergeWords<'i>(&'i mut BTreeMap<usize, Vec<Token>>);

/// Puts what stands for words of MERGE among some tokens of a statement into `instead`.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    let begin = indexes
        .iter()
        .position(|index| tokens.words(*index, &["merge", "into"]));
    if let Some(begin) = begin {
        enclose_join(tokens, &indexes[begin..], instead);
        let inserts = indexes.iter().enumerate();
        let inserts = inserts.filter(|(_, index)| tokens.words(**index, &["then", "insert"]));
        for (at, _) in inserts {
            MergeWords(instead).look(tokens, indexes.get(at + 2..).unwrap_or_default());
        }
    }
    Ok(())
}

/// Puts parentheses around a join behind USING, which the SQL parser wants there.
fn enclose_join(tokens: &Tokens<'_>, indexes: &[usize], instead: &mut BTreeMap<usize, Vec<Token>>) {
    let (mut depth, mut cases) = (0_i64, 0_usize);
    let (mut first, mut last_on, mut is_join) = (None, None, false);
    for (at, index) in indexes.iter().enumerate() {
        match tokens.get(*index) {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            _ if depth != 0 => {}
            _ => match tokens.word(*index) {
                "using" if first.is_none() => first = indexes.get(at + 1).copied(),
                "join" => is_join |= first.is_some(),
                "case" => cases += 1,
                "end" => cases = cases.saturating_sub(1),
                "on" if is_join => last_on = Some(*index),
                "when" if cases == 0 => break,
                _ => {}
            },
        }
    }
    if let (Some(first), Some(on)) = (first, last_on) {
        let own = |index: usize| vec![tokens.get(index).clone()];
        let before = instead.entry(first).or_insert_with(|| own(first));
        before.insert(0, Token::LParen);
        let behind = instead.entry(on).or_insert_with(|| own(on));
        behind.insert(0, Token::RParen);
    }
}

impl MergeWords<'_> {
    /// Looks at what stands behind INSERT.
    fn look(&mut self, tokens: &Tokens<'_>, indexes: &[usize]) {
        let name = |text: &str| Token::make_word(text, Some(QUOTE));
        let first = indexes.first().copied().unwrap_or_default();
        if tokens.words(first, &["default", "values"]) {
            let values = [
                Token::make_keyword("values"),
                Token::LParen,
                name(DEFAULT_VALUES),
                Token::RParen,
            ];
            self.0.insert(first, values.to_vec());
            self.0.insert(first + 1, Vec::new());
            return;
        }
        let behind_columns = match tokens.get(first) {
            Token::LParen => {
                let is_in_list = |at: &&usize| match tokens.get(**at) {
                    Token::LParen => **at == first,
                    token => matches!(token, Token::Word(_) | Token::Comma | Token::Period),
                };
                let close = indexes.iter().take_while(is_in_list).count();
                let is_close = |at: &usize| *tokens.get(*at) == Token::RParen;
                indexes.get(close).filter(|at| is_close(at)).map(|_| close)
            }
            _ => None,
        };
        let at = behind_columns.map_or(0, |close| close + 1);
        let Some(words) = indexes.get(at..at + 5) else {
            return;
        };
        let Some(marker) = Overriding::marker(tokens, words[0]) else {
            return;
        };
        if tokens.word(words[3]) == "values" && *tokens.get(words[4]) == Token::LParen {
            for word in &words[..3] {
                self.0.insert(*word, Vec::new());
            }
            let values = vec![Token::LParen, name(marker), Token::Comma];
            self.0.insert(words[4], values);
        }
    }
}

/// Parses the tokens of `parts` as MERGE.
pub(super) fn merge(tokens: &Tokens<'_>, parts: &[Range<usize>]) -> Result<Statement> {
    let first = parts.first().map_or(0, |part| part.start);
    if tokens.word(first + 1) != "into" {
        return Err(tokens.syntax_error(first + 1));
    }
    match tokens.sql_parts(None, parts, |parser| parser.parse_statement())? {
        Tree::Merge(merge) if is_merge_of_postgres(&merge) => Ok(Statement::Merge(Box::new(merge))),
        _ => Err(tokens.syntax_error(first)),
    }
}

/// Whether PostgreSQL has all that a MERGE says.
pub fn is_merge_of_postgres(merge: &Merge) -> bool {
    let mut clauses = merge.clauses.iter();
    let is_known = clauses.all(|clause| {
        let is_kind = matches!(
            clause.clause_kind,
            MergeClauseKind::Matched | MergeClauseKind::NotMatched
        );
        is_kind
            && match &clause.action {
                MergeAction::Update(update) => {
                    matches!(update.kind, MergeUpdateKind::Set(_))
                        && update.update_predicate.is_none()
                        && update.delete_predicate.is_none()
                }
                MergeAction::Insert(insert) => {
                    let is_row = |kind: &MergeInsertKind| {
                        matches!(kind, MergeInsertKind::Values(values) if values.rows.len() == 1)
                    };
                    is_row(&insert.kind) && insert.insert_predicate.is_none()
                }
                MergeAction::Delete { .. } | MergeAction::DoNothing { .. } => true,
            }
    });
    merge.into && merge.output.is_none() && !merge.clauses.is_empty() && is_known
}

/// The row that an INSERT of MERGE inserts, and what it overrides; no row stands for default
/// values.
pub fn merged_row(insert: &MergeInsertExpr) -> (Option<&[Expr]>, Option<Overriding>) {
    let MergeInsertKind::Values(values) = &insert.kind else {
        return (None, None);
    };
    let row = values.rows.first().map_or(&[][..], |row| &row.content);
    let marker = match row.first() {
        Some(Expr::Identifier(Ident {
            value,
            quote_style: Some(QUOTE),
            ..
        })) => value.as_str(),
        _ => return (Some(row), None),
    };
    match Overriding::of_marker(marker) {
        Some(overriding) => (Some(&row[1..]), Some(overriding)),
        None => (None, None),
    }
}
