//! The catalog: which tables, views, sequences and procedures there are. Immutable; a change makes
//! the next one.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::sync::{Arc, OnceLock};
use kiln_storage::error::Result;
use kiln_storage::qualified::{PUBLIC_SCHEMA, parts, schema_of};
use kiln_storage::schema::TableId;
use kiln_storage::sequence::{Sequence, SequenceId};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, EnumType, RowType};

use super::comments::Comments;
use super::current::CurrentCatalog;
use super::domains::Domain;
use super::numbers::ObjectNumbers;
use super::procedure::{Procedure, RowPrograms};
use super::records::RecordPrograms;
use super::search_path::SearchPath;
use super::statement::CatalogStatement;
use super::temporary::TemporarySchema;
use super::views::View;
use crate::errors;
use crate::roles::Roles;

/// Which tables, views, sequences and procedures there are at one time.
pub struct Catalog {
    pub(crate) version: u64,
    /// Besides `public`.
    pub(crate) schemas: BTreeSet<String>,
    /// Along which names without a schema are looked for.
    pub(crate) path: SearchPath,
    /// Of the session that sees it, if it has something of its own.
    pub(crate) temporary: Option<Arc<TemporarySchema>>,
    pub(crate) next_table_id: u32,
    pub(crate) tables: BTreeMap<String, Arc<Table>>,
    pub(crate) sequences: BTreeMap<String, Arc<Sequence>>,
    pub(crate) views: BTreeMap<String, Arc<View>>,
    pub(crate) enums: BTreeMap<String, Arc<EnumType>>,
    pub(crate) composites: BTreeMap<String, Arc<RowType>>,
    pub(crate) domains: BTreeMap<String, Arc<Domain>>,
    /// With their schemas.
    pub(crate) extensions: BTreeMap<String, String>,
    /// The versions of the catalog in which tables took the places of others.
    pub(crate) changed: BTreeMap<TableId, u64>,
    pub(crate) procedures: BTreeMap<String, Arc<Procedure>>,
    pub(crate) roles: Arc<Roles>,
    pub(crate) numbers: Arc<ObjectNumbers>,
    pub(crate) comments: Arc<Comments>,
    pub(crate) statement: Option<Arc<CatalogStatement>>,
    pub(crate) row_programs: Option<Arc<dyn RowPrograms>>,
    pub(crate) current: Arc<CurrentCatalog>,
    /// What a layer above has made of it; it goes with this catalog.
    pub(crate) derived: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Programs made on demand; they go with this catalog.
    pub(crate) record_programs: RecordPrograms,
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog {
            version: 0,
            schemas: BTreeSet::new(),
            path: SearchPath::default(),
            temporary: None,
            next_table_id: 1,
            tables: BTreeMap::new(),
            sequences: BTreeMap::new(),
            views: BTreeMap::new(),
            enums: BTreeMap::new(),
            composites: BTreeMap::new(),
            domains: BTreeMap::new(),
            extensions: BTreeMap::new(),
            changed: BTreeMap::new(),
            procedures: BTreeMap::new(),
            roles: Arc::default(),
            numbers: Arc::default(),
            comments: Arc::default(),
            statement: None,
            row_programs: None,
            current: Arc::default(),
            derived: OnceLock::new(),
            record_programs: RecordPrograms::default(),
        }
    }
}

impl Catalog {
    /// The same entries, to be changed.
    pub(crate) fn next(&self) -> Catalog {
        Catalog {
            version: self.version + 1,
            ..self.copied()
        }
    }

    /// The same entries.
    pub(crate) fn copied(&self) -> Catalog {
        Catalog {
            version: self.version,
            schemas: self.schemas.clone(),
            path: self.path.clone(),
            temporary: self.temporary.clone(),
            next_table_id: self.next_table_id,
            tables: self.tables.clone(),
            sequences: self.sequences.clone(),
            views: self.views.clone(),
            enums: self.enums.clone(),
            composites: self.composites.clone(),
            domains: self.domains.clone(),
            extensions: self.extensions.clone(),
            changed: self.changed.clone(),
            procedures: self.procedures.clone(),
            roles: self.roles.clone(),
            numbers: self.numbers.clone(),
            comments: self.comments.clone(),
            statement: None,
            row_programs: self.row_programs.clone(),
            current: self.current.clone(),
            derived: OnceLock::new(),
            record_programs: RecordPrograms::default(),
        }
    }

