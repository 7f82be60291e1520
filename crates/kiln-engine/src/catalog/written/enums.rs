//! Enums as text.
//!
//! A column of an enum has the whole type in its text. As they are read all columns are given the
//! type that the catalog has.

use std::collections::BTreeMap;
use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, EnumType};

use super::WrittenTable;
use crate::catalog::enums::{retype, retyped};
use crate::catalog::text_form::{Counted, Reader};
use crate::catalog::views::View;

pub(super) fn write(f: &mut fmt::Formatter<'_>, of: &EnumType) -> fmt::Result {
    writeln!(f, "type {}", Counted(&of.to_string()))
}

/// Reads what [`write`] writes, after its first word.
///
/// # Errors
/// XX001.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<EnumType> {
    let read = EnumType::read(reader.counted()?);
    read.ok_or_else(|| reader.damaged("a known type before it"))
}

/// Has columns share the types of the catalog.
///
/// # Errors
/// XX001 for a column of a type that the catalog has not, or that is another one there.
pub(super) fn share(
    enums: &[Arc<EnumType>],
    tables: &mut [WrittenTable],
    views: &mut [Arc<View>],
) -> Result<()> {
    let known: BTreeMap<u32, &EnumType> = enums.iter().map(|of| (of.oid(), &**of)).collect();
    let check = |data_type: &DataType| {
        let is_known = data_type.enumeration().is_none_or(|of| {
            known
                .get(&of.oid())
                .is_some_and(|known| (known.name(), known.labels()) == (of.name(), of.labels()))
        });
        match is_known {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::DATA_CORRUPTED,
                format!("the written catalog has a column of type {data_type}, and no such type"),
            )),
        }
    };
    for table in tables {
        let columns = table.schema.columns.iter();
        columns
            .map(|column| &column.data_type)
            .try_for_each(check)?;
        enums.iter().for_each(|of| retype(&mut table.schema, of));
    }
    for view in views {
        view.columns.iter().try_for_each(|(_, it)| check(it))?;
        if view
            .columns
            .iter()
            .any(|(_, it)| it.enumeration().is_some())
        {
            let mut shared = (**view).clone();
            for of in enums {
                shared = retyped(&shared, of);
            }
            *view = Arc::new(shared);
        }
    }
    Ok(())
}
