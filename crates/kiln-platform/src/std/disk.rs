//! Files and directories: one system call for each operation, and its error as it is. What is
//! repeated, continued or refused is decided in [`crate::disk`].

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::disk::Entry;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// It is made, to be read and written, and is not there yet.
    CreateNew,
    /// It is made if it is not there, to be read and written.
    CreateOrWrite,
    /// It is there, to be read.
    Read,
    /// It is there, to be read and written.
    Write,
    /// It is there, to be written past the cache, durably.
    WriteDirect,
}

/// What direct I/O has to be a multiple of, in bytes; 0 when the file does not support it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alignment {
    /// Addresses.
    pub(crate) memory: usize,
    /// Offsets and lengths.
    pub(crate) offset: usize,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct RawFile(fs::File);

/// An open directory.
#[derive(Debug)]
pub(crate) struct RawDirectory {
    /// For what has to be done to the directory and not to its entries.
    file: fs::File,
    path: PathBuf,
}

/// The number of this process.
pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// Makes the directory at `path`, whose parent is there. Only this user may look into a private
/// one.
pub(crate) fn make_directory(path: &Path, is_private: bool) -> io::Result<()> {
    let mode = if is_private { 0o700 } else { 0o777 };
    fs::DirBuilder::new().mode(mode).create(path)
}

impl RawDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<RawDirectory> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECTORY);
        Ok(RawDirectory {
            file: options.open(path)?,
            path: path.to_owned(),
        })
    }

    pub(crate) fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            entries.push(Entry {
                name: entry.file_name().to_string_lossy().into_owned(),
                is_directory: metadata.is_dir(),
                bytes: if metadata.is_dir() { 0 } else { metadata.len() },
            });
        }
        Ok(entries)
    }

    pub(crate) fn open_file(&self, name: &str, how: Open) -> io::Result<RawFile> {
        let mut options = OpenOptions::new();
        options
            .read(how != Open::WriteDirect)
            .write(how != Open::Read)
            .mode(0o600);
        match how {
            Open::CreateNew => _ = options.create_new(true),
            Open::CreateOrWrite => _ = options.create(true).truncate(false),
            Open::WriteDirect => _ = options.custom_flags(direct_flags()?),
            // Opening a pipe does not wait for its other end.
            Open::Read | Open::Write => _ = options.custom_flags(libc::O_NONBLOCK),
        }
        let file = options.open(self.path.join(name))?;
        if file.metadata()?.file_type().is_fifo() {
            return Err(io::Error::from_raw_os_error(libc::ESPIPE));
        }
        // A directory can be opened to be read, and the first read fails.
        if how == Open::Read && file.metadata()?.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        Ok(RawFile(file))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        outcome(unsafe { libc::fsync(descriptor(&self.file)) })
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub(crate) fn remove_directory(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.path.join(name))
    }

    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: the descriptor is open, and there is room for what the call fills in.
        let status = unsafe { libc::fstatvfs(descriptor(&self.file), found.as_mut_ptr()) };
        outcome(status)?;
        // SAFETY: the call succeeded, and the type is of integers, of which any bytes are some.
        let found = unsafe { found.assume_init() };
        #[allow(clippy::unnecessary_cast, reason = "the width differs between systems")]
        let (blocks, bytes) = (found.f_bavail as u64, found.f_frsize as u64);
        Ok(blocks.saturating_mul(bytes))
    }

    /// Whether the file system is one in memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_volatile(&self) -> io::Result<bool> {
        /// `ramfs`, which `libc` does not name.
        const RAMFS_MAGIC: i64 = 0x8584_58f6;
        let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the descriptor is open, and there is room for what the call fills in.
        let status = unsafe { libc::fstatfs(descriptor(&self.file), found.as_mut_ptr()) };
        outcome(status)?;
        // SAFETY: the call succeeded, and the type is of integers, of which any bytes are some.
        let kind = unsafe { found.assume_init() }.f_type;
        #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
        let (kind, tmpfs) = (kind as i64, libc::TMPFS_MAGIC as i64);
        Ok(kind == tmpfs || kind == RAMFS_MAGIC)
    }

    /// Whether the file system is one in memory; not known here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_volatile(&self) -> io::Result<bool> {
        Ok(false)
    }
}

