//! `kiln sim`: its arguments, and what they ask for.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, Subcommand, ValueEnum};
use kiln_engine::{BasisFactors, Configuration, Protocol};
use kiln_machine::Preset;
use kiln_sim::{Measurement, Mode, Plan, Test, TestSchedule};
use kiln_workloads::Workload;

use super::bench::{Settings, workload_names};
use super::crash;
use super::model::Model;

/// The arguments of `kiln sim`.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    cargo sim tpcc --protocol silo,2pl-no-wait --cores 1,8,40,80 --machine orthrus\n  \
    cargo sim smallbank --schedule random --seeds 1000 --cores 4 --accounts 10\n  \
    cargo sim smallbank --schedule pct --depth 4 --seeds 1000 --accounts 10"
)]
pub struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// What to run
    #[arg(value_parser = workload_names(), required_unless_present_any = ["calibrate", "validate"])]
    workload: Option<String>,
    /// Protocols, separated by commas [default: silo+cu+ts,2pl-no-wait]
    #[arg(long, value_name = "P[,P…]", value_delimiter = ',', value_parser = super::protocol)]
    protocol: Vec<Configuration>,
    /// Where the locks are, for all protocols named; P+table is the same for one
    /// [default: beside the record]
    #[arg(long, value_enum)]
    locks: Option<super::Locks>,
    /// Numbers of cores, separated by commas [default: 1,2,4,8,16,32,64,80 as far as the machine
    /// has them; 4 with --schedule random and pct]
    #[arg(
        long, value_name = "N[,N…]", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..=Plan::CORES_MAX as i64)
    )]
    cores: Vec<u16>,
    /// The thread that runs next: the one whose clock is the furthest behind (a measurement), or
    /// the one that the seed draws (a test)
    #[arg(long, value_enum, default_value_t = ScheduleName::Time)]
    schedule: ScheduleName,
    /// Determines the population, the calls and the schedule; the first of several
    #[arg(long, value_name = "N", default_value_t = Plan::SEED)]
    seed: u64,
    /// Let the judge look at the history of each run
    #[arg(long)]
    check: bool,
    /// Real cores that runs may use at a time [default: all]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
    /// Write the result to this file, one row for each protocol and number of cores
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The machine to measure [default: orthrus]
    #[arg(long, value_name = "PRESET", value_parser = preset_names(), help_heading = MEASURE)]
    machine: Option<String>,
    /// Milliseconds of virtual time that are measured [default: 20]
    #[arg(long, value_name = "MS", conflicts_with = "seconds", help_heading = MEASURE)]
    ms: Option<f64>,
    /// Seconds of virtual time that are measured, instead of milliseconds
    #[arg(long, value_name = "S", help_heading = MEASURE)]
    seconds: Option<f64>,
    /// Milliseconds of virtual time before that, which are in no figure [default: 2]
    #[arg(long, value_name = "MS", help_heading = MEASURE)]
    warmup_ms: Option<f64>,
    /// Contended cache lines that are shown for each run [default: 8]
    #[arg(long, value_name = "N", help_heading = MEASURE)]
    lines: Option<usize>,
    /// How many seeds, one after the other from --seed on [default: 100]
    #[arg(long, value_name = "N", help_heading = TEST)]
    seeds: Option<u64>,
    /// Calls on each core [default: 20]
    #[arg(long, value_name = "N", help_heading = TEST)]
    calls: Option<u64>,
    /// Ordered events that PCT looks for [default: 3]
    #[arg(long, value_name = "D", help_heading = TEST)]
    depth: Option<u32>,
    /// Scheduling points in a round of PCT's priorities [default: 1000]
    #[arg(long, value_name = "N", help_heading = TEST)]
    steps: Option<u64>,
    /// Nanoseconds that a scheduling point takes [default: 500]
    #[arg(long, value_name = "NS", help_heading = TEST)]
    step_ns: Option<u64>,
    #[command(flatten)]
    model: Model,
    #[command(flatten)]
    basis_factors: super::basis_factors::BasisFactorArguments,
    #[command(flatten)]
    settings: Settings,
}

