//! Composite types as text.
//!
//! A column of such a type has the whole type in its text, as that of an enum.

use std::collections::BTreeMap;
use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::RowType;

use super::WrittenTable;
use crate::catalog::text_form::{Counted, Reader};

pub(super) fn write(f: &mut fmt::Formatter<'_>, of: &RowType) -> fmt::Result {
    writeln!(f, "composite {}", Counted(&of.to_string()))
}

/// Reads what [`write`] writes, after its first word.
///
/// # Errors
/// XX001.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<RowType> {
    let read = RowType::read(reader.counted()?);
    read.ok_or_else(|| reader.damaged("a known type before it"))
}

/// Checks that columns of tables are of types that the catalog has.
///
/// # Errors
/// XX001.
pub(super) fn check(composites: &[Arc<RowType>], tables: &[WrittenTable]) -> Result<()> {
    let known: BTreeMap<u32, &RowType> = composites.iter().map(|of| (of.oid(), &**of)).collect();
    for table in tables {
        for column in &table.schema.columns {
            let Some(of) = column.data_type.row() else {
                continue;
            };
            let is_known = known
                .get(&of.oid())
                .is_some_and(|known| (known.name(), known.fields()) == (of.name(), of.fields()));
            if !is_known {
                let (column, name) = (&column.name, of.printed());
                return Err(Error::new(
                    SqlState::DATA_CORRUPTED,
                    format!(
                        "the written catalog has a column {column} of type {name}, and no such type"
                    ),
                ));
            }
        }
    }
    Ok(())
}
