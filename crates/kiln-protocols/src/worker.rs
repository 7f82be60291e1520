//! The one place that knows all protocols' code: how a worker is made for each.

use kiln_platform::random::Random;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Access, Arguments, Frame, Interrupt, Program, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::error::Error;
use kiln_storage::journal::Journal;

use crate::access::healing::Healing;
use crate::access::hybrid::Hybrid;
use crate::access::mocc::Mocc;
use crate::access::mvcc::Mvcc;
use crate::access::none::Unprotected;
use crate::access::occ::{Occ, OccUnchecked};
use crate::access::serial::Serial;
use crate::access::silo::{Silo, SiloUnchecked};
use crate::access::tictoc::TicToc;
use crate::access::two_phase_locking::TwoPhaseLocking as Planned;
use crate::access::two_phase_locking::{NoWait, Queued, TwoPhaseLocking};
use crate::common::Common;
use crate::factors::{AbortMechanism, DeadlockAvoidance, Use};
use crate::phases::Phased;
use crate::protocol::{Protocol, ProtocolOption};
use crate::schedule::direct::Direct;
use crate::schedule::dora::Dora;
use crate::schedule::orthrus::{Orthrus, OrthrusShared};
use crate::schedule::partitioned::PartitionLocks;
use crate::schedule::ranges::{HierarchicalLocks, PrefixCounters, RangeMap};
use crate::schedule::strife::Strife;
use crate::schedule::vll::{CounterArray, Vll};
use crate::schedule::vll_single::VllSingle;
use crate::serve::{Call, Calls, Next};
use crate::shared::locks::counters::BesideRecords;
use crate::shared::locks::handling::{
    self, Dreadlocks, Handling, Ordered, Patient, WaitDie, WaitForGraph,
};
use crate::shared::locks::planned::{AllOrNone, Atomic, Sorted};
use crate::shared::locks::{
    BesideRecord, LockTable, LockWords, Locks, Placement, QueuedLocks, SharedLocks,
};
use crate::shared::recorder::{Observation, Recorded};
use crate::shared::turns::Turn;
use crate::shared::unwinding::Unwinding;
use crate::{AnswerWriter, Counters, Statistics};

/// How a call ended. It never ends "please retry".
#[derive(Debug)]
pub enum Outcome {
    /// Its effects are there, all of them.
    Committed,
    /// The procedure raised an error; there are no effects.
    Rejected(Error),
    /// Its deadline passed; there are no effects.
    Expired,
}

/// Locks in a table that nobody waits for.
type NoWaitTable = QueuedLocks<LockTable, handling::NoWait>;

