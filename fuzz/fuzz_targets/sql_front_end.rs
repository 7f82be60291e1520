//! Any text is parsed or refused with a place, and nothing panics.
//!
//! Good seeds are the workloads' files: `cargo fuzz run sql_front_end corpus/sql
//! ../crates/kiln-workloads/sql/*`.

#![no_main]

use kiln_sql::parse::{is_complete, script, statement};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    is_complete(text);
    for source in script(text) {
        if let Err(error) = statement(&source) {
            assert!(error.position().is_some(), "{error} without a place");
        }
    }
});
