//! Catalogs as text.
//!
//! A catalog is written as the list of what is in it, and not of the statements that made it: a
//! database that creates and drops tables all day has a list as long as the number of its objects.
//! Written are the tables, with their numbers, the order and the kind of their indexes, derived
//! ones included, and their next row numbers; the enums, composite types and domains; the extensions; the sequences,
//! and how far they have got; the views; the statements that created the procedures; and the numbers of objects
//! and the comments on them. Nothing else of a catalog depends on how it came about, as the
//! programs of procedures follow from their statements and the tables ([`Lookups`](crate::Lookups)
//! sees to that).
//!
//! A log keeps a written catalog with each checkpoint, and the
//! [`CatalogStatement`](crate::CatalogStatement)s after it.

mod composites;
mod domains;
mod enums;
mod roles;
mod sequences;
mod triggers;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::key::ROW_NUMBER_SLOT_BITS;
use kiln_storage::schema::{
    Check, Column, ColumnId, ColumnSet, Deferral, ForeignKey, IndexDefinition, IndexKind,
    IndexMethod, Partitioning, ReferentialAction, TableId, TableSchema, UnbuiltIndex,
};
use kiln_storage::table::Table;
use kiln_storage::types::{EnumType, RowType};

use super::comments::Comments;
use super::domains::Domain;
use super::numbers::ObjectNumbers;
use super::objects::Catalog;
use super::statement::{Source, read_source, write_source};
use super::text_form::{Columns, Counted, Reader};
use super::views::{View, ViewRows};
use crate::roles::Roles;
pub(crate) use sequences::WrittenSequence;
use sequences::check_state;

/// A catalog that was written down. Its [`Display`](fmt::Display) form is read by [`FromStr`];
/// catalogs with the same form have the same numbers, row numbers and physical design.
#[derive(Clone, Debug)]
pub struct WrittenCatalog {
    pub(crate) version: u64,
    pub(crate) next_table_id: TableId,
    /// Besides `public`.
    pub(crate) schemas: BTreeSet<String>,
    /// With their schemas.
    pub(crate) extensions: BTreeMap<String, String>,
    /// In the order of their names.
    pub(crate) enums: Vec<Arc<EnumType>>,
    /// In the order of their names.
    pub(crate) composites: Vec<Arc<RowType>>,
    /// In the order of their names.
    pub(crate) domains: Vec<Arc<Domain>>,
    /// In the order of their names.
    pub(crate) tables: Vec<WrittenTable>,
    /// In the order of their names.
    pub(crate) sequences: Vec<WrittenSequence>,
    /// In the order of their names.
    pub(crate) views: Vec<Arc<View>>,
    /// In the order of the names of the procedures that they create.
    pub(crate) procedures: Vec<Arc<Source>>,
    pub(crate) roles: Roles,
    pub(crate) numbers: ObjectNumbers,
    pub(crate) comments: Comments,
}

/// A table that was written down.
#[derive(Clone, Debug)]
pub(crate) struct WrittenTable {
    pub id: TableId,
    pub schema: TableSchema,
    /// The first one, which follows from the schema, included.
    pub indexes: Vec<IndexDefinition>,
    /// The split columns.
    pub split: ColumnSet,
    /// See [`Table::row_numbers`].
    pub row_numbers: Vec<(usize, u64)>,
}

impl Catalog {
    /// The catalog written down, so that it can be rebuilt.
    ///
    /// # Errors
    /// 55000 for a procedure that Rust code made, as no statement says what it does.
    pub fn written(&self) -> Result<WrittenCatalog> {
        let procedures = self.procedures().map(|procedure| {
            procedure.source().cloned().ok_or_else(|| {
                let name = procedure.name();
                let message = format!(
                    "the catalog cannot be written down: Rust code made procedure {name} without a \
                     statement"
                );
                Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .with_hint("Create it with CREATE PROCEDURE, or drop it.")
            })
        });
        Ok(WrittenCatalog {
            procedures: procedures.collect::<Result<_>>()?,
            sequences: self.sequences().map(|it| WrittenSequence::of(it)).collect(),
            views: self.views().cloned().collect(),
            enums: self.enums().cloned().collect(),
            composites: self.composites().cloned().collect(),
            domains: self.domains().cloned().collect(),
            roles: self.roles().clone(),
            numbers: self.numbers().clone(),
            comments: self.comments().clone(),
            version: self.version(),
            schemas: self.schemas.clone(),
            extensions: self.extensions.clone(),
            next_table_id: self.next_table_id(),
            tables: self
                .tables()
                .map(|(_, table)| WrittenTable::of(table))
                .collect(),
        })
    }
}

