//! What COPY's options say, and which of them fit together.

use kiln_storage::error::{Error, Result, SqlState};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Lines with columns between delimiters.
    Text,
    /// Comma-separated values.
    Csv,
    /// Lengths and bytes.
    Binary,
}

/// How COPY's data are written, and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How rows are written.
    pub layout: Layout,
    /// What is between columns.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// Whether the first line has the columns' names; on the way in it is skipped.
    pub header: bool,
    /// Whether the first line must have the columns' names.
    pub matches_header: bool,
    /// What is around values of CSV that need it.
    pub quote: u8,
    /// What is before a quote, and before itself, within quotes.
    pub escape: u8,
    /// Columns whose values have quotes always.
    pub force_quote: Columns,
    /// Columns in which nothing without quotes is the empty text.
    pub force_not_null: Columns,
    /// Columns in which what stands for NULL does so within quotes too.
    pub force_null: Columns,
}

/// Some of the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

impl Columns {
    /// Which of the columns of these names.
    ///
    /// # Errors
    /// 42703 for a name that none has.
    pub fn among(&self, names: &[&str]) -> Result<Vec<bool>> {
        match self {
            Columns::None => Ok(vec![false; names.len()]),
            Columns::All => Ok(vec![true; names.len()]),
            Columns::Named(some) => {
                if let Some(unknown) = some.iter().find(|it| !names.contains(&it.as_str())) {
                    let message =
                        format!("column \"{unknown}\" is not among those that are copied");
                    return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
                }
                let is_one = |name: &&str| some.iter().any(|it| it == name);
                Ok(names.iter().map(is_one).collect())
            }
        }
    }
}

