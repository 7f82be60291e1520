//! Joins by look-ups, ranges and copies searched by value give what a plain search gives.
//!
//! Each query is written twice: so that the planner can use its conditions, and with `=` hidden
//! behind expressions, so that it runs over all pairs of rows.

use kiln_platform::random::Random;

use super::super::Database;
use super::open;

const SCHEMA: &str = "
    CREATE TABLE plain (a INTEGER, b SMALLINT, n NUMERIC(6, 2), t TEXT);
    CREATE TABLE other (c INTEGER, d BIGINT, m NUMERIC(8, 3), u VARCHAR(10));
    CREATE TABLE keyed (k INTEGER, l INTEGER, v INTEGER, PRIMARY KEY (k, l));";

/// Conditions on columns; `#` stands before each side of an `=` that is hidden in the second form.
const QUERIES: [&str; 13] = [
    "SELECT a, b, c, d FROM plain JOIN other ON a #= c",
    "SELECT a, b, c, d FROM plain JOIN other ON b #= d AND a #= c",
    "SELECT a, n, m, u FROM plain JOIN other ON n #= m",
    "SELECT a, t, c, u FROM plain JOIN other ON t #= u AND c > 1",
    "SELECT a, t, c, u FROM plain LEFT JOIN other ON t #= u AND c > a",
    "SELECT a, b, c FROM plain LEFT JOIN other ON a #= c AND b > 1 WHERE c IS NULL OR d > 1",
    "SELECT a, k, l, v FROM keyed JOIN plain ON k #= a AND l #= b",
    "SELECT a, k, l, v FROM plain LEFT JOIN keyed ON k #= a AND v > 2",
    "SELECT a, c, k FROM plain JOIN other ON a #= c JOIN keyed ON k #= d AND l #= a",
    "SELECT k, v, c FROM keyed JOIN other ON v #= c WHERE k < 3",
    "SELECT a, s FROM plain JOIN (SELECT c, sum(d) AS s FROM other GROUP BY c) AS sums ON sums.c #= a",
    "SELECT a, s FROM plain LEFT JOIN (SELECT k, count(*) AS s FROM keyed GROUP BY k) AS q ON q.k #= a",
    "SELECT x.a, y.a, z.c FROM plain AS x JOIN plain AS y ON x.b #= y.a JOIN other AS z ON z.c #= y.b",
];

/// The rows of a query as sorted lines.
fn rows(database: &Database, query: &str) -> Vec<String> {
    let result = database.query(query, ());
    let result = result.unwrap_or_else(|error| panic!("{query}: {error}"));
    let mut lines: Vec<String> = result.rows.iter().map(|row| format!("{row:?}")).collect();
    lines.sort_unstable();
    lines
}

fn explained(database: &Database, query: &str) -> String {
    rows(database, &format!("EXPLAIN {query}")).join("\n")
}

fn number(random: &mut Random) -> String {
    match random.below(7) {
        0 => "NULL".to_owned(),
        number => number.to_string(),
    }
}

fn fill(database: &Database, random: &mut Random) {
    for table in ["plain", "other"] {
        for _ in 0..random.below(25) {
            let text = match random.below(5) {
                0 => "NULL".to_owned(),
                number => format!("'t{number}'"),
            };
            let numbers = [number(random), number(random), number(random)].join(", ");
            let insert = format!("INSERT INTO {table} VALUES ({numbers}, {text})");
            database.execute(&insert).expect("the row fits");
        }
    }
    for key in 0..5 {
        for second in 0..random.below(4) {
            let value = number(random);
            let insert = format!("INSERT INTO keyed VALUES ({key}, {second}, {value})");
            database.execute(&insert).expect("the row fits");
        }
    }
}

#[test]
fn conditions_find_what_a_plain_search_finds() {
    let seed = 1;
    let mut random = Random::from_seed(seed);
    for _ in 0..10 {
        let database = open();
        database.execute(SCHEMA).expect("the schema is good");
        fill(&database, &mut random);
        for query in QUERIES {
            let planned = query.replace('#', "");
            // CASE hides both sides, of whatever type.
            let words: Vec<&str> = query.split(' ').collect();
            let mut hidden = String::new();
            for (position, word) in words.iter().enumerate() {
                let is_side = |at: usize| words.get(at) == Some(&"#=");
                let text = match (is_side(position + 1), position > 0 && is_side(position - 1)) {
                    (false, false) => word.replace('#', ""),
                    _ => format!("(CASE WHEN TRUE OR {word} IS NULL THEN {word} END)"),
                };
                hidden += &format!(" {text}");
            }
            let (planned, hidden) = (rows(&database, &planned), rows(&database, &hidden));
            assert_eq!(planned, hidden, "{query}, seed {seed}");
        }
    }
}

#[test]
fn rows_without_an_index_lead_to_those_with_one() {
    let database = open();
    database.execute(SCHEMA).expect("the schema is good");
    for query in [
        "SELECT v FROM keyed JOIN plain ON k = a AND l = b",
        "SELECT v FROM plain JOIN keyed ON k = a AND l = b",
        "SELECT v FROM keyed, plain, other WHERE k = a AND l = b AND c = v",
    ] {
        let text = explained(&database, query);
        assert!(text.contains("lookup keyed"), "{text}");
    }
}

#[test]
fn updates_and_deletes_change_the_rows_that_join() {
    let database = open();
    let script = "
        CREATE TABLE target (id INTEGER, name TEXT);
        CREATE TABLE source (id INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO target VALUES (1, 'a'), (2, 'b'), (3, 'c'), (NULL, 'd'), (1, 'e');
        INSERT INTO source VALUES (1, 'one'), (3, 'three'), (4, 'four');
        UPDATE target SET name = source.name FROM source WHERE target.id = source.id;";
    database.execute(script).expect("the script is good");
    let updated = rows(&database, "SELECT name FROM target ORDER BY name");
    assert_eq!(updated.len(), 5);
    for (name, count) in [("one", 2), ("three", 1), ("four", 0), ("b", 1), ("d", 1)] {
        let query = format!("SELECT 1 FROM target WHERE name = '{name}'");
        assert_eq!(rows(&database, &query).len(), count, "{name}");
    }
    database
        .execute("DELETE FROM target USING source WHERE target.id = source.id")
        .expect("the statement is good");
    assert_eq!(rows(&database, "SELECT 1 FROM target").len(), 2);
}
