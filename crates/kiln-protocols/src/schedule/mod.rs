//! Schedulers: when a call may run, and on which worker. One folder a scheduler; what those have in
//! common that have several calls in flight is in `in_flight/`, and what finds out by trials which
//! setting does best is in `climb.rs`.

mod cache_padded;
mod climb;
pub mod dora;
mod in_flight;
pub mod orthrus;
pub mod owned;
pub mod partitioned;
pub mod ranges;
pub mod strife;
pub mod vll;
pub mod vll_single;
