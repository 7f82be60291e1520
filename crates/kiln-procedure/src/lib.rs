//! Procedures: the IR that the SQL front end compiles to, its analysis, and the executor that
//! runs it under any protocol.
//!
//! A module names those above it in this table, from the IR to what runs it:
//!
//! | module | holds |
//! |---|---|
//! | [`outside`] | functions and rows that are the database's, and no table's |
//! | [`ir`] | steps, instructions, operations |
//! | `values` | values in registers |
//! | [`number`] | arithmetic on NUMERICs of any length |
//! | [`names`] | which registers, records and blocks a step names |
//! | [`packed`] | arrays as rows have them |
//! | [`procedure`] | a procedure in the IR |
//! | [`verify`] | the IR's rules |
//! | [`optimise`] | one record handle per key; intents |
//! | [`analysis`] | dataflow between operations, footprint, columns read and written, updaters |
//! | [`code`] | a procedure lowered to flat code |
//! | [`restoration`] | what runs again when a record that was met has changed |
//! | [`calls`] | how often a stored procedure was called |
//! | [`program`] | a compiled procedure: all of these |
//! | [`reconnaissance`] | what is left of a procedure when only its footprint is wanted |
//! | [`builder`] | makes a program of what a front end appends |
//! | [`workload`] | what several procedures have to do with each other |
//! | [`explain`] | the analysis as text and as a graph |
//! | [`arguments`] | a call's arguments |
//! | [`access`] | what a protocol must offer to the executor |
//! | [`buffer`] | rows kept within a run |
//! | [`notification`] | what a procedure tells sessions that listen |
//! | [`interrupt`] | the request to end before its time |
//! | `undo` | what protected regions have changed |
//! | `journey` | where a run that has left off goes on |
//! | [`frame`] | the memory of a running procedure |
//! | [`executor`] | runs code over an access |

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
mod journey;
pub mod names;
pub mod notification;
pub mod number;
pub mod optimise;
pub mod outside;
pub mod packed;
pub mod procedure;
pub mod program;
pub mod reconnaissance;
pub mod restoration;
mod undo;
mod values;
pub mod verify;
pub mod workload;

pub use access::{AbortCause, Access, Halt, Handle, Stop};
pub use arguments::Arguments;
pub use builder::ProgramBuilder;
pub use calls::CallCounts;
pub use code::Updater;
pub use executor::Executor;
pub use frame::Frame;
pub use interrupt::Interrupt;
pub use procedure::Procedure;
pub use program::Program;
pub use restoration::Restoration;
