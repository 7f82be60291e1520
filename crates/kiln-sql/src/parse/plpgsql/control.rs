//! Parses what decides which statements run: IF, CASE, loops, EXIT and CONTINUE.

use super::ast::{CaseArm, ExitKind, ForRange, Loop, StatementKind, Target};
use super::parser::{Parser, Scope};
use super::sql;
use crate::parse::lexer::RANGE;
use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Token;

impl Parser<'_, '_> {
    pub(super) fn if_statement(&mut self) -> Result<StatementKind> {
        self.next += 1;
        let mut branches = Vec::new();
        loop {
            let condition = self.expression_until("then")?;
            branches.push((condition, self.statements()?));
            if !self.take_word("elsif") && !self.take_word("elseif") {
                break;
            }
        }
        let otherwise = if self.take_word("else") {
            self.statements()?
        } else {
            Vec::new()
        };
        self.end_of("if")?;
        Ok(StatementKind::If {
            branches,
            otherwise,
        })
    }

    /// `END word;`
    fn end_of(&mut self, word: &str) -> Result<()> {
        self.expect_word("end")?;
        self.expect_word(word)?;
        self.expect(&Token::SemiColon)
    }

    pub(super) fn case_statement(&mut self) -> Result<StatementKind> {
        let tokens = self.tokens;
        self.next += 1;
        let operand = if self.take_word("when") {
            None
        } else {
            Some(self.expression_until("when")?)
        };
        let mut arms = Vec::new();
        loop {
            let then = tokens.find(self.next, |tokens, index| tokens.word(index) == "then")?;
            let values = if operand.is_some() {
                tokens
                    .split(self.next..then)
                    .into_iter()
                    .map(|value| tokens.expression(value))
                    .collect::<Result<Vec<_>>>()?
            } else {
                vec![tokens.expression(self.next..then)?]
            };
            self.next = then + 1;
            arms.push(CaseArm {
                values,
                body: self.statements()?,
            });
            if !self.take_word("when") {
                break;
            }
        }
        let otherwise = if self.take_word("else") {
            Some(self.statements()?)
        } else {
            None
        };
        self.end_of("case")?;
        Ok(StatementKind::Case {
            operand,
            arms,
            otherwise,
        })
    }

    pub(super) fn any_loop(&mut self, label: Option<Ident>) -> Result<StatementKind> {
        let word = self.word().to_string();
        self.next += 1;
        match word.as_str() {
            "loop" => Ok(StatementKind::Loop(self.loop_body(label)?)),
            "while" => {
                let condition = self.expression_until("loop")?;
                let body = self.loop_body(label)?;
                Ok(StatementKind::While { condition, body })
            }
            "foreach" => {
                let target = self.target()?;
                if self.word() == "slice" {
                    return Err(self.tokens.unsupported(self.next, "FOREACH … SLICE"));
                }
                self.expect_word("in")?;
                self.expect_word("array")?;
                let array = self.expression_until("loop")?;
                let body = self.loop_body(label)?;
                Ok(StatementKind::ForEach {
                    target,
                    array,
                    body,
                })
            }
            _ => self.for_loop(label),
        }
    }

    /// The statements of a loop, from after its LOOP to its semicolon.
    pub(super) fn loop_body(&mut self, label: Option<Ident>) -> Result<Loop> {
        self.scopes.push(Scope {
            label: label.as_ref().map(|label| label.value.clone()),
            is_loop: true,
        });
        let body = self.statements()?;
        self.scopes.pop();
        self.expect_word("end")?;
        self.expect_word("loop")?;
        self.end_label(label.as_ref())?;
        self.expect(&Token::SemiColon)?;
        Ok(Loop { label, body })
    }

