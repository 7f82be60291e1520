use super::*;
use crate::Workload;
use crate::testing::{Rows, calls, integer};
use kiln_storage::types::Value;

#[test]
fn items_agree_with_their_bids() {
    let config = Config {
        items: 20_000,
        bids_per_item: 4,
        ..Config::default()
    };
    let rows = Rows::populated(&Workload::Rubis(config), 3);
    assert!(rows.integers("items", "item_id").into_iter().eq(1..=20_000));
    let mut bids = vec![(0, 0); 20_001];
    let items = rows.integers("bids", "bid_item_id").into_iter();
    for (item, amount) in items.zip(rows.integers("bids", "bid_amount")) {
        let (number, greatest) = &mut bids[item as usize];
        *number += 1;
        *greatest = amount.max(*greatest);
    }
    let numbers = rows.integers("items", "nb_of_bids").into_iter();
    let found = numbers.zip(rows.integers("items", "max_bid"));
    assert!(found.eq(bids[1..].iter().copied()));
    assert_eq!(rows.of("buy_now").count(), 0);
    assert!(
        rows.integers("bids", "bid_user_id")
            .iter()
            .all(|user| (1..=10_000).contains(user))
    );
}

#[test]
fn populations_are_determined_by_the_seed_and_made_in_any_order() {
    let workload = Workload::by_name("rubis").unwrap();
    assert_eq!(workload.parts(), 2);
    let mut backwards = Rows::default();
    workload.populate_part(7, 1, &mut backwards);
    workload.populate_part(7, 0, &mut backwards);
    let mut forwards = Rows::populated(&workload, 7).integers("items", "max_bid");
    forwards.rotate_left(1 << 14);
    assert_eq!(backwards.integers("items", "max_bid"), forwards);
    assert_ne!(
        Rows::populated(&workload, 8).integers("items", "max_bid"),
        Rows::populated(&workload, 7).integers("items", "max_bid"),
    );
}

#[test]
fn the_mix_is_that_of_sto() {
    let workload = Workload::by_name("rubis").unwrap();
    let drawn = calls(&workload, 5, 20_000);
    for (procedure, percent) in [(PLACE_BID, 30), (BUY_NOW, 20), (VIEW_ITEM, 50)] {
        let count = drawn
            .iter()
            .filter(|(call, _)| call.procedure == procedure)
            .count();
        assert!(
            count.abs_diff(200 * percent) < 400,
            "{procedure:?}: {count}"
        );
    }
    for (call, arguments) in &drawn {
        assert!((1..=20_000).contains(&integer(&arguments[0])));
        if call.procedure == PLACE_BID {
            assert!(integer(&arguments[3]) <= integer(&arguments[4]));
        }
    }
    let popular = drawn.iter().filter(|(_, a)| integer(&a[0]) == 1).count();
    assert!((400..1_200).contains(&popular), "{popular}");
}

#[test]
fn committed_bids_and_purchases_are_counted() {
    let workload = Workload::by_name("rubis").unwrap();
    let mut terminal = workload.terminals(5, 1).remove(0);
    for procedure in [PLACE_BID, PLACE_BID, BUY_NOW, VIEW_ITEM] {
        terminal.committed::<Vec<Value>>(crate::Call::immediate(procedure), &[]);
    }
    let checks = workload.closing_checks(5, terminal.totals());
    let expected: Vec<_> = checks.iter().map(|check| check.expected).collect();
    assert_eq!(expected, [count(200_002), count(1), count(20_000)]);
}
