//! Files and directories: in a run, those of its simulated disk; else the real ones.
//!
//! The control door of the disk is [`Disk`]; `docs/simulation.md` says what is simulated.
//!
//! | module | holds |
//! |---|---|
//! | [`door`] | the disk as a test holds it: options, power, content from outside |
//! | [`operation`] | the life of an operation: number, crash, fault, effect, time, end |
//! | [`state`] | all files and directories, and what each operation does to them |
//! | [`node`] | one file or directory: cache, medium, and the changes between |
//! | [`content`] | the bytes of a file |
//! | [`crash`] | what a crash leaves of the changes |
//! | [`faults`] | errors |
//! | [`damage`] | content that changes by itself |
//! | [`time`] | what operations take |

mod content;
mod crash;
mod damage;
mod door;
mod faults;
mod node;
mod operation;
#[path = "../../std/disk.rs"]
mod real;
mod state;
mod time;

/// What a test reaches as `sim::disk`.
pub mod control {
    pub use super::crash::{Crash, Entries, Survivors, Tail};
    pub use super::damage::Damage;
    pub use super::door::{DirectWrites, Disk, Moment, Options, PowerCut, Still};
    pub use super::faults::Fault;
    pub use super::time::Timing;
}

use std::io;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use real::{Alignment, Open};

pub(super) use door::Disk;

use super::runtime;
use crate::disk::{BLOCK_BYTES, Entry};
use door::DirectWrites;
use node::{Node, NodeNumber};
use operation::{After, Asked, Plan, Request, digest, operate};
use state::{ROOT, State, error};

/// An open file.
#[derive(Debug)]
pub(crate) struct RawFile(Raw<real::RawFile>);

/// An open directory.
#[derive(Debug)]
pub(crate) struct RawDirectory(Raw<real::RawDirectory>);

#[derive(Debug)]
enum Raw<T> {
    Real(T),
    Simulated(Handle),
}

/// An open file or directory of a simulated disk.
#[derive(Debug)]
struct Handle {
    disk: Disk,
    node: NodeNumber,
    number: u64,
    /// The run that opened it.
    process: u64,
    can_write: bool,
    /// Whether its writes go past the cache.
    is_direct: AtomicBool,
}

/// The names on the way to a path. All paths start at the root: a run has no working directory.
fn names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => _ = names.pop(),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

/// The disk of the run.
fn disk_of_run() -> io::Result<Disk> {
    let without = "this run has no disk: Config::disk is None";
    runtime::disk().ok_or_else(|| io::Error::other(without))
}

/// A file of the machine in a run, or one of a run outside of it.
fn is_elsewhere() -> io::Error {
    io::Error::other("a run uses the files of its own disk alone, and nothing else uses those")
}

/// The number of this process; in a run always the same.
pub(crate) fn process_id() -> u32 {
    match runtime::is_running() {
        true => 1,
        false => real::process_id(),
    }
}

/// Makes the directory at `path`, whose parent is there. A run has one user, so that nothing is
/// private in it.
pub(crate) fn make_directory(path: &Path, is_private: bool) -> io::Result<()> {
    if !runtime::is_running() {
        return real::make_directory(path, is_private);
    }
    let mut names = names(path);
    let asked = asked(Request::MakeDirectory, ROOT, digest_of(&names));
    operate(&disk_of_run()?, asked, |state, plan| {
        let name = names.pop().ok_or_else(|| error(libc::EEXIST))?;
        let parent = state.find(&names)?;
        state.make(parent, &name, Node::Directory(Default::default()), plan)?;
        Ok(((), After::Nothing))
    })
}

fn asked(request: Request, node: NodeNumber, digest: u64) -> Asked {
    Asked {
        request,
        node,
        bytes: 0,
        digest,
    }
}

fn digest_of<'a>(names: impl IntoIterator<Item = &'a String>) -> u64 {
    let add = |sum, name: &String| digest(sum, name.as_bytes());
    names.into_iter().fold(0, add)
}

/// Opens a node that is there.
fn open(
    disk: &Disk,
    asked: Asked,
    how: Open,
    find: impl FnOnce(&mut State, &Plan) -> io::Result<NodeNumber>,
) -> io::Result<Handle> {
    let (node, number, process) = operate(disk, asked, |state, plan| {
        let node = find(state, plan)?;
        match state.nodes.get_mut(&node) {
            Some(Node::File(file)) => file.handles += 1,
            Some(Node::Directory(directory)) => directory.handles += 1,
            None => return Err(error(libc::ENOENT)),
        }
        state.next_handle += 1;
        let handle = (node, state.next_handle, state.process);
        Ok((handle, After::Nothing))
    })?;
    Ok(Handle {
        disk: disk.clone(),
        node,
        number,
        process,
        can_write: how != Open::Read,
        is_direct: AtomicBool::new(how == Open::WriteDirect),
    })
}

