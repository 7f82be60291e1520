//! Who may run a statement that defines, and to whom objects belong.
//!
//! As in PostgreSQL, what a role makes belongs to it, and it may change and remove what belongs to
//! it or to a role that it is a member of. It makes relations and types in schemas where it has the
//! privilege CREATE. Roles, extensions, schemas and default privileges are for superusers.

use kiln_engine::{Access, Catalog, Object, ObjectKind, Privilege, Role};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, name_in_schema, schema_of};
use sqlparser::ast::{self, CascadeOption, ObjectName};

use super::role_settings;
use super::roles::objects_of;
use super::types::type_name;
use crate::catalog::{View, relation_of};
use crate::compile::{name_of, new_relation_name, object_name};
use crate::parse::{
    AlteredObject, CommentedObject, CreateTable, DomainChange, DropKind, NewName, ObjectChange,
    RoleName, RoutineSignature, SchemaChange, Statement as Tree, TableAction, TypeChange,
};

/// Whether a role may run a statement that defines, or changes roles.
///
/// # Errors
/// 42501.
pub(super) fn check_definition(
    catalog: &Catalog,
    role: &Role,
    tree: &Tree,
    command: &str,
) -> Result<()> {
    if role.is_superuser {
        return Ok(());
    }
    Rights { catalog, role }.check(tree, command)
}

/// What a role that is no superuser may change in a catalog.
struct Rights<'a> {
    catalog: &'a Catalog,
    role: &'a Role,
}

