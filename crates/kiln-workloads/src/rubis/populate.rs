//! The population: items with some bids each, and no purchases.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, QUANTITY};
use crate::RowSink;
use crate::clock::{DAY, START};
use crate::population::{part_rows, text};
use crate::random::{Ranks, push_alphanumeric};

/// Amounts of bids.
pub(super) const AMOUNTS: std::ops::RangeInclusive<i64> = 1..=1_000_000;

/// Makes the items of one part, and their bids.
pub fn populate_part(config: &Config, seed: u64, part: u64, sink: &mut dyn RowSink) {
    let rows = part_rows(config.items.into(), part);
    let count = rows.end - rows.start;
    let users = Ranks::new(config.users.into(), config.user_theta);
    let [items, amounts] = [0, 1].map(|stream| Random::stream(seed, 2 * part + stream));
    make_items(config, rows.clone(), users, items, amounts.clone(), sink);
    make_bids(config, rows, users, amounts, sink);
    if count > 0 && part == 0 {
        sink.table(
            "buy_now",
            &["buyer_id", "buy_item_id", "buy_quantity", "buy_date"],
            0,
        );
    }
}

/// The bids for one item: bidder, amount, and the most that the bidder would pay.
fn bids(
    config: &Config,
    users: Ranks,
    random: &mut Random,
) -> impl Iterator<Item = (i64, i64, i64)> {
    (0..config.bids_per_item).map(move |_| {
        let amount = random.between(*AMOUNTS.start(), *AMOUNTS.end());
        let most = random.between(amount, *AMOUNTS.end());
        (users.next(random), amount, most)
    })
}

/// Makes the items. `amounts` draws the same bids as for [`make_bids`].
fn make_items(
    config: &Config,
    rows: std::ops::Range<u64>,
    users: Ranks,
    mut random: Random,
    mut amounts: Random,
    sink: &mut dyn RowSink,
) {
    sink.table(
        "items",
        &[
            "item_id",
            "name",
            "description",
            "initial_price",
            "initial_quantity",
            "quantity",
            "reserve_price",
            "buy_now",
            "nb_of_bids",
            "max_bid",
            "start_date",
            "end_date",
            "seller_id",
        ],
        rows.end - rows.start,
    );
    let random = &mut random;
    let mut row = vec![Value::Null; 13];
    for number in rows {
        row[0] = Value::Integer(number as i32 + 1);
        push_alphanumeric(text(&mut row[1]), random, 10, 30);
        push_alphanumeric(text(&mut row[2]), random, 40, 200);
        let price = random.between(1, 1_000);
        row[3] = Value::Integer(price as i32);
        row[4] = Value::Integer(QUANTITY);
        row[5] = Value::Integer(QUANTITY);
        row[6] = Value::Integer(2 * price as i32);
        row[7] = Value::Integer(4 * price as i32);
        row[8] = Value::Integer(config.bids_per_item as i32);
        let greatest = bids(config, users, &mut amounts).map(|(_, amount, _)| amount);
        row[9] = Value::Integer(greatest.max().unwrap_or_default() as i32);
        let age = random.between(0, 7 * DAY);
        row[10] = Value::Timestamp(START - age);
        row[11] = Value::Timestamp(START - age + 7 * DAY);
        row[12] = Value::Integer(users.next(random) as i32);
        sink.row(&row);
    }
}

fn make_bids(
    config: &Config,
    rows: std::ops::Range<u64>,
    users: Ranks,
    mut amounts: Random,
    sink: &mut dyn RowSink,
) {
    sink.table(
        "bids",
        &[
            "bid_user_id",
            "bid_item_id",
            "bid_quantity",
            "bid_amount",
            "bid_max",
            "bid_date",
        ],
        (rows.end - rows.start) * u64::from(config.bids_per_item),
    );
    for number in rows {
        for (user, amount, most) in bids(config, users, &mut amounts) {
            sink.row(&[
                Value::Integer(user as i32),
                Value::Integer(number as i32 + 1),
                Value::Integer(1),
                Value::Integer(amount as i32),
                Value::Integer(most as i32),
                Value::Timestamp(START),
            ]);
        }
    }
}
