//! Schemas, tables and columns.

use kiln_engine::{CheckOption, Domain, Object, ObjectKind, PUBLIC, Privileges};
use kiln_storage::qualified::parts;
use kiln_storage::sequence::{Identity, SequenceDefinition};
use kiln_storage::types::{CatalogType, DataType};

use super::super::snapshot::Snapshot;
use super::super::values::{Row, optional, yes_or_no};
use super::super::{Relation, deparse};
use super::{Maker, position};

/// Schemas.
pub(super) fn schemata(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("schemata");
    let public = match snapshot.owner(&Object::schema("public")) {
        "kiln" => "pg_database_owner",
        owner => owner,
    };
    let schemas = [
        ("public", public),
        ("pg_catalog", "kiln"),
        ("information_schema", "kiln"),
    ];
    let own = snapshot
        .schemas
        .iter()
        .map(|(_, name)| (name.as_str(), snapshot.owner(&Object::schema(name))));
    let rows = schemas.into_iter().chain(own).map(|(schema, owner)| {
        let row = maker.row().with("catalog_name", super::DATABASE);
        row.with("schema_name", schema)
            .with("schema_owner", owner)
            .row
    });
    rows.collect()
}

/// Tables, and the relations of the system.
pub(super) fn tables(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("tables");
    let row = |schema: &str, name: &str, is_view: bool, is_insertable: bool| {
        let own = snapshot.temporary.as_ref();
        let table_type = match own.is_some_and(|(_, own)| own == schema) {
            true => "LOCAL TEMPORARY",
            false if is_view => "VIEW",
            false => "BASE TABLE",
        };
        maker
            .row()
            .named("table", schema, name)
            .with("table_type", table_type)
            .with("is_insertable_into", yes_or_no(is_insertable))
            .with("is_typed", yes_or_no(false))
            .row
    };
    let system = Relation::all().iter();
    let system = system.map(|relation| {
        let is_view = relation.kind == "v";
        row(relation.schema, relation.name, is_view, !is_view)
    });
    let tables = snapshot.tables.iter();
    let tables = tables.map(|table| row(table.schema_name(), table.name(), false, true));
    let views = snapshot.views.iter();
    let views = views.map(|it| {
        let (schema, name) = parts(&it.view.name);
        row(schema, name, true, !it.updatable.is_empty())
    });
    system.chain(tables).chain(views).collect()
}

/// Views, but for those of the system.
pub(super) fn views(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("views");
    let views = snapshot.views.iter().map(|entry| {
        let is_updatable = yes_or_no(!entry.updatable.is_empty());
        let check = entry.view.check_option;
        maker
            .row()
            .of_qualified("table", &entry.view.name)
            .with("view_definition", deparse::view(&entry.view))
            .with("check_option", check.map_or("NONE", CheckOption::name))
            .with("is_updatable", is_updatable.clone())
            .with("is_insertable_into", is_updatable)
            .with("is_trigger_updatable", yes_or_no(false))
            .with("is_trigger_deletable", yes_or_no(false))
            .with("is_trigger_insertable_into", yes_or_no(false))
            .row
    });
    views.collect()
}

/// The tables and views from which views read.
pub(super) fn view_table_usage(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("view_table_usage");
    let views = snapshot.views.iter();
    let rows = views.flat_map(|entry| {
        let reads = entry.view.reads.iter();
        let relations = reads.filter(|read| snapshot.sequence(&read.relation).is_none());
        relations.map(|read| {
            let row = maker.row().of_qualified("view", &entry.view.name);
            row.of_qualified("table", &read.relation).row
        })
    });
    rows.collect()
}

/// A column of a table or of a relation of the system.
struct ColumnOf<'a> {
    schema: &'a str,
    table: &'a str,
    name: &'a str,
    data_type: &'a DataType,
    domain: Option<&'a Domain>,
    at: usize,
    not_null: bool,
    default: Option<String>,
    /// What it is computed from.
    generated: Option<String>,
    identity: Option<(&'a SequenceDefinition, Identity)>,
    is_updatable: bool,
}

fn column_row(maker: &Maker, column: ColumnOf<'_>) -> Row {
    let row = maker
        .row()
        .named("table", column.schema, column.table)
        .with("column_name", column.name)
        .with("ordinal_position", position(column.at))
        .with("column_default", optional(column.default))
        .with("is_nullable", yes_or_no(!column.not_null));
    let row = match column.domain {
        Some(domain) => row
            .of_domain(domain)
            .named("domain", "public", &domain.name),
        None => row.of_type(column.data_type),
    };
    let row = row
        .with("dtd_identifier", (column.at + 1).to_string())
        .with("is_self_referencing", yes_or_no(false))
        .with("is_identity", yes_or_no(column.identity.is_some()))
        .with("identity_cycle", yes_or_no(false))
        .with(
            "is_generated",
            if column.generated.is_some() {
                "ALWAYS"
            } else {
                "NEVER"
            },
        )
        .with("generation_expression", optional(column.generated))
        .with("is_updatable", yes_or_no(column.is_updatable));
    let row = match column.identity {
        None => row,
        Some((sequence, identity)) => row
            .with(
                "identity_generation",
                match identity {
                    Identity::Always => "ALWAYS",
                    Identity::ByDefault => "BY DEFAULT",
                },
            )
            .with("identity_start", sequence.start.to_string())
            .with("identity_increment", sequence.increment.to_string())
            .with("identity_maximum", sequence.max.to_string())
            .with("identity_minimum", sequence.min.to_string())
            .with("identity_cycle", yes_or_no(sequence.cycle)),
    };
    // Those that have not the default one.
    match column.data_type {
        DataType::Catalog(CatalogType::Name | CatalogType::NodeTree) => {
            row.named("collation", "pg_catalog", "C").row
        }
        _ => row.row,
    }
}

