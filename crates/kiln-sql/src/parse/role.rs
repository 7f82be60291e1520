//! Statements about roles and their privileges.

use std::fmt;
use std::ops::Range;

use kiln_engine::{ObjectKind, Privilege};
use kiln_storage::error::{Position, Result};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::drop::{RoutineSignature, routine_signature};
use super::role_setting;
use super::schema;
use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// A role as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// The role called so.
    Name(String),
    /// The session's role.
    Current,
}

/// CREATE or ALTER ROLE.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleDefinition {
    /// Who.
    pub name: RoleName,
    /// Where it is named.
    pub position: Position,
    /// Whether it may do everything, if that is said.
    pub superuser: Option<bool>,
    /// Whether it may connect, if that is said.
    pub login: Option<bool>,
    /// Its password or secret, if one is given; `Some(None)` takes it away.
    pub password: Option<Option<String>>,
    /// The roles that a new one becomes a member of.
    pub in_roles: Vec<String>,
    /// The members that a new one has.
    pub members: Vec<String>,
}

/// DROP ROLE.
#[derive(Clone, Debug, PartialEq)]
pub struct DropRole {
    /// A missing role is no error.
    pub if_exists: bool,
    /// Who; never empty.
    pub names: Vec<String>,
}

/// REASSIGN OWNED or DROP OWNED.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// Whose; never empty.
    pub by: Vec<RoleName>,
    /// To whom it goes; `None` for DROP OWNED.
    pub to: Option<RoleName>,
}

/// GRANT or REVOKE of privileges for objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// Whether the privileges are taken away.
    pub is_revoke: bool,
    /// Which; `None` for all that such objects have.
    pub privileges: Option<Vec<Privilege>>,
    /// For which objects.
    pub objects: GrantObjects,
    /// To or from whom.
    pub grantees: Vec<String>,
}

/// GRANT or REVOKE of membership in roles.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRoles {
    /// Whether memberships end.
    pub is_revoke: bool,
    /// In which; never empty.
    pub roles: Vec<String>,
    /// Of whom; never empty.
    pub members: Vec<String>,
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultPrivileges {
    /// Whose objects are meant; none for those of the session's role.
    pub creators: Vec<RoleName>,
    /// The schemas; none for all.
    pub schemas: Vec<ast::Ident>,
    /// Whether the privileges are taken away.
    pub is_revoke: bool,
    /// Which; `None` for all that such objects have.
    pub privileges: Option<Vec<Privilege>>,
    /// For which kind of objects.
    pub kind: ObjectKind,
    /// To or from whom.
    pub grantees: Vec<String>,
}

/// What privileges are granted for.
#[derive(Clone, Debug, PartialEq)]
pub enum GrantObjects {
    /// These tables.
    Tables(Vec<ast::ObjectName>),
    /// All tables of these schemas.
    AllTables(Vec<ast::Ident>),
    /// These functions and procedures.
    Routines(Vec<RoutineSignature>),
    /// All functions and procedures of these schemas.
    AllRoutines(Vec<ast::Ident>),
    /// These sequences.
    Sequences(Vec<ast::ObjectName>),
    /// All sequences of these schemas.
    AllSequences(Vec<ast::Ident>),
    /// These schemas.
    Schemas(Vec<ast::Ident>),
    /// The only database, which all roles may use.
    Open,
}

/// As the log keeps it.
impl fmt::Display for RoleDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            RoleName::Name(name) => write!(f, "ROLE \"{}\"", name.replace('"', "\"\""))?,
            RoleName::Current => f.write_str("ROLE CURRENT_USER")?,
        }
        for (value, word) in [(self.superuser, "SUPERUSER"), (self.login, "LOGIN")] {
            match value {
                Some(true) => write!(f, " {word}")?,
                Some(false) => write!(f, " NO{word}")?,
                None => {}
            }
        }
        match &self.password {
            Some(Some(password)) => write!(f, " PASSWORD '{}'", password.replace('\'', "''"))?,
            Some(None) => f.write_str(" PASSWORD NULL")?,
            None => {}
        }
        for (roles, words) in [(&self.in_roles, "IN ROLE"), (&self.members, "ROLE")] {
            for (at, role) in roles.iter().enumerate() {
                let before = if at == 0 { words } else { "," };
                write!(f, " {before} \"{}\"", role.replace('"', "\"\""))?;
            }
        }
        Ok(())
    }
}

