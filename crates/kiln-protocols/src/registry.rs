//! The table of protocols, and what a row of it says.
//!
//! A row stands in the folder of its protocol, in a file `registration.rs`. The rest of Kiln knows
//! a protocol by its row alone: its name, what it promises, which options and basis factors it
//! takes, and the function that makes what its workers share.

use crate::factors::Factors;
use crate::family::Family;
use crate::protocol::{Configuration, ProtocolOption};
use crate::shared::core_slots::CoreSlots;
use crate::{access, schedule};

/// A row of the table.
pub(crate) struct Registration {
    /// Its name on the command line.
    pub name: &'static str,
    /// What the literature calls it.
    pub aliases: &'static [&'static str],
    /// One line on what it is.
    pub description: &'static str,
    /// What it promises.
    pub promises: Promises,
    /// The options that it takes.
    pub options: &'static [ProtocolOption],
    /// The basis factors that some protocols have and it has, by their names in
    /// [`Factors::choices`].
    pub factors: &'static [&'static str],
    /// Makes what its workers share, when it is put in force.
    pub family: fn(&Setting) -> Box<dyn Family>,
}

/// What a protocol promises.
#[derive(Clone, Copy)]
pub(crate) struct Promises {
    /// See [`Protocol::is_serializable`].
    pub serializable: bool,
    /// See [`Protocol::is_strict`].
    pub strict: bool,
    /// See [`Protocol::is_single_worker`].
    pub single_worker: bool,
    /// See [`Protocol::logs_commands`].
    pub logs_commands: bool,
    /// See [`Protocol::leaves_aux`].
    pub leaves_aux: bool,
    /// Whether what it keeps in `aux` outlives the record: then a cell without one must have 0
    /// there when the protocol comes into force, too.
    pub aux_outlives_records: bool,
    /// See [`Protocol::holds_nothing_in_blocks`].
    pub holds_nothing_in_blocks: bool,
    /// Whether an attempt may rely on some columns of a record and not on all, whatever its options
    /// are.
    pub looks_at_columns: bool,
    /// Whether timestamps of split columns of a table are other ones than those of the
    /// record, where the protocol has them ([`ProtocolOption::TimestampSplitting`]).
    pub orders_columns: bool,
    /// See [`Protocol::explains_batches`].
    pub explains_batches: bool,
}

impl Promises {
    /// Strict serializability, by any number of workers, and nothing more.
    pub const STRICT: Promises = Promises {
        serializable: true,
        strict: true,
        single_worker: false,
        logs_commands: false,
        leaves_aux: false,
        aux_outlives_records: false,
        holds_nothing_in_blocks: false,
        looks_at_columns: false,
        orders_columns: false,
        explains_batches: false,
    };

    /// Nothing: a baseline for measurements.
    pub const NOTHING: Promises = Promises {
        serializable: false,
        strict: false,
        ..Promises::STRICT
    };
}

/// What a protocol is put in force with.
#[derive(Clone)]
pub(crate) struct Setting {
    /// The protocol, and its options.
    pub configuration: Configuration,
    /// The basis factors; those that the protocol does not have change nothing.
    pub factors: Factors,
    /// Keeps workers out while as many as there are cores are inside of calls.
    pub core_slots: CoreSlots,
}

impl Setting {
    /// Whether an option is on.
    pub fn has(&self, option: ProtocolOption) -> bool {
        self.configuration.has(option)
    }
}

