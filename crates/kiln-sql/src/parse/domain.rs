//! CREATE DOMAIN and ALTER DOMAIN.

use std::ops::Range;

use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::{self, ColumnOption, DataType, Expr, Ident, ObjectName};

use super::alter::{self, NewName, ObjectChange};
use super::sequence;
use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `CREATE DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDomain {
    /// Its name.
    pub name: ObjectName,
    /// The type that it is over.
    pub data_type: DataType,
    /// `COLLATE`.
    pub collation: Option<ObjectName>,
    /// `DEFAULT`.
    pub default: Option<Expr>,
    /// `NOT NULL`.
    pub not_null: bool,
    /// `CHECK`, in their order.
    pub checks: Vec<DomainCheck>,
}

/// A check of a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainCheck {
    /// Its name, if it was given one.
    pub name: Option<Ident>,
    /// What must hold for VALUE.
    pub condition: Expr,
    /// `NOT VALID`: the rows that there are need not satisfy it.
    pub not_valid: bool,
}

/// `ALTER DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDomain {
    /// The domain.
    pub name: ObjectName,
    /// What becomes of it.
    pub change: DomainChange,
}

/// What an [`AlterDomain`] changes.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainChange {
    /// `SET DEFAULT`, or `DROP DEFAULT`.
    Default(Option<Expr>),
    /// `SET NOT NULL`, or `DROP NOT NULL`.
    NotNull(bool),
    /// `ADD`.
    AddCheck(DomainCheck),
    /// `DROP CONSTRAINT`.
    DropConstraint {
        /// The constraint.
        name: Ident,
        /// One that is missing is no error.
        if_exists: bool,
    },
    /// `VALIDATE CONSTRAINT`.
    Validate(Ident),
    /// `RENAME CONSTRAINT from TO to`.
    RenameConstraint(Ident, Ident),
    /// `RENAME TO`.
    Rename(Ident),
    /// `OWNER TO`.
    Owner(super::RoleName),
}

/// Parses CREATE DOMAIN, whose name stands at `at`.
pub(super) fn create(tokens: &Tokens<'_>, range: Range<usize>, at: usize) -> Result<Statement> {
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, after) = sequence::name(tokens, at..range.end)?;
    let start = after + usize::from(tokens.word(after) == "as");
    if start >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    // What follows a domain's name is what follows a column's.
    let parts = [after - 1..after, start..range.end];
    let column = tokens.sql_parts(None, &parts, |parser| parser.parse_column_def())?;
    let mut created = CreateDomain {
        name,
        data_type: column.data_type,
        collation: None,
        default: None,
        not_null: false,
        checks: Vec::new(),
    };
    let mut nullability: Option<bool> = None;
    for option in column.options {
        let refuse = |message: &str| Err(tokens.error_at(start, SqlState::SYNTAX_ERROR, message));
        match option.option {
            ColumnOption::Null | ColumnOption::NotNull => {
                let not_null = option.option == ColumnOption::NotNull;
                if nullability.is_some_and(|known| known != not_null) {
                    return refuse("conflicting NULL/NOT NULL constraints");
                }
                nullability = Some(not_null);
                created.not_null = not_null;
            }
            ColumnOption::Default(_) if created.default.is_some() => {
                return refuse("multiple default expressions");
            }
            ColumnOption::Default(expr) => created.default = Some(expr),
            ColumnOption::Collation(collation) => created.collation = Some(collation),
            ColumnOption::Check(check) => created.checks.push(DomainCheck {
                name: option.name,
                condition: *check.expr,
                not_valid: false,
            }),
            ColumnOption::Unique(_) => {
                return refuse("unique constraints not possible for domains");
            }
            ColumnOption::PrimaryKey(_) => {
                return refuse("primary key constraints not possible for domains");
            }
            ColumnOption::ForeignKey(_) => {
                return refuse("foreign key constraints not possible for domains");
            }
            _ => return Err(tokens.syntax_error(start)),
        }
    }
    Ok(Statement::CreateDomain(Box::new(created)))
}