impl WrittenCatalog {
    /// The statements that created the procedures.
    pub fn procedures(&self) -> &[Arc<Source>] {
        &self.procedures
    }

    /// Refuses what no catalog can have been.
    pub(crate) fn check(&self) -> Result<()> {
        let corrupted = |message: String| Err(Error::new(SqlState::DATA_CORRUPTED, message));
        let mut widths: BTreeMap<&str, usize> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let (mut names, mut types) = (BTreeSet::new(), BTreeSet::new());
        for of in &self.enums {
            let is_new =
                names.insert(of.name()) && types.insert(of.oid()) && types.insert(of.array_oid());
            if !is_new {
                let name = of.name();
                return corrupted(format!("type \"{name}\" has the name or number of another"));
            }
        }
        for of in &self.composites {
            let is_new =
                names.insert(of.name()) && types.insert(of.oid()) && types.insert(of.array_oid());
            if !is_new || of.is_record() {
                let name = of.name();
                return corrupted(format!("type \"{name}\" has the name or number of another"));
            }
        }
        for table in &self.tables {
            let name = &table.schema.name;
            let width = table.schema.columns.len();
            if widths.insert(name, width).is_some() || !ids.insert(table.id) {
                return corrupted(format!("table \"{name}\" is twice in the written catalog"));
            }
            if table.id >= self.next_table_id {
                return corrupted(format!("table \"{name}\" has a number not given out yet"));
            }
        }
        for sequence in &self.sequences {
            let name = &sequence.definition.name;
            let id = TableId(sequence.id.0);
            if widths.insert(name, 0).is_some() || !ids.insert(id) || id >= self.next_table_id {
                let message = format!("sequence \"{name}\" has the name or number of another");
                return corrupted(message);
            }
            check_state(&sequence.definition, &sequence.state)?;
        }
        for view in &self.views {
            let name = &view.name;
            // A materialized one is the table that keeps its rows, too.
            let is_known = match view.rows {
                ViewRows::Computed => widths.insert(name, 0).is_some(),
                ViewRows::Stored | ViewRows::Missing => {
                    !self.tables.iter().any(|table| table.schema.name == *name)
                }
            };
            if is_known {
                return corrupted(format!("view \"{name}\" has the name of another relation"));
            }
        }
        for table in &self.tables {
            let name = &table.schema.name;
            if let Some(column) = table.column_beyond(&widths) {
                return corrupted(format!("table \"{name}\" has no column {column}"));
            }
            let mut columns = table.schema.columns.iter();
            if let Some(column) = columns.find(|column| !column.data_type.is_storable()) {
                let data_type = &column.data_type;
                return corrupted(format!("table \"{name}\" has a column of type {data_type}"));
            }
            let mut numbers = table.row_numbers.iter();
            if numbers.any(|(_, next)| next >> (64 - ROW_NUMBER_SLOT_BITS) != 0) {
                return corrupted(format!("a row number of table \"{name}\" cannot be"));
            }
            let mut unbuilt = table.schema.unbuilt.iter();
            if table.indexes.is_empty()
                || table.indexes[1..].iter().any(is_impossible)
                || unbuilt.any(|index| is_impossible(&index.definition))
            {
                return corrupted(format!("an index of table \"{name}\" cannot be"));
            }
        }
        Ok(())
    }
}

/// Whether a table cannot have such an index besides its first.
fn is_impossible(index: &IndexDefinition) -> bool {
    let mut columns = BTreeSet::new();
    let repeats = !index.columns.iter().all(|column| columns.insert(column));
    let kind = match index.kind {
        IndexKind::Hash | IndexKind::SplitHash => !index.unique,
        IndexKind::Ordered { partition_columns } => partition_columns > index.columns.len(),
    };
    let is_partial_of_nothing = index.partial && index.columns.len() < 2;
    let is_deferred_alone = index.deferral.is_deferrable() && (index.unique || !index.constraint);
    repeats || kind || index.columns.is_empty() || is_partial_of_nothing || is_deferred_alone
}

