//! What runs measured, and what several runs of the same kind add up to.

use hdrhistogram::Histogram;
use kiln_engine::{Configuration, ExplainedBatch, LogStatistics, Statistics};
use kiln_procedure::AbortCause;
use kiln_protocols::phases::Phase;
use kiln_workloads::Totals;

use crate::audit::AuditReport;
use crate::number::median;

/// The longest latency that is told from longer ones, in nanoseconds: a minute.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Percentiles are exact to one part in a hundred: a histogram is then small enough not to push
/// the database out of the caches.
const LATENCY_DIGITS: u8 = 2;

/// What was measured of one procedure.
#[derive(Clone, Debug)]
pub struct ProcedureFigures {
    /// Latencies of calls that committed or were rejected, in nanoseconds: from the call, or from
    /// the queueing of a deferred one, to its end, all attempts included.
    pub latency_ns: Histogram<u64>,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that the procedure rejected.
    pub rejected: u64,
    /// Calls whose deadline passed.
    pub expired: u64,
}

impl ProcedureFigures {
    /// Nothing measured yet. Allocates all that recording will need.
    pub fn new() -> ProcedureFigures {
        ProcedureFigures {
            latency_ns: Histogram::new_with_bounds(1, LATENCY_MAX_NS, LATENCY_DIGITS)
                .expect("the bounds and the digits are constants that the histogram accepts"),
            committed: 0,
            rejected: 0,
            expired: 0,
        }
    }

    fn add(&mut self, other: &ProcedureFigures) {
        self.latency_ns
            .add(&other.latency_ns)
            .expect("both histograms have the same bounds");
        self.committed += other.committed;
        self.rejected += other.rejected;
        self.expired += other.expired;
    }

    /// The latency that a share of the calls did not exceed, in microseconds; 0 without calls.
    pub fn latency_us(&self, percentile: Percentile) -> f64 {
        if self.latency_ns.is_empty() {
            return 0.0;
        }
        self.latency_ns.value_at_quantile(percentile.quantile) as f64 / 1_000.0
    }

    /// Calls that ended, however.
    pub fn calls(&self) -> u64 {
        self.committed + self.rejected + self.expired
    }
}

impl Default for ProcedureFigures {
    fn default() -> ProcedureFigures {
        ProcedureFigures::new()
    }
}

/// A percentile that reports show.
#[derive(Clone, Copy, Debug)]
pub struct Percentile {
    /// Its name in tables.
    pub name: &'static str,
    /// Its name in JSON.
    pub key: &'static str,
    /// The share of calls, 0 to 1.
    pub quantile: f64,
}

/// The percentiles that reports show.
pub const PERCENTILES: [Percentile; 4] = [
    Percentile {
        name: "p50",
        key: "p50",
        quantile: 0.5,
    },
    Percentile {
        name: "p95",
        key: "p95",
        quantile: 0.95,
    },
    Percentile {
        name: "p99",
        key: "p99",
        quantile: 0.99,
    },
    Percentile {
        name: "p99.9",
        key: "p999",
        quantile: 0.999,
    },
];

/// What one run measured, over all its workers; the warm-up is in none of it but the totals.
#[derive(Clone, Debug)]
pub struct RunFigures {
    /// How long was measured.
    pub seconds: f64,
    /// By procedure of the workload.
    pub procedures: Vec<ProcedureFigures>,
    /// The protocol's own counts: failed attempts by cause, cycles by phase.
    pub statistics: Statistics,
    /// What the terminals' committed calls add up to, warm-up included.
    pub totals: Totals,
    /// Whether every worker was pinned to a core of its own.
    pub pinned: bool,
    /// What the database's log has written, warm-up included, if it has one.
    pub log: Option<LogStatistics>,
    /// The seconds that a recovery of the database would take after the run, as estimated, if it
    /// has a data directory.
    pub recovery_estimate_s: Option<f64>,
}

impl RunFigures {
    /// Nothing yet, for a workload with this many procedures.
    pub fn new(procedures: usize) -> RunFigures {
        RunFigures {
            seconds: 0.0,
            procedures: vec![ProcedureFigures::new(); procedures],
            statistics: Statistics::default(),
            totals: Totals::new(procedures),
            pinned: true,
            log: None,
            recovery_estimate_s: None,
        }
    }

