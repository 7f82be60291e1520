//! The text form of catalogs and their statements: words between blanks, and texts of any content
//! after the number of their bytes, as `5:hello`.

use std::collections::BTreeSet;
use std::fmt;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::PUBLIC_SCHEMA;
use kiln_storage::schema::{COLUMNS_MAX, ColumnId, ColumnSet};

/// A text after the number of its bytes.
pub(crate) struct Counted<'a>(pub &'a str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.len(), self.0)
    }
}

/// Columns by number, as `0,2`; `-` for none.
pub(crate) struct Columns<'a>(pub &'a [ColumnId]);

impl fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for column in self.0 {
            write!(f, "{separator}{}", column.0)?;
            separator = ",";
        }
        match separator {
            "" => f.write_str("-"),
            _ => Ok(()),
        }
    }
}

/// Reads a text form from its beginning to its end.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The schemas of the catalog that is read, besides `public`.
    pub schemas: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Reader<'a> {
        Reader {
            text,
            at: 0,
            schemas: BTreeSet::new(),
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The next word; empty at the end.
    pub fn peek(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        rest.split_ascii_whitespace().next().unwrap_or_default()
    }

    /// Takes the next word.
    pub fn word(&mut self) -> &'a str {
        let word = self.peek();
        self.at += word.len();
        word
    }

    /// Takes the next word if it is `word`.
    pub fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek() == word;
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// Takes these words.
    ///
    /// # Errors
    /// XX001 when they are not next.
    pub fn expect(&mut self, words: &str) -> Result<()> {
        for word in words.split(' ') {
            if !self.takes(word) {
                return Err(self.damaged(word));
            }
        }
        Ok(())
    }

    /// Takes a number.
    ///
    /// # Errors
    /// XX001 when none is next.
    pub fn number<N: std::str::FromStr>(&mut self) -> Result<N> {
        let word = self.peek();
        let number = word.parse().map_err(|_| self.damaged("a number"))?;
        self.at += word.len();
        Ok(number)
    }

    /// Takes `on` or `off`.
    ///
    /// # Errors
    /// XX001 when neither is next.
    pub fn switch(&mut self) -> Result<bool> {
        match self.peek() {
            "on" => self.expect("on").map(|()| true),
            "off" => self.expect("off").map(|()| false),
            _ => Err(self.damaged("on or off")),
        }
    }

    /// Takes the qualified name of an object.
    ///
    /// # Errors
    /// XX001 when none is next.
    pub fn qualified(&mut self) -> Result<String> {
        let name = self.counted()?;
        Ok(of_former_catalog(name, &self.schemas))
    }

    /// Takes what [`Columns`] writes.
    ///
    /// # Errors
    /// XX001 when that is not next.
    pub fn columns(&mut self) -> Result<Vec<ColumnId>> {
        if self.takes("-") {
            return Ok(Vec::new());
        }
        let word = self.peek();
        let columns: std::result::Result<Vec<ColumnId>, _> = word
            .split(',')
            .map(|number| number.parse().map(ColumnId))
            .collect();
        let columns = columns.map_err(|_| self.damaged("numbers of columns"))?;
        self.at += word.len();
        Ok(columns)
    }

    /// Takes what [`Columns`] writes, as a set.
    ///
    /// # Errors
    /// XX001 when that is not next, or no table has as many columns.
    pub fn column_set(&mut self) -> Result<ColumnSet> {
        let columns = self.columns()?;
        match columns.iter().all(|column| column.index() < COLUMNS_MAX) {
            true => Ok(columns.into_iter().collect()),
            false => Err(self.damaged("columns of the table")),
        }
    }

    /// Takes what [`Counted`] writes.
    ///
    /// # Errors
    /// XX001 when that is not next.
    pub fn counted(&mut self) -> Result<&'a str> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let found = rest.split_once(':').and_then(|(count, rest)| {
            let text = rest.get(..count.parse().ok()?)?;
            Some((count.len() + 1 + text.len(), text))
        });
        let (bytes, text) = found.ok_or_else(|| self.damaged("a text and its length"))?;
        self.at += bytes;
        Ok(text)
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// XX001 when something is.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            "" => Ok(()),
            _ => Err(self.damaged("the end")),
        }
    }

    /// Says what should be next.
    pub fn damaged(&self, expected: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.lines().count().max(1);
        let rest = self.text.get(self.at..).unwrap_or_default();
        let found: String = rest.trim_start().chars().take(20).collect();
        let message =
            format!("line {line} of a written catalog has \"{found}\" in place of {expected}");
        Error::new(SqlState::DATA_CORRUPTED, message)
    }
}

/// Reads names of a written catalog: before there were schemas a name might have a dot, of which
/// nothing more was meant.
fn of_former_catalog(name: &str, schemas: &BTreeSet<String>) -> String {
    match name.split_once('.') {
        Some((schema, _)) if schema != PUBLIC_SCHEMA && !schemas.contains(schema) => {
            format!("{PUBLIC_SCHEMA}.{name}")
        }
        _ => name.to_owned(),
    }
}
