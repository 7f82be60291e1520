//! RUBiS, the bidding core of its auction site (Cecchet et al., OOPSLA 2002; STO §3.1 and §7).
//!
//! Three transactions: PlaceBid keeps an item's greatest bid and their number, BuyNow takes from
//! its quantity, ViewItem reads it. Items are drawn by a Zipf distribution, so that bids for the
//! popular ones meet. The mix is that of STO's benchmark, 30, 20 and 50 in a hundred, as are the
//! exponents of the distributions and the bids that items have at first.
//!
//! What departs: fewer items and users by default (STO has 500,000 and 100,000), a bid's amount is
//! drawn from a wide range, so that the greatest changes now and then, and there are no purchases
//! at first. As there, a purchase is never refused: the quantity of an item may go below zero.
//!
//! The audit is that greatest bids, numbers of bids and quantities are what the bids and purchases
//! add up to, and that none of those is lost.

mod config;
mod populate;
mod terminal;

pub use config::Config;
pub use populate::populate_part;
pub use terminal::Terminal;

use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex};
use crate::population::count;

/// The tables.
pub const SCHEMA_SQL: &str = include_str!("../../sql/rubis/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/rubis/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/rubis/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/rubis/audit.sql");

/// The tables, in the order of the schema.
pub const TABLES: [&str; 3] = ["items", "bids", "buy_now"];

/// Enters a bid.
pub const PLACE_BID: ProcedureIndex = ProcedureIndex(0);
/// Buys some of an item.
pub const BUY_NOW: ProcedureIndex = ProcedureIndex(1);
/// Reads an item.
pub const VIEW_ITEM: ProcedureIndex = ProcedureIndex(2);

/// The three transactions.
pub const PROCEDURES: [Procedure; 3] = [
    Procedure::new(
        "place_bid",
        &[
            "integer",
            "integer",
            "integer",
            "integer",
            "integer",
            "timestamp",
        ],
        0,
    ),
    Procedure::new(
        "buy_item",
        &["integer", "integer", "integer", "timestamp"],
        0,
    ),
    Procedure::new("view_item", &["integer"], 5),
];

/// SQLSTATE of an item that does not exist; no generated call meets it.
pub const NO_SUCH_ITEM: &str = "RU001";

/// Pieces of each item at first.
const QUANTITY: i32 = 10;

const ABOUT: About = About {
    name: "rubis",
    description: "RUBiS: bids, purchases and views of the items of an auction site",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// No bid, no purchase and no item is lost.
pub fn closing_checks(config: &Config, totals: &Totals) -> Vec<ClosingCheck> {
    let committed = |procedure: ProcedureIndex| {
        let committed = totals.committed.get(procedure.0).copied();
        committed.unwrap_or_default() as i64
    };
    let items = i64::from(config.items);
    let check = |name, sql, expected| ClosingCheck {
        name,
        sql,
        expected: count(expected),
    };
    vec![
        check(
            "bids entered",
            "SELECT count(*) FROM bids",
            items * i64::from(config.bids_per_item) + committed(PLACE_BID),
        ),
        check(
            "purchases entered",
            "SELECT count(*) FROM buy_now",
            committed(BUY_NOW),
        ),
        check("items kept", "SELECT count(*) FROM items", items),
    ]
}

#[cfg(test)]
mod tests;