/// Parses CREATE ROLE, USER or GROUP, whose kind is at `kind`.
pub(super) fn create(tokens: &Tokens<'_>, range: Range<usize>, kind: usize) -> Result<Statement> {
    let mut definition = attributes(tokens, kind + 1..range.end)?;
    if definition.name == RoleName::Current {
        return Err(tokens.syntax_error(kind + 1));
    }
    let is_user = tokens.word(kind) == "user";
    definition.login.get_or_insert(is_user);
    Ok(Statement::CreateRole(Box::new(definition)))
}

/// Parses ALTER ROLE, USER or GROUP.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let name = range.start + 2;
    if tokens.word(range.start + 1) == "group"
        && matches!(tokens.word(name + 1), "add" | "drop")
        && tokens.word(name + 2) == "user"
    {
        return Ok(Statement::GrantRoles(Box::new(GrantRoles {
            is_revoke: tokens.word(name + 1) == "drop",
            roles: names(tokens, name..name + 1)?,
            members: names(tokens, name + 3..range.end)?,
        })));
    }
    if let Some(setting) = role_setting::of_role(tokens, range.clone(), name)? {
        return Ok(setting);
    }
    if tokens.word(name + 1) == "rename" {
        return Err(tokens.unsupported(name + 1, "ALTER ROLE … RENAME"));
    }
    let definition = attributes(tokens, name..range.end)?;
    if !definition.in_roles.is_empty() || !definition.members.is_empty() {
        return Err(tokens.syntax_error(name + 1));
    }
    Ok(Statement::AlterRole(Box::new(definition)))
}

/// Parses a role's name and attributes.
fn attributes(tokens: &Tokens<'_>, range: Range<usize>) -> Result<RoleDefinition> {
    let mut definition = RoleDefinition {
        name: role(tokens, range.start)?,
        position: tokens.position(range.start),
        superuser: None,
        login: None,
        password: None,
        in_roles: Vec::new(),
        members: Vec::new(),
    };
    let mut at = range.start + 1;
    if tokens.word(at) == "with" {
        at += 1;
    }
    while at < range.end {
        let word = tokens.word(at);
        let is_new = match word {
            "superuser" => definition.superuser.replace(true).is_none(),
            "nosuperuser" => definition.superuser.replace(false).is_none(),
            "login" => definition.login.replace(true).is_none(),
            "nologin" => definition.login.replace(false).is_none(),
            // What is so anyway.
            "nocreatedb" | "nocreaterole" | "noreplication" | "nobypassrls" | "inherit" => true,
            "encrypted" if tokens.word(at + 1) == "password" => true,
            "password" => {
                at += 1;
                let password = match tokens.get(at) {
                    Token::SingleQuotedString(password) => Some(password.clone()),
                    _ if tokens.word(at) == "null" => None,
                    _ => return Err(tokens.syntax_error(at)),
                };
                definition.password.replace(password).is_none()
            }
            "createdb" | "createrole" | "replication" | "bypassrls" | "noinherit" => {
                let feature = format!("the role attribute {}", word.to_ascii_uppercase());
                return Err(tokens.unsupported(at, &feature));
            }
            "in" | "role" | "user" => {
                let is_in = word == "in";
                if is_in && !matches!(tokens.word(at + 1), "role" | "group") {
                    return Err(tokens.syntax_error(at + 1));
                }
                let first = at + 1 + usize::from(is_in);
                let mut end = first + 1;
                while *tokens.get(end) == Token::Comma && end < range.end {
                    end += 2;
                }
                let listed = names(tokens, first..end.min(range.end))?;
                at = end - 1;
                let into = match is_in {
                    true => &mut definition.in_roles,
                    false => &mut definition.members,
                };
                let is_first = into.is_empty();
                *into = listed;
                is_first
            }
            "connection" | "valid" | "admin" | "sysid" => {
                let feature = format!("the role option {}", word.to_ascii_uppercase());
                return Err(tokens.unsupported(at, &feature));
            }
            _ => return Err(tokens.syntax_error(at)),
        };
        if !is_new {
            let state = kiln_storage::error::SqlState::SYNTAX_ERROR;
            return Err(tokens.error_at(at, state, "conflicting or redundant options"));
        }
        at += 1;
    }
    Ok(definition)
}

