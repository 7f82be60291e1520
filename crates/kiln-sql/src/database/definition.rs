//! Statements that define: tables, indexes, functions, and how columns are split.

use std::cell::RefCell;

use kiln_engine::{Catalog, CatalogChange, CatalogStatement, Engine, SearchPath, Source};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_storage::error::{Error, Result};
use sqlparser::ast;

use super::panics::caught;
use super::result::{Notice, StatementResult};
use crate::catalog::View;
use crate::compile::{missing_schema, relation_name, undefined_schema};
use crate::parse::{Drop, Statement as Tree};

/// A statement that defines, on its way into a database's catalog.
pub(super) struct Definition<'a> {
    pub(super) source: Arc<Source>,
    /// The role that runs it; `None` for that which a log has kept.
    role: Option<String>,
    /// Whether its session writes texts in another style than the default.
    has_style: bool,
    change: Change<'a>,
}

/// How it changes the catalog.
enum Change<'a> {
    /// By itself; as it did when it was run first, if a log has kept that.
    OfEngine(&'a Engine, Option<&'a CatalogStatement>),
    /// As a part of a transaction block, by what this runs.
    OfBlock(&'a RunChange<'a>),
}

type RunChange<'a> =
    dyn Fn(&mut dyn FnMut(&mut CatalogChange<'_>) -> Result<()>) -> Result<()> + 'a;

impl<'a> Definition<'a> {
    /// The statement of a client with this role.
    pub fn new(
        engine: &'a Engine,
        source: Source,
        (role, has_style): (&str, bool),
    ) -> Definition<'a> {
        Definition {
            source: Arc::new(source),
            role: Some(role.to_owned()),
            has_style,
            change: Change::OfEngine(engine, None),
        }
    }

    /// A statement that a log kept.
    pub fn again(engine: &'a Engine, statement: &'a CatalogStatement) -> Definition<'a> {
        Definition {
            source: statement.source.clone(),
            role: None,
            has_style: false,
            change: Change::OfEngine(engine, Some(statement)),
        }
    }

    /// The role that runs it, unless a log has kept it.
    pub(super) fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Changes the catalog, or leaves it as it is when `change` fails or panics.
    pub(super) fn change_catalog<T>(
        &self,
        mut change: impl FnMut(&mut CatalogChange<'_>) -> Result<T>,
    ) -> Result<T> {
        let (engine, known) = match self.change {
            Change::OfEngine(engine, known) => (engine, known),
            Change::OfBlock(run) => {
                let mut changed = None;
                run(&mut |catalog| {
                    changed = Some(self.seen(catalog, &mut change)?);
                    Ok(())
                })?;
                return changed.ok_or_else(|| Error::internal("a block runs what it is given"));
            }
        };
        engine.change_catalog(|catalog| {
            match known {
                Some(known) => catalog.redo(known)?,
                None => catalog.set_statement(self.source.clone()),
            }
            self.seen(catalog, &mut change)
        })
    }
}

impl Definition<'_> {
    /// Runs `change` with the names of the statement looked for along its path.
    fn seen<T>(
        &self,
        catalog: &mut CatalogChange<'_>,
        change: &mut impl FnMut(&mut CatalogChange<'_>) -> Result<T>,
    ) -> Result<T> {
        catalog.see_along(&self.source.path);
        if let Some(role) = &self.role {
            catalog.set_owner(role);
        }
        catalog.set_has_style(self.has_style);
        let changed = caught(|| change(catalog));
        catalog.set_has_style(false);
        catalog.see_along(&SearchPath::default());
        changed
    }
}

/// The qualified name of what a statement drops; `None` where its schema is missing and that is no
/// error.
///
/// # Errors
/// 3F000 for a schema that there is not.
pub(super) fn dropped(
    catalog: &Catalog,
    statement: &Drop,
    written: &ast::ObjectName,
    notices: &mut Vec<Notice>,
) -> Result<Option<String>> {
    let view = View::of(catalog);
    match missing_schema(&view, written)? {
        None => relation_name(&view, written).map(Some),
        Some(schema) if statement.if_exists => {
            let message = format!("schema \"{schema}\" does not exist, skipping");
            notices.push(Notice::new(message));
            Ok(None)
        }
        Some(schema) => Err(undefined_schema(&schema)),
    }
}

/// A statement that defines, in a transaction block.
pub(super) struct DefinitionOfBlock {
    tree: Arc<Tree>,
    source: Arc<Source>,
    role: String,
    has_style: bool,
    /// What it gave when it was tried last.
    result: Mutex<Option<StatementResult>>,
}

impl DefinitionOfBlock {
    /// One of a client with this role.
    pub fn new(
        tree: Arc<Tree>,
        source: Source,
        (role, has_style): (&str, bool),
    ) -> DefinitionOfBlock {
        DefinitionOfBlock {
            tree,
            role: role.to_owned(),
            has_style,
            source: Arc::new(source),
            result: Mutex::default(),
        }
    }

    /// What it gave.
    pub fn take_result(&self) -> StatementResult {
        lock(&self.result).take().unwrap_or_default()
    }
}

impl kiln_engine::Definition for DefinitionOfBlock {
    fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn define(&self, change: &mut CatalogChange<'_>) -> Result<()> {
        let change = RefCell::new(change);
        let run = |body: &mut dyn FnMut(&mut CatalogChange<'_>) -> Result<()>| {
            body(&mut change.borrow_mut())
        };
        let definition = Definition {
            source: self.source.clone(),
            role: Some(self.role.clone()),
            has_style: self.has_style,
            change: Change::OfBlock(&run),
        };
        *lock(&self.result) = Some(definition.run(&self.tree)?);
        Ok(())
    }
}

/// Whether a table, an index, a sequence or a view has this name.
pub(super) fn is_other_relation(change: &CatalogChange<'_>, name: &str) -> bool {
    let catalog = change.catalog();
    change.index_owner(name).is_some()
        || catalog.table(name).is_some()
        || catalog.sequence(name).is_some()
        || catalog.view(name).is_some()
}
