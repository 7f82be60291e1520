//! Enums made, altered and removed.
//!
//! A column has its type with all labels. So a change of an enum declares the columns of the type
//! anew, and what was compiled for their tables follows; rows and indexes stay as they are.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::TableSchema;
use kiln_storage::types::EnumType;

use super::catalog_change::CatalogChange;
use crate::catalog::{NumberedObject, retype, retyped};
use crate::roles::Object;

impl CatalogChange<'_> {
    /// Adds an enum, whose name is `printed` as SQL writes it.
    ///
    /// # Errors
    /// 42710 when a type or a table's rows have the name; those of [`EnumType::new`]; 54000 when
    /// all numbers are given out.
    pub fn create_enum(&mut self, name: &str, printed: &str, labels: &[String]) -> Result<()> {
        self.check_no_type(name)?;
        let numbers = Arc::make_mut(&mut self.catalog.numbers);
        let oid = numbers.number(NumberedObject::Enum(name.to_owned()))?;
        let array_oid = numbers.number(NumberedObject::EnumArray(name.to_owned()))?;
        let made = EnumType::new((oid, array_oid), (name, printed), labels)?;
        self.catalog.enums.insert(name.to_owned(), Arc::new(made));
        // It has its number already, by which others are known to be new.
        self.give_to_owner(Object::of_type(name))
    }

    /// Makes an enum what `alter` makes of it, wherever a column has the type. It keeps its name.
    ///
    /// # Errors
    /// 42704; those of `alter`; 55P03 as for every table that is changed.
    pub fn alter_enum(
        &mut self,
        name: &str,
        alter: impl FnOnce(&mut EnumType) -> Result<()>,
    ) -> Result<()> {
        let mut altered = (**self.require_enum(name)?).clone();
        alter(&mut altered)?;
        self.put_enum(altered)
    }

    /// A label keeps its number in the catalog under another name.
    pub fn renumber_label(&mut self, of: &str, from: &str, to: &str) {
        self.renumber(|object| match object {
            NumberedObject::EnumLabel(known, label) if known == of && label == from => {
                Some(NumberedObject::EnumLabel(known.clone(), to.to_owned()))
            }
            _ => None,
        });
    }

    /// Calls an enum otherwise.
    ///
    /// # Errors
    /// As [`CatalogChange::alter_enum`]; 42710 when the name is taken.
    pub fn rename_enum(&mut self, from: &str, to: &str, printed: &str) -> Result<()> {
        let renamed = self.require_enum(from)?.renamed(to, printed);
        self.check_no_type(to)?;
        self.catalog.enums.remove(from);
        (self.roles()).rename(&Object::of_type(from), Object::of_type(to));
        let to = || to.to_owned();
        self.renumber(|object| match object {
            NumberedObject::Enum(name) if name == from => Some(NumberedObject::Enum(to())),
            NumberedObject::EnumArray(name) if name == from => {
                Some(NumberedObject::EnumArray(to()))
            }
            NumberedObject::EnumLabel(name, label) if name == from => {
                Some(NumberedObject::EnumLabel(to(), label.clone()))
            }
            _ => None,
        });
        self.put_enum(renamed)
    }

    /// Removes an enum. What uses it must go in the same change.
    ///
    /// # Errors
    /// 42704.
    pub fn drop_enum(&mut self, name: &str) -> Result<()> {
        self.require_enum(name)?;
        self.catalog.enums.remove(name);
        self.roles().forget(&Object::of_type(name));
        Ok(())
    }

    fn require_enum(&self, name: &str) -> Result<&Arc<EnumType>> {
        self.catalog.enumeration(name).ok_or_else(|| {
            let message = format!("type \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// Checks that no type is called so: tables and views have types of their rows.
    ///
    /// # Errors
    /// 42710.
    pub(super) fn check_no_type(&self, name: &str) -> Result<()> {
        let catalog = &self.catalog;
        let is_taken = catalog.enums.contains_key(name)
            || catalog.composites.contains_key(name)
            || catalog.domains.contains_key(name)
            || catalog.tables.contains_key(name)
            || catalog.views.contains_key(name);
        match is_taken {
            true => Err(type_exists(name)),
            false => Ok(()),
        }
    }

    /// Checks that no type of users has the name of a new table or view, whose rows have a type of
    /// that name.
    ///
    /// # Errors
    /// 42710.
    pub(crate) fn check_no_own_type(&self, name: &str) -> Result<()> {
        let catalog = &self.catalog;
        let is_taken = catalog.enums.contains_key(name)
            || catalog.composites.contains_key(name)
            || catalog.domains.contains_key(name);
        match is_taken {
            true => Err(type_exists(name).with_hint(
                "A relation has an associated type of the same name, so you must use a name that \
                 doesn't conflict with any existing type.",
            )),
            false => Ok(()),
        }
    }

    fn put_enum(&mut self, altered: EnumType) -> Result<()> {
        let altered = Arc::new(altered);
        let tables = self.catalog.tables();
        let using = tables.filter(|(_, table)| uses(table.schema(), &altered));
        let using: Vec<String> = using.map(|(name, _)| name.to_owned()).collect();
        for table in &using {
            self.alter_schema(table, |schema| retype(schema, &altered))?;
        }
        for view in self.catalog.views.values_mut() {
            let mut columns = view.columns.iter();
            if columns.any(|(_, data_type)| data_type.enumeration() == Some(&altered)) {
                *view = Arc::new(retyped(view, &altered));
            }
        }
        self.retype_domains(&altered);
        self.catalog
            .enums
            .insert(altered.name().to_owned(), altered);
        Ok(())
    }
}

fn uses(schema: &TableSchema, of: &Arc<EnumType>) -> bool {
    let mut columns = schema.columns.iter();
    columns.any(|column| column.data_type.enumeration() == Some(of))
}

#[cold]
fn type_exists(name: &str) -> Error {
    let message = format!("type \"{name}\" already exists");
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}
