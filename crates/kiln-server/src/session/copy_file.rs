//! Files of the server that COPY reads and writes.

use std::path::Path;

use kiln_platform::disk::{self, Directory, File, Kind};
use kiln_sql::{Error, Result, SqlState};

/// Bytes that are read or written at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A file that is read.
pub(super) struct Source {
    file: File,
    path: String,
    offset: u64,
    piece: Vec<u8>,
}

impl Source {
    /// # Errors
    /// 58P01, 42501, 42809 and 58030; 0A000 for a path that does not begin at the root.
    pub fn open(path: &str) -> Result<Source> {
        if !Path::new(path).is_absolute() && !path.is_empty() {
            return Err(Error::unsupported("COPY from a file by a relative path"));
        }
        let opened = place(path).and_then(|(directory, name)| {
            let directory = Directory::open(directory).map_err(Failure::from)?;
            directory.open_file(name).map_err(Failure::from)
        });
        Ok(Source {
            file: opened.map_err(|failure| failure.of_reading(path))?,
            path: path.to_owned(),
            offset: 0,
            piece: vec![0; PIECE_BYTES],
        })
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// 58030.
    pub fn read(&mut self) -> Result<Option<&[u8]>> {
        let read = self.file.read_at(self.offset, &mut self.piece);
        let count = read.map_err(|error| io_error("read from", &self.path, &error))?;
        self.offset += count as u64;
        Ok((count > 0).then(|| &self.piece[..count]))
    }
}

/// A file that is written.
pub(super) struct Target {
    file: File,
    path: String,
    offset: u64,
    piece: Vec<u8>,
}

impl Target {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// 42602 for a path that does not begin at the root; 58P01, 42501, 42809, 53100 and 58030.
    pub fn create(path: &str) -> Result<Target> {
        if !Path::new(path).is_absolute() {
            let message = "relative path not allowed for COPY to file";
            return Err(Error::new(SqlState::INVALID_NAME, message));
        }
        let opened = place(path).and_then(|(directory, name)| {
            let directory = Directory::open(directory).map_err(Failure::from)?;
            match directory.create_file(name) {
                Err(error) if *error.kind() == Kind::Exists => {
                    let file = directory.open_file_to_write(name).map_err(Failure::from)?;
                    file.set_len(0).map_err(Failure::from)?;
                    Ok(file)
                }
                created => created.map_err(Failure::from),
            }
        });
        Ok(Target {
            file: opened.map_err(|failure| failure.of_writing(path))?,
            path: path.to_owned(),
            offset: 0,
            piece: Vec::new(),
        })
    }

    /// What is to be written next.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.piece
    }

    /// Writes what is to be written, if that is much.
    ///
    /// # Errors
    /// 53100 and 58030.
    pub fn write_much(&mut self) -> Result<()> {
        match self.piece.len() < PIECE_BYTES {
            true => Ok(()),
            false => self.write(),
        }
    }

    /// Writes what is to be written.
    ///
    /// # Errors
    /// As [`Target::write_much`].
    pub fn write(&mut self) -> Result<()> {
        let written = self.file.write_at(self.offset, &self.piece);
        written.map_err(|error| io_error("write to", &self.path, &error))?;
        self.offset += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

/// Why a file could not be opened.
enum Failure {
    NotFound,
    Denied,
    IsADirectory,
    NotADirectory,
    Other(disk::Error),
}

impl From<disk::Error> for Failure {
    fn from(error: disk::Error) -> Failure {
        match error.kind() {
            Kind::NotFound => Failure::NotFound,
            Kind::Denied => Failure::Denied,
            Kind::IsADirectory => Failure::IsADirectory,
            Kind::NotADirectory => Failure::NotADirectory,
            _ => Failure::Other(error),
        }
    }
}

impl Failure {
    fn of_reading(self, path: &str) -> Error {
        match self {
            Failure::IsADirectory => {
                let message = format!("\"{path}\" is a directory");
                Error::new(SqlState::WRONG_OBJECT_TYPE, message)
            }
            failure => failure.of_opening(path, ("reading", "FROM", "read")),
        }
    }

    fn of_writing(self, path: &str) -> Error {
        self.of_opening(path, ("writing", "TO", "write"))
    }

    fn of_opening(self, path: &str, (doing, direction, does): (&str, &str, &str)) -> Error {
        let (state, why) = match self {
            Failure::NotFound => (SqlState::UNDEFINED_FILE, "No such file or directory"),
            Failure::Denied => (SqlState::INSUFFICIENT_PRIVILEGE, "Permission denied"),
            Failure::IsADirectory => (SqlState::WRONG_OBJECT_TYPE, "Is a directory"),
            Failure::NotADirectory => (SqlState::WRONG_OBJECT_TYPE, "Not a directory"),
            Failure::Other(error) => return io_error("open", path, &error),
        };
        let message = format!("could not open file \"{path}\" for {doing}: {why}");
        let error = Error::new(state, message);
        if !matches!(
            state,
            SqlState::UNDEFINED_FILE | SqlState::INSUFFICIENT_PRIVILEGE
        ) {
            return error;
        }
        error.with_hint(format!(
            "COPY {direction} instructs the PostgreSQL server process to {does} a file. You may want a client-side facility such as \
             psql's \\copy."
        ))
    }
}

/// The directory of a file, and the file's name there.
fn place(path: &str) -> std::result::Result<(&Path, &str), Failure> {
    if path.is_empty() {
        return Err(Failure::NotFound);
    }
    let path = Path::new(path);
    match (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    ) {
        (Some(directory), Some(name)) => Ok((directory, name)),
        _ => Err(Failure::IsADirectory),
    }
}

fn io_error(what: &str, path: &str, error: &disk::Error) -> Error {
    let state = match error.kind() {
        Kind::Full => SqlState::DISK_FULL,
        _ => SqlState::IO_ERROR,
    };
    Error::new(state, format!("could not {what} file \"{path}\": {error}"))
}
