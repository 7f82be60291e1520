//! What to measure.

use std::path::PathBuf;

use kiln_engine::{BasisFactors, Configuration, Logging, Options, Protocol};
use kiln_platform::thread;
use kiln_workloads::Workload;

/// A benchmark: a workload, and the protocols and numbers of threads to run it under.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workload with its settings.
    pub workload: Workload,
    /// The protocols, in the order of the report.
    pub protocols: Vec<Configuration>,
    /// Numbers of threads; each protocol runs with each. Protocols of a single worker run with one.
    pub threads: Vec<usize>,
    /// Numbers of sessions whose calls go through the workers' inboxes; none: the workers make
    /// their calls themselves.
    pub sessions: Vec<usize>,
    /// Seconds measured in each run.
    pub seconds: f64,
    /// Seconds of each run before that, which are in no figure.
    pub warmup: f64,
    /// Runs of each protocol and number of threads.
    pub repeat: usize,
    /// Determines the population and the calls.
    pub seed: u64,
    /// MiB of memory set aside before the load, so that growing tables cost no page faults.
    pub reserve_mib: usize,
    /// Basis factors of the database.
    pub basis_factors: BasisFactors,
    /// The name of the program's memory allocator, for the report.
    pub allocator: &'static str,
    /// The directory in which each database of the benchmark is kept, in one of its own; `None`: in
    /// memory alone.
    pub data: Option<PathBuf>,
    /// What the logs there keep of a commit.
    pub logging: Logging,
    /// Seconds that a recovery there may take, as estimated: a checkpoint is written when it would
    /// take longer; 0 for none.
    pub recovery_target_s: u64,
    /// Where the rows of the result go.
    pub json: Option<PathBuf>,
    /// Whether a batch of `strife` is explained.
    pub explain_batch: bool,
    /// Where a picture of it goes.
    pub batch_svg: Option<PathBuf>,
}

impl Plan {
    /// The most threads of a run; the database keeps memory apart for each.
    pub const THREADS_MAX: usize = 224;
    /// The most sessions of a run.
    pub const SESSIONS_MAX: usize = 100_000;
    /// The default of [`Plan::seconds`].
    pub const SECONDS: f64 = 2.0;
    /// The default of [`Plan::warmup`].
    pub const WARMUP: f64 = 0.5;
    /// The default of [`Plan::repeat`].
    pub const REPEAT: usize = 3;
    /// The default of [`Plan::seed`].
    pub const SEED: u64 = 42;
    /// The default of [`Plan::reserve_mib`].
    pub const RESERVE_MIB: usize = 1_024;
    /// The default of [`Plan::protocols`].
    pub const PROTOCOLS: [Configuration; 3] = [
        Configuration::DEFAULT,
        Configuration::of(Protocol::Serial),
        Configuration::of(Protocol::TwoPhaseLockingNoWait),
    ];

    /// The canonical benchmark of a workload: under a minute, on all cores.
    pub fn new(workload: Workload) -> Plan {
        Plan {
            workload,
            protocols: Plan::PROTOCOLS.to_vec(),
            threads: vec![Plan::threads_default()],
            sessions: Vec::new(),
            seconds: Plan::SECONDS,
            warmup: Plan::WARMUP,
            repeat: Plan::REPEAT,
            seed: Plan::SEED,
            reserve_mib: Plan::RESERVE_MIB,
            basis_factors: BasisFactors::default(),
            allocator: "the system's",
            data: None,
            logging: Logging::Values,
            recovery_target_s: Options::new().recovery_target_s,
            json: None,
            explain_batch: false,
            batch_svg: None,
        }
    }

    /// The default number of threads: one for each core.
    pub fn threads_default() -> usize {
        thread::available_cores().min(Plan::THREADS_MAX)
    }

