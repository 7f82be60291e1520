//! The one door to atomics, threads, pinning, the clock, randomness, memory maps and files.
//!
//! Every other crate reaches shared memory and time through this one, so that a second backend
//! can run the same engine code on virtual cores: there each access to shared memory, each
//! fence, spin hint, park and clock reading becomes a scheduling point. A backend is a folder
//! with the modules re-exported below; it is chosen by `--cfg kiln_sim`. Today there is one,
//! [`std`](self), which adds nothing to the machine's own instructions.
//!
//! | module | holds |
//! |---|---|
//! | [`atomic`] | atomic integers and pointers, fences, orderings |
//! | [`words`] | bulk relaxed reads and writes of a record's words, one call each |
//! | [`spin`] | spin hints, bounded spinning, randomised exponential backoff |
//! | [`sync`] | blocking primitives for the slow path: mutex, condition variable, once |
//! | [`thread`] | spawn, park, yield, sleep, pinning |
//! | [`time`] | monotonic and wall clock, the cycle counter |
//! | [`random`] | seeded generators |
//! | [`memory`] | zeroed regions on huge pages |
//! | [`mod@file`] | the few file operations the product needs |

#[cfg(kiln_sim)]
compile_error!("the virtual-core backend is not built yet; build without --cfg kiln_sim");

#[path = "std/mod.rs"]
mod backend;

pub mod random;
pub mod spin;

pub use backend::{atomic, file, memory, sync, thread, time, words};
