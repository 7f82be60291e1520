//! Planning: which records a call will touch, known before it runs.
//!
//! | module | holds |
//! |---|---|
//! | [`footprint`] | the records with their modes |
//! | [`groups`] | which of a record's locks a claim names, where it has two |
//! | [`findings`] | which look-ups led to them, so that the run need not search again |
//! | [`scans`] | the leaves that scans read, for the same |
//! | [`reconnaissance`] | the access that collects them, without isolation and without effects |
//! | [`scout`] | what makes reconnaissances, in one place or from place to place |
//! | [`ahead`] | what a scheduler asks of an access whose locks it takes |
//! | [`planner`] | a worker's plans: from a reconnaissance, or from an attempt that failed |
//!
//! The procedure's analysis leaves of a procedure what decides which records it meets
//! ([`Program::reconnaissance`](kiln_procedure::Program::reconnaissance)); of one whose keys follow
//! from its arguments no read is left, and what is collected is exact but for rows that come and go
//! meanwhile. For all others it is a guess (OLLP, ORTHRUS §3.2). A worker that runs a call by a
//! plan guards it: a record that was not planned is taken without waiting, or the attempt ends
//! ([`FootprintMiss`](kiln_procedure::AbortCause::FootprintMiss)) and the next plan has that record
//! too.
//!
//! # Inserts, deletes, ranges
//!
//! A plan holds records that are there, by their addresses. A record that a call inserts is its own
//! from before others can find it. A scan plans the records that it meets, a failed look-up
//! nothing; that no others come in is checked by the versions of index nodes at the commit, as in
//! two-phase locking without plans. A record that is deleted meanwhile is found dead under its
//! lock, and looked up again.
//!
//! # Statements
//!
//! A transaction of several statements, such as a Rust closure, is not known beforehand: its first
//! attempt takes each record as it meets it, without waiting. When that fails, what it held and
//! what it missed is the plan of the next attempt, which takes all of it before it starts: the
//! failed attempt was its reconnaissance.

pub mod ahead;
pub mod findings;
pub mod footprint;
pub mod groups;
pub mod planner;
pub mod reconnaissance;
pub mod scans;
pub mod scout;

pub use ahead::{ClaimOf, Demand, PlannedAhead};
pub use findings::Findings;
pub use footprint::{Claim, Footprint};
pub use groups::Extent;
pub use planner::Planner;
pub use reconnaissance::{Planned, Whereabouts};
pub use scout::Scout;
