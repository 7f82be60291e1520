//! Reads, writes and installations, gathered by object, and changes of entries, by index.

use std::collections::{BTreeMap, HashSet};

use kiln_history::{EntryChange, Event, IndexId, Key, WriteKind};

use crate::attempts::{Attempts, Ending, Sequence};
use crate::names::{Names, version};
use crate::violation::{Anomaly, Violations};

/// What an access is. The order is the one in which accesses to one version are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessKind {
    /// A write; the version is the one that its transaction installed.
    Write,
    Install,
    Read,
    /// A read of an object that the attempt has written before.
    ReadOwn,
}

/// One access to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Access {
    pub(crate) version: u64,
    /// The kind in the two highest bits, the attempt in the others.
    kind_attempt: u32,
    /// The event's position in the attempt's log.
    pub(crate) position: u32,
}

const KIND_SHIFT: u32 = 30;

impl Access {
    fn new(kind: AccessKind, version: u64, attempt: u32, position: u32) -> Access {
        Access {
            version,
            kind_attempt: (kind as u32) << KIND_SHIFT | attempt,
            position,
        }
    }

    pub(crate) fn kind(self) -> AccessKind {
        match self.kind_attempt >> KIND_SHIFT {
            0 => AccessKind::Write,
            1 => AccessKind::Install,
            2 => AccessKind::Read,
            _ => AccessKind::ReadOwn,
        }
    }

    pub(crate) fn attempt(self) -> u32 {
        self.kind_attempt & ((1 << KIND_SHIFT) - 1)
    }
}

/// A change of an index entry by a committed transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryEvent<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) object: u32,
    pub(crate) attempt: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The version of the object that the transaction installed; 0 if it installed none.
    pub(crate) version: u64,
    pub(crate) change: EntryChange,
}

/// All accesses of a history, by object.
pub(crate) struct Accesses<'a> {
    pub(crate) all: Vec<Access>,
    /// Where each object's accesses begin and end in `all`.
    pub(crate) spans: Vec<(u32, u32)>,
    pub(crate) entries: BTreeMap<IndexId, Vec<EntryEvent<'a>>>,
    /// Entries that attempts which did not commit have changed, and changed back.
    pub(crate) passing: HashSet<(IndexId, u32)>,
}

/// The memory that an access takes, with its object's number in the sequence of the logs.
pub(crate) const BYTES_PER_ACCESS: usize = size_of::<Access>() + 4;

/// The largest number of accesses: a span's ends are 32-bit numbers.
pub(crate) const ACCESSES_MAX: u64 = u32::MAX as u64;

impl<'a> Accesses<'a> {
    /// Gathers the accesses, and compares what was written with what was installed.
    pub(crate) fn of(
        attempts: &Attempts<'a>,
        sequence: Sequence,
        names: &Names<'_>,
        violations: &mut Violations,
    ) -> Accesses<'a> {
        let mut spans = Vec::with_capacity(attempts.objects.len());
        let mut total = 0;
        for count in &attempts.accesses {
            spans.push((total, total));
            total += count;
        }
        let unused = Access::new(AccessKind::Read, 0, 0, 0);
        let mut gathering = Gathering {
            attempts,
            names,
            violations,
            accesses: Accesses {
                all: vec![unused; total as usize],
                spans,
                entries: BTreeMap::new(),
                passing: HashSet::new(),
            },
            written_by: vec![u32::MAX; attempts.objects.len()],
            writes: Vec::new(),
            installs: Vec::new(),
        };
        let mut objects = sequence.into_elements();
        for attempt in 0..attempts.all.len() as u32 {
            gathering.attempt(attempt, &mut objects);
        }
        gathering.accesses
    }
}

struct Write {
    object: u32,
    position: u32,
    kind: WriteKind,
}

struct Install {
    object: u32,
    version: u64,
    written: bool,
}

struct Gathering<'b, 'a> {
    attempts: &'b Attempts<'a>,
    names: &'b Names<'b>,
    violations: &'b mut Violations,
    accesses: Accesses<'a>,
    /// The last attempt that wrote each object.
    written_by: Vec<u32>,
    /// The writes of the present attempt, in its order.
    writes: Vec<Write>,
    installs: Vec<Install>,
}

