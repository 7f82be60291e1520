//! A directory: its entries, their durability, and the lock that one process has on it.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, Kind, Operation, Result};
use super::file::File;
use super::log_file::LogFile;
use super::poison::Poison;
use crate::backend::disk::{self as raw, Open, RawDirectory, RawFile};

/// How much of a lock's file is read for who its holder is, and for what the holder remarks
/// besides.
const HOLDER_BYTES_MAX: usize = 1_024;
const REMARK_BYTES_MAX: usize = 3_072;

/// An open directory. Its entries are found by its path: it must keep its name while it is open.
///
/// Threads may share it. After a change or a sync that failed it refuses all others; what only
/// depends on the state of the entries (no such entry, or one that is there already) is no failure
/// in this sense.
#[derive(Debug)]
pub struct Directory {
    raw: RawDirectory,
    path: PathBuf,
    poison: Poison,
}

/// What a directory holds under a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name; what is not UTF-8 in it is replaced.
    pub name: String,
    /// Whether it is a directory; else it is a file, or something else that is read like one.
    pub is_directory: bool,
    /// The length of a file, 0 for a directory.
    pub bytes: u64,
}

/// An exclusive lock on a name in a directory. It ends when it is dropped, and with the process,
/// however that ends.
#[derive(Debug)]
pub struct Lock {
    file: RawFile,
    path: PathBuf,
    /// Where the holder's remark begins in the file.
    remark_at: u64,
}

impl Lock {
    /// The path of the lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has the file say this line besides who holds the lock, in place of what it said before. It
    /// stays when the lock ends, until the next one is taken. It is not made durable.
    ///
    /// # Errors
    /// The system's.
    pub fn remark(&self, remark: &str) -> Result<()> {
        let remark = remark.replace('\n', " ");
        let end = remark.floor_char_boundary(REMARK_BYTES_MAX - 1);
        let line = format!("\n{}", &remark[..end]);
        let written = self.file.set_len(self.remark_at).and_then(|()| {
            super::file::write_all(&self.file, self.remark_at, line.as_bytes(), |done| done)
        });
        written.map_err(|error| Error::new(Operation::Write, &self.path, &error))
    }
}

