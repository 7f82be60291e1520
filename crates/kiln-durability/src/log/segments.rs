//! Segments, made ahead: a thread makes the next one while the present one is written.
//!
//! A segment is filled with zeros and synced, and its entry in the directory is, before a block
//! goes into it: so that a durable write of a block changes nothing but data. A segment that is not
//! needed any more becomes the next one under a new name, and needs no zeros; its old blocks have
//! the old number.

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::disk::{self, AlignedBuffer, Directory, Kind, LogFile};
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::thread::{self, JoinHandle};

use crate::canary::Canary;
use crate::format::block::ALIGNMENT;
use crate::format::{segment_name, segment_number};

/// A pause after each mebibyte of zeros, unless the log waits for the segment.
const PAUSE_NS: u64 = 1_000_000;
/// Mebibytes of zeros after which they are synced, so that no sync of the log has to wait for all
/// of them.
const STEPS_PER_SYNC: usize = 4;

/// A segment that is written.
pub(super) struct Segment {
    pub number: u64,
    pub bytes: u64,
    file: LogFile,
}

impl Segment {
    /// Opens a segment that is there, with its zeros.
    pub fn open(directory: &Directory, number: u64) -> disk::Result<Segment> {
        let name = segment_name(number);
        let bytes = directory.open_file(&name)?.len()?;
        let file = directory.open_log_file(&name)?;
        // A device with larger units is written through the cache.
        let file = match file.block_bytes() > ALIGNMENT {
            true => directory.open_cached_log_file(&name)?,
            false => file,
        };
        let bytes = bytes / ALIGNMENT as u64 * ALIGNMENT as u64;
        Ok(Segment {
            number,
            bytes,
            file,
        })
    }

    /// Writes a block; it is on disk when this returns.
    pub fn write(&self, offset: u64, block: &AlignedBuffer) -> disk::Result<()> {
        self.file.write_durably(offset, block)
    }
}

/// The segments of a log and the thread that makes them.
pub(super) struct Segments {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    directory: Directory,
    /// The length of a segment.
    bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Set when the next segment cannot be made.
    refuses: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    /// The number of the segment to be made; 0 for none.
    wanted: u64,
    /// Whether the log waits for it.
    is_urgent: bool,
    made: Option<disk::Result<Segment>>,
    /// The first segment that is needed.
    first: u64,
    is_closed: bool,
}

impl Segments {
    /// Those in `directory`, each of `bytes`; the segment after `last` is being made from now on.
    pub fn start(
        directory: Directory,
        bytes: u64,
        last: u64,
        refuses: Arc<AtomicBool>,
    ) -> std::io::Result<Segments> {
        let shared = Arc::new(Shared {
            directory,
            bytes,
            state: Mutex::new(State {
                wanted: last + 1,
                ..State::default()
            }),
            changed: Condvar::new(),
            refuses,
        });
        let maker = shared.clone();
        let thread = thread::spawn("kiln-segments", move || maker.run())?;
        Ok(Segments {
            shared,
            thread: Some(thread),
        })
    }

    /// The next segment. Waits until it is made, and has the one after it made.
    ///
    /// # Errors
    /// Why it could not be made.
    pub fn next(&self) -> disk::Result<Segment> {
        let shared = &*self.shared;
        let mut state = lock(&shared.state);
        loop {
            if let Some(made) = state.made.take() {
                state.is_urgent = false;
                if let Ok(segment) = &made {
                    state.wanted = segment.number + 1;
                    shared.changed.notify_all();
                }
                return made;
            }
            state.is_urgent = true;
            state = (shared.changed.wait(state)).unwrap_or_else(|poison| poison.into_inner());
        }
    }

    /// What no log may do: syncs a segment of which a write has failed, and takes the success for
    /// that of the write.
    pub fn sync_again(&self, number: u64) -> disk::Result<Segment> {
        let directory = &self.shared.directory;
        directory
            .open_file_to_write(&segment_name(number))?
            .sync()?;
        Segment::open(directory, number)
    }