impl WrittenTable {
    fn of(table: &Arc<Table>) -> WrittenTable {
        let indexes = table.indexes().iter().map(|index| index.definition());
        WrittenTable {
            id: table.id(),
            schema: table.schema().clone(),
            indexes: indexes.cloned().collect(),
            split: table.split(),
            row_numbers: table.row_numbers(),
        }
    }

    /// How many leading columns partition the first index.
    pub fn partition_columns(&self) -> usize {
        match self.indexes.first().map(|index| index.kind) {
            Some(IndexKind::Ordered { partition_columns }) => {
                partition_columns.min(self.schema.primary_key.len())
            }
            _ => 0,
        }
    }

    /// A column that is named, and that its table does not have.
    fn column_beyond(&self, widths: &BTreeMap<&str, usize>) -> Option<u16> {
        let beyond = |columns: &[ColumnId], table: &str| {
            let width = widths.get(table).copied().unwrap_or_default();
            let mut columns = columns.iter();
            columns
                .find(|column| column.index() >= width)
                .map(|column| column.0)
        };
        let own = |columns: &[ColumnId]| beyond(columns, &self.schema.name);
        let split: Vec<ColumnId> = self.split.iter().collect();
        let partition: Vec<ColumnId> = self.schema.partition_column().into_iter().collect();
        let mut indexes = self.indexes.iter();
        let mut unbuilt = self.schema.unbuilt.iter();
        let mut keys = self.schema.foreign_keys.iter();
        let mut triggers = self.schema.triggers.iter();
        own(&self.schema.primary_key)
            .or_else(|| own(&split))
            .or_else(|| own(&partition))
            .or_else(|| indexes.find_map(|index| own(&index.columns)))
            .or_else(|| unbuilt.find_map(|index| own(&index.definition.columns)))
            .or_else(|| triggers.find_map(|trigger| own(&trigger.columns)))
            .or_else(|| {
                keys.find_map(|key| {
                    own(&key.columns)
                        .or_else(|| own(&key.set_on_delete))
                        .or_else(|| beyond(&key.referenced, &key.table))
                })
            })
    }
}

impl fmt::Display for WrittenCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "catalog 1 version {} next {}",
            self.version, self.next_table_id.0
        )?;
        for schema in &self.schemas {
            writeln!(f, "schema {}", Counted(schema))?;
        }
        for (name, schema) in &self.extensions {
            writeln!(f, "extension {} in {}", Counted(name), Counted(schema))?;
        }
        for of in &self.enums {
            enums::write(f, of)?;
        }
        for of in &self.composites {
            composites::write(f, of)?;
        }
        for domain in &self.domains {
            domains::write(f, domain)?;
        }
        for table in &self.tables {
            write!(f, "{table}")?;
        }
        for sequence in &self.sequences {
            write!(f, "{sequence}")?;
        }
        for view in &self.views {
            views::write(f, view)?;
        }
        for source in &self.procedures {
            f.write_str("procedure ")?;
            write_source(f, source)?;
        }
        roles::write(f, &self.roles)?;
        write!(f, "{}{}", self.numbers, self.comments)?;
        f.write_str("end\n")
    }
}

