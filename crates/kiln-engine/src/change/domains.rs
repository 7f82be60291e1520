//! Domains made, altered and removed.
//!
//! A column keeps the name of its domain. What was compiled has looked the domain up, and is
//! compiled anew when that has changed.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::EnumType;

use super::catalog_change::CatalogChange;
use crate::catalog::{Domain, NumberedObject};
use crate::roles::Object;

impl CatalogChange<'_> {
    /// Adds a domain.
    ///
    /// # Errors
    /// 42710 when a type or a table's rows have the name.
    pub fn create_domain(&mut self, domain: Domain) -> Result<()> {
        self.check_no_type(&domain.name)?;
        self.put_domain(domain);
        Ok(())
    }

    /// Makes a domain what `alter` makes of it. It keeps its name and its type.
    ///
    /// # Errors
    /// 42704; those of `alter`.
    pub fn alter_domain(
        &mut self,
        name: &str,
        alter: impl FnOnce(&mut Domain) -> Result<()>,
    ) -> Result<()> {
        let mut altered = (**self.require_domain(name)?).clone();
        alter(&mut altered)?;
        self.put_domain(altered);
        Ok(())
    }

    /// Waits until no open block uses a table with a column of one of these domains: its rows are
    /// looked at, and are to stay as they are until the change is made.
    ///
    /// # Errors
    /// 55P03 as for every table that is changed.
    pub fn claim_domains(&mut self, domains: &[String]) -> Result<()> {
        for table in self.tables_with_domains(domains) {
            self.claim(&table)?;
        }
        Ok(())
    }

    /// A check of a domain keeps its number in the catalog under another name.
    pub fn renumber_domain_check(&mut self, domain: &str, from: &str, to: &str) {
        self.renumber(|object| match object {
            NumberedObject::DomainCheck(known, check) if known == domain && check == from => {
                Some(NumberedObject::DomainCheck(known.clone(), to.to_owned()))
            }
            _ => None,
        });
    }

    /// Calls a domain otherwise, wherever a column or another domain has it.
    ///
    /// # Errors
    /// 42704; 42710 when the name is taken; 55P03 as for every table that is changed.
    pub fn rename_domain(&mut self, from: &str, to: &str) -> Result<()> {
        let mut renamed = (**self.require_domain(from)?).clone();
        self.check_no_type(to)?;
        renamed.name = to.to_owned();
        self.catalog.domains.remove(from);
        self.put_domain(renamed);
        (self.roles()).rename(&Object::of_type(from), Object::of_type(to));
        let to = || to.to_owned();
        self.renumber(|object| match object {
            NumberedObject::Domain(name) if name == from => Some(NumberedObject::Domain(to())),
            NumberedObject::DomainArray(name) if name == from => {
                Some(NumberedObject::DomainArray(to()))
            }
            NumberedObject::DomainCheck(name, check) if name == from => {
                Some(NumberedObject::DomainCheck(to(), check.clone()))
            }
            _ => None,
        });
        for domain in self.catalog.domains.values_mut() {
            if domain.over.as_deref() == Some(from) {
                Arc::make_mut(domain).over = Some(to());
            }
        }
        for table in self.tables_with_domains(&[from.to_owned()]) {
            self.alter_schema(&table, |schema| {
                for column in &mut schema.columns {
                    if column.domain.as_deref() == Some(from) {
                        column.domain = Some(to());
                    }
                }
            })?;
        }
        Ok(())
    }

    /// Removes a domain. What uses it must go in the same change.
    ///
    /// # Errors
    /// 42704.
    pub fn drop_domain(&mut self, name: &str) -> Result<()> {
        self.require_domain(name)?;
        self.catalog.domains.remove(name);
        self.roles().forget(&Object::of_type(name));
        Ok(())
    }

    /// Domains over an enum follow what it has become.
    pub(super) fn retype_domains(&mut self, of: &Arc<EnumType>) {
        for domain in self.catalog.domains.values_mut() {
            if domain.base.enumeration() == Some(of) {
                let base = domain.base.with_enumeration(of);
                let mut retyped = (**domain).clone();
                retyped.base = base;
                *domain = Arc::new(retyped);
            }
        }
    }

    fn tables_with_domains(&self, domains: &[String]) -> Vec<String> {
        let tables = self.catalog.tables();
        let using = tables.filter(|(_, table)| {
            let mut columns = table.schema().columns.iter();
            columns.any(|column| (column.domain.as_ref()).is_some_and(|it| domains.contains(it)))
        });
        using.map(|(name, _)| name.to_owned()).collect()
    }

    fn require_domain(&self, name: &str) -> Result<&Arc<Domain>> {
        self.catalog.domain(name).ok_or_else(|| {
            let message = format!("type \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    fn put_domain(&mut self, domain: Domain) {
        let name = domain.name.clone();
        self.catalog.domains.insert(name, Arc::new(domain));
    }
}
