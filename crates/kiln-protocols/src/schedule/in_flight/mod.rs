//! Calls in flight: what schedulers are built from whose workers have several at a time.
//!
//! A worker of `vll`, `orthrus`, `vll-single`, `dora` or `strife` draws a call, plans it, asks for
//! its locks or puts it into a batch, and goes on with others until it may run. What these have in
//! common is here; when a call may run is the scheduler's own.
//!
//! | file | what it has |
//! |---|---|
//! | `call.rs` | a call in flight: drawing it, planning it, its attempts, telling how it has ended |
//! | `lending.rs` | its memory, and who may use it, as types |
//! | `home.rs` | the contexts that are at their worker: without a call, to be planned, parked |
//! | `parking.rs` | calls that wait for a transaction of several statements |
//! | `solitude.rs` | when a call that fails again and again may keep all others out |
//! | `pipelined.rs` | what such a scheduler says of itself, and the worker that it makes |
//! | `single.rs` | one call, served as if it were many |
//! | `idle.rs` | waits of a worker that has nothing to do |

mod call;
mod home;
mod idle;
mod lending;
mod parking;
mod pipelined;
mod single;
mod solitude;

pub(crate) use call::InFlight;
pub(crate) use home::{Carrier, Home};
pub(crate) use idle::Idle;
pub(crate) use lending::{Lent, Loan, Own};
pub(crate) use parking::Blocks;
pub(crate) use pipelined::Pipelined;
pub(crate) use single::Single;
pub(crate) use solitude::Solitude;