/// Parses DROP ROLE, USER or GROUP.
pub(super) fn drop(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut start = range.start + 2;
    let if_exists = tokens.words(start, &["if", "exists"]);
    if if_exists {
        start += 2;
    }
    Ok(Statement::DropRole(DropRole {
        if_exists,
        names: names(tokens, start..range.end)?,
    }))
}

/// Parses REASSIGN OWNED and DROP OWNED.
pub(super) fn owned(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let is_drop = tokens.word(range.start) == "drop";
    if !tokens.words(range.start + 1, &["owned", "by"]) {
        return Err(tokens.syntax_error(range.start + 1));
    }
    let roles = range.start + 3..range.end;
    let (roles, to) = if is_drop {
        match tokens.word(range.end - 1) {
            "cascade" | "restrict" => (roles.start..range.end - 1, None),
            _ => (roles, None),
        }
    } else {
        let to = roles.clone().find(|at| tokens.word(*at) == "to");
        let to = to.ok_or_else(|| tokens.syntax_error(range.end))?;
        if to + 2 != range.end {
            return Err(tokens.syntax_error((to + 2).min(range.end)));
        }
        (roles.start..to, Some(role(tokens, to + 1)?))
    };
    if roles.is_empty() {
        return Err(tokens.syntax_error(roles.start));
    }
    let by = tokens.split(roles).into_iter().map(|part| {
        let named = role(tokens, part.start)?;
        match part.len() {
            1 => Ok(named),
            _ => Err(tokens.syntax_error(part.start + 1)),
        }
    });
    let by = by.collect::<Result<_>>()?;
    Ok(Statement::Owned(Owned { by, to }))
}

/// Parses GRANT and REVOKE.
pub(super) fn grant(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let is_revoke = tokens.word(range.start) == "revoke";
    let mut end = range.end;
    if is_revoke && matches!(tokens.word(end - 1), "cascade" | "restrict") {
        end -= 1;
    }
    let start = range.start + 1;
    if tokens.words(start, &["grant", "option", "for"]) {
        return Err(tokens.unsupported(start, "GRANT OPTION"));
    }
    let find = |from: usize, word: &str| {
        let mut rest = from..end;
        rest.find(|at| tokens.word(*at) == word)
    };
    let Some(on) = find(start, "on") else {
        return grant_roles(tokens, start..end, is_revoke);
    };
    let to =
        find(on, if is_revoke { "from" } else { "to" }).ok_or_else(|| tokens.syntax_error(end))?;
    if let Some(with) = find(to, "with") {
        return Err(tokens.unsupported(with, "WITH GRANT OPTION"));
    }
    if let Some(by) = find(to, "granted") {
        return Err(tokens.unsupported(by, "GRANTED BY"));
    }
    Ok(Statement::Grant(Box::new(Grant {
        is_revoke,
        privileges: privileges(tokens, start..on, tokens.word(on + 1))?,
        objects: objects(tokens, on + 1..to)?,
        grantees: names(tokens, to + 1..end)?,
    })))
}

