//! Events, and their encoding as words.
//!
//! A log is a sequence of 64-bit words. An event is one head word and its operands:
//!
//! ```text
//!  63            32 31              8 7        0
//! ┌────────────────┬─────────────────┬──────────┐
//! │ detail         │ operand words   │ kind     │
//! └────────────────┴─────────────────┴──────────┘
//! ```

use std::fmt;

/// A record's cell, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object(pub u64);

/// A version of an object: the tid at which it was installed, flags apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// A reading of the counter that all workers of a run share; see [`Clock`](crate::Clock).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// After every reading.
    pub const LATER: Moment = Moment(u64::MAX);
}

/// Two moments between which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Before it began.
    pub from: Moment,
    /// After it was done.
    pub to: Moment,
}

/// An index of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId {
    /// The table.
    pub table: u32,
    /// The index's position in the table.
    pub index: u16,
}

/// One column of one object and a fingerprint of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The column's position in its table.
    pub column: u16,
    /// A hash of its value; equal values have equal fingerprints.
    pub print: u32,
}

impl Cell {
    /// As one word of a log.
    pub const fn to_word(self) -> u64 {
        (self.column as u64) << 32 | self.print as u64
    }

    /// From a word of a log.
    pub const fn from_word(word: u64) -> Cell {
        Cell {
            column: (word >> 32) as u16,
            print: word as u32,
        }
    }
}

/// An index key in memcmp order: as words, the first byte of the key highest.
pub type Key<'a> = &'a [u8];

/// What a write did to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Changed some columns of a row.
    Update,
    /// Made a row: all columns, and its existence.
    Insert,
    /// Took a row away: all columns, and its existence.
    Delete,
}

/// What happened to an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// It can be met from now on.
    Added,
    /// It cannot be met any more.
    Removed,
}

/// Something that an attempt did. The events of an attempt lie between its [`Event::Begin`] and its
/// [`Event::Commit`], [`Event::Abort`] or [`Event::Reject`], without others between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An attempt starts.
    Begin {
        /// The procedure's number in the history's list of names.
        procedure: u32,
        /// Before the call began; the same for all attempts of a call.
        invoked: Moment,
    },
    /// Columns of an object were read. The object exists in this version. Where the attempt has
    /// written a column before, the cell holds what it wrote.
    Read {
        /// The object.
        object: Object,
        /// The version that it had.
        version: Version,
        /// What was read; may be empty: that the object exists was relied on.
        cells: &'a [u64],
    },
    /// An object was found not to exist (not inserted yet, or deleted).
    ReadAbsent {
        /// The object.
        object: Object,
        /// The version that it had.
        version: Version,
        /// Whether `version` is the timestamp of the snapshot that was read instead: the version
        /// that it had is the newest up to that. It need not be known any more.
        as_of: bool,
    },
    /// The attempt wrote to an object, at this point of its program. No other attempt may see the
    /// write before it is installed.
    Write {
        /// The object.
        object: Object,
        /// How.
        kind: WriteKind,
        /// The columns written and their new values; for a deletion empty.
        cells: &'a [u64],
    },
    /// The reading of a range of an index begins.
    RangeBegin {
        /// A number for the range, unique within the attempt: ranges nest.
        range: u32,
        /// The index.
        index: IndexId,
        /// The first key of the range.
        low: Key<'a>,
        /// The last key of the range: keys that begin with these bytes are in it too.
        high: Key<'a>,
        /// Before the first entry was looked for.
        from: Moment,
    },
    /// An entry was met in a range, whatever became of it.
    Met {
        /// The range.
        range: u32,
        /// The object that the entry leads to.
        object: Object,
    },
    /// The reading of a range ends.
    RangeEnd {
        /// The range.
        range: u32,
        /// After the last entry was looked for.
        to: Moment,
        /// When it was left early: the key of the last entry met, behind which nothing was relied
        /// on (before which, for a descending scan). Empty when the whole range was read.
        stopped_at: Key<'a>,
        /// Whether the scan was descending.
        reverse: bool,
    },
    /// An index entry was added or removed by this attempt.
    Entry {
        /// The index.
        index: IndexId,
        /// What was done.
        change: EntryChange,
        /// The object that the entry leads to.
        object: Object,
        /// When. Of an entry that is removed some time after its transaction, when no snapshot has
        /// it any more, the end is [`Moment::LATER`].
        window: Window,
        /// The entry's key.
        key: Key<'a>,
    },
    /// What the attempt wrote to an object became its current version. Only of attempts that
    /// commit.
    Install {
        /// The object.
        object: Object,
        /// The version that it had until then.
        previous: Version,
        /// The version that it has now.
        version: Version,
    },
    /// The attempt ends committed.
    Commit {
        /// After it ended.
        responded: Moment,
    },
    /// The attempt ends without effects and is repeated.
    Abort {
        /// The cause's number in the history's list of names.
        cause: u32,
        /// After it ended.
        responded: Moment,
    },
    /// The attempt ends without effects, as its procedure or its client wanted.
    Reject {
        /// After it ended.
        responded: Moment,
    },
}

