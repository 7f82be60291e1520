use super::*;
use crate::definition::DrawCalls;
use crate::population::RowSink;
use crate::testing::{Rows, integer};
use crate::{ArgumentValues, Call, Workload, named_statements};
use kiln_storage::types::Value;

fn populate(config: &Config, seed: u64) -> Rows {
    Rows::populated(&Workload::Tpcc(config.clone()), seed)
}

#[test]
fn the_population_has_the_specifications_rows() {
    /// Counts rows without keeping them.
    #[derive(Default)]
    struct Counts(Vec<(String, u64, u64)>);
    impl RowSink for Counts {
        fn table(&mut self, name: &str, _: &[&str], rows_expected: u64) {
            self.0.push((name.to_owned(), rows_expected, 0));
        }
        fn row(&mut self, _: &[Value]) {
            self.0.last_mut().expect("a table was announced").2 += 1;
        }
    }
    let config = Config::default();
    let mut counts = Counts::default();
    populate_shared(&config, 1, &mut counts);
    populate_warehouse(&config, 1, 1, &mut counts);
    for (table, expected, rows) in &counts.0 {
        assert_eq!(expected, rows, "{table}");
        let specified = match table.as_str() {
            "item" | "stock" => 100_000..=100_000,
            "warehouse" => 1..=1,
            "district" => 10..=10,
            "customer" | "history" | "orders" => 30_000..=30_000,
            "new_order" => 9_000..=9_000,
            // "About 300,000": ten lines an order on average.
            "order_line" => 298_000..=302_000,
            other => panic!("unknown table {other}"),
        };
        assert!(specified.contains(rows), "{table}: {rows}");
    }
    assert_eq!(counts.0.len(), TABLES.len());
}

#[test]
fn the_population_follows_the_specification() {
    let config = Config {
        customers_per_district: 1_500,
        ..Config::small(2)
    };
    let rows = populate(&config, 7);

    // A thousand last names once, then NURand; a tenth of the customers of bad credit.
    let names = rows.column("customer", "c_last");
    let mut first: Vec<String> = names[..1_000].iter().map(Value::to_string).collect();
    assert_eq!(first[371], "PRICALLYOUGHT");
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 1_000);
    let credit = rows.column("customer", "c_credit");
    let bad = credit
        .iter()
        .filter(|value| **value == Value::Text("BC".to_owned()))
        .count();
    assert!((2_700..3_300).contains(&bad), "{bad} of 30000");

    // Seven orders in ten are delivered: carrier, date and amount agree.
    let orders: Vec<_> = rows.of("orders").collect();
    assert!(
        orders
            .iter()
            .all(|row| row[5].is_null() == (integer(&row[0]) > 1_050))
    );
    for line in rows.of("order_line") {
        let delivered = integer(&line[0]) <= 1_050;
        assert_eq!(!line[6].is_null(), delivered);
        let Value::Numeric(amount) = line[8] else {
            panic!("{:?}", line[8])
        };
        assert_eq!(amount.is_zero(), delivered);
        assert_eq!(amount.scale(), 2);
    }
    assert_eq!(rows.of("new_order").count(), 2 * 10 * 450);

    // Each customer of a district has one order, and orders have as many lines as they say.
    let mut customers: Vec<i64> = orders[..1_500].iter().map(|row| integer(&row[3])).collect();
    customers.sort_unstable();
    assert_eq!(customers, (1..=1_500).collect::<Vec<_>>());
    let lines: i64 = orders.iter().map(|row| integer(&row[6])).sum();
    assert_eq!(lines, rows.of("order_line").count() as i64);

    // The sums that the consistency conditions compare.
    let money = |cents| Value::Numeric(decimal(cents, 2));
    assert_eq!(
        rows.column("warehouse", "w_ytd"),
        [money(15_000_000), money(15_000_000)]
    );
    assert_eq!(rows.column("district", "d_ytd"), vec![money(1_500_000); 20]);
    assert_eq!(
        rows.column("district", "d_next_o_id"),
        vec![Value::Integer(1_501); 20]
    );
}

#[test]
fn populations_are_determined_by_the_seed_and_made_in_any_order() {
    let config = Config::small(3);
    assert!(populate(&config, 1) == populate(&config, 1));
    assert!(populate(&config, 1) != populate(&config, 2));

    let mut backwards = Rows::default();
    for warehouse in [3, 2, 1] {
        populate_warehouse(&config, 1, warehouse, &mut backwards);
    }
    let forwards = populate(&config, 1);
    for table in ["customer", "order_line"] {
        let mut left: Vec<String> = forwards.of(table).map(|row| format!("{row:?}")).collect();
        let mut right: Vec<String> = backwards.of(table).map(|row| format!("{row:?}")).collect();
        left.sort();
        right.sort();
        assert_eq!(left, right);
    }
}

