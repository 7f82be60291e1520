//! The columns of an enum's type, each of which has the type with all its labels.

use kiln_platform::sync::Arc;
use kiln_storage::schema::TableSchema;
use kiln_storage::types::EnumType;

use super::views::View;

/// Declares the columns of an enum to be of what it has become.
pub(crate) fn retype(schema: &mut TableSchema, of: &Arc<EnumType>) {
    for column in &mut schema.columns {
        column.data_type = column.data_type.with_enumeration(of);
    }
}

/// A view with the columns of an enum as of what it has become.
pub(crate) fn retyped(view: &View, of: &Arc<EnumType>) -> View {
    let mut retyped = view.clone();
    for (_, data_type) in &mut retyped.columns {
        *data_type = data_type.with_enumeration(of);
    }
    retyped
}