impl RawFile {
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    pub(crate) fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    pub(crate) fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    pub(crate) fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    /// Makes data and length durable. The library's own function would repeat an interrupted call.
    #[cfg(target_os = "linux")]
    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        outcome(unsafe { libc::fdatasync(descriptor(&self.0)) })
    }

    /// Makes data and length durable: here `fsync` alone would leave them in the device's cache.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Reserves room for `bytes` bytes from `offset` on, without changing the length. Nothing where
    /// the file system cannot: then writing the zeros does it.
    pub(crate) fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let too_large = |_| io::Error::from_raw_os_error(libc::EFBIG);
            let offset = libc::off_t::try_from(offset).map_err(too_large)?;
            let bytes = libc::off_t::try_from(bytes).map_err(too_large)?;
            let mode = libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: the descriptor is open.
            let status = unsafe { libc::fallocate(descriptor(&self.0), mode, offset, bytes) };
            outcome(status).or_else(|error| match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
                _ => Err(error),
            })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (offset, bytes);
            Ok(())
        }
    }

    /// Takes the exclusive lock of the file; says whether it was free.
    pub(crate) fn lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// What direct I/O on the file has to be a multiple of; none when the system does not say.
    #[cfg(target_os = "linux")]
    pub(crate) fn direct_alignment(&self) -> Option<Alignment> {
        let mut found = std::mem::MaybeUninit::<libc::statx>::zeroed();
        // SAFETY: the descriptor is open, the path is empty and so names it, and there is room for
        // what the call fills in.
        let status = unsafe {
            libc::statx(
                descriptor(&self.0),
                c"".as_ptr(),
                libc::AT_EMPTY_PATH,
                libc::STATX_DIOALIGN,
                found.as_mut_ptr(),
            )
        };
        if status != 0 {
            return None;
        }
        // SAFETY: the call succeeded, and the type is of integers, of which any bytes are some.
        let found = unsafe { found.assume_init() };
        let known = found.stx_mask & libc::STATX_DIOALIGN != 0;
        known.then_some(Alignment {
            memory: found.stx_dio_mem_align as usize,
            offset: found.stx_dio_offset_align as usize,
        })
    }

    /// What direct I/O on the file has to be a multiple of; not known here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn direct_alignment(&self) -> Option<Alignment> {
        None
    }

    /// From now on writes go through the cache.
    pub(crate) fn give_up_direct(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        // SAFETY: the descriptor is open; the flags are its own but for one.
        unsafe {
            let flags = libc::fcntl(descriptor(&self.0), libc::F_GETFL);
            let changed = flags & !libc::O_DIRECT;
            if flags < 0 || libc::fcntl(descriptor(&self.0), libc::F_SETFL, changed) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// The flags of durable writes past the cache.
fn direct_flags() -> io::Result<libc::c_int> {
    #[cfg(target_os = "linux")]
    return Ok(libc::O_DIRECT | libc::O_DSYNC);
    #[cfg(not(target_os = "linux"))]
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// What a system call that returns 0 or fails has done.
fn outcome(status: libc::c_int) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn descriptor(file: &fs::File) -> libc::c_int {
    std::os::fd::AsRawFd::as_raw_fd(file)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_gave_up_direct_writes_takes_bytes_that_are_not_aligned() {
        let path = std::env::temp_dir().join(format!("kiln-direct-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the test may write there");
        let directory = RawDirectory::open(&path).expect("it was made");
        directory
            .open_file("file", Open::CreateNew)
            .expect("it is new");
        match directory.open_file("file", Open::WriteDirect) {
            Ok(file) => {
                let direct = file.write_some(1, b"abc");
                file.give_up_direct().expect("the flag can be changed");
                assert_eq!(file.write_some(1, b"abc").expect("there is room"), 3);
                match direct {
                    Ok(_) => println!("the file system takes direct writes of any alignment"),
                    Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
                }
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
        }
        fs::remove_dir_all(&path).expect("it is there");
    }
}
