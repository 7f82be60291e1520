//! What the analysis finds in TPC-C, compared with files that a person has read, and with what is
//! known.
//!
//! After a change on purpose, run the tests with `KILN_UPDATE_GOLDEN=1` and read the difference.

use kiln_platform::file;
use kiln_procedure::analysis::{Reason, Verdict};
use kiln_procedure::ir::{OpId, OperationKind};
use kiln_procedure::workload::conflicts::{self, ConflictKind, Resolution};
use kiln_procedure::workload::groups::{self, Grouping, Weighted};
use kiln_procedure::{Program, explain};
use kiln_sql::{Database, Options};
use kiln_storage::schema::ColumnSet;
use kiln_storage::table::Table;

/// TPC-C's weights (clause 5.2.3, with New-Order taking the rest).
const WEIGHTS: [(&str, f64); 5] = [
    ("new_order", 45.0),
    ("payment", 43.0),
    ("order_status", 4.0),
    ("delivery", 4.0),
    ("stock_level", 4.0),
];

fn tpcc() -> Database {
    let database = Database::open(Options::new().workers(1)).expect("an empty database");
    database
        .execute(include_str!("../../../kiln-workloads/sql/tpcc/schema.sql"))
        .expect("its tables");
    database
        .execute(include_str!(
            "../../../kiln-workloads/sql/tpcc/partitions.sql"
        ))
        .expect("its partitions");
    database
        .execute(include_str!(
            "../../../kiln-workloads/sql/tpcc/procedures.sql"
        ))
        .expect("its procedures");
    database
}

/// With TPC-C as it is split where calls come by these weights.
fn with_programs<T>(body: impl FnOnce(&[Weighted<'_>]) -> T) -> T {
    let database = tpcc();
    let catalog = database.engine().catalog();
    for (name, weight) in WEIGHTS {
        let procedure = catalog.procedure(name).expect("it is one of the five");
        procedure.assume_calls(1_000_000 * weight as u64);
    }
    database.execute("ANALYZE").expect("no block is open");
    let catalog = database.engine().catalog();
    let procedures: Vec<_> = catalog.procedures().collect();
    let programs: Vec<Weighted<'_>> = procedures
        .iter()
        .map(|procedure| Weighted {
            program: procedure.program(),
            weight: WEIGHTS
                .iter()
                .find(|(name, _)| *name == procedure.name())
                .map_or(0.0, |(_, weight)| *weight),
        })
        .collect();
    body(&programs)
}

fn program<'a>(programs: &[Weighted<'a>], name: &str) -> &'a Program {
    let mut programs = programs.iter().map(|weighted| weighted.program);
    programs
        .find(|program| program.name == name)
        .expect("it is one of the five")
}

fn names(table: &Table, columns: ColumnSet) -> Vec<&str> {
    let schema = table.schema();
    columns
        .iter()
        .map(|column| schema.columns[column.index()].name.as_str())
        .collect()
}

#[track_caller]
fn compare(name: &str, actual: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("KILN_UPDATE_GOLDEN").is_some() {
        file::write(path.as_ref(), actual.as_bytes()).expect("the golden file is writable");
    }
    let expected = file::read_to_string(path.as_ref()).expect("the golden file exists");
    assert!(
        expected == actual,
        "{name} differs; expected\n{expected}\nbut is\n{actual}"
    );
}

/// The columns of each update of a procedure that are deferred to the commit, and those that are
/// not.
fn verdicts(program: &Program) -> Vec<(String, &'static str)> {
    let verdicts = program.analysis.verdicts().iter();
    verdicts
        .map(|verdict| {
            let operation = &program.operations[verdict.op.0 as usize];
            let mut tables = program.tables.iter();
            let table = tables.find(|table| table.id() == operation.table);
            let schema = table.expect("its table").schema();
            let found = match &verdict.verdict {
                Verdict::Blind => "blind",
                Verdict::Deferred { .. } => "deferred",
                Verdict::Observed(observers) => {
                    assert!(!observers.is_empty());
                    "observed"
                }
            };
            (schema.columns[verdict.column.index()].name.clone(), found)
        })
        .collect()
}

/// What STO's authors found by hand (§6.3), as far as these procedures return no more than theirs.
#[test]
fn the_updates_of_tpcc_that_are_known_are_left_to_the_commit() {
    with_programs(|programs| {
        let list = |name: &str| verdicts(program(programs, name));
        let owned = |list: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
            list.iter()
                .map(|(name, found)| ((*name).to_owned(), *found))
                .collect()
        };
        assert_eq!(
            list("new_order"),
            owned(&[
                ("d_next_o_id", "observed"),
                ("s_quantity", "deferred"),
                ("s_ytd", "deferred"),
                ("s_order_cnt", "deferred"),
                ("s_remote_cnt", "deferred"),
            ])
        );
        // The specification has the balance and the data of bad credit displayed (clause 2.5.3.4).
        assert_eq!(
            list("payment"),
            owned(&[
                ("w_ytd", "deferred"),
                ("d_ytd", "deferred"),
                ("c_balance", "observed"),
                ("c_ytd_payment", "deferred"),
                ("c_payment_cnt", "deferred"),
                ("c_data", "observed"),
            ])
        );
        assert_eq!(
            list("delivery"),
            owned(&[
                ("o_carrier_id", "blind"),
                ("ol_delivery_d", "blind"),
                ("c_balance", "deferred"),
                ("c_delivery_cnt", "deferred"),
            ])
        );
        assert!(list("order_status").is_empty() && list("stock_level").is_empty());
        let next = &program(programs, "new_order").analysis.verdicts()[0].verdict;
        let Verdict::Observed(observers) = next else {
            panic!("{next:?}")
        };
        assert!(
            observers
                .iter()
                .any(|observer| observer.reason == Reason::Returned)
        );
    });
}

