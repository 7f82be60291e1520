//! The data directory: where the files of a database are.
//!
//! | entry | holds |
//! |---|---|
//! | `LOCK` | the lock of the process that has the database open, and what that process says of itself and of the database |
//! | `MANIFEST` | the [`Manifest`]: what of the directory belongs to the database |
//! | `MANIFEST.new` | a manifest that is being written, or was when the process ended |
//! | `log/` | the segments of the log |
//! | `checkpoints/` | a directory for each checkpoint, named by its number in 20 digits |
//! | `kiln.toml` | settings of a server, where its user has put some: no part of the database |
//!
//! # Changes
//!
//! A manifest is written to `MANIFEST.new`, which is synced and then renamed to `MANIFEST`; then
//! the directory is synced. So a crash leaves the old manifest or the new one, whole. What a
//! manifest names is durable before the manifest is written, and what only the old one names is
//! removed after the new one is durable.
//!
//! A new data directory gets its manifest last. So one without a manifest is refused unless all
//! that is in it is what an interrupted creation can have left: then the creation begins anew.

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
/// What a server goes by; of the user, and no part of the database.
const SETTINGS: &str = "kiln.toml";

/// A data directory that this process has open, and no other one.
#[derive(Debug)]
pub struct DataDirectory {
    root: Directory,
    log: Directory,
    checkpoints: Directory,
    manifest: Mutex<Arc<Manifest>>,
    warnings: Vec<String>,
    /// Given back after all else is closed.
    lock: Lock,
}

impl DataDirectory {
    /// Opens the data directory at `path`, for the life of the value. Makes a new one, durably,
    /// where nothing is or an empty directory; makes the directories above it as well. `holder` is
    /// a line about this process, for others that want the directory.
    ///
    /// # Errors
    /// 55006 when another process has it open; 55000 for a directory of something else, which stays
    /// as it is; 42809 when a file is there; 42501 where this process may not read and write; XX001
    /// when what is there is damaged; 0A000 when a newer Kiln wrote it; else the disk's. Each names
    /// the file.
    pub fn open(path: &Path, holder: &str) -> Result<DataDirectory> {
        let root = Directory::create(path).map_err(|error| refused(&error))?;
        // Before the lock's file is made: a directory of something else stays as it is.
        find(&root)?;
        let lock = root.lock(LOCK, holder).map_err(|error| refused(&error))?;
        // Another process may have made it until it gave back the lock.
        let parts = match find(&root)? {
            Found::Database => open_kept(&root)?,
            Found::Nothing => create(&root)?,
        };
        DataDirectory::of(root, parts, lock)
    }

    /// As [`DataDirectory::open`], but makes nothing.
    ///
    /// # Errors
    /// Those of [`DataDirectory::open`]; 58P01 when no database is there.
    pub fn open_existing(path: &Path, holder: &str) -> Result<DataDirectory> {
        let root = existing(path)?;
        let lock = root.lock(LOCK, holder).map_err(|error| refused(&error))?;
        let parts = open_kept(&root)?;
        DataDirectory::of(root, parts, lock)
    }

    /// Begins a data directory where nothing is or an empty directory; [`NewDataDirectory::finish`]
    /// makes it one.
    ///
    /// # Errors
    /// Those of [`check_is_free`]; 55006.
    pub(crate) fn begin(path: &Path, holder: &str) -> Result<NewDataDirectory> {
        let root = create_empty(path)?;
        let failed = |error: disk::Error| refused(&error);
        Ok(NewDataDirectory {
            lock: root.lock(LOCK, holder).map_err(failed)?,
            log: root.create_subdirectory(LOG).map_err(failed)?,
            checkpoints: root.create_subdirectory(CHECKPOINTS).map_err(failed)?,
            root,
        })
    }