/// One worker of any protocol: the enum at the edge, one match a call.
pub enum Worker {
    /// [`Protocol::Serial`].
    Serial(Box<Direct<Serial>>),
    /// [`Protocol::Silo`].
    Silo(Box<Direct<Silo>>),
    /// [`Protocol::Silo`] whose aborts unwind.
    SiloUnwinding(Box<Direct<Unwinding<Silo>>>),
    /// [`Protocol::SiloUnchecked`].
    SiloUnchecked(Box<Direct<SiloUnchecked>>),
    /// [`Protocol::Occ`].
    Occ(Box<Direct<Occ>>),
    /// [`Protocol::OccUnchecked`].
    OccUnchecked(Box<Direct<OccUnchecked>>),
    /// [`Protocol::Healing`].
    Healing(Box<Direct<Healing>>),
    /// [`Protocol::TicToc`].
    TicToc(Box<Direct<TicToc>>),
    /// [`Protocol::Hybrid`].
    Hybrid(Box<Direct<Hybrid>>),
    /// [`Protocol::Mocc`].
    Mocc(Box<Direct<Mocc>>),
    /// [`Protocol::None`].
    Unprotected(Box<Direct<Unprotected>>),
    /// [`Protocol::TwoPhaseLockingNoWait`].
    NoWait(Box<Direct<NoWait>>),
    /// [`Protocol::TwoPhaseLockingNoWait`] with [`ProtocolOption::LockTable`].
    NoWaitTable(Box<Direct<Queued<LockTable, handling::NoWait>>>),
    /// [`Protocol::TwoPhaseLockingWaitDie`].
    WaitDie(Box<Direct<Queued<BesideRecord, WaitDie>>>),
    /// [`Protocol::TwoPhaseLockingWaitDie`] with [`ProtocolOption::LockTable`].
    WaitDieTable(Box<Direct<Queued<LockTable, WaitDie>>>),
    /// [`Protocol::TwoPhaseLockingWaitForGraph`].
    WaitForGraph(Box<Direct<Queued<BesideRecord, WaitForGraph>>>),
    /// [`Protocol::TwoPhaseLockingWaitForGraph`] with [`ProtocolOption::LockTable`].
    WaitForGraphTable(Box<Direct<Queued<LockTable, WaitForGraph>>>),
    /// [`Protocol::TwoPhaseLockingDreadlocks`].
    Dreadlocks(Box<Direct<Queued<BesideRecord, Dreadlocks>>>),
    /// [`Protocol::TwoPhaseLockingDreadlocks`] with [`ProtocolOption::LockTable`].
    DreadlocksTable(Box<Direct<Queued<LockTable, Dreadlocks>>>),
    /// [`Protocol::Mvcc`].
    Mvcc(Box<Direct<Mvcc>>),
    /// [`Protocol::LockSorted`].
    Sorted(Box<Direct<Planned<Sorted<BesideRecord>>>>),
    /// [`Protocol::LockSorted`] with [`ProtocolOption::LockTable`].
    SortedTable(Box<Direct<Planned<Sorted<LockTable>>>>),
    /// [`Protocol::LockAtomic`].
    Atomic(Box<Direct<Planned<Atomic<BesideRecord>>>>),
    /// [`Protocol::LockAtomic`] with [`ProtocolOption::LockTable`].
    AtomicTable(Box<Direct<Planned<Atomic<LockTable>>>>),
    /// [`Protocol::PreNoWait`].
    PreNoWait(Box<Direct<Planned<AllOrNone<LockWords>>>>),
    /// [`Protocol::PreNoWait`] with [`ProtocolOption::LockTable`].
    PreNoWaitTable(Box<Direct<Planned<AllOrNone<NoWaitTable>>>>),
    /// [`Protocol::Vll`] and [`Protocol::VllSca`].
    Vll(Box<Vll<BesideRecords>>),
    /// [`Protocol::VllArrayed`].
    VllArrayed(Box<Vll<CounterArray>>),
    /// [`Protocol::Orthrus`].
    Orthrus(Box<Orthrus>),
    /// [`Protocol::OrthrusShared`].
    OrthrusShared(Box<OrthrusShared>),
    /// [`Protocol::Strife`].
    Strife(Box<Strife>),
    /// [`Protocol::Partitioned`].
    Partitioned(Box<Direct<Planned<PartitionLocks>>>),
    /// [`Protocol::VllSingle`].
    VllSingle(Box<VllSingle>),
    /// [`Protocol::Dora`].
    Dora(Box<Dora>),
    /// [`Protocol::Vllr`] and [`Protocol::VllrSca`].
    Vllr(Box<Vll<PrefixCounters>>),
    /// [`Protocol::RangeMap`].
    RangeMap(Box<Vll<RangeMap>>),
    /// [`Protocol::RangeHierarchical`].
    RangeHierarchical(Box<Vll<HierarchicalLocks>>),
}

