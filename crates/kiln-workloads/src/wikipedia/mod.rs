//! Wikipedia, as OLTP-bench has it (Difallah et al., PVLDB 2013; STO §3.1 and §7).
//!
//! Five transactions with the weights of OLTP-bench's trace: 91.27 % GetPageAnonymous, 7.67 %
//! UpdatePage, 0.92 % GetPageAuthenticated, and 0.07 % each AddToWatchList and
//! RemoveFromWatchList. Pages are drawn by a Zipf distribution, users uniformly, and 26 in a
//! hundred editors have no account. An editor reads a page before updating it, in a transaction of
//! its own, so that an update is two calls here.
//!
//! What departs from OLTP-bench: lengths of titles, texts and comments and numbers of revisions are
//! drawn from simple distributions with means like those of its histograms, texts are shorter, and
//! an update is one transaction even if the page is watched (there it is three then). The new
//! revision does not name its parent, which the editor knows from the reading.
//!
//! The audit is that pages, revisions, texts, edit counts, recent changes, log and watch lists
//! agree, and that no edit is lost.

mod config;
mod names;
mod populate;
mod terminal;

pub use config::{Config, Mix};
pub use populate::{populate, revisions};
pub use terminal::Terminal;

use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex};
use crate::population::count;

/// The tables and indexes.
pub const SCHEMA_SQL: &str = include_str!("../../sql/wikipedia/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/wikipedia/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/wikipedia/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/wikipedia/audit.sql");

/// The tables, in the order of the schema.
pub const TABLES: [&str; 10] = [
    "useracct",
    "user_groups",
    "ipblocks",
    "page",
    "page_restrictions",
    "revision",
    "text",
    "watchlist",
    "recentchanges",
    "logging",
];

/// Puts a page on a watch list.
pub const ADD_WATCH_LIST: ProcedureIndex = ProcedureIndex(0);
/// Takes a page off a watch list.
pub const REMOVE_WATCH_LIST: ProcedureIndex = ProcedureIndex(1);
/// Gives a page a new revision.
pub const UPDATE_PAGE: ProcedureIndex = ProcedureIndex(2);
/// Reads a page, without an account.
pub const GET_PAGE_ANONYMOUS: ProcedureIndex = ProcedureIndex(3);
/// Reads a page, with an account.
pub const GET_PAGE_AUTHENTICATED: ProcedureIndex = ProcedureIndex(4);

/// The five transactions.
pub const PROCEDURES: [Procedure; 5] = [
    Procedure::new(
        "add_watch_list",
        &["integer", "integer", "varchar", "timestamp"],
        0,
    ),
    Procedure::new(
        "remove_watch_list",
        &["integer", "integer", "varchar", "timestamp"],
        0,
    ),
    Procedure::new(
        "update_page",
        &[
            "integer",
            "integer",
            "varchar",
            "integer",
            "varchar",
            "varchar",
            "bigint",
            "text",
            "text",
            "smallint",
            "timestamp",
        ],
        1,
    ),
    Procedure::new("get_page_anonymous", &["varchar", "integer", "varchar"], 5),
    Procedure::new(
        "get_page_authenticated",
        &["integer", "integer", "varchar"],
        7,
    ),
];

/// SQLSTATE of a page that does not exist; no generated call meets it.
pub const NO_SUCH_PAGE: &str = "WK001";
/// SQLSTATE of a page without a revision or a text; no generated call meets it.
pub const NO_SUCH_REVISION: &str = "WK002";
/// SQLSTATE of a user who does not exist; no generated call meets it.
pub const NO_SUCH_USER: &str = "WK003";

const ABOUT: About = About {
    name: "wikipedia",
    description: "Wikipedia: readers, editors and watchers of pages, on ten tables",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// No revision, no change, no log entry and no edit is lost.
pub fn closing_checks(config: &Config, seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
    let updates = totals.committed.get(UPDATE_PAGE.0).copied();
    let updates = updates.unwrap_or_default() as i64;
    let revisions = revisions(config, seed) as i64;
    let check = |name, sql, expected| ClosingCheck {
        name,
        sql,
        expected: count(expected),
    };
    vec![
        check(
            "revisions entered",
            "SELECT count(*) FROM revision",
            revisions + updates,
        ),
        check(
            "changes entered",
            "SELECT count(*) FROM recentchanges",
            updates,
        ),
        check("log entered", "SELECT count(*) FROM logging", updates),
        check(
            "edits counted",
            "SELECT sum(user_editcount) - (SELECT count(*) FROM revision WHERE rev_user > 0) \
             FROM useracct",
            0,
        ),
        check(
            "pages kept",
            "SELECT count(*) FROM page",
            config.pages.into(),
        ),
        check(
            "users kept",
            "SELECT count(*) FROM useracct",
            config.users.into(),
        ),
    ]
}

#[cfg(test)]
mod tests;
