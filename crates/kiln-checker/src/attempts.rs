//! The attempts of a history: where each one's events are, and how it ended.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use kiln_history::{Corrupt, Event, History, LogReader, Moment, Object};
use kiln_platform::atomic::prefetch;

/// A history that cannot be judged, because it is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryError {
    /// A log contains what no log contains.
    Corrupt {
        /// The position of the log in [`History::logs`].
        worker: usize,
        /// Where in it, and what.
        corrupt: Corrupt,
    },
    /// There is more of something than can be judged at one time.
    TooLarge(&'static str),
    /// Judging it takes more memory than [`Options::memory_bytes`](crate::Options::memory_bytes).
    NoMemory {
        /// The memory that there is.
        bytes: u64,
    },
}

impl fmt::Display for HistoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryError::Corrupt { worker, corrupt } => {
                write!(formatter, "the log of worker {worker}: {corrupt}")
            }
            HistoryError::TooLarge(what) => {
                write!(formatter, "the history is too large to be judged: {what}")
            }
            HistoryError::NoMemory { bytes } => write!(
                formatter,
                "judging the history takes more memory than the {} MiB that there are besides its logs",
                bytes >> 20
            ),
        }
    }
}

impl std::error::Error for HistoryError {}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Committed,
    /// Without effects, but what it read was reported: it is judged as a reader.
    Rejected,
    Aborted,
}

/// One attempt; its number in [`Attempts`] is its node in the graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) invoked: Moment,
    pub(crate) responded: Moment,
    pub(crate) procedure: u32,
    /// The first of its words in its worker's log, and the first behind it.
    begin: u32,
    end: u32,
    pub(crate) worker: u16,
    pub(crate) ending: Ending,
    /// Whether it read ranges.
    pub(crate) ranges: bool,
}

impl Attempt {
    /// Whether it is a transaction: all but those that were repeated.
    pub(crate) fn counts(&self) -> bool {
        self.ending != Ending::Aborted
    }
}

/// Numbers of objects in the order in which they are met.
pub(crate) type Numbers = HashMap<u64, u32, BuildHasherDefault<AddressHasher>>;

/// The memory that an object takes: its address, its number by address, and where its accesses are.
pub(crate) const BYTES_PER_OBJECT: usize = 64;

/// Mixes an address; addresses are not chosen by an adversary.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// All attempts of a history, and its objects.
pub(crate) struct Attempts<'a> {
    pub(crate) history: &'a History,
    /// By worker, and in the order in which each worker made them.
    pub(crate) all: Vec<Attempt>,
    /// The number of the first attempt of each worker.
    first: Vec<u32>,
    /// The addresses of the objects, by number.
    pub(crate) objects: Vec<u64>,
    pub(crate) numbers: Numbers,
    /// Reads, writes and installations of each object by attempts that count.
    pub(crate) accesses: Vec<u32>,
    /// The objects of those events, in the order of the logs.
    pub(crate) sequence: Sequence,
    /// Events in all logs.
    pub(crate) events: u64,
}

/// The most attempts: an access's record has two bits for its kind.
pub(crate) const ATTEMPTS_MAX: usize = 1 << 30;

