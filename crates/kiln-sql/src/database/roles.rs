//! Statements about roles and privileges.

use kiln_engine::{
    Catalog, CatalogChange, Object, ObjectKind, PUBLIC, Privilege, Privileges, Role, Source,
};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{name_in_schema, schema_of};

use super::definition::Definition;
use super::objects::role_meant;
use super::result::{Notice, StatementResult};
use super::role_settings;
use super::secret::Secret;
use crate::catalog::relation_of;
use crate::compile::{fail, object_name, position_of, undefined_schema, written_name};
use crate::parse::{
    DefaultPrivileges, DropRole, Grant, GrantObjects, GrantRoles, Owned, RoleDefinition, RoleName,
    RoutineSignature, Statement as Tree,
};

/// The statement that is run and logged in the place of one that defines a role: it names the
/// session's role, and has a secret where the client wrote a password. `None` for any other
/// statement.
///
/// # Errors
/// 58030 when the system gives no random numbers.
pub(super) fn to_log(tree: &Tree, session_role: &str) -> Result<Option<(Tree, Source)>> {
    let (verb, definition, wrap) = match tree {
        Tree::CreateRole(definition) => ("CREATE", definition, Tree::CreateRole as fn(_) -> _),
        Tree::AlterRole(definition) => ("ALTER", definition, Tree::AlterRole as fn(_) -> _),
        Tree::RoleSetting(setting) => return role_settings::to_log(setting, session_role),
        _ => return Ok(None),
    };
    let mut logged = definition.clone();
    if logged.name == RoleName::Current {
        logged.name = RoleName::Name(session_role.to_owned());
    }
    if let Some(Some(password)) = &mut logged.password
        && !password.is_empty()
    {
        match password.parse::<Secret>() {
            // That of the empty password is no password either: psql's \password sends it.
            Ok(secret) if secret.is_of("") => password.clear(),
            Ok(_) => {}
            Err(()) => *password = Secret::of_password(password)?.to_string(),
        }
    }
    let source = Source::of_text(format!("{verb} {logged}"));
    Ok(Some((wrap(logged), source)))
}

fn name_of(definition: &RoleDefinition) -> Result<&str> {
    match &definition.name {
        RoleName::Name(name) => Ok(name),
        RoleName::Current => Err(Error::internal("the session's role is not known here")),
    }
}

/// The role with what the statement says of it.
fn defined(definition: &RoleDefinition, mut role: Role) -> Role {
    role.is_superuser = definition.superuser.unwrap_or(role.is_superuser);
    role.can_login = definition.login.unwrap_or(role.can_login);
    if let Some(secret) = &definition.password {
        role.secret = secret.clone().filter(|secret| !secret.is_empty());
    }
    role
}

/// CREATE ROLE.
pub(super) fn create(
    statement: &Definition<'_>,
    definition: &RoleDefinition,
) -> Result<StatementResult> {
    let role = Role {
        can_login: false,
        ..Role::new(name_of(definition)?)
    };
    let role = defined(definition, role);
    let notice = statement.change_catalog(|change| {
        let had_passwords = change.catalog().roles().has_passwords();
        let created = change.create_role(role.clone());
        created.map_err(|error| error.or_at(definition.position))?;
        for of in &definition.in_roles {
            change.add_member(&role.name, of)?;
        }
        for member in &definition.members {
            change.add_member(member, &role.name)?;
        }
        Ok(first_password(change, had_passwords))
    })?;
    let mut result = StatementResult::of_tag("CREATE ROLE");
    result.notices.extend(notice);
    Ok(result)
}

/// ALTER ROLE.
pub(super) fn alter(
    statement: &Definition<'_>,
    definition: &RoleDefinition,
) -> Result<StatementResult> {
    let name = name_of(definition)?;
    let notice = statement.change_catalog(|change| {
        let roles = change.catalog().roles();
        let had_passwords = roles.has_passwords();
        let known = roles.require(name);
        let known = known.map_err(|error| error.or_at(definition.position))?;
        let role = defined(definition, (**known).clone());
        change.alter_role(role)?;
        Ok(first_password(change, had_passwords))
    })?;
    let mut result = StatementResult::of_tag("ALTER ROLE");
    result.notices.extend(notice);
    Ok(result)
}

/// From the first password on connections are not trusted any more: a superuser without one is
/// locked out.
fn first_password(change: &CatalogChange<'_>, had_passwords: bool) -> Option<Notice> {
    let roles = change.catalog().roles();
    if had_passwords || !roles.has_passwords() {
        return None;
    }
    let mut superusers = roles
        .iter()
        .filter(|role| role.is_superuser && role.can_login);
    if superusers.any(|role| role.secret.is_some()) {
        return None;
    }
    Some(Notice::warning(
        "clients of a server need a password from now on, and no superuser has one: set one before you disconnect \
         (ALTER ROLE kiln PASSWORD \'…\')",
    ))
}

