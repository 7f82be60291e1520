//! Dependencies by objects, and whether reads are of the values that their versions have.
//!
//! The versions of one object are gone through in their order, with the state of each column: who
//! wrote it last, what it wrote, and who has read it since. Existence is one more column. An
//! insertion or a deletion writes all of them.

use kiln_history::{Cell, Event, WriteKind};

use crate::accesses::{Access, AccessKind};
use crate::attempts::Attempts;
use crate::graph::{EXISTENCE, Edge, Kind, NOBODY, Reason, Sink};

/// Something wrong with one object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finding {
    SameVersion {
        object: u32,
        version: u64,
        first: u32,
        second: u32,
    },
    ReplacedTwice {
        object: u32,
        replaced: u64,
        first: (u32, u64),
        second: (u32, u64),
    },
    Broken {
        object: u32,
        attempt: u32,
        replaced: u64,
        version: u64,
        current: u64,
    },
    DidNotGrow {
        object: u32,
        attempt: u32,
        replaced: u64,
        version: u64,
    },
    UnknownVersion {
        object: u32,
        attempt: u32,
        version: u64,
        current: u64,
    },
    /// The attempt read the version that it installed later.
    OwnFuture {
        object: u32,
        attempt: u32,
        version: u64,
    },
    Existence {
        object: u32,
        attempt: u32,
        version: u64,
        found: bool,
        /// The attempt that made it so, or first read it so.
        source: u32,
    },
    Value {
        object: u32,
        column: u32,
        attempt: u32,
        version: u64,
        print: u32,
        /// What it should have been.
        expected: u32,
        /// The attempt that wrote the version; or the first that read it, when it was there before
        /// the history began.
        source: u32,
        is_learned: bool,
    },
    Own {
        object: u32,
        column: u32,
        attempt: u32,
    },
}

/// Findings that are kept of each thread; all are counted.
const FINDINGS_MAX: usize = 64;

/// One column of the present object.
#[derive(Default)]
struct Column {
    writer: u32,
    version: u64,
    /// The fingerprint, or whether the object exists; unknown until it is written or read.
    print: Option<u32>,
    /// The attempt that told the fingerprint: the writer, or the first reader.
    source: u32,
    /// The attempts that have read it since.
    readers: Vec<u32>,
}

impl Column {
    fn is_written(&mut self, writer: u32, version: u64, print: Option<u32>) {
        self.writer = writer;
        self.version = version;
        self.print = print;
        self.source = writer;
        self.readers.clear();
    }
}

/// Goes through the versions of objects.
pub(crate) struct Sweep<'a, S> {
    attempts: &'a Attempts<'a>,
    pub(crate) sink: S,
    pub(crate) findings: Vec<Finding>,
    pub(crate) findings_count: u64,
    object: u32,
    /// The first `columns_len` are the present object's; the others keep their memory.
    columns: Vec<Column>,
    columns_len: usize,
    /// What the attempt wrote to the object before the read that is looked at.
    own: Vec<(u32, u32)>,
}

