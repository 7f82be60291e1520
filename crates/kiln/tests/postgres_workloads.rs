//! Runs the workloads on a real PostgreSQL and on Kiln: the same schema, procedures and
//! population, the same seeded calls, one after another.
//!
//! Compared are the rows or the error of every call, every row of every table afterwards, and what
//! the audits find. Kiln does it under each protocol by calls, and once more with the calls written
//! as SQL text.

mod postgres;

use std::process::ExitCode;

use kiln_engine::{Call, Configuration, Engine, Loader, Reply};
use kiln_sql::{Database, ResultSet};
use kiln_storage::error::{Error, Result as KilnResult};
use kiln_storage::types::{Decimal, Style, Value};
use kiln_workloads::export::{self, CopySink};
use kiln_workloads::{ArgumentValues, RowSink, Totals, Workload};

use postgres::harness::Harness;
use postgres::kiln;
use postgres::outcome::{SUCCESS, StatementOutcome};
use postgres::server::Server;

const SEED: u64 = 20_261_120;

/// Calls of each workload.
const CALLS: usize = 3_200;

/// So many differences are told of one run; the rest are counted.
const DIFFERENCES_SHOWN: usize = 12;

fn main() -> ExitCode {
    kiln::keep_panics();
    let mut harness = Harness::from_arguments();
    let server = Server::from_environment();
    for workload in workloads() {
        let name = format!("workload::{}", workload.name());
        match &server {
            Some(server) => harness.run(&name, || check(&workload, server)),
            None => harness.skip(&name),
        }
    }
    harness.finish()
}

/// Small populations, and settings that make rare events common.
fn workloads() -> Vec<Workload> {
    let with = |name: &str, options: &[(&str, &str)]| {
        let mut workload = Workload::by_name(name).expect("a known workload");
        for (option, value) in options {
            workload.set(option, value).expect("a valid option");
        }
        workload
    };
    vec![
        with(
            "tpcc",
            &[
                ("warehouses", "2"),
                ("items", "500"),
                ("customers-per-district", "40"),
                ("rollback-percent", "5"),
                ("remote-item-percent", "10"),
                ("warehouse-choice", "uniform"),
            ],
        ),
        with(
            "smallbank",
            &[
                ("accounts", "200"),
                ("hot-accounts", "10"),
                ("hot-percent", "50"),
            ],
        ),
        with("anomalies", &[("keys", "8"), ("operations", "10")]),
        with("ycsb", &[]).small(),
        with("rmw", &[]).small(),
        with("strife-hot", &[]).small(),
        with("short-long", &[]).small(),
        with("wikipedia", &[]).small(),
        with("rubis", &[]).small(),
        with("ranges", &[]).small(),
    ]
}

/// A call that both databases make.
struct Drawn {
    call: kiln_workloads::Call,
    arguments: Vec<Value>,
    /// The call as a statement.
    sql: String,
}

fn draw(workload: &Workload) -> Vec<Drawn> {
    // One worker, so that calls run in the order in which they are drawn. The terminal learns of
    // no result: nothing that it draws depends on those.
    let mut terminal = workload.terminals(SEED, 1).remove(0);
    let mut arguments = ArgumentValues::default();
    let next = |_| {
        let call = terminal.next(&mut arguments);
        let procedure = &workload.procedures()[call.procedure.0];
        let sql = export::render_call(procedure, arguments.values());
        Drawn {
            call,
            arguments: arguments.values().to_vec(),
            sql: sql.trim_end_matches(';').to_owned(),
        }
    };
    (0..CALLS).map(next).collect()
}

/// The statements after the calls: all rows of all tables, the audits, and the closing checks.
fn closing_statements(workload: &Workload, columns: &dyn Fn(&str) -> usize) -> Vec<String> {
    let all_columns = |table: &&str| {
        let positions = (1..=columns(table)).map(|column| column.to_string());
        positions.collect::<Vec<_>>().join(", ")
    };
    let dumps = workload
        .tables()
        .iter()
        .map(|table| format!("SELECT * FROM {table} ORDER BY {}", all_columns(table)));
    let audits = workload
        .audits()
        .into_iter()
        .map(|audit| audit.sql.to_owned());
    let closing = workload
        .closing_checks(SEED, &Totals::default())
        .into_iter();
    dumps
        .chain(audits)
        .chain(closing.map(|check| check.sql.to_owned()))
        .map(|sql| sql.trim_end().trim_end_matches(';').to_owned())
        .collect()
}

