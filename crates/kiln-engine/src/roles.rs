//! Roles, and what they may do.
//!
//! They are a part of the catalog: a statement sees those of the catalog that it runs in, and a
//! change of them is logged as any other definition is. A table or procedure has no owner;
//! superusers define, and grant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, name_in_schema, schema_of};

use crate::memberships::Memberships;

/// The superuser of a fresh database, which cannot be dropped.
pub const FIRST_ROLE: &str = "kiln";

/// The grantee that stands for all roles; no role can be called so.
pub const PUBLIC: &str = "public";

/// Who connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Whether it may do everything.
    pub is_superuser: bool,
    /// Whether clients may connect as this role.
    pub can_login: bool,
    /// What its password is verified with, as PostgreSQL writes a SCRAM-SHA-256 secret; never the
    /// password itself.
    pub secret: Option<String>,
}

impl Role {
    /// A role that may connect, and nothing else.
    pub fn new(name: impl Into<String>) -> Role {
        Role {
            name: name.into(),
            is_superuser: false,
            can_login: true,
            secret: None,
        }
    }

    /// The superuser of a fresh database.
    fn first() -> Role {
        Role {
            is_superuser: true,
            ..Role::new(FIRST_ROLE)
        }
    }
}

/// One thing that a role may be allowed to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Privilege {
    /// SELECT of a table.
    Select,
    /// INSERT into it.
    Insert,
    /// UPDATE of it.
    Update,
    /// DELETE of its rows.
    Delete,
    /// TRUNCATE of it.
    Truncate,
    /// EXECUTE of a function or procedure.
    Execute,
    /// USAGE of a sequence or schema.
    Usage,
    /// CREATE in a schema.
    Create,
}

impl Privilege {
    /// All of them.
    pub const ALL: [Privilege; 8] = [
        Privilege::Select,
        Privilege::Insert,
        Privilege::Update,
        Privilege::Delete,
        Privilege::Truncate,
        Privilege::Execute,
        Privilege::Usage,
        Privilege::Create,
    ];

    /// As GRANT calls it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Privilege::Select => "select",
            Privilege::Insert => "insert",
            Privilege::Update => "update",
            Privilege::Delete => "delete",
            Privilege::Truncate => "truncate",
            Privilege::Execute => "execute",
            Privilege::Usage => "usage",
            Privilege::Create => "create",
        }
    }

    /// The letter that PostgreSQL's lists of privileges have for it.
    pub fn letter(self) -> char {
        match self {
            Privilege::Select => 'r',
            Privilege::Insert => 'a',
            Privilege::Update => 'w',
            Privilege::Delete => 'd',
            Privilege::Truncate => 'D',
            Privilege::Execute => 'X',
            Privilege::Usage => 'U',
            Privilege::Create => 'C',
        }
    }
}

/// Some privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(u8);

impl Privileges {
    /// None.
    pub const NONE: Privileges = Privileges(0);

    /// Those that an object of this kind has.
    pub fn of(kind: ObjectKind) -> Privileges {
        use Privilege::{Create, Delete, Execute, Insert, Select, Truncate, Update, Usage};
        let all: &[Privilege] = match kind {
            ObjectKind::Table => &[Select, Insert, Update, Delete, Truncate],
            ObjectKind::Routine => &[Execute],
            ObjectKind::Sequence => &[Usage, Select, Update],
            ObjectKind::Schema => &[Usage, Create],
            ObjectKind::Type => &[Usage],
        };
        all.iter().copied().collect()
    }

    /// Whether this is one of them.
    pub fn contains(self, privilege: Privilege) -> bool {
        self.0 & 1 << privilege as u8 != 0
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Those without the others.
    #[must_use]
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, in their order.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        let all = Privilege::ALL.into_iter();
        all.filter(move |privilege| self.contains(*privilege))
    }
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<I: IntoIterator<Item = Privilege>>(privileges: I) -> Privileges {
        let bits = privileges.into_iter().map(|privilege| 1 << privilege as u8);
        Privileges(bits.fold(0, |all, bit| all | bit))
    }
}

