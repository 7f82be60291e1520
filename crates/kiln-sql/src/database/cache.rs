//! Statements that were parsed and analysed before, by their text.

use std::collections::HashMap;

use kiln_engine::Catalog;
use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::types::DataType;

use super::panics::caught;
use super::prepared::Statement;
use crate::parse::{self, SourceStatement};

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
    declared: Vec<Option<DataType>>,
}

struct Entry {
    statement: Statement,
    /// When it was used last, in uses of the cache.
    used: u64,
}

/// A bounded cache; the statement that was not used for longest goes first.
#[derive(Default)]
pub(super) struct StatementCache {
    entries: HashMap<Key, Entry>,
    uses: u64,
}

impl StatementCache {
    /// The statement that `source` says, analysed for `catalog`. `admit` sees its syntax before the
    /// analysis.
    ///
    /// # Errors
    /// Those of the parser, of `admit`, and of the analysis.
    pub fn statement(
        &mut self,
        source: &SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
        catalog: &Arc<Catalog>,
        admit: impl FnOnce(&parse::Statement) -> Result<()>,
    ) -> Result<Statement> {
        if source.text.len() > TEXT_BYTES_MAX {
            let tree = Arc::new(parsed(source)?);
            admit(&tree)?;
            return Statement::analyse(tree, source, declared, catalog);
        }
        self.uses += 1;
        let key = Key {
            text: source.text.to_owned(),
            line: source.line,
            column: source.column,
            declared: declared.clone(),
        };
        let known = self.entries.get_mut(&key).map(|entry| {
            entry.used = self.uses;
            entry.statement.clone()
        });
        let tree = known.as_ref().and_then(Statement::tree).cloned();
        let tree = tree.map_or_else(|| parsed(source).map(Arc::new), Ok)?;
        admit(&tree)?;
        if let Some(known) = known
            && known.is_planned_for(catalog)
        {
            return Ok(known);
        }
        let statement = Statement::analyse(tree, source, declared, catalog)?;
        if self.entries.len() >= ENTRIES_MAX {
            self.evict();
        }
        let entry = Entry {
            statement: statement.clone(),
            used: self.uses,
        };
        self.entries.insert(key, entry);
        Ok(statement)
    }

    /// Makes room: a quarter goes at once, so that it is not looked for every time.
    fn evict(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        uses.sort_unstable();
        let limit = uses.get(ENTRIES_MAX / 4).copied().unwrap_or(u64::MAX);
        self.entries.retain(|_, entry| entry.used > limit);
    }
}

/// # Errors
/// Those of the parser.
fn parsed(source: &SourceStatement<'_>) -> Result<parse::Statement> {
    caught(|| {
        #[cfg(test)]
        super::panics::planted::reach(super::panics::planted::Step::Parse);
        parse::statement(source)
    })
}
