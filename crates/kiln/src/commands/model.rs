//! `kiln sim --calibrate` and `kiln sim --validate`: the machine model against the machine at hand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln_machine::Preset;
use kiln_sim::validate::Validation;

/// The arguments about the model itself.
#[derive(Args)]
pub struct Model {
    /// Measure the machine at hand, and print the constants of a preset for it (in the ordinary
    /// build)
    #[arg(long, conflicts_with_all = ["validate", "workload"], help_heading = MODEL)]
    calibrate: bool,
    /// How often each measurement of the calibration is repeated
    #[arg(long, value_name = "N", requires = "calibrate", default_value_t = ROUNDS, help_heading = MODEL,
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Run what files of --real hold on the modelled machine, and compare
    #[arg(long, conflicts_with = "workload", help_heading = MODEL)]
    validate: bool,
    /// What `kiln bench --json FILE` measured on real cores; may be given several times
    #[arg(long, value_name = "FILE", requires = "validate", help_heading = MODEL)]
    real: Vec<PathBuf>,
}

const MODEL: &str = "The machine model";
const ROUNDS: u16 = 15;

impl Model {
    /// Whether the command is about the model and not about a workload.
    pub fn is_wanted(&self) -> bool {
        self.calibrate || self.validate
    }

    /// Runs the command. `machine`, `ms` and `warmup_ms` are what the command line says, if it
    /// does.
    ///
    /// # Errors
    /// What is to be printed before the program ends with exit code 1.
    pub fn run(
        self,
        machine: Option<String>,
        ms: Option<f64>,
        warmup_ms: Option<f64>,
    ) -> Result<ExitCode, String> {
        if self.calibrate {
            return calibrate(usize::from(self.rounds));
        }
        let name = machine.as_deref().unwrap_or("here");
        let machine =
            Preset::named(name).ok_or_else(|| format!("there is no machine \"{name}\""))?;
        let validation = Validation {
            real: self.real,
            machine,
            milliseconds: ms.unwrap_or(Validation::MILLISECONDS),
            warmup_ms: warmup_ms.unwrap_or(Validation::WARMUP_MS),
        };
        match kiln_sim::validate::validate(&validation)? {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::FAILURE),
        }
    }
}

#[cfg(not(kiln_sim))]
fn calibrate(rounds: usize) -> Result<ExitCode, String> {
    eprintln!("Measuring; on a busy machine run this at real-time priority (chrt -f 10).");
    let calibration = kiln_lab::calibrate::calibrate(rounds)
        .map_err(|error| format!("cannot get the memory to measure with: {error}"))?;
    super::print(&calibration.report())?;
    Ok(ExitCode::SUCCESS)
}

/// Virtual cores would measure the model.
#[cfg(kiln_sim)]
fn calibrate(_rounds: usize) -> Result<ExitCode, String> {
    Err(
        "this build has virtual cores only; run the ordinary build: kiln sim --calibrate"
            .to_owned(),
    )
}
