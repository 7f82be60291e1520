//! Entries: what the payload of a group of [blocks](super::block) consists of.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | the bytes of the entry that come after these four |
//! | 1 | its kind |
//! | … | by kind, as below |
//!
//! | kind | content |
//! |---|---|
//! | 1, *commit* | log epoch (8), and what a transaction wrote, as [`kiln_storage::redo`] has it |
//! | 2, *statement* | log epoch (8), the text of a change of the catalog |
//! | 3, *outcome* | log epoch (8), the key of a call after its length (4), and what is answered when it is submitted again |
//! | 4, *command* | log epoch (8), order (8), the number of changes that it has made (4), and a call that has the same effect when it is made again: the procedure's name after its length (4), and the arguments |
//! | 5, *repeated outcome* | as an outcome, of a call whose outcome a checkpoint has written once more |
//! | 6, *sequence* | log epoch (8), the number of a sequence (4), the version of its state (8), the last value that may have been given (8), and whether it was (1) |
//! | 7, *block* | log epoch (8), and the entries of a transaction block that has changed the catalog, one after the other, of the same epoch: statements, commits and sequences, all of them or none |
//!
//! Entries of a log epoch are in one block, or in some in a row. Within an epoch commits and
//! commands are in any order: what decides is their [order](kiln_storage::journal::Commit::order),
//! which is also the first of a commit's bytes. A statement is of an epoch of its own, and so is a
//! block.

use kiln_storage::bytes::{Reader, read_string};
use kiln_storage::sequence::{SequenceId, SequenceState};

/// An entry that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// What a transaction wrote.
    Commit {
        /// Its log epoch.
        epoch: u64,
        /// For [`kiln_storage::redo`].
        commit: &'a [u8],
    },
    /// A change of the catalog.
    Statement {
        /// The log epoch before which all commits come before it, and from which on all come after
        /// it.
        epoch: u64,
        /// The statement, written down.
        text: &'a str,
    },
    /// A commit, as the call that it is of.
    Command {
        /// Its log epoch.
        epoch: u64,
        /// Its order.
        order: u64,
        /// The number of its changes.
        changes: u32,
        /// What was called, for the engine.
        call: &'a [u8],
    },
    /// How a call ended that has an idempotency key.
    Outcome {
        /// The log epoch of its commit.
        epoch: u64,
        /// The key.
        key: &'a [u8],
        /// The answer.
        answer: &'a [u8],
        /// Whether a checkpoint has written it once more: the call had ended before those whose
        /// outcomes are not repeated.
        is_repeated: bool,
    },
    /// How far a sequence has got, ahead of the values that it gives.
    Sequence {
        /// A log epoch that is not after that of any commit which has one of the values.
        epoch: u64,
        /// The sequence.
        id: SequenceId,
        /// How far.
        state: SequenceState,
    },
    /// A transaction block that has changed the catalog.
    Block {
        /// Its log epoch, as of a statement.
        epoch: u64,
        /// What it did, in this order: for [`parts`].
        parts: &'a [u8],
    },
}

impl Entry<'_> {
    /// Its log epoch.
    pub fn epoch(&self) -> u64 {
        match self {
            Entry::Commit { epoch, .. }
            | Entry::Statement { epoch, .. }
            | Entry::Command { epoch, .. }
            | Entry::Outcome { epoch, .. }
            | Entry::Sequence { epoch, .. }
            | Entry::Block { epoch, .. } => *epoch,
        }
    }

    /// Its place among those of its group: commits by log epoch and order.
    pub(crate) fn order(&self) -> (u64, u64) {
        let order = match self {
            Entry::Commit { commit, .. } => commit.first_chunk().copied().map(u64::from_le_bytes),
            Entry::Command { order, .. } => Some(*order),
            Entry::Statement { .. }
            | Entry::Outcome { .. }
            | Entry::Sequence { .. }
            | Entry::Block { .. } => None,
        };
        (self.epoch(), order.unwrap_or_default())
    }
}

const COMMIT: u8 = 1;
const STATEMENT: u8 = 2;
const OUTCOME: u8 = 3;
const COMMAND: u8 = 4;
const REPEATED_OUTCOME: u8 = 5;
const SEQUENCE: u8 = 6;
const BLOCK: u8 = 7;

/// Bytes of an entry before its content.
pub const HEAD_BYTES: usize = 4 + 1 + 8;

/// Begins the entry of a commit at the end of `bytes`; [`end`] ends it when
/// [`Commit::append_within`] has followed. Returns where the entry is.
///
/// [`Commit::append_within`]: kiln_storage::journal::Commit::append_within
#[inline]
pub fn begin_commit(bytes: &mut Vec<u8>, epoch: u64) -> usize {
    begin(bytes, COMMIT, epoch)
}

