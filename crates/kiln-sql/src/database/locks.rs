//! Advisory locks and LOCK TABLE: what clients lock by name.

use kiln_engine::{
    Access, ListedLock, LockMode, LockScope, LockTarget, NumberedObject, Object, Privilege,
};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::types::{DataType, Value};

use super::prepared::Statement;
use super::result::{Notice, StatementResult};
use super::session::Session;
use crate::catalog::relation_of;
use crate::compile::{AdvisoryAction, AdvisoryCall, Key};
use crate::parse::{LockTable, SourceStatement};

impl Session {
    /// What a function of advisory locks gives; NULL, and nothing is locked, when a key is NULL.
    pub(super) fn advisory(
        &mut self,
        call: &AdvisoryCall,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Value> {
        let done = Value::Text(String::new());
        if call.action == AdvisoryAction::GiveBackAll {
            self.session.unlock_all();
            return Ok(done);
        }
        let mut keys = Vec::with_capacity(call.keys.len());
        let data_type = match call.keys.len() {
            1 => DataType::BigInt,
            _ => DataType::Integer,
        };
        for key in &call.keys {
            match self.key(key, &data_type, statement, values)? {
                Some(key) => keys.push(key),
                None => return Ok(Value::Null),
            }
        }
        let narrow = |key: i64| i32::try_from(key).map_err(|_| Error::internal("a wide key"));
        let target = match keys.as_slice() {
            [key] => LockTarget::Key(*key),
            [first, second] => LockTarget::Keys(narrow(*first)?, narrow(*second)?),
            _ => return Err(Error::internal("an advisory lock has one key or two")),
        };
        let (session, mode) = (&mut self.session, call.mode);
        match call.action {
            AdvisoryAction::Take => session.lock(target, mode, call.scope).map(|()| done),
            AdvisoryAction::TryTake => {
                let is_taken = session.try_lock(target, mode, call.scope);
                is_taken.map(Value::Boolean)
            }
            _ => {
                let was_held = session.unlock(target, mode);
                if !was_held {
                    let message = format!("you don't own a lock of type {}", mode.name());
                    let warnings = self.warnings.get_or_insert_default();
                    warnings.0.push(Notice::warning(&message));
                }
                Ok(Value::Boolean(was_held))
            }
        }
    }

    /// A key; `None` for NULL.
    fn key(
        &mut self,
        key: &Key,
        data_type: &DataType,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Option<i64>> {
        let value = match key {
            Key::Known(key) => return Ok(*key),
            Key::Parameter(number) => values.get(number - 1).cloned().unwrap_or_default(),
            Key::Computed(expr) => self.computed(expr, data_type, statement, values)?,
        };
        match value {
            Value::Null => Ok(None),
            Value::SmallInt(key) => Ok(Some(key.into())),
            Value::Integer(key) => Ok(Some(key.into())),
            Value::BigInt(key) => Ok(Some(key)),
            _ => Err(Error::internal("a key of an advisory lock is a number")),
        }
    }

    /// The value of an expression that may name the parameters of a statement.
    pub(super) fn computed(
        &mut self,
        expr: &str,
        data_type: &DataType,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Value> {
        let text = format!("SELECT CAST(({expr}) AS {data_type})");
        let source = SourceStatement::from(text.as_str());
        let declared = statement.parameters().iter().cloned().map(Some).collect();
        let query = self.analyse(&source, declared)?;
        let rows = self.run_data(&query, values)?.result.unwrap_or_default();
        Ok(rows.rows.into_iter().flatten().next().unwrap_or_default())
    }

    /// LOCK TABLE.
    pub(super) fn lock_tables(&mut self, lock: &LockTable) -> Result<StatementResult> {
        if !self.session.in_transaction() {
            let message = "LOCK TABLE can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        }
        for written in &lock.tables {
            let name = relation_of(&self.seen(), written)?;
            let Some(target) = self.lockable(&name, lock.mode)? else {
                continue;
            };
            let scope = LockScope::Transaction;
            if !lock.no_wait {
                self.session.lock(target, lock.mode, scope)?;
            } else if !self.session.try_lock(target, lock.mode, scope)? {
                let name = name_in_schema(&name);
                let message = format!("could not obtain lock on relation \"{name}\"");
                return Err(Error::new(SqlState::LOCK_NOT_AVAILABLE, message));
            }
        }
        Ok(StatementResult::of_tag("LOCK TABLE"))
    }

    /// The table of this name, which the role may lock; `None` for one that the block has made, or
    /// that is temporary, and no other session knows.
    ///
    /// # Errors
    /// 42P01, 42809 for what is no table, 0A000 for a view; 42501.
    fn lockable(&self, name: &str, mode: LockMode) -> Result<Option<LockTarget>> {
        let catalog = self.session.catalog();
        if catalog.view(name).is_some() {
            let error = Error::unsupported("LOCK TABLE of a view");
            return Err(error.with_hint("Lock the tables that it reads."));
        }
        if catalog.table(name).is_none() && catalog.sequence(name).is_some() {
            let name = name_in_schema(name);
            let message = format!("cannot lock relation \"{name}\"");
            let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
            return Err(error.with_detail("This operation is not supported for sequences."));
        }
        catalog.require_table(name)?;
        if catalog.is_temporary(name) {
            return Ok(None);
        }
        let roles = catalog.roles();
        let role = roles.require(self.acting_role())?;
        let access = |privilege| Access::of_caller(Object::table(name), privilege);
        let sufficient: &[Privilege] = match mode {
            LockMode::AccessShare => &[Privilege::Select],
            LockMode::RowExclusive => &[
                Privilege::Insert,
                Privilege::Update,
                Privilege::Delete,
                Privilege::Truncate,
            ],
            _ => &[Privilege::Update, Privilege::Delete, Privilege::Truncate],
        };
        let mut any = sufficient.iter();
        if !any.any(|privilege| roles.allows(role, &access(*privilege))) {
            roles.check(role, &access(sufficient[0]))?;
        }
        let number = catalog
            .numbers()
            .get(&NumberedObject::Table(name.to_owned()));
        Ok(number.map(LockTarget::Table))
    }
}

/// Locks for `pg_locks`: eight texts for each.
pub(super) fn listed(locks: &[ListedLock]) -> Vec<String> {
    let rows = locks.iter().map(|lock| {
        // The two halves of a key are shown as if they were numbers of objects.
        let (kind, numbers) = match lock.target {
            LockTarget::Key(key) => {
                let key = key.cast_unsigned();
                ("advisory", [key >> 32, key & 0xffff_ffff, 1])
            }
            LockTarget::Keys(first, second) => {
                let [first, second] = [first, second].map(|key| u64::from(key.cast_unsigned()));
                ("advisory", [first, second, 2])
            }
            LockTarget::Table(number) => ("relation", [number.into(), 0, 0]),
            LockTarget::Row(number, _) => ("tuple", [number.into(), 0, 0]),
        };
        let [first, second, third] = numbers.map(|number| number.to_string());
        let since = lock.waits_since_us.map(|since| since.to_string());
        [
            kind.to_owned(),
            first,
            second,
            third,
            lock.session.to_string(),
            lock.mode.name().to_owned(),
            since.is_none().to_string(),
            since.unwrap_or_default(),
        ]
    });
    rows.flatten().collect()
}
