//! The one door to atomics, threads, pinning, the clock, randomness, memory maps, files and
//! sockets.
//!
//! Every other crate reaches shared memory and time through this one, so that the same engine code
//! runs on real and on virtual cores. A backend is a folder with the modules re-exported below; it
//! is chosen by `--cfg kiln_sim`:
//!
//! - `std/` adds nothing to the machine's own instructions;
//! - `sim/` runs every thread of a simulated run as a coroutine on one thread: each access to
//!   shared memory, each fence, spin hint, park and clock reading is a scheduling point, and time
//!   is what a model of the machine says. Its control door is `sim`, which only exists there.
//!
//! | module | holds |
//! |---|---|
//! | [`atomic`] | atomic integers and pointers, fences, orderings |
//! | [`counter`] | counts for reports |
//! | [`plain`] | plain memory that goes from thread to thread, for virtual caches |
//! | [`words`] | bulk relaxed reads and writes of a record's words, one call each |
//! | [`spin`] | spin hints, bounded spinning, randomised exponential backoff |
//! | [`sync`] | blocking primitives for the slow path: mutex, condition variable, once |
//! | [`thread`] | spawn, park, yield, sleep, pinning |
//! | [`time`] | monotonic and wall clock, the cycle counter |
//! | [`random`] | seeded generators |
//! | [`memory`] | zeroed regions on huge pages, names of memory |
//! | [`schedule`] | named places at which tests force an interleaving |
//! | [`work`] | what is computed between accesses, for virtual clocks |
//! | [`mod@file`] | small text files, read and written by their path |
//! | [`disk`] | files whose durability matters: syncs, directories, locks, durable writes, errors to act on; simulated in a run |
//! | [`process`] | memory, files and time of this process; its service manager |
//! | [`net`] | sockets that never block, and a poller for them; simulated in a run |

#[cfg(not(kiln_sim))]
#[path = "std/mod.rs"]
mod backend;

#[cfg(kiln_sim)]
#[path = "sim/mod.rs"]
mod backend;

pub mod counter;
pub mod disk;
pub mod net;
pub mod plain;
pub mod process;
pub mod random;
pub mod schedule;
pub mod spin;
pub mod work;

pub use backend::{atomic, file, memory, sync, thread, time, words};

#[cfg(kiln_sim)]
pub use backend::control as sim;
