//! The snippets in `corpus/*.sql`.
//!
//! ```sql
//! -- snippet: integer-division-by-zero
//! -- error: 22012
//! SELECT 1 / 0;
//! ```
//!
//! A snippet starts at its `-- snippet:` line, runs in a fresh schema and holds statements that end
//! in `;`. A statement that PostgreSQL refuses says so with `-- error: SQLSTATE` on a line before
//! it; every other statement must succeed there, so that a slip in the corpus is not taken for a
//! tested error. A file with a line `-- compare: messages` has the texts of errors compared too.
//!
//! A snippet after whose first line stands `-- protocols: NAME …` runs under these protocols only,
//! the default among them.
//!
//! A statement after `-- refused: ALIAS` uses a feature that Kiln does not have: Kiln must refuse
//! it with 0A000 and those words in its message, and the statements of the snippet after it run on
//! PostgreSQL only.

use std::path::Path;

use kiln_platform::file;

use super::outcome::SUCCESS;

/// One file of the corpus.
#[derive(Debug)]
pub struct CorpusFile {
    /// The file's name without extension: its theme.
    pub theme: String,
    /// Whether the texts of errors are compared, not only their SQLSTATE.
    pub compares_messages: bool,
    pub snippets: Vec<Snippet>,
}

/// Statements that run one after another in a fresh schema.
#[derive(Debug)]
pub struct Snippet {
    pub name: String,
    /// The protocols under which it runs; none stands for all.
    pub protocols: Vec<String>,
    pub statements: Vec<Statement>,
}

impl Snippet {
    /// Whether it runs under a protocol.
    pub fn runs_under(&self, protocol: &str) -> bool {
        self.protocols.is_empty() || self.protocols.iter().any(|known| known == protocol)
    }
}

/// One SQL statement.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text, without the final `;` and the comments before it.
    pub sql: String,
    /// The line of the file on which the text starts, from 1.
    pub line: usize,
    /// What the corpus says PostgreSQL answers; [`SUCCESS`] unless the file says otherwise.
    pub expected_sqlstate: String,
    /// What Kiln's refusal must name, if Kiln refuses the statement.
    pub refused: Option<String>,
}

/// All files of the corpus, sorted by theme.
///
/// # Errors
/// What is wrong, with file and line.
pub fn load(directory: &Path) -> Result<Vec<CorpusFile>, String> {
    let mut files = Vec::new();
    for path in file::list(directory).map_err(|error| error.to_string())? {
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let text = file::read_to_string(&path).map_err(|error| error.to_string())?;
        let theme = path.file_stem().unwrap_or_default().to_string_lossy();
        let parsed = parse(&theme, &text).map_err(|error| format!("{}:{error}", path.display()))?;
        files.push(parsed);
    }
    Ok(files)
}

/// Splits the text of one corpus file.
///
/// # Errors
/// The line, a colon and what is wrong there.
pub fn parse(theme: &str, text: &str) -> Result<CorpusFile, String> {
    let mut parsed = CorpusFile {
        theme: theme.to_owned(),
        compares_messages: false,
        snippets: Vec::new(),
    };
    let mut expected: Option<String> = None;
    let mut refused: Option<String> = None;
    let mut rest = Scanner::new(text);
    loop {
        rest.skip_blanks();
        if rest.at_end() {
            break;
        }
        let line = rest.line;
        if let Some(comment) = rest.take_line_comment() {
            if let Some(name) = comment.strip_prefix("snippet:") {
                parsed.snippets.push(Snippet {
                    name: name.trim().to_owned(),
                    protocols: Vec::new(),
                    statements: Vec::new(),
                });
            } else if let Some(protocols) = comment.strip_prefix("protocols:") {
                let snippet = parsed.snippets.last_mut().ok_or_else(|| {
                    format!("{line}: '-- protocols:' before the first '-- snippet:'")
                })?;
                snippet.protocols = protocols.split_whitespace().map(str::to_owned).collect();
            } else if let Some(sqlstate) = comment.strip_prefix("error:") {
                expected = Some(sqlstate.trim().to_owned());
            } else if let Some(feature) = comment.strip_prefix("refused:") {
                refused = Some(feature.trim().to_owned());
            } else if comment.trim() == "compare: messages" {
                parsed.compares_messages = true;
            }
            continue;
        }
        let sql = rest
            .take_statement()
            .ok_or_else(|| format!("{line}: the statement does not end in ';'"))?;
        let snippet = parsed
            .snippets
            .last_mut()
            .ok_or_else(|| format!("{line}: a statement before the first '-- snippet:'"))?;
        snippet.statements.push(Statement {
            sql: sql.to_owned(),
            line,
            expected_sqlstate: expected.take().unwrap_or_else(|| SUCCESS.to_owned()),
            refused: refused.take(),
        });
    }
    if expected.is_some() {
        return Err(format!("{}: '-- error:' without a statement", rest.line));
    }
    if refused.is_some() {
        return Err(format!("{}: '-- refused:' without a statement", rest.line));
    }
    if let Some(empty) = parsed.snippets.iter().find(|s| s.statements.is_empty()) {
        return Err(format!("1: snippet {} has no statement", empty.name));
    }
    Ok(parsed)
}