impl<'a> Attempts<'a> {
    /// Finds the attempts, and checks that the logs could have been recorded.
    ///
    /// # Errors
    /// The first event that could not, or what is too large.
    pub(crate) fn of(history: &'a History) -> Result<Attempts<'a>, HistoryError> {
        let mut attempts = Attempts {
            history,
            all: Vec::new(),
            first: Vec::new(),
            objects: Vec::new(),
            numbers: Numbers::default(),
            accesses: Vec::new(),
            sequence: Sequence::default(),
            events: 0,
        };
        if u16::try_from(history.logs.len()).is_err() {
            return Err(HistoryError::TooLarge("there are more than 65,535 workers"));
        }
        for worker in 0..history.logs.len() {
            attempts.first.push(attempts.all.len() as u32);
            attempts.read_log(worker)?;
        }
        Ok(attempts)
    }

    fn read_log(&mut self, worker: usize) -> Result<(), HistoryError> {
        let words = &self.history.logs[worker];
        if u32::try_from(words.len()).is_err() {
            return Err(HistoryError::TooLarge("a log has more than 2^32 words"));
        }
        let at = |position, reason| HistoryError::Corrupt {
            worker,
            corrupt: Corrupt { position, reason },
        };
        let mut reader = LogReader::new(words);
        let mut open: Option<Attempt> = None;
        let mut scopes = Scopes::default();
        let mut touched: Vec<u32> = Vec::new();
        let mut position = 0;
        while let Some(event) = reader.next() {
            let event = event.map_err(|corrupt| HistoryError::Corrupt { worker, corrupt })?;
            self.events += 1;
            let Some(attempt) = &mut open else {
                let Event::Begin { procedure, invoked } = event else {
                    return Err(at(position, "an event outside of any attempt"));
                };
                open = Some(Attempt {
                    invoked,
                    responded: invoked,
                    procedure,
                    begin: position as u32,
                    end: 0,
                    worker: worker as u16,
                    ending: Ending::Aborted,
                    ranges: false,
                });
                scopes.clear();
                touched.clear();
                position = reader.position();
                continue;
            };
            let mut ended = None;
            match event {
                Event::Begin { .. } => {
                    return Err(at(position, "an attempt begins within another"));
                }
                Event::Read { object, .. }
                | Event::ReadAbsent { object, .. }
                | Event::Write { object, .. }
                | Event::Install { object, .. } => {
                    let number = number_of(&mut self.numbers, &mut self.objects, object);
                    touched.push(number);
                }
                Event::RangeBegin { range, from, .. } => {
                    attempt.ranges = true;
                    scopes
                        .begin(range, from)
                        .map_err(|reason| at(position, reason))?;
                }
                Event::Met { range, object } => {
                    number_of(&mut self.numbers, &mut self.objects, object);
                    if !scopes.is_open(range) {
                        return Err(at(position, "an entry was met in a range that is not read"));
                    }
                }
                Event::RangeEnd { range, to, .. } => scopes
                    .end(range, to)
                    .map_err(|reason| at(position, reason))?,
                Event::Entry { object, window, .. } => {
                    number_of(&mut self.numbers, &mut self.objects, object);
                    if window.from > window.to {
                        return Err(at(position, "a change of an entry ends before it begins"));
                    }
                }
                Event::Commit { responded } => {
                    if !scopes.is_empty() {
                        return Err(at(position, "a commit while a range is being read"));
                    }
                    ended = Some((Ending::Committed, responded));
                }
                Event::Abort { responded, .. } => ended = Some((Ending::Aborted, responded)),
                Event::Reject { responded } => ended = Some((Ending::Rejected, responded)),
            }
            position = reader.position();
            if let Some((ending, responded)) = ended {
                if responded < attempt.invoked {
                    return Err(at(position, "an attempt ends before its call begins"));
                }
                attempt.ending = ending;
                attempt.responded = responded;
                attempt.end = position as u32;
                self.accesses.resize(self.objects.len(), 0);
                if attempt.counts() {
                    for number in &touched {
                        self.accesses[*number as usize] += 1;
                    }
                    self.sequence.extend(&touched);
                }
                if self.all.len() == ATTEMPTS_MAX {
                    return Err(HistoryError::TooLarge("there are more than 2^30 attempts"));
                }
                self.all.extend(open.take());
            }
        }
        match open {
            None => Ok(()),
            Some(_) => Err(at(position, "the log ends within an attempt")),
        }
    }

    /// The number of an object that an event names.
    pub(crate) fn number(&self, object: Object) -> u32 {
        self.numbers[&object.0]
    }

    /// The attempt with this number.
    pub(crate) fn get(&self, attempt: u32) -> &Attempt {
        &self.all[attempt as usize]
    }

    /// How many attempts of the attempt's worker there were up to it.
    pub(crate) fn ordinal(&self, attempt: u32) -> u32 {
        attempt - self.first[usize::from(self.get(attempt).worker)] + 1
    }

    /// The events of an attempt and their positions, from its beginning to its end.
    pub(crate) fn events(&self, attempt: u32) -> impl Iterator<Item = (u32, Event<'a>)> + use<'a> {
        let attempt = *self.get(attempt);
        let words = &self.history.logs[usize::from(attempt.worker)];
        let mut reader = LogReader::new(&words[attempt.begin as usize..attempt.end as usize]);
        std::iter::from_fn(move || {
            let position = attempt.begin + reader.position() as u32;
            let event = reader.next()?.expect("the logs were checked");
            Some((position, event))
        })
    }

    /// Fetches what [`Attempts::prefetch_event`] needs.
    #[inline]
    pub(crate) fn prefetch(&self, attempt: u32) {
        prefetch(&raw const self.all[attempt as usize]);
    }

    /// Fetches an event from memory: objects name events all over the logs.
    #[inline]
    pub(crate) fn prefetch_event(&self, attempt: u32, position: u32) {
        let words = &self.history.logs[usize::from(self.get(attempt).worker)];
        prefetch(&raw const words[position as usize]);
    }

    /// The event at a position of an attempt's log.
    pub(crate) fn event(&self, attempt: u32, position: u32) -> Event<'a> {
        let words = &self.history.logs[usize::from(self.get(attempt).worker)];
        let mut reader = LogReader::new(&words[position as usize..]);
        let event = reader.next().expect("the position of an event");
        event.expect("the logs were checked")
    }
}

fn number_of(numbers: &mut Numbers, objects: &mut Vec<u64>, object: Object) -> u32 {
    *numbers.entry(object.0).or_insert_with(|| {
        objects.push(object.0);
        objects.len() as u32 - 1
    })
}

/// The ranges that an attempt is reading.
#[derive(Default)]
struct Scopes {
    open: Vec<(u32, Moment)>,
    /// One more than the largest number so far.
    next: u32,
}

impl Scopes {
    fn clear(&mut self) {
        self.open.clear();
        self.next = 0;
    }

    fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn is_open(&self, range: u32) -> bool {
        self.open.iter().any(|(open, _)| *open == range)
    }

    fn begin(&mut self, range: u32, from: Moment) -> Result<(), &'static str> {
        if range < self.next {
            return Err("two ranges of an attempt have the same number");
        }
        self.next = range.checked_add(1).ok_or("a range's number is absurd")?;
        self.open.push((range, from));
        Ok(())
    }

    fn end(&mut self, range: u32, to: Moment) -> Result<(), &'static str> {
        let position = self.open.iter().position(|(open, _)| *open == range);
        let Some(position) = position else {
            return Err("a range ends that is not read");
        };
        let (_, from) = self.open.swap_remove(position);
        match from <= to {
            true => Ok(()),
            false => Err("a range ends before it begins"),
        }
    }
}

/// A long list that grows without being copied, and shrinks while it is read.
#[derive(Default)]
pub(crate) struct Sequence(Vec<Vec<u32>>);

/// Elements of one piece of a [`Sequence`].
const PIECE: usize = 1 << 18;

impl Sequence {
    fn extend(&mut self, mut elements: &[u32]) {
        while !elements.is_empty() {
            if self.0.last().is_none_or(|piece| piece.len() == PIECE) {
                self.0.push(Vec::with_capacity(PIECE));
            }
            let piece = self.0.last_mut().expect("one was added");
            let (now, later) = elements.split_at(elements.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            elements = later;
        }
    }

    /// The elements in order.
    pub(crate) fn into_elements(self) -> impl Iterator<Item = u32> {
        self.0.into_iter().flatten()
    }
}