/// Draws calls from one terminal, and pretends that each commits.
fn calls(config: &Config, seed: u64, count: usize) -> Vec<(Call, Vec<Value>)> {
    let mut terminal = Terminal::for_workers(config, seed, 1, &Totals::default()).remove(0);
    let mut arguments = ArgumentValues::default();
    (0..count)
        .map(|_| {
            let call = terminal.next(&mut arguments);
            terminal.committed(call, &[] as &[Vec<Value>]);
            (call, arguments.values().to_vec())
        })
        .collect()
}

fn share(matching: usize, all: usize, percent: f64) {
    let found = 100.0 * matching as f64 / all as f64;
    // Four standard deviations of a binomial share.
    let tolerance = 4.0 * (percent * (100.0 - percent) / all as f64).sqrt();
    assert!(
        (found - percent).abs() < tolerance,
        "{found} % of {all}, not {percent} %"
    );
}

#[test]
fn the_full_mix_has_the_specifications_shares() {
    let drawn = calls(&Config::small(5), 1, 50_000);
    for (procedure, percent) in [
        (NEW_ORDER, 45.0),
        (PAYMENT, 43.0),
        (ORDER_STATUS, 4.0),
        (DELIVERY, 4.0),
        (STOCK_LEVEL, 4.0),
    ] {
        let matching = drawn
            .iter()
            .filter(|(call, _)| call.procedure == procedure)
            .count();
        share(matching, drawn.len(), percent);
    }
    assert!(drawn.iter().all(|(call, arguments)| {
        arguments.len() == PROCEDURES[call.procedure.0].parameters.len()
            && call.delivery.is_some() == (call.procedure == DELIVERY)
    }));
    let two = Config {
        mix: Mix::NewOrderPayment,
        ..Config::small(1)
    };
    let drawn = calls(&two, 1, 20_000);
    let payments = drawn
        .iter()
        .filter(|(call, _)| call.procedure == PAYMENT)
        .count();
    share(payments, drawn.len(), 50.0);
    assert!(drawn.iter().all(|(call, _)| call.procedure.0 < 2));
}

#[test]
fn new_orders_follow_the_specification() {
    let config = Config {
        warehouse_choice: WarehouseChoice::Uniform,
        ..Config::small(5)
    };
    let drawn = calls(&config, 2, 60_000);
    let new_orders: Vec<_> = drawn
        .iter()
        .filter(|(call, _)| call.procedure == NEW_ORDER)
        .collect();
    let (mut lines, mut remote, mut unused) = (0, 0, 0);
    for (_, arguments) in &new_orders {
        let [warehouse, district, customer] = [0, 1, 2].map(|at| integer(&arguments[at]));
        assert!((1..=5).contains(&warehouse) && (1..=10).contains(&district));
        assert!((1..=30).contains(&customer));
        let [items, supply, quantities] = [4, 5, 6].map(|at| match &arguments[at] {
            Value::Array(elements) => elements.iter().map(integer).collect::<Vec<_>>(),
            other => panic!("{other:?} is no array"),
        });
        assert!((5..=15).contains(&items.len()));
        assert!(items.len() == supply.len() && items.len() == quantities.len());
        assert!(
            quantities
                .iter()
                .all(|quantity| (1..=10).contains(quantity))
        );
        assert!(supply.iter().all(|supply| (1..=5).contains(supply)));
        let (last, others) = items.split_last().unwrap();
        assert!(others.iter().all(|item| (1..=1_000).contains(item)) && (1..=1_001).contains(last));
        lines += items.len();
        remote += supply.iter().filter(|supply| **supply != warehouse).count();
        unused += usize::from(*last == 1_001);
    }
    share(remote, lines, 1.0);
    share(unused, new_orders.len(), 1.0);
    assert!((9.8..10.2).contains(&(lines as f64 / new_orders.len() as f64)));
}

/// The supply warehouses of a New-Order that are not its own.
fn remote_lines(arguments: &[Value]) -> usize {
    let Value::Array(supply) = &arguments[5] else {
        panic!("{:?} is no array", arguments[5])
    };
    let warehouse = integer(&arguments[0]);
    supply.iter().filter(|it| integer(it) != warehouse).count()
}