/// What else there is on virtual cores.
#[derive(Subcommand)]
enum Other {
    /// Let databases crash over simulated disks, and check that nothing acknowledged is lost
    Crash(crash::Arguments),
}

const MEASURE: &str = "Measurements (--schedule time)";
const TEST: &str = "Tests (--schedule random and pct)";

/// The rule that chooses the next thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScheduleName {
    /// Least virtual time first, on a modelled machine
    Time,
    /// Any thread, each as likely
    Random,
    /// By random priorities that change at random points
    Pct,
}

fn preset_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Preset::ALL.map(|preset| preset.name))
}

impl Arguments {
    /// The plan, or what is wrong with it.
    pub(super) fn plan(self) -> Result<Plan, String> {
        self.refuse_strangers()?;
        let name = self.workload.as_deref().unwrap_or_default();
        let mut workload =
            Workload::by_name(name).ok_or_else(|| format!("there is no workload \"{name}\""))?;
        for (option, value) in self.settings.iter() {
            workload.set(option, value)?;
        }
        let protocols: Vec<Configuration> = match self.protocol.is_empty() {
            true => vec![
                Configuration::DEFAULT,
                Configuration::of(Protocol::TwoPhaseLockingNoWait),
            ],
            false => self.protocol,
        };
        let protocols = super::placed(protocols, self.locks)?;
        let (mode, default_cores) = match self.schedule {
            ScheduleName::Time => {
                let name = self.machine.as_deref().unwrap_or("orthrus");
                let machine =
                    Preset::named(name).ok_or_else(|| format!("there is no machine \"{name}\""))?;
                let cores = Plan::CORES
                    .into_iter()
                    .filter(|cores| *cores <= machine.cores());
                let cores = cores.collect();
                let measurement = Measurement {
                    machine,
                    milliseconds: (self.seconds.map(|seconds| seconds * 1e3))
                        .or(self.ms)
                        .unwrap_or(Measurement::MILLISECONDS),
                    warmup_ms: self.warmup_ms.unwrap_or(Measurement::WARMUP_MS),
                    lines: self.lines.unwrap_or(Measurement::LINES),
                };
                (Mode::Measure(measurement), cores)
            }
            name => {
                let schedule = match name {
                    ScheduleName::Pct => TestSchedule::Pct {
                        depth: self.depth.unwrap_or(Test::DEPTH),
                        steps: self.steps.unwrap_or(Test::STEPS),
                    },
                    _ => TestSchedule::Random,
                };
                let test = Test {
                    schedule,
                    seeds: self.seeds.unwrap_or(Test::SEEDS),
                    calls: self.calls.unwrap_or(Test::CALLS),
                    step_ns: self.step_ns.unwrap_or(Test::STEP_NS),
                };
                (Mode::Test(test), vec![Plan::TEST_CORES])
            }
        };
        let plan = Plan {
            workload,
            protocols,
            cores: match self.cores.is_empty() {
                true => default_cores,
                false => self.cores.iter().map(|cores| usize::from(*cores)).collect(),
            },
            seed: self.seed,
            mode,
            check: self.check,
            basis_factors: BasisFactors::from(&self.basis_factors),
            jobs: (self.jobs).map_or_else(kiln_platform::thread::available_cores, usize::from),
            json: self.json,
        };
        plan.validate()?;
        Ok(plan)
    }

