//! Workloads on virtual cores.
//!
//! [`run`] carries out a [`Plan`] in one of two ways:
//!
//! - A **test** runs a few calls on each core under a random schedule or PCT, for many seeds, and
//!   audits the database after each. A seed determines a run, so a failure comes with the one
//!   command that makes it happen again.
//! - A **measurement** runs the workload for some milliseconds of virtual time on a modelled
//!   machine and tells what it would have done: throughput, aborts, where the time went, and which
//!   cache lines the cores fought over, by name.
//!
//! Both need a build with `--cfg kiln_sim`, which `cargo sim` makes; in any other, [`run`] says so.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`], [`crash_plan`] | what to run |
//! | `crash` | lives that end in crashes, and what is left |
//! | `session` | one run: load, call, audit |
//! | `test` | many seeds |
//! | `measure` | many numbers of cores |
//! | `names` | what lies in a cache line |
//! | [`validate`] | the model against real cores |
//! | `report`, `json` | results for people and for programs |

pub mod crash_plan;
pub mod plan;
pub mod validate;

#[cfg(kiln_sim)]
mod crash;
#[cfg(kiln_sim)]
mod json;
#[cfg(kiln_sim)]
mod latency;
#[cfg(kiln_sim)]
mod measure;
#[cfg(kiln_sim)]
mod names;
#[cfg(kiln_sim)]
mod outcome;
#[cfg(kiln_sim)]
mod report;
#[cfg(kiln_sim)]
mod session;
#[cfg(kiln_sim)]
mod test;

pub use crash_plan::CrashPlan;
pub use plan::{Measurement, Mode, Plan, Test, TestSchedule};

/// Carries out the plan: progress goes to stderr, the result to stdout and into the plan's file.
/// Returns whether all was well.
///
/// # Errors
/// Why there is no result, in a sentence for people.
#[cfg(kiln_sim)]
pub fn run(plan: &Plan) -> Result<bool, String> {
    plan.validate()?;
    if let Some(path) = &plan.json {
        // Before the runs, so that the user does not wait for a result that cannot be kept.
        kiln_platform::file::ensure_writable(path)
            .map_err(|error| format!("cannot write {error}"))?;
    }
    match &plan.mode {
        Mode::Test(test) => test::test(plan, test),
        Mode::Measure(measurement) => measure::measure(plan, measurement),
    }
}

/// Lets databases crash as the plan says: progress goes to stderr, the result to stdout. Returns
/// whether nothing was lost.
///
/// # Errors
/// Why there is no result, in a sentence for people.
#[cfg(kiln_sim)]
pub fn crash(plan: &CrashPlan) -> Result<bool, String> {
    plan.validate()?;
    crash::run(plan)
}

/// As [`crash`], without a report: the first loss, with its protocol and seed.
///
/// # Errors
/// Why the plan cannot be carried out.
#[cfg(kiln_sim)]
pub fn first_loss(
    plan: &CrashPlan,
) -> Result<Option<(kiln_engine::Configuration, u64, String)>, String> {
    plan.validate()?;
    Ok(crash::first_loss(plan))
}

/// Says that this build has no virtual cores.
///
/// # Errors
/// Always: what to do instead.
#[cfg(not(kiln_sim))]
pub fn crash(plan: &CrashPlan) -> Result<bool, String> {
    plan.validate()?;
    Err(without_cores(&plan.arguments()))
}

/// Says that this build has no virtual cores.
///
/// # Errors
/// Always: what to do instead.
#[cfg(not(kiln_sim))]
pub fn run(plan: &Plan) -> Result<bool, String> {
    plan.validate()?;
    Err(without_cores(&plan.arguments()))
}

#[cfg(not(kiln_sim))]
fn without_cores(arguments: &str) -> String {
    format!(
        "this build runs on real cores only; in Kiln's source directory run\n\n  cargo sim {arguments}\n\n\
         which builds the program for virtual cores, in a target directory of its own"
    )
}
