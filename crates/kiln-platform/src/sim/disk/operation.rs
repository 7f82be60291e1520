//! The life of an operation: it gets a number, meets what was planned for that number, has its
//! effect, takes its time, and is complete.

use std::io;

use super::super::runtime;
use super::door::{Disk, Moment};
use super::faults::Fault;
use super::node::NodeNumber;
use super::state::{Frame, State};

/// What is asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    MakeDirectory,
    OpenDirectory,
    List,
    Create,
    Open,
    SyncDirectory,
    Rename,
    RemoveFile,
    RemoveDirectory,
    Inspect,
    Length,
    SetLength,
    Read,
    Write,
    DurableWrite,
    SyncFile,
    Reserve,
    Lock,
}

/// An operation, for its price and for the trace.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) node: NodeNumber,
    /// Bytes that move.
    pub(super) bytes: u64,
    /// Stands for all else in the trace: offsets, names, data.
    pub(super) digest: u64,
}

/// What is to happen to an operation.
pub(super) struct Plan {
    pub(super) fault: Option<Fault>,
    /// The power goes while it runs: a write gets only so far.
    pub(super) is_cut: bool,
}

/// What the medium does at the end of an operation.
pub(super) enum After {
    Nothing,
    /// All changes of the node before that number become durable.
    Sync {
        node: NodeNumber,
        before: u64,
    },
    /// This change of the file becomes durable.
    Write {
        node: NodeNumber,
        sequence: u64,
    },
}

/// What every operation on a disk without power gives.
pub(super) fn is_off() -> io::Error {
    io::Error::other("the machine is off")
}

/// Makes an operation. The effect is what processes see at once; what the medium does takes time,
/// during which other threads run.
pub(super) fn operate<T>(
    disk: &Disk,
    asked: Asked,
    effect: impl FnOnce(&mut State, &Plan) -> io::Result<(T, After)>,
) -> io::Result<T> {
    runtime::begin_operation();
    let now_ns = runtime::peek_ps() / 1_000;
    let begun = disk.with(|state| {
        let moment = state.begin(now_ns)?;
        let fault = match moment {
            None => {
                let (operation, dice) = (state.operations, &mut state.dice);
                state.faults.draw(operation, asked.request, dice)
            }
            Some(_) => None,
        };
        let takes_ns = state.takes_ns(asked);
        state.film(asked.request, Moment::Before);
        let plan = Plan {
            fault,
            is_cut: moment == Some(Moment::Within),
        };
        let done = match plan.fault {
            Some(Fault::Interrupted) => Err(super::state::error(libc::EINTR)),
            _ => effect(state, &plan),
        };
        state.film(asked.request, Moment::Within);
        Ok((state.operations, moment, takes_ns, done))
    });
    let (number, moment, takes_ns, done) = match begun {
        Ok(begun) => begun,
        Err(Off) => return Err(is_off()),
    };
    for word in [
        number,
        asked.request as u64,
        asked.node,
        asked.bytes,
        asked.digest,
    ] {
        runtime::note(word);
    }
    let takes_ns = match moment {
        Some(Moment::Within) => takes_ns / 2,
        _ => takes_ns,
    };
    runtime::take_time("a disk operation", takes_ns);
    let (done, after) = match done {
        Ok((value, after)) => (Ok(value), after),
        Err(error) => (Err(error), After::Nothing),
    };
    let now_ns = runtime::peek_ps() / 1_000;
    let completed = disk.with(|state| {
        state.film(asked.request, Moment::Within);
        state.end(number, moment, &after, now_ns)
    });
    let done = match completed {
        Ok(()) => done,
        Err(Off) => Err(is_off()),
    };
    let outcome = match &done {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(-1) as u64,
    };
    runtime::note(outcome);
    done
}

/// The disk has no power.
pub(super) struct Off;

impl Request {
    /// Whether it changes what is on the disk, or what a crash leaves of that.
    fn is_change(self) -> bool {
        use Request as R;
        match self {
            R::OpenDirectory | R::List | R::Open | R::Inspect | R::Length | R::Read | R::Lock => {
                false
            }
            R::MakeDirectory
            | R::Create
            | R::SyncDirectory
            | R::Rename
            | R::RemoveFile
            | R::RemoveDirectory
            | R::SetLength
            | R::Write
            | R::DurableWrite
            | R::SyncFile
            | R::Reserve => true,
        }
    }
}

impl State {
    /// Keeps a copy if the disk is filmed, and this is the moment of an operation that changes
    /// something.
    fn film(&mut self, request: Request, moment: Moment) {
        let Some(mut film) = self.film.take() else {
            return;
        };
        if request.is_change() {
            film.push(Frame {
                operation: self.operations,
                moment,
                state: Box::new(self.clone()),
            });
        }
        self.film = Some(film);
    }

    /// Gives an operation its number. The moment at which the power goes, if this is the operation
    /// for it.
    fn begin(&mut self, now_ns: u64) -> Result<Option<Moment>, Off> {
        if self.power_cut.is_some() {
            return Err(Off);
        }
        self.operations += 1;
        let moment = match self.crash_at {
            Some((number, moment)) if number == self.operations => {
                Some(moment.unwrap_or_else(|| Moment::ALL[self.dice.below(Moment::ALL.len())]))
            }
            _ => None,
        };
        if moment == Some(Moment::Before) {
            self.cut_power(self.operations, now_ns);
            return Err(Off);
        }
        Ok(moment)
    }

    /// The time of an operation is over.
    fn end(
        &mut self,
        number: u64,
        moment: Option<Moment>,
        after: &After,
        now_ns: u64,
    ) -> Result<(), Off> {
        if self.power_cut.is_some() {
            return Err(Off);
        }
        match moment {
            None | Some(Moment::Before) => {
                self.complete(after);
                return Ok(());
            }
            Some(Moment::Within) => self.complete_partly(after),
            Some(Moment::After) => self.complete(after),
        }
        self.cut_power(number, now_ns);
        Err(Off)
    }

    fn takes_ns(&self, asked: Asked) -> u64 {
        let (bytes, is_sync) = match asked.request {
            Request::Read => (asked.bytes, false),
            Request::DurableWrite => (asked.bytes, true),
            Request::SyncFile | Request::SyncDirectory => (self.unsynced_bytes(asked.node), true),
            _ => (0, false),
        };
        self.options.timing.takes_ns(bytes, is_sync)
    }
}

/// A number that stands for some bytes in the trace.
pub(super) fn digest(start: u64, bytes: &[u8]) -> u64 {
    let mut sum = start ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut tail = [0; 8];
    tail[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&tail]) {
        sum = (sum ^ u64::from_le_bytes(*word))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
    sum
}