    fn of(root: Directory, (manifest, log, checkpoints): Parts, lock: Lock) -> Result<Self> {
        let mut warnings = Vec::new();
        if root.is_volatile().map_err(|error| disk_error(&error))? {
            let path = root.path().display();
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
            lock,
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

    /// Leaves a remark about the database for [`crate::inspect::status`], in place of an earlier
    /// one: until the directory is opened again.
    ///
    /// # Errors
    /// The disk's.
    pub fn remark(&self, remark: &str) -> Result<()> {
        let remarked = self.lock.remark(remark);
        remarked.map_err(|error| disk_error(&error))
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

    /// Replaces the manifest; the new one is durable when this returns. What it names has to be
    /// durable before.
    ///
    /// # Errors
    /// XX000 for a manifest of another database, or one that cannot be; the disk's. Then the old
    /// manifest or the new one is in effect: what either of them names has to stay.
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

    /// Removes what the manifest does not name: directories of checkpoints with the files in them,
    /// and a manifest that was not published. What has another name than those that Kiln gives
    /// stays. No checkpoint may be written meanwhile.
    ///
    /// # Errors
    /// The disk's; that of a [`DataDirectory::publish`] that failed, as what it replaced may still
    /// be in effect.
    pub fn remove_leftovers(&self) -> Result<()> {
        let current = lock(&self.manifest);
        let remove = || {
            // First: the root refuses this, and all else, once a publication has left open which
            // manifest is in effect.
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

/// A data directory that is being made, and is none before it is finished.
pub(crate) struct NewDataDirectory {
    root: Directory,
    pub log: Directory,
    pub checkpoints: Directory,
    lock: Lock,
}

impl NewDataDirectory {
    /// Makes it the data directory that the manifest describes; all that it names is durable.
    ///
    /// # Errors
    /// XX000 for a manifest that cannot be; the disk's.
    pub fn finish(self, manifest: Manifest) -> Result<DataDirectory> {
        replace(&self.root, &manifest)?;
        let parts = (manifest, self.log, self.checkpoints);
        DataDirectory::of(self.root, parts, self.lock)
    }
}

/// Makes a directory where nothing is, or takes an empty one.
///
/// # Errors
/// As [`check_is_free`].
pub(crate) fn create_empty(path: &Path) -> Result<Directory> {
    check_is_free(path)?;
    Directory::create(path).map_err(|error| refused(&error))
}

/// Checks that nothing is at `path`, or an empty directory.
///
/// # Errors
/// 55000 for a directory that is not empty, 42809 for a file; the disk's.
pub fn check_is_free(path: &Path) -> Result<()> {
    match Directory::open(path).and_then(|root| root.list()) {
        Err(error) if *error.kind() == Kind::NotFound => Ok(()),
        Err(error) => Err(refused(&error)),
        Ok(entries) => match entries.first() {
            None => Ok(()),
            Some(first) => Err(not_empty(path, &first.name)),
        },
    }
}

fn not_empty(path: &Path, first: &str) -> Error {
    let message = format!("{} is not empty: it has {first}", path.display());
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .with_hint("Name an empty directory, or a path where nothing is.")
}

/// Opens the root of a data directory that is there.
fn existing(path: &Path) -> Result<Directory> {
    let root = Directory::open(path).map_err(|error| refused(&error))?;
    match find(&root)? {
        Found::Database => Ok(root),
        Found::Nothing => {
            let message = format!("there is no database in {}", path.display());
            Err(Error::new(SqlState::UNDEFINED_FILE, message))
        }
    }
}

/// A data directory as it is, which another process may have open.
pub(crate) struct Glance {
    pub manifest: Manifest,
    pub log: Directory,
    /// What the process says of itself that has it open.
    pub holder: Option<String>,
    /// What that process has remarked, or the last one.
    pub remark: Option<String>,
}

/// Looks at a data directory without taking its lock, and changes nothing.
///
/// # Errors
/// As [`DataDirectory::open_existing`], but for the lock.
pub(crate) fn glance(path: &Path) -> Result<Glance> {
    let root = existing(path)?;
    let holder = root.lock_holder(LOCK).map_err(|error| refused(&error))?;
    let remark = root.lock_remark(LOCK).map_err(|error| refused(&error))?;
    let (manifest, _) = read_manifest(&root, |name| root.open_file(name))?;
    let log = part(&root, LOG)?;
    Ok(Glance {
        manifest,
        log,
        holder,
        remark,
    })
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
            false => [LOCK, MANIFEST_NEW, SETTINGS].contains(&name),
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
    let (manifest, file) = read_manifest(root, |name| root.open_file_to_write(name))?;
    // The process before may have been killed between the rename and the sync, and what follows
    // rests on what was read.
    let synced = file.sync().and_then(|()| root.sync());
    synced.map_err(|error| disk_error(&error))?;
    Ok((manifest, part(root, LOG)?, part(root, CHECKPOINTS)?))
}

fn read_manifest(
    root: &Directory,
    open: impl FnOnce(&str) -> disk::Result<File>,
) -> Result<(Manifest, File)> {
    let file = open(MANIFEST).map_err(|error| match error.kind() {
        Kind::IsADirectory => {
            let path = root.path().join(MANIFEST);
            damaged(format!("{} is a directory", path.display())).with_hint(RESTORE)
        }
        _ => refused(&error),
    })?;
    let manifest = Manifest::read(&read_all(&file)?, file.path())?;
    Ok((manifest, file))
}

/// Opens a directory in a data directory.
fn part(root: &Directory, name: &str) -> Result<Directory> {
    root.subdirectory(name).map_err(|error| match error.kind() {
        Kind::NotFound | Kind::NotADirectory => {
            let path = root.path().display();
            damaged(format!("{path} has a {MANIFEST} but no directory {name}")).with_hint(RESTORE)
        }
        _ => refused(&error),
    })
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
