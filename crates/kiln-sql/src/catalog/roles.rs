//! Roles, their privileges, and the database: `pg_authid`, `pg_roles`, `pg_user`, `pg_database`.

use kiln_engine::{Object, ObjectKind, PUBLIC, Privilege, Privileges};
use kiln_storage::types::Value;

use super::snapshot::Snapshot;
use super::values::{Row, array, boolean, integer, oid, optional, text};
use super::{DATABASE, DATABASE_OID, FIRST_ROLE_OID};

/// The role that stands for the owner of a database, which owns the schema `public`.
const DATABASE_OWNER: (u32, &str) = (6171, "pg_database_owner");

/// What is shown in the place of a password.
const HIDDEN: &str = "********";

/// A role as the relations show it.
struct Shown<'a> {
    oid: u32,
    name: &'a str,
    is_superuser: bool,
    can_login: bool,
    secret: Option<&'a str>,
}

fn all(snapshot: &Snapshot) -> Vec<Shown<'_>> {
    let own = snapshot.roles.iter().map(|(oid, role)| Shown {
        oid: *oid,
        name: &role.name,
        is_superuser: role.is_superuser,
        can_login: role.can_login,
        secret: role.secret.as_deref(),
    });
    let (oid, name) = DATABASE_OWNER;
    let owner = Shown {
        oid,
        name,
        is_superuser: false,
        can_login: false,
        secret: None,
    };
    own.chain([owner]).collect()
}

/// The number of a role.
fn number_of(snapshot: &Snapshot, name: &str) -> Option<u32> {
    let mut roles = snapshot.roles.iter();
    let known = roles.find(|(_, role)| role.name == name);
    known.map(|(number, _)| *number)
}

/// The settings with which sessions begin. Those of all roles are the database's.
pub(super) fn pg_db_role_setting(snapshot: &Snapshot) -> Vec<Row> {
    let rows = snapshot.privileges.settings();
    let rows = rows.filter_map(|(role, settings)| {
        let (database, role) = match role {
            Some(role) => (0, number_of(snapshot, role)?),
            None => (DATABASE_OID, 0),
        };
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| text(format!("{name}={value}")));
        Some(vec![oid(database), oid(role), array(settings)])
    });
    rows.collect()
}

/// Which roles are members of which.
pub(super) fn pg_auth_members(snapshot: &Snapshot) -> Vec<Row> {
    let number = |name: &str| number_of(snapshot, name);
    let rows = snapshot
        .privileges
        .memberships()
        .filter_map(|(member, role)| {
            Some(vec![
                oid(number(role)?),
                oid(number(member)?),
                oid(FIRST_ROLE_OID),
                boolean(false),
            ])
        });
    rows.collect()
}

/// Roles, as superusers see them. What passwords are verified with is not shown.
pub(super) fn pg_authid(snapshot: &Snapshot) -> Vec<Row> {
    let rows = all(snapshot).into_iter().map(|role| {
        vec![
            oid(role.oid),
            text(role.name),
            boolean(role.is_superuser),
            boolean(true),
            boolean(role.is_superuser),
            boolean(role.is_superuser),
            boolean(role.can_login),
            boolean(role.oid == FIRST_ROLE_OID),
            boolean(role.is_superuser && role.oid == FIRST_ROLE_OID),
            integer(-1),
            optional(role.secret.map(|_| HIDDEN)),
            Value::Null,
        ]
    });
    rows.collect()
}

/// Roles.
pub(super) fn pg_roles(snapshot: &Snapshot) -> Vec<Row> {
    let rows = all(snapshot).into_iter().map(|role| {
        vec![
            text(role.name),
            boolean(role.is_superuser),
            boolean(true),
            boolean(role.is_superuser),
            boolean(role.is_superuser),
            boolean(role.can_login),
            boolean(role.oid == FIRST_ROLE_OID),
            integer(-1),
            text(HIDDEN),
            Value::Null,
            boolean(role.is_superuser && role.oid == FIRST_ROLE_OID),
            Value::Null,
            oid(role.oid),
        ]
    });
    rows.collect()
}

fn users(snapshot: &Snapshot, password: impl Fn(&Shown<'_>) -> Value) -> Vec<Row> {
    let users = all(snapshot).into_iter().filter(|role| role.can_login);
    let rows = users.map(|role| {
        vec![
            text(role.name),
            oid(role.oid),
            boolean(role.is_superuser),
            boolean(role.is_superuser),
            boolean(role.oid == FIRST_ROLE_OID),
            boolean(role.is_superuser && role.oid == FIRST_ROLE_OID),
            password(&role),
            Value::Null,
            Value::Null,
        ]
    });
    rows.collect()
}

/// Roles that may connect.
pub(super) fn pg_user(snapshot: &Snapshot) -> Vec<Row> {
    users(snapshot, |_| text(HIDDEN))
}

/// The same, as superusers see them.
pub(super) fn pg_shadow(snapshot: &Snapshot) -> Vec<Row> {
    users(snapshot, |role| optional(role.secret.map(|_| HIDDEN)))
}

/// The database.
pub(super) fn pg_database(_: &Snapshot) -> Vec<Row> {
    const UTF8: i32 = 6;
    vec![vec![
        oid(DATABASE_OID),
        text(DATABASE),
        oid(FIRST_ROLE_OID),
        integer(UTF8),
        text("c"),
        boolean(false),
        boolean(true),
        integer(-1),
        Value::BigInt(0),
        Value::BigInt(0),
        oid(1663),
        text("C"),
        text("C"),
        Value::Null,
        Value::Null,
        Value::Null,
    ]]
}

/// The letters that PostgreSQL has for what the owner of a table may do, in their order.
const TABLE_LETTERS: &str = "arwdDxt";

/// The privileges for an object as PostgreSQL lists them; NULL where they are the default.
pub(super) fn privileges_of(snapshot: &Snapshot, object: &Object) -> Value {
    let Some(grantees) = snapshot.privileges.grantees(object) else {
        return Value::Null;
    };
    let owner = match object.kind {
        ObjectKind::Table => TABLE_LETTERS,
        ObjectKind::Routine => "X",
        ObjectKind::Sequence => "rwU",
        ObjectKind::Schema => "UC",
        ObjectKind::Type => "U",
    };
    let name = snapshot.owner(object);
    let item = |grantee: &str, letters: &str| text(format!("{grantee}={letters}/{name}"));
    let mut items = vec![item(name, owner)];
    let public = grantees
        .get(PUBLIC)
        .map(|privileges| item("", &letters(*privileges)));
    match object.kind {
        // As in PostgreSQL, what all may do comes first where it is the default.
        ObjectKind::Routine | ObjectKind::Type => items.splice(0..0, public).for_each(drop),
        ObjectKind::Table | ObjectKind::Sequence | ObjectKind::Schema => items.extend(public),
    }
    let others = grantees
        .iter()
        .filter(|(grantee, _)| *grantee != PUBLIC && *grantee != name);
    items.extend(others.map(|(name, privileges)| item(name, &letters(*privileges))));
    array(items)
}

/// The letters of privileges, in PostgreSQL's order.
fn letters(privileges: Privileges) -> String {
    let known: Vec<char> = privileges.iter().map(Privilege::letter).collect();
    let order = TABLE_LETTERS.chars().chain(['X', 'U', 'C']);
    order.filter(|letter| known.contains(letter)).collect()
}
