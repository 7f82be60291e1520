//! Relations and functions as programs ask for them.

use kiln_engine::CurrentCatalog;
use kiln_platform::sync::Arc;
use kiln_procedure::frame::{push_value, to_value};
use kiln_procedure::outside::{OutsideFunction, OutsideRows};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::sequence::Draws;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{DataType, Value};

use super::{Relation, Snapshot};

/// What a function over the catalog computes.
pub(crate) type CatalogFunction = fn(&Snapshot, &mut Heap, &[Slot]) -> Result<Slot>;

/// A function over the catalog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatalogCall {
    pub name: &'static str,
    pub function: CatalogFunction,
}

impl CatalogCall {
    /// The function over the catalog that is in force when it is called.
    pub fn over(self, catalog: Arc<CurrentCatalog>) -> Arc<dyn OutsideFunction> {
        Arc::new(CallOver {
            call: self,
            catalog,
        })
    }
}

struct CallOver {
    call: CatalogCall,
    catalog: Arc<CurrentCatalog>,
}

impl std::fmt::Debug for CallOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallOver").field(&self.call.name).finish()
    }
}

impl OutsideFunction for CallOver {
    fn name(&self) -> &str {
        self.call.name
    }

    fn call(&self, heap: &mut Heap, _: Option<&Draws>, arguments: &[Slot]) -> Result<Slot> {
        let catalog = self.catalog.get().ok_or_else(gone)?;
        (self.call.function)(&Snapshot::of(&catalog), heap, arguments)
    }
}

#[cold]
pub(super) fn gone() -> Error {
    Error::new(SqlState::ADMIN_SHUTDOWN, "the database is closed")
}

impl Relation {
    /// Its rows in the catalog that is in force when they are asked for.
    pub fn over(&'static self, catalog: Arc<CurrentCatalog>) -> Arc<dyn OutsideRows> {
        Arc::new(RowsOver {
            relation: self,
            catalog,
        })
    }
}

struct RowsOver {
    relation: &'static Relation,
    catalog: Arc<CurrentCatalog>,
}

impl std::fmt::Debug for RowsOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RowsOver")
            .field(&self.relation.name)
            .finish()
    }
}

impl OutsideRows for RowsOver {
    fn name(&self) -> &str {
        self.relation.name
    }

    fn width(&self) -> usize {
        self.relation.columns.len()
    }

    fn append_to(&self, heap: &mut Heap, arguments: &[Slot], rows: &mut Vec<Slot>) {
        let Some(catalog) = self.catalog.get() else {
            return;
        };
        let session = arguments.first().map_or(Value::Null, |session| {
            to_value(heap, *session, &DataType::array(DataType::Text))
        });
        for row in self.relation.rows(&Snapshot::of(&catalog), &session) {
            debug_assert_eq!(row.len(), self.width(), "{}", self.relation.name);
            rows.extend(row.iter().map(|value| push_value(heap, value)));
        }
    }
}