impl Rights<'_> {
    fn check(&self, tree: &Tree, command: &str) -> Result<()> {
        match tree {
            Tree::CreateTable(create) => {
                self.creates(&create.table.name)?;
                self.own_relations(references_of(create))?;
                let likes = create.likes.iter().map(|like| &like.relation);
                likes.into_iter().try_for_each(|name| self.reads(name))
            }
            // What its query reads is checked when that runs.
            Tree::CreateTableAs(create) => self.creates(&create.name),
            Tree::CreateView(create) => {
                self.creates(&create.name)?;
                self.owns_relation(&create.name)
            }
            Tree::CreateMaterializedView(create) => self.creates(&create.view.name),
            Tree::RefreshMaterializedView(refresh) => self.owns_relation(&refresh.name),
            Tree::CreateSequence(create) => {
                self.creates(&create.name)?;
                self.owns_owner(create.options.owned_by.as_deref())
            }
            Tree::CreateEnum(_) | Tree::CreateComposite(_) | Tree::CreateDomain(_) => {
                self.creates_in(PUBLIC_SCHEMA)
            }
            Tree::CreateFunction(create) => {
                self.creates_in(PUBLIC_SCHEMA)?;
                self.owns_routine(&create.name)
            }
            Tree::CreateIndex(create) => self.owns_relation(&create.table_name),
            Tree::CreateTrigger(create) => {
                self.owns_relation(&create.table)?;
                let function = Object::routine(object_name(&create.function)?);
                self.allowed(function, Privilege::Execute)
            }
            Tree::DropTrigger(drop) => self.owns_relation(&drop.table),
            Tree::RenameTrigger(rename) => self.owns_relation(&rename.table),
            Tree::AlterTable(alter) => {
                self.owns_relation(&alter.name)?;
                let mut actions = alter.actions.iter();
                actions.try_for_each(|action| match action {
                    TableAction::Owner(to) => self.gives_to(to),
                    TableAction::Rename(to) => self.renames(&alter.name, to),
                    action => self.own_relations(references_added(action)),
                })
            }
            Tree::AlterView(alter) => {
                self.owns_relation(&alter.name)?;
                self.changes(&alter.change, Some(&alter.name))
            }
            Tree::AlterObject(alter) => match &alter.object {
                AlteredObject::Index(name)
                | AlteredObject::Sequence(name)
                | AlteredObject::MaterializedView(name) => {
                    self.owns_relation(name)?;
                    self.changes(&alter.change, Some(name))
                }
                AlteredObject::Routine(_, RoutineSignature { name, .. }) => {
                    self.owns_routine(name)?;
                    self.changes(&alter.change, None)
                }
            },
            Tree::AlterSequence(alter) => {
                self.owns_relation(&alter.name)?;
                self.owns_owner(alter.options.owned_by.as_deref())
            }
            Tree::AlterType(alter) => {
                self.owns_type(&alter.name)?;
                match &alter.change {
                    TypeChange::Owner(to) => self.gives_to(to),
                    _ => Ok(()),
                }
            }
            Tree::AlterDomain(alter) => {
                self.owns_type(&alter.name)?;
                match &alter.change {
                    DomainChange::Owner(to) => self.gives_to(to),
                    _ => Ok(()),
                }
            }
            Tree::AlterSchema(alter) => {
                self.owns_schema(&alter.name)?;
                match &alter.change {
                    SchemaChange::Owner(to) => self.gives_to(to),
                    SchemaChange::Rename(_) => Ok(()),
                }
            }
            Tree::DropSchema(drop) => {
                let mut names = drop.names.iter();
                names.try_for_each(|name| self.owns_schema(name))
            }
            Tree::Drop(drop) => {
                let mut names = drop.names.iter();
                names.try_for_each(|name| match drop.kind {
                    DropKind::Type | DropKind::Domain => self.owns_type(name),
                    _ => self.drops_relation(name),
                })
            }
            Tree::DropFunction(drop) => {
                let mut routines = drop.routines.iter();
                routines.try_for_each(|routine| self.owns_routine(&routine.name))
            }
            Tree::Analyze(names) if !names.is_empty() => self.own_relations(names),
            Tree::Vacuum(vacuum) if !vacuum.tables.is_empty() => self.own_relations(&vacuum.tables),
            Tree::Reorder(reorder) if reorder.table.is_some() || reorder.index.is_some() => {
                self.own_relations(reorder.table.iter().chain(&reorder.index))
            }
            Tree::Truncate(truncate)
                if !matches!(truncate.cascade, Some(CascadeOption::Cascade)) =>
            {
                let mut targets = truncate.table_names.iter();
                targets.try_for_each(|target| {
                    let object = Object::table(relation_of(self.catalog, &target.name)?);
                    self.allowed(object, Privilege::Truncate)
                })
            }
            Tree::Comment(comment) => self.comments(&comment.object, command),
            Tree::Grant(grant) => {
                let objects = objects_of(self.catalog, &grant.objects)?;
                match objects.is_empty() {
                    true => Err(for_superusers(command)),
                    false => objects.iter().try_for_each(|object| self.grants(object)),
                }
            }
            // One's own password.
            Tree::AlterRole(definition)
                if (definition.name == RoleName::Current
                    || definition.name == RoleName::Name(self.role.name.clone()))
                    && definition.superuser.is_none()
                    && definition.login.is_none() =>
            {
                Ok(())
            }
            Tree::RoleSetting(setting) if role_settings::is_own(setting, self.role) => Ok(()),
            tree => Err(denied(tree, command)),
        }
    }

    /// # Errors
    /// 42501 unless an object belongs to the role; one that is missing is the statement's matter.
    fn owns(&self, object: &Object) -> Result<()> {
        match self.catalog.roles().owns(self.role, object) {
            true => Ok(()),
            false => Err(not_owner(&self.described(object))),
        }
    }

    /// Privileges are given and taken by the owner.
    fn grants(&self, object: &Object) -> Result<()> {
        self.owns(object).map_err(|_| {
            let message = format!("permission denied for {}", self.described(object));
            Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
        })
    }

    /// A kind of object and its name, for messages.
    fn described(&self, object: &Object) -> String {
        let word = match object.kind {
            ObjectKind::Table if self.catalog.view(&object.name).is_some() => "view",
            ObjectKind::Table if self.catalog.materialized_view(&object.name).is_some() => {
                "materialized view"
            }
            ObjectKind::Routine => "function",
            kind => kind.word(),
        };
        let name = match object.kind {
            ObjectKind::Schema => &object.name,
            _ => name_in_schema(&object.name),
        };
        format!("{word} {name}")
    }

    /// What belongs to a role, of the relation with this name: a table, view or sequence, or the
    /// table of an index.
    fn relation(&self, written: &ObjectName) -> Result<Option<Object>> {
        let name = relation_of(self.catalog, written)?;
        Ok(self.relation_named(name))
    }

    fn relation_named(&self, name: String) -> Option<Object> {
        let catalog = self.catalog;
        if catalog.table(&name).is_some() || catalog.view(&name).is_some() {
            return Some(Object::table(name));
        }
        if catalog.sequence(&name).is_some() {
            return Some(Object::sequence(name));
        }
        catalog.index_owner(&name).map(Object::table)
    }

    fn owns_relation(&self, written: &ObjectName) -> Result<()> {
        match self.relation(written)? {
            Some(object) => self.owns(&object),
            None => Ok(()),
        }
    }

    fn own_relations<'n>(&self, names: impl IntoIterator<Item = &'n ObjectName>) -> Result<()> {
        let mut names = names.into_iter();
        names.try_for_each(|name| self.owns_relation(name))
    }

    /// The owner of a schema may remove what is in it.
    fn drops_relation(&self, written: &ObjectName) -> Result<()> {
        let Some(object) = self.relation(written)? else {
            return Ok(());
        };
        let schema = Object::schema(schema_of(&object.name));
        match self.catalog.roles().owns(self.role, &schema) {
            true => Ok(()),
            false => self.owns(&object),
        }
    }

    fn owns_routine(&self, written: &ObjectName) -> Result<()> {
        let name = object_name(written)?;
        match self.catalog.procedure(&name) {
            Some(_) => self.owns(&Object::routine(name)),
            None => Ok(()),
        }
    }

    fn owns_type(&self, written: &ObjectName) -> Result<()> {
        let name = type_name(self.catalog, written)?;
        let catalog = self.catalog;
        let is_own = catalog.enumeration(&name).is_some()
            || catalog.composite(&name).is_some()
            || catalog.domain(&name).is_some();
        match is_own {
            true => self.owns(&Object::of_type(name)),
            false => Ok(()),
        }
    }

    fn owns_schema(&self, written: &ast::Ident) -> Result<()> {
        let name = name_of(written);
        match self.catalog.has_schema(&name) {
            true => self.owns(&Object::schema(name)),
            false => Ok(()),
        }
    }

    /// `OWNED BY table.column`.
    fn owns_owner(&self, written: Option<&[ast::Ident]>) -> Result<()> {
        match written {
            Some([table @ .., _]) if !table.is_empty() => {
                self.owns_relation(&ObjectName::from(table.to_vec()))
            }
            _ => Ok(()),
        }
    }

    fn allowed(&self, object: Object, privilege: Privilege) -> Result<()> {
        let access = Access::of_caller(object, privilege);
        self.catalog.roles().check(self.role, &access)
    }

    fn reads(&self, written: &ObjectName) -> Result<()> {
        match self.relation(written)? {
            Some(object) => self.allowed(object, Privilege::Select),
            None => Ok(()),
        }
    }

    /// A new relation.
    fn creates(&self, written: &ObjectName) -> Result<()> {
        let name = new_relation_name(&View::of(self.catalog), written, false)?;
        self.creates_in(schema_of(&name))
    }

    fn creates_in(&self, schema: &str) -> Result<()> {
        self.allowed(Object::schema(schema), Privilege::Create)
    }

    /// Another name, or another schema: the role must be allowed to create there.
    fn renames(&self, written: &ObjectName, to: &NewName) -> Result<()> {
        match to {
            NewName::Schema(schema) => self.creates_in(&name_of(schema)),
            NewName::Name(_) => {
                let name = relation_of(self.catalog, written)?;
                self.creates_in(schema_of(&name))
            }
        }
    }

    fn changes(&self, change: &ObjectChange, relation: Option<&ObjectName>) -> Result<()> {
        match (change, relation) {
            (ObjectChange::Owner(to), _) => self.gives_to(to),
            (ObjectChange::Rename(to), Some(name)) => self.renames(name, to),
            (ObjectChange::Rename(_), None) => self.creates_in(PUBLIC_SCHEMA),
            (ObjectChange::Parameters(_), _) => Ok(()),
        }
    }

    /// `OWNER TO` a role that this one may act as.
    fn gives_to(&self, to: &RoleName) -> Result<()> {
        let RoleName::Name(name) = to else {
            return Ok(());
        };
        let roles = self.catalog.roles();
        roles.require(name)?;
        if *name == self.role.name || roles.roles_of(&self.role.name).contains(name.as_str()) {
            return Ok(());
        }
        let message = format!("must be member of role \"{name}\"");
        Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }

    fn comments(&self, object: &CommentedObject, command: &str) -> Result<()> {
        match object {
            CommentedObject::Relation(_, name) | CommentedObject::Constraint(_, name) => {
                self.owns_relation(name)
            }
            CommentedObject::Column(name) => match name.0.as_slice() {
                [relation @ .., _] if !relation.is_empty() => {
                    self.owns_relation(&ObjectName(relation.to_vec()))
                }
                _ => Ok(()),
            },
            CommentedObject::Routine(_, RoutineSignature { name, .. }) => self.owns_routine(name),
            CommentedObject::Schema(name) => self.owns_schema(name),
            CommentedObject::DomainConstraint(name, _) => self.owns_type(name),
            CommentedObject::Type(written) => match &**written {
                ast::DataType::Custom(name, _) => self.owns_type(name),
                _ => Err(for_superusers(command)),
            },
            CommentedObject::Role(_)
            | CommentedObject::Database(_)
            | CommentedObject::Extension(_) => Err(for_superusers(command)),
        }
    }
}