/// A log that cannot be what a [`Log`](crate::Log) recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The position of the event, in words from the start of the log.
    pub position: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "corrupted event at word {}: {}",
            self.position, self.reason
        )
    }
}

impl std::error::Error for Corrupt {}

pub(crate) mod kind {
    pub const BEGIN: u8 = 1;
    pub const READ: u8 = 2;
    pub const READ_ABSENT: u8 = 3;
    pub const WRITE: u8 = 4;
    pub const RANGE_BEGIN: u8 = 5;
    pub const MET: u8 = 6;
    pub const RANGE_END: u8 = 7;
    pub const ENTRY: u8 = 8;
    pub const INSTALL: u8 = 9;
    pub const COMMIT: u8 = 10;
    pub const ABORT: u8 = 11;
    pub const REJECT: u8 = 12;
}

/// The most operand words of an event.
pub(crate) const OPERANDS_MAX: usize = (1 << 24) - 1;

pub(crate) fn head(kind: u8, operands: usize, detail: u32) -> u64 {
    assert!(
        operands <= OPERANDS_MAX,
        "{operands} operand words in an event, at most {OPERANDS_MAX} fit"
    );
    (detail as u64) << 32 | (operands as u64) << 8 | kind as u64
}

pub(crate) const fn index_word(index: IndexId) -> u64 {
    (index.table as u64) << 16 | index.index as u64
}

/// The operand words of the event with this head.
pub(crate) const fn operands(head: u64) -> usize {
    (head >> 8) as usize & OPERANDS_MAX
}

