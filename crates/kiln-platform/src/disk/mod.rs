//! Files and directories for data that must survive: the database's log, checkpoints and manifests.
//!
//! [`mod@crate::file`] reads and writes small text files by their path. This module is for a caller
//! that has to know what is on the medium and what is not, and in which order it got there:
//!
//! - [`Directory`]: entries, their durability, and the lock on a data directory;
//! - [`File`]: reading, writing and syncing at offsets, all of a request or an error;
//! - [`LogFile`]: writes that are durable when they return, one system call each;
//! - [`AlignedBuffer`]: memory that such writes may come from;
//! - [`Error`]: what failed, where, and what the database has to do about it.
//!
//! Offsets and lengths are in bytes. All operations block the calling thread.
//!
//! # What is durable
//!
//! | after | a power loss leaves |
//! |---|---|
//! | [`File::write_at`], [`File::set_len`] | anything: each sector old, new, or zero; the length old or new |
//! | [`File::sync`] | the file's data and length; *not* its entry in its directory |
//! | [`LogFile::write_durably`] | the data that was written, and the length |
//! | [`Directory::create_file`], [`Directory::rename`], removals | the entry as before or as after; a rename is not torn |
//! | [`Directory::sync`] | the directory's entries; *not* the data of the files they name |
//! | [`Directory::create`] | the directory and all its parents |
//!
//! So a file is replaced in four steps: write another one, sync it, rename it, sync the directory.
//! Applications that leave one out lose data on some file systems and not on others (Pillai,
//! Chidambaram, Alagappan, Al-Kiswany, Arpaci-Dusseau, Arpaci-Dusseau: *All File Systems Are Not
//! Created Equal: On the Complexity of Crafting Crash-Consistent Applications*, OSDI 2014). A
//! simulated disk (`sim::disk::Disk`) shows such a fault in a test.
//!
//! A process that is killed leaves the cache whole. What the next process reads may therefore not
//! be on the medium: it syncs what it has read before it promises anything that rests on it.
//!
//! # Errors
//!
//! A failed sync leaves no way to find out what is durable: Linux marks pages clean that it could
//! not write, so that a second sync succeeds without having written them, and some file systems put
//! the old content back into the cache (PostgreSQL's "fsyncgate", 2018; Rebello, Patel, Alagappan,
//! Arpaci-Dusseau, Arpaci-Dusseau: *Can Applications Recover from fsync Failures?*, USENIX ATC
//! 2020). So nothing here repeats a sync, and a [`File`] or a [`Directory`] whose change or sync
//! has failed is *poisoned*: it refuses every further change and sync with that same error. The
//! poison belongs to the handle. A caller that opens the file again has to restore what it needs
//! from what it reads, and must not take an earlier write for durable because a sync of the new
//! handle succeeds.
//!
//! An interrupted system call (EINTR) is repeated, unless it was a sync; a short read or write is
//! continued.
//!
//! # In a simulated run
//!
//! In a run that was given a `sim::disk::Disk`, all operations go to that disk. In any other run
//! they fail, so that no run depends on files of the machine. Outside of runs they are real in
//! every build.

mod buffer;
mod directory;
mod error;
mod file;
mod log_file;
mod poison;
mod temporary;

pub use buffer::{AlignedBuffer, BLOCK_BYTES};
pub use directory::{Directory, Entry, Lock};
pub use error::{Error, Kind, Operation, Result};
pub use file::{Allocation, File};
pub use log_file::{DurableBy, LogFile};
pub use temporary::TemporaryDirectory;
