//! What can be chosen: the protocols by name, what each promises, and the options that some take.

use std::fmt;
use std::str::FromStr;

/// A protocol, by its name on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// One worker, no concurrency control.
    Serial,
    /// All workers, no concurrency control. An unsafe baseline.
    None,
    /// Optimistic, epoch-based.
    #[default]
    Silo,
    /// Optimistic: silo without validation. An unsafe baseline.
    SiloUnchecked,
    /// Optimistic: all that was read and written is locked in one order, then validated.
    Occ,
    /// Optimistic: occ without validation. An unsafe baseline.
    OccUnchecked,
    /// Optimistic: an attempt that fails validation is repaired, and not repeated.
    Healing,
    /// Optimistic, with timestamps computed from what was read and written.
    TicToc,
    /// Optimistic at the first attempt, with locks afterwards.
    Hybrid,
    /// Optimistic, with locks on records on which many attempts fail.
    Mocc,
    /// Strict two-phase locking that aborts instead of waiting.
    TwoPhaseLockingNoWait,
    /// Strict two-phase locking in which older transactions wait and younger ones abort.
    TwoPhaseLockingWaitDie,
    /// Strict two-phase locking with a waits-for graph.
    TwoPhaseLockingWaitForGraph,
    /// Strict two-phase locking with digests.
    TwoPhaseLockingDreadlocks,
    /// Multiversion, validated at commit; read-only procedures read the past.
    Mvcc,
    /// Planned: all locks are taken in one order before the transaction runs.
    LockSorted,
    /// Planned: all locks are asked for in one critical section before the transaction runs.
    LockAtomic,
    /// Planned: all locks are had at once before the transaction runs, or none.
    PreNoWait,
    /// Planned: counters beside the records, and one queue of all transactions.
    Vll,
    /// Planned: vll that looks for transactions without conflicts when it has nothing else to do.
    VllSca,
    /// Planned: vll whose counters are in an array, kept by a thread of their own.
    VllArrayed,
    /// Planned: some workers only control concurrency, the others only run transactions.
    Orthrus,
    /// Planned: orthrus whose concurrency controllers share one lock table.
    OrthrusShared,
    /// Planned: batches fall apart into clusters, which run without concurrency control.
    Strife,
    /// Planned: a lock for each partition of the data, taken in one order.
    Partitioned,
    /// Planned: vll with a thread for each partition of the data.
    VllSingle,
    /// Planned: transactions flow between threads that own partitions of the data.
    Dora,
    /// Planned: vll with counters for ranges of keys.
    Vllr,
    /// Planned: vllr that looks for transactions without conflicts when it has nothing else to do.
    VllrSca,
    /// Planned: locks on ranges in an ordered map.
    RangeMap,
    /// Planned: locks on ranges by intentions in a hash table.
    RangeHierarchical,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 31] = [
        Protocol::Serial,
        Protocol::None,
        Protocol::Silo,
        Protocol::SiloUnchecked,
        Protocol::Occ,
        Protocol::OccUnchecked,
        Protocol::Healing,
        Protocol::TicToc,
        Protocol::Hybrid,
        Protocol::Mocc,
        Protocol::TwoPhaseLockingNoWait,
        Protocol::TwoPhaseLockingWaitDie,
        Protocol::TwoPhaseLockingWaitForGraph,
        Protocol::TwoPhaseLockingDreadlocks,
        Protocol::Mvcc,
        Protocol::LockSorted,
        Protocol::LockAtomic,
        Protocol::PreNoWait,
        Protocol::Vll,
        Protocol::VllSca,
        Protocol::VllArrayed,
        Protocol::Orthrus,
        Protocol::OrthrusShared,
        Protocol::Strife,
        Protocol::Partitioned,
        Protocol::VllSingle,
        Protocol::Dora,
        Protocol::Vllr,
        Protocol::VllrSca,
        Protocol::RangeMap,
        Protocol::RangeHierarchical,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Serial => "serial",
            Protocol::None => "none",
            Protocol::Silo => "silo",
            Protocol::SiloUnchecked => "silo-unchecked",
            Protocol::Occ => "occ",
            Protocol::OccUnchecked => "occ-unchecked",
            Protocol::Healing => "healing",
            Protocol::TicToc => "tictoc",
            Protocol::Hybrid => "hybrid",
            Protocol::Mocc => "mocc",
            Protocol::TwoPhaseLockingNoWait => "2pl-no-wait",
            Protocol::TwoPhaseLockingWaitDie => "2pl-wait-die",
            Protocol::TwoPhaseLockingWaitForGraph => "2pl-wait-for-graph",
            Protocol::TwoPhaseLockingDreadlocks => "2pl-dreadlocks",
            Protocol::Mvcc => "mvcc",
            Protocol::LockSorted => "lock-sorted",
            Protocol::LockAtomic => "lock-atomic",
            Protocol::PreNoWait => "pre-no-wait",
            Protocol::Vll => "vll",
            Protocol::VllSca => "vll-sca",
            Protocol::VllArrayed => "vll-arrayed",
            Protocol::Orthrus => "orthrus",
            Protocol::OrthrusShared => "orthrus-shared",
            Protocol::Strife => "strife",
            Protocol::Partitioned => "partitioned",
            Protocol::VllSingle => "vll-single",
            Protocol::Dora => "dora",
            Protocol::Vllr => "vllr",
            Protocol::VllrSca => "vllr-sca",
            Protocol::RangeMap => "range-map",
            Protocol::RangeHierarchical => "range-hierarchical",
        }
    }

    /// One line on what it is.
    pub const fn description(self) -> &'static str {
        match self {
            Protocol::Serial => "one worker, no concurrency control: the floor",
            Protocol::None => "unsafe baseline: all workers, no concurrency control",
            Protocol::Silo => "optimistic, validated at commit, epoch-based versions",
            Protocol::SiloUnchecked => "unsafe baseline: silo without validation",
            Protocol::Occ => {
                "optimistic, locks what was read and written in one order, then validates"
            }
            Protocol::OccUnchecked => "unsafe baseline: occ without validation",
            Protocol::Healing => {
                "optimistic, repairs what was read too early at the commit instead of starting again"
            }
            Protocol::TicToc => {
                "optimistic, timestamps computed from what was read and written, not strict"
            }
            Protocol::Hybrid => "optimistic at the first attempt, two-phase locking afterwards",
            Protocol::Mocc => "optimistic, with locks on hot records",
            Protocol::TwoPhaseLockingNoWait => {
                "strict two-phase locking, aborts instead of waiting"
            }
            Protocol::TwoPhaseLockingWaitDie => {
                "strict two-phase locking, older transactions wait, younger ones abort"
            }
            Protocol::TwoPhaseLockingWaitForGraph => {
                "strict two-phase locking, deadlocks found in a waits-for graph (dl-detect)"
            }
            Protocol::TwoPhaseLockingDreadlocks => {
                "strict two-phase locking, deadlocks found by digests of who waits for whom"
            }
            Protocol::Mvcc => "multiversion: read-only procedures read the past, and always commit",
            Protocol::LockSorted => {
                "planned: all locks are taken in one order before the transaction runs"
            }
            Protocol::LockAtomic => {
                "planned: all locks are asked for in one critical section before it runs"
            }
            Protocol::PreNoWait => {
                "planned: all locks are had at once before the transaction runs, or it starts again"
            }
            Protocol::Vll => "planned: locks are counters, in one queue of all transactions",
            Protocol::VllSca => {
                "planned: vll that looks for transactions without conflicts when it has time"
            }
            Protocol::Orthrus => {
                "planned: some workers only control concurrency, the others only run transactions"
            }
            Protocol::OrthrusShared => {
                "planned: orthrus whose concurrency controllers share one lock table"
            }
            Protocol::Strife => {
                "planned: batches fall apart into clusters, which run without concurrency control"
            }
            Protocol::Partitioned => {
                "planned: one lock for each partition of the data, taken in one order (H-Store)"
            }
            Protocol::VllSingle => {
                "planned: vll with a thread, and counters, for each partition of the data"
            }
            Protocol::Dora => {
                "planned: transactions flow between threads that own partitions of the data"
            }
            Protocol::VllArrayed => "planned: vll whose lock manager is a thread, with an array",
            Protocol::Vllr => "planned: vll that locks ranges of keys, and no records",
            Protocol::VllrSca => {
                "planned: vllr that looks for transactions without conflicts when it has time"
            }
            Protocol::RangeMap => "planned: ranges of keys are locked in an ordered map",
            Protocol::RangeHierarchical => {
                "planned: ranges of keys are locked by intentions in a hash table"
            }
        }
    }

    /// The protocol called `name`, or known to others by that name.
    pub fn parse(name: &str) -> Option<Protocol> {
        let name = match name {
            // Yu et al., and VLL and STRIFE after them.
            "dl-detect" => "2pl-wait-for-graph",
            // ORTHRUS §3.2.
            "deadlock-free" => "lock-sorted",
            // STRIFE §5.4, ORTHRUS §4.3, healing §5.
            "partcc" | "partitioned-store" | "h-store" => "partitioned",
            name => name,
        };
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name)
    }

    /// Whether an open block holds nothing for which statements of others wait: what it writes is its own until it commits.
    pub fn holds_nothing_in_blocks(self) -> bool {
        matches!(
            self,
            Protocol::Silo | Protocol::Occ | Protocol::TicToc | Protocol::Mvcc
        )
    }

    /// The protocols that keep their promise, without the baselines that exist to be measured.
    pub fn serializable() -> impl Iterator<Item = Protocol> {
        Protocol::ALL.into_iter().filter(|it| it.is_serializable())
    }

    /// Whether only one transaction may run at a time in the whole database.
    pub const fn is_single_worker(self) -> bool {
        matches!(self, Protocol::Serial)
    }

    /// Whether committed transactions behave as if they had run one after the other. Where this is
    /// false the protocol is a baseline for measurements, and nothing else.
    pub const fn is_serializable(self) -> bool {
        match self {
            Protocol::Serial
            | Protocol::Silo
            | Protocol::Occ
            | Protocol::Healing
            | Protocol::TicToc
            | Protocol::Hybrid
            | Protocol::Mocc
            | Protocol::TwoPhaseLockingNoWait
            | Protocol::TwoPhaseLockingWaitDie
            | Protocol::TwoPhaseLockingWaitForGraph
            | Protocol::TwoPhaseLockingDreadlocks
            | Protocol::Mvcc
            | Protocol::LockSorted
            | Protocol::LockAtomic
            | Protocol::PreNoWait
            | Protocol::Vll
            | Protocol::VllSca
            | Protocol::VllArrayed
            | Protocol::Orthrus
            | Protocol::OrthrusShared
            | Protocol::Strife
            | Protocol::Partitioned
            | Protocol::VllSingle
            | Protocol::Dora
            | Protocol::Vllr
            | Protocol::VllrSca
            | Protocol::RangeMap
            | Protocol::RangeHierarchical => true,
            Protocol::None | Protocol::SiloUnchecked | Protocol::OccUnchecked => false,
        }
    }

    /// Whether that order agrees with real time: what begins after another has committed comes after
    /// it (strict serializability).
    pub const fn is_strict(self) -> bool {
        match self {
            Protocol::Serial
            | Protocol::Silo
            | Protocol::Occ
            | Protocol::Healing
            | Protocol::Hybrid
            | Protocol::Mocc
            | Protocol::TwoPhaseLockingNoWait
            | Protocol::TwoPhaseLockingWaitDie
            | Protocol::TwoPhaseLockingWaitForGraph
            | Protocol::TwoPhaseLockingDreadlocks
            | Protocol::Mvcc
            | Protocol::LockSorted
            | Protocol::LockAtomic
            | Protocol::PreNoWait
            | Protocol::Vll
            | Protocol::VllSca
            | Protocol::VllArrayed
            | Protocol::Orthrus
            | Protocol::OrthrusShared
            | Protocol::Strife
            | Protocol::Partitioned
            | Protocol::VllSingle
            | Protocol::Dora
            | Protocol::Vllr
            | Protocol::VllrSca
            | Protocol::RangeMap
            | Protocol::RangeHierarchical => true,
            Protocol::None
            | Protocol::SiloUnchecked
            | Protocol::OccUnchecked
            | Protocol::TicToc => false,
        }
    }

    /// Whether a log may keep the calls of procedures in place of what they write: an order of the calls that conflict is fixed before they run, and
    /// they hold whatever they have read and written until they have committed.
    pub const fn logs_commands(self) -> bool {
        matches!(
            self,
            Protocol::Serial
                | Protocol::Vll
                | Protocol::VllSca
                | Protocol::VllArrayed
                | Protocol::VllSingle
                | Protocol::Vllr
                | Protocol::VllrSca
        )
    }

    /// Whether records keep something in `aux` between transactions, which has to go before another
    /// protocol takes over.
    pub const fn leaves_aux(self) -> bool {
        match self {
            Protocol::TicToc | Protocol::Mvcc | Protocol::Strife => true,
            Protocol::Serial
            | Protocol::None
            | Protocol::Silo
            | Protocol::SiloUnchecked
            | Protocol::Occ
            | Protocol::OccUnchecked
            | Protocol::Healing
            | Protocol::Hybrid
            | Protocol::Mocc
            | Protocol::TwoPhaseLockingNoWait
            | Protocol::TwoPhaseLockingWaitDie
            | Protocol::TwoPhaseLockingWaitForGraph
            | Protocol::TwoPhaseLockingDreadlocks
            | Protocol::LockSorted
            | Protocol::LockAtomic
            | Protocol::PreNoWait
            | Protocol::Vll
            | Protocol::VllSca
            | Protocol::VllArrayed
            | Protocol::Orthrus
            | Protocol::OrthrusShared
            | Protocol::Partitioned
            | Protocol::VllSingle
            | Protocol::Dora
            | Protocol::Vllr
            | Protocol::VllrSca
            | Protocol::RangeMap
            | Protocol::RangeHierarchical => false,
        }
    }

    /// The options that it takes.
    pub const fn options(self) -> &'static [ProtocolOption] {
        match self {
            Protocol::Silo => &[
                ProtocolOption::CommitTimeUpdates,
                ProtocolOption::TimestampSplitting,
            ],
            Protocol::Mvcc => &[
                ProtocolOption::CommitTimeUpdates,
                ProtocolOption::TimestampSplitting,
                ProtocolOption::LaggingSnapshots,
            ],
            Protocol::TicToc => &[
                ProtocolOption::CommitTimeUpdates,
                ProtocolOption::TimestampSplitting,
                ProtocolOption::Sweeps,
            ],
            Protocol::Serial
            | Protocol::None
            | Protocol::SiloUnchecked
            | Protocol::OccUnchecked
            | Protocol::Hybrid
            | Protocol::Mocc
            | Protocol::Vll
            | Protocol::VllSca
            | Protocol::VllArrayed
            | Protocol::Orthrus
            | Protocol::OrthrusShared
            | Protocol::Partitioned
            | Protocol::VllSingle
            | Protocol::Dora
            | Protocol::Vllr
            | Protocol::VllrSca
            | Protocol::RangeMap
            | Protocol::RangeHierarchical => &[],
            Protocol::Occ | Protocol::Healing | Protocol::Strife => {
                &[ProtocolOption::CommitTimeUpdates]
            }
            Protocol::TwoPhaseLockingNoWait
            | Protocol::TwoPhaseLockingWaitDie
            | Protocol::TwoPhaseLockingWaitForGraph
            | Protocol::TwoPhaseLockingDreadlocks
            | Protocol::LockSorted
            | Protocol::LockAtomic
            | Protocol::PreNoWait => &[ProtocolOption::LockTable],
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What can be added to some protocols, after a `+` behind their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolOption {
    /// Commit-time updates (STO §6.1): `+cu`.
    CommitTimeUpdates,
    /// Timestamp splitting (STO §6.2): `+ts`.
    TimestampSplitting,
    /// Locks in a hash table instead of beside the record (ORTHRUS §4, VLL §3.1): `+table`.
    LockTable,
    /// Read-only attempts that are repeated begin with a sweep over what the one before had met, under [`Protocol::TicToc`] with
    /// timestamp splitting: `+sweeps`, behind `+ts`. In no paper.
    Sweeps,
    /// Readers of snapshots wait for no commit, and may miss the newest ones, under [`Protocol::Mvcc`] (STO §2.2): `+lagging`.
    LaggingSnapshots,
}

impl ProtocolOption {
    /// All options, in the order in which they are written.
    pub const ALL: [ProtocolOption; 5] = [
        ProtocolOption::CommitTimeUpdates,
        ProtocolOption::TimestampSplitting,
        ProtocolOption::LockTable,
        ProtocolOption::Sweeps,
        ProtocolOption::LaggingSnapshots,
    ];

    /// Its name, without the `+`.
    pub const fn name(self) -> &'static str {
        match self {
            ProtocolOption::CommitTimeUpdates => "cu",
            ProtocolOption::TimestampSplitting => "ts",
            ProtocolOption::LockTable => "table",
            ProtocolOption::Sweeps => "sweeps",
            ProtocolOption::LaggingSnapshots => "lagging",
        }
    }

    /// One line on what it does.
    pub const fn description(self) -> &'static str {
        match self {
            ProtocolOption::CommitTimeUpdates => {
                "updates whose old values nobody observes are applied at commit"
            }
            ProtocolOption::TimestampSplitting => {
                "columns rarely written are versioned apart from those often written"
            }
            ProtocolOption::LockTable => {
                "locks in a hash table with a latch for each bucket, not beside the record"
            }
            ProtocolOption::Sweeps => {
                "with +ts: a read-only attempt that is repeated first extends what the one before had met"
            }
            ProtocolOption::LaggingSnapshots => {
                "readers wait for no commit, and may miss the newest ones: the order is not strict"
            }
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A protocol with its options: what a database is run with. Written `silo+cu+ts`.
///
/// The default is what is recommended: `silo` with both of its options. A protocol's plain name means the
/// plain protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The protocol.
    pub protocol: Protocol,
    options: u8,
}

impl Configuration {
    /// The default: `silo+cu+ts`.
    pub const DEFAULT: Configuration = Configuration {
        protocol: Protocol::Silo,
        options: ProtocolOption::CommitTimeUpdates.bit() | ProtocolOption::TimestampSplitting.bit(),
    };

    /// A protocol without options.
    pub const fn of(protocol: Protocol) -> Configuration {
        Configuration {
            protocol,
            options: 0,
        }
    }

    /// The default, and every protocol that keeps its promise, without options.
    pub fn serializable() -> impl Iterator<Item = Configuration> {
        let plain = Protocol::serializable().map(Configuration::of);
        std::iter::once(Configuration::DEFAULT).chain(plain)
    }

    /// The same with `option` turned on.
    ///
    /// # Errors
    /// A sentence that says what the protocol takes instead.
    pub fn with(self, option: ProtocolOption) -> Result<Configuration, String> {
        if !self.protocol.options().contains(&option) {
            let names: Vec<String> = (self.protocol.options().iter())
                .map(|option| format!("+{}", option.name()))
                .collect();
            let instead = match names.is_empty() {
                true => "it takes none".to_owned(),
                false => format!("it takes {}", names.join(", ")),
            };
            let (name, option) = (self.protocol, option.name());
            return Err(format!("{name} has no option \"+{option}\": {instead}"));
        }
        if option == ProtocolOption::Sweeps && !self.has(ProtocolOption::TimestampSplitting) {
            let name = self.protocol;
            return Err(format!(
                "{name} has the option \"+sweeps\" behind \"+ts\" alone"
            ));
        }
        Ok(Configuration {
            options: self.options | option.bit(),
            ..self
        })
    }

    /// Whether `option` is on.
    pub const fn has(self, option: ProtocolOption) -> bool {
        self.options & option.bit() != 0
    }

    /// Whether it looks at which columns are observed: with commit-time updates or timestamp splitting.
    pub const fn has_columns(self) -> bool {
        self.has(ProtocolOption::CommitTimeUpdates) || self.has(ProtocolOption::TimestampSplitting)
    }

    /// Whether an attempt may rely on some columns of a record and not on all: then whoever changes a primary
    /// key deletes the row and inserts another.
    pub const fn looks_at_columns(self) -> bool {
        self.has_columns() || matches!(self.protocol, Protocol::Healing)
    }

    /// As [`Protocol::is_strict`], with the options: snapshots that lag are in the past.
    pub const fn is_strict(self) -> bool {
        self.protocol.is_strict() && !self.has(ProtocolOption::LaggingSnapshots)
    }

    /// As [`Protocol::leaves_aux`], with the options: the second timestamp stays.
    pub const fn leaves_aux(self) -> bool {
        self.protocol.leaves_aux() || self.has_columns()
    }

    /// As [`Protocol::is_single_worker`].
    pub const fn is_single_worker(self) -> bool {
        self.protocol.is_single_worker()
    }

    /// Its name as a text; [`Configuration::from_str`] reads it.
    pub fn name(self) -> String {
        self.to_string()
    }
}

impl From<Protocol> for Configuration {
    fn from(protocol: Protocol) -> Configuration {
        Configuration::of(protocol)
    }
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration::DEFAULT
    }
}

