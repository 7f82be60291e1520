//! The door for calls that are submitted: into an inbox, and from there onto a worker.

mod delivery;
mod submit;

pub(crate) use delivery::work;
