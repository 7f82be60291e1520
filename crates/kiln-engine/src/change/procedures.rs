//! Procedures made and removed, and those that a change makes stale.

use std::collections::BTreeMap;

use kiln_platform::sync::Arc;
use kiln_procedure::CallCounts;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::TableId;
use kiln_storage::table::{Table, WORKERS_MAX};

use super::catalog_change::CatalogChange;
use crate::catalog::{Procedure, RowPrograms};
use crate::errors;
use crate::options::RESERVED;
use crate::roles::Object;

impl CatalogChange<'_> {
    /// Adds a procedure, or replaces the one of that name if `or_replace`.
    ///
    /// # Errors
    /// 42723 when the name is taken.
    pub fn create_procedure(&mut self, procedure: Procedure, or_replace: bool) -> Result<()> {
        let name = procedure.name().to_owned();
        if !or_replace && self.catalog.procedures.contains_key(&name) {
            return Err(Error::new(
                SqlState::DUPLICATE_FUNCTION,
                format!("procedure {name} already exists"),
            )
            .with_hint("Use CREATE OR REPLACE, or drop it first."));
        }
        let replaced = self.catalog.procedures.get(&name);
        let known = replaced.and_then(|replaced| replaced.program().calls.get());
        // Who replaces a procedure does not change how often clients call it.
        let calls = known.cloned().unwrap_or_else(|| {
            let worker_slots = WORKERS_MAX - RESERVED;
            Arc::new(CallCounts::new(worker_slots))
        });
        // One that Rust code made, and that was created before, has its own.
        procedure.program().calls.get_or_init(|| calls);
        self.catalog.procedures.insert(name, Arc::new(procedure));
        Ok(())
    }

    /// Removes a procedure.
    ///
    /// # Errors
    /// 42883.
    pub fn drop_procedure(&mut self, name: &str) -> Result<()> {
        let removed = self.catalog.procedures.remove(name);
        removed.ok_or_else(|| errors::undefined_procedure(name))?;
        self.roles().forget(&Object::routine(name));
        Ok(())
    }

    /// Sets the factory that makes the programs for rows written from Rust.
    pub fn set_row_programs(&mut self, programs: Arc<dyn RowPrograms>) {
        self.catalog.row_programs = Some(programs);
    }

    /// The procedures that use a table which is not in the catalog any more, or not in that
    /// shape, or whose compiler looked up what is another thing now: they must be compiled again
    /// or dropped before the change is complete.
    pub fn stale_procedures(&self) -> Vec<Arc<Procedure>> {
        let tables = self.current_tables();
        let stale = self.catalog.procedures.values().filter(|procedure| {
            let mut used = procedure.program().tables.iter();
            used.any(|table| !is_current(&tables, table))
                || !procedure.lookups().hold_in(&self.catalog)
        });
        stale.cloned().collect()
    }

    /// Checks that no procedure uses a table that this has changed.
    ///
    /// # Errors
    /// 2BP01.
    pub(crate) fn check_procedures(&self) -> Result<()> {
        if self.is_temporary() {
            return Ok(());
        }
        if let Some(procedure) = self.stale_procedures().first() {
            return Err(Error::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "procedure {} uses a table that this changes",
                    procedure.name()
                ),
            )
            .with_hint("Compile it again, or drop it, in the same change."));
        }
        Ok(())
    }
}

fn is_current(tables: &BTreeMap<TableId, &Arc<Table>>, table: &Arc<Table>) -> bool {
    tables
        .get(&table.id())
        .is_some_and(|current| Arc::ptr_eq(current, table))
}
