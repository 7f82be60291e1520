//! Histories written by hand: several workers' logs with one clock.

use kiln_checker::{Anomaly, CycleClass, Options, Order, Report, check};
use kiln_history::{
    Cell, Clock, EntryChange, History, IndexId, Log, Moment, Object, ObjectName, TableNames,
    Version, WriteKind,
};

/// The index that hand-written histories have.
pub const INDEX: IndexId = IndexId { table: 0, index: 0 };

/// Columns and what they hold.
pub type Cells<'a> = &'a [(u16, u32)];

/// Logs in the making. A transaction is known by its worker.
pub struct Tape {
    clock: Clock,
    logs: Vec<Log>,
}

fn cells(cells: Cells<'_>) -> impl ExactSizeIterator<Item = Cell> {
    let cell = |(column, print): &(u16, u32)| Cell {
        column: *column,
        print: *print,
    };
    cells.iter().map(cell)
}

#[allow(
    dead_code,
    reason = "each test file uses some of the ways to write a history"
)]
impl Tape {
    pub fn new(workers: usize) -> Tape {
        let clock = Clock::new();
        let logs = (0..workers).map(|_| Log::new(clock.clone(), 1 << 30));
        Tape {
            logs: logs.collect(),
            clock,
        }
    }

    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    pub fn begin(&mut self, worker: usize) {
        let now = self.clock.now();
        self.logs[worker].begin(worker as u32, now);
    }

    pub fn read(&mut self, worker: usize, object: u64, version: u64, read: Cells<'_>) {
        self.logs[worker].read(Object(object), Version(version), cells(read));
    }

    pub fn read_absent(&mut self, worker: usize, object: u64, version: u64) {
        self.logs[worker].read_absent(Object(object), Version(version));
    }

    pub fn write(&mut self, worker: usize, object: u64, kind: WriteKind, written: Cells<'_>) {
        self.logs[worker].write(Object(object), kind, cells(written));
    }

    pub fn install(&mut self, worker: usize, object: u64, previous: u64, version: u64) {
        self.logs[worker].install(Object(object), Version(previous), Version(version));
    }

    /// A write to existing columns and its installation.
    pub fn update(
        &mut self,
        worker: usize,
        object: u64,
        (previous, version): (u64, u64),
        written: Cells<'_>,
    ) {
        self.write(worker, object, WriteKind::Update, written);
        self.install(worker, object, previous, version);
    }

    pub fn range_begin(&mut self, worker: usize, low: &[u8], high: &[u8]) -> u32 {
        self.logs[worker].range_begin(INDEX, low, high)
    }

    pub fn met(&mut self, worker: usize, range: u32, object: u64) {
        self.logs[worker].met(range, Object(object));
    }

    pub fn range_end(&mut self, worker: usize, range: u32) {
        self.logs[worker].range_end(range, &[], false);
    }

    pub fn range_stop(&mut self, worker: usize, range: u32, stopped_at: &[u8], reverse: bool) {
        self.logs[worker].range_end(range, stopped_at, reverse);
    }

    /// A range that is read at once, and what is met in it.
    pub fn range(&mut self, worker: usize, low: &[u8], high: &[u8], met: &[u64]) {
        let range = self.range_begin(worker, low, high);
        for object in met {
            self.met(worker, range, *object);
        }
        self.range_end(worker, range);
    }

    pub fn added(&mut self, worker: usize, object: u64, key: &[u8], from: Moment) {
        self.logs[worker].entry(INDEX, EntryChange::Added, Object(object), from, key);
    }

    pub fn removed(&mut self, worker: usize, object: u64, key: &[u8], from: Moment) {
        self.logs[worker].entry(INDEX, EntryChange::Removed, Object(object), from, key);
    }

    /// An entry that goes some time from now on.
    pub fn goes(&mut self, worker: usize, object: u64, key: &[u8]) {
        self.logs[worker].entry_goes(INDEX, Object(object), key);
    }

    /// A new row with its entry.
    pub fn insert(
        &mut self,
        worker: usize,
        object: u64,
        (previous, version): (u64, u64),
        key: &[u8],
        written: Cells<'_>,
    ) {
        let from = self.now();
        self.write(worker, object, WriteKind::Insert, written);
        self.added(worker, object, key, from);
        self.install(worker, object, previous, version);
    }

    /// A row goes with its entry.
    pub fn delete(
        &mut self,
        worker: usize,
        object: u64,
        (previous, version): (u64, u64),
        key: &[u8],
    ) {
        let from = self.now();
        self.write(worker, object, WriteKind::Delete, &[]);
        self.install(worker, object, previous, version);
        self.removed(worker, object, key, from);
    }

    pub fn commit(&mut self, worker: usize) {
        self.logs[worker].commit();
    }

    pub fn abort(&mut self, worker: usize) {
        self.logs[worker].abort(0);
    }

    pub fn reject(&mut self, worker: usize) {
        self.logs[worker].reject();
    }

    /// The history, with names for objects 1 to 9.
    pub fn history(mut self) -> History {
        let name = |object: u64| ObjectName {
            object: Object(object),
            table: 0,
            name: format!("account[{object}]"),
        };
        History {
            protocol: "by hand".to_owned(),
            workload: "by hand".to_owned(),
            procedures: (1..=self.logs.len()).map(|n| format!("t{n}")).collect(),
            causes: vec!["conflict".to_owned()],
            tables: vec![TableNames {
                name: "account".to_owned(),
                columns: vec!["id".to_owned(), "balance".to_owned(), "owner".to_owned()],
                indexes: vec!["account_pkey".to_owned()],
            }],
            objects: (1..=9).map(name).collect(),
            logs: self.logs.iter_mut().map(Log::take_words).collect(),
        }
    }

    pub fn judge(self, order: Order) -> Report {
        judge(&self.history(), order)
    }
}

/// Judges a history, with one thread and with two, which must agree.
pub fn judge(history: &History, order: Order) -> Report {
    let report = |threads| {
        let options = Options {
            order,
            threads,
            ..Options::default()
        };
        check(history, &options).expect("the logs are sound")
    };
    let (one, two) = (report(1), report(2));
    assert_eq!(one.violations_count, two.violations_count);
    assert_eq!(one.edges, two.edges);
    one
}

/// The names of what was found.
#[allow(dead_code, reason = "not every test file asks for them")]
pub fn names(report: &Report) -> Vec<&'static str> {
    let violations = report.violations.iter();
    violations
        .map(|violation| violation.anomaly.name())
        .collect()
}

#[allow(dead_code, reason = "not every test file asks for it")]
pub const fn cycle(class: CycleClass) -> Anomaly {
    Anomaly::Cycle {
        class,
        real_time: false,
    }
}
