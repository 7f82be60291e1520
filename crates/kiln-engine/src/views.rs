//! Views: queries that have names.
//!
//! A view has no rows of its own. The catalog keeps the text of its query, the names and types of
//! its columns, and what the query names: what a statement that uses the view does follows from
//! these.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;

use kiln_platform::sync::Arc;
use kiln_storage::error::Error;

use crate::catalog::Catalog;
use crate::change::{CatalogChange, duplicate};
use crate::numbers::NumberedObject;
use crate::roles::Object;
use crate::schemas::SearchPath;

/// A view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<(String, DataType)>,
    /// The query, in which no `*` stands for columns.
    pub query: String,
    /// Along which the names of the query without a schema are looked for.
    pub path: SearchPath,
    /// Which rows INSERT and UPDATE may leave in it.
    pub check_option: Option<CheckOption>,
    /// The tables, views and sequences that the query names.
    pub reads: Vec<ViewRead>,
    /// The functions of users that it calls.
    pub calls: Vec<String>,
    /// The enums that the query names.
    pub types: Vec<String>,
}

/// A table, view or sequence that the query of a view names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewRead {
    /// Its name.
    pub relation: String,
    /// The columns of a table that the query uses.
    pub columns: Vec<String>,
}

/// WITH CHECK OPTION: rows that are inserted or updated through a view must be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    /// In this view.
    Local,
    /// In this view, and in those from which it reads.
    Cascaded,
}

impl CheckOption {
    /// What it is called in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        }
    }
}

impl View {
    /// Whether its query names this enum.
    pub fn names_type(&self, name: &str) -> bool {
        self.types.iter().any(|known| known == name)
    }

    /// Whether its query names this table, view or sequence.
    pub fn reads(&self, relation: &str) -> bool {
        self.reads.iter().any(|read| read.relation == relation)
    }
}

impl Catalog {
    /// The view called `name`.
    pub fn view(&self, name: &str) -> Option<&Arc<View>> {
        self.views.get(name)
    }

    /// All views, by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// The views whose queries use a column of a table.
    pub fn views_of_column<'a>(
        &'a self,
        table: &'a str,
        column: &'a str,
    ) -> impl Iterator<Item = &'a Arc<View>> {
        self.views().filter(move |view| {
            let mut reads = view.reads.iter();
            reads.any(|read| {
                read.relation == table && read.columns.iter().any(|known| known == column)
            })
        })
    }
}

impl CatalogChange<'_> {
    /// Adds a view, or puts it in the place of the one of its name if `or_replace`.
    ///
    /// # Errors
    /// 42P07 when a table, index, sequence, or another view without `or_replace`, has its name.
    pub fn create_view(&mut self, view: View, or_replace: bool) -> Result<()> {
        let name = view.name.clone();
        let is_taken = self.catalog.tables.contains_key(&name)
            || self.catalog.sequences.contains_key(&name)
            || self.index_owner(&name).is_some()
            || (!or_replace && self.catalog.views.contains_key(&name));
        if is_taken {
            return Err(duplicate(&name));
        }
        self.check_no_enum(&name)?;
        self.catalog.views.insert(name, Arc::new(view));
        Ok(())
    }

    /// Removes a view. What uses it must go, or be compiled without it, in the same change.
    ///
    /// # Errors
    /// 42P01.
    pub fn drop_view(&mut self, name: &str) -> Result<()> {
        self.take_view(name)?;
        self.roles().forget(&Object::table(name));
        Ok(())
    }

    /// Gives a view another name, also in the lists of the views that read from it. Their queries
    /// are the caller's: none may name the view.
    ///
    /// # Errors
    /// 42P01; 42P07 when the name is taken.
    pub fn rename_view(&mut self, name: &str, new: &str) -> Result<()> {
        let view = self.take_view(name)?;
        let renamed = View {
            name: new.to_owned(),
            ..(*view).clone()
        };
        self.create_view(renamed, false)?;
        self.renumber(|object| match object {
            NumberedObject::View(known) if known == name => {
                Some(NumberedObject::View(new.to_owned()))
            }
            _ => None,
        });
        self.roles()
            .rename(&Object::table(name), Object::table(new));
        Ok(())
    }

    fn take_view(&mut self, name: &str) -> Result<Arc<View>> {
        let view = self.catalog.views.remove(name);
        view.ok_or_else(|| {
            let message = format!("view \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_TABLE, message)
        })
    }
}
