//! Functions of advisory locks, which the session answers before the statement runs.

use kiln_engine::{LockMode, LockScope};
use kiln_storage::error::Result;
use kiln_storage::types::{CatalogType, DataType, Value};
use sqlparser::ast::{Expr, Value as Literal};

use super::bound::Bound;
use super::session_value::SessionValue;
use super::{AdvisoryAction, AdvisoryCall, Compiler, Key, Position};

/// What a function does, if it is one of advisory locks.
fn named(name: &str) -> Option<(AdvisoryAction, LockMode, LockScope)> {
    use AdvisoryAction::{GiveBack, GiveBackAll, Take, TryTake};
    use LockMode::{Exclusive, Share};
    use LockScope::{Session, Transaction};
    Some(match name {
        "pg_advisory_lock" => (Take, Exclusive, Session),
        "pg_advisory_lock_shared" => (Take, Share, Session),
        "pg_advisory_xact_lock" => (Take, Exclusive, Transaction),
        "pg_advisory_xact_lock_shared" => (Take, Share, Transaction),
        "pg_try_advisory_lock" => (TryTake, Exclusive, Session),
        "pg_try_advisory_lock_shared" => (TryTake, Share, Session),
        "pg_try_advisory_xact_lock" => (TryTake, Exclusive, Transaction),
        "pg_try_advisory_xact_lock_shared" => (TryTake, Share, Transaction),
        "pg_advisory_unlock" => (GiveBack, Exclusive, Session),
        "pg_advisory_unlock_shared" => (GiveBack, Share, Session),
        "pg_advisory_unlock_all" => (GiveBackAll, Exclusive, Session),
        _ => return None,
    })
}

impl Compiler<'_> {
    /// Binds a call of a function of advisory locks; `None` for any other.
    ///
    /// # Errors
    /// 0A000 within a routine, and for a key that differs from row to row; 42883 for keys of other
    /// numbers or types.
    pub(super) fn bind_advisory(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Option<Bound>> {
        let Some((action, mode, scope)) = named(name) else {
            return Ok(None);
        };
        let types = match (action, arguments.len()) {
            (AdvisoryAction::GiveBackAll, _) => Vec::new(),
            (_, 2) => vec![DataType::Integer; 2],
            _ => vec![DataType::BigInt],
        };
        let bound = self.bind_known_arguments(name, arguments, &types, position)?;
        let keys = arguments.iter().zip(&bound);
        let keys = keys.map(|(expr, bound)| key(expr, bound)).collect();
        let call = AdvisoryCall {
            action,
            mode,
            scope,
            keys,
        };
        let is_told = call.is_told();
        let bound = self.ask_session(SessionValue::Advisory(call), name, position)?;
        Ok(Some(match is_told {
            true => bound,
            false => bound.relabel(DataType::Catalog(CatalogType::Void)),
        }))
    }
}

fn key(expr: &Expr, bound: &Bound) -> Key {
    match (bound.as_constant(), expr) {
        (Some(Value::BigInt(key)), _) => Key::Known(Some(*key)),
        (Some(Value::Integer(key)), _) => Key::Known(Some((*key).into())),
        (Some(Value::Null), _) => Key::Known(None),
        (_, Expr::Value(value)) if let Literal::Placeholder(written) = &value.value => {
            let number = written.trim_start_matches('$').parse();
            number.map_or_else(|_| Key::Computed(expr.to_string()), Key::Parameter)
        }
        _ => Key::Computed(expr.to_string()),
    }
}
