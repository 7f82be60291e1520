//! Any text is read as a written catalog, or as a change of one, or refused as damaged; what is
//! read is written as it was.

#![no_main]

use kiln_sql::{CatalogStatement, SqlState, WrittenCatalog};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<WrittenCatalog>() {
        Ok(catalog) => {
            let written = catalog.to_string();
            let again: WrittenCatalog = written.parse().expect("what was read can be written");
            assert_eq!(again.to_string(), written);
        }
        Err(error) => assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}"),
    }
    match text.parse::<CatalogStatement>() {
        Ok(statement) => {
            let written = statement.to_string();
            let again: CatalogStatement = written.parse().expect("what was read can be written");
            assert_eq!(again.to_string(), written);
        }
        Err(error) => assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}"),
    }
});