impl<'a> Gathering<'_, 'a> {
    fn add(&mut self, object: u32, access: Access) {
        let (_, end) = &mut self.accesses.spans[object as usize];
        self.accesses.all[*end as usize] = access;
        *end += 1;
    }

    fn attempt(&mut self, number: u32, objects: &mut impl Iterator<Item = u32>) {
        let ending = self.attempts.get(number).ending;
        if ending == Ending::Aborted {
            self.aborted(number);
            return;
        }
        let mut next = || objects.next().expect("one for each access");
        self.writes.clear();
        self.installs.clear();
        let mut entries = false;
        for (position, event) in self.attempts.events(number) {
            match event {
                Event::Read { version, .. } | Event::ReadAbsent { version, .. } => {
                    let object = next();
                    let kind = match self.written_by[object as usize] == number {
                        true => AccessKind::ReadOwn,
                        false => AccessKind::Read,
                    };
                    self.add(object, Access::new(kind, version.0, number, position));
                }
                Event::Write { kind, .. } => {
                    let object = next();
                    self.written_by[object as usize] = number;
                    self.writes.push(Write {
                        object,
                        position,
                        kind,
                    });
                }
                Event::Install { version, .. } => {
                    let object = next();
                    self.installs.push(Install {
                        object,
                        version: version.0,
                        written: false,
                    });
                    if ending == Ending::Committed {
                        let access = Access::new(AccessKind::Install, version.0, number, position);
                        self.add(object, access);
                    }
                }
                Event::Entry { .. } => entries = true,
                _ => {}
            }
        }
        self.installs.sort_by_key(|install| install.object);
        match ending {
            Ending::Committed => {
                self.match_writes(number);
                if entries {
                    self.entries(number);
                }
            }
            Ending::Rejected | Ending::Aborted => self.uncommitted(number, entries),
        }
    }

    /// An attempt whose accesses do not count: it must not have installed anything.
    fn aborted(&mut self, number: u32) {
        self.installs.clear();
        let mut entries = false;
        for (_, event) in self.attempts.events(number) {
            match event {
                Event::Install {
                    object, version, ..
                } => self.installs.push(Install {
                    object: self.attempts.number(object),
                    version: version.0,
                    written: false,
                }),
                Event::Entry { .. } => entries = true,
                _ => {}
            }
        }
        self.uncommitted(number, entries);
    }

    fn uncommitted(&mut self, number: u32, entries: bool) {
        for install in &self.installs {
            self.violations.add(Anomaly::InstalledByUncommitted, || {
                vec![format!(
                    "{} installed {} at version {}",
                    self.names.attempt(number),
                    self.names.object(install.object),
                    version(install.version)
                )]
            });
        }
        if entries {
            for (_, event) in self.attempts.events(number) {
                if let Event::Entry { index, object, .. } = event {
                    let object = self.attempts.number(object);
                    self.accesses.passing.insert((index, object));
                }
            }
        }
    }

    /// Gives each write the version at which it was installed.
    fn match_writes(&mut self, number: u32) {
        let writes = std::mem::take(&mut self.writes);
        for write in &writes {
            let first = self
                .installs
                .partition_point(|install| install.object < write.object);
            let same = self.installs[first..]
                .iter_mut()
                .take_while(|install| install.object == write.object);
            let mut versions = 0;
            let mut installed = 0;
            for install in same {
                install.written = true;
                versions += 1;
                installed = install.version;
            }
            if versions > 0 {
                let access = Access::new(AccessKind::Write, installed, number, write.position);
                self.add(write.object, access);
            } else if !self.left_no_trace(&writes, write.object) {
                self.violations.add(Anomaly::WriteNotInstalled, || {
                    vec![format!(
                        "{} wrote {} and committed, but installed no version of it",
                        self.names.attempt(number),
                        self.names.object(write.object)
                    )]
                });
            }
        }
        self.writes = writes;
        for install in self.installs.iter().filter(|install| !install.written) {
            self.violations.add(Anomaly::InstalledWithoutWrite, || {
                vec![format!(
                    "{} installed {} at version {}, but did not write it",
                    self.names.attempt(number),
                    self.names.object(install.object),
                    version(install.version)
                )]
            });
        }
    }

    /// Whether a transaction inserted an object and deleted it again: nothing is left to install.
    fn left_no_trace(&self, writes: &[Write], object: u32) -> bool {
        let mut kinds = writes
            .iter()
            .filter(|write| write.object == object)
            .map(|write| write.kind);
        let first = kinds.next();
        first == Some(WriteKind::Insert) && kinds.next_back() == Some(WriteKind::Delete)
    }

    fn entries(&mut self, number: u32) {
        for (_, event) in self.attempts.events(number) {
            let Event::Entry {
                index,
                change,
                object,
                window,
                key,
            } = event
            else {
                continue;
            };
            let object = self.attempts.number(object);
            let install = self
                .installs
                .binary_search_by_key(&object, |install| install.object);
            let event = EntryEvent {
                key,
                object,
                attempt: number,
                from: window.from.0,
                to: window.to.0,
                version: install.map_or(0, |position| self.installs[position].version),
                change,
            };
            let of_index = self.accesses.entries.entry(index).or_default();
            of_index.push(event);
        }
    }
}
