//! The catalogs of the bundled workloads, rebuilt from their text and from their statements.

use kiln::{Database, Options};
use kiln_engine::{BasisFactors, CatalogStatement};
use kiln_sql::parse::script;
use kiln_workloads::Workload;

/// The catalog's text, and what its procedures were compiled to.
fn dump(database: &Database) -> String {
    let catalog = database.engine().catalog();
    let written = catalog.written().expect("only statements made it");
    let mut out = written.to_string();
    for procedure in catalog.procedures() {
        let explained = database.explain(procedure.name());
        out.push_str(&explained.expect("it is there"));
        out.push_str(&format!("{:?}\n", procedure.program()));
    }
    out
}

fn first_difference(one: &str, other: &str) -> Option<(String, String)> {
    let mut lines = one.lines().zip(other.lines());
    let found = lines.find(|(one, other)| one != other)?;
    Some((found.0.to_owned(), found.1.to_owned()))
}

#[test]
fn every_workload_has_a_catalog_that_can_be_written_down() {
    for split in [false, true] {
        let mut factors = BasisFactors::default();
        factors.split_indexes = split;
        let options = || Options::new().workers(1).pin_workers(false);
        for workload in Workload::all() {
            let name = workload.name();
            let opened = options().basis_factors(factors);
            let database = Database::open(opened).expect("the options are good");
            let mut session = database.session().expect("a session is free");
            let mut statements: Vec<CatalogStatement> = Vec::new();
            let texts = [
                workload.schema_sql(),
                workload.partitions_sql(),
                workload.procedures_sql(),
            ];
            for source in texts.into_iter().flat_map(script) {
                let result = session.execute_statement(&source);
                result.unwrap_or_else(|error| panic!("{name}: {error}"));
                let statement = database.engine().catalog().statement().cloned();
                let statement = statement.expect("a statement made it");
                if statements.last().map(|last| last.version) != Some(statement.version) {
                    statements.push((*statement).clone());
                }
            }
            let expected = dump(&database);
            let written = database.engine().written_catalog().expect("it is SQL");
            let written = written.to_string().parse().expect("it was written");
            let rebuilt = Database::rebuild(options(), &written).expect("it can be rebuilt");
            let difference = first_difference(&dump(&rebuilt), &expected);
            assert_eq!(difference, None, "{name}, from its text");
            let again = Database::open(options()).expect("the options are good");
            for statement in &statements {
                again.redo(statement).expect("it is the next one");
            }
            let difference = first_difference(&dump(&again), &expected);
            assert_eq!(difference, None, "{name}, from its statements");
            assert!(!statements.is_empty());
        }
    }
}