/// Columns.
pub(super) fn columns(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("columns");
    let mut rows = Vec::new();
    for relation in Relation::all() {
        for (at, column) in relation.columns.iter().enumerate() {
            let column = ColumnOf {
                schema: relation.schema,
                table: relation.name,
                name: column.name,
                data_type: &column.data_type,
                domain: None,
                at,
                not_null: column.not_null,
                default: None,
                generated: None,
                identity: None,
                is_updatable: relation.kind == "r",
            };
            rows.push(column_row(&maker, column));
        }
    }
    for table in &snapshot.tables {
        for (at, column) in table.schema().shown().iter().enumerate() {
            let identity = snapshot.identity(table.qualified(), &column.name);
            let domain = column.domain.as_ref();
            let domain = domain.and_then(|name| snapshot.domain(name));
            let domain = domain.map(|entry| &*entry.domain);
            let is_never_null = domain.is_some_and(|domain| domain.not_null);
            let shown = super::super::deparse::column_default(table, at);
            let (default, generated) = match column.generated {
                Some(_) => (None, shown),
                None => (shown, None),
            };
            let column = ColumnOf {
                schema: table.schema_name(),
                table: table.name(),
                name: &column.name,
                data_type: &column.data_type,
                domain,
                at,
                not_null: column.not_null || is_never_null,
                default: default.filter(|_| identity.is_none()),
                generated,
                identity: identity.map(|(entry, kind)| (entry.sequence.definition(), kind)),
                is_updatable: true,
            };
            rows.push(column_row(&maker, column));
        }
    }
    for entry in &snapshot.views {
        for (at, (name, data_type)) in entry.view.columns.iter().enumerate() {
            let column = ColumnOf {
                schema: parts(&entry.view.name).0,
                table: parts(&entry.view.name).1,
                name,
                data_type,
                domain: None,
                at,
                not_null: false,
                default: None,
                generated: None,
                identity: None,
                is_updatable: entry.updatable.get(at).copied().unwrap_or(false),
            };
            rows.push(column_row(&maker, column));
        }
    }
    rows
}

/// Sequences, but for those of identity columns.
pub(super) fn sequences(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("sequences");
    let definitions = snapshot.sequences.iter().map(|it| it.sequence.definition());
    let definitions = definitions.filter(|definition| {
        let owner = definition.owner.as_ref();
        owner.is_none_or(|owner| owner.identity.is_none())
    });
    let rows = definitions.map(|definition| {
        let bits = match definition.data_type {
            DataType::SmallInt => 16,
            DataType::Integer => 32,
            _ => 64,
        };
        maker
            .row()
            .of_qualified("sequence", &definition.name)
            .with("data_type", definition.data_type.base_name())
            .with("numeric_precision", bits)
            .with("numeric_precision_radix", 2)
            .with("numeric_scale", 0)
            .with("start_value", definition.start.to_string())
            .with("minimum_value", definition.min.to_string())
            .with("maximum_value", definition.max.to_string())
            .with("increment", definition.increment.to_string())
            .with("cycle_option", yes_or_no(definition.cycle))
            .row
    });
    rows.collect()
}

/// Who may do what with tables.
pub(super) fn table_privileges(snapshot: &Snapshot) -> Vec<Row> {
    const OWNERS: [&str; 7] = [
        "INSERT",
        "SELECT",
        "UPDATE",
        "DELETE",
        "TRUNCATE",
        "REFERENCES",
        "TRIGGER",
    ];
    let maker = Maker::of("table_privileges");
    let row = |table: &str, grantee: &str, privilege: &str, is_owner: bool| {
        maker
            .row()
            .with("grantor", snapshot.owner(&Object::table(table)))
            .with("grantee", grantee)
            .of_qualified("table", table)
            .with("privilege_type", privilege)
            .with("is_grantable", yes_or_no(is_owner))
            .with("with_hierarchy", yes_or_no(privilege == "SELECT"))
            .row
    };
    let mut rows = Vec::new();
    let tables = snapshot.tables.iter().map(|table| table.qualified());
    let views = snapshot.views.iter().map(|entry| entry.view.name.as_str());
    for name in tables.chain(views) {
        let owner = snapshot.owner(&Object::table(name));
        rows.extend(OWNERS.map(|privilege| row(name, owner, privilege, true)));
        for (grantee, privileges) in granted(snapshot, &Object::table(name)) {
            let privileges = privileges
                .iter()
                .map(|privilege| privilege.name().to_uppercase());
            rows.extend(privileges.map(|privilege| row(name, &grantee, &privilege, false)));
        }
    }
    rows
}

/// The grantees of an object other than its owner, with what they may do.
pub(super) fn granted(snapshot: &Snapshot, object: &Object) -> Vec<(String, Privileges)> {
    let public = || ("PUBLIC".to_owned(), Privileges::of(object.kind));
    match snapshot.privileges.grantees(object) {
        None if object.kind == ObjectKind::Routine => vec![public()],
        None => Vec::new(),
        Some(grantees) => {
            let owner = snapshot.owner(object);
            let grantees = grantees.iter().filter(|(name, _)| *name != owner);
            let named = grantees.map(|(name, privileges)| match name.as_str() {
                PUBLIC => ("PUBLIC".to_owned(), *privileges),
                _ => (name.clone(), *privileges),
            });
            named.collect()
        }
    }
}
