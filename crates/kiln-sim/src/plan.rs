//! What to run on virtual cores.

use std::fmt::Write;
use std::path::PathBuf;

use kiln_engine::{BasisFactors, Configuration};
use kiln_machine::Preset;
use kiln_workloads::Workload;

/// A workload, the protocols and numbers of cores to run it under, and to what end.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workload with its settings.
    pub workload: Workload,
    /// The protocols, in the order of the report.
    pub protocols: Vec<Configuration>,
    /// Numbers of cores; each protocol runs with each.
    pub cores: Vec<usize>,
    /// Basis factors of the database.
    pub basis_factors: BasisFactors,
    /// Determines the population, the calls, and whatever the schedule draws. A test's first seed.
    pub seed: u64,
    /// To what end.
    pub mode: Mode,
    /// Whether the judge looks at the history of each run.
    pub check: bool,
    /// Real cores that runs may use at a time. The result does not depend on it.
    pub jobs: usize,
    /// Where the result goes as JSON.
    pub json: Option<PathBuf>,
}

/// To what end a workload runs.
#[expect(clippy::large_enum_variant, reason = "there is one for each command")]
#[derive(Clone, Debug)]
pub enum Mode {
    /// To find schedules under which something goes wrong.
    Test(Test),
    /// To know what a machine would do.
    Measure(Measurement),
}

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The rule that chooses the next thread at a scheduling point.
    pub schedule: TestSchedule,
    /// How many seeds, from the plan's on.
    pub seeds: u64,
    /// Calls on each core.
    pub calls: u64,
    /// Nanoseconds that a scheduling point takes: the longer, the more often epochs change and
    /// timers run.
    pub step_ns: u64,
}

/// The rule that chooses the next thread in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestSchedule {
    /// Any thread, each as likely.
    Random,
    /// Probabilistic concurrency testing.
    Pct {
        /// Ordered events that a bug takes.
        depth: u32,
        /// Scheduling points in a round of priorities.
        steps: u64,
    },
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The machine.
    pub machine: Preset,
    /// Milliseconds of virtual time that are measured.
    pub milliseconds: f64,
    /// Milliseconds before that, which are in no figure.
    pub warmup_ms: f64,
    /// How many contended lines are shown.
    pub lines: usize,
}

impl Plan {
    /// The most cores of a run: those that a modelled machine has at most.
    pub const CORES_MAX: usize = kiln_machine::MAX_CORES;
    /// The default of [`Plan::seed`].
    pub const SEED: u64 = 42;
    /// The default of [`Plan::cores`] for measurements.
    pub const CORES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 80];
    /// The default of [`Plan::cores`] for tests.
    pub const TEST_CORES: usize = 4;

    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn validate(&self) -> Result<(), String> {
        self.workload.validate()?;
        if self.jobs == 0 {
            return Err("jobs is 0, but must be at least 1".to_owned());
        }
        let factors = self.basis_factors.protocols;
        if let Some(refusal) = factors.refusal_among(&self.protocols) {
            return Err(refusal);
        }
        if self.protocols.is_empty() || self.cores.is_empty() {
            return Err("a run needs a protocol and a number of cores".to_owned());
        }
        for cores in &self.cores {
            if !(1..=Plan::CORES_MAX).contains(cores) {
                return Err(format!(
                    "cores is {cores}, but must be a number from 1 to {}",
                    Plan::CORES_MAX
                ));
            }
        }
        match &self.mode {
            Mode::Test(test) => test.validate(),
            Mode::Measure(measurement) => measurement.validate(&self.cores),
        }
    }

    /// The arguments of the command that carries this plan out, without those that have their
    /// defaults.
    pub fn arguments(&self) -> String {
        let protocols: Vec<String> = self
            .protocols
            .iter()
            .map(|protocol| protocol.name())
            .collect();
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        let mut text = format!(
            "{} --protocol {} --cores {} --seed {}",
            self.workload.name(),
            protocols.join(","),
            cores.join(","),
            self.seed
        );
        for (name, value) in self.basis_factors.departures() {
            let _ = write!(text, " --{name} {value}");
        }
        match &self.mode {
            Mode::Test(test) => {
                match test.schedule {
                    TestSchedule::Random => text += " --schedule random",
                    TestSchedule::Pct { depth, steps } => {
                        let _ = write!(text, " --schedule pct --depth {depth} --steps {steps}");
                    }
                }
                let _ = write!(
                    text,
                    " --seeds {} --calls {} --step-ns {}",
                    test.seeds, test.calls, test.step_ns
                );
            }
            Mode::Measure(measurement) => {
                let _ = write!(
                    text,
                    " --machine {} --ms {} --warmup-ms {}",
                    measurement.machine.name, measurement.milliseconds, measurement.warmup_ms
                );
            }
        }
        if self.check {
            text += " --check";
        }
        let defaults = Workload::by_name(self.workload.name()).map(|default| default.options());
        for option in self.workload.options() {
            let is_default = |default: &kiln_workloads::WorkloadOption| {
                default.name == option.name && default.value == option.value
            };
            if !defaults.iter().flatten().any(is_default) {
                let _ = write!(text, " --{} {}", option.name, option.value);
            }
        }
        text
    }
}

impl Test {
    /// The default of [`Test::seeds`].
    pub const SEEDS: u64 = 100;
    /// The default of [`Test::calls`].
    pub const CALLS: u64 = 20;
    /// The default depth of PCT.
    pub const DEPTH: u32 = 3;
    /// The default number of steps of a round of PCT.
    pub const STEPS: u64 = 1_000;
    /// The default of [`Test::step_ns`].
    pub const STEP_NS: u64 = 500;

    fn validate(&self) -> Result<(), String> {
        let settings = [
            ("seeds", self.seeds),
            ("calls", self.calls),
            ("step-ns", self.step_ns),
        ];
        for (name, value) in settings {
            if value == 0 {
                return Err(format!("{name} is 0, but must be at least 1"));
            }
        }
        match self.schedule {
            TestSchedule::Pct { depth, steps } if depth == 0 || steps == 0 => Err(format!(
                "depth is {depth} and steps {steps}, but both must be at least 1"
            )),
            _ => Ok(()),
        }
    }
}

impl Measurement {
    /// The default of [`Measurement::milliseconds`].
    pub const MILLISECONDS: f64 = 20.0;
    /// The default of [`Measurement::warmup_ms`].
    pub const WARMUP_MS: f64 = 2.0;
    /// The default of [`Measurement::lines`].
    pub const LINES: usize = 8;
    /// The longest virtual time of a run, in milliseconds.
    const MILLISECONDS_MAX: f64 = 60_000.0;

    fn validate(&self, cores: &[usize]) -> Result<(), String> {
        self.machine.check()?;
        if let Some(cores) = cores.iter().find(|cores| **cores > self.machine.cores()) {
            return Err(format!(
                "cores is {cores}, but the machine {} has {}: {}",
                self.machine.name,
                self.machine.cores(),
                self.machine.description
            ));
        }
        let measured = 0.001..=Measurement::MILLISECONDS_MAX;
        if !measured.contains(&self.milliseconds) {
            return Err(format!(
                "ms is {}, but must be a number from 0.001 to {}",
                self.milliseconds,
                Measurement::MILLISECONDS_MAX
            ));
        }
        if !(0.0..=Measurement::MILLISECONDS_MAX).contains(&self.warmup_ms) {
            return Err(format!(
                "warmup-ms is {}, but must be a number from 0 to {}",
                self.warmup_ms,
                Measurement::MILLISECONDS_MAX
            ));
        }
        Ok(())
    }
}
