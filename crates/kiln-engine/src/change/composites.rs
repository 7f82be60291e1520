//! Composite types made, altered and removed.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{RowField, RowType};

use super::catalog_change::CatalogChange;
use crate::catalog::NumberedObject;
use crate::roles::Object;

impl CatalogChange<'_> {
    /// Adds a composite type, whose name is `printed` as SQL writes it.
    ///
    /// # Errors
    /// 42710 when a type or a table's rows have the name; those of [`RowType::new`]; 54000 when
    /// all numbers are given out.
    pub fn create_composite(
        &mut self,
        name: &str,
        printed: &str,
        fields: Vec<RowField>,
    ) -> Result<()> {
        self.check_no_type(name)?;
        let numbers = Arc::make_mut(&mut self.catalog.numbers);
        let oid = numbers.number(NumberedObject::Composite(name.to_owned()))?;
        let array_oid = numbers.number(NumberedObject::CompositeArray(name.to_owned()))?;
        let made = RowType::new((oid, array_oid), (name, printed), fields)?;
        let made = Arc::new(made);
        self.catalog.composites.insert(name.to_owned(), made);
        // It has its number already, by which others are known to be new.
        self.give_to_owner(Object::of_type(name))
    }

    /// Gives a composite type other fields. Nothing may use it.
    ///
    /// # Errors
    /// 42704; those of [`RowType::new`].
    pub fn alter_composite(&mut self, name: &str, fields: Vec<RowField>) -> Result<()> {
        let altered = self.require_composite(name)?.with_fields(fields)?;
        let altered = Arc::new(altered);
        self.catalog.composites.insert(name.to_owned(), altered);
        Ok(())
    }

    /// Calls a composite type otherwise. Nothing may use it.
    ///
    /// # Errors
    /// 42704; 42710 when the name is taken.
    pub fn rename_composite(&mut self, from: &str, to: &str, printed: &str) -> Result<()> {
        let renamed = self.require_composite(from)?.renamed(to, printed);
        self.check_no_type(to)?;
        self.catalog.composites.remove(from);
        (self.roles()).rename(&Object::of_type(from), Object::of_type(to));
        let to = || to.to_owned();
        self.renumber(|object| match object {
            NumberedObject::Composite(name) if name == from => {
                Some(NumberedObject::Composite(to()))
            }
            NumberedObject::CompositeArray(name) if name == from => {
                Some(NumberedObject::CompositeArray(to()))
            }
            NumberedObject::CompositeRelation(name) if name == from => {
                Some(NumberedObject::CompositeRelation(to()))
            }
            _ => None,
        });
        self.catalog.composites.insert(to(), Arc::new(renamed));
        Ok(())
    }

    /// Removes a composite type. What uses it must go in the same change.
    ///
    /// # Errors
    /// 42704.
    pub fn drop_composite(&mut self, name: &str) -> Result<()> {
        self.require_composite(name)?;
        self.catalog.composites.remove(name);
        self.roles().forget(&Object::of_type(name));
        Ok(())
    }

    fn require_composite(&self, name: &str) -> Result<&Arc<RowType>> {
        self.catalog.composite(name).ok_or_else(|| {
            let message = format!("type \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }
}
