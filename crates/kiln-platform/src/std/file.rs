//! The few file operations the product needs.

use std::io;
use std::path::{Path, PathBuf};

/// The whole file as text.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map_err(|error| with_path(error, path))
}

/// Writes `content` to `path`, replacing what was there.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::write(path, content).map_err(|error| with_path(error, path))
}

/// Opens a file, to be read from its start.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn open(path: &Path) -> io::Result<impl io::Read + use<>> {
    let opened = std::fs::File::open(path).map_err(|error| with_path(error, path))?;
    Ok(io::BufReader::new(opened))
}

/// Opens a file to be written, replacing what was there. After the last write the caller flushes
/// it.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn create(path: &Path) -> io::Result<impl io::Write + use<>> {
    let created = std::fs::File::create(path).map_err(|error| with_path(error, path))?;
    Ok(io::BufWriter::new(created))
}

/// Makes sure that `path` can be written later, without changing what it holds; a file that is not
/// there is made, empty.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn ensure_writable(path: &Path) -> io::Result<()> {
    let opened = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    opened.map(|_| ()).map_err(|error| with_path(error, path))
}

/// What `directory` holds, files and directories, sorted by path.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|error| with_path(error, directory))? {
        paths.push(entry.map_err(|error| with_path(error, directory))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Removes the directory and all in it; that it is not there is no error.
///
/// # Errors
/// The system's error, with the path in its message.
pub fn remove_directory(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(|error| with_path(error, directory)),
    }
}

fn with_path(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