/// DROP ROLE.
pub(super) fn drop(statement: &Definition<'_>, dropped: &DropRole) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("DROP ROLE");
    result.notices = statement.change_catalog(|change| {
        let mut notices = Vec::new();
        for name in &dropped.names {
            if dropped.if_exists && change.catalog().roles().get(name).is_none() {
                let message = format!("role \"{name}\" does not exist, skipping");
                notices.push(Notice::new(message));
                continue;
            }
            if statement.role() == Some(name.as_str()) {
                let message = "current user cannot be dropped";
                return Err(Error::new(SqlState::OBJECT_IN_USE, message));
            }
            change.drop_role(name)?;
        }
        Ok(notices)
    })?;
    Ok(result)
}

/// REASSIGN OWNED, and DROP OWNED of roles to which no object belongs: it takes their privileges
/// away.
pub(super) fn owned(statement: &Definition<'_>, owned: &Owned) -> Result<StatementResult> {
    statement.change_catalog(|change| {
        let by = owned.by.iter().map(|role| role_meant(change, role));
        let by = by.collect::<Result<Vec<String>>>()?;
        match &owned.to {
            Some(to) => {
                let to = role_meant(change, to)?;
                by.iter()
                    .try_for_each(|from| change.reassign_owned(from, &to))
            }
            None => by.iter().try_for_each(|from| change.revoke_all(from)),
        }
    })?;
    Ok(StatementResult::of_tag(match owned.to {
        Some(_) => "REASSIGN OWNED",
        None => "DROP OWNED",
    }))
}

/// GRANT and REVOKE of roles.
pub(super) fn grant_roles(
    statement: &Definition<'_>,
    grant: &GrantRoles,
) -> Result<StatementResult> {
    let notices = statement.change_catalog(|change| {
        let mut notices = Vec::new();
        for role in &grant.roles {
            for member in &grant.members {
                if grant.is_revoke {
                    if !change.remove_member(member, role)? {
                        let message =
                            format!("role \"{member}\" is not a member of role \"{role}\"");
                        notices.push(Notice::warning(&message));
                    }
                } else if !change.add_member(member, role)? {
                    let message =
                        format!("role \"{member}\" is already a member of role \"{role}\"");
                    notices.push(Notice::new(message));
                }
            }
        }
        Ok(notices)
    })?;
    let mut result = StatementResult::of_tag(match grant.is_revoke {
        true => "REVOKE ROLE",
        false => "GRANT ROLE",
    });
    result.notices = notices;
    Ok(result)
}

/// ALTER DEFAULT PRIVILEGES.
pub(super) fn default_privileges(
    statement: &Definition<'_>,
    wanted: &DefaultPrivileges,
) -> Result<StatementResult> {
    let all = Privileges::of(wanted.kind);
    let privileges = match &wanted.privileges {
        Some(privileges) => privileges_among(privileges, wanted.kind)?,
        None => all,
    };
    if wanted.kind == ObjectKind::Schema && !wanted.schemas.is_empty() {
        let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
    }
    statement.change_catalog(|change| {
        for creator in &wanted.creators {
            check_superuser(change, creator)?;
        }
        let schemas = existing(change.catalog(), &wanted.schemas)?;
        let mut schemas: Vec<Option<&str>> = schemas.iter().map(|it| Some(it.as_str())).collect();
        if schemas.is_empty() {
            schemas.push(None);
        }
        for schema in schemas {
            for grantee in &wanted.grantees {
                change.change_default_privileges(
                    wanted.kind,
                    schema,
                    grantee,
                    |had| match wanted.is_revoke {
                        true => had.without(privileges),
                        false => had.and(privileges),
                    },
                )?;
            }
        }
        Ok(())
    })?;
    Ok(StatementResult::of_tag("ALTER DEFAULT PRIVILEGES"))
}

/// GRANT and REVOKE of privileges.
pub(super) fn grant(statement: &Definition<'_>, grant: &Grant) -> Result<StatementResult> {
    statement.change_catalog(|change| {
        let objects = objects_of(change.catalog(), &grant.objects)?;
        for grantee in &grant.grantees {
            if grantee != PUBLIC {
                change.catalog().roles().require(grantee)?;
            }
            for object in &objects {
                let privileges = privileges_of(grant, object)?;
                match grant.is_revoke {
                    true => change.revoke(object, grantee, privileges)?,
                    false => change.grant(object, grantee, privileges)?,
                }
            }
        }
        Ok(())
    })?;
    Ok(StatementResult::of_tag(match grant.is_revoke {
        true => "REVOKE",
        false => "GRANT",
    }))
}

