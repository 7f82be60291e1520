//! Fills the tables of a workload, its parts by several threads.

use kiln_engine::{Engine, Loader};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::{thread, time};
use kiln_storage::error::Result;
use kiln_storage::types::Value;
use kiln_workloads::{RowSink, Workload};

use crate::helpers::helpers;
use crate::number::{grouped, mebibytes, rate, ratio};
use crate::progress::Progress;

/// What a load took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Rows loaded.
    pub rows: u64,
    /// How long it took.
    pub seconds: f64,
    /// The bytes of all values, as if each were stored alone.
    pub raw_bytes: u64,
    /// The bytes of the records: headers, values, room that strings leave, padding.
    pub record_bytes: u64,
    /// The bytes of the indexes, which are in neither of the above.
    pub index_bytes: u64,
}

/// Rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 1_024;

/// Loads the population of `seed`.
///
/// # Errors
/// The first error of a loader.
pub(crate) fn load(
    engine: &Engine,
    workload: &Workload,
    seed: u64,
    progress: &Progress,
) -> Result<LoadFigures> {
    let begin = time::now_ns();
    let parts = workload.parts();
    let threads = helpers(usize::try_from(parts).unwrap_or(usize::MAX));
    let next_part = AtomicU64::new(0);
    let loaded: Result<Vec<u64>> = thread::scope(|scope| {
        let body = || {
            let mut sink = Sink {
                engine,
                progress,
                loader: None,
                rows: 0,
                error: None,
            };
            loop {
                // Relaxed: a part's number carries nothing but itself.
                let part = next_part.fetch_add(1, Ordering::Relaxed);
                if part >= parts || sink.error.is_some() {
                    return sink.finish();
                }
                workload.populate_part(seed, part, &mut sink);
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(body)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<u64>>| match worker.join() {
            Ok(rows) => rows,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.into_iter().map(join).collect()
    });
    let mut figures = LoadFigures {
        rows: loaded?.iter().sum(),
        seconds: (time::now_ns() - begin) as f64 / 1e9,
        ..LoadFigures::default()
    };
    figures.raw_bytes = engine
        .raw_bytes()?
        .iter()
        .map(|(_, bytes)| *bytes as u64)
        .sum();
    for table in engine.memory() {
        figures.record_bytes += table.record_bytes as u64;
        figures.index_bytes += table.index_bytes() as u64;
    }
    Ok(figures)
}

impl LoadFigures {
    /// What people want to know of a load.
    pub fn line(&self, workload: &Workload) -> String {
        let mut line = format!(
            "Loaded {} rows in {:.1} s ({} rows/s). Records: {} of values in {} of records, ratio {}; \
             indexes: {}",
            grouped(self.rows),
            self.seconds,
            rate(self.rows as f64 / self.seconds),
            mebibytes(self.raw_bytes),
            mebibytes(self.record_bytes),
            ratio(self.record_bytes as f64 / self.raw_bytes.max(1) as f64),
            mebibytes(self.index_bytes),
        );
        if let Workload::Tpcc(config) = workload
            && config.warehouses > 1
        {
            let warehouses = u64::from(config.warehouses);
            line += &format!(
                "; per warehouse {} of values in {} and {} of indexes",
                mebibytes(self.raw_bytes / warehouses),
                mebibytes(self.record_bytes / warehouses),
                mebibytes(self.index_bytes / warehouses),
            );
        }
        line + "."
    }
}

/// Gives the rows of one thread to a loader for each table in turn.
struct Sink<'a> {
    engine: &'a Engine,
    progress: &'a Progress,
    loader: Option<Loader>,
    rows: u64,
    /// The first error; what follows it is ignored.
    error: Option<kiln_storage::error::Error>,
}

impl Sink<'_> {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.error.get_or_insert(error);
                self.loader = None;
                None
            }
        }
    }

    fn end_table(&mut self) {
        if let Some(loader) = self.loader.take() {
            let finished = loader.finish();
            self.note(finished);
        }
    }

    /// The number of rows loaded.
    fn finish(mut self) -> Result<u64> {
        self.end_table();
        self.progress.advance(self.rows % ROWS_PER_REPORT);
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.rows),
        }
    }
}

impl RowSink for Sink<'_> {
    fn table(&mut self, name: &str, columns: &[&str], rows_expected: u64) {
        self.end_table();
        if self.error.is_none() {
            self.progress.expect(rows_expected);
            let opened = self.engine.loader(name, columns);
            self.loader = self.note(opened);
        }
    }

    fn row(&mut self, values: &[Value]) {
        let Some(loader) = &mut self.loader else {
            return;
        };
        let added = loader.row(values);
        if self.note(added).is_some() {
            self.rows += 1;
            if self.rows.is_multiple_of(ROWS_PER_REPORT) {
                self.progress.advance(ROWS_PER_REPORT);
            }
        }
    }
}