/// Does the same with whichever worker is there.
macro_rules! for_any_worker {
    ($any:expr, $worker:ident => $body:expr) => {
        match $any {
            Worker::Serial($worker) => $body,
            Worker::Silo($worker) => $body,
            Worker::SiloUnwinding($worker) => $body,
            Worker::SiloUnchecked($worker) => $body,
            Worker::Occ($worker) => $body,
            Worker::OccUnchecked($worker) => $body,
            Worker::Healing($worker) => $body,
            Worker::TicToc($worker) => $body,
            Worker::Hybrid($worker) => $body,
            Worker::Mocc($worker) => $body,
            Worker::Unprotected($worker) => $body,
            Worker::NoWait($worker) => $body,
            Worker::NoWaitTable($worker) => $body,
            Worker::WaitDie($worker) => $body,
            Worker::WaitDieTable($worker) => $body,
            Worker::WaitForGraph($worker) => $body,
            Worker::WaitForGraphTable($worker) => $body,
            Worker::Dreadlocks($worker) => $body,
            Worker::DreadlocksTable($worker) => $body,
            Worker::Mvcc($worker) => $body,
            Worker::Sorted($worker) => $body,
            Worker::SortedTable($worker) => $body,
            Worker::Atomic($worker) => $body,
            Worker::AtomicTable($worker) => $body,
            Worker::PreNoWait($worker) => $body,
            Worker::PreNoWaitTable($worker) => $body,
            Worker::Vll($worker) => $body,
            Worker::VllArrayed($worker) => $body,
            Worker::Orthrus($worker) => $body,
            Worker::OrthrusShared($worker) => $body,
            Worker::Strife($worker) => $body,
            Worker::Partitioned($worker) => $body,
            Worker::VllSingle($worker) => $body,
            Worker::Dora($worker) => $body,
            Worker::Vllr($worker) => $body,
            Worker::RangeMap($worker) => $body,
            Worker::RangeHierarchical($worker) => $body,
        }
    };
}

/// Does the same with what runs the attempts of whichever worker is there: what does not depend on when
/// calls may run.
macro_rules! for_any_direct {
    ($any:expr, $direct:ident => $body:expr) => {
        for_any_worker!($any, worker => {
            let $direct = worker.direct();
            $body
        })
    };
}

