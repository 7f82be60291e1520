//! The backend for virtual cores; see [`control`] for how a run is made.
//!
//! | module | holds |
//! |---|---|
//! | [`control`] | the door: configuration, runs, reports, names |
//! | [`runtime`] | coroutines and the switches between them |
//! | [`state`] | a run's threads, and what each scheduling point does |
//! | [`lines`] | numbers and names of cache lines |
//! | [`queue`] | who runs next: random, PCT, least virtual time |
//! | [`machine`] | what accesses and work cost |
//! | [`space`] | the memory of a run |
//! | [`entropy`] | the system's randomness, kept out |
//! | [`disk`] | files and directories: a run's disk, with its crashes and faults |
//! | [`net`] | sockets: a run's network, with its delays and faults |
//! | the others | the same modules as the ordinary backend's |
//!
//! Outside of a run everything behaves as in the ordinary backend, on real threads.

pub mod atomic;
pub mod control;
pub(crate) mod disk;
mod entropy;
#[path = "../std/file.rs"]
pub mod file;
mod lines;
mod machine;
pub mod memory;
pub(crate) mod net;
pub(crate) mod plain;
mod queue;
pub(crate) mod runtime;
mod space;
mod state;
pub mod sync;
pub mod thread;
pub mod time;
pub mod words;
