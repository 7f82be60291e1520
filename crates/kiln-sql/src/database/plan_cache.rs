//! Statements that were parsed and analysed before, by their text: one cache for all sessions.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use kiln_engine::{Catalog, SearchPath};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, Weak, lock};
use kiln_storage::error::Result;
use kiln_storage::types::DataType;

use super::panics::caught;
use super::prepared::Statement;
use crate::parse::{self, SourceStatement};

/// Parts of the cache, each with a lock of its own, which is held for a look-up only.
const PARTS: usize = 16;

/// Statements that each part keeps of a cache that all sessions share, and of one of a session.
const ENTRIES_MAX: usize = 128;
const ENTRIES_OF_SESSION_MAX: usize = 4;

/// Longer statements are not kept: scripts that load data are full of them.
const TEXT_BYTES_MAX: usize = 8_192;

/// The same text at another place of a script has other positions in its errors.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    line: u32,
    column: u32,
    declared: Vec<Option<DataType>>,
    path: SearchPath,
}

struct Entry {
    statement: Statement,
    /// When it was used last, in uses of the cache.
    used: u64,
}

/// How the plan cache is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatementsKept {
    /// Statements that are kept.
    pub entries: usize,
    /// Statements that were found compiled for the catalog of their time.
    pub hits: u64,
    /// Statements that were parsed or compiled anew.
    pub misses: u64,
}

/// A bounded cache; of a part that is full, the statements that were not used for longest go first.
pub(super) struct PlanCache {
    parts: [Mutex<Part>; PARTS],
    /// Statements that each part keeps.
    entries_max: usize,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Those of sessions, which forget what it forgets.
    of_sessions: Mutex<Vec<Weak<PlanCache>>>,
}

#[derive(Default)]
struct Part {
    entries: HashMap<Key, Entry>,
    uses: u64,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache::of_size(ENTRIES_MAX)
    }
}

impl PlanCache {
    /// That of a session whose statements are compiled for what it alone sees.
    pub fn of_session(&self) -> Arc<PlanCache> {
        let made = Arc::new(PlanCache::of_size(ENTRIES_OF_SESSION_MAX));
        let mut known = lock(&self.of_sessions);
        if known.len() == known.capacity() {
            known.retain(|known| known.strong_count() > 0);
        }
        known.push(Arc::downgrade(&made));
        made
    }

    fn of_size(entries_max: usize) -> PlanCache {
        PlanCache {
            parts: Default::default(),
            entries_max,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            of_sessions: Mutex::default(),
        }
    }

    /// The statement that `source` says, analysed for `catalog` along `path`. `admit` sees its
    /// syntax before the analysis.
    ///
    /// # Errors
    /// Those of the parser, of `admit`, and of the analysis.
    pub fn statement(
        &self,
        source: &SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
        catalog: &Arc<Catalog>,
        path: &SearchPath,
        admit: impl FnOnce(&parse::Statement) -> Result<()>,
    ) -> Result<Statement> {
        if source.text.len() > TEXT_BYTES_MAX {
            return PlanCache::uncached(source, declared, catalog, path, admit);
        }
        let key = Key {
            text: source.text.to_owned(),
            line: source.line,
            column: source.column,
            declared: declared.clone(),
            path: path.clone(),
        };
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let part = &self.parts[hasher.finish() as usize % PARTS];
        let known = lock(part).find(&key);
        let tree = known.as_ref().and_then(Statement::tree).cloned();
        let tree = tree.map_or_else(|| parsed(source).map(Arc::new), Ok)?;
        admit(&tree)?;
        // Relaxed: the counts are for reports.
        if let Some(known) = known
            && known.is_planned_for(catalog)
        {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(known);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        // Without the lock: compiling takes a while, and may panic.
        let statement = Statement::analyse(tree, source, declared, catalog, path)?;
        lock(part).keep(key, &statement, self.entries_max);
        Ok(statement)
    }

    /// As [`PlanCache::statement`], of one that is not kept.
    ///
    /// # Errors
    /// As there.
    pub fn uncached(
        source: &SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
        catalog: &Arc<Catalog>,
        path: &SearchPath,
        admit: impl FnOnce(&parse::Statement) -> Result<()>,
    ) -> Result<Statement> {
        let tree = Arc::new(parsed(source)?);
        admit(&tree)?;
        Statement::analyse(tree, source, declared, catalog, path)
    }

    /// Forgets all statements: they are compiled for a catalog that was changed, and keep the
    /// tables that it had.
    pub fn clear(&self) {
        for part in &self.parts {
            lock(part).entries.clear();
        }
        let of_sessions: Vec<_> = lock(&self.of_sessions).clone();
        let of_sessions = of_sessions.iter().filter_map(Weak::upgrade);
        of_sessions.for_each(|cache| cache.clear());
    }

    /// How it is used.
    pub fn kept(&self) -> StatementsKept {
        let entries = self.parts.iter().map(|part| lock(part).entries.len());
        StatementsKept {
            entries: entries.sum(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }
}

impl Part {
    fn find(&mut self, key: &Key) -> Option<Statement> {
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.uses;
        Some(entry.statement.clone())
    }

    fn keep(&mut self, key: Key, statement: &Statement, entries_max: usize) {
        if self.entries.len() >= entries_max {
            self.evict(entries_max);
        }
        let entry = Entry {
            statement: statement.clone(),
            used: self.uses,
        };
        self.entries.insert(key, entry);
    }

    /// Makes room: a quarter goes at once, so that it is not looked for every time.
    fn evict(&mut self, entries_max: usize) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        uses.sort_unstable();
        let limit = uses.get(entries_max / 4).copied().unwrap_or(u64::MAX);
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
