//! Parameters of PostgreSQL's storage, as pg_dump and scripts write them: their names are checked,
//! and they have no effect.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::IndexMethod;
use sqlparser::ast::{Expr, Ident, SqlOption};

use crate::compile::{fail, name_of, position_of_span};

/// Those of a table; those of its vacuuming can be written for TOAST too.
pub const OF_TABLE: &[&str] = &[
    "autovacuum_analyze_scale_factor",
    "autovacuum_analyze_threshold",
    "autovacuum_enabled",
    "autovacuum_freeze_max_age",
    "autovacuum_freeze_min_age",
    "autovacuum_freeze_table_age",
    "autovacuum_multixact_freeze_max_age",
    "autovacuum_multixact_freeze_min_age",
    "autovacuum_multixact_freeze_table_age",
    "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit",
    "autovacuum_vacuum_insert_scale_factor",
    "autovacuum_vacuum_insert_threshold",
    "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_threshold",
    "fillfactor",
    "log_autovacuum_min_duration",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
];

/// Those of an index.
pub fn of_index(method: IndexMethod) -> &'static [&'static str] {
    match method {
        IndexMethod::BTree => &["deduplicate_items", "fillfactor"],
        IndexMethod::Hash | IndexMethod::SpGist => &["fillfactor"],
        IndexMethod::Gist => &["buffering", "fillfactor"],
        IndexMethod::Gin => &["fastupdate", "gin_pending_list_limit"],
        IndexMethod::Brin => &["autosummarize", "pages_per_range"],
    }
}

/// # Errors
/// 22023 for a name that is not among `known`.
pub fn check_parameters<'a>(
    names: impl IntoIterator<Item = &'a Ident>,
    known: &[&str],
) -> Result<()> {
    for ident in names {
        let name = name_of(ident);
        let own = name.strip_prefix("toast.").unwrap_or(&name);
        if !known.contains(&own) {
            return Err(fail(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized parameter \"{name}\""),
                position_of_span(ident.span),
            ));
        }
    }
    Ok(())
}

/// The names of the options of `WITH (…)`.
pub fn names_of_options(options: &[SqlOption]) -> impl Iterator<Item = &Ident> {
    options.iter().filter_map(|option| match option {
        SqlOption::KeyValue { key, .. } | SqlOption::Ident(key) => Some(key),
        _ => None,
    })
}

/// The names of the conditions that sqlparser makes of the options of an index.
pub fn names_of_conditions(conditions: &[Expr]) -> impl Iterator<Item = &Ident> {
    conditions.iter().filter_map(|condition| match condition {
        Expr::BinaryOp { left, .. } => match &**left {
            Expr::Identifier(name) => Some(name),
            _ => None,
        },
        Expr::Identifier(name) => Some(name),
        _ => None,
    })
}