impl Options {
    /// Those of an option list: names in lower case, and what was given to each.
    ///
    /// # Errors
    /// 42601 for an option that is not known, is there twice or has no such value; 0A000 for one
    /// that does not fit the format or the direction; 22023 for a text that cannot be a delimiter
    /// or the like.
    pub fn of<'a>(
        given: impl Iterator<Item = (&'a str, &'a [String])> + Clone,
        is_in: bool,
    ) -> Result<Options> {
        let mut names: Vec<&str> = given.clone().map(|(name, _)| name).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[one, other]| one == other) {
            return Err(syntax(format!("conflicting or redundant options: {twice}")));
        }
        let find = |name: &str| given.clone().find(|(known, _)| *known == name);
        let layout = match find("format") {
            None => Layout::Text,
            Some((_, values)) => match single("format", values)?.to_lowercase().as_str() {
                "text" => Layout::Text,
                "csv" => Layout::Csv,
                "binary" => Layout::Binary,
                other => {
                    let message = format!("COPY format \"{other}\" not recognized");
                    return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
            },
        };
        let mut options = Options::new(layout);
        let mut escape = None;
        for (name, values) in given {
            match name {
                "format" => {}
                // Rows are seen when the transaction has ended, frozen or not.
                "freeze" => drop(boolean(name, values)?),
                "delimiter" => options.delimiter = byte(name, single(name, values)?)?,
                "null" => single(name, values)?.clone_into(&mut options.null),
                "header" => match values {
                    [value] if value.eq_ignore_ascii_case("match") => {
                        (options.header, options.matches_header) = (true, true);
                    }
                    _ => options.header = boolean(name, values)?,
                },
                "quote" => options.quote = byte(name, single(name, values)?)?,
                "escape" => escape = Some(byte(name, single(name, values)?)?),
                "force_quote" => options.force_quote = columns(values),
                "force_not_null" => options.force_not_null = columns(values),
                "force_null" => options.force_null = columns(values),
                "encoding" => encoding(single(name, values)?)?,
                _ => return Err(syntax(format!("option \"{name}\" not recognized"))),
            }
        }
        options.escape = escape.unwrap_or(options.quote);
        options.check(&names, is_in)?;
        Ok(options)
    }

    /// The defaults of a format.
    pub fn new(layout: Layout) -> Options {
        Options {
            layout,
            delimiter: if layout == Layout::Csv { b',' } else { b'\t' },
            null: if layout == Layout::Csv { "" } else { "\\N" }.to_owned(),
            header: false,
            matches_header: false,
            quote: b'"',
            escape: b'"',
            force_quote: Columns::None,
            force_not_null: Columns::None,
            force_null: Columns::None,
        }
    }

    /// Whether these options, of these names, fit together.
    fn check(&self, names: &[&str], is_in: bool) -> Result<()> {
        let refused = |what: String| Err(Error::unsupported(what));
        let has = |name: &&str| names.contains(name);
        if self.layout == Layout::Binary
            && let Some(name) = ["delimiter", "null", "header"]
                .iter()
                .find(|name| has(name))
        {
            let name = name.to_uppercase();
            return refused(format!("cannot specify {name} in BINARY mode"));
        }
        if self.layout != Layout::Csv {
            let of_csv = [
                "quote",
                "escape",
                "force_quote",
                "force_not_null",
                "force_null",
            ];
            if let Some(name) = of_csv.iter().find(|name| has(name)) {
                let name = name.to_uppercase();
                return refused(format!("COPY {name} requires CSV mode"));
            }
        }
        let of_other = match is_in {
            true => ["force_quote"].as_slice(),
            false => &["force_not_null", "force_null", "freeze"],
        };
        if let Some(name) = of_other.iter().find(|name| has(name)) {
            let (name, with) = (name.to_uppercase(), if is_in { "FROM" } else { "TO" });
            return refused(format!("COPY {name} cannot be used with COPY {with}"));
        }
        if self.matches_header && !is_in {
            return refused("cannot use \"match\" with HEADER in COPY TO".to_owned());
        }
        let invalid = |what: &str| {
            let state = SqlState::INVALID_PARAMETER_VALUE;
            Err(Error::new(state, format!("COPY {what}")))
        };
        let null = self.null.as_bytes();
        if matches!(self.delimiter, b'\n' | b'\r') {
            return invalid("delimiter cannot be newline or carriage return");
        }
        if null.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            return invalid("null representation cannot use newline or carriage return");
        }
        if self.layout == Layout::Text
            && (self.delimiter.is_ascii_lowercase()
                || self.delimiter.is_ascii_digit()
                || matches!(self.delimiter, b'\\' | b'.'))
        {
            let delimiter = char::from(self.delimiter);
            return invalid(&format!("delimiter cannot be \"{delimiter}\""));
        }
        if self.layout == Layout::Csv && self.delimiter == self.quote {
            return invalid("delimiter and quote must be different");
        }
        if self.layout != Layout::Binary && null.contains(&self.delimiter) {
            return invalid("delimiter character must not appear in the NULL specification");
        }
        if self.layout == Layout::Csv && null.contains(&self.quote) {
            return invalid("quote character must not appear in the NULL specification");
        }
        Ok(())
    }
}

fn single<'a>(name: &str, values: &'a [String]) -> Result<&'a str> {
    match values {
        [value] => Ok(value),
        _ => Err(syntax(format!("{name} requires a parameter"))),
    }
}

fn boolean(name: &str, values: &[String]) -> Result<bool> {
    let Some(value) = values.first() else {
        return Ok(true);
    };
    match value.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(syntax(format!("{name} requires a Boolean value"))),
    }
}

fn byte(name: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => {
            let message = format!("COPY {name} must be a single one-byte character");
            Err(Error::unsupported(message))
        }
    }
}

fn columns(values: &[String]) -> Columns {
    match values {
        [all] if all == "*" => Columns::All,
        names => Columns::Named(names.to_vec()),
    }
}

fn encoding(name: &str) -> Result<()> {
    match name.to_lowercase().replace(['-', '_'], "").as_str() {
        "utf8" | "unicode" => Ok(()),
        _ => {
            Err(Error::unsupported(format!("COPY in the encoding {name}"))
                .with_hint("Texts are UTF8."))
        }
    }
}

#[cold]
fn syntax(message: String) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}
