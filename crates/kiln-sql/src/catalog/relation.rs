//! The relations: names and columns.

use std::collections::HashMap;

use kiln_platform::sync::OnceLock;
use kiln_storage::types::DataType;

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
}

/// A column of a relation.
#[derive(Debug)]
pub(crate) struct RelationColumn {
    pub name: &'static str,
    pub data_type: DataType,
    pub not_null: bool,
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
        })
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
}
