//! What the database says of itself: the relations of `pg_catalog` and `information_schema`, and
//! the functions over them.
//!
//! A relation is a source of rows as any other to the compiler. When a program runs, the relation
//! fills a buffer with the rows that follow from the catalog in force then
//! ([`kiln_procedure::outside`]); joins, conditions and the rest are the compiler's. Functions such
//! as `format_type` are computed the same way, one call at a time.
//!
//! PostgreSQL's own objects (types, functions, operators) are facts of PostgreSQL 15, kept in
//! `data/` as COPY writes them. There are only those that exist here.
//!
//! | module | holds |
//! |---|---|
//! | `relation`, `contents` | the relations: names and columns, and who makes their rows |
//! | `builtin` | PostgreSQL's own objects |
//! | `view` | a catalog as the compiler sees it |
//! | `auxiliary` | which indexes were derived |
//! | `snapshot` | a catalog's objects by name and by number |
//! | `outside` | relations and functions as programs ask for them |
//! | `functions` | the functions |
//! | `row_lock` | the function that locks rows for SKIP LOCKED |
//! | `signal_session` | the function that ends statements of other sessions, and these |
//! | `names` | objects by name, as REGCLASS and its like read and print them |
//! | `deparse` | definitions as SQL |
//! | `expression`, `pretty` | expressions as PostgreSQL prints them, and as it does for people |
//! | `comments`, `class`, `constraint`, `types`, `routines`, `roles`, `views`, `statistics`, `information` | rows |

mod auxiliary;
mod builtin;
mod class;
mod comments;
mod constraint;
mod contents;
mod deparse;
mod domains;
mod expression;
mod extensions;
pub(crate) mod functions;
mod information;
pub(crate) mod names;
pub(crate) mod outside;
mod pretty;
pub(crate) mod relation;
mod roles;
mod routines;
mod row_lock;
mod sequences;
mod signal_session;
mod snapshot;
mod statistics;
mod triggers;
mod types;
mod values;
mod view;
mod views;

pub use auxiliary::is_auxiliary;
pub(crate) use auxiliary::{HASH_SUFFIX, base_of};
pub(crate) use builtin::{
    argument_names, internal_name, is_immutable, is_missing_function, oid_of, type_named,
};
pub(crate) use outside::CatalogCall;
pub(crate) use relation::Relation;
pub(crate) use row_lock::RowLock;
pub(crate) use sequences::{
    SequenceCall, SequenceFunction, SequenceRow, qualified_name, stored_name,
};
pub(crate) use signal_session::SignalSession;
pub(crate) use snapshot::Snapshot;
pub(crate) use view::{
    View, definition, relation_of, routine_of, sequences_of, sequences_of_default,
};

/// The name of the database; there is one.
pub(crate) const DATABASE: &str = "kiln";

/// The number of the database.
pub(crate) const DATABASE_OID: u32 = 5;

/// The number of the schema `pg_catalog`.
pub(crate) const PG_CATALOG_OID: u32 = 11;

/// The number of the schema `public`.
pub(crate) const PUBLIC_OID: u32 = 2200;

/// The number of the first role.
pub(crate) const FIRST_ROLE_OID: u32 = 10;
