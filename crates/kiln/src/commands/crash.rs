//! `kiln sim crash`: its arguments, and what they ask for.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln_engine::Configuration;
use kiln_sim::CrashPlan;

/// The arguments of `kiln sim crash`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    cargo sim crash\n  \
    cargo sim crash --protocol silo+cu+ts,strife --seeds 100\n  \
    cargo sim crash --protocol mvcc --seed 17 --seeds 1 --all")]
pub struct Arguments {
    /// Protocols, separated by commas [default: all that isolate transactions, with their options]
    #[arg(long, value_name = "P[,P…]", value_delimiter = ',', value_parser = super::protocol)]
    protocol: Vec<Configuration>,
    /// Determines all; the first of several
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seeds for each protocol, one after the other from --seed on
    #[arg(long, value_name = "N", default_value_t = CrashPlan::SEEDS)]
    seeds: u64,
    /// Lives of a seed, one after the other
    #[arg(long, value_name = "N", default_value_t = CrashPlan::LIVES)]
    lives: u64,
    /// Crashes of each life
    #[arg(long, value_name = "N", default_value_t = CrashPlan::CRASHES, conflicts_with = "all")]
    crashes: usize,
    /// Crashes of each kind at each moment of each operation of each life, instead of some
    #[arg(long)]
    all: bool,
    /// Transactions of each client in a life
    #[arg(long, value_name = "N", default_value_t = CrashPlan::CALLS)]
    calls: usize,
    /// Real cores that seeds may use at a time [default: all]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
    /// Put the files of the first disk on which something was lost into this directory, to be
    /// looked at
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Arguments {
    fn plan(self) -> CrashPlan {
        CrashPlan {
            protocols: match self.protocol.is_empty() {
                true => CrashPlan::configurations(),
                false => self.protocol,
            },
            seed: self.seed,
            seeds: self.seeds,
            lives: self.lives,
            crashes: (!self.all).then_some(self.crashes),
            calls: self.calls,
            keep: self.keep,
            jobs: (self.jobs).map_or_else(kiln_platform::thread::available_cores, usize::from),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    match kiln_sim::crash(&arguments.plan())? {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::parsed_by;

    fn plan(arguments: &str) -> Result<CrashPlan, String> {
        let plan = parsed_by::<Arguments>("crash", arguments)?.plan();
        plan.validate()?;
        Ok(plan)
    }

    #[test]
    fn a_plan_gives_the_arguments_that_give_it() {
        for arguments in [
            "",
            "--protocol silo,mvcc+cu --seed 7 --seeds 1 --all",
            "--lives 1 --crashes 3 --calls 2",
        ] {
            let first = plan(arguments).expect(arguments);
            let text = first.arguments();
            let again = plan(text.strip_prefix("crash").expect("the command")).expect(arguments);
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, part) in [
            ("--protocol none", "none does not isolate"),
            ("--seeds 0", "seeds is 0"),
            ("--crashes 0", "crashes is 0"),
            ("--all --crashes 4", "cannot be used with"),
        ] {
            let message = plan(arguments).expect_err(arguments);
            assert!(message.contains(part), "{arguments}: {message}");
        }
    }
}