impl PartialEq<Protocol> for Configuration {
    fn eq(&self, other: &Protocol) -> bool {
        *self == Configuration::from(*other)
    }
}

impl FromStr for Configuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Configuration, String> {
        let mut words = text.split('+');
        let name = words.next().unwrap_or_default();
        let protocol = Protocol::parse(name).ok_or_else(|| {
            let names = Protocol::ALL.map(Protocol::name).join(", ");
            format!("there is no protocol \"{name}\" [possible values: {names}]")
        })?;
        words.try_fold(Configuration::from(protocol), |configuration, word| {
            let option = ProtocolOption::ALL
                .into_iter()
                .find(|option| option.name() == word)
                .ok_or_else(|| {
                    let names = ProtocolOption::ALL.map(|option| format!("+{}", option.name()));
                    let names = names.join(", ");
                    format!("protocols have no option \"+{word}\" [possible values: {names}]")
                })?;
            configuration.with(option)
        })
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.protocol.name().to_owned();
        for option in ProtocolOption::ALL {
            if self.has(option) {
                text += "+";
                text += option.name();
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_mistakes_say_what_is_possible() {
        for protocol in Protocol::ALL {
            let mut all = Configuration::from(protocol);
            for option in protocol.options() {
                all = all.with(*option).expect("it takes the option");
            }
            assert_eq!(all.name().parse(), Ok(all));
        }
        let refused = |text: &str| text.parse::<Configuration>().expect_err(text);
        assert!(refused("hope").contains("[possible values: serial, none, silo"));
        assert!(
            refused("silo+luck")
                .contains("\"+luck\" [possible values: +cu, +ts, +table, +sweeps, +lagging]")
        );
        assert!(refused("tictoc+cu+sweeps").contains("\"+sweeps\" behind \"+ts\" alone"));
        assert!(refused("serial+cu").contains("serial has no option \"+cu\": it takes none"));
        assert!(refused("").contains("there is no protocol \"\""));
    }

    #[test]
    fn the_default_is_silo_with_all_that_it_takes() {
        assert_eq!("silo+cu+ts".parse(), Ok(Configuration::default()));
        assert_eq!(Configuration::default().protocol, Protocol::default());
        assert_eq!("silo".parse(), Ok(Configuration::of(Protocol::Silo)));
    }
}