/// The event whose head is `words[0]`, and its length in words.
pub(crate) fn decode(words: &[u64]) -> Result<(Event<'_>, usize), &'static str> {
    let head = *words.first().ok_or("the log ends")?;
    let (kind, count, detail) = (head as u8, operands(head), (head >> 32) as u32);
    let operand = words
        .get(1..1 + count)
        .ok_or("the log ends within an event")?;
    let exactly = |count: usize| match operand.len() == count {
        true => Ok(()),
        false => Err("wrong number of operands for its kind"),
    };
    let at_least = |count: usize| match operand.len() >= count {
        true => Ok(()),
        false => Err("too few operands for its kind"),
    };
    let event = match kind {
        kind::BEGIN => {
            exactly(1)?;
            Event::Begin {
                procedure: detail,
                invoked: Moment(operand[0]),
            }
        }
        kind::READ => {
            at_least(2)?;
            Event::Read {
                object: Object(operand[0]),
                version: Version(operand[1]),
                cells: &operand[2..],
            }
        }
        kind::READ_ABSENT => {
            exactly(2)?;
            Event::ReadAbsent {
                object: Object(operand[0]),
                version: Version(operand[1]),
                as_of: match detail {
                    0 => false,
                    1 => true,
                    _ => return Err("unknown kind of absence"),
                },
            }
        }
        kind::WRITE => {
            at_least(1)?;
            Event::Write {
                object: Object(operand[0]),
                kind: match detail {
                    0 => WriteKind::Update,
                    1 => WriteKind::Insert,
                    2 => WriteKind::Delete,
                    _ => return Err("unknown kind of write"),
                },
                cells: &operand[1..],
            }
        }
        kind::RANGE_BEGIN => {
            at_least(3)?;
            let (low, rest) = key_at(&operand[2..])?;
            let (high, rest) = key_at(rest)?;
            if !rest.is_empty() {
                return Err("operands left behind the keys");
            }
            Event::RangeBegin {
                range: detail,
                index: index_of(operand[0])?,
                from: Moment(operand[1]),
                low,
                high,
            }
        }
        kind::MET => {
            exactly(1)?;
            Event::Met {
                range: detail,
                object: Object(operand[0]),
            }
        }
        kind::RANGE_END => {
            at_least(3)?;
            let (stopped_at, rest) = key_at(&operand[2..])?;
            if !rest.is_empty() {
                return Err("operands left behind the key");
            }
            Event::RangeEnd {
                range: detail,
                to: Moment(operand[0]),
                reverse: match operand[1] {
                    0 => false,
                    1 => true,
                    _ => return Err("unknown direction of a scan"),
                },
                stopped_at,
            }
        }
        kind::ENTRY => {
            at_least(5)?;
            let (key, rest) = key_at(&operand[4..])?;
            if !rest.is_empty() {
                return Err("operands left behind the key");
            }
            Event::Entry {
                index: index_of(operand[0])?,
                object: Object(operand[1]),
                window: Window {
                    from: Moment(operand[2]),
                    to: Moment(operand[3]),
                },
                change: match detail {
                    0 => EntryChange::Added,
                    1 => EntryChange::Removed,
                    _ => return Err("unknown change of an entry"),
                },
                key,
            }
        }
        kind::INSTALL => {
            exactly(3)?;
            Event::Install {
                object: Object(operand[0]),
                previous: Version(operand[1]),
                version: Version(operand[2]),
            }
        }
        kind::COMMIT => {
            exactly(1)?;
            Event::Commit {
                responded: Moment(operand[0]),
            }
        }
        kind::ABORT => {
            exactly(1)?;
            Event::Abort {
                cause: detail,
                responded: Moment(operand[0]),
            }
        }
        kind::REJECT => {
            exactly(1)?;
            Event::Reject {
                responded: Moment(operand[0]),
            }
        }
        _ => return Err("unknown kind of event"),
    };
    Ok((event, 1 + count))
}

fn index_of(word: u64) -> Result<IndexId, &'static str> {
    match u32::try_from(word >> 16) {
        Ok(table) => Ok(IndexId {
            table,
            index: word as u16,
        }),
        Err(_) => Err("no such index"),
    }
}

/// A key that starts with its length in bytes, and what follows it.
fn key_at(words: &[u64]) -> Result<(Key<'_>, &[u64]), &'static str> {
    let (&length, rest) = words.split_first().ok_or("a key is missing")?;
    let length = usize::try_from(length).map_err(|_| "a key's length is absurd")?;
    if length > rest.len() * 8 {
        return Err("a key is cut off");
    }
    let (content, rest) = rest.split_at(length.div_ceil(8));
    // SAFETY: `content` is `length.div_ceil(8)` initialised words, so at least `length` bytes, and
    // bytes need no alignment.
    let bytes = unsafe { std::slice::from_raw_parts(content.as_ptr().cast::<u8>(), length) };
    Ok((bytes, rest))
}

/// Appends a key in the form that [`key_at`] reads.
pub(crate) fn push_key(words: &mut Vec<u64>, key: Key<'_>) {
    words.push(key.len() as u64);
    for chunk in key.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_ne_bytes(bytes));
    }
}

/// The words that [`push_key`] appends.
pub(crate) const fn key_words(key: Key<'_>) -> usize {
    1 + key.len().div_ceil(8)
}
