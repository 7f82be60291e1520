//! EXCEPTION clauses and GET DIAGNOSTICS.

use kiln_procedure::ir::{Condition, DiagnosticItem};
use kiln_storage::error::{Result, SqlState};
use sqlparser::tokenizer::Token;

use super::ast::{Handler, StatementKind};
use super::parser::Parser;

impl Parser<'_, '_> {
    /// `EXCEPTION WHEN …`, if it is next.
    pub(super) fn handlers(&mut self) -> Result<Vec<Handler>> {
        let mut handlers = Vec::new();
        if !self.take_word("exception") {
            return Ok(handlers);
        }
        loop {
            self.expect_word("when")?;
            let mut conditions = self.condition()?;
            while self.take_word("or") {
                conditions.extend(self.condition()?);
            }
            self.expect_word("then")?;
            let body = self.statements()?;
            handlers.push(Handler { conditions, body });
            if self.word() != "when" {
                return Ok(handlers);
            }
        }
    }

    /// A condition's name, or `SQLSTATE '…'`.
    fn condition(&mut self) -> Result<Vec<Condition>> {
        let (tokens, at) = (self.tokens, self.next);
        if self.take_word("sqlstate") {
            let Token::SingleQuotedString(code) = self.token() else {
                return Err(tokens.syntax_error(self.next));
            };
            let state = SqlState::parse(code).ok_or_else(|| {
                tokens.error(self.next, SqlState::SYNTAX_ERROR, "invalid SQLSTATE code")
            })?;
            self.next += 1;
            return Ok(vec![Condition::State(state)]);
        }
        let name = self.identifier()?.value;
        if name.eq_ignore_ascii_case("others") {
            return Ok(vec![Condition::Others]);
        }
        let states = SqlState::errors_of_condition(&name);
        let conditions: Vec<Condition> = states.map(Condition::State).collect();
        match conditions.is_empty() {
            false => Ok(conditions),
            true => {
                let message = format!("unrecognized exception condition \"{name}\"");
                Err(tokens.error_at(at, SqlState::UNDEFINED_OBJECT, message))
            }
        }
    }

    /// `GET [CURRENT | STACKED] DIAGNOSTICS target = item, …`.
    pub(super) fn get_diagnostics(&mut self) -> Result<StatementKind> {
        self.next += 1;
        let is_stacked = self.take_word("stacked");
        if !is_stacked {
            self.take_word("current");
        }
        self.expect_word("diagnostics")?;
        let (mut counts, mut stacked) = (Vec::new(), Vec::new());
        loop {
            let target = self.target()?;
            if !matches!(self.token(), Token::Assignment | Token::Eq) {
                return Err(self.tokens.syntax_error(self.next));
            }
            self.next += 1;
            match self.diagnostic_item(is_stacked)? {
                Some(item) => stacked.push((target, item)),
                None => counts.push(target),
            }
            if *self.token() != Token::Comma {
                break;
            }
            self.next += 1;
        }
        self.expect(&Token::SemiColon)?;
        Ok(match is_stacked {
            true => StatementKind::GetStacked(stacked),
            false => StatementKind::GetRowCount(counts),
        })
    }

    /// An item; `None` for ROW_COUNT.
    fn diagnostic_item(&mut self, is_stacked: bool) -> Result<Option<DiagnosticItem>> {
        let (tokens, at) = (self.tokens, self.next);
        let word = self.word().to_ascii_uppercase();
        let item = match word.as_str() {
            "ROW_COUNT" => None,
            "PG_CONTEXT" | "PG_ROUTINE_OID" if !is_stacked => {
                let feature = format!("GET DIAGNOSTICS of {word}");
                return Err(tokens.unsupported(at, &feature));
            }
            "PG_CONTEXT" | "PG_ROUTINE_OID" => None,
            "RETURNED_SQLSTATE" => Some(DiagnosticItem::ReturnedSqlState),
            "MESSAGE_TEXT" => Some(DiagnosticItem::MessageText),
            "PG_EXCEPTION_DETAIL" => Some(DiagnosticItem::Detail),
            "PG_EXCEPTION_HINT" => Some(DiagnosticItem::Hint),
            "PG_EXCEPTION_CONTEXT" => Some(DiagnosticItem::Context),
            "COLUMN_NAME" => Some(DiagnosticItem::ColumnName),
            "CONSTRAINT_NAME" => Some(DiagnosticItem::ConstraintName),
            "PG_DATATYPE_NAME" => Some(DiagnosticItem::DataTypeName),
            "TABLE_NAME" => Some(DiagnosticItem::TableName),
            "SCHEMA_NAME" => Some(DiagnosticItem::SchemaName),
            _ => {
                let message = "unrecognized GET DIAGNOSTICS item";
                return Err(tokens.error(at, SqlState::SYNTAX_ERROR, message));
            }
        };
        if item.is_some() != is_stacked {
            let kind = if is_stacked { "STACKED" } else { "CURRENT" };
            let message =
                format!("diagnostics item {word} is not allowed in GET {kind} DIAGNOSTICS");
            return Err(tokens.error_at(at, SqlState::SYNTAX_ERROR, message));
        }
        self.next += 1;
        Ok(item)
    }
}
