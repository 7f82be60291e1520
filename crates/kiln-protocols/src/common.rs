//! What the workers of one protocol share while it is in force.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::TableId;
use kiln_storage::table::Table;

use crate::access::healing::WaitingRoom;
use crate::access::mocc::Temperatures;
use crate::access::mvcc;
use crate::access::tictoc::{Gaps, GroupTimes};
use crate::factors::Factors;
use crate::protocol::{Configuration, Protocol, ProtocolOption};
use crate::schedule::ranges::{HierarchicalLocks, PrefixCounters, RangeMap};
use crate::schedule::strife;
use crate::schedule::vll::{CounterArray, ManagerThread, SharedVll};
use crate::schedule::{dora, orthrus, owned, partitioned, vll_single};
use crate::shared::locks::SharedLocks;
use crate::shared::locks::counters::BesideRecords;
use crate::shared::turns::SharedTurns;

/// Made when a protocol is put in force, and used by all its workers until another one is. A worker
/// is known in it by its participant's slot, a number below
/// [`WORKERS_MAX`](kiln_storage::table::WORKERS_MAX).
pub struct Common {
    configuration: Configuration,
    factors: Factors,
    turns: SharedTurns,
    shared: Shared,
}

/// What some protocols share besides the records.
enum Shared {
    Nothing,
    TicToc(Arc<Gaps>, Option<Arc<GroupTimes>>),
    Mocc(Arc<Temperatures>),
    Healing(Arc<WaitingRoom>),
    Locks(SharedLocks),
    Mvcc(Arc<mvcc::Shared>),
    Vll(Arc<SharedVll<BesideRecords>>),
    VllArrayed(Arc<ManagerThread<CounterArray>>),
    Orthrus(Arc<owned::Shared<orthrus::LockTable>>),
    OrthrusTable(Arc<owned::Shared<orthrus::SharedLockTable>>),
    Strife(Arc<strife::Shared>),
    Partitioned(Arc<partitioned::Shared>),
    VllSingle(Arc<vll_single::Shared>),
    Dora(Arc<dora::Shared>),
    Vllr(Arc<SharedVll<PrefixCounters>>),
    RangeMap(Arc<SharedVll<RangeMap>>),
    RangeHierarchical(Arc<SharedVll<HierarchicalLocks>>),
}

impl Common {
    /// For the workers of a protocol with its options, under the recommended basis factors.
    pub fn new(configuration: impl Into<Configuration>) -> Common {
        Common::with_factors(configuration, Factors::default())
    }

    /// For the workers of a protocol with its options under some basis factors; those that the protocol
    /// does not have ([`Factors::refusal`]) change nothing.
    pub fn with_factors(configuration: impl Into<Configuration>, factors: Factors) -> Common {
        let configuration = configuration.into();
        let turns = SharedTurns::default();
        let shared = match configuration.protocol {
            Protocol::TicToc => {
                let splits = configuration.has(ProtocolOption::TimestampSplitting);
                Shared::TicToc(Arc::default(), splits.then(Arc::default))
            }
            Protocol::Mocc => Shared::Mocc(Arc::default()),
            Protocol::Healing => Shared::Healing(Arc::default()),
            Protocol::TwoPhaseLockingNoWait | Protocol::PreNoWait
                if !configuration.has(ProtocolOption::LockTable) =>
            {
                Shared::Nothing
            }
            Protocol::TwoPhaseLockingNoWait
            | Protocol::TwoPhaseLockingWaitDie
            | Protocol::TwoPhaseLockingWaitForGraph
            | Protocol::TwoPhaseLockingDreadlocks
            | Protocol::LockSorted
            | Protocol::LockAtomic
            | Protocol::PreNoWait => Shared::Locks(SharedLocks::new(turns.clone())),
            Protocol::Vll | Protocol::VllSca => {
                Shared::Vll(Arc::new(SharedVll::new(BesideRecords)))
            }
            Protocol::VllArrayed => {
                let manager = ManagerThread::start(CounterArray::default(), turns.clone());
                Shared::VllArrayed(Arc::new(manager))
            }
            Protocol::Orthrus => Shared::Orthrus(Arc::new(
                orthrus::shared(factors.concurrency_controllers).divided(factors.partitioning),
            )),
            Protocol::OrthrusShared => {
                Shared::OrthrusTable(Arc::new(orthrus::shared(factors.concurrency_controllers)))
            }
            Protocol::Strife => Shared::Strife(strife::Shared::new(factors.batches)),
            Protocol::Partitioned => Shared::Partitioned(Arc::new(partitioned::Shared::new(
                factors.partitions as usize,
            ))),
            Protocol::VllSingle => {
                let shared = vll_single::shared(factors.partitions as usize);
                Shared::VllSingle(Arc::new(shared.divided(factors.partitioning)))
            }
            Protocol::Dora => {
                let shared = dora::shared(factors.partitions as usize);
                Shared::Dora(Arc::new(shared.divided(factors.partitioning)))
            }
            Protocol::Vllr | Protocol::VllrSca => {
                Shared::Vllr(Arc::new(SharedVll::new(PrefixCounters::default())))
            }
            Protocol::RangeMap => Shared::RangeMap(Arc::new(SharedVll::new(RangeMap::default()))),
            Protocol::RangeHierarchical => {
                let locks = HierarchicalLocks::default();
                Shared::RangeHierarchical(Arc::new(SharedVll::new(locks)))
            }
            Protocol::Mvcc => {
                let lags = configuration.has(ProtocolOption::LaggingSnapshots);
                Shared::Mvcc(Arc::new(mvcc::Shared::new(lags)))
            }
            _ => Shared::Nothing,
        };
        Common {
            configuration,
            factors,
            turns,
            shared,
        }
    }

