//! Metrics: what a database has counted since it was opened, and how it stands.
//!
//! Workers count in memory of their own, and a snapshot reads it there: a snapshot costs the
//! transactions nothing.

use kiln_durability::log::Statistics as LogStatistics;
use kiln_platform::time;
use kiln_protocols::{Configuration, Counted};
use kiln_storage::table::Table;

use crate::engine::Engine;
use crate::kernel::{BROKEN, CheckpointMetrics, ReadOnly, Replays};
use crate::memory::RetiredMemory;

/// What a database has counted since it was opened, and how it stands; see [`Engine::metrics`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The protocol in force.
    pub protocol: Configuration,
    /// What transactions have come to, by the protocol that ran them: those that were in force.
    pub by_protocol: Vec<(Configuration, Counted)>,
    /// How often stored procedures were called and committed, by name, since they were created or
    /// the database was opened.
    pub calls: Vec<(String, u64)>,
    /// Blocks that were replayed.
    pub replays: Replays,
    /// Sessions that are open.
    pub sessions: usize,
    /// Worker slots of sessions that are in use.
    pub slots_used: usize,
    /// Threads that wait for one.
    pub slots_awaited: usize,
    /// The transaction block that has been open for longest.
    pub oldest_block: Option<OpenBlock>,
    /// The log, where there is one.
    pub log: Option<LogMetrics>,
    /// Checkpoints, where there is a data directory.
    pub checkpoints: Option<CheckpointMetrics>,
    /// Why the database takes no changes any more, if so.
    pub read_only: Option<ReadOnly>,
    /// Whether a worker has broken down: the database does nothing any more.
    pub is_broken: bool,
    /// The memory of the tables, by name.
    pub tables: Vec<TableMetrics>,
    /// What waits to be freed.
    pub retired: RetiredMemory,
}

/// A transaction block that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenBlock {
    /// The session's number ([`Session::number`](crate::Session::number)).
    pub session: u64,
    /// For how many nanoseconds it has been open.
    pub age_ns: u64,
}

/// How the log stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogMetrics {
    /// The log epoch that is current.
    pub epoch: u64,
    /// The log epoch up to which all is on disk.
    pub durable_epoch: u64,
    /// What was written since the database was opened.
    pub written: LogStatistics,
    /// Bytes of the log that a recovery would read.
    pub recovery_bytes: u64,
    /// The seconds that a recovery would take, as estimated.
    pub recovery_estimate_s: f64,
}

/// The memory of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableMetrics {
    /// Its name.
    pub table: String,
    /// Its records, those that were deleted a moment ago included.
    pub records: usize,
    /// The bytes of these, headers and padding included.
    pub record_bytes: usize,
    /// The bytes that were taken from the system for records.
    pub reserved_bytes: usize,
    /// How many indexes it has.
    pub indexes: usize,
    /// The bytes of these.
    pub index_bytes: usize,
}

impl TableMetrics {
    /// The metrics of a table, in a time that does not depend on its rows.
    fn of(table: &Table) -> TableMetrics {
        let (slab, indexes) = (table.slab(), table.indexes());
        let records = slab.cells_in_use();
        TableMetrics {
            table: table.schema().name.clone(),
            records,
            record_bytes: records * slab.cell_stride(),
            reserved_bytes: slab.bytes_reserved(),
            indexes: indexes.len(),
            index_bytes: indexes.iter().map(|index| index.bytes()).sum(),
        }
    }
}

impl Metrics {
    /// What transactions have come to under all protocols.
    pub fn counted(&self) -> Counted {
        let mut sum = Counted::default();
        self.by_protocol.iter().for_each(|(_, it)| sum.add(it));
        sum
    }
}

impl Engine {
    /// What the database has counted since it was opened, and how it stands. Transactions go on
    /// meanwhile, so that figures may differ by what they do; each count only grows. It takes a
    /// time that does not depend on the number of rows.
    pub fn metrics(&self) -> Metrics {
        let inner = self.inner();
        let catalog = self.catalog();
        let calls = catalog.procedures();
        let calls = calls.map(|procedure| (procedure.name().to_owned(), procedure.calls()));
        let (slots_used, slots_awaited) = inner.slots.usage();
        let log = self.log().map(|log| {
            let (recovery_bytes, recovery_estimate_s) = inner.kept.estimate(log);
            // In this order: what is durable was current before.
            let durable_epoch = log.durable_through().0;
            LogMetrics {
                durable_epoch,
                epoch: inner.log_epochs.current().0,
                written: log.statistics(),
                recovery_bytes,
                recovery_estimate_s,
            }
        });
        Metrics {
            protocol: self.protocol(),
            by_protocol: inner.tallies.read(),
            calls: calls.collect(),
            replays: self.replays(),
            sessions: self.sessions_open(),
            slots_used,
            slots_awaited,
            oldest_block: self.oldest_block(),
            log,
            checkpoints: self.checkpoint_metrics(),
            read_only: self.read_only(),
            is_broken: self.is_broken(),
            tables: (catalog.tables())
                .map(|(_, table)| TableMetrics::of(table))
                .collect(),
            retired: self.retired_memory(),
        }
    }

    /// Checkpoints, where there is a data directory.
    pub fn checkpoint_metrics(&self) -> Option<CheckpointMetrics> {
        let manifest = self.data_directory()?.manifest();
        let last_written_us = manifest.checkpoints.last().map(|last| last.written_us);
        Some(self.inner().kept.metrics(last_written_us))
    }

    /// Whether a worker has broken down: the database does nothing any more.
    pub fn is_broken(&self) -> bool {
        self.inner().gate.state() & BROKEN != 0
    }

    /// The transaction block that has been open for longest, if one is open.
    pub fn oldest_block(&self) -> Option<OpenBlock> {
        let (session, began_us) = self.inner().oldest_block()?;
        let age_us = time::wall_clock_us().saturating_sub(began_us).max(0);
        Some(OpenBlock {
            session,
            age_ns: age_us.unsigned_abs().saturating_mul(1_000),
        })
    }
}
