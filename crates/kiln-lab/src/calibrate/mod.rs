//! Measures the machine at hand for the machine model: what [`kiln_machine::Preset`] needs to know.
//!
//! Each figure is the lower quartile of several short rounds, because on a machine that others use
//! too most disturbances make a round longer and none make it shorter. Two threads are pinned to
//! the first two cores. The result says next to each figure what the model makes of the same
//! situation, so that what the model does not catch is seen at once.
//!
//! What the engine's instructions cost ([`kiln_machine::WorkCosts`]) cannot be measured here: it is
//! fitted to the speed of the real build, as `docs/machine-model.md` describes.

mod alone;
mod lines;
mod model;
mod report;
mod sample;
mod together;

use kiln_machine::{Costs, DISTANCES, Preset, WorkCosts};
use kiln_platform::thread;

pub use alone::{Alone, BATCH};
pub use sample::Sample;
pub use together::Together;

use crate::machine::Machine;

/// How many cores the model's own speed is measured with.
const MODEL_CORES: usize = 40;

/// What was measured.
pub struct Calibration {
    /// What it was measured on.
    pub machine: Machine,
    /// What one core does by itself.
    pub alone: Alone,
    /// What two cores do with each other; none on a machine with a single core.
    pub together: Option<Together>,
    /// Accesses that the model answers in a second.
    pub model_accesses_per_s: f64,
}

/// Measures the machine at hand, in some ten seconds and with a gibibyte of memory. `rounds` is how
/// often each measurement is repeated; 15 do on a quiet machine.
///
/// # Errors
/// The operating system's error when the memory is not to be had.
pub fn calibrate(rounds: usize) -> std::io::Result<Calibration> {
    // On a thread of its own, so that the caller's is not pinned afterwards.
    let alone = thread::spawn("calibrate", move || {
        thread::pin_to_core(0);
        alone::measure(rounds)
    })?;
    let alone = alone.join().expect("a measuring thread does not panic")?;
    let together = match thread::available_cores() {
        1 => None,
        _ => Some(together::measure(rounds)?),
    };
    Ok(Calibration {
        machine: Machine::current(),
        alone,
        together,
        model_accesses_per_s: model::accesses_per_second(&here(), MODEL_CORES),
    })
}

fn here() -> Preset {
    Preset::named("here").expect("the preset for the machine at hand exists")
}

impl Calibration {
    /// The clock while one core was busy, in gigahertz.
    pub fn gigahertz(&self) -> f64 {
        4.0 / self.alone.four_cycles.quartile
    }

    /// The checked-in preset with every constant replaced that was measured.
    pub fn preset(&self) -> Preset {
        let alone = &self.alone;
        let preset = here();
        let mut costs = Costs {
            first_level_ps: alone.first_level.picoseconds(),
            second_level_ps: alone.second_level.picoseconds(),
            last_level_ps: alone.last_level().picoseconds(),
            store_ps: alone.store.picoseconds(),
            atomic_ps: alone.atomic.picoseconds(),
            prefetch_ps: alone.prefetch.picoseconds(),
            memory_ps: [alone.memory().picoseconds(); DISTANCES],
            ..preset.costs
        };
        if let Some(together) = &self.together {
            costs.modified_ps = [together.modified.picoseconds(); DISTANCES];
            costs.clean_ps = [together.clean.picoseconds(); DISTANCES];
            // The operation itself is no part of the invalidation.
            let invalidation = together.shared_atomic.less(alone.atomic.quartile);
            costs.invalidate_ps = [invalidation.picoseconds(); DISTANCES];
        }
        let work = WorkCosts {
            spin_ps: alone.spin.picoseconds(),
            fence_ps: alone.fence.picoseconds(),
            clock_ps: alone.clock.picoseconds(),
            system_call_ps: alone.yielding.picoseconds(),
            ..preset.work
        };
        Preset {
            costs,
            work,
            ..preset
        }
    }

    /// The figures as a table, what the model makes of them, and the constants to check in.
    pub fn report(&self) -> String {
        report::report(self)
    }
}