impl Directory {
    /// Opens the directory at `path`; makes it and the directories above it first if they are not
    /// there. When this returns they survive a power loss. If this makes the directory, no other
    /// user may look into it (mode 0700); the directories above it get the mode that the process
    /// gives to new ones.
    ///
    /// # Errors
    /// The system's; [`Kind::NotADirectory`] when a file is in the way.
    pub fn create(path: &Path) -> Result<Directory> {
        let mut missing = Vec::new();
        let mut at = path;
        let mut directory = loop {
            match Directory::open(at) {
                Ok(directory) => break directory,
                Err(error) if *error.kind() == Kind::NotFound => missing.push(at),
                Err(error) => return Err(error),
            }
            at = match at.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                Some(_) => Path::new("."),
                None => return Err(Error::new(Operation::Create, path, &not_found())),
            };
        };
        directory.sync_entry()?;
        while let Some(path) = missing.pop() {
            match raw::make_directory(path, missing.is_empty()) {
                // Another process may have made it just now.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::new(Operation::Create, path, &error));
                }
                _ => {}
            }
            directory.sync()?;
            directory = Directory::open(path)?;
        }
        Ok(directory)
    }

    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// The system's; [`Kind::NotFound`], [`Kind::NotADirectory`].
    pub fn open(path: &Path) -> Result<Directory> {
        let raw = RawDirectory::open(path);
        Ok(Directory {
            raw: raw.map_err(|error| Error::new(Operation::Open, path, &error))?,
            path: path.to_owned(),
            poison: Poison::default(),
        })
    }

    /// Makes this directory's own entry durable: a process that died may have made it and not come
    /// so far.
    fn sync_entry(&self) -> Result<()> {
        let parent = match self.path.parent() {
            None => return Ok(()),
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
        };
        match Directory::open(parent) {
            Ok(parent) => parent.sync(),
            // A process that may not look into the parent has made nothing there.
            Err(error) if *error.kind() == Kind::Denied => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The path under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory `name` in this one.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn subdirectory(&self, name: &str) -> Result<Directory> {
        Directory::open(&self.entry(Operation::Open, name)?)
    }

    /// Opens the directory `name` in this one; makes it first, durably, if it is not there.
    ///
    /// # Errors
    /// As [`Directory::create`].
    pub fn create_subdirectory(&self, name: &str) -> Result<Directory> {
        Directory::create(&self.entry(Operation::Create, name)?)
    }

    /// What it holds, by name.
    ///
    /// # Errors
    /// The system's.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let listed = self.raw.list();
        let mut entries =
            listed.map_err(|error| Error::new(Operation::List, &self.path, &error))?;
        entries.sort();
        Ok(entries)
    }

    /// Makes the file `name`, empty, to be read and written by this user alone (mode 0600). Its
    /// entry is not durable before a [`Directory::sync`].
    ///
    /// # Errors
    /// The system's; [`Kind::Exists`].
    pub fn create_file(&self, name: &str) -> Result<File> {
        let path = self.entry(Operation::Create, name)?;
        let raw = self.change(Operation::Create, &path, || {
            self.raw.open_file(name, Open::CreateNew)
        })?;
        Ok(File::new(raw, path))
    }

    /// Opens the file `name` to be read.
    ///
    /// # Errors
    /// The system's; [`Kind::NotFound`], [`Kind::IsADirectory`].
    pub fn open_file(&self, name: &str) -> Result<File> {
        self.open_as(name, Open::Read)
    }

    /// Opens the file `name` to be read and written.
    ///
    /// # Errors
    /// As [`Directory::open_file`].
    pub fn open_file_to_write(&self, name: &str) -> Result<File> {
        self.open_as(name, Open::Write)
    }

    /// Opens the file `name` for writes that are durable when they return; direct ones if the file
    /// system has them.
    ///
    /// # Errors
    /// As [`Directory::open_file`].
    pub fn open_log_file(&self, name: &str) -> Result<LogFile> {
        let path = self.entry(Operation::Open, name)?;
        match self.raw.open_file(name, Open::WriteDirect) {
            Ok(raw) if LogFile::can_be_direct(&raw) => {
                return Ok(LogFile::new(File::new(raw, path), true));
            }
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(Error::new(Operation::Open, &path, &error)),
        }
        self.open_cached_log_file(name)
    }

    /// Opens the file `name` for writes that are durable when they return, through the cache and
    /// with a sync after each.
    ///
    /// # Errors
    /// As [`Directory::open_file`].
    pub fn open_cached_log_file(&self, name: &str) -> Result<LogFile> {
        Ok(LogFile::new(self.open_as(name, Open::Write)?, false))
    }

    /// Makes the entries durable. What is in the files they name is the files' own.
    ///
    /// # Errors
    /// The system's, and then it is not known what is durable; those of an earlier change or sync
    /// that failed.
    pub fn sync(&self) -> Result<()> {
        self.poison.sync(|| {
            let synced = self.raw.sync();
            synced.map_err(|error| Error::new(Operation::Sync, &self.path, &error))
        })
    }

    /// Gives the entry `from` the name `to`; what had that name is replaced. After a power loss the
    /// entry has one name or the other, the new one for certain once the directory is synced.
    ///
    /// # Errors
    /// The system's; [`Kind::NotFound`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let path = self.entry(Operation::Rename, from)?;
        self.entry(Operation::Rename, to)?;
        self.change(Operation::Rename, &path, || self.raw.rename(from, to))
    }

    /// Removes the file `name`. Its space is free when no handle of it is open any more.
    ///
    /// # Errors
    /// The system's; [`Kind::NotFound`], [`Kind::IsADirectory`].
    pub fn remove_file(&self, name: &str) -> Result<()> {
        let path = self.entry(Operation::Remove, name)?;
        self.change(Operation::Remove, &path, || self.raw.remove_file(name))
    }

    /// Removes the directory `name`, which holds nothing.
    ///
    /// # Errors
    /// The system's; [`Kind::NotFound`], [`Kind::NotADirectory`].
    pub fn remove_directory(&self, name: &str) -> Result<()> {
        let path = self.entry(Operation::Remove, name)?;
        self.change(Operation::Remove, &path, || self.raw.remove_directory(name))
    }

    /// How many bytes the file system has for files of this user.
    ///
    /// # Errors
    /// The system's.
    pub fn free_bytes(&self) -> Result<u64> {
        let free = self.raw.free_bytes();
        free.map_err(|error| Error::new(Operation::Inspect, &self.path, &error))
    }

    /// Whether the directory lies in memory (tmpfs, ramfs), so that nothing in it survives a power
    /// loss, synced or not.
    ///
    /// # Errors
    /// The system's.
    pub fn is_volatile(&self) -> Result<bool> {
        let volatile = self.raw.is_volatile();
        volatile.map_err(|error| Error::new(Operation::Inspect, &self.path, &error))
    }

    /// Takes the exclusive lock `name`, a file that is made if it is not there and stays there. The
    /// file says who holds the lock: this process's number and `holder`, a line about the caller.
    /// The lock is advisory: it keeps out those who ask for it.
    ///
    /// # Errors
    /// [`Kind::Locked`] when another process has it, or another handle in this one; the system's.
    pub fn lock(&self, name: &str, holder: &str) -> Result<Lock> {
        let path = self.entry(Operation::Lock, name)?;
        let failed = |error: io::Error| Error::new(Operation::Lock, &path, &error);
        let raw = self.raw.open_file(name, Open::CreateOrWrite);
        let file = raw.map_err(failed)?;
        if !file.lock().map_err(failed)? {
            return Err(Error::locked(&path, holder_of(&file)));
        }
        let mut text = format!("process {}: {holder}", raw::process_id());
        text.truncate(text.floor_char_boundary(HOLDER_BYTES_MAX));
        file.set_len(0).map_err(failed)?;
        super::file::write_all(&file, 0, text.as_bytes(), |done| done).map_err(failed)?;
        Ok(Lock {
            file,
            path,
            remark_at: text.len() as u64,
        })
    }

    /// What the holder of the lock `name` wrote about itself; `None` when no process has the lock.
    /// Writes nothing. For an instant this call has the lock itself, and a process that wants it
    /// then is refused.
    ///
    /// # Errors
    /// The system's.
    pub fn lock_holder(&self, name: &str) -> Result<Option<String>> {
        let file = match self.open_as(name, Open::Read) {
            Err(error) if *error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let is_free = file.raw().lock();
        match is_free.map_err(|error| file.error(Operation::Lock, &error))? {
            true => Ok(None),
            false => Ok(Some(holder_of(file.raw()))),
        }
    }

    /// What the holder of the lock `name` has [remarked](Lock::remark), or the last one if no
    /// process has the lock.
    ///
    /// # Errors
    /// The system's.
    pub fn lock_remark(&self, name: &str) -> Result<Option<String>> {
        match self.open_as(name, Open::Read) {
            Err(error) if *error.kind() == Kind::NotFound => Ok(None),
            other => Ok(said_in(other?.raw()).1),
        }
    }

    fn open_as(&self, name: &str, how: Open) -> Result<File> {
        let path = self.entry(Operation::Open, name)?;
        match self.raw.open_file(name, how) {
            Ok(raw) => Ok(File::new(raw, path)),
            Err(error) => Err(Error::new(Operation::Open, &path, &error)),
        }
    }

    /// The path of `name`, which must name an entry of this directory.
    fn entry(&self, operation: Operation, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
        match is_name {
            true => Ok(path),
            false => {
                let why = format!("{name:?} does not name an entry of a directory");
                let error = io::Error::new(io::ErrorKind::InvalidInput, why);
                Err(Error::new(operation, &path, &error))
            }
        }
    }

    /// Makes a change unless an earlier change or sync has failed.
    fn change<T>(
        &self,
        operation: Operation,
        path: &Path,
        change: impl FnOnce() -> io::Result<T>,
    ) -> Result<T> {
        self.poison.check()?;
        match change() {
            Ok(value) => Ok(value),
            Err(error) if is_about_entries(&error) => Err(Error::new(operation, path, &error)),
            Err(error) => self
                .poison
                .change(|| Err(Error::new(operation, path, &error))),
        }
    }
}

/// Whether the system refused a change because of the entries, rights or room as they are, and
/// nothing is broken.
fn is_about_entries(error: &io::Error) -> bool {
    *Error::new(Operation::Inspect, Path::new(""), error).kind() != Kind::Failed
        || matches!(
            error.raw_os_error(),
            Some(libc::ENOTEMPTY | libc::EINVAL | libc::ENAMETOOLONG)
        )
}

/// What the holder of a lock wrote into its file: who it is, and its remark.
fn said_in(file: &RawFile) -> (String, Option<String>) {
    let mut bytes = [0; HOLDER_BYTES_MAX + REMARK_BYTES_MAX];
    let read = file.read_some(0, &mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]);
    let (holder, remark) = match text.split_once('\n') {
        Some((holder, remark)) => (holder, remark.trim()),
        None => (&*text, ""),
    };
    let remark = (!remark.is_empty()).then(|| remark.to_owned());
    (holder.trim().to_owned(), remark)
}

/// The holder of a lock, as it describes itself.
fn holder_of(file: &RawFile) -> String {
    match said_in(file).0.as_str() {
        "" => "a process that has not said yet who it is".to_owned(),
        text => text.to_owned(),
    }
}

fn not_found() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}