/// How Kiln is asked to make the calls.
#[derive(Clone, Copy)]
enum Door {
    Calls(Configuration),
    SqlText,
}

fn check(workload: &Workload, server: &Server) -> Result<String, String> {
    let drawn = draw(workload);
    let schema = kiln::open(Configuration::default())
        .and_then(|database| database.execute(workload.schema_sql()).map(|_| database))
        .map_err(|error| format!("Kiln refuses the schema: {error:#}"))?;
    let catalog = schema.engine().catalog();
    let width = |table: &str| {
        catalog
            .table(table)
            .map_or(0, |table| table.schema().columns.len())
    };
    let closing = closing_statements(workload, &width);

    let mut population = CopySink::new(Vec::new());
    workload.populate(SEED, &mut population);
    let population = population.finish().map_err(|error| error.to_string())?;
    let setup = format!(
        "{}\n{}\n{}ANALYZE;\n",
        workload.schema_sql(),
        workload.procedures_sql(),
        String::from_utf8_lossy(&population)
    );
    let statements: Vec<String> = drawn
        .iter()
        .map(|drawn| drawn.sql.clone())
        .chain(closing.iter().cloned())
        .collect();
    let on_postgres = server.run_after(&setup, &statements)?;

    let rejected = on_postgres[..CALLS]
        .iter()
        .filter(|outcome| outcome.sqlstate != SUCCESS);
    let rejected = rejected.count();
    if rejected == 0 && !workload.expected_rejections().is_empty() {
        return Err("no call was rejected, although some should be".to_owned());
    }
    let rows: usize = on_postgres[CALLS..CALLS + workload.tables().len()]
        .iter()
        .map(|outcome| outcome.output.lines().count() - 1)
        .sum();

    let doors = Configuration::serializable()
        .map(Door::Calls)
        .chain([Door::SqlText]);
    let mut failures = Vec::new();
    for door in doors {
        let name = match door {
            Door::Calls(protocol) => format!("calls under {protocol}"),
            Door::SqlText => "calls as SQL text".to_owned(),
        };
        let compared = kiln::guarded(|| compare(workload, door, &drawn, &statements, &on_postgres));
        let panicked = |message| Err(format!("Kiln panicked: {message}"));
        if let Err(failure) = compared.unwrap_or_else(panicked) {
            failures.push(format!("{name}: {failure}"));
        }
    }
    match failures.is_empty() {
        true => Ok(format!(
            " ({CALLS} calls, {rejected} rejected, {rows} rows)"
        )),
        false => Err(failures.join("\n\n")),
    }
}

/// Does all on Kiln and compares.
fn compare(
    workload: &Workload,
    door: Door,
    drawn: &[Drawn],
    statements: &[String],
    on_postgres: &[StatementOutcome],
) -> Result<(), String> {
    let protocol = match door {
        Door::Calls(protocol) => protocol,
        Door::SqlText => Configuration::default(),
    };
    let told = |error: Error| format!("{error:#}");
    let database = kiln::open(protocol).map_err(told)?;
    database.execute(workload.schema_sql()).map_err(told)?;
    database.execute(workload.partitions_sql()).map_err(told)?;
    database.execute(workload.procedures_sql()).map_err(told)?;
    load(&database, workload).map_err(told)?;

    let mut session = database.session().map_err(told)?;
    let mut terminal = workload.terminals(SEED, 1).remove(0);
    let mut differences = Vec::new();
    for (drawn, expected) in drawn.iter().zip(on_postgres) {
        let (outcome, rows) = match door {
            Door::Calls(_) => call(database.engine(), workload, drawn),
            Door::SqlText => match session.execute_statement(&drawn.sql.as_str().into()) {
                Ok(done) => succeeded(done.result.unwrap_or_default()),
                Err(error) => (kiln::failure(&error), Vec::new()),
            },
        };
        if outcome.sqlstate == SUCCESS {
            terminal.committed(drawn.call, &rows);
        }
        if !outcome.agrees_with(expected, true) {
            differences.push(difference(&drawn.sql, expected, &outcome));
        }
    }
    for (statement, expected) in statements.iter().zip(on_postgres).skip(drawn.len()) {
        let outcome = kiln::run_statement(&mut session, statement);
        if !outcome.agrees_with(expected, true) {
            differences.push(difference(statement, expected, &outcome));
        }
    }
    differences.extend(audit(&database, workload, terminal.totals()));
    if differences.is_empty() {
        return Ok(());
    }
    let count = differences.len();
    differences.truncate(DIFFERENCES_SHOWN);
    Err(format!(
        "{count} differences; the first are\n{}",
        differences.join("\n")
    ))
}

