//! Who makes the rows of the relations.

use kiln_storage::types::Value;

use super::relation::Relation;
use super::values::Row;
use super::{
    Snapshot, builtin, class, comments, constraint, extensions, information, roles, routines,
    sequences, statistics, triggers, types, views,
};

/// Where the rows of a relation come from.
#[derive(Clone, Copy, Debug)]
enum Rows {
    /// There is nothing of the kind here.
    None,
    /// PostgreSQL's own objects, and nothing else.
    Builtin,
    /// They follow from the catalog.
    Of(fn(&Snapshot) -> Vec<Row>),
    /// They follow from the catalog, and what the session says.
    OfSession(fn(&Snapshot, &Value) -> Vec<Row>),
}

/// The function that makes the rows of a relation.
fn rows_of(schema: &str, name: &str) -> Rows {
    if schema == "information_schema" {
        return information::rows_of(name).map_or(Rows::None, Rows::Of);
    }
    Rows::Of(match name {
        "pg_class" => class::pg_class,
        "pg_attribute" => class::pg_attribute,
        "pg_attrdef" => class::pg_attrdef,
        "pg_index" => class::pg_index,
        "pg_constraint" => constraint::pg_constraint,
        "pg_depend" => constraint::pg_depend,
        "pg_type" => types::pg_type,
        "pg_enum" => types::pg_enum,
        "pg_namespace" => types::pg_namespace,
        "pg_description" => comments::pg_description,
        "pg_shdescription" => comments::pg_shdescription,
        "pg_proc" => routines::pg_proc,
        "pg_trigger" => triggers::pg_trigger,
        "pg_extension" => extensions::pg_extension,
        "pg_available_extensions" => extensions::pg_available_extensions,
        "pg_available_extension_versions" => extensions::pg_available_extension_versions,
        "pg_database" => roles::pg_database,
        "pg_authid" => roles::pg_authid,
        "pg_roles" => roles::pg_roles,
        "pg_auth_members" => roles::pg_auth_members,
        "pg_db_role_setting" => roles::pg_db_role_setting,
        "pg_user" => roles::pg_user,
        "pg_shadow" => roles::pg_shadow,
        "pg_sequence" => sequences::pg_sequence,
        "pg_sequences" => sequences::pg_sequences,
        "pg_tables" => views::pg_tables,
        "pg_views" => views::pg_views,
        "pg_matviews" => views::pg_matviews,
        "pg_indexes" => views::pg_indexes,
        "pg_stat_all_tables" | "pg_stat_user_tables" => statistics::pg_stat_user_tables,
        "pg_stat_all_indexes" | "pg_stat_user_indexes" => statistics::pg_stat_user_indexes,
        "pg_statio_all_tables" | "pg_statio_user_tables" => statistics::pg_statio_user_tables,
        "pg_statio_all_indexes" | "pg_statio_user_indexes" => statistics::pg_statio_user_indexes,
        "pg_stat_user_functions" => statistics::pg_stat_user_functions,
        "pg_stat_xact_all_tables" | "pg_stat_xact_user_tables" => {
            statistics::pg_stat_xact_user_tables
        }
        "pg_stat_database" => statistics::pg_stat_database,
        "pg_stat_bgwriter" => statistics::pg_stat_bgwriter,
        "pg_stat_archiver" => statistics::pg_stat_archiver,
        "pg_stat_database_conflicts" => statistics::pg_stat_database_conflicts,
        "pg_settings" => return Rows::OfSession(views::pg_settings),
        "pg_stat_activity" => return Rows::OfSession(statistics::pg_stat_activity),
        "pg_prepared_statements" => return Rows::OfSession(views::pg_prepared_statements),
        "pg_cursors" => return Rows::OfSession(views::pg_cursors),
        "pg_locks" => return Rows::OfSession(views::pg_locks),
        "pg_operator" | "pg_cast" | "pg_am" | "pg_opclass" | "pg_opfamily" | "pg_collation"
        | "pg_language" | "pg_tablespace" => return Rows::Builtin,
        _ => return Rows::None,
    })
}

impl Relation {
    /// Whether its rows depend on what the session says, which [`Relation::rows`] gets then.
    pub fn is_of_session(&self) -> bool {
        matches!(rows_of(self.schema, self.name), Rows::OfSession(_))
    }

    /// Its rows in a catalog.
    pub fn rows(&self, snapshot: &Snapshot, session: &Value) -> Vec<Row> {
        match rows_of(self.schema, self.name) {
            Rows::None => Vec::new(),
            Rows::Builtin => builtin::rows(self.name).to_vec(),
            Rows::Of(rows) => rows(snapshot),
            Rows::OfSession(rows) => rows(snapshot, session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_makes_rows_makes_those_of_a_relation() {
        let views = Relation::all().iter();
        let made =
            views.filter(|relation| !matches!(rows_of(relation.schema, relation.name), Rows::None));
        assert!(made.count() > 50);
    }
}
