//! Roles and privileges of a catalog as text.

use std::fmt;

use kiln_storage::error::Result;

use crate::catalog::text_form::{Counted, Reader};
use crate::roles::{Grantees, Object, ObjectKind, PUBLIC, Privilege, Privileges, Role, Roles};

/// Writes the roles and privileges of a fresh database as nothing.
pub(super) fn write(f: &mut fmt::Formatter<'_>, roles: &Roles) -> fmt::Result {
    let fresh = Roles::default();
    for role in roles.iter() {
        let Role {
            name,
            is_superuser,
            can_login,
            secret,
        } = &**role;
        if fresh.get(name) == Some(role) {
            continue;
        }
        let superuser = if *is_superuser { " superuser" } else { "" };
        let login = if *can_login { " login" } else { "" };
        write!(f, "role {}{superuser}{login}", Counted(name))?;
        if let Some(secret) = secret {
            write!(f, " secret {}", Counted(secret))?;
        }
        writeln!(f)?;
    }
    for (Object { kind, name }, grantees) in roles.grants() {
        writeln!(f, "privileges {} {}", kind.word(), Counted(name))?;
        write_grantees(f, grantees)?;
    }
    for (Object { kind, name }, owner) in roles.owners() {
        let (name, owner) = (Counted(name), Counted(owner));
        writeln!(f, "owner {} {name} {owner}", kind.word())?;
    }
    for (member, role) in roles.memberships() {
        writeln!(f, "member {} of {}", Counted(member), Counted(role))?;
    }
    for (kind, schema, grantees) in roles.defaults() {
        write!(f, "privileges-of-new {}", kind.word())?;
        if let Some(schema) = schema {
            write!(f, " in {}", Counted(schema))?;
        }
        writeln!(f)?;
        write_grantees(f, grantees)?;
    }
    for (role, settings) in roles.settings() {
        for (name, value) in settings {
            f.write_str("setting")?;
            if let Some(role) = role {
                write!(f, " of {}", Counted(role))?;
            }
            writeln!(f, " {} {}", Counted(name), Counted(value))?;
        }
    }
    Ok(())
}

fn write_grantees(f: &mut fmt::Formatter<'_>, grantees: &Grantees) -> fmt::Result {
    for (grantee, privileges) in grantees {
        write!(f, "  of {}", Counted(grantee))?;
        for privilege in privileges.iter() {
            write!(f, " {}", privilege.name())?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// # Errors
/// XX001 for a kind that there is not.
fn read_object(reader: &mut Reader<'_>) -> Result<Object> {
    Ok(match reader.word() {
        "table" => Object::table(reader.qualified()?),
        "routine" => Object::routine(reader.counted()?),
        "sequence" => Object::sequence(reader.qualified()?),
        "schema" => Object::schema(reader.counted()?),
        "type" => Object::of_type(reader.counted()?),
        _ => return Err(reader.damaged("the kind of an object before it")),
    })
}

/// # Errors
/// XX001 for a grantee that is not among the roles.
fn read_grantees(reader: &mut Reader<'_>, roles: &Roles) -> Result<Grantees> {
    let mut grantees = Grantees::new();
    while reader.takes("of") {
        let grantee = reader.counted()?;
        if grantee != PUBLIC && roles.get(grantee).is_none() {
            return Err(reader.damaged("a known role before it"));
        }
        let mut privileges = Privileges::NONE;
        let next = |reader: &mut Reader<'_>| {
            let mut all = Privilege::ALL.into_iter();
            all.find(|privilege| reader.takes(privilege.name()))
        };
        while let Some(privilege) = next(reader) {
            privileges = privileges.and([privilege].into_iter().collect());
        }
        grantees.insert(grantee.to_owned(), privileges);
    }
    Ok(grantees)
}

/// # Errors
/// XX001.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Roles> {
    let mut roles = Roles::default();
    while reader.takes("role") {
        let name = reader.counted()?;
        let is_superuser = reader.takes("superuser");
        let can_login = reader.takes("login");
        let secret = match reader.takes("secret") {
            true => Some(reader.counted()?.to_owned()),
            false => None,
        };
        let role = Role {
            name: name.to_owned(),
            is_superuser,
            can_login,
            secret,
        };
        let known = match roles.get(name) {
            Some(_) => roles.replace(role),
            None => roles.create(role),
        };
        known.map_err(|_| reader.damaged("another role before it"))?;
    }
    while reader.takes("privileges") {
        let object = read_object(reader)?;
        let grantees = read_grantees(reader, &roles)?;
        roles.restore(object, grantees);
    }
    while reader.takes("owner") {
        let object = read_object(reader)?;
        let owner = reader.counted()?;
        let set = roles.set_owner(object, owner);
        set.map_err(|_| reader.damaged("a known role before it"))?;
    }
    while reader.takes("member") {
        let member = reader.counted()?;
        reader.expect("of")?;
        let role = reader.counted()?;
        let added = roles.add_member(member, role);
        added.map_err(|_| reader.damaged("two known roles before it"))?;
    }
    while reader.takes("privileges-of-new") {
        let word = reader.word();
        let mut kinds = ObjectKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.word() == word);
        let kind = kind.ok_or_else(|| reader.damaged("the kind of an object before it"))?;
        let schema = match reader.takes("in") {
            true => Some(reader.counted()?.to_owned()),
            false => None,
        };
        let grantees = read_grantees(reader, &roles)?;
        roles.restore_defaults(kind, schema, grantees);
    }
    while reader.takes("setting") {
        let role = match reader.takes("of") {
            true => Some(reader.counted()?),
            false => None,
        };
        let (name, value) = (reader.counted()?.to_owned(), reader.counted()?.to_owned());
        let changed = roles.change_settings(role, |settings| {
            settings.insert(name, value);
        });
        changed.map_err(|_| reader.damaged("a known role before it"))?;
    }
    Ok(roles)
}
