//! The data directory: where the files of a database are.
//!
//! | entry | holds |
//! |---|---|
//! | `LOCK` | the lock of the process that has the database open, and what that process says of itself |
//! | `MANIFEST` | the [`Manifest`]: what of the directory belongs to the database |
//! | `MANIFEST.new` | a manifest that is being written, or was when the process ended |
//! | `log/` | the segments of the log |
//! | `checkpoints/` | a directory for each checkpoint, named by its number in 20 digits |
//!
//! # Changes
//!
//! A manifest is written to `MANIFEST.new`, which is synced and then renamed to `MANIFEST`; then the directory is synced. So a
//! crash leaves the old manifest or the new one, whole. What a manifest names is durable before the manifest is written,
//! and what only the old one names is removed after the new one is durable.
//!
//! A new data directory gets its manifest last. So one without a manifest is refused unless all that is in it is what an
//! interrupted creation can have left: then the creation begins anew.

use std::path::Path;

use kiln_platform::disk::{self, Directory, Entry, File, Kind, Lock};
use kiln_platform::random::entropy;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time::wall_clock_us;
use kiln_storage::error::{Error, Result, SqlState};

use crate::format::DatabaseId;
use crate::manifest::{FileName, MANIFEST_BYTES_MAX, Manifest, RESTORE};
use crate::{damaged, disk_error};

const LOCK: &str = "LOCK";
const MANIFEST: &str = "MANIFEST";
const MANIFEST_NEW: &str = "MANIFEST.new";
const LOG: &str = "log";
const CHECKPOINTS: &str = "checkpoints";

/// A data directory that this process has open, and no other one.
#[derive(Debug)]
pub struct DataDirectory {
    root: Directory,
    log: Directory,
    checkpoints: Directory,
    manifest: Mutex<Arc<Manifest>>,
    warnings: Vec<String>,
    /// Given back after all else is closed.
    _lock: Lock,
}