    /// Why the next segment could not be made, if so.
    pub fn failure(&self) -> Option<disk::Error> {
        let state = lock(&self.shared.state);
        state
            .made
            .as_ref()
            .and_then(|made| made.as_ref().err().cloned())
    }

    /// Gives up the files of the segments before this one: they are not needed any more, and the
    /// manifest says so.
    pub fn retire_before(&self, first: u64) {
        lock(&self.shared.state).first = first;
        self.shared.changed.notify_all();
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported, and there is nothing to be done.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        // The first segment that is needed, as it was last looked at, and one that is not needed
        // any more.
        let (mut first, mut retired) = (0, None);
        let mut state = lock(&self.state);
        while !state.is_closed {
            if state.first > first {
                first = state.first;
                drop(state);
                // What cannot be removed now is removed after a later checkpoint.
                retired = self.remove_before(first).unwrap_or_default();
                state = lock(&self.state);
                continue;
            }
            if state.wanted == 0 || state.made.is_some() {
                state = (self.changed.wait(state)).unwrap_or_else(|poison| poison.into_inner());
                continue;
            }
            let number = std::mem::take(&mut state.wanted);
            drop(state);
            let made = self.make(number, retired.take());
            state = lock(&self.state);
            match made {
                Ok(None) => {}
                Ok(Some(segment)) => state.made = Some(Ok(segment)),
                Err(error) => {
                    self.refuses.store(true, Ordering::Relaxed);
                    state.made = Some(Err(error));
                }
            }
            self.changed.notify_all();
        }
    }

    /// Removes the segments before this one, but for one that can be used again.
    fn remove_before(&self, first: u64) -> disk::Result<Option<u64>> {
        let mut kept = None;
        for entry in self.directory.list()? {
            let number = segment_number(&entry.name).filter(|number| *number < first);
            match number {
                Some(number) if entry.bytes == self.bytes && kept.is_none() => kept = Some(number),
                Some(_) => self.directory.remove_file(&entry.name)?,
                None => {}
            }
        }
        Ok(kept)
    }

    /// Makes a segment; `None` when the log was closed meanwhile.
    fn make(&self, number: u64, retired: Option<u64>) -> disk::Result<Option<Segment>> {
        let is_wanted = || !lock(&self.state).is_closed;
        let pause = || {
            if !lock(&self.state).is_urgent {
                thread::sleep(PAUSE_NS);
            }
        };
        let is_made = make(
            &self.directory,
            number,
            self.bytes,
            retired,
            is_wanted,
            pause,
        )?;
        match is_made {
            true => Segment::open(&self.directory, number).map(Some),
            false => Ok(None),
        }
    }
}

/// Makes a segment with nothing in it, from a retired one if there is one. `is_wanted` is asked,
/// and `pause` is called, now and then; returns false when it was not wanted any more.
pub(super) fn make(
    directory: &Directory,
    number: u64,
    bytes: u64,
    retired: Option<u64>,
    is_wanted: impl Fn() -> bool,
    pause: impl Fn(),
) -> disk::Result<bool> {
    let name = segment_name(number);
    if let Some(retired) = retired {
        directory.rename(&segment_name(retired), &name)?;
    }
    let file = match directory.create_file(&name) {
        // One that was retired, or that an earlier process has begun.
        Err(error) if *error.kind() == Kind::Exists => directory.open_file_to_write(&name)?,
        other => other?,
    };
    let mut allocation = file.allocate(bytes)?;
    let mut steps = 0;
    while !allocation.step()? {
        steps += 1;
        if steps % STEPS_PER_SYNC == 0 {
            file.sync()?;
        }
        if !is_wanted() {
            return Ok(false);
        }
        pause();
    }
    file.sync()?;
    if !Canary::DirectoryNotSynced.sings() {
        directory.sync()?;
    }
    Ok(true)
}