    /// Refuses options that the chosen kind of run does not look at.
    fn refuse_strangers(&self) -> Result<(), String> {
        let measure = [
            ("machine", self.machine.is_some()),
            ("ms", self.ms.is_some()),
            ("seconds", self.seconds.is_some()),
            ("warmup-ms", self.warmup_ms.is_some()),
            ("lines", self.lines.is_some()),
        ];
        let test = [
            ("seeds", self.seeds.is_some()),
            ("calls", self.calls.is_some()),
            ("step-ns", self.step_ns.is_some()),
        ];
        let pct = [
            ("depth", self.depth.is_some()),
            ("steps", self.steps.is_some()),
        ];
        let given = |options: &[(&'static str, bool)]| {
            options
                .iter()
                .find(|(_, given)| *given)
                .map(|(name, _)| *name)
        };
        let (stranger, wants) = match self.schedule {
            ScheduleName::Time => (
                given(&test).or(given(&pct)),
                "--schedule random or --schedule pct",
            ),
            ScheduleName::Random => match given(&pct) {
                Some(name) => (Some(name), "--schedule pct"),
                None => (given(&measure), "--schedule time"),
            },
            ScheduleName::Pct => (given(&measure), "--schedule time"),
        };
        match stranger {
            Some(name) => Err(format!("--{name} needs {wants}")),
            None => Ok(()),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    if let Some(Other::Crash(arguments)) = arguments.other {
        return crash::run(arguments);
    }
    if arguments.model.is_wanted() {
        let ms = arguments
            .seconds
            .map(|seconds| seconds * 1e3)
            .or(arguments.ms);
        return arguments
            .model
            .run(arguments.machine, ms, arguments.warmup_ms);
    }
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(message) => {
            let hint = "For more information, try 'kiln sim --help'.";
            let message = format!("{message}\n\n{hint}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).exit()
        }
    };
    match kiln_sim::run(&plan)? {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::parsed_by;

    fn plan(arguments: &str) -> Result<Plan, String> {
        parsed_by::<Arguments>("sim", arguments)?.plan()
    }

    #[test]
    fn a_plan_gives_the_arguments_that_give_it() {
        for arguments in [
            "tpcc --protocol silo --cores 1,80 --seed 7 --machine orthrus --ms 5 --warmup-ms 1 \
             --warehouses 4",
            "smallbank --protocol silo,2pl-no-wait --cores 2 --seed 1 --schedule random --seeds 9 \
             --calls 3 --step-ns 100 --accounts 10 --theta 0.9",
            "tpcc --protocol serial --cores 3 --seed 0 --schedule pct --depth 5 --steps 77 \
             --seeds 1 --calls 2 --step-ns 1 --check",
        ] {
            let first = plan(arguments).expect(arguments);
            let again = plan(&first.arguments()).expect(arguments);
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn mistakes_are_named_with_what_is_possible() {
        for (arguments, parts) in [
            ("", &["<WORKLOAD>"][..]),
            ("tpcd", &["tpcd", "tpcc, smallbank"]),
            (
                "tpcc --machine cray",
                &["cray", "here, orthrus, sto, strife, healing"],
            ),
            ("tpcc --cores 0", &["'0'", "1..=128"]),
            (
                "tpcc --machine sto --cores 40",
                &["cores is 40", "sto has 32"],
            ),
            (
                "tpcc --protocol hope",
                &["hope", "possible values: serial, "],
            ),
            ("tpcc --ms -1", &["-1"]),
            ("tpcc --ms 0", &["ms is 0"]),
            ("tpcc --ms nan", &["ms is NaN"]),
            ("tpcc --seeds 5", &["--seeds needs --schedule random"]),
            (
                "tpcc --schedule random --depth 5",
                &["--depth needs --schedule pct"],
            ),
            (
                "tpcc --schedule pct --ms 5",
                &["--ms needs --schedule time"],
            ),
            ("tpcc --schedule pct --depth 0", &["depth is 0"]),
            ("tpcc --schedule random --seeds 0", &["seeds is 0"]),
            ("tpcc --schedule fair", &["fair", "time, random, pct"]),
            ("smallbank --accounts 1", &["accounts", "from 2"]),
        ] {
            let message = plan(arguments).expect_err(arguments);
            for part in parts {
                assert!(message.contains(part), "{arguments}: {message}");
            }
        }
    }

    #[cfg(not(kiln_sim))]
    #[test]
    fn an_ordinary_build_says_how_to_get_virtual_cores() {
        let plan = plan("smallbank --cores 2 --accounts 10").expect("a plan");
        let advice = kiln_sim::run(&plan).expect_err("no virtual cores");
        assert!(advice.contains("cargo sim smallbank"), "{advice}");
        assert!(
            advice.contains("--cores 2") && advice.contains("--accounts 10"),
            "{advice}"
        );
    }
}
