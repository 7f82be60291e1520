//! What measurements and tests came to.

use kiln_engine::{BatchChoices, Configuration};
use kiln_lab::audit::AuditReport;
use kiln_platform::sim::{MachineStatistics, Report};

use crate::session::Done;

/// What one protocol did on one number of cores.
#[derive(Debug)]
pub(crate) struct Point {
    /// The protocol.
    pub(crate) protocol: Configuration,
    /// The number of cores.
    pub(crate) cores: usize,
    /// Virtual seconds measured.
    pub(crate) seconds: f64,
    /// What the cores did.
    pub(crate) done: Done,
    /// Where their accesses were served.
    pub(crate) statistics: MachineStatistics,
    /// The lines that were fought over most.
    pub(crate) lines: Vec<HotLine>,
    /// What the last batch was analysed with, where calls are batched.
    pub(crate) batches: Option<BatchChoices>,
    /// The audit after the run.
    pub(crate) audit: AuditReport,
    /// What the run counted.
    pub(crate) report: Report,
}

/// A contended cache line.
#[derive(Clone, Debug)]
pub(crate) struct HotLine {
    /// What lies in it.
    pub(crate) name: String,
    /// How often it moved from core to core.
    pub(crate) transfers: u64,
    /// How long cores waited for it, in picoseconds.
    pub(crate) queued_ps: u64,
}

impl Point {
    /// Calls that committed.
    pub(crate) fn committed(&self) -> u64 {
        self.done.committed.iter().sum()
    }

    /// Calls that committed, per virtual second.
    pub(crate) fn committed_per_s(&self) -> f64 {
        self.committed() as f64 / self.seconds
    }

    /// A number per committed call.
    pub(crate) fn per_commit(&self, number: u64) -> f64 {
        number as f64 / self.committed().max(1) as f64
    }

    /// A time, in picoseconds over all cores, as a share of what the cores had.
    pub(crate) fn share(&self, time_ps: u64) -> f64 {
        time_ps as f64 / (self.seconds * 1e12 * self.cores as f64)
    }
}

/// What the seeds of one protocol and number of cores did.
#[derive(Clone, Debug)]
pub(crate) struct Tested {
    /// The protocol.
    pub(crate) protocol: Configuration,
    /// The number of cores.
    pub(crate) cores: usize,
    /// Seeds that ran.
    pub(crate) seeds: u64,
    /// Calls that committed.
    pub(crate) committed: u64,
    /// Calls that were rejected.
    pub(crate) rejected: u64,
    /// Attempts that failed.
    pub(crate) aborts: u64,
    /// Transactions judged, and dependencies between them.
    pub(crate) judged: (u64, u64),
    /// Accesses to shared memory.
    pub(crate) accesses: u64,
    /// Switches between threads.
    pub(crate) switches: u64,
    /// A digest of all runs' traces.
    pub(crate) digest: u64,
    /// What went wrong.
    pub(crate) failures: Vec<Finding>,
}

/// A run that went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Its seed.
    pub(crate) seed: u64,
    /// What went wrong.
    pub(crate) what: String,
    /// The command that makes it happen again.
    pub(crate) command: String,
}
