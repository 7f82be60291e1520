//! EXPLAIN: what its options show, and what it runs.

use kiln_sql::{DataType, Database, Options, Session, Value};

fn open() -> Database {
    let database = Database::open(Options::new().workers(1)).expect("an empty database");
    database
        .execute(
            "CREATE TABLE item (id INT PRIMARY KEY, shop INT NOT NULL, price INT NOT NULL);
             CREATE INDEX item_shop ON item (shop);
             INSERT INTO item VALUES (1, 7, 10), (2, 7, 20), (3, 8, 30)",
        )
        .expect("a table with rows");
    database
}

/// The lines of an explanation.
fn explained(session: &mut Session, statement: &str) -> Vec<String> {
    let result = session.query(statement, ()).expect(statement);
    let rows = result.into_rows::<(String,)>().expect("a column of texts");
    rows.into_iter().map(|(line,)| line).collect()
}

/// The value at a path of an explanation in JSON, as text.
fn at(database: &Database, json: &str, path: &str) -> Option<String> {
    let query = format!("SELECT $1::json #>> '{{{path}}}'");
    let rows = database.query(&query, (json,)).expect("it is JSON");
    rows.into_one::<(Option<String>,)>().expect("one row").0
}

#[test]
fn json_is_one_row_whose_nodes_have_postgresqls_names() {
    let database = open();
    let mut session = database.session().expect("a session");
    let statement = session
        .parse(
            "EXPLAIN (FORMAT JSON) SELECT price FROM item WHERE id = 1",
            &[],
        )
        .expect("it is a statement");
    let columns = statement.columns().expect("it returns rows");
    assert_eq!(columns[0].name, "QUERY PLAN");
    assert_eq!(columns[0].data_type, DataType::JSON);
    let lines = explained(&mut session, statement.text());
    assert_eq!(lines.len(), 1);
    let of = |path| at(&database, &lines[0], path);
    assert_eq!(of("0,Plan,Node Type").as_deref(), Some("Index Scan"));
    assert_eq!(of("0,Plan,Relation Name").as_deref(), Some("item"));
    assert_eq!(of("0,Plan,Index Name").as_deref(), Some("item_pkey"));
    assert_eq!(of("0,Plan,Index Cond").as_deref(), Some("id = 1"));
    assert_eq!(of("0,Plan,Columns Read").as_deref(), Some(r#"["price"]"#));
    assert_eq!(of("0,Read Only").as_deref(), Some("true"));
    assert_eq!(of("0,Plan,Actual Rows"), None);
    assert_eq!(of("0,Execution Time"), None);
}

#[test]
fn json_of_a_change_nests_what_is_done_for_each_row() {
    let database = open();
    let mut session = database.session().expect("a session");
    let lines = explained(
        &mut session,
        "EXPLAIN (FORMAT JSON, COSTS off) UPDATE item SET price = price + 1 WHERE shop = 7",
    );
    let of = |path| at(&database, &lines[0], path);
    assert_eq!(of("0,Plan,Node Type").as_deref(), Some("Nested Loop"));
    assert_eq!(
        of("0,Plan,Plans,0,Node Type").as_deref(),
        Some("Index Scan")
    );
    assert_eq!(
        of("0,Plan,Plans,0,Index Name").as_deref(),
        Some("item_shop")
    );
    assert_eq!(of("0,Plan,Plans,0,For Write").as_deref(), Some("true"));
    assert_eq!(
        of("0,Plan,Plans,1,Node Type").as_deref(),
        Some("ModifyTable")
    );
    assert_eq!(of("0,Plan,Plans,1,Operation").as_deref(), Some("Update"));
    let untouched = database.query("SELECT sum(price) FROM item", ());
    assert_eq!(untouched.and_then(|rows| rows.into_one()), Ok((60_i64,)));
}

#[test]
fn analyze_runs_the_statement_and_counts_the_rows_that_it_changes() {
    let database = open();
    let mut session = database.session().expect("a session");
    let lines = explained(
        &mut session,
        "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) UPDATE item SET price = 0 WHERE shop = 7",
    );
    assert_eq!(lines.last().map(String::as_str), Some("Rows: 2"));
    let lines = explained(
        &mut session,
        "EXPLAIN ANALYZE SELECT * FROM item WHERE price = 0",
    );
    assert_eq!(lines[lines.len() - 2], "Rows: 2");
    let time = lines[lines.len() - 1].strip_prefix("Execution Time: ");
    let time = time.and_then(|time| time.strip_suffix(" ms"));
    assert!(
        time.is_some_and(|time| time.parse::<f64>().is_ok()),
        "{lines:?}"
    );
    let json = "EXPLAIN (ANALYZE, TIMING off, FORMAT JSON) DELETE FROM item WHERE shop = 7";
    let lines = explained(&mut session, json);
    let of = |path| at(&database, &lines[0], path);
    assert_eq!(of("0,Plan,Actual Rows").as_deref(), Some("2"));
    assert_eq!(of("0,Plan,Actual Total Time"), None);
    assert!(of("0,Execution Time").is_some());
}

#[test]
fn analyze_gives_the_statement_what_the_session_knows() {
    let database = open();
    let mut session = database.session().expect("a session");
    let lines = explained(
        &mut session,
        "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) SELECT 1 WHERE current_user = session_user",
    );
    assert_eq!(lines.last().map(String::as_str), Some("Rows: 1"));
}

#[test]
fn verbose_shows_which_updates_are_left_to_the_commit() {
    let database = open();
    let mut session = database.session().expect("a session");
    let update = "UPDATE item SET price = price + 1 WHERE id = 1";
    let shows = |lines: Vec<String>| lines.iter().any(|line| line == "updates");
    assert!(!shows(explained(
        &mut session,
        &format!("EXPLAIN {update}")
    )));
    assert!(shows(explained(
        &mut session,
        &format!("EXPLAIN VERBOSE {update}")
    )));
}

#[test]
fn execute_is_explained_with_the_values_that_it_gives() {
    let database = open();
    let mut session = database.session().expect("a session");
    session
        .execute("PREPARE cheap (INT) AS DELETE FROM item WHERE price < $1 * 10")
        .expect("a prepared statement");
    let lines = explained(&mut session, "EXPLAIN EXECUTE cheap(1 + 1)");
    assert!(
        lines.iter().any(|line| line.contains("delete item")),
        "{lines:?}"
    );
    let analyze = session
        .parse(
            "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) EXECUTE cheap($1)",
            &[],
        )
        .expect("its parameter is of the prepared statement's");
    assert_eq!(analyze.columns().map(<[_]>::len), Some(1));
    let mut portal = session
        .bind(&analyze, &[Value::from("3")])
        .expect("a value");
    let rows = session
        .execute_portal(&mut portal, 0)
        .expect("it runs")
        .rows;
    assert_eq!(rows.last(), Some(&vec![Value::from("Rows: 2")]));
    session
        .execute("SET default_transaction_read_only = on")
        .expect("a setting");
    let refused = session.execute("EXPLAIN ANALYZE EXECUTE cheap(100)");
    assert_eq!(refused.expect_err("it writes").state().as_str(), "25006");
    assert!(session.execute("EXPLAIN EXECUTE cheap(100)").is_ok());
}

#[test]
fn a_role_explains_what_it_may_run() {
    let database = open();
    let mut first = database.session().expect("a session");
    first.execute("CREATE ROLE clerk LOGIN").expect("a role");
    let mut session = database.session_as("clerk").expect("its session");
    session
        .execute("PREPARE all_items AS SELECT * FROM item")
        .expect("preparing asks for no privilege");
    for statement in ["EXPLAIN SELECT * FROM item", "EXPLAIN EXECUTE all_items"] {
        let refused = session.execute(statement).expect_err(statement);
        assert_eq!(refused.state().as_str(), "42501", "{statement}");
    }
}

#[test]
fn a_cursor_is_explained_as_its_query() {
    let database = open();
    let mut session = database.session().expect("a session");
    let of_cursor = explained(
        &mut session,
        "EXPLAIN DECLARE c CURSOR FOR SELECT * FROM item",
    );
    let of_query = explained(&mut session, "EXPLAIN SELECT * FROM item");
    assert_eq!(of_cursor, of_query);
}