impl DataDirectory {
    /// Opens the data directory at `path`, for the life of the value. Makes a new one, durably, where nothing is or an empty
    /// directory; makes the directories above it as well. `holder` is a line about this process, for others that want
    /// the directory.
    ///
    /// # Errors
    /// 55006 when another process has it open; 55000 for a directory of something else, which stays as it is; 42809 when a
    /// file is there; 42501 where this process may not read and write; XX001 when what is there is damaged; 0A000 when
    /// a newer Kiln wrote it; else the disk's. Each names the file.
    pub fn open(path: &Path, holder: &str) -> Result<DataDirectory> {
        let root = Directory::create(path).map_err(|error| refused(&error))?;
        // Before the lock's file is made: a directory of something else stays as it is.
        find(&root)?;
        let lock = root.lock(LOCK, holder).map_err(|error| refused(&error))?;
        // Another process may have made it until it gave back the lock.
        let (manifest, log, checkpoints) = match find(&root)? {
            Found::Database => open_kept(&root)?,
            Found::Nothing => create(&root)?,
        };
        let mut warnings = Vec::new();
        if root.is_volatile().map_err(|error| disk_error(&error))? {
            let path = path.display();
            warnings.push(format!(
                "the data directory {path} lies in memory (tmpfs): a power loss or a restart of the \
                 machine loses all of it"
            ));
        }
        Ok(DataDirectory {
            root,
            log,
            checkpoints,
            manifest: Mutex::new(Arc::new(manifest)),
            warnings,
            _lock: lock,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// What the user should know of it, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The directory of the log's segments.
    pub fn log(&self) -> &Directory {
        &self.log
    }

    /// The directory of the checkpoints' directories.
    pub fn checkpoints(&self) -> &Directory {
        &self.checkpoints
    }

    /// The manifest that was published last.
    pub fn manifest(&self) -> Arc<Manifest> {
        lock(&self.manifest).clone()
    }

    /// Replaces the manifest; the new one is durable when this returns. What it names has to be durable before.
    ///
    /// # Errors
    /// XX000 for a manifest of another database, or one that cannot be; the disk's. Then the old manifest or the new one is
    /// in effect: what either of them names has to stay.
    pub fn publish(&self, manifest: Manifest) -> Result<()> {
        let mut current = lock(&self.manifest);
        let identity = |of: &Manifest| (of.database, of.created_us);
        if identity(&current) != identity(&manifest) {
            return Err(Error::internal(format!(
                "{} belongs to database {}, and not to {}",
                self.path().display(),
                current.database,
                manifest.database
            )));
        }
        replace(&self.root, &manifest)?;
        *current = Arc::new(manifest);
        Ok(())
    }

    /// Removes what the manifest does not name: directories of checkpoints with the files in them, and a manifest that was not
    /// published. What has another name than those that Kiln gives stays. No checkpoint may be written meanwhile.
    ///
    /// # Errors
    /// The disk's; that of a [`DataDirectory::publish`] that failed, as what it replaced may still be in effect.
    pub fn remove_leftovers(&self) -> Result<()> {
        let current = lock(&self.manifest);
        let remove = || {
            // First: the root refuses this, and all else, once a publication has left open which manifest is in effect.
            remove_if_there(&self.root, MANIFEST_NEW)?;
            for Entry { name, .. } in self.checkpoints.list()? {
                let number = number_of_checkpoint(&name);
                let mut named = current.checkpoints.iter();
                if number.is_some_and(|it| named.all(|checkpoint| checkpoint.number != it)) {
                    remove_checkpoint(&self.checkpoints, &name)?;
                }
            }
            self.checkpoints.sync()
        };
        remove().map_err(|error: disk::Error| disk_error(&error))
    }
}

/// The name of a checkpoint's directory.
pub(crate) fn name_of_checkpoint(number: u64) -> String {
    format!("{number:020}")
}

fn number_of_checkpoint(name: &str) -> Option<u64> {
    let number = name.parse().ok()?;
    (name_of_checkpoint(number) == name).then_some(number)
}

fn remove_if_there(directory: &Directory, name: &str) -> disk::Result<()> {
    match directory.remove_file(name) {
        Err(error) if *error.kind() != Kind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a checkpoint's files, and its directory if nothing else is in it.
fn remove_checkpoint(checkpoints: &Directory, name: &str) -> disk::Result<()> {
    let directory = match checkpoints.subdirectory(name) {
        Err(error) if *error.kind() == Kind::NotADirectory => return Ok(()),
        other => other?,
    };
    let mut has_others = false;
    for entry in directory.list()? {
        match entry.name.parse::<FileName>() {
            Ok(_) if !entry.is_directory => directory.remove_file(&entry.name)?,
            _ => has_others = true,
        }
    }
    drop(directory);
    match has_others {
        true => Ok(()),
        false => checkpoints.remove_directory(name),
    }
}

/// What is in a directory that is to be opened.
enum Found {
    /// A database.
    Database,
    /// Nothing, or what is left of a creation that was interrupted.
    Nothing,
}

/// Says what is in a directory.
///
/// # Errors
/// When something else is in it.
fn find(root: &Directory) -> Result<Found> {
    let path = root.path().display();
    let entries = root.list().map_err(|error| refused(&error))?;
    if entries.iter().any(|entry| entry.name == MANIFEST) {
        return Ok(Found::Database);
    }
    for entry in &entries {
        let name = entry.name.as_str();
        let is_ours = match entry.is_directory {
            true => [LOG, CHECKPOINTS].contains(&name),
            false => [LOCK, MANIFEST_NEW].contains(&name),
        };
        if !is_ours {
            let hint = match name {
                "lost+found" => {
                    "The directory seems to be a mount point. Name a directory below it."
                }
                _ => "Name an empty directory, or a path where nothing is.",
            };
            let message =
                format!("{path} is not empty and no data directory of Kiln: it has {name}");
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(Error::new(state, message).with_hint(hint));
        }
        if entry.is_directory {
            let inner = root.subdirectory(name).and_then(|inner| inner.list());
            if let Some(first) = inner.map_err(|error| refused(&error))?.first() {
                let first = &first.name;
                let fault = format!("{path} has {name}/{first} but no {MANIFEST}");
                return Err(damaged(fault).with_hint(RESTORE));
            }
        }
    }
    Ok(Found::Nothing)
}

type Parts = (Manifest, Directory, Directory);

fn open_kept(root: &Directory) -> Result<Parts> {
    let failed = |error: disk::Error| refused(&error);
    let file = root.open_file_to_write(MANIFEST).map_err(failed)?;
    let manifest = Manifest::read(&read_all(&file)?, file.path())?;
    // The process before may have been killed between the rename and the sync, and what follows rests on what was read.
    let synced = file.sync().and_then(|()| root.sync());
    synced.map_err(|error| disk_error(&error))?;
    let part = |name| {
        root.subdirectory(name).map_err(|error| match error.kind() {
            Kind::NotFound | Kind::NotADirectory => {
                let path = root.path().display();
                damaged(format!("{path} has a {MANIFEST} but no directory {name}"))
                    .with_hint(RESTORE)
            }
            _ => refused(&error),
        })
    };
    Ok((manifest, part(LOG)?, part(CHECKPOINTS)?))
}

fn read_all(file: &File) -> Result<Vec<u8>> {
    let failed = |error: disk::Error| disk_error(&error);
    let length = file.len().map_err(failed)?;
    if length > MANIFEST_BYTES_MAX {
        let path = file.path().display();
        let fault = format!("{path} is damaged: no manifest has {length} bytes");
        return Err(damaged(fault).with_hint(RESTORE));
    }
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(0, &mut bytes).map_err(failed)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn create(root: &Directory) -> Result<Parts> {
    let failed = |error: disk::Error| refused(&error);
    let log = root.create_subdirectory(LOG).map_err(failed)?;
    let checkpoints = root.create_subdirectory(CHECKPOINTS).map_err(failed)?;
    let id = entropy().map_err(|error| {
        let message = format!("the system gives no random bytes for a database's id: {error}");
        Error::new(SqlState::IO_ERROR, message)
    })?;
    let manifest = Manifest::new(DatabaseId(id), wall_clock_us());
    replace(root, &manifest)?;
    Ok((manifest, log, checkpoints))
}

/// Puts the manifest in the place of the present one, durably.
fn replace(root: &Directory, manifest: &Manifest) -> Result<()> {
    let bytes = manifest.to_bytes()?;
    let replace = || {
        remove_if_there(root, MANIFEST_NEW)?;
        let file = root.create_file(MANIFEST_NEW)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        root.rename(MANIFEST_NEW, MANIFEST)?;
        root.sync()
    };
    replace().map_err(|error: disk::Error| refused(&error))
}

/// The disk's error, with what its cause suggests.
pub(crate) fn refused(error: &disk::Error) -> Error {
    let hint = match error.kind() {
        Kind::Locked { .. } => "End that process, or use another data directory.",
        Kind::Denied => "Run Kiln as the owner of the data directory, or make this user its owner.",
        Kind::NotADirectory => "Name a directory, or a path where nothing is.",
        Kind::Full => "Make room on the file system of the data directory.",
        _ => return disk_error(error),
    };
    disk_error(error).with_hint(hint)
}
