//! What a failed operation on a disk tells its caller.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What an operation on a disk gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation: what was tried, on what, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    operation: Operation,
    path: PathBuf,
    kind: Kind,
    words: String,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Making a file or a directory.
    Create,
    /// Opening a file or a directory that exists.
    Open,
    /// Reading from a file.
    Read,
    /// Writing to a file.
    Write,
    /// Making a file or a directory durable.
    Sync,
    /// Reading the length of a file, or what a file system is and how much room it has.
    Inspect,
    /// Changing the length of a file.
    SetLength,
    /// Reserving room for a file.
    Allocate,
    /// Listing the entries of a directory.
    List,
    /// Renaming an entry of a directory.
    Rename,
    /// Removing an entry of a directory.
    Remove,
    /// Taking the lock on a directory.
    Lock,
}

/// What a failure means for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// No entry of that name.
    NotFound,
    /// An entry of that name is there already.
    Exists,
    /// Another process, or another handle of this one, has the lock.
    Locked {
        /// What the lock's holder wrote about itself.
        holder: String,
    },
    /// No room: the disk is full, or a quota or a limit on the length of files is reached (ENOSPC,
    /// EDQUOT, EFBIG).
    Full,
    /// Not permitted, or the file system is read-only (EACCES, EPERM, EROFS).
    Denied,
    /// A directory was wanted.
    NotADirectory,
    /// A file was wanted.
    IsADirectory,
    /// Anything else, an error of the device (EIO) above all: what is stored can no longer be
    /// relied on.
    Failed,
}

impl Error {
    /// The system's `error` in `operation` on `path`.
    pub(super) fn new(operation: Operation, path: &Path, error: &io::Error) -> Error {
        Error {
            operation,
            path: path.to_owned(),
            kind: kind_of(error),
            words: error.to_string(),
        }
    }

    /// The lock at `path` is taken by `holder`.
    pub(super) fn locked(path: &Path, holder: String) -> Error {
        Error {
            operation: Operation::Lock,
            path: path.to_owned(),
            words: format!("held by {holder}"),
            kind: Kind::Locked { holder },
        }
    }

    /// What was tried.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The file or directory it was tried on.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the failure means.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}

fn kind_of(error: &io::Error) -> Kind {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Kind::NotFound,
        Some(libc::EEXIST) => Kind::Exists,
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Kind::Full,
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Kind::Denied,
        Some(libc::ENOTDIR) => Kind::NotADirectory,
        Some(libc::EISDIR) => Kind::IsADirectory,
        _ => Kind::Failed,
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Create => "create",
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write to",
            Operation::Sync => "sync",
            Operation::Inspect => "inspect",
            Operation::SetLength => "set the length of",
            Operation::Allocate => "allocate room for",
            Operation::List => "list",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::Lock => "lock",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, path) = (self.operation, self.path.display());
        write!(f, "cannot {operation} {path}: {}", self.words)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_the_systems_numbers_and_its_words_stay() {
        let cases = [
            (libc::ENOENT, Kind::NotFound),
            (libc::EEXIST, Kind::Exists),
            (libc::ENOSPC, Kind::Full),
            (libc::EDQUOT, Kind::Full),
            (libc::EFBIG, Kind::Full),
            (libc::EACCES, Kind::Denied),
            (libc::EPERM, Kind::Denied),
            (libc::EROFS, Kind::Denied),
            (libc::ENOTDIR, Kind::NotADirectory),
            (libc::EISDIR, Kind::IsADirectory),
            (libc::EIO, Kind::Failed),
            (libc::EINVAL, Kind::Failed),
        ];
        for (number, kind) in cases {
            let system = io::Error::from_raw_os_error(number);
            let error = Error::new(Operation::Write, Path::new("/data/log"), &system);
            assert_eq!(*error.kind(), kind);
            assert_eq!(
                error.to_string(),
                format!("cannot write to /data/log: {system}")
            );
        }
    }
}
