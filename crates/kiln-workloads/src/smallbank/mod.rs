//! SmallBank: a bank with a savings and a checking account per customer (Alomari et al., ICDE
//! 2008; used by the transaction healing paper, Appendix A).
//!
//! Six short transactions, with the mix and the amounts of H-Store's benchmark. Contention is set
//! by the skew of the customers that calls choose: Zipf with `theta`, or a hot set.
//!
//! The audit is that no row is lost and that money is conserved: procedures that bring money in or
//! take it out return the change, and the balances must add up to the population's plus all
//! changes.

mod config;
mod populate;
mod terminal;

pub use config::{Config, Skew};
pub use populate::{initial_cents, parts, populate_part};
pub use terminal::Terminal;

use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex};
use kiln_storage::types::Decimal;

/// The tables.
pub const SCHEMA_SQL: &str = include_str!("../../sql/smallbank/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/smallbank/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/smallbank/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/smallbank/audit.sql");

/// The tables, in the order of the schema.
pub const TABLES: [&str; 3] = ["accounts", "savings", "checking"];

/// Moves one customer's money to another.
pub const AMALGAMATE: ProcedureIndex = ProcedureIndex(0);
/// Reads both balances of a customer.
pub const BALANCE: ProcedureIndex = ProcedureIndex(1);
/// Pays into a checking account.
pub const DEPOSIT_CHECKING: ProcedureIndex = ProcedureIndex(2);
/// Moves an amount between two checking accounts.
pub const SEND_PAYMENT: ProcedureIndex = ProcedureIndex(3);
/// Pays into a savings account, or out of it.
pub const TRANSACT_SAVINGS: ProcedureIndex = ProcedureIndex(4);
/// Draws a check.
pub const WRITE_CHECK: ProcedureIndex = ProcedureIndex(5);

/// The six transactions.
pub const PROCEDURES: [Procedure; 6] = [
    Procedure::new("amalgamate", &["integer", "integer"], 1),
    Procedure::new("balance", &["integer"], 1),
    Procedure::new("deposit_checking", &["integer", "numeric"], 1).with_rows_wanted(),
    Procedure::new("send_payment", &["integer", "integer", "numeric"], 0),
    Procedure::new("transact_savings", &["integer", "numeric"], 1).with_rows_wanted(),
    Procedure::new("write_check", &["integer", "numeric"], 1).with_rows_wanted(),
];

/// SQLSTATE of a customer who does not exist; no generated call meets it.
pub const NO_SUCH_CUSTOMER: &str = "SB001";
/// SQLSTATE of a negative deposit; no generated call meets it.
pub const NEGATIVE_AMOUNT: &str = "SB002";
/// SQLSTATE of a payment or withdrawal without the funds: expected now and then.
pub const INSUFFICIENT_FUNDS: &str = "SB003";

const ABOUT: About = About {
    name: "smallbank",
    description: "SmallBank: six short transactions on the accounts of a bank",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[INSUFFICIENT_FUNDS],
    unaudited: &[],
};

/// Money is conserved: all balances add up to the population's and the changes since.
pub fn closing_checks(config: &Config, seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
    let cents = i128::from(initial_cents(config, seed)) + totals.money_cents;
    // The balances' columns bound the sum far below what a decimal holds.
    let expected = Decimal::new(cents, 2).unwrap_or(Decimal::MAX);
    vec![ClosingCheck {
        name: "money",
        sql: "SELECT sum(coalesce(savings.balance, 0) + coalesce(checking.balance, 0)) \
              FROM accounts \
              LEFT JOIN savings ON savings.customer_id = accounts.customer_id \
              LEFT JOIN checking ON checking.customer_id = accounts.customer_id",
        expected,
    }]
}

#[cfg(test)]
mod tests;
