//! A catalog's objects by name and by number.

mod comments;
mod domain;
mod routine;

use std::collections::HashMap;

use kiln_engine::{Catalog, NumberedObject, Object, ObjectNumbers, Role, Roles, SearchPath, View};
use kiln_platform::sync::{Arc, OnceLock};
use kiln_storage::qualified::{PUBLIC_SCHEMA, beside, name_in_schema, parts, schema_of};
use kiln_storage::schema::{
    Check, Column, Deferral, ForeignKey, IndexDefinition, TableSchema, Trigger,
};
use kiln_storage::sequence::{Identity, Sequence};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, EnumType, RowType};

use super::auxiliary::is_auxiliary;
use super::view::{sequences_of_default, updatable_columns};
use super::{FIRST_ROLE_OID, Relation, builtin};

use comments::entries;
pub(crate) use comments::{CommentClass, CommentEntry};
pub(crate) use domain::DomainEntry;
pub(super) use routine::RECORD;
pub(crate) use routine::{RoutineArgument, RoutineFacts, RoutineResult};

/// What the relations and functions need of a catalog. It is made once for each, when it is first
/// asked for.
pub(crate) struct Snapshot {
    /// By name.
    pub tables: Vec<TableEntry>,
    /// By name.
    pub sequences: Vec<SequenceEntry>,
    /// By name.
    pub views: Vec<ViewEntry>,
    /// By name.
    pub enums: Vec<EnumEntry>,
    pub composites: Vec<CompositeEntry>,
    /// By name.
    pub domains: Vec<DomainEntry>,
    pub routines: Vec<RoutineEntry>,
    pub roles: Vec<(u32, Arc<Role>)>,
    /// The schemas besides `public`, and their numbers.
    pub schemas: Vec<(u32, String)>,
    /// The extensions that users have created.
    pub extensions: Vec<ExtensionEntry>,
    /// Along which names without a schema are looked for.
    pub path: SearchPath,
    /// The temporary schema of the session, if it has one, and its number.
    pub temporary: Option<(u32, String)>,
    /// What is said of objects.
    pub comments: Vec<CommentEntry>,
    /// Who may do what.
    pub privileges: Roles,
    objects: HashMap<u32, Found>,
}

/// A table, and what belongs to it.
pub(crate) struct TableEntry {
    pub oid: u32,
    pub row_type: u32,
    pub row_array_type: u32,
    pub table: Arc<Table>,
    /// The materialized view whose rows it has.
    pub view: Option<Arc<View>>,
    pub indexes: Vec<IndexEntry>,
    pub constraints: Vec<ConstraintEntry>,
    /// The numbers of its triggers, in their order.
    pub triggers: Vec<u32>,
    /// The numbers of default values, and of their columns, from 0.
    pub defaults: Vec<(u32, usize)>,
    /// The names of the sequences from which default values draw, each with the column's position.
    pub default_sequences: Vec<(usize, String)>,
}

/// A sequence.
pub(crate) struct SequenceEntry {
    pub oid: u32,
    pub sequence: Arc<Sequence>,
}

/// A view.
pub(crate) struct ViewEntry {
    pub oid: u32,
    pub view: Arc<View>,
    /// For each column, whether the rows of the view can be changed by way of it; none where they
    /// cannot be changed.
    pub updatable: Vec<bool>,
}

/// An enum.
pub(crate) struct EnumEntry {
    pub of: Arc<EnumType>,
    /// The numbers of its labels, in their order.
    pub labels: Vec<u32>,
}

/// A composite type.
pub(crate) struct CompositeEntry {
    pub of: Arc<RowType>,
    /// The number by which `pg_class` has it.
    pub relation: u32,
}

/// An index that a user declared.
pub(crate) struct IndexEntry {
    pub oid: u32,
    pub definition: IndexDefinition,
    /// The operator classes of the columns of its key that are not the default ones; none where all
    /// are.
    pub classes: Vec<Option<String>>,
    pub is_primary: bool,
    /// The constraint that it is for.
    pub constraint: Option<u32>,
}