/// Makes the enum of the protocols, and the table, from one list.
macro_rules! protocols {
    ($($(#[$attribute:meta])* $protocol:ident => $row:path,)*) => {
        /// A protocol, by its name on the command line.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Protocol {
            $($(#[$attribute])* $protocol,)*
        }

        /// By the number of the protocol.
        const ROWS: &[Registration] = &[$($row,)*];

        impl Protocol {
            /// All protocols.
            pub const ALL: [Protocol; ROWS.len()] = [$(Protocol::$protocol,)*];
        }
    };
}

protocols! {
    /// One worker, no concurrency control.
    Serial => access::serial::registration::SERIAL,
    /// All workers, no concurrency control. An unsafe baseline.
    None => access::none::registration::NONE,
    /// Optimistic, epoch-based.
    #[default]
    Silo => access::silo::registration::SILO,
    /// Optimistic: silo without validation. An unsafe baseline.
    SiloUnchecked => access::silo::registration::SILO_UNCHECKED,
    /// Optimistic: all that was read and written is locked in one order, then validated.
    Occ => access::occ::registration::OCC,
    /// Optimistic: occ without validation. An unsafe baseline.
    OccUnchecked => access::occ::registration::OCC_UNCHECKED,
    /// Optimistic: an attempt that fails validation is repaired, and not repeated.
    Healing => access::healing::registration::HEALING,
    /// Optimistic, with timestamps computed from what was read and written.
    TicToc => access::tictoc::registration::TICTOC,
    /// Optimistic at the first attempt, with locks afterwards.
    Hybrid => access::hybrid::registration::HYBRID,
    /// Optimistic, with locks on records on which many attempts fail.
    Mocc => access::mocc::registration::MOCC,
    /// Strict two-phase locking that aborts instead of waiting.
    TwoPhaseLockingNoWait => access::two_phase_locking::registration::NO_WAIT,
    /// Strict two-phase locking in which older transactions wait and younger ones abort.
    TwoPhaseLockingWaitDie => access::two_phase_locking::registration::WAIT_DIE,
    /// Strict two-phase locking with a waits-for graph.
    TwoPhaseLockingWaitForGraph => access::two_phase_locking::registration::WAIT_FOR_GRAPH,
    /// Strict two-phase locking with digests.
    TwoPhaseLockingDreadlocks => access::two_phase_locking::registration::DREADLOCKS,
    /// Multiversion, validated at commit; read-only procedures read the past.
    Mvcc => access::mvcc::registration::MVCC,
    /// Planned: all locks are taken in one order before the transaction runs.
    LockSorted => access::planned_locking::registration::LOCK_SORTED,
    /// Planned: all locks are asked for in one critical section before the transaction runs.
    LockAtomic => access::planned_locking::registration::LOCK_ATOMIC,
    /// Planned: all locks are had at once before the transaction runs, or none.
    PreNoWait => access::planned_locking::registration::PRE_NO_WAIT,
    /// Planned: counters beside the records, and one queue of all transactions.
    Vll => schedule::vll::registration::VLL,
    /// Planned: vll that looks for transactions without conflicts when it has nothing else to do.
    VllSca => schedule::vll::registration::VLL_SCA,
    /// Planned: vll whose counters are in an array, kept by a thread of their own.
    VllArrayed => schedule::vll::registration::VLL_ARRAYED,
    /// Planned: some workers only control concurrency, the others only run transactions.
    Orthrus => schedule::orthrus::registration::ORTHRUS,
    /// Planned: orthrus whose concurrency controllers share one lock table.
    OrthrusShared => schedule::orthrus::registration::ORTHRUS_SHARED,
    /// Planned: batches fall apart into clusters, which run without concurrency control.
    Strife => schedule::strife::registration::STRIFE,
    /// Planned: a lock for each partition of the data, taken in one order.
    Partitioned => schedule::partitioned::registration::PARTITIONED,
    /// Planned: vll with a thread for each partition of the data.
    VllSingle => schedule::vll_single::registration::VLL_SINGLE,
    /// Planned: transactions flow between threads that own partitions of the data.
    Dora => schedule::dora::registration::DORA,
    /// Planned: vll with counters for ranges of keys.
    Vllr => schedule::ranges::registration::VLLR,
    /// Planned: vllr that looks for transactions without conflicts when it has nothing else to do.
    VllrSca => schedule::ranges::registration::VLLR_SCA,
    /// Planned: locks on ranges in an ordered map.
    RangeMap => schedule::ranges::registration::RANGE_MAP,
    /// Planned: locks on ranges by intentions in a hash table.
    RangeHierarchical => schedule::ranges::registration::RANGE_HIERARCHICAL,
}

impl Protocol {
    /// Its row.
    pub(crate) const fn registration(self) -> &'static Registration {
        &ROWS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_protocols_are_called_the_same() {
        let mut called = BTreeSet::new();
        for row in ROWS {
            for name in std::iter::once(&row.name).chain(row.aliases) {
                assert!(called.insert(name), "two protocols are called {name}");
                assert_eq!(Protocol::parse(name).map(Protocol::name), Some(row.name));
            }
        }
    }

    #[test]
    fn rows_name_factors_that_there_are() {
        let choices = Factors::default().choices();
        for row in ROWS {
            for factor in row.factors {
                let is_known = choices.iter().any(|(name, _)| name == factor);
                assert!(is_known, "{} has a factor {factor}", row.name);
            }
        }
    }
}
