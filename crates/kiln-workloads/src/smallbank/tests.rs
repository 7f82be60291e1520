use super::*;
use crate::definition::DrawCalls;
use crate::population::decimal;
use crate::testing::Rows;
use crate::{Call, Workload};
use kiln_storage::types::Value;

fn populate(accounts: u32, seed: u64) -> Rows {
    let config = Config {
        accounts,
        ..Config::default()
    };
    Rows::populated(&Workload::SmallBank(config), seed)
}

#[test]
fn every_customer_has_a_row_in_each_table_and_the_total_is_known() {
    for accounts in [2, 1_000, 70_000] {
        let rows = populate(accounts, 3);
        let mut cents = 0;
        for table in TABLES {
            let values: Vec<&Value> = rows.of(table).flatten().collect();
            assert_eq!(values.len(), 2 * accounts as usize, "{table}");
            for (customer, row) in (1..).zip(values.chunks(2)) {
                assert_eq!(*row[0], Value::Integer(customer));
                if let Value::Numeric(balance) = row[1] {
                    assert!((1_000_000..=5_000_000).contains(&balance.mantissa()));
                    cents += balance.mantissa();
                }
            }
        }
        let config = Config {
            accounts,
            ..Config::default()
        };
        assert_eq!(cents, i128::from(initial_cents(&config, 3)));
    }
}

#[test]
fn populations_are_determined_by_the_seed() {
    assert!(populate(500, 1) == populate(500, 1));
    assert!(populate(500, 1) != populate(500, 2));
}

#[test]
fn a_part_beyond_the_last_is_empty() {
    let mut rows = Rows::default();
    populate_part(&Config::default(), 1, 5_000_000_000, &mut rows);
    assert_eq!(rows.count(), 0);
}

fn calls(config: &Config, count: usize) -> Vec<(Call, Vec<Value>)> {
    crate::testing::calls(&Workload::SmallBank(config.clone()), 11, count)
}

#[test]
fn the_mix_is_that_of_h_store() {
    let drawn = calls(&Config::default(), 40_000);
    for (procedure, percent) in [
        (AMALGAMATE, 15),
        (BALANCE, 15),
        (DEPOSIT_CHECKING, 15),
        (SEND_PAYMENT, 25),
        (TRANSACT_SAVINGS, 15),
        (WRITE_CHECK, 15),
    ] {
        let count = drawn
            .iter()
            .filter(|(call, _)| call.procedure == procedure)
            .count();
        assert!(
            count.abs_diff(400 * percent) < 400,
            "{procedure:?}: {count}"
        );
    }
    for (call, arguments) in &drawn {
        let procedure = &PROCEDURES[call.procedure.0];
        assert_eq!(arguments.len(), procedure.parameters.len());
        if procedure.parameters.get(1) == Some(&"integer") {
            assert_ne!(arguments[0], arguments[1]);
        }
    }
    assert!(drawn == calls(&Config::default(), 40_000));
}

#[test]
fn hot_customers_get_their_share() {
    let config = Config {
        accounts: 1_000,
        skew: Skew::Hot {
            accounts: 10,
            percent: 90.0,
        },
    };
    let drawn = calls(&config, 20_000);
    let hot = drawn
        .iter()
        .filter(|(_, arguments)| matches!(arguments[0], Value::BigInt(customer) if customer <= 10));
    let hot = hot.count();
    assert!((17_800..18_200).contains(&hot), "{hot}");
}

#[test]
fn a_skew_that_always_chooses_one_customer_still_finds_another() {
    let config = Config {
        accounts: 2,
        skew: Skew::Zipf { theta: 10.0 },
    };
    assert!(calls(&config, 2_000).iter().all(|(call, arguments)| {
        PROCEDURES[call.procedure.0].parameters.get(1) != Some(&"integer")
            || arguments[0] != arguments[1]
    }));
}

#[test]
fn changes_of_committed_calls_are_added_up() {
    let config = Config::default();
    let mut terminal = Terminal::new(&config, 1, 0);
    let call = Call::immediate;
    let row = |cents| [[Value::Numeric(decimal(cents, 2))]];
    terminal.committed(call(DEPOSIT_CHECKING), &row(1_30));
    terminal.committed(call(WRITE_CHECK), &row(-6_00));
    // What an amalgamation returns is money moved, not money gained.
    terminal.committed(call(AMALGAMATE), &row(10_000));
    assert_eq!(terminal.totals().money_cents, -4_70);
    let checks = closing_checks(&config, 1, terminal.totals());
    let expected = i128::from(initial_cents(&config, 1)) - 4_70;
    assert_eq!(checks[0].expected, Decimal::new(expected, 2).unwrap());
}