#[test]
fn a_share_of_new_orders_has_one_remote_line() {
    let config = Config {
        remote_item_percent: 0.0,
        remote_new_order_percent: 40.0,
        mix: Mix::NewOrderPayment,
        ..Config::small(5)
    };
    let drawn = calls(&config, 2, 40_000);
    let new_orders = drawn.iter().filter(|(call, _)| call.procedure == NEW_ORDER);
    let counts: Vec<usize> = new_orders
        .map(|(_, arguments)| remote_lines(arguments))
        .collect();
    assert!(counts.iter().all(|lines| *lines <= 1));
    share(counts.iter().sum(), counts.len(), 40.0);
}

#[test]
fn payments_follow_the_specification() {
    let drawn = calls(&Config::small(5), 3, 60_000);
    let payments: Vec<_> = drawn
        .iter()
        .filter(|(call, _)| call.procedure == PAYMENT)
        .collect();
    let (mut remote, mut by_name) = (0, 0);
    for (_, arguments) in &payments {
        let [warehouse, district, customer_warehouse, customer_district] =
            [0, 1, 2, 3].map(|at| integer(&arguments[at]));
        if warehouse == customer_warehouse {
            assert_eq!(district, customer_district);
        } else {
            remote += 1;
        }
        assert_ne!(arguments[4].is_null(), arguments[5].is_null());
        by_name += usize::from(arguments[4].is_null());
        let Value::Numeric(amount) = arguments[6] else {
            panic!("{:?}", arguments[6])
        };
        assert!(amount.scale() == 2 && (100..=500_000).contains(&amount.mantissa()));
    }
    share(remote, payments.len(), 15.0);
    share(by_name, payments.len(), 60.0);
}

#[test]
fn one_warehouse_has_nothing_remote() {
    for (call, arguments) in calls(&Config::small(1), 4, 5_000) {
        if call.procedure == NEW_ORDER {
            assert!(matches!(&arguments[5], Value::Array(supply)
                if supply.iter().all(|supply| integer(supply) == 1)));
        } else if call.procedure == PAYMENT {
            assert_eq!(integer(&arguments[2]), 1);
        }
    }
}

#[test]
fn calls_are_determined_by_the_seed() {
    let config = Config::small(3);
    let arguments = |seed| -> Vec<_> {
        calls(&config, seed, 1_000)
            .into_iter()
            .map(|(call, values)| (call.procedure, values))
            .collect()
    };
    assert!(arguments(5) == arguments(5));
    assert!(arguments(5) != arguments(6));
}

#[test]
fn workers_share_out_the_warehouses() {
    let homes = |warehouses, workers| -> Vec<Vec<i64>> {
        let config = Config {
            mix: Mix::NewOrderPayment,
            ..Config::small(warehouses)
        };
        let mut arguments = ArgumentValues::default();
        Terminal::for_workers(&config, 1, workers, &Totals::default())
            .iter_mut()
            .map(|terminal| {
                let mut seen: Vec<i64> = (0..200)
                    .map(|_| {
                        terminal.next(&mut arguments);
                        integer(&arguments.values()[0])
                    })
                    .collect();
                seen.sort_unstable();
                seen.dedup();
                seen
            })
            .collect()
    };
    assert_eq!(homes(5, 2), [vec![1, 3, 5], vec![2, 4]]);
    assert_eq!(homes(2, 2), [vec![1], vec![2]]);
    assert_eq!(homes(2, 3), [vec![1], vec![2], vec![1]]);
}

#[test]
fn one_worker_executes_the_deliveries_of_a_warehouse() {
    for warehouse_choice in [WarehouseChoice::Home, WarehouseChoice::Uniform] {
        let config = Config {
            warehouse_choice,
            delivery_workers: DeliveryWorkers::One,
            ..Config::small(3)
        };
        let mut arguments = ArgumentValues::default();
        let mut terminals = Terminal::for_workers(&config, 1, 5, &Totals::default());
        let mut executed = [[0; 3]; 5];
        for _ in 0..2_000 {
            for (terminal, executed) in terminals.iter_mut().zip(&mut executed) {
                if terminal.next(&mut arguments).procedure == DELIVERY {
                    executed[integer(&arguments.values()[0]) as usize - 1] += 1;
                }
            }
        }
        for (worker, executed) in executed.iter().enumerate() {
            for (warehouse, deliveries) in executed.iter().enumerate() {
                assert_eq!(
                    *deliveries > 0,
                    worker == warehouse,
                    "worker {worker}, warehouse {warehouse}, {warehouse_choice:?}"
                );
            }
        }
        let all: usize = executed.iter().flatten().sum();
        share(all, 10_000, 4.0);
        assert!(terminals[0].delivery_queues().pending() < 10);
    }
}