/// Parses GRANT and REVOKE of roles, behind that word.
fn grant_roles(tokens: &Tokens<'_>, range: Range<usize>, is_revoke: bool) -> Result<Statement> {
    let word = if is_revoke { "from" } else { "to" };
    let mut rest = range.clone();
    let to = rest.find(|at| tokens.word(*at) == word);
    let to = to.ok_or_else(|| tokens.syntax_error(range.end))?;
    let mut end = range.end;
    if tokens.words(range.start, &["admin", "option", "for"]) {
        return Err(tokens.unsupported(range.start, "ADMIN OPTION"));
    }
    for (word, feature) in [("with", "WITH ADMIN OPTION"), ("granted", "GRANTED BY")] {
        if let Some(at) = (to..end).find(|at| tokens.word(*at) == word) {
            return Err(tokens.unsupported(at, feature));
        }
    }
    if is_revoke && matches!(tokens.word(end - 1), "cascade" | "restrict") {
        end -= 1;
    }
    Ok(Statement::GrantRoles(Box::new(GrantRoles {
        is_revoke,
        roles: names(tokens, range.start..to)?,
        members: names(tokens, to + 1..end)?,
    })))
}

/// Parses ALTER DEFAULT PRIVILEGES.
pub(super) fn default_privileges(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 3;
    let (mut creators, mut schemas) = (Vec::new(), Vec::new());
    let end_of_list = |from: usize| {
        let mut at = from + 1;
        while at < range.end && *tokens.get(at) == Token::Comma {
            at += 2;
        }
        at.min(range.end)
    };
    while !matches!(tokens.word(at), "grant" | "revoke") {
        if tokens.word(at) == "for" && matches!(tokens.word(at + 1), "role" | "user") {
            let end = end_of_list(at + 2);
            for part in tokens.split(at + 2..end) {
                creators.push(role(tokens, part.start)?);
            }
            at = end;
        } else if tokens.words(at, &["in", "schema"]) {
            let end = end_of_list(at + 2);
            schemas = schema::names(tokens, at + 2..end)?;
            at = end;
        } else {
            return Err(tokens.syntax_error(at));
        }
    }
    let is_revoke = tokens.word(at) == "revoke";
    if tokens.words(at + 1, &["grant", "option", "for"]) {
        return Err(tokens.unsupported(at + 1, "GRANT OPTION"));
    }
    let mut end = range.end;
    if is_revoke && matches!(tokens.word(end - 1), "cascade" | "restrict") {
        end -= 1;
    }
    if let Some(with) = (at..end).find(|at| tokens.word(*at) == "with") {
        return Err(tokens.unsupported(with, "WITH GRANT OPTION"));
    }
    let on = (at + 1..end).find(|at| tokens.word(*at) == "on");
    let on = on.ok_or_else(|| tokens.syntax_error(end))?;
    let kind = match tokens.word(on + 1) {
        "tables" => ObjectKind::Table,
        "sequences" => ObjectKind::Sequence,
        "functions" | "routines" => ObjectKind::Routine,
        "schemas" => ObjectKind::Schema,
        "types" => return Err(tokens.unsupported(on + 1, "a privilege for types")),
        _ => return Err(tokens.syntax_error(on + 1)),
    };
    if tokens.word(on + 2) != if is_revoke { "from" } else { "to" } {
        return Err(tokens.syntax_error(on + 2));
    }
    Ok(Statement::DefaultPrivileges(Box::new(DefaultPrivileges {
        creators,
        schemas,
        is_revoke,
        privileges: privileges(tokens, at + 1..on, tokens.word(on + 1))?,
        kind,
        grantees: names(tokens, on + 3..end)?,
    })))
}

