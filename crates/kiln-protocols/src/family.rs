//! A family: what the workers of one protocol share while it is in force.

use kiln_platform::random::Random;
use kiln_procedure::Access;
use kiln_storage::epoch::Participant;
use kiln_storage::schema::TableId;

use crate::batches::{Chosen, Explained};
use crate::direct::Direct;
use crate::phases::Phased;
use crate::scheduler::Scheduler;
use crate::shared::recorder::Recorded;
use crate::statistics::Versions;

/// Made when a protocol is put in force, and used by all its workers until another one is. Most
/// share something and do no more: they are made by [`of_accesses`] or [`of_workers`].
pub(crate) trait Family: Send + Sync {
    /// A worker, with its own part in the epochs and its own random waits. It is known to the
    /// others by its participant's slot, a number below
    /// [`WORKERS_MAX`](kiln_storage::table::WORKERS_MAX).
    fn worker(&self, participant: Participant, random: Random) -> Box<dyn Scheduler>;

    /// See [`Common::settle`](crate::Common::settle).
    fn settle(&self, _participant: &Participant) {}

    /// See [`Common::settles_later`](crate::Common::settles_later).
    fn settles_later(&self) -> bool {
        false
    }

    /// See [`Common::settle_table`](crate::Common::settle_table).
    fn settle_table(&self, _participant: &Participant, _table: TableId) {}

    /// See [`Common::tables_changed`](crate::Common::tables_changed).
    fn tables_changed(&self) {}

    /// See [`Common::look_after_idle`](crate::Common::look_after_idle).
    fn look_after_idle(&self, _participant: &Participant) -> bool {
        true
    }

    /// See [`Common::versions`](crate::Common::versions).
    fn versions(&self) -> Versions {
        Versions::default()
    }

    /// See [`Common::explain_batch`](crate::Common::explain_batch).
    fn explain_batch(&self) {}

    /// See [`Common::explained_batch`](crate::Common::explained_batch).
    fn explained_batch(&self) -> Option<Explained> {
        None
    }

    /// See [`Common::batches_chosen`](crate::Common::batches_chosen).
    fn batches_chosen(&self) -> Option<Chosen> {
        None
    }
}

/// A worker, as the engine has it.
#[cfg(not(test))]
pub(crate) fn boxed<S: Scheduler + 'static>(worker: S) -> Box<dyn Scheduler> {
    Box::new(worker)
}

/// Unit tests run no calls: their build leaves out what runs them, which is most of this crate's
/// code, once for each protocol.
#[cfg(test)]
pub(crate) fn boxed<S: Scheduler + 'static>(_worker: S) -> Box<dyn Scheduler> {
    unreachable!("the tests beside this crate run calls");
}

/// A family whose workers are made by a function, which has what they share.
struct Workers<F>(F);

impl<S, F> Family for Workers<F>
where
    S: Scheduler + 'static,
    F: Fn(Participant, Random) -> S + Send + Sync,
{
    fn worker(&self, participant: Participant, random: Random) -> Box<dyn Scheduler> {
        boxed((self.0)(participant, random))
    }
}

/// A family of the workers that `make` makes.
pub(crate) fn of_workers<S: Scheduler + 'static>(
    make: impl Fn(Participant, Random) -> S + Send + Sync + 'static,
) -> Box<dyn Family> {
    Box::new(Workers(make))
}

/// A family of workers that run calls at once, over the accesses that `make` makes.
pub(crate) fn of_accesses<A: Access + Phased + Recorded + Send + 'static>(
    make: impl Fn(Participant) -> A + Send + Sync + 'static,
) -> Box<dyn Family> {
    of_workers(move |participant, random| Direct::new(make(participant), random))
}
