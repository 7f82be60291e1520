//! The simulated disk as a test holds it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::queue::Dice;
use super::super::space;
use super::crash::Crash;
use super::faults::{Fault, Faults};
use super::node::{Node, NodeNumber};
use super::state::{Frame, State};
use super::time::Timing;

/// How a simulated disk is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Determines what the disk draws: where in its operation a crash comes, how short a short
    /// write is, what of a failed sync was written.
    pub seed: u64,
    /// The bytes that files may take, in whole blocks; a hole before the last byte that was written
    /// counts as well.
    pub capacity_bytes: u64,
    /// What operations take.
    pub timing: Timing,
    /// What it makes of a file that is opened for direct writes.
    pub direct_writes: DirectWrites,
    /// Whether the file system says that it lies in memory. A crash leaves as much as of any other.
    pub is_volatile: bool,
    /// Unsynced data of a file, in bytes, from which on the cache writes the oldest to the medium
    /// by itself.
    pub cached_bytes_max: usize,
}

impl Options {
    /// A disk of a tebibyte, as fast as a solid state disk, with direct writes; 64 MiB of unsynced
    /// data a file.
    pub fn new(seed: u64) -> Options {
        Options {
            seed,
            capacity_bytes: 1 << 40,
            timing: Timing::default(),
            direct_writes: DirectWrites::Taken,
            is_volatile: false,
            cached_bytes_max: 64 << 20,
        }
    }
}

/// What a disk makes of direct writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DirectWrites {
    /// They work.
    Taken,
    /// A file cannot be opened for them (EINVAL).
    RefusedAtOpening,
    /// A file can be opened for them, and the first one fails (EINVAL).
    RefusedAtWriting,
}

/// When in an operation the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It has no effect.
    Before,
    /// It has some of its effect: a part of a write is in the cache, or a part of the changes is
    /// synced.
    Within,
    /// It has its whole effect, and the caller does not learn of it.
    After,
}

impl Moment {
    /// All of them.
    pub const ALL: [Moment; 3] = [Moment::Before, Moment::Within, Moment::After];
}

/// When a disk lost its power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// The number of the operation in which it went, or of the last one before.
    pub operation: u64,
    /// Virtual time, in nanoseconds since the start of the run; 0 outside of one.
    pub virtual_ns: u64,
}

/// A disk as it was at a moment of an operation: before it, or while processes see its effect and
/// the medium does not have it, when that begins and when it ends. The moment after it is the one
/// before the next operation. See [`Disk::film`].
#[derive(Clone, Debug)]
pub struct Still {
    /// The operation's number.
    pub operation: u64,
    /// [`Moment::Before`] or [`Moment::Within`].
    pub moment: Moment,
    /// The disk, for [`Disk::power_on`] and [`Disk::restart`].
    pub disk: Disk,
}

/// A simulated disk. It is made outside of runs, given to a run with [`Config::disk`], and stays
/// when the run is over.
///
/// A clone is the same disk; [`Disk::copy`] makes another one.
///
/// ```
/// use std::path::Path;
///
/// use kiln_platform::disk::Directory;
/// use kiln_platform::sim::{self, disk::{Crash, Disk, Options, Survivors}};
///
/// let disk = Disk::new(Options::new(1));
/// let mut config = sim::Config::new(sim::Schedule::Random, 1);
/// config.disk = Some(disk.clone());
/// let write = || {
///     let data = Directory::create(Path::new("/data"))?;
///     let file = data.create_file("file")?;
///     file.write_at(0, b"hello")?;
///     file.sync()
/// };
/// let run = sim::run(&config, write).expect("nothing panics");
/// assert_eq!(run.value, Ok(()));
///
/// // The file was synced, and the directory that names it was not.
/// let found = disk.power_on(&Crash::new(Survivors::None), 1);
/// assert!(found.files().is_empty());
/// let found = disk.power_on(&Crash::new(Survivors::All), 1);
/// assert_eq!(found.read("/data/file").expect("it is there"), b"hello");
/// ```
///
/// [`Config::disk`]: super::super::control::Config::disk
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disk({} operations)", self.operations())
    }
}

impl Disk {
    /// A disk with an empty root directory.
    pub fn new(options: Options) -> Disk {
        Disk::of(|| State::new(options))
    }

    /// A disk with the state that `make` gives, outside of any run's memory.
    fn of(make: impl FnOnce() -> State) -> Disk {
        space::outside(|| Disk(Arc::new(Mutex::new(make()))))
    }