/// Ends the entry that begins at `start` and goes to the end of `bytes`.
#[inline]
pub fn end(bytes: &mut [u8], start: usize) {
    let length = (bytes.len() - start - 4) as u32;
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a commit as the call that it is of.
#[inline]
pub fn append_command(bytes: &mut Vec<u8>, epoch: u64, order: u64, changes: u32, call: &[u8]) {
    let start = begin(bytes, COMMAND, epoch);
    bytes.extend_from_slice(&order.to_le_bytes());
    bytes.extend_from_slice(&changes.to_le_bytes());
    bytes.extend_from_slice(call);
    end(bytes, start);
}

/// Appends a change of the catalog.
pub fn append_statement(bytes: &mut Vec<u8>, epoch: u64, text: &str) {
    let start = begin(bytes, STATEMENT, epoch);
    bytes.extend_from_slice(text.as_bytes());
    end(bytes, start);
}

/// Appends how a call ended that has an idempotency key.
pub fn append_outcome(bytes: &mut Vec<u8>, epoch: u64, key: &[u8], answer: &[u8]) {
    append_outcome_as(OUTCOME, bytes, epoch, key, answer);
}

/// Appends once more how a call ended that has an idempotency key: the entry that said so may be
/// dropped.
pub fn append_repeated_outcome(bytes: &mut Vec<u8>, epoch: u64, key: &[u8], answer: &[u8]) {
    append_outcome_as(REPEATED_OUTCOME, bytes, epoch, key, answer);
}

/// Appends how far a sequence has got.
pub fn append_sequence(bytes: &mut Vec<u8>, epoch: u64, id: SequenceId, state: SequenceState) {
    let start = begin(bytes, SEQUENCE, epoch);
    bytes.extend_from_slice(&id.0.to_le_bytes());
    bytes.extend_from_slice(&state.version.to_le_bytes());
    bytes.extend_from_slice(&state.value.to_le_bytes());
    bytes.push(state.is_called.into());
    end(bytes, start);
}

/// What a transaction block that changes the catalog has done so far, as entries.
#[derive(Clone, Debug, Default)]
pub struct Parts(Vec<u8>);

impl Parts {
    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// It has changed the catalog by this statement.
    pub fn statement(&mut self, text: &str) {
        append_statement(&mut self.0, 0, text);
    }

    /// It has written what `append` appends, as [`kiln_storage::redo`] has it.
    pub fn commit(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        let start = begin_commit(&mut self.0, 0);
        append(&mut self.0);
        end(&mut self.0, start);
    }

    /// A sequence that it has made, or changed, has got this far.
    pub fn sequence(&mut self, id: SequenceId, state: SequenceState) {
        append_sequence(&mut self.0, 0, id, state);
    }
}

/// Appends a transaction block that has changed the catalog.
pub fn append_block(bytes: &mut Vec<u8>, epoch: u64, parts: &Parts) {
    let start = begin(bytes, BLOCK, epoch);
    let mut at = bytes.len();
    bytes.extend_from_slice(&parts.0);
    while let Some(head) = bytes.get_mut(at..at + HEAD_BYTES) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
        head[5..].copy_from_slice(&epoch.to_le_bytes());
        at += 4 + length as usize;
    }
    end(bytes, start);
}

fn append_outcome_as(kind: u8, bytes: &mut Vec<u8>, epoch: u64, key: &[u8], answer: &[u8]) {
    let start = begin(bytes, kind, epoch);
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(answer);
    end(bytes, start);
}

#[inline]
fn begin(bytes: &mut Vec<u8>, kind: u8, epoch: u64) -> usize {
    let start = bytes.len();
    let mut head = [0; HEAD_BYTES];
    head[4] = kind;
    head[5..].copy_from_slice(&epoch.to_le_bytes());
    bytes.extend_from_slice(&head);
    start
}

/// Where the entries of log epochs after `through` begin in bytes that were appended here, in the
/// order of their log epochs, and how many come before.
pub(crate) fn split(bytes: &[u8], through: u64) -> (usize, u64) {
    let (mut at, mut entries) = (0, 0);
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
        if u64::from_le_bytes(head[5..].try_into().expect("8 bytes")) > through {
            break;
        }
        (at, entries) = (at + 4 + length as usize, entries + 1);
    }
    (at, entries)
}

/// The entries of a payload. After the first that cannot be read there is none.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    reader: Reader<'a>,
}

impl<'a> Entries<'a> {
    /// The entries of this payload.
    pub fn new(payload: &'a [u8]) -> Entries<'a> {
        Entries {
            reader: Reader::new(payload),
        }
    }
}

/// The entries of a [block](Entry::Block): there is no block among them.
pub fn parts(payload: &[u8]) -> impl Iterator<Item = Result<Entry<'_>, NotAnEntry>> {
    Entries::new(payload).map(|part| match part {
        Ok(Entry::Block { .. }) => Err(NotAnEntry),
        part => part,
    })
}