    fn for_loop(&mut self, label: Option<Ident>) -> Result<StatementKind> {
        let tokens = self.tokens;
        let first = self.next;
        let mut targets = vec![self.target()?];
        while *self.token() == Token::Comma {
            self.next += 1;
            targets.push(self.target()?);
        }
        self.expect_word("in")?;
        // REVERSE is a word like any other: a range that begins with it would be an operator's.
        let reverse = self.word() == "reverse" && *tokens.get(self.next + 1) != RANGE;
        let start = self.next + usize::from(reverse);
        let end = tokens.find(start, |tokens, index| tokens.word(index) == "loop")?;
        let dots = tokens.find(start, |tokens, index| {
            *tokens.get(index) == RANGE || tokens.word(index) == "loop"
        })?;
        if dots < end {
            let [Target { path, places, .. }] = targets.as_slice() else {
                return Err(tokens.error(
                    first,
                    SqlState::SYNTAX_ERROR,
                    "integer FOR loop must have only one target variable",
                ));
            };
            let ([variable], []) = (path.as_slice(), places.as_slice()) else {
                return Err(tokens.syntax_error(first + 1));
            };
            let variable = variable.clone();
            let by = tokens.find(dots + 1, |tokens, index| {
                matches!(tokens.word(index), "by" | "loop")
            })?;
            let from = tokens.expression(start..dots)?;
            let to = tokens.expression(dots + 1..by)?;
            let step = if by < end {
                Some(tokens.expression(by + 1..end)?)
            } else {
                None
            };
            self.next = end + 1;
            let body = self.loop_body(label)?;
            return Ok(StatementKind::ForRange(Box::new(ForRange {
                variable,
                reverse,
                from,
                to,
                step,
                body,
            })));
        }
        if reverse {
            return Err(tokens.error(
                self.next,
                SqlState::SYNTAX_ERROR,
                "cannot specify REVERSE in query FOR loop: syntax error",
            ));
        }
        match (tokens.word(start), tokens.get(start)) {
            (
                "select" | "with" | "values" | "table" | "insert" | "update" | "delete" | "merge",
                _,
            )
            | (_, Token::LParen)
            | ("execute", _) => {}
            (_, Token::Word(_)) if start + 1 == end || *tokens.get(start + 1) == Token::LParen => {
                return self.for_cursor(label, (first, targets), (start, end));
            }
            _ => return Err(tokens.syntax_error(start)),
        }
        let rows = sql::rows(tokens, start..end)?;
        self.next = end + 1;
        let body = self.loop_body(label)?;
        Ok(StatementKind::ForQuery {
            targets,
            rows,
            body,
        })
    }

    pub(super) fn exit(&mut self, kind: ExitKind) -> Result<StatementKind> {
        let tokens = self.tokens;
        let first = self.next;
        self.next += 1;
        let mut label = None;
        if self.word() != "when" && matches!(self.token(), Token::Word(_)) {
            let at = self.next;
            let name = self.identifier()?;
            let scope = self
                .scopes
                .iter()
                .rev()
                .find(|scope| scope.label.as_ref() == Some(&name.value));
            let message = match scope {
                None => format!(
                    "there is no label \"{}\" attached to any block or loop enclosing this \
                     statement",
                    name.value
                ),
                Some(scope) if kind == ExitKind::Continue && !scope.is_loop => {
                    format!("block label \"{}\" cannot be used in CONTINUE", name.value)
                }
                Some(_) => String::new(),
            };
            if !message.is_empty() {
                return Err(tokens.error_at(at, SqlState::SYNTAX_ERROR, message));
            }
            label = Some(name);
        } else if !self.scopes.iter().any(|scope| scope.is_loop) {
            let message = match kind {
                ExitKind::Exit => "EXIT cannot be used outside a loop, unless it has a label",
                ExitKind::Continue => "CONTINUE cannot be used outside a loop",
            };
            return Err(tokens.error_at(first, SqlState::SYNTAX_ERROR, message));
        }
        let condition = if self.take_word("when") {
            Some(self.expression_to_end()?)
        } else {
            self.expect(&Token::SemiColon)?;
            None
        };
        Ok(StatementKind::Exit {
            kind,
            label,
            condition,
        })
    }
}
