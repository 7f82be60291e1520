//! What the procedures of a workload have to do with each other.
//!
//! | module | finds |
//! |---|---|
//! | [`groups`] | per table, columns that one timestamp should cover, over all procedures |
//! | [`conflicts`] | which statement can conflict with which, on which columns |

pub mod conflicts;
pub mod groups;