    /// Adds another worker of the same run; the seconds are the run's and stay.
    pub fn add(&mut self, other: &RunFigures) {
        for (mine, theirs) in self.procedures.iter_mut().zip(&other.procedures) {
            mine.add(theirs);
        }
        self.statistics.add(&other.statistics);
        self.totals.merge(&other.totals);
        self.pinned &= other.pinned;
    }

    fn sum(&self, count: impl Fn(&ProcedureFigures) -> u64) -> u64 {
        self.procedures.iter().map(count).sum()
    }

    /// Calls that committed.
    pub fn committed(&self) -> u64 {
        self.sum(|procedure| procedure.committed)
    }

    /// Committed calls a second.
    pub fn committed_per_s(&self) -> f64 {
        self.committed() as f64 / self.seconds
    }
}

/// All runs of one protocol with one number of threads and of sessions.
#[derive(Clone, Debug)]
pub struct Point {
    /// The protocol.
    pub protocol: Configuration,
    /// The workers.
    pub threads: usize,
    /// The sessions whose calls went through the workers' inboxes; `None` where the workers made
    /// their calls themselves.
    pub sessions: Option<usize>,
    /// Whether there were more workers than cores.
    pub oversubscribed: bool,
    /// The runs, in the order in which they were made.
    pub runs: Vec<RunFigures>,
    /// The audits of these runs.
    pub audit: AuditReport,
    /// A batch of the last run, if the plan asks for one and the protocol has batches.
    pub batch: Option<ExplainedBatch>,
}

impl Point {
    /// No run yet, on a machine with `cores` cores.
    pub fn new(
        protocol: Configuration,
        threads: usize,
        sessions: Option<usize>,
        cores: usize,
    ) -> Point {
        Point {
            protocol,
            threads,
            sessions,
            oversubscribed: threads > cores,
            runs: Vec::new(),
            audit: AuditReport::default(),
            batch: None,
        }
    }

    /// What the logs of all runs have written, if there were any.
    pub fn log(&self) -> Option<LogStatistics> {
        let mut logs = self.runs.iter().filter_map(|run| run.log.as_ref());
        let mut sum = logs.next()?.clone();
        logs.for_each(|log| sum.add(log));
        Some(sum)
    }

    /// The seconds that a recovery would take after the last run, as estimated, if the database has
    /// a data directory.
    pub fn recovery_estimate_s(&self) -> Option<f64> {
        self.runs.last()?.recovery_estimate_s
    }

    /// Whether the protocol's own counts are known: failed attempts, phases. Those of the
    /// database's own workers are not.
    pub fn has_counts(&self) -> bool {
        self.sessions.is_none()
    }

    fn median_of(&self, figure: impl Fn(&RunFigures) -> f64) -> f64 {
        let values: Vec<f64> = self.runs.iter().map(figure).collect();
        median(&values)
    }

    /// The median over the runs of the committed calls a second.
    pub fn committed_per_s(&self) -> f64 {
        self.median_of(RunFigures::committed_per_s)
    }

    /// The least and the most committed calls a second of any run.
    pub fn committed_per_s_range(&self) -> (f64, f64) {
        let rates = self.runs.iter().map(RunFigures::committed_per_s);
        rates.fold((f64::INFINITY, 0.0), |(least, most), rate| {
            (rate.min(least), rate.max(most))
        })
    }

    /// The median over the runs of the rejected calls a second.
    pub fn rejected_per_s(&self) -> f64 {
        self.median_of(|run| run.sum(|procedure| procedure.rejected) as f64 / run.seconds)
    }

    /// Failed attempts per committed call, over all runs.
    pub fn aborts_per_commit(&self) -> f64 {
        self.per_commit(self.statistics().aborts_total())
    }

    /// A count over all runs as a share of their committed calls.
    pub fn per_commit(&self, count: u64) -> f64 {
        let committed: u64 = self.runs.iter().map(RunFigures::committed).sum();
        count as f64 / committed.max(1) as f64
    }

