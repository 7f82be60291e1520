//! What a workload defines: its settings, its procedures, and the calls that it draws.

use kiln_storage::types::Value;

use crate::arguments::ArgumentSink;
use crate::audit::{ClosingCheck, Totals};
use crate::population::RowSink;

/// A procedure's place in [`Workload::procedures`](crate::Workload::procedures).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcedureIndex(pub usize);

/// How SQL text calls a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcedureKind {
    /// `CREATE PROCEDURE`: `CALL name(…)`, at most one row comes back.
    Procedure,
    /// `CREATE FUNCTION … RETURNS TABLE`: `SELECT * FROM name(…)`.
    Function,
}

/// What a caller must know of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// Its SQL name.
    pub name: &'static str,
    /// How it is called.
    pub kind: ProcedureKind,
    /// The SQL types of its IN parameters.
    pub parameters: &'static [&'static str],
    /// How many OUT parameters follow them.
    pub outputs: usize,
    /// Whether [`Terminal::committed`](crate::Terminal::committed) must be given its result rows.
    pub rows_wanted: bool,
}

impl Procedure {
    /// A `CREATE PROCEDURE` whose results no terminal needs.
    pub(crate) const fn new(
        name: &'static str,
        parameters: &'static [&'static str],
        outputs: usize,
    ) -> Procedure {
        Procedure {
            name,
            kind: ProcedureKind::Procedure,
            parameters,
            outputs,
            rows_wanted: false,
        }
    }

    /// The same procedure, whose results the terminal counts.
    pub(crate) const fn with_rows_wanted(self) -> Procedure {
        Procedure {
            rows_wanted: true,
            ..self
        }
    }
}

/// A request for a Delivery of TPC-C, in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRequest {
    /// The warehouse, from 1.
    pub warehouse: i16,
    /// The carrier, 1 to 10.
    pub carrier: i16,
    /// The delivery date, in microseconds since 2000-01-01.
    pub date: i64,
    /// When it was queued, in nanoseconds of the monotonic clock.
    pub queued_ns: u64,
}

/// A call that a terminal asks for; its arguments are in the sink that the terminal was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What to call.
    pub procedure: ProcedureIndex,
    /// The queued request that the call executes; `None` for a call that starts now.
    pub delivery: Option<DeliveryRequest>,
}

impl Call {
    /// A call that starts now.
    pub(crate) fn immediate(procedure: ProcedureIndex) -> Call {
        Call {
            procedure,
            delivery: None,
        }
    }

    /// When the call was asked for, if that was before now: its latency counts from then. In
    /// nanoseconds of [`kiln_platform::time::now_ns`].
    pub fn queued_ns(&self) -> Option<u64> {
        self.delivery.map(|request| request.queued_ns)
    }
}

/// One setting of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadOption {
    /// Its name, as [`Workload::set`](crate::Workload::set) takes it.
    pub name: &'static str,
    /// Its present value.
    pub value: String,
    /// What it does, one sentence.
    pub help: &'static str,
}

/// What a workload is, whatever its settings are.
#[derive(Debug)]
pub(crate) struct About {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// One sentence for lists.
    pub(crate) description: &'static str,
    /// The script that creates tables and indexes.
    pub(crate) schema_sql: &'static str,
    /// The script that divides the tables over partitions.
    pub(crate) partitions_sql: &'static str,
    /// The script that creates the procedures.
    pub(crate) procedures_sql: &'static str,
    /// The script of the audit's queries.
    pub(crate) audit_sql: &'static str,
    /// The tables, in the order of the schema.
    pub(crate) tables: &'static [&'static str],
    /// The procedures.
    pub(crate) procedures: &'static [Procedure],
    /// SQLSTATEs of rejections that belong to the workload.
    pub(crate) expected_rejections: &'static [&'static str],
    /// Names of conditions in `audit_sql` that do not hold under these settings.
    pub(crate) unaudited: &'static [&'static str],
}

/// The settings of a workload, and what follows from them. The methods are those of
/// [`Workload`](crate::Workload).
pub(crate) trait Definition {
    /// Draws the calls of one worker.
    type Terminal: DrawCalls;

    fn about(&self) -> &'static About;

    fn options(&self) -> Vec<WorkloadOption>;

    fn set(&mut self, option: &str, value: &str) -> Result<(), String>;

    fn validate(&self) -> Result<(), String>;

    /// Makes the population as small as it may be with all that can happen still happening.
    fn shrink(&mut self);

    fn parts(&self) -> u64 {
        1
    }

    /// Makes a part of the population; none beyond the last.
    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink);

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Self::Terminal>;

    fn terminals_after(&self, seed: u64, workers: usize, _before: &Totals) -> Vec<Self::Terminal> {
        self.terminals(seed, workers)
    }

    fn closing_checks(&self, seed: u64, totals: &Totals) -> Vec<ClosingCheck>;
}

/// The calls of one worker. The methods are those of [`Terminal`](crate::Terminal).
pub(crate) trait DrawCalls {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call;

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, rows: &[R]);

    fn totals(&self) -> &Totals;
}
