//! A directory for a while.

use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::error::Result;
use crate::atomic::{AtomicU64, Ordering};

/// An empty directory that is removed when this is dropped, for tests and examples.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

static MADE: AtomicU64 = AtomicU64::new(0);

impl TemporaryDirectory {
    /// One in the system's directory for such things, whose name begins with `name`.
    ///
    /// # Errors
    /// The system's.
    pub fn new(name: &str) -> Result<TemporaryDirectory> {
        TemporaryDirectory::within(&std::env::temp_dir(), name)
    }

    /// One in `parent`, whose name begins with `name`.
    ///
    /// # Errors
    /// The system's.
    pub fn within(parent: &Path, name: &str) -> Result<TemporaryDirectory> {
        // Relaxed: the number only has to be another one each time.
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(format!("{name}-{process}-{number}"));
        remove(&path);
        Directory::create(&path)?;
        Ok(TemporaryDirectory(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a directory with all that is in it, as far as the system lets it.
fn remove(path: &Path) {
    let Ok(directory) = Directory::open(path) else {
        return;
    };
    for entry in directory.list().unwrap_or_default() {
        match entry.is_directory {
            true => remove(&path.join(&entry.name)),
            false => drop(directory.remove_file(&entry.name)),
        }
    }
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let parent = path.parent().map(Directory::open);
    if let (Some(name), Some(Ok(parent))) = (name, parent) {
        // It is not empty where something could not be removed.
        let _ = parent.remove_directory(&name);
    }
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_with_all_that_is_in_it() {
        let made = TemporaryDirectory::new("kiln-temporary").expect("the system has room");
        let other = TemporaryDirectory::new("kiln-temporary").expect("the system has room");
        assert_ne!(made.path(), other.path());
        let inner = made.path().join("a/b");
        let directory = Directory::create(&inner).expect("it can be made");
        directory.create_file("c").expect("it is new");
        let path = made.path().to_owned();
        drop(made);
        assert!(Directory::open(&path).is_err());
        assert!(Directory::open(other.path()).is_ok());
    }
}
