//! The engine's catalog as the compiler sees it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kiln_engine::{
    Access, Catalog, CurrentCatalog, Domain, Lookups, NumberedObject, Object, Procedure,
    SearchPath, Source,
};
use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::Column;
use kiln_storage::sequence::Sequence;
use kiln_storage::table::Table;
use kiln_storage::types::{EnumType, RowField, RowType};

use sqlparser::ast::ObjectName;

use crate::compile::plpgsql::Routine;
use crate::compile::{CatalogView, Updatability, ddl, kept_name, updatability};
use crate::parse::{self, FunctionDefinition, SourceStatement, function_header};

/// The tables and routines of a catalog.
pub(crate) struct View<'a> {
    catalog: &'a Catalog,
    /// Along which names without a schema are looked for.
    path: RefCell<SearchPath>,
    /// The view whose query is bound.
    bound: RefCell<Option<Arc<kiln_engine::View>>>,
    /// Definitions read so far: the compiler knows the nodes of one by their addresses.
    definitions: RefCell<BTreeMap<String, Arc<FunctionDefinition>>>,
    /// What was looked up.
    lookups: RefCell<Lookups>,
}

impl<'a> View<'a> {
    /// A view of `catalog`, along its path.
    pub fn of(catalog: &'a Catalog) -> View<'a> {
        View::along(catalog, catalog.path())
    }

    /// A view of `catalog`, along another path.
    pub fn along(catalog: &'a Catalog, path: &SearchPath) -> View<'a> {
        View {
            catalog,
            path: RefCell::new(path.clone()),
            bound: RefCell::default(),
            definitions: RefCell::default(),
            lookups: RefCell::default(),
        }
    }
}

impl View<'_> {
    /// The names of the sequences that were looked for.
    pub fn sequences(&self) -> Vec<String> {
        let lookups = self.lookups.borrow();
        lookups.sequences().map(str::to_owned).collect()
    }

    /// The names of the routines that were looked for and found.
    pub fn procedures(&self) -> Vec<String> {
        let lookups = self.lookups.borrow();
        lookups.procedures().map(str::to_owned).collect()
    }

    /// The names of the types of users that were looked for and found.
    pub fn types(&self) -> Vec<String> {
        let lookups = self.lookups.borrow();
        lookups.types().map(str::to_owned).collect()
    }

    /// What was looked up.
    pub fn into_lookups(self) -> Lookups {
        self.lookups.into_inner()
    }

    /// What the caller of what was compiled must be allowed to do.
    pub fn into_accesses(self) -> Arc<[Access]> {
        self.lookups.into_inner().accesses().cloned().collect()
    }
}

impl CatalogView for View<'_> {
    fn path(&self) -> SearchPath {
        self.path.borrow().clone()
    }

    fn see_along(&self, path: SearchPath) -> SearchPath {
        self.path.replace(path)
    }

    fn see_as(&self, view: Option<Arc<kiln_engine::View>>) -> Option<Arc<kiln_engine::View>> {
        self.bound.replace(view)
    }

    fn seen_as(&self) -> Option<Arc<kiln_engine::View>> {
        self.bound.borrow().clone()
    }

    fn temporary_schema(&self) -> Option<&str> {
        self.catalog.temporary_schema()
    }

