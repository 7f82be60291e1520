//! Definitions: changes of the catalog that a transaction block makes with the rest of what it
//! does.

use kiln_platform::sync::Arc;
use kiln_storage::error::Result;

use super::catalog_change::CatalogChange;
use crate::catalog::Source;

/// A statement of a layer above that changes the catalog within a transaction block.
///
/// The block tries it when the client sends it, on a catalog of its own, and makes it when it
/// commits. Either may happen several times.
pub trait Definition: Send + Sync {
    /// What it says.
    fn source(&self) -> &Arc<Source>;

    /// Makes its change.
    ///
    /// # Errors
    /// Why it cannot be made. What it has changed by then is undone.
    fn define(&self, change: &mut CatalogChange<'_>) -> Result<()>;
}