fn privileges(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    of: &str,
) -> Result<Option<Vec<Privilege>>> {
    if tokens.word(range.start) == "all" {
        let words = match tokens.word(range.start + 1) {
            "privileges" => 2,
            _ => 1,
        };
        return match range.len() == words {
            true => Ok(None),
            false => Err(tokens.unsupported(range.start + words, "privileges for columns")),
        };
    }
    let mut found = Vec::new();
    for part in tokens.split(range) {
        let word = tokens.word(part.start);
        let mut all = Privilege::ALL.into_iter();
        let known = all.find(|privilege| privilege.name() == word);
        match (known, word) {
            (Some(_), _) if part.len() > 1 => {
                return Err(tokens.unsupported(part.start + 1, "privileges for columns"));
            }
            (Some(Privilege::Create), _) if of == "database" => {
                return Err(tokens.unsupported(part.start, "the privilege CREATE of a database"));
            }
            (Some(privilege), _) => found.push(privilege),
            // There is nothing that they would allow.
            (None, "references" | "trigger" | "connect") => {}
            (None, "temporary" | "temp" | "maintain" | "set") => {
                let feature = format!("the privilege {}", word.to_ascii_uppercase());
                return Err(tokens.unsupported(part.start, &feature));
            }
            _ => return Err(tokens.syntax_error(part.start)),
        }
    }
    Ok(Some(found))
}

fn objects(tokens: &Tokens<'_>, range: Range<usize>) -> Result<GrantObjects> {
    let first = range.start;
    if tokens.word(first) == "all" {
        if !tokens.words(first + 2, &["in", "schema"]) {
            return Err(tokens.syntax_error(first + 2));
        }
        let schemas = schema::names(tokens, first + 4..range.end)?;
        return match tokens.word(first + 1) {
            "tables" => Ok(GrantObjects::AllTables(schemas)),
            "functions" | "procedures" | "routines" => Ok(GrantObjects::AllRoutines(schemas)),
            "sequences" => Ok(GrantObjects::AllSequences(schemas)),
            _ => Err(tokens.syntax_error(first + 1)),
        };
    }
    match tokens.word(first) {
        "schema" => schema::names(tokens, first + 1..range.end).map(GrantObjects::Schemas),
        "database" => Ok(GrantObjects::Open),
        word @ ("type" | "domain") if range.len() > 1 => {
            let feature = format!("a privilege for a {word}");
            Err(tokens.unsupported(first, &feature))
        }
        "sequence" => {
            let parts = tokens.split(first + 1..range.end).into_iter();
            let names = parts.map(|part| types::identifiers(tokens, part));
            let names = names.map(|name| Ok(ast::ObjectName::from(name?)));
            Ok(GrantObjects::Sequences(names.collect::<Result<_>>()?))
        }
        "function" | "procedure" | "routine" => {
            let parts = tokens.split(first + 1..range.end).into_iter();
            let routines = parts.map(|part| routine_signature(tokens, part));
            Ok(GrantObjects::Routines(routines.collect::<Result<_>>()?))
        }
        word => {
            let start = if word == "table" { first + 1 } else { first };
            let parts = tokens.split(start..range.end).into_iter();
            let names = parts.map(|part| types::identifiers(tokens, part));
            let names = names.map(|name| Ok(ast::ObjectName::from(name?)));
            Ok(GrantObjects::Tables(names.collect::<Result<_>>()?))
        }
    }
}

fn names(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for part in tokens.split(range) {
        // GROUP before a name means nothing any more.
        let start = match tokens.word(part.start) {
            "group" if part.len() == 2 => part.start + 1,
            _ => part.start,
        };
        match role(tokens, start)? {
            RoleName::Name(name) if start + 1 == part.end => names.push(name),
            RoleName::Current => {
                return Err(tokens.unsupported(start, "CURRENT_USER here"));
            }
            RoleName::Name(_) => return Err(tokens.syntax_error(start + 1)),
        }
    }
    Ok(names)
}

/// The role that the statement names at `at`.
pub(super) fn role(tokens: &Tokens<'_>, at: usize) -> Result<RoleName> {
    match tokens.word(at) {
        "current_user" | "current_role" | "session_user" => Ok(RoleName::Current),
        _ => Ok(RoleName::Name(types::identifier(tokens, at)?.value)),
    }
}