impl fmt::Display for WrittenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without `..`: what is added to a schema has to be written, too.
        let TableSchema {
            name,
            columns,
            primary_key,
            primary_key_name,
            checks,
            foreign_keys,
            triggers,
            unbuilt,
            partition_by,
        } = &self.schema;
        writeln!(f, "table {} {}", self.id.0, Counted(name))?;
        for column in columns {
            let Column {
                name,
                data_type,
                domain,
                not_null,
                default,
                generated,
            } = column;
            let null = if *not_null { "not-null" } else { "null" };
            let data_type = data_type.described();
            write!(
                f,
                "  column {} {} {null}",
                Counted(name),
                Counted(&data_type)
            )?;
            if let Some(domain) = domain {
                write!(f, " domain {}", Counted(domain))?;
            }
            if let Some(default) = default {
                write!(f, " default {}", Counted(default))?;
            }
            if let Some(generated) = generated {
                write!(f, " generated {}", Counted(generated))?;
            }
            writeln!(f)?;
        }
        if !primary_key.is_empty() {
            write!(f, "  primary-key {}", Columns(primary_key))?;
            if let Some(name) = primary_key_name {
                write!(f, " called {}", Counted(name))?;
            }
            writeln!(f)?;
        } else if let Some(name) = primary_key_name {
            writeln!(f, "  primary-index {}", Counted(name))?;
        }
        let validity = |is_valid| if is_valid { "" } else { " not-valid" };
        for check in checks {
            let Check {
                name,
                expression,
                is_valid,
            } = check;
            let (name, expression) = (Counted(name), Counted(expression));
            writeln!(f, "  check {name} {expression}{}", validity(*is_valid))?;
        }
        for key in foreign_keys {
            let ForeignKey {
                name,
                columns,
                table,
                referenced,
                is_valid,
                on_delete,
                on_update,
                set_on_delete,
                match_full,
                deferral,
            } = key;
            let (name, table) = (Counted(name), Counted(table));
            let (columns, referenced) = (Columns(columns), Columns(referenced));
            write!(
                f,
                "  foreign-key {name} {columns} references {table} {referenced}{}",
                validity(*is_valid)
            )?;
            for (when, action) in [("on-delete", on_delete), ("on-update", on_update)] {
                if *action != ReferentialAction::NoAction {
                    write!(f, " {when} {}", action_word(*action))?;
                }
            }
            if !set_on_delete.is_empty() {
                write!(f, " setting {}", Columns(set_on_delete))?;
            }
            let deferral = deferral_word(*deferral);
            writeln!(f, "{}{deferral}", if *match_full { " full" } else { "" })?;
        }
        for trigger in triggers {
            triggers::write(f, trigger)?;
        }
        match partition_by {
            Some(Partitioning::Column(column)) => writeln!(f, "  partition-by {}", column.0)?,
            Some(Partitioning::Replicated) => writeln!(f, "  replicated")?,
            None => {}
        }
        for index in &self.indexes {
            f.write_str("  ")?;
            write_index(f, index)?;
            writeln!(f)?;
        }
        for UnbuiltIndex {
            definition,
            classes,
        } in unbuilt
        {
            f.write_str("  unbuilt ")?;
            write_index(f, definition)?;
            for class in classes {
                match class {
                    Some(class) => write!(f, " class {}", Counted(class))?,
                    None => write!(f, " default")?,
                }
            }
            writeln!(f)?;
        }
        if !self.split.is_empty() {
            let columns: Vec<ColumnId> = self.split.iter().collect();
            writeln!(f, "  split {}", Columns(&columns))?;
        }
        for (arena, next) in &self.row_numbers {
            writeln!(f, "  row-number {arena} {next}")?;
        }
        Ok(())
    }
}

impl FromStr for WrittenCatalog {
    type Err = Error;

    fn from_str(text: &str) -> Result<WrittenCatalog> {
        let mut reader = Reader::new(text);
        reader.expect("catalog 1 version")?;
        let version = reader.number()?;
        reader.expect("next")?;
        let next_table_id = TableId(reader.number()?);
        while reader.takes("schema") {
            let schema = reader.counted()?.to_owned();
            reader.schemas.insert(schema);
        }
        let mut extensions = BTreeMap::new();
        while reader.takes("extension") {
            let name = reader.counted()?.to_owned();
            reader.expect("in")?;
            extensions.insert(name, reader.counted()?.to_owned());
        }
        let mut enums = Vec::new();
        while reader.takes("type") {
            enums.push(Arc::new(enums::read(&mut reader)?));
        }
        let mut rows = Vec::new();
        while reader.takes("composite") {
            rows.push(Arc::new(composites::read(&mut reader)?));
        }
        let mut domains = Vec::new();
        while reader.takes("domain") {
            domains.push(domains::read(&mut reader)?);
        }
        let mut tables = Vec::new();
        while reader.takes("table") {
            tables.push(read_table(&mut reader)?);
        }
        let mut sequences = Vec::new();
        while reader.takes("sequence") {
            sequences.push(WrittenSequence::read(&mut reader)?);
        }
        let mut views = Vec::new();
        while reader.takes("view") {
            views.push(Arc::new(views::read(&mut reader)?));
        }
        let mut procedures = Vec::new();
        while reader.takes("procedure") {
            procedures.push(Arc::new(read_source(&mut reader)?));
        }
        let roles = roles::read(&mut reader)?;
        let numbers = ObjectNumbers::read(&mut reader)?;
        let comments = Comments::read(&mut reader)?;
        reader.expect("end")?;
        reader.end()?;
        enums::share(&enums, &mut tables, &mut views)?;
        composites::check(&rows, &tables)?;
        domains::share(&enums, &mut domains);
        let domains: Vec<Arc<Domain>> = domains.into_iter().map(Arc::new).collect();
        domains::check(&domains, &tables)?;
        Ok(WrittenCatalog {
            version,
            next_table_id,
            schemas: reader.schemas,
            extensions,
            enums,
            composites: rows,
            domains,
            tables,
            sequences,
            views,
            procedures,
            roles,
            numbers,
            comments,
        })
    }
}