/// What kind of object privileges are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A function or procedure.
    Routine,
    /// A sequence.
    Sequence,
    /// A schema.
    Schema,
    /// An enum or a domain.
    Type,
}

/// A table, function, procedure, sequence, schema or type by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// The kind of object.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
}

impl Object {
    /// A table.
    pub fn table(name: impl Into<String>) -> Object {
        Object {
            kind: ObjectKind::Table,
            name: name.into(),
        }
    }

    /// A function or procedure.
    pub fn routine(name: impl Into<String>) -> Object {
        Object {
            kind: ObjectKind::Routine,
            name: name.into(),
        }
    }
}

impl Object {
    /// A sequence.
    pub fn sequence(name: impl Into<String>) -> Object {
        Object {
            kind: ObjectKind::Sequence,
            name: name.into(),
        }
    }
}

impl Object {
    /// A schema.
    pub fn schema(name: impl Into<String>) -> Object {
        Object {
            kind: ObjectKind::Schema,
            name: name.into(),
        }
    }
}

impl Object {
    /// An enum or a domain.
    pub fn of_type(name: impl Into<String>) -> Object {
        Object {
            kind: ObjectKind::Type,
            name: name.into(),
        }
    }
}

impl ObjectKind {
    /// All of them.
    pub const ALL: [ObjectKind; 5] = [
        ObjectKind::Table,
        ObjectKind::Routine,
        ObjectKind::Sequence,
        ObjectKind::Schema,
        ObjectKind::Type,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::Routine => "routine",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Schema => "schema",
            ObjectKind::Type => "type",
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.name)
    }
}

/// What a statement or a routine does that not every role may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// With what.
    pub object: Object,
    /// What it does.
    pub privilege: Privilege,
    /// The view or routine with whose owner's privileges it does so; `None` where the caller needs
    /// them.
    pub on_behalf_of: Option<Object>,
}

impl Access {
    /// What the caller does with an object.
    pub fn of_caller(object: Object, privilege: Privilege) -> Access {
        Access {
            object,
            privilege,
            on_behalf_of: None,
        }
    }
}

/// The privileges of each grantee for one object.
pub(crate) type Grantees = BTreeMap<String, Privileges>;

/// The roles and their privileges.
#[derive(Clone, Debug)]
pub struct Roles {
    roles: BTreeMap<String, Arc<Role>>,
    /// The grants of objects whose privileges were granted or revoked; the others have
    /// [`Roles::default_grantees`].
    grants: BTreeMap<Object, Grantees>,
    /// The owners of objects that do not belong to the first role.
    owners: BTreeMap<Object, String>,
    memberships: Memberships,
    /// What ALTER DEFAULT PRIVILEGES has made of the privileges for new objects of a kind: in all
    /// schemas, where they take the place of [`Roles::default_grantees`], and in one schema, where
    /// they are added.
    defaults: BTreeMap<(ObjectKind, Option<String>), Grantees>,
    /// With what sessions begin: those of a role, or of all.
    settings: BTreeMap<Option<String>, RoleSettings>,
}

/// The settings that a role may have: it sets its own, and the catalog keeps them.
const SETTINGS_MAX: usize = 1_000;

/// Settings by name, with their values.
pub type RoleSettings = BTreeMap<String, String>;

impl Default for Roles {
    fn default() -> Roles {
        let first = Role::first();
        Roles {
            roles: BTreeMap::from([(first.name.clone(), Arc::new(first))]),
            grants: BTreeMap::new(),
            owners: BTreeMap::new(),
            memberships: Memberships::default(),
            defaults: BTreeMap::new(),
            settings: BTreeMap::new(),
        }
    }
}

