//! A procedure whose run goes on with a scan that its plan has left: the plan sees none of the
//! procedure's own inserts, so that it takes the first row, and the run wants one that is many
//! index leaves behind.
//!
//! Protocols that plan keep the leaves that the plan has read, and the place where it left the
//! index. The last is hardly ever needed where rows are few, as in the programs that the judge
//! draws.

use kiln::{Configuration, Database, Options};

/// More than a leaf of an index has, several times.
const ROWS: i32 = 200;

const SCRIPT: &str = "
    CREATE TABLE item (id INT PRIMARY KEY, tag VARCHAR(8) NOT NULL, rank INT NOT NULL);
    CREATE INDEX item_tag ON item (tag, id);
    CREATE TABLE mark (id INT PRIMARY KEY);
    CREATE PROCEDURE fill(id INT, tag VARCHAR, rank INT) LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO item VALUES (id, tag, rank); END $$;
    CREATE PROCEDURE first_of(number INT, wanted VARCHAR, OUT found INT) LANGUAGE plpgsql AS $$
    DECLARE marks BIGINT;
    BEGIN
        INSERT INTO mark VALUES (number);
        SELECT count(*) INTO marks FROM mark WHERE id >= number AND id <= number;
        SELECT id INTO found FROM item WHERE tag = wanted AND rank >= marks ORDER BY id LIMIT 1;
        UPDATE item SET rank = rank WHERE id = found;
    END $$;";

#[test]
fn a_run_goes_on_where_its_plan_has_left_a_scan() {
    for protocol in Configuration::serializable() {
        let database =
            Database::open(Options::new().workers(1).protocol(protocol)).expect("a database opens");
        database.execute(SCRIPT).expect("the script is valid");
        for tag in ["a", "b"] {
            for row in 1..=ROWS {
                let id = if tag == "a" { row } else { ROWS + row };
                let rank = i32::from(row == ROWS);
                database.call("fill", (id, tag, rank)).expect("it fits");
            }
        }
        for (number, (tag, expected)) in [("a", ROWS), ("b", 2 * ROWS)].into_iter().enumerate() {
            let outcome = database.call("first_of", (number as i32 + 1, tag));
            let outcome = format!("{:?}", outcome.expect("the procedure runs"));
            assert!(
                outcome.contains(&format!("({expected})")),
                "{protocol}, {tag}: {outcome} instead of {expected}"
            );
        }
    }
}
