//! Statements that were parsed and compiled before, by their text.

use std::collections::HashMap;

use kiln_engine::Catalog;
use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::types::DataType;

use super::panics::caught;
use super::statement::{Prepared, compile};
use crate::parse::{SourceStatement, Statement, statement};

/// Statements that are kept.
const ENTRIES_MAX: usize = 256;

/// Longer statements are not kept: scripts that load data are full of them.
const TEXT_BYTES_MAX: usize = 8_192;

/// The same text at another place of a script has other positions in its errors.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    line: u32,
    column: u32,
    parameters: Vec<DataType>,
}

struct Entry {
    statement: Arc<Statement>,
    /// Compiled for the catalog of this version.
    prepared: Option<(u64, Prepared)>,
    /// When it was used last, in uses of the cache.
    used: u64,
}

/// A bounded cache; the statement that was not used for longest goes first.
#[derive(Default)]
pub(super) struct StatementCache {
    entries: HashMap<Key, Entry>,
    uses: u64,
}

/// A parsed statement and where it may be found compiled.
pub(super) struct Parsed {
    pub statement: Arc<Statement>,
    parameters: Vec<DataType>,
    key: Option<Key>,
}

impl StatementCache {
    /// The statement that `source` says.
    ///
    /// # Errors
    /// Those of the parser.
    pub fn parse(
        &mut self,
        source: &SourceStatement<'_>,
        parameters: Vec<DataType>,
    ) -> Result<Parsed> {
        if source.text.len() > TEXT_BYTES_MAX {
            let statement = Arc::new(parsed(source)?);
            return Ok(Parsed {
                statement,
                parameters,
                key: None,
            });
        }
        self.uses += 1;
        let key = Key {
            text: source.text.to_owned(),
            line: source.line,
            column: source.column,
            parameters: parameters.clone(),
        };
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.used = self.uses;
            return Ok(Parsed {
                statement: entry.statement.clone(),
                parameters,
                key: Some(key),
            });
        }
        let statement = Arc::new(parsed(source)?);
        if self.entries.len() >= ENTRIES_MAX {
            self.evict();
        }
        let entry = Entry {
            statement: statement.clone(),
            prepared: None,
            used: self.uses,
        };
        self.entries.insert(key.clone(), entry);
        Ok(Parsed {
            statement,
            parameters,
            key: Some(key),
        })
    }

    /// Makes room: a quarter goes at once, so that it is not looked for every time.
    fn evict(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        uses.sort_unstable();
        let limit = uses.get(ENTRIES_MAX / 4).copied().unwrap_or(u64::MAX);
        self.entries.retain(|_, entry| entry.used > limit);
    }

    /// The statement compiled for `catalog`.
    ///
    /// # Errors
    /// Those of the compiler.
    pub fn prepare(&mut self, catalog: &Catalog, parsed: &Parsed) -> Result<Prepared> {
        let entry = parsed
            .key
            .as_ref()
            .and_then(|key| self.entries.get_mut(key));
        let Some(entry) = entry else {
            return compile(catalog, &parsed.statement, &parsed.parameters);
        };
        if let Some((version, prepared)) = &entry.prepared
            && *version == catalog.version()
        {
            return Ok(prepared.clone());
        }
        let prepared = compile(catalog, &parsed.statement, &parsed.parameters)?;
        entry.prepared = Some((catalog.version(), prepared.clone()));
        Ok(prepared)
    }
}

/// # Errors
/// Those of the parser.
fn parsed(source: &SourceStatement<'_>) -> Result<Statement> {
    caught(|| {
        #[cfg(test)]
        super::panics::planted::reach(super::panics::planted::Step::Parse);
        statement(source)
    })
}