    /// Failed attempts per committed call by cause, in the order of [`AbortCause::ALL`].
    pub fn aborts_by_cause(&self) -> [f64; AbortCause::ALL.len()] {
        self.statistics().aborts.map(|count| self.per_commit(count))
    }

    /// Restorations per committed call, over all runs.
    pub fn healings_per_commit(&self) -> f64 {
        self.per_commit(self.statistics().healings)
    }

    /// Operations that restorations ran again, per committed call, over all runs.
    pub fn run_again_per_commit(&self) -> f64 {
        self.per_commit(self.statistics().run_again)
    }

    /// Restored operations per committed call, over all runs, by procedure and line.
    pub fn restored_per_commit(&self) -> Vec<(String, u32, f64)> {
        let restored = self.statistics().restored.into_iter();
        restored
            .map(|((procedure, line), count)| (procedure, line, self.per_commit(count)))
            .collect()
    }

    /// Calls whose deadline passed, over all runs.
    pub fn expired(&self) -> u64 {
        self.runs
            .iter()
            .map(|run| run.sum(|procedure| procedure.expired))
            .sum()
    }

    /// The protocol's counts over all runs.
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        for run in &self.runs {
            sum.add(&run.statistics);
        }
        sum
    }

    /// The share of each phase in the measured transactions' time, in the order of [`Phase::ALL`].
    pub fn phase_shares(&self) -> [f64; Phase::ALL.len()] {
        let cycles = self.statistics().phase_cycles;
        let total = cycles.iter().sum::<u64>().max(1) as f64;
        cycles.map(|count| count as f64 / total)
    }

    /// The procedures over all runs: percentiles are those of all calls together.
    pub fn procedures(&self) -> Vec<ProcedureFigures> {
        let mut sum: Vec<ProcedureFigures> = Vec::new();
        for run in &self.runs {
            if sum.is_empty() {
                sum.clone_from(&run.procedures);
            } else {
                for (mine, theirs) in sum.iter_mut().zip(&run.procedures) {
                    mine.add(theirs);
                }
            }
        }
        sum
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of one second in which procedure 0 took `latencies_ns`.
    pub(crate) fn run(latencies_ns: &[u64]) -> RunFigures {
        let mut run = RunFigures::new(2);
        run.seconds = 1.0;
        for latency in latencies_ns {
            run.procedures[0].latency_ns.saturating_record(*latency);
        }
        run.procedures[0].committed = latencies_ns.len() as u64;
        run
    }

    #[test]
    fn medians_and_ranges_are_over_runs_and_percentiles_over_calls() {
        let mut point = Point::new(Configuration::default(), 1, None, 2);
        point.runs = vec![run(&[1_000; 10]), run(&[1_000; 30]), run(&[9_000; 20])];
        assert_eq!(point.committed_per_s(), 20.0);
        assert_eq!(point.committed_per_s_range(), (10.0, 30.0));
        let procedures = point.procedures();
        assert_eq!(procedures[0].committed, 60);
        assert_eq!(procedures[1].calls(), 0);
        assert_eq!(procedures[1].latency_us(PERCENTILES[0]), 0.0);
        let (p50, p99) = (
            procedures[0].latency_us(PERCENTILES[0]),
            procedures[0].latency_us(PERCENTILES[2]),
        );
        assert!((p50 - 1.0).abs() < 0.02, "{p50}");
        assert!((p99 - 9.0).abs() < 0.18, "{p99}");
    }

    #[test]
    fn aborts_are_per_commit() {
        let mut point = Point::new(Configuration::default(), 1, None, 2);
        let mut one = run(&[5; 40]);
        one.statistics.aborts[AbortCause::Phantom as usize] += 1;
        point.runs = vec![one];
        assert_eq!(point.aborts_per_commit(), 1.0 / 40.0);
        assert_eq!(point.aborts_by_cause()[1], 1.0 / 40.0);
        assert_eq!(point.phase_shares(), [0.0; Phase::ALL.len()]);
    }

    #[test]
    fn longer_latencies_than_the_longest_count_as_it() {
        let mut figures = ProcedureFigures::new();
        figures.latency_ns.saturating_record(u64::MAX);
        assert!(figures.latency_us(PERCENTILES[3]) >= 6e7 * 0.99);
    }
}
