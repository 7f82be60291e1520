//! Which catalog is in force.

use kiln_platform::sync::{Arc, Mutex, Weak, lock};

use super::objects::Catalog;
use super::search_path::SearchPath;
use crate::locks::RowLocks;
use crate::open_sessions::OpenSessions;

/// Which catalog is in force: for programs, which outlive the catalog for which they were compiled.
/// All catalogs of a database share it.
#[derive(Default)]
pub struct CurrentCatalog {
    catalog: Mutex<Weak<Catalog>>,
    row_locks: Arc<RowLocks>,
    open_sessions: Arc<OpenSessions>,
    /// What is seen along another path than the default one: of which catalog, and how it is seen.
    along: Option<Along>,
}

/// The catalog in force, seen along a path.
struct Along {
    of: Arc<CurrentCatalog>,
    path: SearchPath,
    /// A catalog in force, and how it is seen.
    last: Mutex<Option<(Weak<Catalog>, Arc<Catalog>)>>,
}

impl CurrentCatalog {
    /// A current catalog for users beside those that share `other`, in the same database.
    pub(crate) fn beside(other: &CurrentCatalog) -> CurrentCatalog {
        CurrentCatalog {
            catalog: Mutex::default(),
            row_locks: other.row_locks.clone(),
            open_sessions: other.open_sessions.clone(),
            along: None,
        }
    }

    /// The same, seen along a path.
    pub fn along(self: &Arc<CurrentCatalog>, path: &SearchPath) -> Arc<CurrentCatalog> {
        if path.is_default() {
            return self.clone();
        }
        Arc::new(CurrentCatalog {
            along: Some(Along {
                of: self.clone(),
                path: path.clone(),
                last: Mutex::default(),
            }),
            ..CurrentCatalog::beside(self)
        })
    }

    /// The locks of rows that statements take.
    pub fn row_locks(&self) -> &Arc<RowLocks> {
        &self.row_locks
    }

    /// The sessions that are open.
    pub fn open_sessions(&self) -> &Arc<OpenSessions> {
        &self.open_sessions
    }

    /// The catalog in force; `None` before the first one, and when the database is gone.
    pub fn get(&self) -> Option<Arc<Catalog>> {
        let Some(Along { of, path, last }) = &self.along else {
            return lock(&self.catalog).upgrade();
        };
        let current = of.get()?;
        let mut last = lock(last);
        if let Some((of, seen)) = &*last
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(&current))
        {
            return Some(seen.clone());
        }
        let seen = current.along(path);
        *last = Some((Arc::downgrade(&current), seen.clone()));
        Some(seen)
    }

    pub(crate) fn set(&self, catalog: &Arc<Catalog>) {
        *lock(&self.catalog) = Arc::downgrade(catalog);
    }
}