#[cold]
fn not_owner(of: &str) -> Error {
    let message = format!("must be owner of {of}");
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

#[cold]
fn for_superusers(command: &str) -> Error {
    let message = format!("must be superuser to run {command}");
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// The error of a statement that superusers alone may run.
#[cold]
fn denied(tree: &Tree, command: &str) -> Error {
    let (message, hint) = match tree {
        Tree::CreateSchema(_) => (
            "permission denied for database kiln",
            "Superusers alone create schemas: CREATE SCHEMA name AUTHORIZATION role.",
        ),
        Tree::CreateRole(_) => (
            "permission denied to create role",
            "Superusers alone create roles.",
        ),
        Tree::DropRole(_) => (
            "permission denied to drop role",
            "Superusers alone drop roles.",
        ),
        Tree::RoleSetting(setting) if setting.role.is_none() && setting.database.is_none() => (
            "must be superuser to alter settings globally",
            "Superusers alone set what all sessions begin with.",
        ),
        Tree::AlterRole(_) | Tree::RoleSetting(_) => (
            "permission denied to alter role",
            "Superusers alone alter roles; others may change their own password.",
        ),
        _ => return for_superusers(command),
    };
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message).with_hint(hint)
}

/// The tables to which a new table refers.
pub(super) fn references_of(table: &CreateTable) -> Vec<&ObjectName> {
    let of_columns = table.table.columns.iter();
    let of_columns = of_columns.flat_map(|column| column.options.iter());
    let of_columns = of_columns.filter_map(|option| referenced_by_option(&option.option));
    let of_table = table.table.constraints.iter();
    of_columns
        .chain(of_table.filter_map(referenced_by_constraint))
        .collect()
}

fn referenced_by_option(option: &ast::ColumnOption) -> Option<&ObjectName> {
    match option {
        ast::ColumnOption::ForeignKey(key) => Some(&key.foreign_table),
        _ => None,
    }
}

fn referenced_by_constraint(constraint: &ast::TableConstraint) -> Option<&ObjectName> {
    match constraint {
        ast::TableConstraint::ForeignKey(key) => Some(&key.foreign_table),
        _ => None,
    }
}

/// The tables to which a table refers after a change of it.
pub(super) fn references_added(action: &TableAction) -> Vec<&ObjectName> {
    match action {
        TableAction::AddColumn(added) => {
            let options = added.definition.options.iter();
            let options = options.filter_map(|it| referenced_by_option(&it.option));
            options.collect()
        }
        TableAction::AddConstraint(added) => {
            (referenced_by_constraint(&added.constraint).into_iter()).collect()
        }
        _ => Vec::new(),
    }
}