/// A constraint of a table.
pub(crate) struct ConstraintEntry {
    pub oid: u32,
    pub name: String,
    pub kind: ConstraintKind,
    /// Whether all rows are known to satisfy it.
    pub is_valid: bool,
}

/// What a constraint says.
pub(crate) enum ConstraintKind {
    /// CHECK of an expression.
    Check(String),
    /// REFERENCES.
    ForeignKey(ForeignKey),
    /// PRIMARY KEY, by the position of its index among the entries.
    Primary(usize),
    /// UNIQUE, likewise.
    Unique(usize),
}

/// The number of the extension that PL/pgSQL is.
pub(super) const PLPGSQL_OID: u32 = 13_559;

/// An extension that a user has created.
pub(crate) struct ExtensionEntry {
    pub oid: u32,
    pub name: String,
    pub schema: String,
}

/// A function or procedure.
pub(crate) struct RoutineEntry {
    pub oid: u32,
    pub name: String,
    /// What its header says; `None` for one that Rust code made.
    pub facts: Option<RoutineFacts>,
}

/// Where an object is found.
#[derive(Clone, Copy)]
enum Found {
    Table(usize),
    Index(usize, usize),
    Constraint(usize, usize),
    Default,
    Trigger(usize, usize),
    RowType(usize),
    RowArrayType(usize),
    Routine(usize),
    Role(usize),
    Sequence(usize),
    View(usize),
    Enum(usize),
    EnumArray(usize),
    Composite(usize),
    CompositeArray(usize),
    CompositeRelation(usize),
    Domain(usize),
    DomainArray(usize),
    DomainCheck(usize, usize),
}