/// The objects that GRANT or REVOKE names.
///
/// # Errors
/// 42P01, 42883, 3F000 for one that is missing.
pub(super) fn objects_of(catalog: &Catalog, objects: &GrantObjects) -> Result<Vec<Object>> {
    let objects = match objects {
        GrantObjects::Open => Vec::new(),
        GrantObjects::AllTables(schemas) => {
            let schemas = existing(catalog, schemas)?;
            let tables = catalog.tables();
            let views = catalog.views().filter(|view| !view.is_materialized());
            let views = views.map(|view| view.name.as_str());
            let names = tables.map(|(name, _)| name).chain(views);
            let names = names.filter(|name| is_in(name, &schemas));
            names.map(Object::table).collect()
        }
        GrantObjects::AllRoutines(schemas) => {
            let schemas = existing(catalog, schemas)?;
            let routines = catalog.procedures();
            let routines = routines.filter(|_| is_in("", &schemas));
            routines
                .map(|routine| Object::routine(routine.name()))
                .collect()
        }
        GrantObjects::Schemas(names) => {
            let names = existing(catalog, names)?.into_iter();
            names.map(Object::schema).collect()
        }
        GrantObjects::AllSequences(schemas) => {
            let schemas = existing(catalog, schemas)?;
            let sequences = catalog.sequences();
            let sequences = sequences.filter(|it| is_in(it.name(), &schemas));
            sequences.map(|it| Object::sequence(it.name())).collect()
        }
        GrantObjects::Sequences(names) => {
            let sequences = names.iter().map(|name| {
                let position = position_of(name);
                let written = name;
                let name = relation_of(catalog, written)?;
                if catalog.sequence(&name).is_some() {
                    return Ok(Object::sequence(name));
                }
                let (state, message) = match catalog.table(&name) {
                    Some(_) => (
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("\"{}\" is not a sequence", name_in_schema(&name)),
                    ),
                    None => (
                        SqlState::UNDEFINED_TABLE,
                        format!("relation \"{}\" does not exist", written_name(written)),
                    ),
                };
                Err(fail(state, message, position))
            });
            sequences.collect::<Result<_>>()?
        }
        GrantObjects::Tables(names) => {
            let tables = names.iter().map(|name| {
                let position = position_of(name);
                let written = name;
                let name = relation_of(catalog, written)?;
                match catalog.table(&name).is_some() || catalog.view(&name).is_some() {
                    true => Ok(Object::table(name)),
                    false => {
                        let message =
                            format!("relation \"{}\" does not exist", written_name(written));
                        Err(fail(SqlState::UNDEFINED_TABLE, message, position))
                    }
                }
            });
            tables.collect::<Result<_>>()?
        }
        GrantObjects::Routines(routines) => {
            let routines = routines.iter().map(|RoutineSignature { name, .. }| {
                let position = position_of(name);
                let name = object_name(name)?;
                match catalog.procedure(&name) {
                    Some(_) => Ok(Object::routine(name)),
                    None => {
                        let message = format!("could not find a function named \"{name}\"");
                        Err(fail(SqlState::UNDEFINED_FUNCTION, message, position))
                    }
                }
            });
            routines.collect::<Result<_>>()?
        }
    };
    Ok(objects)
}

/// The names of schemas that a statement names.
///
/// # Errors
/// 3F000 for one that there is not.
fn existing(catalog: &Catalog, names: &[sqlparser::ast::Ident]) -> Result<Vec<String>> {
    let names = names
        .iter()
        .map(|name| match crate::compile::name_of(name) {
            name if catalog.has_schema(&name) => Ok(name),
            name => Err(undefined_schema(&name)),
        });
    names.collect()
}

/// Whether a relation is in one of the schemas; the routines, whose name does not matter, are in
/// `public`.
fn is_in(name: &str, schemas: &[String]) -> bool {
    let of = schema_of(name);
    schemas.iter().any(|schema| schema == of)
}

fn privileges_of(grant: &Grant, object: &Object) -> Result<Privileges> {
    match &grant.privileges {
        Some(granted) => privileges_among(granted, object.kind),
        None => Ok(Privileges::of(object.kind)),
    }
}

/// # Errors
/// 0LP01 for one that objects of this kind do not have.
fn privileges_among(granted: &[Privilege], kind: ObjectKind) -> Result<Privileges> {
    let all = Privileges::of(kind);
    let mut privileges = granted.iter();
    if let Some(privilege) = privileges.find(|privilege| !all.contains(**privilege)) {
        let kind = match kind {
            ObjectKind::Table => "relation",
            ObjectKind::Routine => "function",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Schema => "schema",
            ObjectKind::Type => "type",
        };
        let name = privilege.name().to_ascii_uppercase();
        let message = format!("invalid privilege type {name} for {kind}");
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
    }
    Ok(granted.iter().copied().collect())
}

/// Default privileges hold for what any superuser makes.
///
/// # Errors
/// 42704 for a role that is none; 0A000 for one that is no superuser.
fn check_superuser(change: &CatalogChange<'_>, role: &RoleName) -> Result<()> {
    let name = role_meant(change, role)?;
    match change.catalog().roles().require(&name)?.is_superuser {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "default privileges for objects of {name}, which is no superuser"
        ))),
    }
}

/// Whether a role that is no superuser may run a statement that is of its session's temporary
/// objects: one by which no other role's privileges come to count.
pub(super) fn is_free(tree: &Tree) -> bool {
    matches!(
        tree,
        Tree::CreateTable(_)
            | Tree::CreateTableAs(_)
            | Tree::CreateSequence(_)
            | Tree::CreateView(_)
            | Tree::CreateIndex(_)
            | Tree::AlterTable(_)
            | Tree::AlterSequence(_)
            | Tree::AlterObject(_)
            | Tree::Drop(_)
            | Tree::Truncate(_)
            | Tree::Comment(_)
            | Tree::Analyze(_)
    )
}