/// Splits a script into its statements, without their final `;` and the comments around them.
/// What follows the last `;` is a statement too unless it is blank.
pub fn split_statements(script: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let mut rest = Scanner::new(script);
    loop {
        rest.skip_blanks();
        if rest.at_end() {
            return statements;
        }
        if rest.take_line_comment().is_some() {
            continue;
        }
        let start = rest.position;
        let statement = match rest.take_statement() {
            Some(statement) => statement,
            None => script[start..].trim_end(),
        };
        statements.push(statement);
    }
}

/// Walks over SQL text by tokens that may hide a semicolon: quotes, dollar quotes and comments.
struct Scanner<'a> {
    text: &'a str,
    position: usize,
    line: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Scanner<'a> {
        Scanner {
            text,
            position: 0,
            line: 1,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn at_end(&self) -> bool {
        self.position == self.text.len()
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let passed = &self.rest()[..bytes];
        self.line += passed.matches('\n').count();
        self.position += bytes;
        passed
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start().len());
    }

    /// The text after `--` up to the end of the line, when a comment starts here.
    fn take_line_comment(&mut self) -> Option<&'a str> {
        if !self.rest().starts_with("--") {
            return None;
        }
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        Some(self.advance(length)[2..].trim())
    }

    /// The text up to the next `;` that ends a statement, and moves past it; `None`, at the end of
    /// the text, when there is none.
    fn take_statement(&mut self) -> Option<&'a str> {
        let start = self.position;
        while let Some(next) = self.rest().chars().next() {
            match next {
                ';' => {
                    let statement = &self.text[start..self.position];
                    self.advance(1);
                    return Some(statement.trim_end());
                }
                '\'' => {
                    let escapes = self.ends_in_escape_prefix();
                    self.skip_quoted('\'', escapes);
                }
                '"' => self.skip_quoted('"', false),
                '$' => self.skip_dollar(),
                '-' if self.rest().starts_with("--") => {
                    self.take_line_comment();
                }
                '/' if self.rest().starts_with("/*") => self.skip_block_comment(),
                other => {
                    self.advance(other.len_utf8());
                }
            }
        }
        None
    }

    /// Whether an `E` that is a token of its own stands right before this place.
    fn ends_in_escape_prefix(&self) -> bool {
        let mut before = self.text[..self.position].chars().rev();
        matches!(before.next(), Some('e' | 'E'))
            && !before
                .next()
                .is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    /// Skips from one quote to the matching one. A doubled quote reads as two strings side by side,
    /// which is as good here.
    fn skip_quoted(&mut self, quote: char, backslash_escapes: bool) {
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = backslash_escapes && c == '\\' && !escaped;
            ends
        });
        let length = end.map_or(self.rest().len(), |(at, _)| at + 1);
        self.advance(length);
    }

    /// Skips `$tag$ … $tag$`, or one `$` when no tag starts here (as in `$1`).
    fn skip_dollar(&mut self) {
        let rest = self.rest();
        let tag_length = rest[1..].find('$').filter(|&length| {
            let name = &rest[1..=length];
            name.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        });
        let Some(tag_length) = tag_length else {
            self.advance(1);
            return;
        };
        let tag = &rest[..tag_length + 2];
        let end = rest[tag.len()..].find(tag);
        self.advance(end.map_or(rest.len(), |at| at + 2 * tag.len()));
    }

    /// Skips a block comment; PostgreSQL's nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while !self.at_end() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.advance(2);
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.advance(2);
                if depth == 0 {
                    return;
                }
            } else {
                let width = self.rest().chars().next().map_or(0, char::len_utf8);
                self.advance(width);
            }
        }
    }
}
