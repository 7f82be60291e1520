//! Updates of which a part could be deferred to the commit and another part is indexed.

#![cfg(not(kiln_sim))]

use kiln_engine::Configuration;
use kiln_sql::{Database, Options};

/// What is computed for an indexed column may raise, and comes behind something that may raise too
/// and could be deferred to the commit. The former cannot go with the latter: its value is wanted
/// at once.
#[test]
fn an_indexed_column_gets_the_value_that_was_computed_for_it() {
    let protocols = Configuration::serializable().flat_map(|plain| {
        let options = plain.protocol.options().iter();
        std::iter::once(plain).chain(options.filter_map(move |option| plain.with(*option).ok()))
    });
    for protocol in protocols {
        let options = Options::new().workers(1).pin_workers(false);
        let database = Database::open(options.protocol(protocol)).expect("it opens");
        let script = "
            CREATE TABLE x (a INTEGER, v INTEGER, w INTEGER);
            INSERT INTO x SELECT i, i * 2, i * 3 FROM generate_series(1, 3) i;
            CREATE INDEX x_v ON x (v);
            UPDATE x SET a = a + 100, v = v + 1, w = w + a;";
        database.execute(script).expect("it runs");
        let rows = database.query("SELECT a, v, w FROM x ORDER BY a", ());
        let rows = rows.and_then(|rows| rows.into_rows::<(i64, Option<i64>, i64)>());
        let expected = [(101, Some(3), 4), (102, Some(5), 8), (103, Some(7), 12)];
        assert_eq!(rows.as_deref(), Ok(&expected[..]), "{protocol}");
    }
}
