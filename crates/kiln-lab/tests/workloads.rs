//! Every workload runs, its audit passes, and its audit finds what a tamper breaks.

use kiln_engine::{Arguments, Driver, Engine, Outcome, Protocol};
use kiln_lab::audit::{AuditReport, audit};
use kiln_platform::thread;
use kiln_sql::Database;
use kiln_storage::types::Value;
use kiln_workloads::{Terminal, Totals, Workload, named_statements};

const SEED: u64 = 11;

fn small() -> impl Iterator<Item = Workload> {
    Workload::all().into_iter().map(Workload::small)
}

fn loaded(workload: &Workload) -> Database {
    workload.validate().expect("a small workload is valid");
    kiln_lab::loaded(workload, SEED, 0).expect("the workload loads")
}

/// Makes calls on several threads, and returns what the committed ones add up to.
fn run(
    database: &Database,
    workload: &Workload,
    protocol: Protocol,
    threads: usize,
    calls: usize,
) -> Totals {
    let engine = database.engine();
    engine.set_protocol(protocol).expect("no transaction runs");
    let drivers: Vec<Driver> = (0..threads)
        .map(|position| engine.driver(position).expect("there are worker slots"))
        .collect();
    let mut totals = Totals::new(workload.procedures().len());
    thread::scope(|scope| {
        let workers: Vec<_> = drivers
            .into_iter()
            .zip(workload.terminals(SEED, threads))
            .map(|(driver, terminal)| {
                scope.spawn(move || work(engine, workload, driver, terminal, calls))
            })
            .collect();
        for worker in workers {
            totals.merge(&worker.join().expect("the worker ends"));
        }
    });
    engine
        .set_protocol(Protocol::default())
        .expect("no transaction runs");
    totals
}

fn work(
    engine: &Engine,
    workload: &Workload,
    mut driver: Driver,
    mut terminal: Terminal,
    calls: usize,
) -> Totals {
    let procedures = workload.procedures();
    let handles: Vec<_> = procedures
        .iter()
        .map(|procedure| engine.procedure(procedure.name).expect("it exists"))
        .collect();
    let mut arguments = Arguments::new();
    for _ in 0..calls {
        let call = terminal.next(&mut arguments);
        let handle = &handles[call.procedure.0];
        match driver.call(handle, &mut arguments) {
            Outcome::Committed => {
                let rows: Vec<Vec<Value>> = driver.values(handle).expect("rows");
                terminal.committed(call, &rows);
            }
            Outcome::Rejected(error) => {
                let expected = workload.expected_rejections();
                assert!(expected.contains(&error.state().as_str()), "{error:#}");
            }
            Outcome::Expired => panic!("a call without a deadline expired"),
        }
    }
    terminal.totals().clone()
}

fn audited(database: &Database, workload: &Workload, totals: &Totals) -> AuditReport {
    audit(database, workload, SEED, totals).expect("the audit runs")
}

#[test]
fn calls_leave_data_that_the_audit_accepts() {
    for workload in small() {
        let database = loaded(&workload);
        let mut totals = Totals::new(workload.procedures().len());
        let report = audited(&database, &workload, &totals);
        assert!(report.passed(), "{}: {report:#?}", workload.name());
        // The same calls again and again: what they insert must be new each time.
        for protocol in Protocol::serializable() {
            let threads = if protocol.is_single_worker() { 1 } else { 3 };
            totals.merge(&run(&database, &workload, protocol, threads, 300));
            let report = audited(&database, &workload, &totals);
            let name = workload.name();
            assert!(report.passed(), "{name} under {protocol}: {report:#?}");
        }
        let committed: u64 = totals.committed.iter().sum();
        assert!(committed > 1_000, "{}: {totals:?}", workload.name());
    }
}

/// Ways to break each workload's data; those of TPC-C and of the anomalies need statements that
/// only PostgreSQL has, and are tried there.
const TAMPERS: [(&str, &str); 9] = [
    (
        "smallbank",
        include_str!("../../kiln-workloads/tests/tampers/smallbank.sql"),
    ),
    (
        "ycsb",
        include_str!("../../kiln-workloads/tests/tampers/ycsb.sql"),
    ),
    (
        "rmw",
        include_str!("../../kiln-workloads/tests/tampers/rmw.sql"),
    ),
    (
        "hot",
        include_str!("../../kiln-workloads/tests/tampers/hot.sql"),
    ),
    (
        "strife-hot",
        include_str!("../../kiln-workloads/tests/tampers/strife-hot.sql"),
    ),
    (
        "short-long",
        include_str!("../../kiln-workloads/tests/tampers/short-long.sql"),
    ),
    (
        "wikipedia",
        include_str!("../../kiln-workloads/tests/tampers/wikipedia.sql"),
    ),
    (
        "rubis",
        include_str!("../../kiln-workloads/tests/tampers/rubis.sql"),
    ),
    (
        "ranges",
        include_str!("../../kiln-workloads/tests/tampers/ranges.sql"),
    ),
];

#[test]
fn the_audit_finds_what_a_tamper_breaks() {
    for (name, tampers) in TAMPERS {
        let workload = Workload::by_name(name).expect("a workload of that name");
        let workload = workload.small();
        let tampers = named_statements(tampers);
        assert!(!tampers.is_empty(), "{name}");
        for (breaks, description, sql) in tampers {
            let database = loaded(&workload);
            let totals = run(&database, &workload, Protocol::Serial, 1, 400);
            assert!(audited(&database, &workload, &totals).passed(), "{name}");
            if let Err(error) = database.execute(sql) {
                panic!("{name}: {description}: {error:#}");
            }
            let report = audited(&database, &workload, &totals);
            let found: Vec<String> = report.violations.into_iter().map(|v| v.name).collect();
            for expected in breaks.trim_start_matches("breaks ").split(", ") {
                let is_found = found.iter().any(|name| name == expected);
                assert!(is_found, "{name}: {description}: only {found:?}");
            }
        }
    }
}
