//! Schedulers: when a call may run, and on which worker. One folder a scheduler.

pub mod direct;
pub mod dora;
mod in_flight;
pub mod orthrus;
pub mod owned;
mod parking;
pub mod partitioned;
pub mod ranges;
pub mod strife;
pub mod vll;
pub mod vll_single;
