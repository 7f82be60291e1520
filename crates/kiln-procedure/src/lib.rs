//! Procedures: the IR that the SQL front end compiles to, its analysis, and the executor that
//! runs it under any protocol.
//!
//! | module | holds |
//! |---|---|
//! | [`ir`] | steps, instructions, operations |
//! | [`updater`] | what an update does to a record, to be done at commit |
//! | [`program`] | a compiled procedure |
//! | [`builder`] | makes one of what a front end appends |
//! | [`names`] | which registers, records and blocks a step names |
//! | [`optimise`] | one record handle per key; intents |
//! | [`verify`] | the IR's rules |
//! | [`analysis`] | dataflow between operations, footprint, columns read and written |
//! | [`reconnaissance`] | what is left of a procedure when only its footprint is wanted |
//! | [`restoration`] | what runs again when a record that was met has changed |
//! | [`explain`] | the analysis as text and as a graph |
//! | [`access`] | what a protocol must offer to the executor |
//! | [`arguments`] | a call's arguments |
//! | [`buffer`] | rows kept within a run |
//! | [`outside`] | functions and rows that are the database's, and no table's |
//! | [`calls`] | how often a stored procedure was called |
//! | [`frame`] | the memory of a running procedure |
//! | [`notification`] | what it tells sessions that listen |
//! | [`interrupt`] | the request to end before its time |
//! | [`code`] | a program lowered to flat code |
//! | [`executor`] | runs that code over an access |
//! | `undo` | what protected regions have changed |

pub mod access;
pub mod analysis;
pub mod arguments;
pub mod buffer;
pub mod builder;
pub mod calls;
pub mod code;
pub mod executor;
pub mod explain;
pub mod frame;
pub mod interrupt;
pub mod ir;
pub mod names;
pub mod notification;
pub mod optimise;
pub mod outside;
pub mod packed;
pub mod program;
pub mod reconnaissance;
pub mod restoration;
mod undo;
pub mod updater;
mod values;
pub mod verify;

pub use access::{AbortCause, Access, Halt, Handle, Stop};
pub use arguments::Arguments;
pub use builder::ProgramBuilder;
pub use calls::CallCounts;
pub use executor::Executor;
pub use frame::Frame;
pub use interrupt::Interrupt;
pub use program::Program;
pub use restoration::Restoration;
pub use updater::Updater;
