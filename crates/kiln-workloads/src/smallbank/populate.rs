//! The population: one row per customer in each table.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::Config;
use crate::population::{RowSink, money, text};
use crate::random::push_alphanumeric;

/// Customers of one part.
const PART: u32 = 1 << 16;

/// Balances of the population, in cents (H-Store's bounds).
const BALANCE_CENTS: std::ops::RangeInclusive<i64> = 1_000_000..=5_000_000;

/// How many parts the population has.
pub fn parts(config: &Config) -> u64 {
    u64::from(config.accounts.div_ceil(PART))
}

/// The customers of a part; none beyond the last part.
fn customers(config: &Config, part: u64) -> std::ops::RangeInclusive<u32> {
    let first = part.saturating_mul(PART.into()).saturating_add(1);
    let last = first
        .saturating_add(u64::from(PART) - 1)
        .min(config.accounts.into());
    // A part beyond the last starts after `accounts`, and is empty.
    u32::try_from(first).unwrap_or(u32::MAX)..=last as u32
}

/// The streams of a part: names, savings, checking. Balances have their own, so that they can be
/// summed without the names.
fn streams(seed: u64, part: u64) -> [Random; 3] {
    [0, 1, 2].map(|stream| Random::stream(seed, 3 * part + stream))
}

fn balance(random: &mut Random) -> i64 {
    random.between(*BALANCE_CENTS.start(), *BALANCE_CENTS.end())
}

/// Makes the rows of one part in all three tables.
pub fn populate_part(config: &Config, seed: u64, part: u64, sink: &mut dyn RowSink) {
    let customers = customers(config, part);
    let count = customers.clone().count() as u64;
    let [mut names, mut savings, mut checking] = streams(seed, part);

    let mut row = vec![Value::Null; 2];
    sink.table("accounts", &["customer_id", "name"], count);
    for customer in customers.clone() {
        row[0] = Value::Integer(customer as i32);
        push_alphanumeric(text(&mut row[1]), &mut names, 16, 64);
        sink.row(&row);
    }
    for (table, random) in [("savings", &mut savings), ("checking", &mut checking)] {
        sink.table(table, &["customer_id", "balance"], count);
        for customer in customers.clone() {
            row[0] = Value::Integer(customer as i32);
            row[1] = money(balance(random));
            sink.row(&row);
        }
    }
}

/// The sum of all balances of the population, in cents.
pub fn initial_cents(config: &Config, seed: u64) -> i64 {
    (0..parts(config))
        .map(|part| {
            let [_, mut savings, mut checking] = streams(seed, part);
            customers(config, part)
                .map(|_| balance(&mut savings) + balance(&mut checking))
                .sum::<i64>()
        })
        .sum()
}