    /// Grows with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number that the next table gets.
    pub fn next_table_id(&self) -> TableId {
        TableId(self.next_table_id)
    }

    /// The statement that made this catalog of the one before; `None` when Rust code did.
    pub fn statement(&self) -> Option<&Arc<CatalogStatement>> {
        self.statement.as_ref()
    }

    /// The table called `name`.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The table called `name`.
    ///
    /// # Errors
    /// 42P01.
    pub fn require_table(&self, name: &str) -> Result<&Arc<Table>> {
        self.table(name)
            .ok_or_else(|| errors::undefined_table(name))
    }

    /// The table with this number.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.id() == id)
    }

    /// Whether a table took the place of another one after the catalog had this version.
    pub(crate) fn is_changed_since(&self, version: u64, id: TableId) -> bool {
        let changed = self.changed.get(&id);
        changed.is_some_and(|changed| *changed > version)
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Arc<Table>)> {
        self.tables
            .iter()
            .map(|(name, table)| (name.as_str(), table))
    }

    /// The sequence called `name`.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        self.sequences.get(name)
    }

    /// The sequence with this number.
    pub fn sequence_by_id(&self, id: SequenceId) -> Option<&Arc<Sequence>> {
        self.sequences.values().find(|sequence| sequence.id() == id)
    }

    /// All sequences, by name.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// The sequences that go with a table.
    pub fn owned_sequences<'a>(
        &'a self,
        table: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Sequence>> {
        self.sequences().filter(move |sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.table == table)
        })
    }

    /// The procedure called `name`.
    pub fn procedure(&self, name: &str) -> Option<&Arc<Procedure>> {
        self.procedures.get(name)
    }

    /// The procedure called `name`.
    ///
    /// # Errors
    /// 42883.
    pub fn require_procedure(&self, name: &str) -> Result<&Arc<Procedure>> {
        self.procedure(name)
            .ok_or_else(|| errors::undefined_procedure(name))
    }

    /// All procedures, by name.
    pub fn procedures(&self) -> impl Iterator<Item = &Arc<Procedure>> {
        self.procedures.values()
    }

    /// The roles, and what they may do.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// What `make` makes of it, once for each catalog. It must not hold the catalog.
    ///
    /// # Panics
    /// When something of another type was asked for before.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Catalog) -> T) -> Arc<T> {
        let derived = self.derived.get_or_init(|| Arc::new(make(self)));
        let derived = derived.clone().downcast();
        derived.expect("one type is made of catalogs")
    }

    /// Which catalog is in force, now and later.
    pub fn current(&self) -> &Arc<CurrentCatalog> {
        &self.current
    }

    /// The numbers of its objects.
    pub fn numbers(&self) -> &ObjectNumbers {
        &self.numbers
    }

    /// The names of the tables that reference `name`, itself included if it does.
    pub fn referencing<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.tables().filter_map(move |(other, table)| {
            let keys = &table.schema().foreign_keys;
            keys.iter().any(|key| key.table == name).then_some(other)
        })
    }

    /// The names of the schemas of users, `public` among them.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        let others = self.schemas.iter().map(String::as_str);
        others.chain([PUBLIC_SCHEMA])
    }

    /// Whether there is a schema of users with this name.
    pub fn has_schema(&self, name: &str) -> bool {
        name == PUBLIC_SCHEMA || self.schemas.contains(name)
    }

    /// Along which its names without a schema are looked for.
    pub fn path(&self) -> &SearchPath {
        &self.path
    }

    /// The same catalog, seen along another path.
    pub fn along(self: &Arc<Catalog>, path: &SearchPath) -> Arc<Catalog> {
        if self.path == *path {
            return self.clone();
        }
        let mut seen = self.copied();
        seen.path = path.clone();
        Arc::new(seen)
    }

    /// Whether a table, view, sequence or index is known by this qualified name.
    pub fn is_relation(&self, name: &str) -> bool {
        self.tables.contains_key(name)
            || self.views.contains_key(name)
            || self.sequences.contains_key(name)
            || self.index_owner(name).is_some()
    }

    /// The name of the table that has an index called `index`, which is in the schema of its table.
    pub fn index_owner(&self, index: &str) -> Option<&str> {
        let (schema, index) = parts(index);
        let mut tables = self.tables();
        tables.find_map(|(name, table)| {
            let is_beside = schema_of(name) == schema;
            let built = table.indexes().iter().map(|known| known.definition());
            let unbuilt = table.schema().unbuilt.iter();
            let mut all = built.chain(unbuilt.map(|known| &known.definition));
            (is_beside && all.any(|known| known.name == index)).then_some(name)
        })
    }

    /// The qualified names of the tables, views and sequences of a schema.
    pub fn objects_of_schema<'a>(&'a self, schema: &'a str) -> impl Iterator<Item = &'a str> {
        let views = self.views().filter(|view| !view.is_materialized());
        let views = views.map(|view| view.name.as_str());
        let others = self.tables.keys().chain(self.sequences.keys());
        let all = views.chain(others.map(String::as_str));
        all.filter(move |name| schema_of(name) == schema)
    }

    /// The view called `name` that has no rows of its own.
    pub fn view(&self, name: &str) -> Option<&Arc<View>> {
        self.views.get(name).filter(|view| !view.is_materialized())
    }

    /// What the materialized view called `name` is: the table of this name has its rows.
    pub fn materialized_view(&self, name: &str) -> Option<&Arc<View>> {
        self.views.get(name).filter(|view| view.is_materialized())
    }

    /// All views, materialized ones too, by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// The views whose queries use a column of a table.
    pub fn views_of_column<'a>(
        &'a self,
        table: &'a str,
        column: &'a str,
    ) -> impl Iterator<Item = &'a Arc<View>> {
        self.views().filter(move |view| {
            let mut reads = view.reads.iter();
            reads.any(|read| {
                read.relation == table && read.columns.iter().any(|known| known == column)
            })
        })
    }

    /// The enum called `name`.
    pub fn enumeration(&self, name: &str) -> Option<&Arc<EnumType>> {
        self.enums.get(name)
    }

    /// The composite type called `name`.
    pub fn composite(&self, name: &str) -> Option<&Arc<RowType>> {
        self.composites.get(name)
    }

    /// All composite types, by name.
    pub fn composites(&self) -> impl Iterator<Item = &Arc<RowType>> {
        self.composites.values()
    }

    /// The enum or composite type whose number, or that of whose array type, this is.
    pub fn type_numbered(&self, oid: u32) -> Option<DataType> {
        let enums = self.enums().map(|of| DataType::Enum(of.clone()));
        let composites = self.composites().map(|of| DataType::Row(of.clone()));
        enums.chain(composites).find_map(|data_type| {
            let (own, array) = match &data_type {
                DataType::Enum(of) => (of.oid(), of.array_oid()),
                DataType::Row(of) => (of.oid(), of.array_oid()),
                _ => return None,
            };
            match oid {
                _ if own == oid => Some(data_type),
                _ if array == oid => Some(DataType::array(data_type)),
                _ => None,
            }
        })
    }

    /// The domain called `name`.
    pub fn domain(&self, name: &str) -> Option<&Arc<Domain>> {
        self.domains.get(name)
    }

    /// All domains, by name.
    pub fn domains(&self) -> impl Iterator<Item = &Arc<Domain>> {
        self.domains.values()
    }

    /// All enums, by name.
    pub fn enums(&self) -> impl Iterator<Item = &Arc<EnumType>> {
        self.enums.values()
    }

    /// The comments on its objects.
    pub fn comments(&self) -> &Comments {
        &self.comments
    }

    /// The temporary schema of the session that sees it, if the session has something there.
    pub fn temporary_schema(&self) -> Option<&str> {
        self.temporary.as_ref().map(|schema| &*schema.name)
    }

    /// Whether this is the name of the session's temporary schema, or the qualified name of
    /// something in it.
    pub fn is_temporary(&self, name: &str) -> bool {
        let own = self.temporary_schema();
        own.is_some_and(|own| own == name || own == schema_of(name))
    }

    /// The extensions that users have created, each with its schema, by name.
    pub fn extensions(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.extensions.iter();
        all.map(|(name, schema)| (name.as_str(), schema.as_str()))
    }

    /// The schema of an extension that a user has created.
    pub fn extension_schema(&self, name: &str) -> Option<&str> {
        self.extensions.get(name).map(String::as_str)
    }
}
