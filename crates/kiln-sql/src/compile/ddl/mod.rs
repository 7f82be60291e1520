//! CREATE TABLE, ALTER TABLE and CREATE INDEX: from syntax trees to definitions, checked as
//! PostgreSQL checks them. Nothing is created here; the catalog does that.
//!
//! | module | holds |
//! |---|---|
//! | `table` | columns, keys, CHECK, DEFAULT |
//! | `alter` | ALTER TABLE |
//! | `domain` | CREATE DOMAIN, ALTER DOMAIN |
//! | `generated` | generated columns |
//! | `partition` | PARTITION BY |
//! | `references` | REFERENCES |
//! | `index` | CREATE INDEX |
//! | `index_expression` | expressions and predicates of indexes |
//! | `view` | CREATE VIEW |
//! | `trigger` | CREATE TRIGGER |
//! | `sequence` | sequences, SERIAL and identity columns |
//! | `names` | the names that constraints and indexes get |
//! | `parameters` | parameters of storage |
//! | `rename` | other names in expressions that are kept as text |

mod alter;
mod domain;
mod generated;
mod index;
mod index_expression;
mod names;
mod operator_class;
pub(crate) mod parameters;
mod partition;
mod references;
mod rename;
mod sequence;
mod table;
mod trigger;
mod view;

pub use super::expression::columns_of_generated;
pub use super::qualified::is_temporary;
pub use alter::{Draft, check_reference_types, draft_default};
pub use domain::{check_exists, create_domain, domain_check, domain_default};
pub use index::{IndexDeclaration, create_index};
pub(crate) use index_expression::name as index_expression_name;
pub use index_expression::predicate_text;
pub use partition::divided;
use rename::kept_default;
pub use rename::{
    Renamed, names_type, over_value, renamed_expression, stored_literal, without_rows,
};
pub use sequence::{
    added_identity, altered_identity, altered_sequence, bind_default_text, created_sequence,
    owner_of, retyped_identity, sequence_default,
};
pub use table::{TableDeclaration, create_table};
pub use trigger::{columns_of_trigger, create_trigger, missing_trigger};
pub use view::create_view;