/// Parses ALTER DOMAIN.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 2;
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, at) = sequence::name(tokens, at..range.end)?;
    let change = change(tokens, at..range.end)?;
    Ok(Statement::AlterDomain(Box::new(AlterDomain {
        name,
        change,
    })))
}

fn change(tokens: &Tokens<'_>, range: Range<usize>) -> Result<DomainChange> {
    let at = range.start;
    let (change, after) = match (tokens.word(at), tokens.word(at + 1)) {
        ("set", "default") => {
            let expr = tokens.sql(at + 2..range.end, |parser| parser.parse_expr())?;
            (DomainChange::Default(Some(expr)), range.end)
        }
        ("drop", "default") => (DomainChange::Default(None), at + 2),
        (word @ ("set" | "drop"), "not") if tokens.word(at + 2) == "null" => {
            (DomainChange::NotNull(word == "set"), at + 3)
        }
        ("add", _) => {
            let added = added(tokens, at + 1..range.end)?;
            (DomainChange::AddCheck(added), range.end)
        }
        ("drop", "constraint") => {
            let if_exists = tokens.words(at + 2, &["if", "exists"]);
            let at = at + if if_exists { 4 } else { 2 };
            let name = types::identifier(tokens, at)?;
            // Nothing depends on a check of a domain.
            let behind = usize::from(matches!(tokens.word(at + 1), "cascade" | "restrict"));
            (
                DomainChange::DropConstraint { name, if_exists },
                at + 1 + behind,
            )
        }
        ("validate", "constraint") => {
            let name = types::identifier(tokens, at + 2)?;
            (DomainChange::Validate(name), at + 3)
        }
        ("rename", "constraint") => {
            let from = types::identifier(tokens, at + 2)?;
            if tokens.word(at + 3) != "to" {
                return Err(tokens.syntax_error(at + 3));
            }
            let to = types::identifier(tokens, at + 4)?;
            (DomainChange::RenameConstraint(from, to), at + 5)
        }
        ("set", "schema") => {
            return Err(tokens.unsupported(at, "ALTER DOMAIN … SET SCHEMA"));
        }
        _ => match alter::object_change(tokens, range.clone())? {
            Some(ObjectChange::Rename(NewName::Name(to))) => (DomainChange::Rename(to), range.end),
            Some(ObjectChange::Rename(NewName::Schema(_))) => {
                return Err(tokens.unsupported(at, "a domain of another schema than public"));
            }
            Some(ObjectChange::Owner(role)) => (DomainChange::Owner(role), range.end),
            _ => return Err(tokens.syntax_error(at.min(range.end))),
        },
    };
    match after == range.end {
        true => Ok(change),
        false => Err(tokens.syntax_error(after.min(range.end))),
    }
}

/// Parses what follows ADD.
fn added(tokens: &Tokens<'_>, range: Range<usize>) -> Result<DomainCheck> {
    let mut end = range.end;
    let not_valid = end >= range.start + 2 && tokens.words(end - 2, &["not", "valid"]);
    if not_valid {
        end -= 2;
    }
    let parse =
        |parser: &mut sqlparser::parser::Parser<'_>| parser.parse_optional_table_constraint();
    let refuse = |message: &str| {
        let state = SqlState::SYNTAX_ERROR;
        Err(tokens.error_at(range.start, state, message))
    };
    match tokens.sql(range.start..end, parse)? {
        Some(ast::TableConstraint::Check(check)) => Ok(DomainCheck {
            name: check.name,
            condition: *check.expr,
            not_valid,
        }),
        Some(ast::TableConstraint::PrimaryKey(_)) => {
            refuse("primary key constraints not possible for domains")
        }
        Some(ast::TableConstraint::Unique(_)) => {
            refuse("unique constraints not possible for domains")
        }
        Some(ast::TableConstraint::ForeignKey(_)) => {
            refuse("foreign key constraints not possible for domains")
        }
        _ => Err(tokens.syntax_error(range.start)),
    }
}