impl Roles {
    /// The role called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(name)
    }

    /// The role called `name`.
    ///
    /// # Errors
    /// 42704.
    pub fn require(&self, name: &str) -> Result<&Arc<Role>> {
        self.get(name).ok_or_else(|| undefined(name))
    }

    /// All roles, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.roles.values()
    }

    /// Whether a role has a password.
    pub fn has_passwords(&self) -> bool {
        self.iter().any(|role| role.secret.is_some())
    }

    /// Privileges for an object for which none was granted or revoked: as in PostgreSQL, all may
    /// execute a function and use a type, and the owner alone uses a table or a sequence.
    fn default_grantees(kind: ObjectKind) -> Grantees {
        match kind {
            ObjectKind::Table | ObjectKind::Sequence | ObjectKind::Schema => Grantees::new(),
            ObjectKind::Routine | ObjectKind::Type => {
                Grantees::from([(PUBLIC.to_owned(), Privileges::of(kind))])
            }
        }
    }

    /// The privileges of each grantee for an object, PUBLIC among them; `None` where they are the
    /// default.
    pub fn grantees(&self, object: &Object) -> Option<&BTreeMap<String, Privileges>> {
        self.grants.get(object)
    }

    /// All privileges that are not the default.
    pub(crate) fn grants(&self) -> impl Iterator<Item = (&Object, &Grantees)> {
        self.grants.iter()
    }

    /// The role to which an object belongs.
    pub fn owner(&self, object: &Object) -> &str {
        self.owners.get(object).map_or(FIRST_ROLE, String::as_str)
    }

    /// The owners of objects that do not belong to the first role.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&Object, &str)> {
        let owners = self.owners.iter();
        owners.map(|(object, owner)| (object, owner.as_str()))
    }

    /// Whether objects of superusers are all that there are.
    pub fn belongs_to_superusers(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whether the role is an object's owner or a member of it, or a superuser.
    pub fn owns(&self, role: &Role, object: &Object) -> bool {
        role.is_superuser || {
            let owner = self.owner(object);
            owner == role.name || self.roles_of(&role.name).contains(owner)
        }
    }

    /// Gives an object to a role.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub(crate) fn set_owner(&mut self, object: Object, owner: &str) -> Result<()> {
        self.require(owner)?;
        match owner {
            FIRST_ROLE => self.owners.remove(&object),
            _ => self.owners.insert(object, owner.to_owned()),
        };
        Ok(())
    }

    /// Gives all that belongs to a role to another one.
    ///
    /// # Errors
    /// 42704 when there is no such role; 2BP01 for the first role, to which the system belongs.
    pub(crate) fn reassign_owned(&mut self, from: &str, to: &str) -> Result<()> {
        self.require(to)?;
        self.refuse_first(from, "reassign ownership of objects owned by")?;
        let owned = self.owners.extract_if(.., |_, owner| owner == from);
        let owned: Vec<Object> = owned.map(|(object, _)| object).collect();
        owned
            .into_iter()
            .try_for_each(|object| self.set_owner(object, to))
    }

    /// Takes all privileges of a role away.
    ///
    /// # Errors
    /// 0A000 when objects belong to it; 2BP01 for the first role.
    pub(crate) fn revoke_all(&mut self, role: &str) -> Result<()> {
        self.refuse_first(role, "drop objects owned by")?;
        if let Some((object, _)) = self.owners().find(|(_, owner)| *owner == role) {
            let message = format!("DROP OWNED of {role}, to which {object} belongs,");
            let error = Error::unsupported(format!("{message} is not supported"));
            return Err(error.with_hint(format!(
                "Drop its objects, or REASSIGN OWNED BY {role} TO another role first."
            )));
        }
        for of in self.grants.values_mut().chain(self.defaults.values_mut()) {
            of.remove(role);
        }
        self.grants
            .retain(|object, of| *of != Roles::default_grantees(object.kind));
        self.defaults.retain(|(kind, schema), of| match schema {
            None => *of != Roles::default_grantees(*kind),
            Some(_) => !of.is_empty(),
        });
        Ok(())
    }

    fn refuse_first(&self, role: &str, what: &str) -> Result<()> {
        self.require(role)?;
        if role != FIRST_ROLE {
            return Ok(());
        }
        let message =
            format!("cannot {what} role {role} because they are required by the database system");
        Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message))
    }

    /// Whether the role may do this: its owner may do everything with an object. What is done on
    /// behalf of a view or routine, the owner of that must be allowed to do.
    pub fn allows(&self, role: &Role, access: &Access) -> bool {
        let owner = access.on_behalf_of.as_ref();
        let owner = owner.map(|of| self.get(self.owner(of)));
        match owner {
            None => self.allows_role(role, access),
            Some(owner) => owner.is_some_and(|owner| self.allows_role(owner, access)),
        }
    }

    fn allows_role(&self, role: &Role, access: &Access) -> bool {
        let Access {
            object, privilege, ..
        } = access;
        let has = |privileges: Option<&Privileges>| {
            privileges.is_some_and(|privileges| privileges.contains(*privilege))
        };
        self.owns(role, object)
            || match self.grants.get(object) {
                Some(grantees) => {
                    has(grantees.get(&role.name))
                        || has(grantees.get(PUBLIC))
                        || (self.roles_of(&role.name).iter()).any(|role| has(grantees.get(*role)))
                }
                None => matches!(object.kind, ObjectKind::Routine | ObjectKind::Type),
            }
    }

    /// The settings with which sessions begin: those of one role, or with `None` those of all.
    pub fn settings(&self) -> impl Iterator<Item = (Option<&str>, &RoleSettings)> {
        let all = self.settings.iter();
        all.map(|(role, settings)| (role.as_deref(), settings))
    }

    /// The settings with which a session of this role begins: its own go before those of all.
    pub fn settings_of(&self, role: &str) -> RoleSettings {
        let mut settings = self.settings.get(&None).cloned().unwrap_or_default();
        if let Some(own) = self.settings.get(&Some(role.to_owned())) {
            settings.extend(own.clone());
        }
        settings
    }

    /// Changes the settings with which sessions of a role begin, or with `None` of all.
    ///
    /// # Errors
    /// 42704 when there is no such role; 53400 for too many.
    pub(crate) fn change_settings(
        &mut self,
        role: Option<&str>,
        change: impl FnOnce(&mut RoleSettings),
    ) -> Result<()> {
        if let Some(role) = role {
            self.require(role)?;
        }
        let key = role.map(str::to_owned);
        let mut settings = self.settings.remove(&key).unwrap_or_default();
        change(&mut settings);
        if settings.len() > SETTINGS_MAX {
            let message = format!("a role has at most {SETTINGS_MAX} settings");
            return Err(Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message));
        }
        if !settings.is_empty() {
            self.settings.insert(key, settings);
        }
        Ok(())
    }

    /// The roles that a role is a member of, through others too; without itself.
    pub fn roles_of(&self, member: &str) -> BTreeSet<&str> {
        match self.memberships.is_empty() {
            true => BTreeSet::new(),
            false => self.memberships.of(member),
        }
    }

    /// Each membership that was granted: the member, and the role.
    pub fn memberships(&self) -> impl Iterator<Item = (&str, &str)> {
        self.memberships.iter()
    }

    /// Makes a role a member of another one; says whether it was none.
    ///
    /// # Errors
    /// 42704 when there is no such role; 0LP01 when the other one is a member of it.
    pub(crate) fn add_member(&mut self, member: &str, role: &str) -> Result<bool> {
        self.require(role)?;
        self.require(member)?;
        self.memberships.add(member, role)
    }

    /// Ends a membership; says whether there was one.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub(crate) fn remove_member(&mut self, member: &str, role: &str) -> Result<bool> {
        self.require(role)?;
        self.require(member)?;
        Ok(self.memberships.remove(member, role))
    }

    /// The privileges for new objects, where they are not the system's.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = (ObjectKind, Option<&str>, &Grantees)> {
        let all = self.defaults.iter();
        all.map(|((kind, schema), grantees)| (*kind, schema.as_deref(), grantees))
    }

    /// Puts back what was written down of the privileges for new objects.
    pub(crate) fn restore_defaults(
        &mut self,
        kind: ObjectKind,
        schema: Option<String>,
        grantees: Grantees,
    ) {
        self.defaults.insert((kind, schema), grantees);
    }

    /// Changes what a grantee may do with new objects of a kind, of one schema or of all.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub(crate) fn change_defaults(
        &mut self,
        kind: ObjectKind,
        schema: Option<&str>,
        grantee: &str,
        change: impl FnOnce(Privileges) -> Privileges,
    ) -> Result<()> {
        if grantee != PUBLIC {
            self.require(grantee)?;
        }
        let fresh = match schema {
            None => Roles::default_grantees(kind),
            Some(_) => Grantees::new(),
        };
        let key = (kind, schema.map(str::to_owned));
        let grantees = self.defaults.entry(key.clone());
        let grantees = grantees.or_insert_with(|| fresh.clone());
        set(grantees, grantee, change);
        if *grantees == fresh {
            self.defaults.remove(&key);
        }
        Ok(())
    }

    /// Gives a new object the privileges that new objects have.
    pub(crate) fn give_defaults(&mut self, object: &Object) {
        if self.defaults.is_empty() {
            return;
        }
        let of = |schema: Option<&str>| {
            let key = (object.kind, schema.map(str::to_owned));
            self.defaults.get(&key)
        };
        let system = Roles::default_grantees(object.kind);
        let mut grantees = of(None).unwrap_or(&system).clone();
        let schema = match object.kind {
            ObjectKind::Table | ObjectKind::Sequence | ObjectKind::Type => {
                Some(schema_of(&object.name))
            }
            ObjectKind::Routine => Some(PUBLIC_SCHEMA),
            ObjectKind::Schema => None,
        };
        if let Some(of_schema) = schema.and_then(|schema| of(Some(schema))) {
            for (grantee, granted) in of_schema {
                set(&mut grantees, grantee, |privileges| {
                    privileges.and(*granted)
                });
            }
        }
        if grantees != system {
            self.grants.insert(object.clone(), grantees);
        }
    }

    /// Checks that the role may do this. Who may set a sequence may draw from it.
    ///
    /// # Errors
    /// 42501.
    pub fn check(&self, role: &Role, access: &Access) -> Result<()> {
        let may_set = || {
            let setting = Access {
                privilege: Privilege::Update,
                ..access.clone()
            };
            access.privilege == Privilege::Usage && self.allows(role, &setting)
        };
        match self.allows(role, access) || may_set() {
            true => Ok(()),
            false => Err(denied(access)),
        }
    }

    /// Adds a role.
    ///
    /// # Errors
    /// 42710 when the name is taken, 42939 for one that is reserved.
    pub(crate) fn create(&mut self, role: Role) -> Result<()> {
        let name = &role.name;
        if name == PUBLIC || name == "none" || name.starts_with("pg_") || name.is_empty() {
            let message = format!("role name \"{name}\" is reserved");
            return Err(Error::new(SqlState::RESERVED_NAME, message));
        }
        if self.roles.contains_key(name) {
            let message = format!("role \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        self.roles.insert(name.clone(), Arc::new(role));
        Ok(())
    }

    /// Puts a role in the place of the one of its name.
    ///
    /// # Errors
    /// 42704; 0A000 for the first role that would not be a superuser any more, or could not
    /// connect.
    pub(crate) fn replace(&mut self, role: Role) -> Result<()> {
        if role.name == FIRST_ROLE && !(role.is_superuser && role.can_login) {
            let message = format!("role \"{FIRST_ROLE}\" is always a superuser that may connect");
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_hint("Give it a password that few know, and connect as another role."));
        }
        match self.roles.get_mut(&role.name) {
            Some(known) => *known = Arc::new(role),
            None => return Err(undefined(&role.name)),
        }
        Ok(())
    }

    /// Removes a role.
    ///
    /// # Errors
    /// 42704; 2BP01 for the first role, and for one that has privileges.
    pub(crate) fn drop(&mut self, name: &str) -> Result<()> {
        self.require(name)?;
        let dependent =
            |message: String| Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
        if name == FIRST_ROLE {
            let message =
                format!("cannot drop role {name} because it is required by the database system");
            return Err(dependent(message));
        }
        let mut objects = self
            .grants
            .iter()
            .filter(|(_, them)| them.contains_key(name));
        if let Some((object, _)) = objects.next() {
            let message =
                format!("role \"{name}\" cannot be dropped because some objects depend on it");
            let detail = match objects.count() {
                0 => format!("privileges for {object}"),
                more => format!("privileges for {object} and {more} more"),
            };
            return Err(dependent(message).with_detail(detail).with_hint(format!(
                "Revoke them first: REVOKE ALL ON {object} FROM {name}."
            )));
        }
        let owned: Vec<&Object> = (self.owners.iter())
            .filter(|(_, owner)| *owner == name)
            .map(|(object, _)| object)
            .collect();
        if let [object, others @ ..] = owned.as_slice() {
            let message =
                format!("role \"{name}\" cannot be dropped because some objects depend on it");
            let detail = match others.len() {
                0 => format!("owner of {object}"),
                more => format!("owner of {object} and {more} more"),
            };
            return Err(dependent(message)
                .with_detail(detail)
                .with_hint(format!("REASSIGN OWNED BY {name} TO {FIRST_ROLE} first.")));
        }
        if self.defaults.values().any(|them| them.contains_key(name)) {
            let message =
                format!("role \"{name}\" cannot be dropped because some objects depend on it");
            return Err(dependent(message)
                .with_detail("default privileges for new objects")
                .with_hint("Revoke them first: ALTER DEFAULT PRIVILEGES REVOKE …."));
        }
        self.roles.remove(name);
        self.memberships.forget(name);
        self.settings.remove(&Some(name.to_owned()));
        Ok(())
    }

    /// Changes a grantee's privileges for an object.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub(crate) fn change(
        &mut self,
        object: &Object,
        grantee: &str,
        change: impl FnOnce(Privileges) -> Privileges,
    ) -> Result<()> {
        if grantee != PUBLIC {
            self.require(grantee)?;
        }
        let grantees = self
            .grants
            .entry(object.clone())
            .or_insert_with(|| Roles::default_grantees(object.kind));
        set(grantees, grantee, change);
        if *grantees == Roles::default_grantees(object.kind) {
            self.grants.remove(object);
        }
        Ok(())
    }

    /// Puts back what was written down of an object.
    pub(crate) fn restore(&mut self, object: Object, grantees: Grantees) {
        self.grants.insert(object, grantees);
    }

    /// An object has another name.
    pub(crate) fn rename(&mut self, from: &Object, to: Object) {
        if from.kind == ObjectKind::Schema {
            let all = std::mem::take(&mut self.defaults).into_iter();
            let renamed = all.map(|((kind, schema), grantees)| {
                let is_it = schema.as_ref() == Some(&from.name);
                let schema = if is_it { Some(to.name.clone()) } else { schema };
                ((kind, schema), grantees)
            });
            self.defaults = renamed.collect();
        }
        if let Some(grantees) = self.grants.remove(from) {
            self.grants.insert(to.clone(), grantees);
        }
        if let Some(owner) = self.owners.remove(from) {
            self.owners.insert(to, owner);
        }
    }

    /// Forgets the privileges for an object that is gone.
    pub(crate) fn forget(&mut self, object: &Object) {
        self.grants.remove(object);
        self.owners.remove(object);
        if object.kind == ObjectKind::Schema {
            let is_other = |schema: &Option<String>| schema.as_ref() != Some(&object.name);
            self.defaults.retain(|(_, schema), _| is_other(schema));
        }
    }
}

/// Changes the privileges of a grantee.
fn set(grantees: &mut Grantees, grantee: &str, change: impl FnOnce(Privileges) -> Privileges) {
    let changed = change(grantees.get(grantee).copied().unwrap_or_default());
    match changed.is_empty() {
        true => grantees.remove(grantee),
        false => grantees.insert(grantee.to_owned(), changed),
    };
}

#[cold]
fn undefined(name: &str) -> Error {
    let message = format!("role \"{name}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

#[cold]
fn denied(access: &Access) -> Error {
    let (kind, name) = (access.object.kind.word(), &access.object.name);
    let name = match access.object.kind {
        ObjectKind::Schema => name,
        _ => name_in_schema(name),
    };
    let message = format!("permission denied for {kind} {name}");
    let privilege = access.privilege.name().to_ascii_uppercase();
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message).with_hint(format!(
        "Its owner can allow it: GRANT {privilege} ON {kind} {name} TO the role."
    ))
}
