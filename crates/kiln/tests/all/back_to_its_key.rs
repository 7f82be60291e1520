//! A row that goes to another key and, deleted and inserted again, comes back to its first one, in
//! one transaction.
//!
//! Found by the workload `anomalies` on virtual cores (`cargo sim anomalies --protocol silo
//! --schedule pct --seed 130 --cores 1`): under silo the call never ended, although it was alone.
//! The insertion moved the record's entries back to the key that the row still had, and then asked
//! for them to be moved once more. The second time no move was left to tell that they were there.
//! So the record's own entry looked like another transaction's insertion, and the attempt was
//! repeated for ever.

use kiln::{Configuration, Database, Options};

/// Each runs as one transaction on the row (1, 'a'), and leaves the row that follows.
const TRANSACTIONS: [(&str, &str); 5] = [
    (
        "UPDATE item SET bucket = 2 WHERE id = 1;
         DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 1, 'b');",
        "1 1 b",
    ),
    (
        "DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 2, 'b');
         DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 1, 'c');",
        "1 1 c",
    ),
    (
        "UPDATE item SET bucket = 2 WHERE id = 1;
         DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 2, 'd');
         UPDATE item SET bucket = 1 WHERE id = 1;",
        "1 1 d",
    ),
    (
        "UPDATE item SET bucket = 2 WHERE id = 1;
         UPDATE item SET bucket = 1 WHERE id = 1;
         DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 1, 'e');
         UPDATE item SET bucket = 3 WHERE id = 1;",
        "1 3 e",
    ),
    (
        "UPDATE item SET bucket = 2 WHERE id = 1;
         DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 3, 'f');
         DELETE FROM item WHERE id = 1;
         INSERT INTO item VALUES (1, 1, 'g');",
        "1 1 g",
    ),
];

#[test]
fn a_row_may_come_back_to_its_key() {
    for protocol in Configuration::serializable() {
        for unique in ["", "UNIQUE"] {
            for (position, (transaction, expected)) in TRANSACTIONS.iter().enumerate() {
                let database = Database::open(Options::new().workers(1).protocol(protocol))
                    .expect("a database");
                let script = format!(
                    "CREATE TABLE item (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, word TEXT);
                     CREATE {unique} INDEX item_bucket ON item (bucket);
                     INSERT INTO item VALUES (1, 1, 'a');
                     BEGIN;
                     {transaction}
                     COMMIT;"
                );
                let place = format!("{protocol}, {unique}, transaction {position}");
                let executed = database.execute(&script);
                assert!(executed.is_ok(), "{place}: {:?}", executed.err());
                for by in ["id = 1", "bucket > 0"] {
                    let query =
                        format!("SELECT id || ' ' || bucket || ' ' || word FROM item WHERE {by}");
                    let rows = database.query(&query, ()).expect("a query");
                    let rows = rows.into_rows::<(String,)>().expect("texts");
                    assert_eq!(rows, [((*expected).to_owned(),)], "{place}, by {by}");
                }
            }
        }
    }
}
