//! Views made, removed and renamed.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};

use super::catalog_change::CatalogChange;
use super::tables::duplicate;
use crate::catalog::{NumberedObject, View};
use crate::roles::Object;

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
        self.check_no_own_type(&name)?;
        self.catalog.views.insert(name, Arc::new(view));
        Ok(())
    }

    /// Says what the query of a table is that keeps the rows of a materialized view, and whether it
    /// has them.
    ///
    /// # Errors
    /// 42P01 when there is no such table.
    pub fn materialize_view(&mut self, view: View) -> Result<()> {
        self.catalog.require_table(&view.name)?;
        self.catalog.views.insert(view.name.clone(), Arc::new(view));
        Ok(())
    }

    /// Removes a view, and the rows that it has. What uses it must go, or be compiled without it, in the same change.
    ///
    /// # Errors
    /// 42P01.
    pub fn drop_view(&mut self, name: &str) -> Result<()> {
        if self.catalog.materialized_view(name).is_some() {
            return self.drop_table(name);
        }
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
