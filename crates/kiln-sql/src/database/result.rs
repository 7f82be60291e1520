//! What statements give back.

use std::fmt;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, FromRow, FromValue, Value};

/// The rows of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSet {
    /// Names and types of the columns. Names may repeat.
    pub columns: Vec<(String, DataType)>,
    /// The rows, each with one value for each column.
    pub rows: Vec<Vec<Value>>,
}

impl ResultSet {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The position of the first column called `name`.
    ///
    /// # Errors
    /// 42703 that lists the columns.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.columns
            .iter()
            .position(|(known, _)| known == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
                Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("the result has no column \"{name}\""),
                )
                .with_hint(format!("Its columns are {}.", names.join(", ")))
            })
    }

    /// The value at a row's position and a column's name.
    ///
    /// # Errors
    /// 42703 without the column, 02000 without the row, 42804 when the value is of another type,
    /// 22004 for an unexpected NULL.
    pub fn get<T: FromValue>(&self, row: usize, column: &str) -> Result<T> {
        let column = self.column(column)?;
        let values = self.rows.get(row).ok_or_else(|| self.no_row(row))?;
        T::from_value(values.get(column).cloned().unwrap_or_default())
    }

    /// All rows as Rust values.
    ///
    /// # Errors
    /// 42804 when the columns do not go with `T`, 22004 for an unexpected NULL.
    pub fn into_rows<T: FromRow>(self) -> Result<Vec<T>> {
        self.rows.into_iter().map(T::from_row).collect()
    }

    /// The only row as Rust values.
    ///
    /// # Errors
    /// 02000 for no row, 21000 for several; those of [`ResultSet::into_rows`].
    pub fn into_one<T: FromRow>(self) -> Result<T> {
        match self.into_option()? {
            Some(row) => Ok(row),
            None => Err(Error::new(SqlState::NO_DATA, "the query returned no row")),
        }
    }

    /// The only row as Rust values, if there is one.
    ///
    /// # Errors
    /// 21000 for several rows; those of [`ResultSet::into_rows`].
    pub fn into_option<T: FromRow>(mut self) -> Result<Option<T>> {
        if self.rows.len() > 1 {
            return Err(Error::new(
                SqlState::CARDINALITY_VIOLATION,
                format!(
                    "the query returned {} rows where at most one was expected",
                    self.len()
                ),
            ));
        }
        self.rows.pop().map(T::from_row).transpose()
    }

    fn no_row(&self, row: usize) -> Error {
        Error::new(
            SqlState::NO_DATA,
            format!(
                "the result has {} rows and none at position {row}",
                self.len()
            ),
        )
    }
}

/// A message below the level of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// PostgreSQL's name of the level: NOTICE, WARNING, INFO, LOG or DEBUG.
    pub level: &'static str,
    /// Its code.
    pub state: SqlState,
    /// The text.
    pub message: String,
}

impl Notice {
    pub(super) fn new(message: String) -> Notice {
        Notice::of_level("NOTICE", message)
    }

    pub(super) fn warning(message: &str) -> Notice {
        Notice::of_level("WARNING", message.to_owned())
    }

    /// With the code that notices of this level have which have none of their own.
    pub(super) fn of_level(level: &'static str, message: String) -> Notice {
        let state = match level {
            "WARNING" => SqlState::WARNING,
            _ => SqlState::SUCCESSFUL_COMPLETION,
        };
        Notice {
            level,
            state,
            message,
        }
    }

    /// That something needs a transaction block, or another one than there is.
    pub(super) fn of_transaction(state: SqlState, message: &str) -> Notice {
        Notice {
            state,
            ..Notice::warning(message)
        }
    }
}

impl fmt::Display for Notice {
    /// As psql prints it: `NOTICE:  text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:  {}", self.level, self.message)
    }
}

/// What one statement of a script did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementResult {
    /// PostgreSQL's command tag, for instance `UPDATE 3`.
    pub tag: String,
    /// The rows, for statements that return some.
    pub result: Option<ResultSet>,
    /// Messages that were raised meanwhile.
    pub notices: Vec<Notice>,
}

impl StatementResult {
    pub(super) fn of_tag(tag: &str) -> StatementResult {
        StatementResult {
            tag: tag.to_owned(),
            ..StatementResult::default()
        }
    }

    pub(super) fn with_notice(mut self, notice: Notice) -> StatementResult {
        self.notices.push(notice);
        self
    }

    /// The number of rows that the statement returned or changed, where its tag has one.
    pub fn row_count(&self) -> Option<u64> {
        self.tag
            .rsplit(' ')
            .next()
            .and_then(|word| word.parse().ok())
    }
}
