//! CREATE TABLE and CREATE INDEX: from syntax trees to definitions, checked as PostgreSQL checks
//! them. Nothing is created here; the catalog does that.
//!
//! | module | holds |
//! |---|---|
//! | `table` | columns, keys, CHECK, DEFAULT |
//! | `partition` | PARTITION BY |
//! | `references` | REFERENCES |
//! | `index` | CREATE INDEX |
//! | `sequence` | sequences, SERIAL and identity columns |
//! | `names` | the names that constraints and indexes get |

mod index;
mod names;
mod partition;
mod references;
mod sequence;
mod table;

pub use index::{IndexDeclaration, added_key, create_index};
pub(in crate::compile) use names::is_relation;
pub use partition::alter_table;
pub use sequence::{
    added_identity, altered_identity, altered_sequence, bind_default_text, created_sequence,
    declared_default, owner_of, sequence_default,
};
pub use table::{TableDeclaration, create_table};
