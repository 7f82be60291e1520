//! Options that some protocols take.

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
    /// Read-only attempts that are repeated begin with a sweep over what the one before had met,
    /// under [`Protocol::TicToc`](crate::Protocol) with timestamp splitting: `+sweeps`, behind `+ts`. In no paper.
    Sweeps,
    /// Readers of snapshots wait for no commit, and may miss the newest ones, under
    /// [`Protocol::Mvcc`](crate::Protocol) (STO §2.2): `+lagging`.
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

/// A set of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Options(u8);

impl Options {
    /// No option.
    pub const NONE: Options = Options(0);

    /// These and `option`.
    pub const fn with(self, option: ProtocolOption) -> Options {
        Options(self.0 | option.bit())
    }

    /// Whether `option` is on.
    pub const fn has(self, option: ProtocolOption) -> bool {
        self.0 & option.bit() != 0
    }
}
