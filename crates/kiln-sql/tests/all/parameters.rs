//! The types that are inferred for parameters, and the columns that are described, for the
//! statements of `parameters.txt`: compared with what PostgreSQL answered once, and with a live
//! server where `KILN_TEST_POSTGRES` names one.
//!
//! A statement of the file is followed by PostgreSQL's answer: the types of the parameters, and
//! behind an arrow the columns; or the SQLSTATE. Where Kiln answers something else, another line
//! says what. SQL's PREPARE takes no CALL and no EXPLAIN; what PostgreSQL answers to these was
//! asked through the protocol, by libpq's `PQdescribePrepared`.

use std::io::Write;
use std::process::{Command, Stdio};

use kiln_platform::thread;
use kiln_sql::{Database, Options, Session};

const TABLE: &str = include_str!("../parameters.txt");

struct Case {
    statement: &'static str,
    postgres: &'static str,
    /// `None` where it is the same.
    kiln: Option<&'static str>,
}

/// The definitions and the statements of the table.
fn table() -> (&'static str, Vec<Case>) {
    let (setup, cases) = TABLE.split_once("\n---\n").expect("a line divides them");
    let mut found: Vec<Case> = Vec::new();
    for line in cases.lines() {
        match (line.strip_prefix("  kiln: "), line.strip_prefix("  ")) {
            (Some(kiln), _) => found.last_mut().expect("a statement").kiln = Some(kiln),
            (None, Some(answer)) => found.last_mut().expect("a statement").postgres = answer,
            (None, None) => found.push(Case {
                statement: line,
                postgres: "",
                kiln: None,
            }),
        }
    }
    (setup, found)
}

fn described(session: &mut Session, sql: &str) -> String {
    let statement = match session.parse(sql, &[]) {
        Ok(statement) => statement,
        Err(error) => return format!("!{}", error.state()),
    };
    let parameters = statement.parameters().iter();
    let parameters: Vec<String> = parameters.map(ToString::to_string).collect();
    let columns = statement.columns().map(|columns| {
        let columns = columns.iter();
        let columns = columns.map(|column| format!("{}: {}", column.name, column.data_type));
        columns.collect::<Vec<_>>().join(", ")
    });
    answer(&parameters.join(", "), columns.as_deref())
}

fn answer(parameters: &str, columns: Option<&str>) -> String {
    match columns {
        Some(columns) => format!("({parameters}) -> {columns}"),
        None => format!("({parameters})"),
    }
}

#[test]
fn types_are_inferred_as_in_postgresql() {
    let (setup, cases) = table();
    assert!(cases.len() > 100, "{} statements are left", cases.len());
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options).expect("the options are good");
    database.execute(setup).expect("the definitions are good");
    let mut session = database.session().expect("a session is free");
    let mut wrong = Vec::new();
    for case in &cases {
        let found = described(&mut session, case.statement);
        let expected = case.kiln.unwrap_or(case.postgres);
        if found != expected {
            wrong.push(format!(
                "{}\n  found {found}\n  not   {expected}",
                case.statement
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn postgresql_answers_what_is_recorded() {
    let Ok(connection) = std::env::var("KILN_TEST_POSTGRES") else {
        eprintln!("skipped: KILN_TEST_POSTGRES is not set");
        return;
    };
    let (setup, cases) = table();
    let is_prepared = |case: &&Case| {
        let statement = case.statement;
        !statement.starts_with("CALL") && !statement.starts_with("EXPLAIN")
    };
    let cases: Vec<&Case> = cases.iter().filter(is_prepared).collect();
    let mut wrong = Vec::new();
    for (case, found) in cases.iter().zip(answers(&connection, setup, &cases)) {
        if found != case.postgres {
            let (statement, expected) = (case.statement, case.postgres);
            wrong.push(format!("{statement}\n  found {found}\n  not   {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the server answers to each statement.
fn answers(connection: &str, setup: &str, cases: &[&Case]) -> Vec<String> {
    const MARK: &str = "=#=";
    let schema = format!("kiln_parameters_{}", std::process::id());
    let mut script = format!(
        "SET client_min_messages = error;\nCREATE SCHEMA {schema};\nSET search_path TO {schema};\n\
         {setup}\n\\set VERBOSITY sqlstate\n"
    );
    for case in cases {
        let statement = case.statement;
        script += &format!(
            "\\echo {MARK}\nPREPARE it AS {statement};\n\\echo :SQLSTATE\n\
             SELECT array_to_string(parameter_types::text[], ', ') FROM pg_prepared_statements;\n\
             {statement} \\gdesc\nDEALLOCATE ALL;\n"
        );
    }
    script += &format!("\\echo {MARK}\nDROP SCHEMA {schema} CASCADE;\n");
    let mut psql = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "-A", "-t", "-F", ": ", "--dbname"])
        .arg(connection)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("psql is installed");
    let mut input = psql.stdin.take().expect("it is piped");
    let writer = thread::spawn("psql-input", move || input.write_all(script.as_bytes()))
        .expect("a thread starts");
    let output = psql.wait_with_output().expect("psql ends");
    writer.join().expect("no panic").expect("psql reads all");
    let printed = String::from_utf8(output.stdout).expect("it is UTF-8");
    let blocks: Vec<&str> = printed.split(MARK).skip(1).collect();
    assert_eq!(
        blocks.len(),
        cases.len() + 1,
        "psql stopped early: {printed}"
    );
    blocks[..cases.len()]
        .iter()
        .map(|block| read(block))
        .collect()
}

/// One block of psql's output: the SQLSTATE, the parameters' types, the columns.
fn read(block: &str) -> String {
    let lines: Vec<&str> = block.trim_start_matches('\n').lines().collect();
    match lines.as_slice() {
        [
            "00000",
            types,
            "The command has no result, or the result has no columns.",
        ] => answer(types, None),
        ["00000", types, columns @ ..] => answer(types, Some(&columns.join(", "))),
        [state, ..] => format!("!{state}"),
        [] => "nothing".to_owned(),
    }
}
