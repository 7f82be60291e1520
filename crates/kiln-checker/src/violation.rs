//! What can be wrong with a history.

use std::fmt;

/// Classes of cycles, the strongest first: the fewer kinds of edges a cycle needs, the weaker the
/// isolation level that would already have excluded it (Adya, §4 and §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CycleClass {
    /// Write dependencies only: writes of several transactions interleaved.
    G0,
    /// Write and read dependencies: each saw the other's effects.
    G1c,
    /// Exactly one anti-dependency: read skew, lost update, a phantom of one range.
    GSingle,
    /// Several anti-dependencies, all on objects: write skew.
    G2Item,
    /// Several anti-dependencies, at least one by a predicate: phantoms.
    G2,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Anomaly {
    /// Transactions that depend on each other in a circle.
    Cycle {
        /// The class of the cycle.
        class: CycleClass,
        /// Whether the circle is closed by real time: one of the transactions was over before
        /// another began.
        real_time: bool,
    },
    /// G1a: a value was read that an aborted or rejected attempt wrote.
    AbortedRead,
    /// G1b: a value was read that its writer overwrote itself later.
    IntermediateRead,
    /// A value was read that its version does not have: torn, or lost.
    WrongValue,
    /// An attempt read something else than what it had written before.
    OwnWriteNotSeen,
    /// A row was read in a version in which it does not exist, or the other way round.
    WrongExistence,
    /// A version was read that no transaction installed.
    UnknownVersion,
    /// Two transactions installed the same version of an object.
    SameVersionTwice,
    /// Two transactions replaced the same version of an object: the first update is lost.
    ReplacedTwice,
    /// A version that was replaced is not the one that was current.
    BrokenOrder,
    /// A version is not larger than the one that it replaced.
    VersionDidNotGrow,
    /// A committed transaction's write was never installed.
    WriteNotInstalled,
    /// A version was installed by a transaction that did not write the object.
    InstalledWithoutWrite,
    /// A version was installed by an attempt that did not commit.
    InstalledByUncommitted,
    /// A range that was read does not contain an entry that was in it all the time.
    MissedEntry,
    /// An entry was met in a range that was not in it at any time.
    StaleEntry,
}

impl Anomaly {
    /// The short name, Adya's where there is one.
    pub const fn name(self) -> &'static str {
        match self {
            Anomaly::Cycle { class, real_time } => match (class, real_time) {
                (CycleClass::G0, false) => "G0",
                (CycleClass::G1c, false) => "G1c",
                (CycleClass::GSingle, false) => "G-single",
                (CycleClass::G2Item, false) => "G2-item",
                (CycleClass::G2, false) => "G2",
                (CycleClass::G0, true) => "G0-realtime",
                (CycleClass::G1c, true) => "G1c-realtime",
                (CycleClass::GSingle, true) => "G-single-realtime",
                (CycleClass::G2Item, true) => "G2-item-realtime",
                (CycleClass::G2, true) => "G2-realtime",
            },
            Anomaly::AbortedRead => "G1a",
            Anomaly::IntermediateRead => "G1b",
            Anomaly::WrongValue => "wrong value",
            Anomaly::OwnWriteNotSeen => "own write not seen",
            Anomaly::WrongExistence => "wrong existence",
            Anomaly::UnknownVersion => "unknown version",
            Anomaly::SameVersionTwice => "same version twice",
            Anomaly::ReplacedTwice => "version replaced twice",
            Anomaly::BrokenOrder => "broken version order",
            Anomaly::VersionDidNotGrow => "version did not grow",
            Anomaly::WriteNotInstalled => "write not installed",
            Anomaly::InstalledWithoutWrite => "installed without a write",
            Anomaly::InstalledByUncommitted => "installed by an uncommitted attempt",
            Anomaly::MissedEntry => "missed entry",
            Anomaly::StaleEntry => "stale entry",
        }
    }

    /// What it means, as a clause.
    pub const fn description(self) -> &'static str {
        match self {
            Anomaly::Cycle {
                class,
                real_time: false,
            } => match class {
                CycleClass::G0 => "a cycle of write dependencies",
                CycleClass::G1c => "a cycle of write and read dependencies",
                CycleClass::GSingle => "a cycle with one anti-dependency",
                CycleClass::G2Item => "a cycle with several anti-dependencies",
                CycleClass::G2 => "a cycle with several anti-dependencies, some by ranges",
            },
            Anomaly::Cycle {
                real_time: true, ..
            } => "a cycle that real time closes",
            Anomaly::AbortedRead => "a read of what an attempt wrote that did not commit",
            Anomaly::IntermediateRead => {
                "a read of what its writer overwrote in the same transaction"
            }
            Anomaly::WrongValue => "a read of a value that its version does not have",
            Anomaly::OwnWriteNotSeen => "a transaction does not see what it wrote itself",
            Anomaly::WrongExistence => "a read is wrong about whether the row exists",
            Anomaly::UnknownVersion => "a read of a version that nobody installed",
            Anomaly::SameVersionTwice => "two transactions installed the same version",
            Anomaly::ReplacedTwice => "two transactions replaced the same version",
            Anomaly::BrokenOrder => "a transaction replaced a version that was not the current one",
            Anomaly::VersionDidNotGrow => "a version is not larger than the one that it replaced",
            Anomaly::WriteNotInstalled => "a committed write was never installed",
            Anomaly::InstalledWithoutWrite => "a version was installed without a write",
            Anomaly::InstalledByUncommitted => {
                "a version was installed by an attempt that did not commit"
            }
            Anomaly::MissedEntry => "a scan missed an entry that was there all the time",
            Anomaly::StaleEntry => "a scan met an entry that was not there at any time",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One thing that is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub anomaly: Anomaly,
    /// The transactions' steps in their order, a line each: procedures, objects, columns and
    /// versions by name.
    pub lines: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {}",
            self.anomaly,
            self.anomaly.description()
        )?;
        for line in &self.lines {
            write!(formatter, "\n  {line}")?;
        }
        Ok(())
    }
}

/// The violations found so far: all are counted, the first ones are kept.
#[derive(Default)]
pub(crate) struct Violations {
    pub(crate) kept: Vec<Violation>,
    pub(crate) count: u64,
}

/// Violations that are kept; who breaks one rule mostly breaks it often.
pub(crate) const KEPT_MAX: usize = 16;

impl Violations {
    /// Whether further violations are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= KEPT_MAX
    }

    pub(crate) fn add(&mut self, anomaly: Anomaly, lines: impl FnOnce() -> Vec<String>) {
        self.count += 1;
        if !self.is_full() {
            self.kept.push(Violation {
                anomaly,
                lines: lines(),
            });
        }
    }
}
