//! A deterministic model of a machine with many cores: what a memory access costs.
//!
//! The virtual-core backend runs the engine's own code one core at a time and asks this model,
//! at every access to shared memory, when the access is complete. The answer follows from the
//! coherence state of the cache line (who holds it modified, who shares it), from the caches'
//! capacities, from where the holders sit (same socket, another socket, how many hops away), and
//! from who else wants the line: a line that is being handed over is busy, and the next core
//! starts when the handing over ends, so that contended atomics form a queue.
//!
//! The crate is pure: no clock, no thread, no randomness. The same sequence of calls gives the same
//! sequence of answers.
//!
//! ```
//! use kiln_machine::{AccessKind, Machine, Preset};
//!
//! let preset = Preset::named("orthrus").expect("a preset of this name exists");
//! let mut machine = Machine::new(&preset, 20);
//! // Core 0 writes line 7; then core 10, the first of the second socket, reads it.
//! let written = machine.access(0, 7, AccessKind::ReadModifyWrite, 0);
//! let read = machine.access(10, 7, AccessKind::Load, written);
//! assert_eq!(read - written, preset.costs.modified_ps[1]);
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`Machine`] | the model: accesses, compute, statistics |
//! | [`Preset`] | a machine's shape and its latencies, with their sources |
//! | [`Work`] | what a core does between accesses, and what it costs |
//! | [`MachineStatistics`], [`LineHeat`] | where accesses were served, who waited for which line |
//!
//! What the model leaves out is listed in `docs/machine-model.md`.

mod buffers;
mod cache;
#[cfg(test)]
mod invariants;
mod line;
mod machine;
mod preset;
mod presets;
mod statistics;
mod work;

pub use machine::{AccessKind, Machine};
pub use preset::{CacheShape, Costs, DISTANCES, MAX_CORES, MAX_SOCKETS, Preset};
pub use statistics::{LineHeat, MachineStatistics};
pub use work::{Work, WorkCosts};