    /// The combinations of protocol, number of threads and number of sessions, each once.
    pub fn points(&self) -> Vec<(Configuration, usize, Option<usize>)> {
        let sessions: Vec<Option<usize>> = match self.sessions.is_empty() {
            true => vec![None],
            false => self.sessions.iter().copied().map(Some).collect(),
        };
        let mut points = Vec::new();
        for protocol in &self.protocols {
            for threads in &self.threads {
                // The workers of a run with sessions are the database's, and as many as it has.
                let threads = match protocol.is_single_worker() && self.sessions.is_empty() {
                    true => 1,
                    false => *threads,
                };
                for sessions in &sessions {
                    let point = (*protocol, threads, *sessions);
                    if !points.contains(&point) {
                        points.push(point);
                    }
                }
            }
        }
        points
    }

    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn validate(&self) -> Result<(), String> {
        self.workload.validate()?;
        let factors = self.basis_factors.protocols;
        if let Some(refusal) = factors.refusal_among(&self.protocols) {
            return Err(refusal);
        }
        let mut protocols = self.protocols.iter();
        let unsafe_one = protocols.find(|one| !one.protocol.is_serializable());
        if let (Some(_), Some(protocol)) = (&self.data, unsafe_one) {
            return Err(format!(
                "{protocol} does not isolate transactions, so that no log can keep them: leave it out, or --data"
            ));
        }
        let mut protocols = self.protocols.iter();
        let without = protocols.find(|one| !one.protocol.logs_commands());
        if let (Logging::Commands, Some(protocol)) = (self.logging, without) {
            return Err(format!(
                "a log of {protocol} cannot keep commands, as calls have no order before they run: leave it out, or log values"
            ));
        }
        let mut protocols = self.protocols.iter();
        if self.explain_batch && !protocols.any(|one| one.protocol.explains_batches()) {
            let all = Protocol::ALL.into_iter();
            let batching = all.filter(|protocol| protocol.explains_batches());
            let names: Vec<&str> = batching.map(Protocol::name).collect();
            let names = names.join(", ");
            return Err(format!(
                "batches are those of {names}, which is not among the protocols"
            ));
        }
        if self.protocols.is_empty() || self.threads.is_empty() {
            return Err("a benchmark needs a protocol and a number of threads".to_owned());
        }
        if let Some(threads) = self
            .threads
            .iter()
            .find(|n| !(1..=Plan::THREADS_MAX).contains(n))
        {
            return Err(format!(
                "threads is {threads}, but must be a number from 1 to {}",
                Plan::THREADS_MAX
            ));
        }
        if let Some(sessions) = self
            .sessions
            .iter()
            .find(|n| !(1..=Plan::SESSIONS_MAX).contains(n))
        {
            return Err(format!(
                "sessions is {sessions}, but must be a number from 1 to {}",
                Plan::SESSIONS_MAX
            ));
        }
        if !self.sessions.is_empty() && self.threads.len() > 1 {
            return Err(
                "with sessions there is one number of threads: the workers of the database"
                    .to_owned(),
            );
        }
        if !(self.seconds > 0.0 && self.seconds <= 86_400.0) {
            return Err(format!(
                "seconds is {}, but must be more than 0 and at most 86400",
                self.seconds
            ));
        }
        if !(0.0..=86_400.0).contains(&self.warmup) {
            return Err(format!(
                "warmup is {}, but must be from 0 to 86400",
                self.warmup
            ));
        }
        if self.repeat == 0 {
            return Err("repeat is 0, but must be at least 1".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::new(Workload::by_name("smallbank").expect("a workload of that name"))
    }

    #[test]
    fn a_single_worker_runs_once_whatever_the_threads_are() {
        let mut plan = plan();
        plan.protocols = vec![Protocol::Serial.into(), Protocol::Silo.into()];
        plan.threads = vec![1, 4];
        assert_eq!(
            plan.points(),
            [
                (Protocol::Serial.into(), 1, None),
                (Protocol::Silo.into(), 1, None),
                (Protocol::Silo.into(), 4, None)
            ]
        );
        plan.protocols = vec![Protocol::Silo.into()];
        plan.threads = vec![2];
        plan.sessions = vec![1, 100];
        assert_eq!(
            plan.points(),
            [
                (Protocol::Silo.into(), 2, Some(1)),
                (Protocol::Silo.into(), 2, Some(100))
            ]
        );
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused() {
        assert_eq!(plan().validate(), Ok(()));
        let refused = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.validate().expect_err("the plan is refused")
        };
        assert!(refused(&|plan| plan.threads = vec![0]).contains("threads is 0"));
        assert!(refused(&|plan| plan.threads = vec![1_000]).contains("1 to 224"));
        assert!(refused(&|plan| plan.sessions = vec![0]).contains("sessions is 0"));
        assert!(
            refused(&|plan| {
                plan.data = Some("data".into());
                plan.protocols = vec![Protocol::Silo.into(), Protocol::None.into()];
            })
            .contains("none does not isolate transactions")
        );
        assert!(
            refused(&|plan| {
                plan.sessions = vec![1];
                plan.threads = vec![1, 2];
            })
            .contains("one number of threads")
        );
        assert!(refused(&|plan| plan.seconds = f64::NAN).contains("seconds is NaN"));
        assert!(refused(&|plan| plan.warmup = -1.0).contains("warmup is -1"));
        assert!(refused(&|plan| plan.repeat = 0).contains("repeat"));
    }
}
