//! Batches of calls, where a protocol makes some
//! ([`Protocol::explains_batches`](crate::Protocol::explains_batches)): what became of them, how
//! long their steps took, and what one was made of.

/// A step in the life of a batch, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Step {
    /// Workers draw calls and add them: planning and PREPARE, and the waiting for others until it
    /// is closed.
    Collect,
    /// Finding out which records a call will meet, for this batch or ahead of it.
    Plan,
    /// PREPARE: labels are put.
    Prepare,
    /// What is read is not left to commits.
    Exclude,
    /// SPOT.
    Spot,
    /// FUSE.
    Fuse,
    /// MERGE.
    Merge,
    /// ALLOCATE.
    Allocate,
    /// Clusters run without locks.
    ConflictFree,
    /// Residuals run with locks.
    Residual,
    /// What failed often runs alone.
    Last,
}

impl Step {
    /// All steps, by their numbers.
    pub const ALL: [Step; 11] = [
        Step::Collect,
        Step::Plan,
        Step::Prepare,
        Step::Exclude,
        Step::Spot,
        Step::Fuse,
        Step::Merge,
        Step::Allocate,
        Step::ConflictFree,
        Step::Residual,
        Step::Last,
    ];

    /// A short name for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Collect => "collect",
            Step::Plan => "plan",
            Step::Prepare => "prepare",
            Step::Exclude => "exclude",
            Step::Spot => "spot",
            Step::Fuse => "fuse",
            Step::Merge => "merge",
            Step::Allocate => "allocate",
            Step::ConflictFree => "conflict-free",
            Step::Residual => "residual",
            Step::Last => "last",
        }
    }
}

/// What a step took. Times are in cycles while a worker counts, and in nanoseconds in
/// [`Statistics`](crate::Statistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTime {
    /// What workers spent on it.
    pub worked: u64,
    /// So many transactions were worked on in that time. Of planning and PREPARE some are measured.
    pub transactions: u64,
    /// From its beginning to its end, whichever workers took part, of the batches that ended.
    /// Planning and PREPARE are parts of other steps, and have none.
    pub lasted: u64,
}

impl StepTime {
    /// Some transactions were worked on for so long.
    #[inline]
    pub(crate) fn add_work(&mut self, worked: u64, transactions: u64) {
        self.worked += worked;
        self.transactions += transactions;
    }

    /// What a worker spends on a transaction.
    pub fn worked_each(&self) -> f64 {
        self.worked as f64 / self.transactions.max(1) as f64
    }
}

/// What became of the batches that ended, and what their steps took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStatistics {
    /// Batches that ended.
    pub batches: u64,
    /// Their transactions.
    pub transactions: u64,
    /// Batches of them that were analysed: a call that is alone is not, nor are any while a
    /// transaction of several statements is open.
    pub analysed: u64,
    /// Special clusters that SPOT made in them.
    pub spot: u64,
    /// Special clusters that had transactions after MERGE.
    pub special: u64,
    /// Clusters besides.
    pub small: u64,
    /// Transactions of the largest cluster of each.
    pub largest: u64,
    /// Transactions of several clusters.
    pub residuals: u64,
    /// The steps, in the order of [`Step::ALL`].
    pub steps: [StepTime; Step::ALL.len()],
}

impl BatchStatistics {
    /// What a step took.
    pub fn step(&self, step: Step) -> &StepTime {
        &self.steps[step as usize]
    }

    /// What a step took, to be added to.
    #[inline]
    pub(crate) fn step_mut(&mut self, step: Step) -> &mut StepTime {
        &mut self.steps[step as usize]
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &BatchStatistics) {
        self.batches += other.batches;
        self.transactions += other.transactions;
        self.analysed += other.analysed;
        self.spot += other.spot;
        self.special += other.special;
        self.small += other.small;
        self.largest += other.largest;
        self.residuals += other.residuals;
        for (sum, step) in self.steps.iter_mut().zip(&other.steps) {
            sum.add_work(step.worked, step.transactions);
            sum.lasted += step.lasted;
        }
    }

    /// The same with times in nanoseconds instead of cycles.
    pub(crate) fn in_nanoseconds(mut self, cycles_per_us: f64) -> BatchStatistics {
        let nanoseconds = |cycles: u64| (cycles as f64 * 1e3 / cycles_per_us) as u64;
        for step in &mut self.steps {
            (step.worked, step.lasted) = (nanoseconds(step.worked), nanoseconds(step.lasted));
        }
        self
    }

    /// How long the analysis of a transaction of these batches took with `workers` at work: PREPARE
    /// by the share of a worker, as it happens while calls are drawn, and the other steps as long
    /// as they lasted.
    pub fn analysis_each(&self, workers: usize) -> f64 {
        let steps = [
            Step::Exclude,
            Step::Spot,
            Step::Fuse,
            Step::Merge,
            Step::Allocate,
        ];
        let lasted: u64 = steps.map(|step| self.step(step).lasted).iter().sum();
        self.step(Step::Prepare).worked_each() / workers as f64
            + lasted as f64 / self.transactions.max(1) as f64
    }
}

/// What batches are analysed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Calls that a batch should have.
    pub size: u32,
    /// Samples of SPOT: `k` of the paper.
    pub samples: u32,
    /// `α` of the paper, in thousandths.
    pub alpha_permille: u32,
}

/// What the analysis has made of a batch, as Figure 5 of the paper counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clusters {
    /// Transactions of the batch.
    pub transactions: usize,
    /// Special clusters that SPOT has made.
    pub spot: usize,
    /// By conflict-free cluster: how many transactions it has, the largest first.
    pub conflict_free: Vec<usize>,
    /// Transactions that belong to several clusters.
    pub residuals: usize,
    /// Samples of SPOT: `k`.
    pub samples: usize,
    /// `α`, in thousandths.
    pub alpha_permille: usize,
}

/// A batch as its analysis has left it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// How many clusters there are, and how large.
    pub clusters: Clusters,
    /// Its transactions.
    pub transactions: Vec<ExplainedTransaction>,
    /// By record that a call writes: the cluster that has it, by its position in
    /// [`Clusters::conflict_free`]. One that only residuals want is in none.
    pub records: Vec<Option<usize>>,
    /// Records besides whose updates all are deferred to the commit (`+cu`), so that they tie
    /// nothing together.
    pub left: usize,
}

/// A transaction of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainedTransaction {
    /// Its cluster, by its position in [`Clusters::conflict_free`]; none for a residual.
    pub cluster: Option<usize>,
    /// Its records that a call of the batch writes, by their positions in [`Explained::records`],
    /// and whether it writes them itself.
    pub records: Vec<(usize, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_by_their_numbers() {
        for (number, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, number, "{}", step.name());
        }
    }

    #[test]
    fn the_analysis_is_what_each_worker_prepares_and_what_all_wait_for() {
        let mut one = BatchStatistics {
            transactions: 100,
            ..BatchStatistics::default()
        };
        one.step_mut(Step::Prepare).add_work(8_000, 10);
        one.step_mut(Step::Fuse).lasted = 30_000;
        one.step_mut(Step::ConflictFree).lasted = 1_000_000;
        // 800 of PREPARE by four workers, and 300 of FUSE.
        assert_eq!(one.analysis_each(4), 500.0);
        let mut both = one.in_nanoseconds(2_000.0);
        assert_eq!(both.analysis_each(4), 250.0);
        both.add(&both.clone());
        assert_eq!(
            (both.transactions, both.step(Step::Fuse).lasted),
            (200, 30_000)
        );
        assert_eq!(both.analysis_each(4), 250.0);
    }
}