/// New-Order reads the tax and Payment adds to the takings: the false conflict of STO §5.3. And
/// what is deferred to the commit is not observed: nothing of a customer that Delivery credits.
#[test]
fn warehouse_tax_and_takings_are_split() {
    with_programs(|programs| {
        let payment = program(programs, "payment");
        let table = |name: &str| {
            let mut tables = programs
                .iter()
                .flat_map(|weighted| &weighted.program.tables);
            tables
                .find(|table| table.schema().name == name)
                .expect("a table")
                .clone()
        };
        let grouping = |table: &Table| -> Grouping {
            let usages = groups::usages(programs, table.id(), true);
            Grouping::of(table.schema().columns.len(), table.split(), usages)
        };
        let warehouse = table("warehouse");
        let split = names(&warehouse, grouping(&warehouse).split());
        assert!(split.contains(&"w_tax") && split.contains(&"w_name"));
        assert!(!split.contains(&"w_ytd"));
        let customer = table("customer");
        let split = names(&customer, grouping(&customer).split());
        assert!(split.contains(&"c_last") && split.contains(&"c_discount"));
        assert!(!split.contains(&"c_balance"));
        let stock = table("stock");
        let split = names(&stock, grouping(&stock).split());
        assert!(split.contains(&"s_data") && split.contains(&"s_dist_05"));
        assert!(!split.contains(&"s_quantity"));
        let item = table("item");
        assert_eq!(item.split().len(), item.schema().columns.len());
        // The warehouse's look-up in Payment: its address alone.
        let lookup = payment
            .operations
            .iter()
            .position(|operation| operation.table == warehouse.id())
            .expect("it looks the warehouse up");
        let observed = payment.analysis.observed(OpId(lookup as u16));
        assert!(names(&warehouse, observed.at_once).contains(&"w_ytd"));
        assert!(!names(&warehouse, observed.deferring).contains(&"w_ytd"));
        // Payment against New-Order at the warehouse: timestamp splitting alone.
        let statements = conflicts::statements(programs);
        let of = |procedure: &str| {
            let mut all = statements.iter();
            all.position(|statement| {
                statement.procedure == procedure && statement.table == warehouse.id()
            })
            .expect("a statement on the warehouse")
        };
        let warehouse_grouping = grouping(&warehouse);
        let found = conflicts::conflicts(&statements, |table| {
            (table == warehouse.id()).then_some(&warehouse_grouping)
        });
        let between = |one: usize, other: usize| {
            let mut all = found.iter();
            all.find(|conflict| {
                conflict.one == one
                    && conflict.other == other
                    && conflict.kind == ConflictKind::ReadWrite
            })
            .map(|conflict| conflict.resolution)
        };
        let (new_order, payment) = (of("new_order"), of("payment"));
        assert_eq!(
            between(new_order, payment),
            Some(Resolution::TimestampSplitting)
        );
        assert_eq!(between(payment, payment), Some(Resolution::Both));
    });
}

#[test]
fn golden_updates() {
    with_programs(|programs| {
        let all = ["new_order", "payment", "delivery"];
        let text: Vec<String> = all
            .iter()
            .map(|name| format!("{name}: {}", explain::updates(program(programs, name))))
            .collect();
        compare("tpcc_updates.txt", &text.join("\n"));
    });
}

#[test]
fn golden_tables() {
    with_programs(|programs| compare("tpcc_tables.txt", &explain::tables(programs)));
}

#[test]
fn golden_conflicts() {
    with_programs(|programs| compare("tpcc_conflicts.txt", &explain::conflicts(programs)));
}

#[test]
fn plans_read_what_decides_about_records_and_nothing_else() {
    with_programs(|programs| {
        let mut plans = String::new();
        for (name, _) in WEIGHTS {
            plans += &explain::text(program(programs, name).reconnaissance());
            plans.push('\n');
        }
        compare("tpcc_plans.txt", &plans);
        let plan = program(programs, "new_order").reconnaissance();
        let kinds = plan.operations.iter().map(|operation| operation.kind);
        assert!(kinds.into_iter().all(|kind| kind == OperationKind::Lookup));
    });
}

#[test]
fn how_healing_restores_new_order_and_delivery() {
    with_programs(|programs| {
        let sections = ["new_order", "delivery"].map(|name| {
            let program = program(programs, name);
            format!("{name}\n{}", explain::healing(program))
        });
        compare("tpcc_healing.txt", &sections.join("\n"));
    });
}
