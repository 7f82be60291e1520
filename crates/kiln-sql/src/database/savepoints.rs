//! Savepoints of a transaction block.

use kiln_storage::error::{Error, Result, SqlState};

use super::held::Named;
use super::result::StatementResult;
use super::session::Session;

/// Savepoints that a block may have at a time.
const SAVEPOINTS_MAX: usize = 10_000;

impl Session {
    /// SAVEPOINT.
    pub(super) fn set_savepoint(&mut self, name: &str) -> Result<StatementResult> {
        self.check_block("SAVEPOINT")?;
        if self.savepoints.len() >= SAVEPOINTS_MAX {
            let message = format!("a transaction block has at most {SAVEPOINTS_MAX} savepoints");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let place = self.session.savepoint()?;
        self.savepoints.push(Named {
            name: name.to_owned(),
            place,
            settings: self.settings.save(),
            modes: self.session.constraint_modes(),
        });
        Ok(StatementResult::of_tag("SAVEPOINT"))
    }

    /// RELEASE: the savepoint and those after it are forgotten.
    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<StatementResult> {
        self.check_block("RELEASE SAVEPOINT")?;
        let position = self.find_savepoint(name)?;
        self.settings.release(&self.savepoints[position].settings);
        self.savepoints.truncate(position);
        self.names.end_savepoints(position, false);
        Ok(StatementResult::of_tag("RELEASE"))
    }

    /// ROLLBACK TO: what was done after the savepoint is undone, and those after it are forgotten.
    pub(super) fn roll_back_to(&mut self, name: &str) -> Result<StatementResult> {
        self.check_block("ROLLBACK TO SAVEPOINT")?;
        let position = self.find_savepoint(name)?;
        self.savepoints.truncate(position + 1);
        self.names.end_savepoints(position, true);
        let Named {
            place,
            settings,
            modes,
            ..
        } = &self.savepoints[position];
        self.settings.restore(settings);
        self.session.set_constraint_modes(modes.clone());
        let place = *place;
        self.apply_settings();
        self.session.roll_back_to(place)?;
        Ok(StatementResult::of_tag("ROLLBACK"))
    }

    /// # Errors
    /// 25P01 outside of a block.
    fn check_block(&self, command: &str) -> Result<()> {
        if self.in_transaction() {
            return Ok(());
        }
        let message = format!("{command} can only be used in transaction blocks");
        Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message))
    }

    /// The last savepoint of this name.
    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let found = (self.savepoints.iter()).rposition(|savepoint| savepoint.name == name);
        found.ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            Error::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, message)
        })
    }
}
