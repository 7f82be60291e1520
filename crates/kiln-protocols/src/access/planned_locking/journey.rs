//! Attempts that travel from owner to owner ([`TravellingLocks`](crate::shared::locks::TravellingLocks)): where one is, and what it leaves
//! behind.

use kiln_platform::atomic::Ordering;
use kiln_platform::plain;
use kiln_procedure::access::Sought;
use kiln_procedure::ir::Reg;
use kiln_procedure::{Halt, Handle};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::slot::Memory;
use kiln_storage::table::{Part, Table};

use super::PlannedLocking;
use crate::shared::in_place::Done;
use crate::shared::locked::HeldLocks;
use crate::shared::locks::PlannedLocks;
use crate::shared::node_set::NodeSet;
use crate::shared::planning::Findings;

/// An attempt that no worker runs at present, where attempts travel ([`TravellingLocks`](crate::shared::locks::TravellingLocks)).
pub struct Parked<L: PlannedLocks> {
    /// What it has done, and its part in an observation.
    pub done: Done,
    locks: HeldLocks<L::Held>,
    nodes: NodeSet,
    newest: Tid,
    findings: Findings,
}

impl<L: PlannedLocks> Default for Parked<L> {
    fn default() -> Parked<L> {
        Parked {
            done: Done::default(),
            locks: HeldLocks::default(),
            nodes: NodeSet::default(),
            newest: Tid(0),
            findings: Findings::default(),
        }
    }
}

impl<L: PlannedLocks> Parked<L> {
    /// Tells virtual cores that the calling thread takes over what another one has put aside.
    fn note_reads(&self) {
        plain::reads_one(self);
        plain::reads(self.locks.all.as_slice());
        self.done.note_reads();
        self.findings.note_reads();
    }

    /// As [`Parked::note_reads`], of what the thread puts aside.
    fn note_writes(&self) {
        plain::writes_one(self);
        plain::writes(self.locks.all.as_slice());
        self.done.note_writes();
        self.findings.note_writes();
    }
}

// SAFETY: only the thread that runs the attempt follows the pointers to locks, nodes and findings.
unsafe impl<L: PlannedLocks> Send for Parked<L> {}

/// Of an attempt that travels: where it is, as far as the access has to know.
#[derive(Default)]
pub(super) struct Journey {
    /// Whether the attempt is another worker's, which holds its epoch.
    pub(super) is_guest: bool,
    /// Whether it has come for an operation that is not done yet: it does not leave before that.
    pub(super) has_arrived: bool,
    /// The partition to which it wants to go.
    pub(super) leaving_for: Option<u16>,
}

/// The tid of an attempt that travels, for the records whose owners are to store it.
#[derive(Default)]
pub(super) struct PendingTids {
    tid: u64,
    records: Vec<(RecordRef, u16)>,
}

impl<L: PlannedLocks> PlannedLocking<L> {
    /// Enters the epoch for all attempts of the worker that travel from now on, until
    /// [`PlannedLocking::leave_epoch`]. It is entered anew only when none does any more.
    pub fn enter_epoch(&mut self) {
        self.locked.in_place.participant.enter();
    }

    /// The epoch that was entered.
    pub fn epoch(&self) -> u64 {
        self.locked.in_place.participant.epoch()
    }

    /// Whether the epoch that was entered is not the newest any more: no attempt should begin in
    /// it.
    pub fn is_epoch_over(&self) -> bool {
        let participant = &self.locked.in_place.participant;
        participant.epoch() != participant.epochs().current()
    }

    /// See [`PlannedLocking::enter_epoch`].
    pub fn leave_epoch(&mut self) {
        self.locked.in_place.leave_epoch();
    }

    /// Takes over an attempt that travels: to do an operation for which it `has_arrived`, or from
    /// its beginning.
    pub fn take_over(&mut self, parked: &mut Parked<L>, has_arrived: bool) {
        self.exchange(parked);
        self.journey = Journey {
            is_guest: true,
            has_arrived,
            leaving_for: None,
        };
    }