fn read_table(reader: &mut Reader<'_>) -> Result<WrittenTable> {
    let id = TableId(reader.number()?);
    let mut schema = TableSchema {
        name: reader.qualified()?,
        columns: Vec::new(),
        primary_key: Vec::new(),
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    while reader.takes("column") {
        schema.columns.push(read_column(reader)?);
    }
    if reader.takes("primary-key") {
        schema.primary_key = reader.columns()?;
        if reader.takes("called") {
            schema.primary_key_name = Some(reader.counted()?.to_owned());
        }
    } else if reader.takes("primary-index") {
        schema.primary_key_name = Some(reader.counted()?.to_owned());
    }
    while reader.takes("check") {
        schema.checks.push(Check {
            name: reader.counted()?.to_owned(),
            expression: reader.counted()?.to_owned(),
            is_valid: !reader.takes("not-valid"),
        });
    }
    while reader.takes("foreign-key") {
        let (name, columns) = (reader.counted()?.to_owned(), reader.columns()?);
        reader.expect("references")?;
        schema.foreign_keys.push(ForeignKey {
            name,
            columns,
            table: reader.qualified()?,
            referenced: reader.columns()?,
            is_valid: !reader.takes("not-valid"),
            on_delete: read_action(reader, "on-delete")?,
            on_update: read_action(reader, "on-update")?,
            set_on_delete: match reader.takes("setting") {
                true => reader.columns()?,
                false => Vec::new(),
            },
            match_full: reader.takes("full"),
            deferral: read_deferral(reader),
        });
    }
    while reader.takes("trigger") {
        schema.triggers.push(triggers::read(reader)?);
    }
    if reader.takes("partition-by") {
        schema.partition_by = Some(Partitioning::Column(ColumnId(reader.number()?)));
    } else if reader.takes("replicated") {
        schema.partition_by = Some(Partitioning::Replicated);
    }
    let mut indexes = Vec::new();
    while reader.takes("index") {
        indexes.push(read_index(reader)?);
    }
    while reader.takes("unbuilt") {
        schema.unbuilt.push(read_unbuilt(reader)?);
    }
    let split = match reader.takes("split") {
        true => reader.column_set()?,
        false => ColumnSet::EMPTY,
    };
    let mut row_numbers = Vec::new();
    while reader.takes("row-number") {
        row_numbers.push((reader.number()?, reader.number()?));
    }
    Ok(WrittenTable {
        id,
        schema,
        indexes,
        split,
        row_numbers,
    })
}

/// The word for an action in a written catalog.
fn action_word(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "no-action",
        ReferentialAction::Restrict => "restrict",
        ReferentialAction::Cascade => "cascade",
        ReferentialAction::SetNull => "set-null",
        ReferentialAction::SetDefault => "set-default",
    }
}

/// The action behind the word `when`, which is not written for NO ACTION.
fn read_action(reader: &mut Reader<'_>, when: &str) -> Result<ReferentialAction> {
    if !reader.takes(when) {
        return Ok(ReferentialAction::NoAction);
    }
    let word = reader.word();
    let mut actions = ReferentialAction::ALL.into_iter();
    let known = actions.find(|action| action_word(*action) == word);
    known.ok_or_else(|| reader.damaged("a known action before it"))
}