/// Makes a call through the engine.
fn call(
    engine: &Engine,
    workload: &Workload,
    drawn: &Drawn,
) -> (StatementOutcome, Vec<Vec<Value>>) {
    let procedure = &workload.procedures()[drawn.call.procedure.0];
    match engine.execute(Call::new(procedure.name, &drawn.arguments)) {
        Ok(Reply::Committed(rows)) => {
            let columns = rows.columns().to_vec();
            succeeded(ResultSet {
                columns,
                rows: rows.into_values(),
            })
        }
        Ok(Reply::Rejected(error)) | Err(error) => (kiln::failure(&error), Vec::new()),
        Ok(Reply::Expired) => (StatementOutcome::failure("57014", "expired"), Vec::new()),
    }
}

fn succeeded(rows: ResultSet) -> (StatementOutcome, Vec<Vec<Value>>) {
    (
        StatementOutcome::success(kiln::csv(&rows, &Style::default())),
        rows.rows,
    )
}

/// What differs: the outcomes, or of long ones their first line that does.
fn difference(sql: &str, expected: &StatementOutcome, got: &StatementOutcome) -> String {
    let (left, right) = (expected.to_string(), got.to_string());
    let lines = left.lines().count().max(right.lines().count());
    if lines <= 4 {
        return format!("{sql}\n  PostgreSQL: {left}\n  Kiln: {right}");
    }
    let (mut left, mut right) = (left.lines(), right.lines());
    let pairs = (1..=lines).map(|number| (number, left.next(), right.next()));
    let differ: Vec<_> = pairs.filter(|(_, left, right)| left != right).collect();
    let told = |line: Option<&str>| line.unwrap_or("nothing more").to_owned();
    match differ.first() {
        Some((number, left, right)) => format!(
            "{sql}\n  {} of {lines} lines differ; line {number} is\n  PostgreSQL: {}\n  Kiln: {}",
            differ.len(),
            told(*left),
            told(*right),
        ),
        None => format!("{sql}\n  the texts differ in blank lines only"),
    }
}

/// What the audits find: nothing, if the committed calls are all there.
fn audit(database: &Database, workload: &Workload, totals: &Totals) -> Vec<String> {
    let mut violations = Vec::new();
    // Settings choose one procedure of rmw.
    if totals.committed.contains(&0) && workload.name() != "rmw" {
        violations.push(format!(
            "some procedure never committed: {:?}",
            totals.committed
        ));
    }
    for audit in workload.audits() {
        match database.query(audit.sql, ()) {
            Ok(rows) if rows.is_empty() => {}
            Ok(rows) => violations.push(format!("{} is violated: {rows:?}", audit.name)),
            Err(error) => violations.push(format!("{}: {error:#}", audit.name)),
        }
    }
    for check in workload.closing_checks(SEED, totals) {
        let found = database.query(check.sql, ()).map(|rows| rows.to_csv());
        let found = found.map_err(|error| error.to_string());
        let number = found.as_ref().ok().and_then(|csv| csv.lines().nth(1));
        if number.and_then(|text| Decimal::parse(text).ok()) != Some(check.expected) {
            violations.push(format!("{}: {found:?}, not {}", check.name, check.expected));
        }
    }
    violations
}

/// Gives the population to a loader for each table in turn.
struct LoaderSink<'a> {
    engine: &'a Engine,
    loader: Option<Loader>,
    /// The first error; what follows it is ignored.
    error: Option<Error>,
}

impl LoaderSink<'_> {
    fn note<T>(&mut self, result: KilnResult<T>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }

    fn end_table(&mut self) {
        if let Some(loader) = self.loader.take() {
            let finished = loader.finish();
            self.note(finished);
        }
    }
}

impl RowSink for LoaderSink<'_> {
    fn table(&mut self, name: &str, columns: &[&str], _rows_expected: u64) {
        self.end_table();
        let opened = self.engine.loader(name, columns);
        self.loader = self.note(opened);
    }

    fn row(&mut self, values: &[Value]) {
        let added = self
            .loader
            .as_mut()
            .map_or(Ok(()), |loader| loader.row(values));
        self.note(added);
    }
}

fn load(database: &Database, workload: &Workload) -> KilnResult<()> {
    let mut sink = LoaderSink {
        engine: database.engine(),
        loader: None,
        error: None,
    };
    workload.populate(SEED, &mut sink);
    sink.end_table();
    sink.error.map_or(Ok(()), Err)
}
