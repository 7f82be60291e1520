//! The catalog: the objects of a database, what is known of them, and their form as text. What
//! changes it is in `change`.

mod comments;
mod current;
mod domains;
mod enums;
mod lookups;
mod numbers;
mod objects;
mod procedure;
mod records;
mod search_path;
mod statement;
mod temporary;
mod text_form;
mod views;
mod written;

pub use comments::{Commented, Comments};
pub use current::CurrentCatalog;
pub use domains::Domain;
pub(crate) use enums::{retype, retyped};
pub use lookups::Lookups;
pub use numbers::{FIRST_NUMBER, NumberedObject, ObjectNumbers};
pub use objects::Catalog;
pub(crate) use procedure::check_current;
pub use procedure::{IndexUse, Procedure, RowPrograms};
pub(crate) use records::{RecordProgram, ScanShape};
pub use search_path::SearchPath;
pub use statement::{CatalogStatement, Source, TableSplit};
pub use temporary::OnCommit;
pub(crate) use temporary::{TemporarySchema, schema_of_session};
pub use views::{CheckOption, View, ViewRead, ViewRows};
pub use written::WrittenCatalog;
pub(crate) use written::WrittenSequence;
