//! What a call knows of its transaction and its session: constraints that may be checked at the end
//! of a transaction, and when they are; how its session writes texts.

use kiln_platform::sync::Arc;

use crate::bytes::append_string;
use crate::types::Value;

/// A REFERENCES constraint or a unique key whose check may wait until the transaction ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeferredCheck {
    /// The table that has the constraint.
    pub table: String,
    /// The constraint's name.
    pub constraint: String,
    /// The table that it refers to; of a unique key, the table that has it.
    pub referenced: String,
    /// Whether rows of the referenced table have changed, and not of the one that refers to it.
    pub is_of_referenced: bool,
}

impl DeferredCheck {
    /// Appends what tells it from others.
    pub fn append_to(&self, target: &mut Vec<u8>) {
        for name in [&self.table, &self.constraint, &self.referenced] {
            append_string(target, name.as_bytes());
        }
        target.push(self.is_of_referenced.into());
    }
}

/// Keys whose check waits.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCheck {
    /// The constraint.
    pub check: DeferredCheck,
    /// The keys, each with a value for each of the constraint's columns.
    pub keys: Vec<Vec<Value>>,
}

impl PendingCheck {
    /// The memory that the keys take, in bytes, roughly.
    pub fn bytes(&self) -> usize {
        let mut bytes = Vec::new();
        for value in self.keys.iter().flatten() {
            value.append_to(&mut bytes);
        }
        bytes.len() + self.keys.len() * size_of::<Vec<Value>>()
    }
}

/// What a call is a part of.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// When deferrable constraints are checked, for a procedure that is a part of a larger
    /// transaction; in one of its own they are at its end.
    pub constraint_modes: Option<Arc<ConstraintModes>>,
    /// How its session writes texts, as [`Style::bytes_of`](crate::types::Style::bytes_of) has it;
    /// none for the default.
    pub style: Option<Arc<[u8]>>,
}

/// What SET CONSTRAINTS has said in a transaction block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstraintModes {
    /// Whether all constraints wait.
    all: Option<bool>,
    /// Whether single ones do, by their table and name; they override what was said of all.
    named: Vec<(String, String, bool)>,
}

impl ConstraintModes {
    /// SET CONSTRAINTS ALL.
    pub fn set_all(&mut self, is_deferred: bool) {
        self.all = Some(is_deferred);
        self.named.clear();
    }

    /// SET CONSTRAINTS of one.
    pub fn set(&mut self, table: &str, constraint: &str, is_deferred: bool) {
        self.named
            .retain(|(of, name, _)| of != table || name != constraint);
        self.named
            .push((table.to_owned(), constraint.to_owned(), is_deferred));
    }

    /// Whether a deferrable constraint waits, which does `initially` or not.
    pub fn is_deferred(&self, table: &str, constraint: &str, initially: bool) -> bool {
        let mut named = self.named.iter();
        let found = named.find(|(of, name, _)| of == table && name == constraint);
        let found = found.map(|(.., is_deferred)| *is_deferred);
        found.or(self.all).unwrap_or(initially)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_holds() {
        let mut modes = ConstraintModes::default();
        let both = |modes: &ConstraintModes| {
            ["a", "b"].map(|name| modes.is_deferred("t", name, name == "b"))
        };
        assert_eq!(both(&modes), [false, true]);
        modes.set("t", "a", true);
        assert_eq!(both(&modes), [true, true]);
        modes.set("u", "a", false);
        modes.set("t", "a", false);
        assert_eq!(both(&modes), [false, true]);
        modes.set_all(true);
        assert_eq!(both(&modes), [true, true]);
        modes.set("t", "b", false);
        assert_eq!(both(&modes), [true, false]);
    }
}
