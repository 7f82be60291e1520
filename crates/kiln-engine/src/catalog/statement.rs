//! Statements that change the catalog, as a log keeps them.

use std::fmt;
use std::str::FromStr;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result};
use kiln_storage::schema::{ColumnId, ColumnSet, TableId};

use super::search_path::{SearchPath, read_path};
use super::text_form::{Columns, Counted, Reader};
use crate::options::DesignFactors;

/// The text of a statement, and where it stood in its script: programs tell the lines of what they
/// do by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The text, without a semicolon.
    pub text: String,
    /// Line of the script on which it began, from 1.
    pub line: u32,
    /// Character of that line at which it began, from 1.
    pub column: u32,
    /// Along which its names without a schema are looked for.
    pub path: SearchPath,
}

impl Source {
    /// A statement that a session has written itself, in no script.
    pub fn of_text(text: String) -> Source {
        Source {
            text,
            line: 1,
            column: 1,
            path: SearchPath::default(),
        }
    }
}

/// Which columns of a table are split from some change on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSplit {
    /// The table.
    pub table: TableId,
    /// The columns.
    pub columns: ColumnSet,
}

/// A statement that changed the catalog, with all that its effect depends on besides its text and
/// the catalog before. Run again on that catalog it makes the same one: the same numbers of tables,
/// the same physical design. The splits are noted as they came out, because they follow from calls
/// too, which are counted and not kept.
///
/// [`Catalog::statement`](crate::Catalog::statement) is the one that made a catalog;
/// [`CatalogChange::redo`](crate::CatalogChange::redo) makes a change by it again. Its
/// [`Display`](fmt::Display) form is read by [`FromStr`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogStatement {
    /// The version of the catalog that it made; the one before had the version before.
    pub version: u64,
    /// The number of the first table that it made, if it made any. Further ones have those after.
    pub first_table_id: TableId,
    /// The settings in force.
    pub design: DesignFactors,
    /// The tables that it split in another way than before.
    pub splits: Vec<TableSplit>,
    /// When it was run, in microseconds since 1970, if what it did depends on that.
    pub moment_us: Option<i64>,
    /// The role to which the objects belong that it made; `None` for the first one.
    pub owner: Option<String>,
    /// The table that it has put an empty one in the place of, in a transaction block that has
    /// written to it: commits with its rows follow. There is nothing else that it does then, and
    /// what it says is for people.
    pub refilled: Option<String>,
    /// What it says.
    pub source: Arc<Source>,
}

impl fmt::Display for CatalogStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DesignFactors {
            hash_indexes,
            partitioned_indexes,
            split_indexes,
        } = self.design;
        let switch = |on| if on { "on" } else { "off" };
        write!(
            f,
            "statement 1 version {} tables {} hash-indexes {} partitioned-indexes {} \
             split-indexes {} ",
            self.version,
            self.first_table_id.0,
            switch(hash_indexes),
            switch(partitioned_indexes),
            switch(split_indexes),
        )?;
        for TableSplit { table, columns } in &self.splits {
            let columns: Vec<ColumnId> = columns.iter().collect();
            write!(f, "split {} {} ", table.0, Columns(&columns))?;
        }
        if let Some(moment_us) = self.moment_us {
            write!(f, "at {moment_us} ")?;
        }
        if let Some(owner) = &self.owner {
            write!(f, "owner {} ", Counted(owner))?;
        }
        if let Some(table) = &self.refilled {
            write!(f, "refill {} ", Counted(table))?;
        }
        write_source(f, &self.source)
    }
}

impl FromStr for CatalogStatement {
    type Err = Error;

    fn from_str(text: &str) -> Result<CatalogStatement> {
        let mut reader = Reader::new(text);
        reader.expect("statement 1 version")?;
        let version = reader.number()?;
        reader.expect("tables")?;
        let first_table_id = TableId(reader.number()?);
        reader.expect("hash-indexes")?;
        let hash_indexes = reader.switch()?;
        reader.expect("partitioned-indexes")?;
        let partitioned_indexes = reader.switch()?;
        reader.expect("split-indexes")?;
        let design = DesignFactors {
            hash_indexes,
            partitioned_indexes,
            split_indexes: reader.switch()?,
        };
        let mut splits = Vec::new();
        while reader.takes("split") {
            splits.push(TableSplit {
                table: TableId(reader.number()?),
                columns: reader.column_set()?,
            });
        }
        let moment_us = match reader.takes("at") {
            true => Some(reader.number()?),
            false => None,
        };
        let owner = match reader.takes("owner") {
            true => Some(reader.counted()?.to_owned()),
            false => None,
        };
        let refilled = match reader.takes("refill") {
            true => Some(reader.counted()?.to_owned()),
            false => None,
        };
        let source = Arc::new(read_source(&mut reader)?);
        reader.end()?;
        Ok(CatalogStatement {
            version,
            first_table_id,
            design,
            splits,
            moment_us,
            owner,
            refilled,
            source,
        })
    }
}

/// Writes `line 3 column 1 5:hello`, with `path in 4:shop` before the text where it has a search
/// path of its own.
pub(crate) fn write_source(f: &mut fmt::Formatter<'_>, source: &Source) -> fmt::Result {
    let Source {
        text,
        line,
        column,
        path,
    } = source;
    writeln!(f, "line {line} column {column} {path}{}", Counted(text))
}

/// Reads what [`write_source`] writes.
pub(crate) fn read_source(reader: &mut Reader<'_>) -> Result<Source> {
    reader.expect("line")?;
    let line = reader.number()?;
    reader.expect("column")?;
    let column = reader.number()?;
    let path = read_path(reader)?;
    let text = reader.counted()?.to_owned();
    Ok(Source {
        text,
        line,
        column,
        path,
    })
}
