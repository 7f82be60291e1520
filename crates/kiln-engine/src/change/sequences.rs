//! Sequences in changes of the catalog.
//!
//! A sequence that is altered, or begins anew, is another one under the same name, with a number of
//! its own: what a log keeps of the one means nothing for the other. Before a change takes a
//! sequence's state over, the log has the state as it is, and not as it will be at the end of a
//! range: so the statement makes the same sequence when a recovery runs it again.

use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::sequence::{
    Sequence, SequenceDefinition, SequenceId, SequenceLogs, SequenceState,
};

use super::catalog_change::CatalogChange;
use super::tables::duplicate;
use crate::catalog::{NumberedObject, WrittenSequence};
use crate::errors;
use crate::roles::Object;

impl CatalogChange<'_> {
    /// Adds a sequence, which begins with its first value, or with the one that `restart` gives.
    ///
    /// # Errors
    /// 42P07 when a sequence, table or index has its name.
    pub fn create_sequence(
        &mut self,
        definition: SequenceDefinition,
        restart: Option<i64>,
    ) -> Result<()> {
        let name = definition.name.clone();
        self.check_no_relation(&name)?;
        self.check_no_own_type(&name)?;
        let id = SequenceId(self.next_table_id()?.0);
        let state = SequenceState {
            version: 0,
            value: restart.unwrap_or(definition.start),
            is_called: false,
        };
        let logs = self.sequence_logs();
        let sequence = Sequence::with_state(id, id, definition, state, logs);
        let sequence = self.as_tried(sequence);
        self.catalog.sequences.insert(name, sequence);
        Ok(())
    }

    /// Makes a sequence what `definition` says, which has its name. It goes on where it is, or with
    /// the value that `restart` gives.
    ///
    /// # Errors
    /// 42P01; those of the log.
    pub fn alter_sequence(
        &mut self,
        definition: SequenceDefinition,
        restart: Option<i64>,
    ) -> Result<()> {
        let name = definition.name.clone();
        self.replace_sequence(&name, definition, restart)
    }

    /// As [`CatalogChange::alter_sequence`], of the sequence called `name`; `definition` may have
    /// another name.
    fn replace_sequence(
        &mut self,
        name: &str,
        definition: SequenceDefinition,
        restart: Option<i64>,
    ) -> Result<()> {
        let old = self.require_sequence(name)?.clone();
        let given = old.give_up_range()?;
        let (value, is_called) = match restart {
            Some(value) => (value, false),
            None => (given.value, given.is_called),
        };
        let state = SequenceState {
            version: 0,
            value,
            is_called,
        };
        let id = SequenceId(self.next_table_id()?.0);
        let logs = self.sequence_logs();
        let new = Sequence::with_state(id, old.origin(), definition, state, logs);
        let new = self.as_tried(new);
        self.catalog.sequences.remove(name);
        self.catalog.sequences.insert(new.name().to_owned(), new);
        Ok(())
    }

    /// Calls a sequence otherwise. It goes on where it is.
    ///
    /// # Errors
    /// 42P01; 42P07 when a relation has the name; those of the log.
    pub fn rename_sequence(&mut self, from: &str, to: &str) -> Result<()> {
        self.check_no_relation(to)?;
        let definition = SequenceDefinition {
            name: to.to_owned(),
            ..self.require_sequence(from)?.definition().clone()
        };
        self.replace_sequence(from, definition, None)?;
        self.renumber(|object| match object {
            NumberedObject::Sequence(name) if name == from => {
                Some(NumberedObject::Sequence(to.to_owned()))
            }
            _ => None,
        });
        (self.roles()).rename(&Object::sequence(from), Object::sequence(to));
        Ok(())
    }

    /// How far a sequence has got: its last value, and whether that was given. It gives no further
    /// one before the change is over.
    ///
    /// # Errors
    /// 42P01; those of the log.
    pub fn sequence_state(&self, name: &str) -> Result<(i64, bool)> {
        let state = self.require_sequence(name)?.give_up_range()?;
        Ok((state.value, state.is_called))
    }

    /// Has the sequences begin anew that go with a table.
    ///
    /// # Errors
    /// Those of the log.
    pub fn restart_owned_sequences(&mut self, table: &str) -> Result<()> {
        let owned = self.catalog.owned_sequences(table);
        let owned: Vec<_> = owned.map(|it| it.definition().clone()).collect();
        owned.into_iter().try_for_each(|definition| {
            let start = definition.start;
            self.alter_sequence(definition, Some(start))
        })
    }

    /// Removes a sequence.
    ///
    /// # Errors
    /// 42P01.
    pub fn drop_sequence(&mut self, name: &str) -> Result<()> {
        self.require_sequence(name)?;
        self.catalog.sequences.remove(name);
        self.roles().forget(&Object::sequence(name));
        Ok(())
    }

    pub(crate) fn drop_owned_sequences(&mut self, table: &str) -> Result<()> {
        let owned = self.catalog.owned_sequences(table);
        let owned: Vec<_> = owned.map(|sequence| sequence.name().to_owned()).collect();
        owned.iter().try_for_each(|name| self.drop_sequence(name))
    }

    /// Where sequences are logged that it makes: what a block tries out is in no log.
    fn sequence_logs(&self) -> SequenceLogs {
        match self.is_trial() {
            true => SequenceLogs::default(),
            false => self.inner.sequence_logs.clone(),
        }
    }

    fn require_sequence(&self, name: &str) -> Result<&Arc<Sequence>> {
        let found = self.catalog.sequence(name);
        found.ok_or_else(|| errors::undefined_table(name))
    }

    /// Checks that no sequence or view has the name of a new relation.
    ///
    /// # Errors
    /// 42P07.
    pub(crate) fn check_no_sequence_or_view(&self, name: &str) -> Result<()> {
        let catalog = &self.catalog;
        match catalog.sequences.contains_key(name) || catalog.views.contains_key(name) {
            true => Err(duplicate(name)),
            false => Ok(()),
        }
    }

    /// Checks that no table, index or sequence is called so.
    ///
    /// # Errors
    /// 42P07.
    pub(crate) fn check_no_relation(&self, name: &str) -> Result<()> {
        match self.catalog.tables.contains_key(name) || self.index_owner(name).is_some() {
            true => Err(duplicate(name)),
            false => self.check_no_sequence_or_view(name),
        }
    }

    pub(crate) fn restore_sequences(&mut self, written: &[WrittenSequence]) {
        for sequence in written {
            let WrittenSequence {
                id,
                origin,
                definition,
                state,
            } = sequence.clone();
            let name = definition.name.clone();
            let logs = self.inner.sequence_logs.clone();
            let restored = Sequence::with_state(id, origin, definition, state, logs);
            self.catalog.sequences.insert(name, Arc::new(restored));
        }
    }

    /// Those that are not there any more give no values: programs that know them find what has
    /// taken their places.
    pub(crate) fn supersede_sequences(&self) {
        for (name, old) in &self.before.sequences {
            let new = self.catalog.sequence(name);
            if new.is_none_or(|new| !Arc::ptr_eq(new, old)) {
                let mut sequences = self.catalog.sequences();
                let successor = sequences.find(|new| new.origin() == old.origin());
                old.supersede(successor.cloned());
            }
        }
    }
}
