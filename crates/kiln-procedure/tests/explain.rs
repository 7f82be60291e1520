//! The listing and the graph of two procedures, compared with files that a person has read.
//!
//! After a change on purpose, run the tests with `KILN_UPDATE_GOLDEN=1` and read the difference.

mod support;

use kiln_platform::file;
use kiln_procedure::explain;

#[track_caller]
fn compare(name: &str, actual: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("KILN_UPDATE_GOLDEN").is_some() {
        file::write(path.as_ref(), actual.as_bytes()).expect("the golden file is writable");
    }
    let expected = file::read_to_string(path.as_ref()).expect("the golden file exists");
    assert!(
        expected == actual,
        "{name} differs; expected\n{expected}\nbut is\n{actual}"
    );
}

#[test]
fn payment_listing() {
    compare(
        "payment.txt",
        &explain::text(&support::payment(&support::tables())),
    );
}

#[test]
fn payment_graph() {
    compare(
        "payment.dot",
        &explain::dot(&support::payment(&support::tables())),
    );
}

#[test]
fn new_order_listing() {
    compare(
        "new_order.txt",
        &explain::text(&support::new_order(&support::tables())),
    );
}

#[test]
fn new_order_graph() {
    compare(
        "new_order.dot",
        &explain::dot(&support::new_order(&support::tables())),
    );
}