    /// Calls `body` with the state, outside of a run's memory; `body` does not switch threads.
    pub(super) fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        space::outside(|| body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Another disk with the same content, the same changes in its cache, and the same crash and
    /// faults to come. No process uses it.
    pub fn copy(&self) -> Disk {
        Disk::of(|| {
            let mut state = self.with(|state| state.clone());
            state.film = None;
            state.is_in_use = false;
            state.end_process();
            state
        })
    }

    /// How many operations have begun.
    pub fn operations(&self) -> u64 {
        self.with(|state| state.operations)
    }

    /// How many changes no sync has made durable: writes, lengths, entries.
    pub fn unsynced(&self) -> usize {
        self.with(|state| state.unsynced().len())
    }

    /// Lets the power go in operation `number` (the first one has number 1), at a moment that the
    /// disk's seed determines. From then on no operation reaches the disk, and each fails: "the
    /// machine is off".
    pub fn crash_at(&self, number: u64) {
        self.with(|state| state.crash_at = Some((number, None)));
    }

    /// As [`Disk::crash_at`], at this moment of the operation.
    pub fn crash_at_moment(&self, number: u64, moment: Moment) {
        self.with(|state| state.crash_at = Some((number, Some(moment))));
    }

    /// Lets the power go now.
    pub fn power_off(&self) {
        let now_ns = match super::super::runtime::is_running() {
            true => super::super::runtime::peek_ps() / 1_000,
            false => 0,
        };
        self.with(|state| state.cut_power(state.operations, now_ns));
    }

    /// When the power went, if it did. What a thread of the run has acknowledged until this
    /// returned something, counts; nothing later does. A call is no scheduling point.
    pub fn power_cut(&self) -> Option<PowerCut> {
        self.with(|state| state.power_cut)
    }

    /// Whether the power is gone.
    pub fn is_off(&self) -> bool {
        self.power_cut().is_some()
    }

    /// Keeps a copy of the disk at each moment from now on at which the power's going leaves
    /// something else than at the moments before: one run shows what a crash in each of its
    /// operations leaves.
    pub fn film(&self) {
        self.with(|state| state.film = Some(Vec::new()));
    }

    /// How many copies the film has so far: what happens now comes before all later ones. A call is
    /// no scheduling point.
    pub fn filmed(&self) -> usize {
        self.with(|state| state.film.as_ref().map_or(0, Vec::len))
    }

    /// What was filmed, in the order of time; ends the film.
    pub fn take_film(&self) -> Vec<Still> {
        let frames = self.with(|state| state.film.take()).unwrap_or_default();
        let still = |frame: Frame| Still {
            operation: frame.operation,
            moment: frame.moment,
            disk: Disk::of(|| *frame.state),
        };
        frames.into_iter().map(still).collect()
    }

    /// The disk that a crash leaves of this one, which stays as it is. The other one has power and
    /// no faults to come, and counts its operations from 0.
    ///
    /// # Panics
    /// When writes are to be torn to pieces that are no multiple of 512 bytes.
    pub fn power_on(&self, crash: &Crash, seed: u64) -> Disk {
        if let super::crash::Survivors::Torn { piece_bytes } = crash.survivors {
            let is_whole = piece_bytes > 0 && piece_bytes.is_multiple_of(512);
            assert!(is_whole, "pieces of {piece_bytes} bytes are no sectors");
        }
        self.next(seed, |state| state.crash(crash, seed))
    }

    /// The disk as the next process finds it after the one before was killed and the system lived
    /// on: all that was written can be read, and what was not synced is not durable yet. Otherwise
    /// as [`Disk::power_on`].
    pub fn restart(&self, seed: u64) -> Disk {
        self.next(seed, |_| ())
    }

    /// A copy for the next process, after what happens to it before.
    fn next(&self, seed: u64, happens: impl FnOnce(&mut State)) -> Disk {
        Disk::of(|| {
            let mut state = self.with(|state| state.clone());
            state.film = None;
            happens(&mut state);
            state.dice = Dice::new(seed ^ state.options.seed);
            state.operations = 0;
            state.power_cut = None;
            state.crash_at = None;
            state.faults = Faults::default();
            state.is_in_use = false;
            state.end_process();
            state
        })
    }

    /// Lets `fault` happen once, to the first operation that can have it from number `operation`
    /// on.
    pub fn inject(&self, operation: u64, fault: Fault) {
        self.with(|state| state.faults.plan(operation, fault));
    }

    /// Lets one operation in `one_in`, on the average, have one of `faults` that fits; 0 for none.
    pub fn inject_at_random(&self, one_in: u32, faults: &[Fault]) {
        self.with(|state| state.faults.set_random(one_in, faults));
    }

    /// A run begins.
    ///
    /// # Errors
    /// When another run has the disk.
    pub(crate) fn begin_run(&self) -> Result<InUse<'_>, String> {
        self.with(|state| {
            if std::mem::replace(&mut state.is_in_use, true) {
                return Err("another run has the disk".to_owned());
            }
            state.end_process();
            Ok(())
        })?;
        Ok(InUse(self))
    }

