//! The table of protocols.

use crate::registration::Registration;
use crate::{access, schedule};

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
    use crate::factors::Factors;

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