impl Worker {
    /// A worker of the protocol that is in force, with its own part in the epochs and its own random
    /// waits.
    pub fn new(common: &Arc<Common>, participant: Participant, random: Random) -> Worker {
        /// The scheduler of protocols that need to know nothing beforehand.
        fn direct<A: Access + Phased + Recorded>(access: A, random: Random) -> Box<Direct<A>> {
            Box::new(Direct::new(access, random))
        }
        let factors = common.factors();
        let configuration = common.configuration();
        let turn = Turn::new(common.turns(), &participant);
        let epochs = participant.epochs().clone();
        let defers = configuration.has(ProtocolOption::CommitTimeUpdates);
        let mut worker = match configuration.protocol {
            Protocol::Serial => Worker::Serial(direct(Serial::new(participant), random)),
            Protocol::Silo => {
                let mut silo = Silo::new(participant);
                silo.sorts_locks = factors.deadlock_avoidance == DeadlockAvoidance::Sort;
                // The bad choices are measured on the plain protocol.
                silo.early_aborts = factors.early_aborts == Use::On;
                silo.protocol.waits = !silo.early_aborts;
                let is_plain = silo.sorts_locks
                    || !silo.early_aborts
                    || factors.abort_mechanism != AbortMechanism::Return;
                silo.defers = !is_plain && defers;
                silo.splits = !is_plain && configuration.has(ProtocolOption::TimestampSplitting);
                silo.uses_apart = silo.defers || silo.splits;
                match factors.abort_mechanism {
                    AbortMechanism::Return => Worker::Silo(direct(silo, random)),
                    AbortMechanism::Unwind => {
                        Worker::SiloUnwinding(direct(Unwinding(silo), random))
                    }
                }
            }
            Protocol::SiloUnchecked => {
                Worker::SiloUnchecked(direct(SiloUnchecked::new(participant), random))
            }
            Protocol::Occ => {
                let mut access = Occ::new(participant);
                access.defers = defers;
                Worker::Occ(direct(access, random))
            }
            Protocol::OccUnchecked => {
                Worker::OccUnchecked(direct(OccUnchecked::new(participant), random))
            }
            Protocol::Healing => {
                let access = Healing::new(participant, factors.healing, defers);
                let access = access.sharing(common.waiting_room().clone());
                Worker::Healing(direct(access, random))
            }
            Protocol::TicToc => {
                let (gaps, times) = common.tictoc();
                let sweeps = configuration.has(ProtocolOption::Sweeps);
                let mut access = TicToc::sharing(participant, gaps, times).sweeping(sweeps);
                access.defers = defers;
                Worker::TicToc(direct(access, random))
            }
            Protocol::Hybrid => Worker::Hybrid(direct(Hybrid::new(participant), random)),
            Protocol::Mocc => {
                let access = Mocc::sharing(participant, common.temperatures().clone());
                Worker::Mocc(direct(access, random))
            }
            Protocol::None => Worker::Unprotected(direct(Unprotected::new(participant), random)),
            Protocol::TwoPhaseLockingNoWait
            | Protocol::TwoPhaseLockingWaitDie
            | Protocol::TwoPhaseLockingWaitForGraph
            | Protocol::TwoPhaseLockingDreadlocks => {
                Worker::two_phase_locking(common, participant, random)
            }
            Protocol::Mvcc => {
                let mut access = Mvcc::new(common.mvcc().clone(), participant);
                access.defers = defers;
                access.splits = configuration.has(ProtocolOption::TimestampSplitting);
                Worker::Mvcc(Box::new(Direct::new(access, random)))
            }
            Protocol::Vll | Protocol::VllSca => {
                let analyses = configuration.protocol == Protocol::VllSca;
                let worker = Vll::new(common.vll().clone(), participant, random, analyses);
                Worker::Vll(Box::new(worker))
            }
            Protocol::Vllr | Protocol::VllrSca => {
                let analyses = configuration.protocol == Protocol::VllrSca;
                let worker = Vll::new(common.vllr().clone(), participant, random, analyses);
                Worker::Vllr(Box::new(worker))
            }
            Protocol::RangeMap => {
                let shared = common.range_map().clone();
                Worker::RangeMap(Box::new(Vll::new(shared, participant, random, false)))
            }
            Protocol::RangeHierarchical => {
                let shared = common.range_hierarchical().clone();
                Worker::RangeHierarchical(Box::new(Vll::new(shared, participant, random, false)))
            }
            Protocol::VllArrayed => {
                let manager = common.vll_arrayed().clone();
                Worker::VllArrayed(Box::new(Vll::managed(manager, participant, random)))
            }
            Protocol::Orthrus => {
                let shared = common.orthrus().clone();
                Worker::Orthrus(Box::new(Orthrus::new(shared, participant, random)))
            }
            Protocol::OrthrusShared => {
                let shared = common.orthrus_shared().clone();
                let worker = OrthrusShared::new(shared, participant, random);
                Worker::OrthrusShared(Box::new(worker))
            }
            Protocol::Strife => {
                let shared = common.strife().clone();
                Worker::Strife(Box::new(Strife::new(shared, participant, random, defers)))
            }
            Protocol::VllSingle => {
                let shared = common.vll_single().clone();
                Worker::VllSingle(Box::new(VllSingle::new(shared, participant, random)))
            }
            Protocol::Dora => {
                let shared = common.dora().clone();
                Worker::Dora(Box::new(Dora::new(shared, participant, random)))
            }
            Protocol::Partitioned => {
                let number = participant.slot() as u32;
                let (shared, turns) = (common.partitions().clone(), common.turns().clone());
                let locks = PartitionLocks::new(shared, turns, number);
                Worker::Partitioned(direct(Planned::new(participant, locks), random))
            }
            Protocol::LockSorted | Protocol::LockAtomic | Protocol::PreNoWait => {
                Worker::planned(common, participant, random)
            }
        };
        for_any_direct!(&mut worker, direct => {
            direct.set_factors(factors);
            direct.take_turns(turn);
            direct.give_up_with(epochs);
        });
        worker
    }

