//! The audit sees what a benchmark must not lose.

use kiln_lab::audit::audit;
use kiln_workloads::{Totals, Workload};

/// A small TPC-C database.
fn tpcc() -> Workload {
    let mut workload = Workload::by_name("tpcc").expect("a workload of that name");
    for (option, value) in [("items", "100"), ("customers-per-district", "30")] {
        workload.set(option, value).expect("the option exists");
    }
    workload
}

/// The names of the conditions that fail after `script` was run on a fresh population.
fn failing(workload: &Workload, script: &str) -> Vec<String> {
    let database = kiln_lab::loaded(workload, 1, 0).expect("the workload loads");
    database.execute(script).expect("the script runs");
    let totals = Totals::new(workload.procedures().len());
    let report = audit(&database, workload, 1, &totals).expect("the audit runs");
    assert_eq!(report.passed(), report.violations.is_empty());
    for violation in &report.violations {
        assert!(!violation.rows.is_empty(), "{violation:?}");
        assert_eq!(violation.rows[0].len(), violation.columns.len());
    }
    report
        .violations
        .into_iter()
        .map(|violation| violation.name)
        .collect()
}

#[test]
fn a_fresh_population_passes() {
    assert_eq!(failing(&tpcc(), ""), Vec::<String>::new());
    let bank = Workload::by_name("smallbank").expect("a workload of that name");
    assert_eq!(failing(&bank, ""), Vec::<String>::new());
}

#[test]
fn a_lost_order_line_a_lost_payment_and_lost_money_are_found() {
    let delete = "DELETE FROM order_line WHERE ol_d_id = 3 AND ol_o_id = 5 AND ol_number = 1";
    let names = failing(&tpcc(), delete);
    assert!(names.contains(&"condition 4a".to_owned()), "{names:?}");
    assert!(names.contains(&"condition 6".to_owned()), "{names:?}");
    let names = failing(&tpcc(), "UPDATE warehouse SET w_ytd = w_ytd + 0.01");
    assert!(names.contains(&"condition 1".to_owned()), "{names:?}");
    let names = failing(
        &tpcc(),
        "INSERT INTO history SELECT * FROM history WHERE h_c_id = 1",
    );
    assert!(names.contains(&"payments entered".to_owned()), "{names:?}");
    let bank = Workload::by_name("smallbank").expect("a workload of that name");
    let take = "UPDATE savings SET balance = balance - 0.01 WHERE customer_id = 7";
    assert_eq!(failing(&bank, take), ["money"]);
}