#[test]
fn terminals_number_the_orders_of_each_district_without_gaps() {
    let config = Config {
        order_numbers: OrderNumbers::Terminals,
        ..Config::small(2)
    };
    let mut arguments = ArgumentValues::default();
    let mut terminals = Terminal::for_workers(&config, 1, 3, &Totals::default());
    let mut next = [[config.customers_per_district as i64 + 1; 10]; 2];
    for _ in 0..500 {
        for terminal in &mut terminals {
            let call = terminal.next(&mut arguments);
            let values = arguments.values();
            let parameters =
                Workload::Tpcc(config.clone()).procedures()[call.procedure.0].parameters;
            assert_eq!(values.len(), parameters.len());
            if ![NEW_ORDER, STOCK_LEVEL].contains(&call.procedure) {
                continue;
            }
            let [warehouse, district] = [0, 1].map(|at| integer(&values[at]) as usize - 1);
            let number = integer(values.last().expect("the number"));
            assert_eq!(number, next[warehouse][district]);
            next[warehouse][district] += i64::from(call.procedure == NEW_ORDER);
        }
    }
    // A later run goes on after all of them.
    let mut before = Totals::default();
    for terminal in &terminals {
        before.merge(terminal.totals());
    }
    let last = next.iter().flatten().max().expect("a district") - 1;
    assert_eq!(i64::from(before.last_order), last);
    let mut later = Terminal::for_workers(&config, 1, 1, &before).remove(0);
    while later.next(&mut arguments).procedure != NEW_ORDER {}
    let first = integer(arguments.values().last().expect("the number"));
    assert_eq!(first, last + 1);
    let audits = Workload::Tpcc(config).audits();
    assert_eq!(
        audits.len(),
        Workload::Tpcc(Config::default()).audits().len() - 3
    );
}

#[test]
fn deliveries_are_logged_with_their_skipped_districts() {
    let mut terminal = Terminal::for_workers(&Config::small(1), 9, 1, &Totals::default()).remove(0);
    let mut arguments = ArgumentValues::default();
    let call = loop {
        let call = terminal.next(&mut arguments);
        if call.procedure == DELIVERY {
            break call;
        }
    };
    let rows: Vec<Vec<Value>> = (1..=8)
        .map(|district| vec![Value::Integer(district), Value::Integer(100)])
        .collect();
    terminal.committed(call, &rows);
    assert_eq!(
        (terminal.totals().delivered, terminal.totals().skipped),
        (8, 2)
    );
    let record = *terminal
        .delivery_log()
        .records()
        .next()
        .expect("the delivery is logged");
    assert_eq!(
        record.orders,
        [100, 100, 100, 100, 100, 100, 100, 100, 0, 0]
    );
    assert_eq!(Some(record.request.queued_ns), call.queued_ns());
    assert_eq!(
        Value::BigInt(record.request.carrier.into()),
        arguments.values()[1]
    );
    assert_eq!(terminal.delivery_queues().pending(), 0);
}

#[test]
fn the_audit_has_the_twelve_conditions_and_a_tamper_for_each() {
    let audits = Workload::Tpcc(Config::default()).audits();
    let names: Vec<&str> = audits.iter().map(|audit| audit.name).collect();
    for condition in 1..=12 {
        let plain = format!("condition {condition}");
        assert!(
            names
                .iter()
                .any(|name| name.trim_end_matches(['a', 'b']) == plain),
            "{plain} is missing"
        );
    }
    let tampers = named_statements(include_str!("../../tests/tampers/tpcc.sql"));
    for name in names {
        let number = name.trim_start_matches("condition ");
        let tampered = tampers.iter().any(|(breaks, ..)| {
            breaks
                .trim_start_matches("breaks ")
                .split(", ")
                .any(|broken| broken == number)
        });
        assert!(tampered, "no tamper breaks {name}");
    }
}

#[test]
fn the_logical_clock_starts_with_2026() {
    let start = kiln_storage::types::datetime::format_timestamp(Config::default().start);
    assert_eq!(start, "2026-01-01 00:00:00");
}
