//! The ordinary backend: the machine's own atomics, threads and clocks at no extra cost.

pub mod atomic;
pub(crate) mod disk;
pub mod file;
pub mod memory;
pub(crate) mod net;
pub mod sync;
pub mod thread;
pub mod time;
pub mod words;
