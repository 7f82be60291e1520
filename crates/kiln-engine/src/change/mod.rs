//! Changes of the catalog: made while no transaction runs, as parts of transaction blocks, and of
//! the temporary objects of one session.

mod alter;
mod apply;
mod catalog_change;
mod composites;
mod definition;
mod domains;
mod enums;
mod extensions;
mod indexes;
mod procedures;
mod redo;
mod roles;
mod schemas;
mod sequences;
mod still;
mod tables;
mod temporary;
mod views;
mod within_block;

pub use alter::{NewColumn, NewRows};
pub use catalog_change::CatalogChange;
pub use definition::Definition;
pub(crate) use temporary::{Temporary, Unchanged};
pub use within_block::writes_permanent_rows;
pub(crate) use within_block::{Refused, TriedSequences, WithinBlock, tables_written};
