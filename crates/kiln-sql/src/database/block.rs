//! Transaction blocks: how they begin and end, and the definitions in them.

use kiln_engine::{Ended, Source};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::datetime;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::definition::{Definition, DefinitionOfBlock};
use super::prepared::Statement;
use super::result::{Notice, StatementResult};
use super::session::Session;
use super::settings::Modes;
use super::tables::{referring_first, truncated};
use super::{roles, settings};
use crate::catalog::relation_of;
use crate::compile::sql_name;
use crate::parse::{Begin, SourceStatement, Statement as Tree};

/// Refuses what a catalog would keep as text and what would mean another moment in another zone: a
/// literal of a time without its zone, unless its type says that it has none. The catalog's literals
/// are in UTC.
///
/// # Errors
/// 0A000.
fn refuse_local_times(tree: &Tree, source: &Source) -> Result<()> {
    if matches!(tree, Tree::Comment(_)) {
        return Ok(());
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, &source.text).tokenize();
    let mut tokens = tokens.unwrap_or_default();
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    for (at, token) in tokens.iter().enumerate() {
        let (Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) = token else {
            continue;
        };
        let before = at.checked_sub(1).map(word).unwrap_or_default();
        let after = match tokens.get(at + 1) {
            Some(Token::DoubleColon) => word(at + 2),
            _ => String::new(),
        };
        let has_none = matches!(before.as_str(), "date" | "timestamp")
            || matches!(after.as_str(), "date" | "text" | "varchar")
            || after == "timestamp" && word(at + 3) != "with";
        if !has_none && datetime::depends_on_zone(text) {
            let message =
                format!("the time '{text}' without its zone in a definition is not supported");
            return Err(Error::unsupported(message).with_hint(
                "Write its offset behind it, or SET timezone = 'UTC' for the definition.",
            ));
        }
    }
    Ok(())
}

/// How often a statement is started again that had to be run as several programs and met a
/// conflict, before the conflict is reported.
pub(super) const ATTEMPTS_MAX: usize = 1_000;

fn no_transaction() -> Notice {
    Notice::of_transaction(
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        "there is no transaction in progress",
    )
}

impl Session {
    pub(super) fn begin(&mut self, statement: &Begin) -> Result<StatementResult> {
        let modes = settings::modes_of(&statement.modes, false);
        let mut result = StatementResult::of_tag(statement.tag());
        if self.session.in_transaction() {
            result = result.with_notice(Notice::of_transaction(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "there is already a transaction in progress",
            ));
        } else {
            self.session.begin()?;
            self.settings.begin_block();
        }
        for mode in modes {
            self.assign(mode)?;
        }
        Ok(result)
    }

    pub(super) fn commit(&mut self) -> Result<StatementResult> {
        if !self.session.in_transaction() {
            return Ok(StatementResult::of_tag("COMMIT").with_notice(no_transaction()));
        }
        let ended = self.commit_block();
        self.end_block(matches!(ended, Ok(Ended::Committed)));
        match ended? {
            Ended::Committed => Ok(StatementResult::of_tag("COMMIT")),
            Ended::RolledBack => Ok(StatementResult::of_tag("ROLLBACK")),
        }
    }

    /// Ends the open block by `end`, and begins another one that is like it.
    ///
    /// # Errors
    /// 25P01 outside of a block; those of `end`.
    pub(super) fn and_chain(
        &mut self,
        command: &str,
        end: impl FnOnce(&mut Session) -> Result<StatementResult>,
    ) -> Result<StatementResult> {
        if !self.session.in_transaction() {
            let message = format!("{command} AND CHAIN can only be used in transaction blocks");
            return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        }
        let modes = self.settings.modes;
        let result = end(self)?;
        self.begin(&Begin::default())?;
        self.settings.modes = Modes {
            has_looked: false,
            ..modes
        };
        Ok(result)
    }

    /// Commits the open block. What was compiled before it has defined anything is of no use any
    /// more.
    pub(super) fn commit_block(&mut self) -> Result<Ended> {
        let has_defined = self.session.has_definitions();
        let checked = match self.session.has_failed() {
            true => Ok(()),
            false => self.check_pending(|_| true),
        };
        let ended = match checked {
            Ok(()) => self.session.commit(),
            Err(error) => self.session.roll_back().and(Err(error)),
        };
        if has_defined {
            self.statements.clear();
        }
        ended
    }

    pub(super) fn end_without_effects(&mut self) -> Result<StatementResult> {
        let result = StatementResult::of_tag("ROLLBACK");
        if !self.session.in_transaction() {
            return Ok(result.with_notice(no_transaction()));
        }
        self.session.roll_back()?;
        self.end_block(false);
        Ok(result)
    }

