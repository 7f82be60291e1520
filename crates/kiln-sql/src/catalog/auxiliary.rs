//! Hash indexes that were derived beside the user's.

use kiln_storage::schema::IndexDefinition;
use kiln_storage::table::Table;

/// What ends the names of derived hash indexes.
pub(crate) const HASH_SUFFIX: &str = "_hash";

/// Whether an index was derived and is not the user's.
pub fn is_auxiliary(table: &Table, index: &IndexDefinition) -> bool {
    index.kind.is_hash()
        && index.name.strip_suffix(HASH_SUFFIX).is_some_and(|base| {
            table
                .indexes()
                .iter()
                .any(|known| known.definition().name == base)
        })
}

/// What the index is called beside which a hash index was derived.
pub(crate) fn base_of(derived: &IndexDefinition) -> &str {
    derived
        .name
        .strip_suffix(HASH_SUFFIX)
        .unwrap_or(&derived.name)
}
