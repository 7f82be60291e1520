//! CREATE TABLE and CREATE INDEX: from syntax trees to definitions, checked as PostgreSQL checks
//! them. Nothing is created here; the catalog does that.
//!
//! | module | holds |
//! |---|---|
//! | `table` | columns, keys, CHECK, DEFAULT |
//! | `partition` | PARTITION BY |
//! | `references` | REFERENCES |
//! | `index` | CREATE INDEX |
//! | `names` | the names that constraints and indexes get |

mod index;
mod names;
mod partition;
mod references;
mod table;

pub use index::{IndexDeclaration, added_key, create_index};
pub use partition::alter_table;
pub use table::{TableDeclaration, create_table};