    fn two_phase_locking(common: &Common, participant: Participant, random: Random) -> Worker {
        let configuration = common.configuration();
        let in_table = configuration.has(ProtocolOption::LockTable);
        // Before anything that they share is made: no-wait beside the record needs nothing.
        if !in_table && configuration.protocol == Protocol::TwoPhaseLockingNoWait {
            let access = TwoPhaseLocking::new(participant, LockWords);
            return Worker::NoWait(Box::new(Direct::new(access, random)));
        }
        let (shared, number) = (common.locks(), participant.slot() as u32);
        let queue = common.factors().lock_queue;
        /// A worker's variants for both placements of its locks.
        macro_rules! placed {
            ($beside:ident, $table:ident, $handling:expr) => {{
                let (handling, alarms) = ($handling, shared.alarms.clone());
                match in_table {
                    false => {
                        let locks = QueuedLocks::new(BesideRecord, handling, alarms, number);
                        let locks = locks.handed_on(queue);
                        let access = TwoPhaseLocking::new(participant, locks);
                        Worker::$beside(Box::new(Direct::new(access, random)))
                    }
                    true => {
                        let table = shared.table.clone();
                        let locks = QueuedLocks::new(table, handling, alarms, number);
                        let locks = locks.handed_on(queue);
                        let access = TwoPhaseLocking::new(participant, locks);
                        Worker::$table(Box::new(Direct::new(access, random)))
                    }
                }
            }};
        }
        match configuration.protocol {
            Protocol::TwoPhaseLockingWaitDie => {
                placed!(WaitDie, WaitDieTable, WaitDie::new(number))
            }
            Protocol::TwoPhaseLockingWaitForGraph => {
                let handling = WaitForGraph::new(shared.waits_for.clone(), number);
                placed!(WaitForGraph, WaitForGraphTable, handling)
            }
            Protocol::TwoPhaseLockingDreadlocks => {
                let handling = Dreadlocks::new(shared.digests.clone(), number);
                placed!(Dreadlocks, DreadlocksTable, handling)
            }
            _ => {
                let (table, alarms) = (shared.table.clone(), shared.alarms.clone());
                let locks = QueuedLocks::new(table, handling::NoWait, alarms, number);
                let access = TwoPhaseLocking::new(participant, locks);
                Worker::NoWaitTable(Box::new(Direct::new(access, random)))
            }
        }
    }

    fn planned(common: &Common, participant: Participant, random: Random) -> Worker {
        fn direct<L: Locks>(
            participant: Participant,
            locks: L,
            random: Random,
        ) -> Box<Direct<Planned<L>>> {
            Box::new(Direct::new(
                TwoPhaseLocking::new(participant, locks),
                random,
            ))
        }
        let configuration = common.configuration();
        let in_table = configuration.has(ProtocolOption::LockTable);
        if !in_table && configuration.protocol == Protocol::PreNoWait {
            return Worker::PreNoWait(direct(participant, AllOrNone(LockWords), random));
        }
        let (shared, number) = (common.locks(), participant.slot() as u32);
        fn queued<P: Placement, H: Handling>(
            placement: P,
            handling: H,
            shared: &SharedLocks,
            number: u32,
        ) -> QueuedLocks<P, H> {
            QueuedLocks::new(placement, handling, shared.alarms.clone(), number)
        }
        let (table, queue) = (shared.table.clone(), common.factors().lock_queue);
        match (configuration.protocol, in_table) {
            (Protocol::LockSorted, false) => {
                let locks = queued(BesideRecord, Ordered, shared, number);
                let locks = Sorted(locks.handed_on(queue));
                Worker::Sorted(direct(participant, locks, random))
            }
            (Protocol::LockSorted, true) => {
                let locks = queued(table, Ordered, shared, number);
                let locks = Sorted(locks.handed_on(queue));
                Worker::SortedTable(direct(participant, locks, random))
            }
            (Protocol::LockAtomic, false) => {
                let locks = queued(BesideRecord, Patient, shared, number);
                let locks = Atomic::new(locks, shared.section.clone());
                Worker::Atomic(direct(participant, locks, random))
            }
            (Protocol::LockAtomic, true) => {
                let locks = queued(table, Patient, shared, number);
                let locks = Atomic::new(locks, shared.section.clone());
                Worker::AtomicTable(direct(participant, locks, random))
            }
            _ => {
                let locks = AllOrNone(queued(table, handling::NoWait, shared, number));
                Worker::PreNoWaitTable(direct(participant, locks, random))
            }
        }
    }