    /// The basis factors.
    pub fn factors(&self) -> Factors {
        self.factors
    }

    /// The protocol with its options.
    pub fn configuration(&self) -> Configuration {
        self.configuration
    }

    /// Keeps workers out while as many as there are cores are inside of calls.
    pub(crate) fn turns(&self) -> &SharedTurns {
        &self.turns
    }

    /// The timestamps of gaps, and those of reads where they are beside the records.
    pub(crate) fn tictoc(&self) -> (Arc<Gaps>, Option<Arc<GroupTimes>>) {
        match &self.shared {
            Shared::TicToc(gaps, times) => (gaps.clone(), times.clone()),
            _ => unreachable!("{} has no timestamps of gaps", self.configuration),
        }
    }

    /// What locks that are queues share.
    pub(crate) fn locks(&self) -> &SharedLocks {
        match &self.shared {
            Shared::Locks(locks) => locks,
            _ => unreachable!("{} has no locks with queues", self.configuration),
        }
    }

    /// The queue of transactions with counters beside the records.
    pub(crate) fn vll(&self) -> &Arc<SharedVll<BesideRecords>> {
        match &self.shared {
            Shared::Vll(shared) => shared,
            _ => unreachable!("{} has no queue of transactions", self.configuration),
        }
    }

    /// The queue of transactions with counters of prefixes.
    pub(crate) fn vllr(&self) -> &Arc<SharedVll<PrefixCounters>> {
        match &self.shared {
            Shared::Vllr(shared) => shared,
            _ => unreachable!("{} has no counters of prefixes", self.configuration),
        }
    }

    /// The queue of transactions with an ordered map of ranges.
    pub(crate) fn range_map(&self) -> &Arc<SharedVll<RangeMap>> {
        match &self.shared {
            Shared::RangeMap(shared) => shared,
            _ => unreachable!("{} has no map of ranges", self.configuration),
        }
    }

    /// The queue of transactions with a hash table of nodes.
    pub(crate) fn range_hierarchical(&self) -> &Arc<SharedVll<HierarchicalLocks>> {
        match &self.shared {
            Shared::RangeHierarchical(shared) => shared,
            _ => unreachable!("{} has no table of nodes", self.configuration),
        }
    }

    /// The lock manager with counters in an array.
    pub(crate) fn vll_arrayed(&self) -> &Arc<ManagerThread<CounterArray>> {
        match &self.shared {
            Shared::VllArrayed(manager) => manager,
            _ => unreachable!("{} has no lock manager", self.configuration),
        }
    }

    /// The partitions of the locks, and the roles of the workers.
    pub(crate) fn orthrus(&self) -> &Arc<owned::Shared<orthrus::LockTable>> {
        match &self.shared {
            Shared::Orthrus(shared) => shared,
            _ => unreachable!("{} has no partitions of locks", self.configuration),
        }
    }

    /// The lock table of the concurrency controllers, and the roles of the workers.
    pub(crate) fn orthrus_shared(&self) -> &Arc<owned::Shared<orthrus::SharedLockTable>> {
        match &self.shared {
            Shared::OrthrusTable(shared) => shared,
            _ => unreachable!("{} has no concurrency controllers", self.configuration),
        }
    }

    /// The batches of all workers.
    pub(crate) fn strife(&self) -> &Arc<strife::Shared> {
        match &self.shared {
            Shared::Strife(shared) => shared,
            _ => unreachable!("{} has no batches", self.configuration),
        }
    }

    /// Asks for a batch of calls to be explained, where calls are batched: see [`strife::Shared::explain`].
    pub fn explain_batch(&self) {
        if let Shared::Strife(shared) = &self.shared {
            shared.explain();
        }
    }

    /// The batch that was explained, if there was one.
    pub fn explained_batch(&self) -> Option<strife::Explained> {
        match &self.shared {
            Shared::Strife(shared) => shared.explained(),
            _ => None,
        }
    }

