//! Views: queries that have names.
//!
//! A view has no rows of its own, unless it is materialized: then a table has its name, and its
//! rows. The catalog keeps the text of its query, the names and types of
//! its columns, and what the query names: what a statement that uses the view does follows from
//! these.

use kiln_storage::types::DataType;

use super::search_path::SearchPath;

/// A view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<(String, DataType)>,
    /// Where its rows are.
    pub rows: ViewRows,
    /// The query, in which no `*` stands for columns.
    pub query: String,
    /// Along which the names of the query without a schema are looked for.
    pub path: SearchPath,
    /// Which rows INSERT and UPDATE may leave in it.
    pub check_option: Option<CheckOption>,
    /// The tables, views and sequences that the query names.
    pub reads: Vec<ViewRead>,
    /// The functions of users that it calls.
    pub calls: Vec<String>,
    /// The enums and domains that the query names.
    pub types: Vec<String>,
}

/// Where the rows of a view are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewRows {
    /// Its query gives them to each statement that names it.
    #[default]
    Computed,
    /// The view is materialized: the table of its name keeps what its query gave.
    Stored,
    /// The view is materialized, and its query was not run yet.
    Missing,
}

/// A table, view or sequence that the query of a view names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewRead {
    /// Its name.
    pub relation: String,
    /// The columns of a table that the query uses.
    pub columns: Vec<String>,
}

/// WITH CHECK OPTION: rows that are inserted or updated through a view must be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    /// In this view.
    Local,
    /// In this view, and in those from which it reads.
    Cascaded,
}

impl CheckOption {
    /// What it is called in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        }
    }
}

impl View {
    /// Whether a table keeps its rows.
    pub fn is_materialized(&self) -> bool {
        self.rows != ViewRows::Computed
    }

    /// Whether its query names this enum.
    pub fn names_type(&self, name: &str) -> bool {
        self.types.iter().any(|known| known == name)
    }

    /// Whether its query names this table, view or sequence.
    pub fn reads(&self, relation: &str) -> bool {
        self.reads.iter().any(|read| read.relation == relation)
    }
}
