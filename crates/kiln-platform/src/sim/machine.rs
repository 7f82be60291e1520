//! What accesses and work cost: the machine model, or a fixed price where time does not matter.

use kiln_machine::{AccessKind, LineHeat, Machine, MachineStatistics, Work as Cost};

use crate::work::Work;

/// What accesses and work take.
pub(super) enum Prices {
    /// The machine model's, for each core; the schedule is "least virtual time first".
    Machine(Box<Machine>),
    /// The same for every scheduling point, on one clock for all; the other schedules.
    Flat {
        /// Picoseconds.
        step_ps: u64,
    },
}

/// How long a woken thread takes until it runs, beyond its waker's system call: what Linux takes to
/// wake an idle core.
const WAKE_PS: u64 = 2_000_000;
/// The same for a thread that waits for a lock: it spins for a while before it sleeps.
const SPINNING_WAKE_PS: u64 = 200_000;

impl Prices {
    /// When the access is complete.
    #[inline(always)]
    pub(super) fn access(&mut self, core: usize, line: u32, kind: AccessKind, now_ps: u64) -> u64 {
        match self {
            Prices::Machine(machine) => {
                let issued = machine.compute(core, Cost::Access, now_ps);
                machine.access(core, line, kind, issued)
            }
            Prices::Flat { step_ps } => now_ps + *step_ps,
        }
    }

    /// When an access to plain memory is complete.
    pub(super) fn plain(&mut self, core: usize, line: u32, kind: AccessKind, now_ps: u64) -> u64 {
        match self {
            Prices::Machine(machine) => machine.access_plain(core, line, kind, now_ps),
            Prices::Flat { .. } => now_ps,
        }
    }

    /// When the work is done.
    #[inline(always)]
    pub(super) fn work(&mut self, core: usize, work: Cost, now_ps: u64) -> u64 {
        match self {
            Prices::Machine(machine) => machine.compute(core, work, now_ps),
            Prices::Flat { step_ps } => match work {
                // Waits are what tells fast threads from slow ones in tests, so they keep theirs.
                Cost::Backoff { spins } => now_ps + 30_000 * u64::from(spins) + *step_ps,
                Cost::Picoseconds(duration) => now_ps + duration,
                Cost::Spin | Cost::Fence | Cost::SystemCall | Cost::Clock => now_ps + *step_ps,
                _ => now_ps,
            },
        }
    }

    /// How long a woken thread takes to run; `spins` when it waited for a lock.
    pub(super) fn wake_ps(&self, spins: bool) -> u64 {
        match (self, spins) {
            (Prices::Machine(_), true) => SPINNING_WAKE_PS,
            (Prices::Machine(_), false) => WAKE_PS,
            (Prices::Flat { .. }, _) => 0,
        }
    }

    /// Takes the caches to be warm, for a program of so many lines.
    pub(super) fn assume_warm(&mut self, lines: u64) {
        if let Prices::Machine(machine) = self {
            machine.assume_warm(lines);
        }
    }

    /// Forgets what was counted.
    pub(super) fn reset(&mut self) {
        if let Prices::Machine(machine) = self {
            machine.reset_statistics();
        }
    }

    /// What the machine counted.
    pub(super) fn statistics(&self) -> MachineStatistics {
        match self {
            Prices::Machine(machine) => *machine.statistics(),
            Prices::Flat { .. } => MachineStatistics::default(),
        }
    }

    /// The lines that were contended most.
    pub(super) fn hottest(&self, count: usize) -> Vec<(u32, LineHeat)> {
        match self {
            Prices::Machine(machine) => machine.hottest(count),
            Prices::Flat { .. } => Vec::new(),
        }
    }
}

/// The model's name for a piece of the engine's work.
#[inline(always)]
pub(super) fn cost_of(work: Work) -> Cost {
    match work {
        Work::Call => Cost::Call,
        Work::Begin => Cost::Begin,
        Work::Step => Cost::Step,
        Work::Lookup => Cost::Lookup,
        Work::Level => Cost::Level,
        Work::Scan => Cost::Scan,
        Work::IndexChange => Cost::IndexChange,
        Work::Record => Cost::Record,
        Work::Commit => Cost::Commit,
        Work::Abort => Cost::Abort,
        Work::Reject => Cost::Reject,
    }
}
