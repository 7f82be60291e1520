//! The relations: names, columns, and who makes their rows.

use std::collections::HashMap;

use kiln_platform::sync::OnceLock;
use kiln_storage::types::{DataType, Value};

use super::values::Row;
use super::{
    Snapshot, builtin, class, comments, constraint, extensions, information, roles, routines,
    sequences, statistics, triggers, types, views,
};

/// Schema, name, kind, number and columns of each relation, a line each.
const RELATIONS: &str = include_str!("data/relations.tsv");

/// A relation of `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub(crate) struct Relation {
    pub schema: &'static str,
    pub name: &'static str,
    /// `r` or `v`.
    pub kind: &'static str,
    /// PostgreSQL's number.
    pub oid: u32,
    pub columns: Vec<RelationColumn>,
    rows: Rows,
}

/// A column of a relation.
#[derive(Debug)]
pub(crate) struct RelationColumn {
    pub name: &'static str,
    pub data_type: DataType,
    pub not_null: bool,
}

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
    /// All relations.
    pub fn all() -> &'static [Relation] {
        static ALL: OnceLock<Vec<Relation>> = OnceLock::new();
        ALL.get_or_init(|| RELATIONS.lines().filter_map(Relation::read).collect())
    }

    /// The relation with this name.
    pub fn find(schema: &str, name: &str) -> Option<&'static Relation> {
        static BY_NAME: OnceLock<HashMap<(&'static str, &'static str), &'static Relation>> =
            OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| {
            let all = Relation::all().iter();
            all.map(|relation| ((relation.schema, relation.name), relation))
                .collect()
        });
        by_name.get(&(schema, name)).copied()
    }

    /// Reads a line of [`RELATIONS`].
    fn read(line: &'static str) -> Option<Relation> {
        let mut fields = line.split('\t');
        let (schema, name) = (fields.next()?, fields.next()?);
        let (kind, oid) = (fields.next()?, fields.next()?.parse().ok()?);
        let columns = fields.map(|column| {
            let (name, data_type) = column.split_once(' ')?;
            let declared = data_type.strip_prefix("not null ");
            Some(RelationColumn {
                name,
                data_type: declared.unwrap_or(data_type).parse().ok()?,
                not_null: declared.is_some(),
            })
        });
        Some(Relation {
            schema,
            name,
            kind,
            oid,
            columns: columns.collect::<Option<_>>()?,
            rows: rows_of(schema, name),
        })
    }

    /// Whether its rows depend on what the session says, which [`Relation::rows`] gets then.
    pub fn is_of_session(&self) -> bool {
        matches!(self.rows, Rows::OfSession(_))
    }

    /// Its rows in a catalog.
    pub fn rows(&self, snapshot: &Snapshot, session: &Value) -> Vec<Row> {
        match self.rows {
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
    fn each_line_is_a_relation() {
        assert_eq!(Relation::all().len(), RELATIONS.lines().count());
        let class = Relation::find("pg_catalog", "pg_class").expect("it is there");
        assert_eq!((class.oid, class.columns.len()), (1259, 33));
        assert!(Relation::find("pg_catalog", "tables").is_none());
    }

    #[test]
    fn who_makes_rows_makes_those_of_a_relation() {
        let views = Relation::all().iter();
        let made = views.filter(|relation| !matches!(relation.rows, Rows::None));
        assert!(made.count() > 50);
    }
}