    fn has_schema(&self, name: &str) -> bool {
        self.catalog.has_schema(name)
    }

    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let found = self.catalog.table(name);
        self.lookups.borrow_mut().note_table(name, found);
        found.cloned()
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        let tables = self.catalog.tables();
        tables.map(|(_, table)| table.clone()).collect()
    }

    fn referencing(&self, name: &str) -> Vec<Arc<Table>> {
        let names = self.catalog.referencing(name);
        let tables = names.filter_map(|name| self.catalog.table(name).cloned());
        let tables: Vec<Arc<Table>> = tables.collect();
        self.lookups.borrow_mut().note_referencing(name, &tables);
        tables
    }

    fn view(&self, name: &str) -> Option<Arc<kiln_engine::View>> {
        let found = self.catalog.view(name);
        self.lookups.borrow_mut().note_view(name, found);
        found.cloned()
    }

    fn materialized_view(&self, name: &str) -> Option<Arc<kiln_engine::View>> {
        let found = self.catalog.materialized_view(name);
        // What is no such view may become one only as another table.
        if found.is_some() {
            self.lookups.borrow_mut().note_view(name, found);
        }
        found.cloned()
    }

    fn views_over(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        let mut at = 0;
        while at < names.len() {
            // Who reads a materialized view reads nothing of what that was made of.
            let views = self.catalog.views().filter(|view| !view.is_materialized());
            let views = views.filter(|view| view.reads(&names[at]));
            let views: Vec<String> = views.map(|view| view.name.clone()).collect();
            names.extend(
                views
                    .into_iter()
                    .filter(|view| !names.contains(view))
                    .collect::<Vec<_>>(),
            );
            at += 1;
        }
        names.remove(0);
        names
    }

    fn routine(&self, name: &str) -> Option<Arc<FunctionDefinition>> {
        let found = self.catalog.procedure(name);
        self.lookups.borrow_mut().note_procedure(name, found);
        let mut definitions = self.definitions.borrow_mut();
        if let Some(known) = definitions.get(name) {
            return Some(known.clone());
        }
        let definition = definition(found?.source()?)?;
        definitions.insert(name.to_owned(), definition.clone());
        Some(definition)
    }

    fn sequence(&self, name: &str) -> Option<Arc<Sequence>> {
        let found = self.catalog.sequence(name);
        self.lookups.borrow_mut().note_sequence(name, found);
        found.cloned()
    }

    fn enumeration(&self, name: &str) -> Option<Arc<EnumType>> {
        let found = self.catalog.enumeration(name);
        self.lookups.borrow_mut().note_enum(name, found);
        found.cloned()
    }

    fn composite(&self, name: &str) -> Option<Arc<RowType>> {
        let found = self.catalog.composite(name);
        self.lookups.borrow_mut().note_composite(name, found);
        found.cloned()
    }

    fn row_type(&self, name: &str) -> Option<Arc<RowType>> {
        let table = self.table(name)?;
        row_type_of(self.catalog, &table)
    }

    fn domain(&self, name: &str) -> Option<Arc<Domain>> {
        let found = self.catalog.domain(name);
        self.lookups.borrow_mut().note_domain(name, found);
        found.cloned()
    }

    fn identity_sequence(&self, table: &str, column: &str) -> Option<Arc<Sequence>> {
        let mut owned = self.catalog.owned_sequences(table);
        let found = owned.find(|sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.column == column && owner.identity.is_some())
        })?;
        self.sequence(found.name())
    }

    fn table_oid(&self, name: &str) -> u32 {
        let object = NumberedObject::Table(name.to_owned());
        self.catalog.numbers().get(&object).unwrap_or_default()
    }

    fn domain_oid(&self, name: &str) -> u32 {
        let object = NumberedObject::Domain(name.to_owned());
        self.catalog.numbers().get(&object).unwrap_or_default()
    }

    fn current(&self) -> Option<Arc<CurrentCatalog>> {
        Some(self.catalog.current().along(&self.path.borrow()))
    }

    fn note_access(&self, access: Access) {
        // What is a session's own it may use.
        if self.catalog.is_temporary(&access.object.name) {
            return;
        }
        // And its own views are the session's, which needs the privileges for what they read.
        let of_others = |of: &Object| !self.catalog.is_temporary(&of.name);
        let on_behalf_of = access.on_behalf_of.filter(of_others);
        self.lookups.borrow_mut().note_access(Access {
            on_behalf_of,
            ..access
        });
    }

    fn has_function(&self, name: &str) -> bool {
        let found = self.catalog.procedure(name);
        self.lookups.borrow_mut().note_procedure(name, found);
        found.is_some()
    }
}

/// The type of a table's rows; `None` for a table that has no numbers yet.
pub(crate) fn row_type_of(catalog: &Catalog, table: &Table) -> Option<Arc<RowType>> {
    let schema = table.schema();
    let name = &schema.name;
    let number = |object: &NumberedObject| catalog.numbers().get(object);
    let own = number(&NumberedObject::RowType(name.clone()))?;
    let array = number(&NumberedObject::RowArrayType(name.clone()))?;
    let fields = schema.shown().iter().map(|column| RowField {
        name: column.name.clone(),
        data_type: column.data_type.clone(),
    });
    let (plain, printed) = (name_in_schema(name), kept_name(name));
    let made = RowType::new((own, array), (plain, &printed), fields.collect());
    made.ok().map(Arc::new)
}

/// The statement that created a routine.
fn statement(source: &Source) -> SourceStatement<'_> {
    SourceStatement {
        text: &source.text,
        line: source.line,
        column: source.column,
    }
}

/// What the statement that created a routine says.
pub(crate) fn definition(source: &Source) -> Option<Arc<FunctionDefinition>> {
    match parse::statement(&statement(source)) {
        Ok(parse::Statement::CreateFunction(mut definition)) => {
            definition.header.path = source.path.clone();
            Some(Arc::from(definition))
        }
        _ => None,
    }
}

/// The header of a stored function or procedure; `None` for one that Rust code made.
pub(crate) fn routine_of(catalog: &Catalog, procedure: &Procedure) -> Option<Routine> {
    let source = procedure.source()?;
    let mut header = function_header(&statement(source)).ok()?;
    header.path = source.path.clone();
    Routine::of(&View::of(catalog), &header).ok()
}

/// The qualified name of a relation that a statement names, as the catalog is seen.
///
/// # Errors
/// Those of [`relation_name`](crate::compile::relation_name).
pub(crate) fn relation_of(catalog: &Catalog, name: &ObjectName) -> Result<String> {
    crate::compile::relation_name(&View::of(catalog), name)
}

/// The sequences that a column's default value names.
pub(crate) fn sequences_of_default(catalog: &Catalog, column: &Column) -> BTreeSet<String> {
    sequences_of(catalog, column.default.as_ref())
}

/// The sequences that a default value names.
pub(crate) fn sequences_of(catalog: &Catalog, default: Option<&String>) -> BTreeSet<String> {
    // All functions of sequences are called so.
    let draws = |default: &&String| default.to_ascii_lowercase().contains("val");
    let Some(default) = default.filter(draws) else {
        return BTreeSet::new();
    };
    let view = View::along(catalog, &SearchPath::default());
    match ddl::bind_default_text(default, &view) {
        Ok(()) => view.sequences().into_iter().collect(),
        Err(_) => BTreeSet::new(),
    }
}

/// For each column of a view, whether its rows can be changed by way of it; none where they cannot
/// be changed.
pub(crate) fn updatable_columns(catalog: &Catalog, view: &kiln_engine::View) -> Vec<bool> {
    match updatability(&View::of(catalog), view) {
        Ok(Updatability::Columns(columns)) if columns.contains(&true) => columns,
        _ => Vec::new(),
    }
}