    /// What the next batch of calls is analysed with, where calls are batched.
    pub fn batches_chosen(&self) -> Option<strife::Chosen> {
        match &self.shared {
            Shared::Strife(shared) => Some(shared.chosen()),
            _ => None,
        }
    }

    /// The partitions with a thread each.
    pub(crate) fn vll_single(&self) -> &Arc<vll_single::Shared> {
        match &self.shared {
            Shared::VllSingle(shared) => shared,
            _ => unreachable!("{} has no thread for each partition", self.configuration),
        }
    }

    /// The partitions with an owner each.
    pub(crate) fn dora(&self) -> &Arc<dora::Shared> {
        match &self.shared {
            Shared::Dora(shared) => shared,
            _ => unreachable!("{} has no owners of partitions", self.configuration),
        }
    }

    /// The locks of the partitions.
    pub(crate) fn partitions(&self) -> &Arc<partitioned::Shared> {
        match &self.shared {
            Shared::Partitioned(shared) => shared,
            _ => unreachable!("{} has no locks of partitions", self.configuration),
        }
    }

    /// Where those wait who heal.
    pub(crate) fn waiting_room(&self) -> &Arc<WaitingRoom> {
        match &self.shared {
            Shared::Healing(room) => room,
            _ => unreachable!("{} has no waiting room", self.configuration),
        }
    }

    /// How hot records are.
    pub(crate) fn temperatures(&self) -> &Arc<Temperatures> {
        match &self.shared {
            Shared::Mocc(temperatures) => temperatures,
            _ => unreachable!("{} has no temperatures", self.configuration),
        }
    }

    /// What the workers of [`Protocol::Mvcc`] share.
    ///
    /// # Panics
    /// When another protocol is in force.
    pub fn mvcc(&self) -> &Arc<mvcc::Shared> {
        match &self.shared {
            Shared::Mvcc(shared) => shared,
            _ => panic!("{} has one version of each record", self.configuration),
        }
    }

    /// Prepares a table's memory for the protocol, which comes into force: no transaction runs.
    pub fn prepare(&self, table: &Table) {
        if let Shared::Vll(_) | Shared::Strife(_) = &self.shared {
            // Counters and labels outlive records, so cells that have none must not have what another protocol left.
            table.slab().for_each_cell(|cell| {
                // SAFETY: the cell is of this table's slab.
                let record = unsafe { RecordRef::from_cell(cell) };
                // Nobody else is there; whoever comes later comes through the gate's barrier.
                record.aux().store(0, Ordering::Relaxed);
            });
        }
    }

    /// Brings the rows up to date, and the indexes, where the protocol leaves that for later: asked before
    /// anybody but its workers looks at rows, and before a table is changed or goes. No transaction runs;
    /// all tables that transactions have used since the last time are still there.
    pub fn settle(&self, participant: &Participant) {
        if let Shared::Mvcc(shared) = &self.shared {
            shared.settle(participant);
        }
    }

    /// Whether rows and indexes are not up to date before they are [settled](Common::settle).
    pub fn settles_later(&self) -> bool {
        matches!(self.shared, Shared::Mvcc(_))
    }

    /// As [`Common::settle`] for one table, before it is changed or goes, beside open transactions between two of
    /// their statements that have not used the table. They do not read a snapshot.
    pub fn settle_table(&self, participant: &Participant, table: TableId) {
        if let Shared::Mvcc(shared) = &self.shared {
            shared.settle_table(participant, table);
        }
    }

    /// Whether which columns a table keeps apart may change only while no transaction is open: timestamps of such columns are
    /// not those of the record, and say nothing of what was read and written before. A transaction from before the
    /// change and one from after it could then each come before the other.
    pub fn orders_columns(&self) -> bool {
        let is_split = self.configuration.has(ProtocolOption::TimestampSplitting);
        is_split && matches!(self.shared, Shared::TicToc(..) | Shared::Mvcc(_))
    }

    /// Tables have taken the places of others, with other indexes: no transaction runs, but blocks may be open.
    pub fn tables_changed(&self) {
        if let Shared::TicToc(gaps, _) = &self.shared {
            gaps.spread();
        }
    }

    /// Does for idle workers what the protocol's workers do for memory between their transactions, a portion of it;
    /// `participant` belongs to no worker. Returns whether it did all that can be done now. Nobody settles
    /// meanwhile.
    pub fn look_after_idle(&self, participant: &Participant) -> bool {
        match &self.shared {
            Shared::Mvcc(shared) => shared.look_after_idle(participant),
            _ => true,
        }
    }

    /// Takes what the protocol has left in the records of a table back out of them, so that any other
    /// one can take over. It has settled; no transaction runs, and no worker of this protocol will run
    /// another.
    pub fn clear_aux(&self, table: &Table) {
        if self.configuration.leaves_aux() {
            table.indexes()[0].for_each(|record| {
                // Nobody else is there; whoever comes later comes through the gate's barrier.
                record.aux().store(0, Ordering::Relaxed);
            });
        }
    }
}