    /// Records histories for `observation` from now on, or none; no transaction is open. Does
    /// nothing in builds without the feature `history`.
    pub fn observe(&mut self, observation: Option<&Observation>) {
        match self {
            Worker::Dora(worker) => worker.observe(observation),
            _ => for_any_direct!(self, direct => direct.observe(observation)),
        }
    }

    /// Reports commits to a listener of this journal from now on, or to none; no transaction is open.
    ///
    /// # Panics
    /// When the protocol is not serializable ([`Protocol::is_serializable`]): then there is no order of what is
    /// reported.
    pub fn attach(&mut self, journal: Option<&Journal>) {
        let is_serializable = !matches!(
            self,
            Worker::Unprotected(_) | Worker::SiloUnchecked(_) | Worker::OccUnchecked(_)
        );
        assert!(
            journal.is_none() || is_serializable,
            "commits that are not isolated have no order to be reported in"
        );
        for_any_direct!(self, direct => direct.attach(journal));
    }

    /// Whether the history has no room for another call: whoever makes the calls stops then.
    pub fn is_history_full(&mut self) -> bool {
        match self {
            Worker::Dora(worker) => worker.is_history_full(),
            _ => for_any_direct!(self, direct => direct.is_history_full()),
        }
    }

    /// Runs a call to its end, however often it must be repeated; see [`Direct::call`].
    pub fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
    ) -> Outcome {
        match self.try_call(program, arguments, deadline_ns, None, None) {
            Some(outcome) => outcome,
            None => unreachable!("nobody gives up without a limit to patience"),
        }
    }

    /// Runs a call to its end, or gives up when its attempts have failed for longer than `patience_ns`; what it wrote is
    /// reported with its answer, if it has one. See [`Direct::call`].
    // Not inlined: else every crate that calls this compiles the executor anew for every protocol.
    #[inline(never)]
    pub fn try_call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        for_any_worker!(self, worker => {
            worker.call(program, arguments, deadline_ns, patience_ns, answer)
        })
    }

    /// Whether it has several calls in flight when it serves.
    #[inline]
    pub fn is_pipelined(&self) -> bool {
        matches!(
            self,
            Worker::Vll(_)
                | Worker::VllArrayed(_)
                | Worker::Orthrus(_)
                | Worker::OrthrusShared(_)
                | Worker::Strife(_)
                | Worker::VllSingle(_)
                | Worker::Dora(_)
                | Worker::Vllr(_)
                | Worker::RangeMap(_)
                | Worker::RangeHierarchical(_)
        )
    }

    /// Runs calls, in any order, until there are no more and all have ended; see
    /// [`Calls`]. A worker that is not pipelined makes one after the other.
    // Not inlined: as `try_call`.
    #[inline(never)]
    pub fn serve(&mut self, calls: &mut dyn Calls) {
        match self {
            Worker::Vll(worker) => return worker.serve(calls),
            Worker::VllArrayed(worker) => return worker.serve(calls),
            Worker::Orthrus(worker) => return worker.serve(calls),
            Worker::OrthrusShared(worker) => return worker.serve(calls),
            Worker::Strife(worker) => return worker.serve(calls),
            Worker::VllSingle(worker) => return worker.serve(calls),
            Worker::Dora(worker) => return worker.serve(calls),
            Worker::Vllr(worker) => return worker.serve(calls),
            Worker::RangeMap(worker) => return worker.serve(calls),
            Worker::RangeHierarchical(worker) => return worker.serve(calls),
            _ => {}
        }
        let mut call = Call::default();
        let mut spinner = Spinner::default();
        loop {
            call.is_history_full = self.is_history_full();
            call.answer = None;
            match calls.next(&mut call) {
                Next::Call => {}
                nothing => {
                    for_any_direct!(self, direct => direct.give_way());
                    if nothing == Next::Pause {
                        return;
                    }
                    spinner.turn();
                    continue;
                }
            }
            let Some(program) = &call.program else {
                unreachable!("a call that was drawn has a program")
            };
            let (arguments, answer) = (&call.arguments, call.answer.as_ref());
            let outcome = self.try_call(program, arguments, call.deadline_ns, None, answer);
            let outcome = outcome.expect("a call without a limit to its patience is not given up");
            calls.ended(&call, outcome, self.frame());
        }
    }

    /// The next call, or the next statement of the open transaction, ends at `deadline_ns` if ever, or
    /// when `interrupt` asks it to. Holds until it is set anew; a call brings its own deadline.
    pub fn limit(&mut self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) {
        for_any_direct!(self, direct => direct.limit(deadline_ns, interrupt));
    }

    /// Starts an attempt of a transaction of several statements; see [`Direct::begin`]. Says no, and has started none, when it
    /// would have to wait for a worker that broke down.
    #[must_use]
    pub fn begin(&mut self) -> bool {
        for_any_worker!(self, worker => worker.begin())
    }

    /// Says when the open transaction began; see [`Direct::set_transaction_began`].
    pub fn set_transaction_began(&mut self, began_us: i64) {
        for_any_direct!(self, direct => direct.set_transaction_began(began_us));
    }

    /// Runs one statement of a transaction; see [`Direct::run`].
    ///
    /// # Errors
    /// As there.
    pub fn run(&mut self, program: &Arc<Program>, arguments: &Arguments) -> Result<(), Stop> {
        for_any_direct!(self, direct => direct.run(program, arguments))
    }

    /// Commits an attempt of a transaction of several statements.
    ///
    /// # Errors
    /// Why it must be repeated; it is rolled back already.
    pub fn commit(&mut self) -> Result<(), AbortCause> {
        for_any_worker!(self, worker => worker.commit())
    }

    /// Rolls an attempt of a transaction of several statements back.
    pub fn roll_back(&mut self) {
        for_any_worker!(self, worker => worker.roll_back());
    }

    /// A transaction of several statements is over, however it has ended: it is not repeated; see
    /// [`Direct::end_transaction`]. Calls do this themselves.
    pub fn end_transaction(&mut self) {
        for_any_direct!(self, direct => direct.end_transaction());
    }

    /// What the last attempt of a transaction of several statements has run; see [`Direct::programs`].
    pub fn programs(&mut self) -> &[Arc<Program>] {
        for_any_direct!(self, direct => direct.programs())
    }

    /// Whether what a transaction of several statements has read is consistent; see
    /// [`Direct::confirm`].
    ///
    /// # Errors
    /// Why it must be repeated instead.
    pub fn confirm(&mut self) -> Result<(), AbortCause> {
        for_any_direct!(self, direct => direct.confirm())
    }

    /// Counts a failed attempt and waits before the next, not past `deadline_ns`.
    pub fn back_off(&mut self, deadline_ns: Option<u64>) {
        for_any_direct!(self, direct => direct.back_off(deadline_ns));
    }

    /// It panicked and will run nothing any more: lets another one have its core.
    pub fn leave_core(&mut self) {
        for_any_direct!(self, direct => direct.give_way());
    }

    /// Ends its work without freeing anything: a worker of the database broke down, and others may have pointers to what this
    /// one has.
    pub fn leak(mut self) {
        if let Worker::VllArrayed(worker) = &mut self {
            worker.leave_manager();
        }
        std::mem::forget(self);
    }

    /// The memory of the last run, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        for_any_worker!(self, worker => worker.frame())
    }

    /// What this worker counts, for all to read at any time.
    pub fn counters(&mut self) -> &Arc<Counters> {
        for_any_direct!(self, direct => direct.counters())
    }

    /// What this worker has counted.
    pub fn statistics(&mut self) -> Statistics {
        for_any_direct!(self, direct => direct.statistics())
    }

    /// Starts counting anew.
    pub fn reset_statistics(&mut self) {
        for_any_direct!(self, direct => direct.reset_statistics());
    }
}