fn read_column(reader: &mut Reader<'_>) -> Result<Column> {
    let name = reader.counted()?.to_owned();
    let data_type = reader.counted()?.parse();
    let data_type = data_type.map_err(|()| reader.damaged("a known type before it"))?;
    let not_null = reader.takes("not-null");
    if !not_null {
        reader.expect("null")?;
    }
    let domain = match reader.takes("domain") {
        true => Some(reader.counted()?.to_owned()),
        false => None,
    };
    let default = match reader.takes("default") {
        true => Some(reader.counted()?.to_owned()),
        false => None,
    };
    let generated = match reader.takes("generated") {
        true => Some(reader.counted()?.to_owned()),
        false => None,
    };
    Ok(Column {
        name,
        data_type,
        domain,
        not_null,
        default,
        generated,
    })
}

fn deferral_word(deferral: Deferral) -> &'static str {
    match deferral {
        Deferral::No => "",
        Deferral::InitiallyImmediate => " deferrable",
        Deferral::InitiallyDeferred => " deferred",
    }
}

fn read_deferral(reader: &mut Reader<'_>) -> Deferral {
    match (reader.takes("deferrable"), reader.takes("deferred")) {
        (true, _) => Deferral::InitiallyImmediate,
        (_, true) => Deferral::InitiallyDeferred,
        _ => Deferral::No,
    }
}

fn write_index(f: &mut fmt::Formatter<'_>, index: &IndexDefinition) -> fmt::Result {
    let IndexDefinition {
        name,
        columns,
        unique,
        nulls_equal,
        deferral,
        constraint,
        partial,
        method,
        kind,
    } = index;
    write!(f, "index {} {}", Counted(name), Columns(columns))?;
    let words = [
        (*unique, "unique"),
        (*nulls_equal, "nulls-equal"),
        (*constraint, "constraint"),
        (*partial, "partial"),
    ];
    for (_, word) in words.iter().filter(|(is_so, _)| *is_so) {
        write!(f, " {word}")?;
    }
    f.write_str(deferral_word(*deferral))?;
    if *method != IndexMethod::default() {
        write!(f, " using {}", method.name())?;
    }
    match kind {
        IndexKind::Hash => write!(f, " hash"),
        IndexKind::SplitHash => write!(f, " split-hash"),
        IndexKind::Ordered { partition_columns } => write!(f, " ordered {partition_columns}"),
    }
}

fn read_unbuilt(reader: &mut Reader<'_>) -> Result<UnbuiltIndex> {
    reader.expect("index")?;
    let definition = read_index(reader)?;
    let mut classes = Vec::new();
    loop {
        if reader.takes("class") {
            classes.push(Some(reader.counted()?.to_owned()));
        } else if reader.takes("default") {
            classes.push(None);
        } else {
            break;
        }
    }
    match classes.len() == definition.key_columns().len() {
        true => Ok(UnbuiltIndex {
            definition,
            classes,
        }),
        false => Err(reader.damaged("an operator class for each column before it")),
    }
}

fn read_index(reader: &mut Reader<'_>) -> Result<IndexDefinition> {
    let (name, columns) = (reader.counted()?.to_owned(), reader.columns()?);
    let unique = reader.takes("unique");
    let nulls_equal = reader.takes("nulls-equal");
    let constraint = reader.takes("constraint");
    let partial = reader.takes("partial");
    let deferral = read_deferral(reader);
    let method = match reader.takes("using") {
        true => {
            let word = reader.word();
            let mut methods = IndexMethod::ALL.into_iter();
            let known = methods.find(|method| method.name() == word);
            known.ok_or_else(|| reader.damaged("a known access method before it"))?
        }
        false => IndexMethod::default(),
    };
    let kind = match reader.word() {
        "hash" => IndexKind::Hash,
        "split-hash" => IndexKind::SplitHash,
        "ordered" => IndexKind::Ordered {
            partition_columns: reader.number()?,
        },
        _ => return Err(reader.damaged("the kind of an index before it")),
    };
    Ok(IndexDefinition {
        name,
        columns,
        unique,
        nulls_equal,
        deferral,
        constraint,
        partial,
        method,
        kind,
    })
}
