//! The tests of the engine through its public interface, in one binary: each would link a whole
//! database otherwise.

mod answers;
mod attempts;
mod bank;
mod broken;
mod calls;
mod catalog_changes;
#[path = "../common/mod.rs"]
mod common;
mod history;
mod journal;
mod loading;
mod protocol_switch;
mod sessions;
mod submitted;
mod transactions;
