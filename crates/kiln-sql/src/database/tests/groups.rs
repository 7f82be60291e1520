//! Rows that come in no order give the groups that sorted rows give.
//!
//! Each query is run twice: as it is, which aggregates runs of rows with equal keys and puts these
//! together, and with `array_agg` beside it, for which the rows are sorted first.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::super::Database;
use super::open;

const SCHEMA: &str = "CREATE TABLE facts (k INTEGER, l NUMERIC(4, 1), v INTEGER, n NUMERIC(6, 2), \
                      f BOOLEAN, s TEXT);";

const AGGREGATES: [&str; 5] = [
    "count(*), count(v), sum(v), avg(v), min(v), max(v)",
    "sum(n), avg(n), min(n), max(n), sum(DISTINCT n), avg(DISTINCT v)",
    "bool_and(f), bool_or(f), min(s), max(s), count(DISTINCT s), count(DISTINCT f)",
    "count(*) FILTER (WHERE v > 2), sum(v) FILTER (WHERE f), count(DISTINCT v) FILTER (WHERE v < 3)",
    "sum(v * 2 + 1), max(CASE WHEN f THEN s END)",
];

const KEYS: [&str; 5] = ["k", "l", "s", "k, l", "f, s, k % 2"];

fn literal(random: &mut Random, values: &[&str]) -> String {
    values[random.below(values.len())].to_owned()
}

fn rows(database: &Database, query: &str) -> Vec<Vec<Value>> {
    let result = database.query(query, ());
    let result = result.unwrap_or_else(|error| panic!("{query}: {error}"));
    result.rows.iter().map(|row| row.to_vec()).collect()
}

#[test]
fn groups_do_not_depend_on_the_order_of_rows() {
    let seed = 1;
    let mut random = Random::from_seed(seed);
    let mut compared = 0;
    for _ in 0..4 {
        let database = open();
        database.execute(SCHEMA).expect("a valid table");
        let inserted: Vec<String> = (0..random.below(120))
            .map(|_| {
                let k = literal(&mut random, &["NULL", "1", "2", "3"]);
                let l = literal(&mut random, &["NULL", "1.5", "2", "-1"]);
                let v = literal(&mut random, &["NULL", "0", "1", "2", "3", "40000"]);
                let n = literal(&mut random, &["NULL", "0.10", "2.25", "-7", "99.99"]);
                let f = literal(&mut random, &["NULL", "TRUE", "FALSE"]);
                let s = literal(&mut random, &["NULL", "''", "'a'", "'ab'", "'b'"]);
                format!("({k}, {l}, {v}, {n}, {f}, {s})")
            })
            .collect();
        if !inserted.is_empty() {
            let insert = format!("INSERT INTO facts VALUES {}", inserted.join(", "));
            database.execute(&insert).expect("valid rows");
        }
        for keys in KEYS {
            for aggregates in AGGREGATES {
                let query = |more: &str| {
                    format!("SELECT {keys}, {aggregates}{more} FROM facts GROUP BY {keys}")
                };
                let actual = rows(&database, &query(""));
                let mut expected = rows(&database, &query(", array_agg(v)"));
                for row in &mut expected {
                    row.pop();
                }
                compared += expected.len();
                assert_eq!(actual, expected, "{} with seed {seed}", query(""));
            }
        }
    }
    assert!(compared > 0, "no round of seed {seed} had rows");
}
