//! Temporary objects of a session, as its statements and blocks change them.

use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::error::Result;

use super::definitions::deadline;
use super::limits::Limits;
use super::replay::{Defined, Entry};
use super::state::{Block, Failure, State};
use super::{Session, no_block};
use crate::calls::{Rows, Statement};
use crate::catalog::{Catalog, schema_of_session};
use crate::change::{Definition, Temporary, Unchanged, WithinBlock};
use crate::kernel::{Beside, EngineInner};
use crate::observed::Observed;

impl State {
    /// A catalog as the session sees it.
    pub(super) fn seen(&self, catalog: &Arc<Catalog>) -> Arc<Catalog> {
        match &self.temporary {
            None => catalog.clone(),
            Some(temporary) => temporary.over(catalog),
        }
    }

    /// The temporary objects of the session.
    fn temporary(&mut self, inner: &EngineInner) -> Arc<Temporary> {
        let number = self.number;
        let temporary = self.temporary.get_or_insert_with(|| {
            let temporary = Arc::new(Temporary::of_session(number));
            inner.know_session(&temporary);
            temporary
        });
        temporary.clone()
    }

    /// Changes temporary objects in the open block.
    fn define_temporary(
        &mut self,
        inner: &Arc<EngineInner>,
        definition: &Arc<dyn Definition>,
        limits: Limits<'_>,
    ) -> Result<()> {
        let defined = Defined {
            number: self.next_definition(),
            definition: definition.clone(),
        };
        self.persist(inner, limits, |state, is_alone| {
            state.define_temporary_once(inner, &defined, limits, is_alone)
        })?;
        match self.transcript.len() {
            // What cannot be run again is not kept.
            None => Ok(()),
            Some(_) => {
                let entry = Entry::Temporary(defined);
                (self.transcript).keep(entry, &mut self.own, &inner.block_memory)
            }
        }
    }

    /// As [`State::define_temporary`], in the attempt that is open.
    pub(super) fn define_temporary_once(
        &mut self,
        inner: &Arc<EngineInner>,
        defined: &Defined,
        limits: Limits<'_>,
        is_alone: bool,
    ) -> std::result::Result<(), Failure> {
        limits.check().map_err(Failure::Final)?;
        limits.resume(self.worker_slot()).map_err(Failure::Final)?;
        if let Some(refusal) = self.worker_slot().interruption() {
            return Err(Failure::Final(refusal.error()));
        }
        match self.change_temporary(inner, defined, is_alone)? {
            Changed::Done => return Ok(()),
            Changed::MustBeAlone => {}
        }
        self.worker_slot().step_aside();
        let alone = inner.shut_gate_for_change(Beside::Blocks, deadline(inner, limits));
        let alone = alone.map_err(Failure::Final)?;
        self.worker_slot().resume_alone(&alone);
        let changed = self.change_temporary(inner, defined, true);
        drop(alone);
        changed.map(drop)
    }

    fn change_temporary(
        &mut self,
        inner: &Arc<EngineInner>,
        defined: &Defined,
        is_alone: bool,
    ) -> std::result::Result<Changed, Failure> {
        let base = self.block_catalog()?;
        let temporary = self.temporary(inner);
        let own = self.own.get_or_insert_default();
        let written = own.written.clone();
        let sequences = std::mem::take(&mut own.sequences);
        let worker_slot = self
            .worker_slot
            .as_mut()
            .expect("an open block has a worker slot");
        let mut block = WithinBlock::trial(worker_slot, base.clone());
        (block.written, block.sequences) = (written, sequences);
        let definition = (defined.number, &*defined.definition);
        let (changed, block) = temporary.define(inner, &base, block, definition, is_alone);
        let (written, sequences) = (block.written, block.sequences);
        let own = self.own.get_or_insert_default();
        (own.written, own.sequences) = (written, sequences);
        match changed {
            Ok(()) => Ok(Changed::Done),
            Err(Unchanged::MustBeAlone) => Ok(Changed::MustBeAlone),
            Err(Unchanged::Conflict(error)) => Err(Failure::Conflict(error)),
            Err(Unchanged::Final(error)) => Err(Failure::Final(error)),
        }
    }

    /// The open block has committed.
    pub(super) fn commit_temporary(&self, inner: &EngineInner) {
        if let Some(temporary) = &self.temporary {
            temporary.commit(inner);
        }
    }

    /// The attempt of the block is over without a commit.
    pub(super) fn give_up_temporary(&mut self) {
        if let Some(temporary) = self.temporary.clone() {
            temporary.give_up(self.worker_slot().inner());
        }
    }
}

/// What became of a definition.
enum Changed {
    Done,
    MustBeAlone,
}

impl Session {
    /// Changes temporary objects of the session, in its transaction block: for its own statements
    /// alone, and from the commit on for as long as it lives.
    ///
    /// # Errors
    /// Those of the definition; 25P01 when no block is open; 40001 on a conflict; 55P03 when
    /// transactions do not end for which the change waits. The block has failed then.
    pub fn define_temporary(&mut self, definition: &Arc<dyn Definition>) -> Result<()> {
        let run = self.limited(|session, state, limits| {
            let inner = session.engine.inner();
            match state.block {
                Block::None => Observed::nothing(no_block()),
                _ => state.in_block(inner, limits, |state| {
                    let defined = state.define_temporary(inner, definition, limits);
                    defined.map(|()| Rows::default())
                }),
            }
        });
        run.map(drop)
    }

    /// The name of the session's temporary schema, whether there is something in it or not.
    pub fn own_schema(&self) -> String {
        schema_of_session(self.number())
    }

    /// The name of the session's temporary schema, while there is something in it.
    pub fn temporary_schema(&self) -> Option<Arc<str>> {
        self.state().temporary.as_ref()?.schema()
    }

    /// Whether a temporary table loses its rows, or goes, when a transaction commits.
    pub fn ends_temporary(&self) -> bool {
        let state = self.state();
        let temporary = state.temporary.as_ref();
        temporary.is_some_and(|temporary| temporary.ends_something())
    }
}

/// A statement that a session has submitted: its program is for the catalog that the session sees.
pub(crate) struct Seen {
    pub statement: Arc<dyn Statement>,
    pub temporary: Arc<Temporary>,
}

impl Statement for Seen {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        self.statement.program(&self.temporary.over(catalog))
    }

    fn text(&self) -> Option<&str> {
        self.statement.text()
    }
}
