//! What a block has left to check when it commits: the keys of deferrable constraints.
//!
//! A statement of a block leaves the keys that it has changed, and the layer above, which knows
//! what a constraint is, checks them before it commits ([`Session::take_pending`]). Its checks are
//! statements of the block as all others: they are run again with the block, and what a statement
//! leaves is a part of its result, so that a check is of what the block has done at last.

use kiln_platform::sync::Arc;
use kiln_procedure::Arguments;
use kiln_storage::deferral::{ConstraintModes, DeferredCheck, PendingCheck};
use kiln_storage::error::{Error, Result, SqlState};

use super::Session;
use super::state::State;
use crate::calls::Rows;
use crate::kernel::{EngineInner, Kept};

/// Bytes of keys that a block leaves to check.
const BYTES_MAX: usize = 64 << 20;

/// See the module.
#[derive(Default)]
pub(super) struct Constraints {
    /// What SET CONSTRAINTS has said, if it has.
    modes: Option<Arc<ConstraintModes>>,
    /// In the order in which they were left.
    queued: Vec<QueuedCheck>,
    /// How often checks were taken to be made.
    rounds: u64,
    /// The bytes of all keys.
    bytes: usize,
    kept: Kept,
}

/// A check that a statement has deferred.
struct QueuedCheck {
    pending: PendingCheck,
    /// The round in which it was taken, if it was: a savepoint from before that undoes what the
    /// check has seen, and the check waits again.
    taken: Option<u64>,
}

/// How far a block had come with its checks, for a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckMark {
    queued: usize,
    rounds: u64,
}

impl State {
    /// How the session writes texts; `None` is the default.
    pub(super) fn style(&self) -> Option<Arc<[u8]>> {
        self.own.as_ref()?.style.clone()
    }

    /// A statement checks its constraints as the block says now, and writes texts as the session
    /// does now, also when it is run again.
    pub(super) fn hand_surroundings(&self, arguments: &mut Arguments) {
        let Some(own) = &self.own else { return };
        arguments.set_style(own.style.as_ref());
        if let Some(modes) = &own.constraints.modes {
            arguments.defer_constraints(|| modes.clone());
        }
    }

    /// Queues what a statement has deferred to check.
    ///
    /// # Errors
    /// 54000 when it is too much, 53200 when all sessions together keep too much.
    pub(super) fn keep_pending(
        &mut self,
        mut rows: Rows,
        inner: &Arc<EngineInner>,
    ) -> Result<Rows> {
        if rows.pending.is_empty() {
            return Ok(rows);
        }
        let own = &mut self.own.get_or_insert_default().constraints;
        own.bytes += rows.pending.iter().map(PendingCheck::bytes).sum::<usize>();
        if own.bytes > BYTES_MAX {
            let message = "the transaction leaves too many constraints to be checked when it ends";
            let error = Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_detail(format!("Their keys have more than {BYTES_MAX} bytes."))
                .with_hint("Check them with SET CONSTRAINTS ALL IMMEDIATE in between.");
            return Err(error);
        }
        own.kept.reach(&inner.block_memory, own.bytes)?;
        let pending = std::mem::take(&mut rows.pending).into_iter();
        own.queued.extend(pending.map(|pending| QueuedCheck {
            pending,
            taken: None,
        }));
        Ok(rows)
    }

    /// How far the block has come with its checks.
    pub(super) fn check_mark(&self) -> CheckMark {
        let own = self.own.as_ref().map(|own| &own.constraints);
        CheckMark {
            queued: own.map_or(0, |own| own.queued.len()),
            rounds: own.map_or(0, |own| own.rounds),
        }
    }

    /// Forgets the checks that were queued after a mark, and those that were made after it wait
    /// again.
    pub(super) fn return_to_checks(&mut self, mark: CheckMark) {
        if let Some(own) = &mut self.own {
            let own = &mut own.constraints;
            own.queued.truncate(mark.queued);
            for queued in &mut own.queued {
                queued.taken = queued.taken.filter(|round| *round <= mark.rounds);
            }
            own.count_bytes();
        }
    }

    /// # Errors
    /// XX000 when the layer above has not checked what was left: a defect of it.
    pub(super) fn refuse_unchecked(&self) -> Result<()> {
        let mut own = self.own.iter();
        match own.any(|own| own.constraints.waiting().next().is_some()) {
            false => Ok(()),
            true => Err(Error::internal("constraints were left unchecked")),
        }
    }
}

impl Constraints {
    /// The checks that were not taken.
    fn waiting(&self) -> impl Iterator<Item = &PendingCheck> {
        let waiting = self.queued.iter().filter(|queued| queued.taken.is_none());
        waiting.map(|queued| &queued.pending)
    }

    fn count_bytes(&mut self) {
        self.bytes = self
            .queued
            .iter()
            .map(|queued| queued.pending.bytes())
            .sum();
    }
}

impl Session {
    /// Says how later statements write texts, as
    /// [`Style::bytes_of`](kiln_storage::types::Style::bytes_of) has it; `None` for the default.
    pub fn set_style(&mut self, style: Option<Vec<u8>>) {
        let mut state = self.state();
        if style.is_some() || state.own.is_some() {
            let own = state.own.get_or_insert_default();
            if own.style.as_deref() != style.as_deref() {
                own.style = style.map(Arc::from);
            }
        }
    }

    /// How the session writes texts.
    pub fn style(&self) -> Option<Arc<[u8]>> {
        self.state().style()
    }

    /// What the open block has said about when constraints are checked.
    pub fn constraint_modes(&self) -> Option<Arc<ConstraintModes>> {
        let state = self.state();
        state.own.as_ref()?.constraints.modes.clone()
    }

    /// Says when the constraints of later statements of the block are checked; `None` for as they
    /// were declared.
    pub fn set_constraint_modes(&mut self, modes: Option<Arc<ConstraintModes>>) {
        let mut state = self.state();
        if modes.is_some() || state.own.is_some() {
            state.own.get_or_insert_default().constraints.modes = modes;
        }
    }

    /// Whether the open block has left a check of which this is true.
    pub fn has_pending(&self, mut which: impl FnMut(&DeferredCheck) -> bool) -> bool {
        let state = self.state();
        let own = state.own.as_ref();
        let mut waiting = own.into_iter().flat_map(|own| own.constraints.waiting());
        waiting.any(|pending| which(&pending.check))
    }

    /// Takes those checks that the open block has left of which this is true: they are the caller's
    /// now. A block with others does not commit.
    pub fn take_pending(
        &mut self,
        mut which: impl FnMut(&DeferredCheck) -> bool,
    ) -> Vec<PendingCheck> {
        let mut state = self.state();
        let has_savepoint = state.transcript.has_savepoint;
        let Some(own) = &mut state.own else {
            return Vec::new();
        };
        let own = &mut own.constraints;
        own.rounds += 1;
        let mut taken = Vec::new();
        for queued in &mut own.queued {
            if queued.taken.is_none() && which(&queued.pending.check) {
                queued.taken = Some(own.rounds);
                taken.push(queued.pending.clone());
            }
        }
        if !has_savepoint {
            own.queued.retain(|queued| queued.taken.is_none());
            own.count_bytes();
        }
        taken
    }
}