/// An object with a number.
pub(crate) enum ObjectOf<'a> {
    Table(&'a TableEntry),
    Index(&'a TableEntry, &'a IndexEntry),
    Constraint(&'a TableEntry, &'a ConstraintEntry),
    Default,
    Trigger(&'a TableEntry, &'a Trigger),
    RowType(&'a TableEntry),
    RowArrayType(&'a TableEntry),
    Routine(&'a RoutineEntry),
    Role(&'a Role),
    Sequence(&'a SequenceEntry),
    View(&'a ViewEntry),
    Enum(&'a EnumType),
    EnumArray(&'a EnumType),
    Composite(&'a RowType),
    CompositeArray(&'a RowType),
    CompositeRelation(&'a RowType),
    Domain(&'a DomainEntry),
    DomainArray(&'a DomainEntry),
    DomainCheck(&'a DomainEntry, &'a Check),
}

impl Snapshot {
    /// That of a catalog.
    pub fn of(catalog: &Catalog) -> Arc<Snapshot> {
        catalog.derived(Snapshot::new)
    }

    fn new(catalog: &Catalog) -> Snapshot {
        let numbers = catalog.numbers();
        let tables = catalog.tables();
        let tables = tables.map(|(_, table)| TableEntry::new(table, catalog));
        let routines = catalog.procedures().map(|procedure| RoutineEntry {
            oid: number(
                numbers,
                NumberedObject::Routine(procedure.name().to_owned()),
            ),
            name: procedure.name().to_owned(),
            facts: RoutineFacts::of(catalog, procedure),
        });
        let sequences = catalog.sequences().map(|sequence| SequenceEntry {
            oid: number(
                numbers,
                NumberedObject::Sequence(sequence.name().to_owned()),
            ),
            sequence: sequence.clone(),
        });
        let views = catalog.views().filter(|view| !view.is_materialized());
        let views = views.map(|view| ViewEntry {
            oid: number(numbers, NumberedObject::View(view.name.clone())),
            view: view.clone(),
            updatable: updatable_columns(catalog, view),
        });
        let enums = catalog.enums().map(|of| {
            let label =
                |text: &str| NumberedObject::EnumLabel(of.name().to_owned(), text.to_owned());
            let labels = of.labels().iter();
            EnumEntry {
                labels: labels.map(|it| number(numbers, label(&it.text))).collect(),
                of: of.clone(),
            }
        });
        let composites = catalog.composites().map(|of| CompositeEntry {
            of: of.clone(),
            relation: number(
                numbers,
                NumberedObject::CompositeRelation(of.name().to_owned()),
            ),
        });
        let domains = catalog.domains();
        let domains = domains.map(|domain| DomainEntry::new(domain, catalog));
        let roles = catalog.roles().iter().map(|role| {
            let oid = numbers.get(&NumberedObject::Role(role.name.clone()));
            (oid.unwrap_or(FIRST_ROLE_OID), role.clone())
        });
        let schemas = catalog.schemas().filter(|name| *name != PUBLIC_SCHEMA);
        let schemas = schemas.map(|name| {
            let object = NumberedObject::Schema(name.to_owned());
            (number(numbers, object), name.to_owned())
        });
        let extensions = catalog.extensions().map(|(name, schema)| {
            let object = NumberedObject::Extension(name.to_owned());
            ExtensionEntry {
                oid: number(numbers, object),
                name: name.to_owned(),
                schema: schema.to_owned(),
            }
        });
        let mut snapshot = Snapshot {
            tables: tables.collect(),
            sequences: sequences.collect(),
            views: views.collect(),
            routines: routines.collect(),
            enums: enums.collect(),
            composites: composites.collect(),
            domains: domains.collect(),
            roles: roles.collect(),
            schemas: schemas.collect(),
            extensions: extensions.collect(),
            path: catalog.path().clone(),
            temporary: catalog.temporary_schema().map(|name| {
                let object = NumberedObject::Schema(name.to_owned());
                (number(numbers, object), name.to_owned())
            }),
            privileges: catalog.roles().clone(),
            comments: Vec::new(),
            objects: HashMap::new(),
        };
        snapshot.index();
        snapshot.comments = entries(catalog, &snapshot);
        snapshot
    }

    fn index(&mut self) {
        let objects = &mut self.objects;
        for (at, table) in self.tables.iter().enumerate() {
            objects.insert(table.oid, Found::Table(at));
            objects.insert(table.row_type, Found::RowType(at));
            objects.insert(table.row_array_type, Found::RowArrayType(at));
            for (inner, index) in table.indexes.iter().enumerate() {
                objects.insert(index.oid, Found::Index(at, inner));
            }
            for (inner, constraint) in table.constraints.iter().enumerate() {
                objects.insert(constraint.oid, Found::Constraint(at, inner));
            }
            for (inner, oid) in table.triggers.iter().enumerate() {
                objects.insert(*oid, Found::Trigger(at, inner));
            }
            for (oid, _) in &table.defaults {
                objects.insert(*oid, Found::Default);
            }
        }
        for (at, routine) in self.routines.iter().enumerate() {
            objects.insert(routine.oid, Found::Routine(at));
        }
        for (at, sequence) in self.sequences.iter().enumerate() {
            objects.insert(sequence.oid, Found::Sequence(at));
        }
        for (at, view) in self.views.iter().enumerate() {
            objects.insert(view.oid, Found::View(at));
        }
        for (at, entry) in self.enums.iter().enumerate() {
            objects.insert(entry.of.oid(), Found::Enum(at));
            objects.insert(entry.of.array_oid(), Found::EnumArray(at));
        }
        for (at, entry) in self.composites.iter().enumerate() {
            objects.insert(entry.of.oid(), Found::Composite(at));
            objects.insert(entry.of.array_oid(), Found::CompositeArray(at));
            objects.insert(entry.relation, Found::CompositeRelation(at));
        }
        for (at, entry) in self.domains.iter().enumerate() {
            objects.insert(entry.oid, Found::Domain(at));
            objects.insert(entry.array_oid, Found::DomainArray(at));
            for (inner, oid) in entry.checks.iter().enumerate() {
                objects.insert(*oid, Found::DomainCheck(at, inner));
            }
        }
        for (at, (oid, _)) in self.roles.iter().enumerate() {
            objects.insert(*oid, Found::Role(at));
        }
    }

    /// The user's object with this number.
    pub fn object(&self, oid: u32) -> Option<ObjectOf<'_>> {
        Some(match *self.objects.get(&oid)? {
            Found::Table(at) => ObjectOf::Table(&self.tables[at]),
            Found::Index(at, inner) => {
                ObjectOf::Index(&self.tables[at], &self.tables[at].indexes[inner])
            }
            Found::Constraint(at, inner) => {
                ObjectOf::Constraint(&self.tables[at], &self.tables[at].constraints[inner])
            }
            Found::Default => ObjectOf::Default,
            Found::Trigger(at, inner) => {
                let table = &self.tables[at];
                ObjectOf::Trigger(table, table.schema().triggers.get(inner)?)
            }
            Found::RowType(at) => ObjectOf::RowType(&self.tables[at]),
            Found::RowArrayType(at) => ObjectOf::RowArrayType(&self.tables[at]),
            Found::Routine(at) => ObjectOf::Routine(&self.routines[at]),
            Found::Role(at) => ObjectOf::Role(&self.roles[at].1),
            Found::Sequence(at) => ObjectOf::Sequence(&self.sequences[at]),
            Found::View(at) => ObjectOf::View(&self.views[at]),
            Found::Enum(at) => ObjectOf::Enum(&self.enums[at].of),
            Found::EnumArray(at) => ObjectOf::EnumArray(&self.enums[at].of),
            Found::Composite(at) => ObjectOf::Composite(&self.composites[at].of),
            Found::CompositeArray(at) => ObjectOf::CompositeArray(&self.composites[at].of),
            Found::CompositeRelation(at) => ObjectOf::CompositeRelation(&self.composites[at].of),
            Found::Domain(at) => ObjectOf::Domain(&self.domains[at]),
            Found::DomainArray(at) => ObjectOf::DomainArray(&self.domains[at]),
            Found::DomainCheck(at, inner) => {
                let entry = &self.domains[at];
                ObjectOf::DomainCheck(entry, entry.domain.checks.get(inner)?)
            }
        })
    }

    /// The table with this qualified name.
    pub fn table(&self, name: &str) -> Option<&TableEntry> {
        let at = self
            .tables
            .binary_search_by(|table| table.qualified().cmp(name));
        at.ok().map(|at| &self.tables[at])
    }

    /// The sequence with this qualified name.
    pub fn sequence(&self, name: &str) -> Option<&SequenceEntry> {
        let at = self
            .sequences
            .binary_search_by(|it| it.sequence.name().cmp(name));
        at.ok().map(|at| &self.sequences[at])
    }

    /// The enum with this name.
    pub fn enumeration(&self, name: &str) -> Option<&EnumType> {
        let at = self.enums.binary_search_by(|it| it.of.name().cmp(name));
        at.ok().map(|at| &*self.enums[at].of)
    }

    /// The composite type with this name.
    pub fn composite(&self, name: &str) -> Option<&CompositeEntry> {
        let at = (self.composites).binary_search_by(|it| it.of.name().cmp(name));
        at.ok().map(|at| &self.composites[at])
    }

    /// The domain with this name.
    pub fn domain(&self, name: &str) -> Option<&DomainEntry> {
        let at = (self.domains).binary_search_by(|it| it.domain.name.as_str().cmp(name));
        at.ok().map(|at| &self.domains[at])
    }

    /// The number of the domain of a column, if it is of one.
    pub fn domain_oid(&self, column: &Column) -> Option<u32> {
        self.domain(column.domain.as_ref()?).map(|entry| entry.oid)
    }

    /// The sequence that goes with a column of a table.
    pub fn owned_sequence(&self, table: &str, column: &str) -> Option<&SequenceEntry> {
        self.sequences.iter().find(|entry| {
            let owner = entry.sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.table == table && owner.column == column)
        })
    }

    /// The sequence of an identity column.
    pub fn identity(&self, table: &str, column: &str) -> Option<(&SequenceEntry, Identity)> {
        self.sequences.iter().find_map(|entry| {
            let owner = entry.sequence.definition().owner.as_ref()?;
            let is_its = owner.table == table && owner.column == column;
            Some((entry, owner.identity.filter(|_| is_its)?))
        })
    }

    /// The number of the table, index, sequence or view with this qualified name.
    pub fn relation_oid(&self, name: &str) -> Option<u32> {
        let table = self.table(name).map(|table| table.oid);
        let sequence = || self.sequence(name).map(|sequence| sequence.oid);
        let view = || {
            let at = self
                .views
                .binary_search_by(|it| it.view.name.as_str().cmp(name));
            at.ok().map(|at| self.views[at].oid)
        };
        // They are in `public`, whose names stand alone.
        let composite = || self.composite(name).map(|entry| entry.relation);
        let known = table.or_else(sequence).or_else(view).or_else(composite);
        known.or_else(|| {
            let (schema, name) = parts(name);
            let tables = self
                .tables
                .iter()
                .filter(|table| table.schema_name() == schema);
            let mut indexes = tables.flat_map(|table| &table.indexes);
            indexes
                .find(|index| index.definition.name == name)
                .map(|index| index.oid)
        })
    }

    /// The role to which an object belongs.
    pub fn owner(&self, object: &Object) -> &str {
        self.privileges.owner(object)
    }

    /// The number of that role.
    pub fn owner_oid(&self, object: &Object) -> u32 {
        let owner = self.role_oid(self.owner(object));
        owner.unwrap_or(FIRST_ROLE_OID)
    }

    /// The role with this name.
    pub fn role_oid(&self, name: &str) -> Option<u32> {
        let mut roles = self.roles.iter();
        roles
            .find(|(_, role)| role.name == name)
            .map(|(oid, _)| *oid)
    }

    /// The relation of the system with this number.
    pub fn system_relation(oid: u32) -> Option<&'static Relation> {
        static BY_OID: OnceLock<HashMap<u32, &'static Relation>> = OnceLock::new();
        let by_oid = BY_OID.get_or_init(|| {
            let all = Relation::all().iter();
            all.map(|relation| (relation.oid, relation)).collect()
        });
        by_oid.get(&oid).copied()
    }
}

impl TableEntry {
    fn new(table: &Arc<Table>, catalog: &Catalog) -> TableEntry {
        let (schema, numbers) = (table.schema(), catalog.numbers());
        let name = || schema.name.clone();
        let indexes = indexes(table, numbers);
        let mut constraints = Vec::new();
        let mut add = |constraint: &str, kind: ConstraintKind, is_valid: bool| {
            let object = NumberedObject::Constraint(name(), constraint.to_owned());
            constraints.push(ConstraintEntry {
                oid: number(numbers, object),
                name: constraint.to_owned(),
                kind,
                is_valid,
            });
        };
        for check in &schema.checks {
            let kind = ConstraintKind::Check(check.expression.clone());
            add(&check.name, kind, check.is_valid);
        }
        for key in &schema.foreign_keys {
            let kind = ConstraintKind::ForeignKey(key.clone());
            add(&key.name, kind, key.is_valid);
        }
        for (at, index) in indexes.iter().enumerate() {
            match (index.constraint, index.is_primary) {
                (Some(_), true) => add(&index.definition.name, ConstraintKind::Primary(at), true),
                (Some(_), false) => add(&index.definition.name, ConstraintKind::Unique(at), true),
                (None, _) => {}
            }
        }
        let columns = schema.shown().iter().enumerate();
        // NULL as a default value is none.
        let is_identity = |column: &Column| {
            catalog.owned_sequences(&schema.name).any(|sequence| {
                let owner = sequence.definition().owner.as_ref();
                owner.is_some_and(|it| it.column == column.name && it.identity.is_some())
            })
        };
        // That of an identity column is not one for clients.
        let is_shown = |column: &Column| has_default(column) || column.generated.is_some();
        let defaults = columns.filter(|(_, column)| is_shown(column) && !is_identity(column));
        let defaults = defaults.map(|(at, column)| {
            let object = NumberedObject::Default(name(), column.name.clone());
            (number(numbers, object), at)
        });
        let drawing = schema.shown().iter().enumerate();
        let default_sequences = drawing.flat_map(|(at, column)| {
            let names = sequences_of_default(catalog, column).into_iter();
            names.map(move |name| (at, name))
        });
        let triggers = schema.triggers.iter().map(|trigger| {
            let object = NumberedObject::Trigger(name(), trigger.name.clone());
            number(numbers, object)
        });
        TableEntry {
            default_sequences: default_sequences.collect(),
            oid: number(numbers, NumberedObject::Table(name())),
            row_type: number(numbers, NumberedObject::RowType(name())),
            row_array_type: number(numbers, NumberedObject::RowArrayType(name())),
            defaults: defaults.collect(),
            table: table.clone(),
            view: catalog.materialized_view(&schema.name).cloned(),
            triggers: triggers.collect(),
            indexes,
            constraints,
        }
    }

    /// What was declared.
    pub fn schema(&self) -> &TableSchema {
        self.table.schema()
    }

    /// The name by which the catalog knows it.
    pub fn qualified(&self) -> &str {
        &self.schema().name
    }

    /// Its name within its schema.
    pub fn name(&self) -> &str {
        name_in_schema(self.qualified())
    }

    /// The name of its schema.
    pub fn schema_name(&self) -> &str {
        schema_of(self.qualified())
    }

    /// When a constraint of the table is checked.
    pub fn deferral_of(&self, constraint: &ConstraintEntry) -> Deferral {
        match &constraint.kind {
            ConstraintKind::Check(_) => Deferral::No,
            ConstraintKind::Primary(at) | ConstraintKind::Unique(at) => {
                self.indexes[*at].definition.deferral
            }
            ConstraintKind::ForeignKey(key) => key.deferral,
        }
    }

    /// The unique index over these columns, in any order.
    pub fn index_over(&self, columns: &[kiln_storage::schema::ColumnId]) -> Option<&IndexEntry> {
        self.indexes.iter().find(|index| {
            let own = &index.definition.columns;
            index.definition.unique
                && own.len() == columns.len()
                && own.iter().all(|column| columns.contains(column))
        })
    }
}

/// Whether a column has a default value other than NULL.
pub(super) fn has_default(column: &Column) -> bool {
    let default = column.default.as_deref();
    default.is_some_and(|default| !default.trim().eq_ignore_ascii_case("null"))
}

/// The indexes that users declared.
fn indexes(table: &Table, numbers: &ObjectNumbers) -> Vec<IndexEntry> {
    let schema = table.schema();
    let all = table.indexes().iter().enumerate();
    let declared = all.filter(|(_, index)| {
        let definition = index.definition();
        !definition.columns.is_empty() && !is_auxiliary(table, definition)
    });
    let entries = declared.map(|(at, index)| {
        let definition = index.definition().clone();
        let name = &definition.name;
        let is_primary = match schema.primary_key.is_empty() {
            true => schema.primary_key_name.as_ref() == Some(name),
            false => at == 0,
        };
        let object = NumberedObject::Constraint(schema.name.clone(), name.clone());
        IndexEntry {
            oid: number(numbers, NumberedObject::Index(beside(&schema.name, name))),
            is_primary,
            constraint: definition.constraint.then(|| number(numbers, object)),
            definition,
            classes: Vec::new(),
        }
    });
    let unbuilt = schema.unbuilt.iter().map(|index| IndexEntry {
        oid: number(
            numbers,
            NumberedObject::Index(beside(&schema.name, &index.definition.name)),
        ),
        is_primary: false,
        constraint: None,
        definition: index.definition.clone(),
        classes: index.classes.clone(),
    });
    entries.chain(unbuilt).collect()
}

/// The number of an object; 0 in a catalog that a change has not completed.
fn number(numbers: &ObjectNumbers, object: NumberedObject) -> u32 {
    numbers.get(&object).unwrap_or_default()
}

/// The number of a type of ours.
pub(super) fn type_oid(data_type: &DataType) -> u32 {
    builtin::oid_of(data_type)
}