    /// Puts the attempt aside that [`PlannedLocking::take_over`] has brought; the partition to
    /// which it goes, if it does.
    pub fn put_aside(&mut self, parked: &mut Parked<L>) -> Option<u16> {
        self.exchange(parked);
        std::mem::take(&mut self.journey).leaving_for
    }

    /// Hands out the records that the attempt has written in other partitions than that where it
    /// committed, with these, and the tid that they get.
    pub fn take_pending_tids(&mut self, mut each: impl FnMut(RecordRef, u16, u64)) {
        let tid = self.pending_tids.tid;
        for (record, partition) in self.pending_tids.records.drain(..) {
            each(record, partition, tid);
        }
    }

    #[inline(always)]
    fn exchange(&mut self, parked: &mut Parked<L>) {
        parked.note_reads();
        self.locked.in_place.exchange(&mut parked.done);
        std::mem::swap(&mut self.locked.locks, &mut parked.locks);
        std::mem::swap(&mut self.locked.nodes, &mut parked.nodes);
        std::mem::swap(&mut self.locked.newest, &mut parked.newest);
        std::mem::swap(&mut self.plan.planner.findings, &mut parked.findings);
        parked.note_writes();
    }

    /// Whether records of a part are to be touched where the attempt is.
    ///
    /// # Errors
    /// [`Halt::Leaves`] when they are not.
    #[inline(always)]
    pub(super) fn stay(&mut self, part: Part) -> Result<(), Halt> {
        if L::TRAVELS
            && !self.journey.has_arrived
            && let Some(partition) = self.locked.manager.elsewhere(part)
        {
            self.journey.leaving_for = Some(partition);
            return Err(Halt::Leaves);
        }
        Ok(())
    }

    /// As [`PlannedLocking::stay`], for a record that was met.
    #[inline(always)]
    pub(super) fn stay_with(&mut self, table: &Table, handle: &Handle) -> Result<(), Halt> {
        if L::TRAVELS && !self.journey.has_arrived {
            let part = match self.locked.locks.all.get(handle.note as usize) {
                Some(lock) => lock.part,
                None => table.part_of(handle.record),
            };
            self.stay(part)?;
        }
        Ok(())
    }

    /// As [`PlannedLocking::stay`], for a row that is to be inserted.
    #[inline(always)]
    pub(super) fn stay_to_insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &Memory,
    ) -> Result<(), Halt> {
        if L::TRAVELS
            && let Some(part) =
                table.part_of_row(|column| memory.slots[values[column.index()].0 as usize])
        {
            self.stay(part)?;
        }
        Ok(())
    }

    /// As [`PlannedLocking::stay`], for what an index look-up will find, if its key says where
    /// that is.
    #[inline(always)]
    pub(super) fn stay_to_seek(
        &mut self,
        sought: &Sought<'_>,
        memory: &Memory,
    ) -> Result<(), Halt> {
        let value_of = |position: usize| memory.slots[sought.key[position].0 as usize];
        if L::TRAVELS
            && let Some(part) = sought.table.part_of_key(sought.index, value_of)
        {
            self.stay(part)?;
        }
        Ok(())
    }

    /// The finding at which the attempt is, to go back to if it leaves.
    #[inline(always)]
    pub(super) fn finding(&self) -> usize {
        match L::TRAVELS {
            true => self.plan.planner.findings.position(),
            false => 0,
        }
    }

    /// A look-up has failed that began at a finding.
    #[inline(always)]
    pub(super) fn go_back(&mut self, finding: usize) {
        if L::TRAVELS {
            self.plan.planner.findings.go_back(finding);
        }
    }

    /// Commits what was written here, and notes what others have to.
    pub(super) fn commit_by_owners(&mut self, newest: Tid) {
        let (manager, left) = (&self.locked.manager, &mut self.pending_tids);
        let in_place = &mut self.locked.in_place;
        in_place.commit_leaving(newest, |table, record, tid| {
            // A record that is gone, or going, is finished here.
            let is_there = !Tid(record.tid().load(Ordering::Relaxed)).is_absent();
            let elsewhere = manager.elsewhere(table.part_of(record));
            if let Some(partition) = elsewhere.filter(|_| is_there) {
                left.tid = tid.0;
                left.records.push((record, partition));
                return true;
            }
            false
        });
    }
}
