//! TPC-C, standard specification revision 5.11.
//!
//! Five transactions on nine tables of a company that ships orders from warehouses. What follows
//! the specification: the population (clause 4.3), the non-uniform random numbers with separate
//! constants for the population and the run (2.1.6), six in ten customers chosen by last name
//! (2.5.1.2, 2.6.1.2), one New-Order in a hundred that rolls back on an unused item (2.4.1.4),
//! remote order lines and payments, and deferred deliveries through a queue per warehouse
//! (2.7.2). What departs from it, as in the papers: no keying and think times, one terminal per
//! worker instead of ten per warehouse, and dates from a logical clock, so that the same seed
//! gives the same calls.
//!
//! The audit is the specification's twelve consistency conditions (3.3.2), written so that they
//! hold after a run too.

mod config;
mod delivery;
mod numbers;
mod populate;
mod terminal;

pub use crate::definition::DeliveryRequest;
pub use config::{Config, DeliveryWorkers, Mix, OrderNumbers, WarehouseChoice};
pub use delivery::{DeliveryLog, DeliveryQueues, DeliveryRecord};
pub use populate::{populate_shared, populate_warehouse};
pub use terminal::Terminal;

use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex, ProcedureKind};
use crate::population::decimal;

/// The tables and indexes.
pub const SCHEMA_SQL: &str = include_str!("../../sql/tpcc/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/tpcc/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/tpcc/procedures.sql");
/// The procedures where the terminals number the orders.
pub const NUMBERED_PROCEDURES_SQL: &str = concat!(
    include_str!("../../sql/tpcc/procedures.sql"),
    "\n",
    include_str!("../../sql/tpcc/numbered.sql")
);
/// The consistency conditions.
pub const AUDIT_SQL: &str = include_str!("../../sql/tpcc/audit.sql");

/// Districts of a warehouse (clause 4.3.3.1). The Delivery procedure counts on ten.
pub const DISTRICTS: i16 = 10;

/// The tables, in the order of the schema.
pub const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "item",
    "stock",
];

/// New-Order.
pub const NEW_ORDER: ProcedureIndex = ProcedureIndex(0);
/// Payment.
pub const PAYMENT: ProcedureIndex = ProcedureIndex(1);
/// Order-Status.
pub const ORDER_STATUS: ProcedureIndex = ProcedureIndex(2);
/// Delivery.
pub const DELIVERY: ProcedureIndex = ProcedureIndex(3);
/// Stock-Level.
pub const STOCK_LEVEL: ProcedureIndex = ProcedureIndex(4);

/// The five transactions.
pub const PROCEDURES: [Procedure; 5] = [
    Procedure {
        name: "new_order",
        kind: ProcedureKind::Procedure,
        parameters: &[
            "smallint",
            "smallint",
            "integer",
            "timestamp",
            "integer[]",
            "smallint[]",
            "smallint[]",
        ],
        outputs: 8,
        rows_wanted: false,
    },
    Procedure {
        name: "payment",
        kind: ProcedureKind::Procedure,
        parameters: &[
            "smallint",
            "smallint",
            "smallint",
            "smallint",
            "integer",
            "varchar",
            "numeric",
            "timestamp",
        ],
        outputs: 26,
        rows_wanted: false,
    },
    Procedure {
        name: "order_status",
        kind: ProcedureKind::Function,
        parameters: &["smallint", "smallint", "integer", "varchar"],
        outputs: 0,
        rows_wanted: false,
    },
    Procedure {
        name: "delivery",
        kind: ProcedureKind::Function,
        parameters: &["smallint", "smallint", "timestamp"],
        outputs: 0,
        rows_wanted: true,
    },
    Procedure {
        name: "stock_level",
        kind: ProcedureKind::Procedure,
        parameters: &["smallint", "smallint", "smallint"],
        outputs: 1,
        rows_wanted: false,
    },
];

/// The same where the terminals number the orders.
const NUMBERED_PROCEDURES: [Procedure; 5] = {
    let mut procedures = PROCEDURES;
    procedures[NEW_ORDER.0].parameters = &[
        "smallint",
        "smallint",
        "integer",
        "timestamp",
        "integer[]",
        "smallint[]",
        "smallint[]",
        "integer",
    ];
    procedures[STOCK_LEVEL.0].parameters = &["smallint", "smallint", "smallint", "integer"];
    procedures
};

/// SQLSTATE of New-Order's intended rollback: an item number that no item has.
pub const UNUSED_ITEM: &str = "TC001";
/// SQLSTATE of a customer who does not exist; no generated call meets it.
pub const NO_SUCH_CUSTOMER: &str = "TC002";

const ABOUT: About = About {
    name: "tpcc",
    description: "TPC-C: order processing in warehouses, five transactions on nine tables",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[UNUSED_ITEM],
    unaudited: &[],
};

const ABOUT_NUMBERED: About = About {
    procedures_sql: NUMBERED_PROCEDURES_SQL,
    procedures: &NUMBERED_PROCEDURES,
    // Districts do not count their orders, and an order that rolls back leaves a gap.
    unaudited: &["condition 2a", "condition 2b", "condition 3"],
    ..ABOUT
};

/// Counts that follow from the population and the committed calls. A call whose effects are lost in
/// every table alike escapes the consistency conditions, but not these.
pub fn closing_checks(config: &Config, totals: &Totals) -> Vec<ClosingCheck> {
    let customers = i64::from(config.warehouses)
        * i64::from(DISTRICTS)
        * i64::from(config.customers_per_district);
    let committed = |procedure: ProcedureIndex| {
        totals
            .committed
            .get(procedure.0)
            .copied()
            .unwrap_or_default() as i64
    };
    let check = |name, sql, expected| ClosingCheck {
        name,
        sql,
        expected: decimal(expected, 0),
    };
    vec![
        check(
            "orders entered",
            "SELECT count(*) FROM orders",
            customers + committed(NEW_ORDER),
        ),
        check(
            "payments entered",
            "SELECT count(*) FROM history",
            customers + committed(PAYMENT),
        ),
        check(
            "payments counted",
            "SELECT sum(c_payment_cnt) FROM customer",
            customers + committed(PAYMENT),
        ),
        check(
            "deliveries counted",
            "SELECT sum(c_delivery_cnt) FROM customer",
            totals.delivered as i64,
        ),
    ]
}

#[cfg(test)]
mod tests;
