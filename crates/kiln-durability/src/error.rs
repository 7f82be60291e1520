//! What a database says when its files fail it.

use std::fmt::Display;

use kiln_platform::disk;
use kiln_storage::error::{Error, SqlState};

/// The error of a database whose disk has failed it: 53100 where there is no room, 55006 for a lock
/// that another process holds, 58P01 for what is not there, 42501 for what is not permitted, 42809
/// for a file in a directory's place and the reverse, else 58030.
#[cold]
pub fn disk_error(error: &disk::Error) -> Error {
    let state = match error.kind() {
        disk::Kind::Full => SqlState::DISK_FULL,
        disk::Kind::Locked { .. } => SqlState::OBJECT_IN_USE,
        disk::Kind::NotFound => SqlState::UNDEFINED_FILE,
        disk::Kind::Denied => SqlState::INSUFFICIENT_PRIVILEGE,
        disk::Kind::NotADirectory | disk::Kind::IsADirectory => SqlState::WRONG_OBJECT_TYPE,
        _ => SqlState::IO_ERROR,
    };
    Error::new(state, error.to_string())
}

/// XX001: the files are not what was written.
#[cold]
pub fn damaged(message: impl Into<String>) -> Error {
    Error::new(SqlState::DATA_CORRUPTED, message.into())
}

/// The error for what was read in `place` and cannot be put back: the place is damaged. What the
/// machine refuses, such as memory, and errors of Kiln's own are no damage.
#[cold]
pub fn damaged_in(place: impl Display, error: Error) -> Error {
    let is_of_machine = ["53", "57", "58"].contains(&error.state().class());
    if is_of_machine || error.state() == SqlState::INTERNAL_ERROR {
        return error;
    }
    damaged(format!("{place} is damaged: {}", error.message())).with_hint(HINT)
}

const HINT: &str = "Keep the files as they are, and restore the database from a backup.";

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use std::path::Path;

    use kiln_platform::disk::Directory;

    use super::*;

    #[test]
    fn errors_name_the_file_and_what_failed() {
        let path = Path::new("/nowhere/at/all");
        let error = disk_error(&Directory::open(path).expect_err("it is not there"));
        assert_eq!(error.state(), SqlState::UNDEFINED_FILE);
        assert!(error.message().contains("/nowhere/at/all"), "{error}");
    }
}
