//! Schedulers: when a call may run, and on which worker. One folder a scheduler.

pub mod direct;
pub mod vll;