    /// A block is over, however it has ended: so are settings and cursors of it.
    pub(super) fn end_block(&mut self, is_committed: bool) {
        self.savepoints.clear();
        let analyses = self
            .rare
            .as_mut()
            .map(|it| std::mem::take(&mut it.analyses));
        let analyses = analyses.filter(|_| is_committed);
        for (tree, source) in analyses.into_iter().flatten() {
            // The block has committed whatever becomes of it; it may be tried again.
            let by = (self.acting_role(), self.settings.has_style());
            let _ = Definition::new(self.session.engine(), source, by).run(&tree);
        }
        self.names.end_block(is_committed);
        if self.settings.end_block(is_committed) {
            self.apply_settings();
        }
    }

    /// Runs several statements or programs as one transaction: within the open block, or in one of
    /// their own that starts again after a conflict.
    pub(super) fn in_one_transaction<T>(
        &mut self,
        mut body: impl FnMut(&mut Session) -> Result<T>,
    ) -> Result<T> {
        if self.session.in_transaction() {
            return body(self);
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.session.check_limits()?;
            self.session.begin()?;
            let result = match body(self) {
                Ok(value) => self.commit_block().map(|_| value),
                Err(error) => {
                    self.session.roll_back()?;
                    Err(error)
                }
            };
            match result {
                Err(error)
                    if error.state() == SqlState::SERIALIZATION_FAILURE
                        && attempts < ATTEMPTS_MAX => {}
                result => return result,
            }
        }
    }

    pub(super) fn define(&mut self, tree: &Tree, statement: &Statement) -> Result<StatementResult> {
        let position = statement.position();
        let source = Source {
            text: statement.text().to_owned(),
            line: position.line,
            column: position.column,
            path: statement.path().clone(),
        };
        self.define_as(tree, source)
    }

    /// Makes the change of a statement that defines, in the open block or by itself.
    pub(super) fn define_as(&mut self, tree: &Tree, mut source: Source) -> Result<StatementResult> {
        if self.settings.get("timezone") != Some("UTC") {
            refuse_local_times(tree, &source)?;
        }
        if self.is_of_temporary(tree)? {
            return match tree {
                // No column of theirs is split.
                Tree::Analyze(_) => Ok(StatementResult::of_tag("ANALYZE")),
                tree => self.define_temporary(tree, source),
            };
        }
        source.path = self.permanent_path(source.path);
        let logged = roles::to_log(tree, self.acting_role())?;
        if self.session.in_transaction() {
            let (tree, source) = logged.unwrap_or_else(|| (tree.clone(), source));
            return self.define_in_block(tree, source);
        }
        let (engine, by) = (
            self.session.engine(),
            (self.acting_role(), self.settings.has_style()),
        );
        let result = match logged {
            Some((tree, source)) => Definition::new(engine, source, by).run(&tree),
            None => Definition::new(engine, source, by).run(tree),
        };
        self.statements.clear();
        result
    }

    pub(super) fn define_in_block(
        &mut self,
        tree: Tree,
        source: Source,
    ) -> Result<StatementResult> {
        if let Tree::Analyze(tables) = &tree {
            let catalog = self.seen();
            for table in tables {
                catalog.require_table(&relation_of(&catalog, table)?)?;
            }
            // It changes nothing that the block could see.
            let rare = self.rare.get_or_insert_default();
            rare.analyses.push((tree, source));
            return Ok(StatementResult::of_tag("ANALYZE"));
        }
        self.refuse_pending(&tree)?;
        let by = (self.acting_role(), self.settings.has_style());
        let defined = Arc::new(DefinitionOfBlock::new(Arc::new(tree), source, by));
        let definition: Arc<dyn kiln_engine::Definition> = defined.clone();
        self.session.define(&definition)?;
        Ok(defined.take_result())
    }

    /// TRUNCATE in a transaction block, which must be undone with it: row by row, and those that
    /// refer to others first.
    pub(super) fn truncate_in_block(
        &mut self,
        truncate: &sqlparser::ast::Truncate,
    ) -> Result<StatementResult> {
        let catalog = self.seen();
        let names = truncated(&catalog, truncate)?;
        for name in referring_first(&catalog, names) {
            let delete = format!("DELETE FROM {}", sql_name(&name));
            let source = SourceStatement::from(delete.as_str());
            let statement = self.analyse(&source, Vec::new())?;
            self.run_data(&statement, &[])?;
        }
        Ok(StatementResult::of_tag("TRUNCATE TABLE"))
    }
}