/// The payload has something in this place that is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnEntry;

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, NotAnEntry>;

    fn next(&mut self) -> Option<Result<Entry<'a>, NotAnEntry>> {
        if self.reader.rest().is_empty() {
            return None;
        }
        let entry = read_string(&mut self.reader).ok().and_then(read);
        if entry.is_none() {
            self.reader = Reader::new(&[]);
        }
        Some(entry.ok_or(NotAnEntry))
    }
}

fn read(bytes: &[u8]) -> Option<Entry<'_>> {
    let mut reader = Reader::new(bytes);
    let kind = reader.number(1).ok()? as u8;
    let epoch = reader.number(8).ok()?;
    match kind {
        COMMIT => Some(Entry::Commit {
            epoch,
            commit: reader.rest(),
        }),
        STATEMENT => Some(Entry::Statement {
            epoch,
            text: std::str::from_utf8(reader.rest()).ok()?,
        }),
        COMMAND => Some(Entry::Command {
            epoch,
            order: reader.number(8).ok()?,
            changes: reader.number(4).ok()? as u32,
            call: reader.rest(),
        }),
        OUTCOME | REPEATED_OUTCOME => Some(Entry::Outcome {
            epoch,
            key: read_string(&mut reader).ok()?,
            answer: reader.rest(),
            is_repeated: kind == REPEATED_OUTCOME,
        }),
        BLOCK => Some(Entry::Block {
            epoch,
            parts: reader.rest(),
        }),
        SEQUENCE => {
            let id = SequenceId(reader.number(4).ok()? as u32);
            let state = SequenceState {
                version: reader.number(8).ok()?,
                value: reader.number(8).ok()? as i64,
                is_called: match reader.rest() {
                    [0] => false,
                    [1] => true,
                    _ => return None,
                },
            };
            Some(Entry::Sequence { epoch, id, state })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_appended() {
        let mut bytes = Vec::new();
        let start = begin_commit(&mut bytes, 3);
        bytes.extend_from_slice(b"changes");
        end(&mut bytes, start);
        append_statement(&mut bytes, 4, "DROP TABLE t");
        append_outcome(&mut bytes, 4, b"key", b"");
        append_repeated_outcome(&mut bytes, 5, b"", b"answer");
        append_command(&mut bytes, 5, 7, 2, b"call");
        let (id, state) = (
            SequenceId(9),
            SequenceState {
                version: 2,
                value: -33,
                is_called: true,
            },
        );
        append_sequence(&mut bytes, 6, id, state);
        let mut parts = Parts::default();
        parts.statement("CREATE TABLE t ()");
        parts.commit(|bytes| bytes.extend_from_slice(b"row"));
        let block_at = bytes.len();
        append_block(&mut bytes, 7, &parts);
        let entries: Result<Vec<_>, _> = Entries::new(&bytes).collect();
        let expected = [
            Entry::Commit {
                epoch: 3,
                commit: b"changes",
            },
            Entry::Statement {
                epoch: 4,
                text: "DROP TABLE t",
            },
            Entry::Outcome {
                epoch: 4,
                key: b"key",
                answer: b"",
                is_repeated: false,
            },
            Entry::Outcome {
                epoch: 5,
                key: b"",
                answer: b"answer",
                is_repeated: true,
            },
            Entry::Command {
                epoch: 5,
                order: 7,
                changes: 2,
                call: b"call",
            },
            Entry::Sequence {
                epoch: 6,
                id,
                state,
            },
            Entry::Block {
                epoch: 7,
                parts: &bytes[block_at + HEAD_BYTES..],
            },
        ];
        assert_eq!(entries.as_deref(), Ok(&expected[..]));
        let parts: Result<Vec<_>, _> = super::parts(&bytes[block_at + HEAD_BYTES..]).collect();
        assert!(super::parts(&bytes[block_at..]).all(|part| part.is_err()));
        let expected_parts = [
            Entry::Statement {
                epoch: 7,
                text: "CREATE TABLE t ()",
            },
            Entry::Commit {
                epoch: 7,
                commit: b"row",
            },
        ];
        assert_eq!(parts.as_deref(), Ok(&expected_parts[..]));
        for length in 0..bytes.len() {
            let read: Vec<_> = Entries::new(&bytes[..length]).collect();
            let whole = read.iter().filter(|entry| entry.is_ok()).count();
            assert!(whole < 7 && read[..whole] == expected.map(Ok)[..whole]);
        }
    }

    #[test]
    fn what_is_no_entry_ends_the_payload() {
        for bytes in [
            &[0, 0, 0, 0][..],
            &[9, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0],
            &[255, 255, 255, 255, 1],
            &[10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF],
        ] {
            let entries: Vec<_> = Entries::new(bytes).collect();
            assert_eq!(entries, [Err(NotAnEntry)], "{bytes:?}");
        }
    }
}