impl<'a, S: Sink> Sweep<'a, S> {
    pub(crate) fn new(attempts: &'a Attempts<'a>, sink: S) -> Sweep<'a, S> {
        Sweep {
            attempts,
            sink,
            findings: Vec::new(),
            findings_count: 0,
            object: 0,
            columns: Vec::new(),
            columns_len: 0,
            own: Vec::new(),
        }
    }

    fn find(&mut self, finding: Finding) {
        self.findings_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    /// Goes through one object's accesses, which become sorted.
    pub(crate) fn object(&mut self, object: u32, accesses: &mut [Access]) {
        accesses.sort_unstable();
        self.object = object;
        self.columns_len = 0;
        self.column(EXISTENCE).is_written(NOBODY, 0, None);
        let mut current = None;
        let mut rest = &*accesses;
        while let Some(first) = rest.first() {
            let version = first.version;
            let length = rest.partition_point(|access| access.version == version);
            let (group, later) = rest.split_at(length);
            rest = later;
            let writes_end = group.partition_point(|access| access.kind() < AccessKind::Install);
            let reads_begin = group.partition_point(|access| access.kind() <= AccessKind::Install);
            let (writes, reads) = (&group[..writes_end], &group[reads_begin..]);
            let installs = &group[writes_end..reads_begin];
            if let [install, others @ ..] = installs {
                self.check_order(accesses, *install, current);
                for other in others {
                    self.find(Finding::SameVersion {
                        object,
                        version,
                        first: install.attempt(),
                        second: other.attempt(),
                    });
                }
                for install in installs {
                    let own = |write: &&Access| write.attempt() == install.attempt();
                    self.write(install.attempt(), version, writes.iter().filter(own));
                }
                current = Some(version);
            }
            for read in reads {
                if !self.is_as_of(*read) {
                    current.get_or_insert(version);
                }
                self.read(*read, current.unwrap_or(version));
            }
        }
    }

    /// Compares the version that was replaced with the one that was current.
    fn check_order(&mut self, accesses: &[Access], install: Access, current: Option<u64>) {
        let (object, attempt) = (self.object, install.attempt());
        let version = install.version;
        let replaced = self.replaced(install);
        if replaced >= version {
            return self.find(Finding::DidNotGrow {
                object,
                attempt,
                replaced,
                version,
            });
        }
        let Some(current) = current.filter(|current| *current != replaced) else {
            return;
        };
        // Who has replaced it before?
        let begin = accesses.partition_point(|access| access.version <= replaced);
        let mut installs = accesses[begin..]
            .iter()
            .filter(|access| access.kind() == AccessKind::Install);
        match installs.next() {
            Some(earlier) if earlier.version < version && self.replaced(*earlier) == replaced => {
                self.find(Finding::ReplacedTwice {
                    object,
                    replaced,
                    first: (earlier.attempt(), earlier.version),
                    second: (attempt, version),
                });
            }
            _ => self.find(Finding::Broken {
                object,
                attempt,
                replaced,
                version,
                current,
            }),
        }
    }

    /// Whether a read names the timestamp of a snapshot instead of a version.
    fn is_as_of(&self, read: Access) -> bool {
        let event = self.attempts.event(read.attempt(), read.position);
        matches!(event, Event::ReadAbsent { as_of: true, .. })
    }

    fn replaced(&self, install: Access) -> u64 {
        match self.attempts.event(install.attempt(), install.position) {
            Event::Install { previous, .. } => previous.0,
            _ => unreachable!("the access is an installation"),
        }
    }

    /// The state of a column, which is the object's own last one if nothing happened to it since.
    fn column(&mut self, column: u32) -> &mut Column {
        let position = column as usize;
        while self.columns_len <= position {
            if self.columns.len() == self.columns_len {
                self.columns.push(Column::default());
            }
            // Existence is written whenever all columns are.
            let whole = &self.columns[EXISTENCE as usize];
            let (writer, version) = (whole.writer, whole.version);
            self.columns[self.columns_len].is_written(writer, version, None);
            self.columns_len += 1;
        }
        &mut self.columns[position]
    }

    /// The edges to the attempt that writes the next version of a column.
    fn replace(&mut self, column: u32, writer: u32, version: u64) {
        self.column(column);
        let state = &self.columns[column as usize];
        let object = self.object;
        let mut edge = |from: u32, kind: Kind| {
            if from != writer && from != NOBODY {
                let reason = Reason::Item {
                    kind,
                    object,
                    column,
                    versions: (state.version, version),
                };
                let to = writer;
                self.sink.edge(Edge { from, to, reason });
            }
        };
        edge(state.writer, Kind::WriteWrite);
        for reader in &state.readers {
            edge(*reader, Kind::ReadWrite);
        }
    }

    /// One transaction's writes become the current version.
    fn write<'w>(
        &mut self,
        attempt: u32,
        version: u64,
        writes: impl Iterator<Item = &'w Access> + Clone,
    ) {
        let attempts = self.attempts;
        let event = |write: &Access| match attempts.event(attempt, write.position) {
            Event::Write { kind, cells, .. } => (kind, cells),
            _ => unreachable!("the access is a write"),
        };
        let mut exists = None;
        for write in writes.clone() {
            match event(write).0 {
                WriteKind::Update => {}
                WriteKind::Insert => exists = Some(true),
                WriteKind::Delete => exists = Some(false),
            }
        }
        if let Some(exists) = exists {
            for column in 0..self.columns_len as u32 {
                self.replace(column, attempt, version);
            }
            self.columns_len = 0;
            let print = Some(u32::from(exists));
            self.column(EXISTENCE).is_written(attempt, version, print);
        }
        for write in writes {
            let (kind, cells) = event(write);
            if kind == WriteKind::Delete {
                continue;
            }
            for cell in cells.iter().map(|word| Cell::from_word(*word)) {
                let column = u32::from(cell.column) + 1;
                self.replace(column, attempt, version);
                self.column(column)
                    .is_written(attempt, version, Some(cell.print));
            }
        }
    }

    /// One read, of the version that is current if it is `current`.
    fn read(&mut self, read: Access, current: u64) {
        let attempt = read.attempt();
        let event = self.attempts.event(attempt, read.position);
        let (cells, exists): (&[u64], bool) = match event {
            Event::Read { cells, .. } => (cells, true),
            Event::ReadAbsent { .. } => (&[], false),
            _ => unreachable!("the access is a read"),
        };
        self.own.clear();
        let own_existence = match read.kind() {
            AccessKind::ReadOwn => self.gather_own(read),
            _ => None,
        };
        let (object, version) = (self.object, read.version);
        if let Some(own) = own_existence {
            if own != exists {
                self.find(Finding::Own {
                    object,
                    column: EXISTENCE,
                    attempt,
                });
                return;
            }
        } else {
            if version != current && !self.is_as_of(read) {
                self.find(Finding::UnknownVersion {
                    object,
                    attempt,
                    version,
                    current,
                });
                return;
            }
            if !self.depend(EXISTENCE, attempt, version, u32::from(exists)) {
                let source = self.column(EXISTENCE).source;
                self.find(Finding::Existence {
                    object,
                    attempt,
                    version,
                    found: exists,
                    source,
                });
                return;
            }
        }
        for cell in cells.iter().map(|word| Cell::from_word(*word)) {
            let column = u32::from(cell.column) + 1;
            let own = self.own.iter().rfind(|(own, _)| *own == column);
            if let Some((_, print)) = own {
                if *print != cell.print {
                    self.find(Finding::Own {
                        object,
                        column,
                        attempt,
                    });
                }
            } else if own_existence.is_none() && !self.depend(column, attempt, version, cell.print)
            {
                let state = self.column(column);
                let finding = Finding::Value {
                    object,
                    column,
                    attempt,
                    version,
                    print: cell.print,
                    expected: state.print.unwrap_or(0),
                    source: state.source,
                    is_learned: state.source != state.writer,
                };
                self.find(finding);
            }
        }
    }

    /// Notes that an attempt depends on a column's current state. Returns whether it found what
    /// the column ought to hold.
    fn depend(&mut self, column: u32, reader: u32, version: u64, print: u32) -> bool {
        let object = self.object;
        let state = self.column(column);
        if state.writer == reader {
            self.find(Finding::OwnFuture {
                object,
                attempt: reader,
                version,
            });
            return true;
        }
        if state.print.is_none() {
            state.print = Some(print);
            state.source = reader;
        }
        let is_right = state.print == Some(print);
        if state.readers.last() != Some(&reader) {
            state.readers.push(reader);
        }
        let from = state.writer;
        if from != NOBODY {
            let reason = Reason::Item {
                kind: Kind::WriteRead,
                object,
                column,
                versions: (state.version, version),
            };
            let to = reader;
            self.sink.edge(Edge { from, to, reason });
        }
        is_right
    }

    /// Gathers what the attempt wrote to the object before a read of its own. Returns whether the
    /// object existed for it, if it inserted or deleted it.
    fn gather_own(&mut self, read: Access) -> Option<bool> {
        let address = self.attempts.objects[self.object as usize];
        let mut exists = None;
        for (position, event) in self.attempts.events(read.attempt()) {
            if position >= read.position {
                break;
            }
            let Event::Write {
                object,
                kind,
                cells,
            } = event
            else {
                continue;
            };
            if object.0 != address {
                continue;
            }
            match kind {
                WriteKind::Update => {}
                WriteKind::Insert => exists = Some(true),
                WriteKind::Delete => exists = Some(false),
            }
            if kind != WriteKind::Update {
                self.own.clear();
            }
            let cells = cells.iter().map(|word| Cell::from_word(*word));
            self.own
                .extend(cells.map(|cell| (u32::from(cell.column) + 1, cell.print)));
        }
        exists
    }
}