impl Handle {
    /// An operation on the node that changes nothing on the medium when it ends.
    fn operate<T>(
        &self,
        request: Request,
        digest: u64,
        effect: impl FnOnce(&mut State, &Plan) -> io::Result<T>,
    ) -> io::Result<T> {
        let asked = asked(request, self.node, digest);
        self.operate_to_end(asked, |state, plan| {
            Ok((effect(state, plan)?, After::Nothing))
        })
    }

    fn operate_to_end<T>(
        &self,
        asked: Asked,
        effect: impl FnOnce(&mut State, &Plan) -> io::Result<(T, After)>,
    ) -> io::Result<T> {
        if !runtime::is_running() {
            return Err(is_elsewhere());
        }
        let process = self.process;
        operate(&self.disk, asked, |state, plan| match state.process {
            now if now == process => effect(state, plan),
            _ => Err(is_elsewhere()),
        })
    }

    fn sync(&self, request: Request) -> io::Result<()> {
        self.operate_to_end(asked(request, self.node, 0), |state, plan| {
            Ok(((), state.start_sync(self.node, plan)?))
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.disk.with(|state| {
            if state.process != self.process {
                return;
            }
            let was_last = match state.nodes.get_mut(&self.node) {
                Some(Node::File(file)) => {
                    file.locked_by = file.locked_by.filter(|holder| *holder != self.number);
                    file.handles -= 1;
                    file.handles == 0 && !file.is_linked
                }
                Some(Node::Directory(directory)) => {
                    directory.handles -= 1;
                    directory.handles == 0 && !directory.is_linked
                }
                None => false,
            };
            if was_last {
                state.sweep();
            }
        });
    }
}

impl<T> Raw<T> {
    /// What to ask: the machine's file or directory, or the run's handle.
    fn real(&self) -> io::Result<Result<&T, &Handle>> {
        match self {
            Raw::Real(_) if runtime::is_running() => Err(is_elsewhere()),
            Raw::Real(real) => Ok(Ok(real)),
            Raw::Simulated(handle) => Ok(Err(handle)),
        }
    }
}

impl RawDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<RawDirectory> {
        if !runtime::is_running() {
            return real::RawDirectory::open(path).map(|real| RawDirectory(Raw::Real(real)));
        }
        let names = names(path);
        let asked = asked(Request::OpenDirectory, ROOT, digest_of(&names));
        let handle = open(&disk_of_run()?, asked, Open::Read, |state, _| {
            let node = state.find(&names)?;
            state.directory(node)?;
            Ok(node)
        })?;
        Ok(RawDirectory(Raw::Simulated(handle)))
    }

    pub(crate) fn list(&self) -> io::Result<Vec<Entry>> {
        match self.0.real()? {
            Ok(real) => real.list(),
            Err(handle) => handle.operate(Request::List, 0, |state, _| state.list(handle.node)),
        }
    }

    pub(crate) fn open_file(&self, name: &str, how: Open) -> io::Result<RawFile> {
        let directory = match self.0.real()? {
            Ok(real) => {
                return real
                    .open_file(name, how)
                    .map(|real| RawFile(Raw::Real(real)));
            }
            Err(handle) => handle,
        };
        let request = match how {
            Open::CreateNew | Open::CreateOrWrite => Request::Create,
            Open::Read | Open::Write | Open::WriteDirect => Request::Open,
        };
        let asked = asked(request, directory.node, digest(how as u64, name.as_bytes()));
        let handle = open(&directory.disk, asked, how, |state, plan| {
            let make = |state: &mut State| {
                state.make(directory.node, name, Node::File(Default::default()), plan)
            };
            if how == Open::CreateNew {
                return make(state);
            }
            match state.entry(directory.node, name) {
                Ok(node) => {
                    state.file(node)?;
                    let direct_writes = state.options.direct_writes;
                    match how == Open::WriteDirect
                        && direct_writes == DirectWrites::RefusedAtOpening
                    {
                        true => Err(error(libc::EINVAL)),
                        false => Ok(node),
                    }
                }
                Err(_) if how == Open::CreateOrWrite => make(state),
                Err(missing) => Err(missing),
            }
        })?;
        Ok(RawFile(Raw::Simulated(handle)))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.sync(),
            Err(handle) => handle.sync(Request::SyncDirectory),
        }
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.rename(from, to),
            Err(handle) => {
                let names = digest(digest(0, from.as_bytes()), to.as_bytes());
                handle.operate(Request::Rename, names, |state, _| {
                    state.rename(handle.node, from, to)
                })
            }
        }
    }

    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.remove_file(name),
            Err(handle) => remove(handle, name, false),
        }
    }

    pub(crate) fn remove_directory(&self, name: &str) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.remove_directory(name),
            Err(handle) => remove(handle, name, true),
        }
    }

    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        match self.0.real()? {
            Ok(real) => real.free_bytes(),
            Err(handle) => handle.operate(Request::Inspect, 0, |state, _| Ok(state.free_bytes())),
        }
    }

    /// Whether the file system is one in memory; a simulated one says what it was told to say.
    pub(crate) fn is_volatile(&self) -> io::Result<bool> {
        match self.0.real()? {
            Ok(real) => real.is_volatile(),
            Err(handle) => handle.operate(Request::Inspect, 0, |state, _| {
                Ok(state.options.is_volatile)
            }),
        }
    }
}