    /// All files with their lengths in bytes, as processes see them, by their paths.
    pub fn files(&self) -> Vec<(String, u64)> {
        self.with(|state| {
            let found = state.files().into_iter();
            found.map(|(path, _, bytes)| (path, bytes)).collect()
        })
    }

    /// What processes read in the file at `path`.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.with(|state| {
            let node = state.file_at(path)?;
            let content = &state.file(node)?.cache;
            let mut bytes = vec![0; content.len() as usize];
            content.read(0, &mut bytes);
            Ok(bytes)
        })
    }

    /// Puts all files of this disk, as processes see them, below a directory of the machine.
    ///
    /// # Errors
    /// The system's.
    pub fn export(&self, directory: &Path) -> io::Result<()> {
        for (path, _) in self.files() {
            let to = directory.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(to.parent().unwrap_or(directory))?;
            std::fs::write(to, self.read(&path)?)?;
        }
        Ok(())
    }

    /// A disk with the files and directories below a directory of the machine, all durable.
    ///
    /// # Errors
    /// The system's; a name that is not UTF-8.
    pub fn import(directory: &Path, options: Options) -> io::Result<Disk> {
        let disk = Disk::new(options);
        disk.with(|state| state.import(super::state::ROOT, directory))?;
        Ok(disk)
    }
}

/// A run has the disk until this is dropped.
pub(crate) struct InUse<'a>(&'a Disk);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.is_in_use = false);
    }
}

impl State {
    /// Closes the handles that a run has left, as those of a process that has ended.
    fn end_process(&mut self) {
        self.process += 1;
        for node in self.nodes.values_mut() {
            match node {
                Node::File(file) => {
                    file.handles = 0;
                    file.locked_by = None;
                }
                Node::Directory(directory) => directory.handles = 0,
            }
        }
        self.sweep();
    }

    pub(super) fn cut_power(&mut self, operation: u64, virtual_ns: u64) {
        self.power_cut.get_or_insert(PowerCut {
            operation,
            virtual_ns,
        });
    }

    /// All files that processes see: path, number, length.
    pub(super) fn files(&self) -> Vec<(String, NodeNumber, u64)> {
        let mut found = Vec::new();
        let mut directories = vec![(String::new(), super::state::ROOT)];
        while let Some((path, number)) = directories.pop() {
            let Some(Node::Directory(directory)) = self.nodes.get(&number) else {
                continue;
            };
            for (name, number) in &directory.cache {
                let path = format!("{path}/{name}");
                match self.nodes.get(number) {
                    Some(Node::File(file)) => found.push((path, *number, file.cache.len())),
                    _ => directories.push((path, *number)),
                }
            }
        }
        found.sort();
        found
    }

    pub(super) fn file_at(&mut self, path: &str) -> io::Result<NodeNumber> {
        let names = super::names(Path::new(path));
        let node = self.find(&names)?;
        self.file(node)?;
        Ok(node)
    }

    fn import(&mut self, parent: NodeNumber, directory: &Path) -> io::Result<()> {
        let mut entries: Vec<_> = std::fs::read_dir(directory)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let plan = super::operation::Plan {
            fault: None,
            is_cut: false,
        };
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
            if entry.file_type()?.is_dir() {
                let node = Node::Directory(Default::default());
                let node = self.make(parent, name, node, &plan)?;
                self.import(node, &entry.path())?;
            } else {
                let node = self.make(parent, name, Node::File(Default::default()), &plan)?;
                let bytes = std::fs::read(entry.path())?;
                let file = self.file(node)?;
                file.cache.grow(bytes.len() as u64);
                file.cache.write(0, &bytes);
                file.durable = file.cache.clone();
                file.room = (bytes.len() as u64).next_multiple_of(crate::disk::BLOCK_BYTES as u64);
            }
        }
        self.directory(parent)?.sync(u64::MAX);
        Ok(())
    }
}