fn remove(directory: &Handle, name: &str, wants_directory: bool) -> io::Result<()> {
    let request = match wants_directory {
        true => Request::RemoveDirectory,
        false => Request::RemoveFile,
    };
    directory.operate(request, digest(0, name.as_bytes()), |state, _| {
        state.remove(directory.node, name, wants_directory)
    })
}

impl RawFile {
    pub(crate) fn len(&self) -> io::Result<u64> {
        match self.0.real()? {
            Ok(real) => real.len(),
            Err(handle) => handle.operate(Request::Length, 0, |state, _| {
                Ok(state.file(handle.node)?.cache.len())
            }),
        }
    }

    pub(crate) fn set_len(&self, bytes: u64) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.set_len(bytes),
            Err(handle) => handle.operate(Request::SetLength, bytes, |state, _| {
                match handle.can_write {
                    true => state.set_len(handle.node, bytes),
                    false => Err(error(libc::EINVAL)),
                }
            }),
        }
    }

    pub(crate) fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.real()? {
            Ok(real) => real.read_some(offset, buffer),
            Err(handle) => {
                let mut asked = asked(Request::Read, handle.node, offset);
                asked.bytes = buffer.len() as u64;
                handle.operate_to_end(asked, |state, plan| {
                    let read = state.read(handle.node, offset, buffer, plan)?;
                    Ok((read, After::Nothing))
                })
            }
        }
    }

    pub(crate) fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let handle = match self.0.real()? {
            Ok(real) => return real.write_some(offset, bytes),
            Err(handle) => handle,
        };
        // Relaxed: threads of a run are coroutines of one real thread.
        let is_direct = handle.is_direct.load(Ordering::Relaxed);
        let asked = Asked {
            request: match is_direct {
                true => Request::DurableWrite,
                false => Request::Write,
            },
            node: handle.node,
            bytes: bytes.len() as u64,
            digest: digest(offset, bytes),
        };
        handle.operate_to_end(asked, |state, plan| {
            if !handle.can_write {
                return Err(error(libc::EBADF));
            }
            let block = BLOCK_BYTES;
            let is_aligned = offset.is_multiple_of(block as u64)
                && bytes.len().is_multiple_of(block)
                && bytes.as_ptr().addr().is_multiple_of(block);
            let takes = state.options.direct_writes == DirectWrites::Taken;
            if is_direct && !(takes && is_aligned) {
                return Err(error(libc::EINVAL));
            }
            let node = handle.node;
            let (taken, sequence) = state.write(node, offset, bytes, is_direct, plan)?;
            let after = match is_direct {
                true => After::Write { node, sequence },
                false => After::Nothing,
            };
            Ok((taken, after))
        })
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.sync(),
            Err(handle) => handle.sync(Request::SyncFile),
        }
    }

    pub(crate) fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.reserve(offset, bytes),
            Err(handle) => {
                let range = offset.rotate_left(32) ^ bytes;
                handle.operate(Request::Reserve, range, |state, plan| {
                    match handle.can_write {
                        true => state.reserve(handle.node, offset, bytes, plan),
                        false => Err(error(libc::EBADF)),
                    }
                })
            }
        }
    }

    pub(crate) fn lock(&self) -> io::Result<bool> {
        match self.0.real()? {
            Ok(real) => real.lock(),
            Err(handle) => handle.operate(Request::Lock, 0, |state, _| {
                let file = state.file(handle.node)?;
                let holder = *file.locked_by.get_or_insert(handle.number);
                Ok(holder == handle.number)
            }),
        }
    }

    pub(crate) fn direct_alignment(&self) -> Option<Alignment> {
        match &self.0 {
            Raw::Real(real) => real.direct_alignment(),
            Raw::Simulated(_) => Some(Alignment {
                memory: BLOCK_BYTES,
                offset: BLOCK_BYTES,
            }),
        }
    }

    pub(crate) fn give_up_direct(&self) -> io::Result<()> {
        match self.0.real()? {
            Ok(real) => real.give_up_direct(),
            Err(handle) => {
                // Relaxed: as in `write_some`.
                handle.is_direct.store(false, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}
