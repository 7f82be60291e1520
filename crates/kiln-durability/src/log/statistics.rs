//! What a log has done.

/// Counts of values by their size, in steps of an eighth of a power of two.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u64,
    max: u64,
}

const STEP_BITS: u32 = 3;
const STEPS: u64 = 1 << STEP_BITS;
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) << STEP_BITS;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

/// The bucket of a value: exact below two [`STEPS`], then an eighth of a power of two wide.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    ((shift as u64 + 1) * STEPS + (value >> shift) - STEPS) as usize
}

/// The greatest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let (group, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match group {
        0 => step,
        _ => {
            let end = u128::from(STEPS + step + 1) << (group - 1);
            u64::try_from(end - 1).unwrap_or(u64::MAX)
        }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Adds the values of another one.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, others) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += others;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// How many of them are at most `value`; those of a bucket that goes beyond it are not counted,
    /// an eighth below it at most.
    pub fn count_at_most(&self, value: u64) -> u64 {
        let counts = self.counts.iter().enumerate();
        let within = counts.take_while(|(bucket, _)| upper(*bucket) <= value);
        within.map(|(_, count)| count).sum()
    }

    /// Their mean; 0 for none.
    pub fn mean(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }

    /// The greatest one; 0 for none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that a share of all values does not exceed, from 0 to 1; at most an eighth too
    /// great. 0 for no values.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper(bucket).min(self.max);
            }
        }
        0
    }

    /// What is in it that was not in `earlier`, which was taken from it; the greatest value is at
    /// most an eighth too great.
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut since = self.clone();
        for (count, former) in since.counts.iter_mut().zip(earlier.counts.iter()) {
            *count -= former;
        }
        since.count -= earlier.count;
        since.sum -= earlier.sum;
        let highest = since.counts.iter().rposition(|count| *count > 0);
        since.max = highest.map_or(0, |bucket| upper(bucket).min(self.max));
        since
    }
}

/// What a log has written since it was opened.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Entries: commits, changes of the catalog, answers.
    pub entries: u64,
    /// Bytes of the entries.
    pub entry_bytes: u64,
    /// Bytes written, with headers and padding.
    pub written_bytes: u64,
    /// Entries of each group.
    pub group_entries: Histogram,
    /// Nanoseconds that each durable write took.
    pub write_ns: Histogram,
}

impl Statistics {
    /// Adds what another log has written.
    pub fn add(&mut self, other: &Statistics) {
        self.entries += other.entries;
        self.entry_bytes += other.entry_bytes;
        self.written_bytes += other.written_bytes;
        self.group_entries.merge(&other.group_entries);
        self.write_ns.merge(&other.write_ns);
    }

    /// What was written since `earlier` was taken.
    #[must_use]
    pub fn since(&self, earlier: &Statistics) -> Statistics {
        Statistics {
            entries: self.entries - earlier.entries,
            entry_bytes: self.entry_bytes - earlier.entry_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            group_entries: self.group_entries.since(&earlier.group_entries),
            write_ns: self.write_ns.since(&earlier.write_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_their_buckets() {
        for value in (0..1_000).chain([u64::MAX, u64::MAX / 3, 1 << 40]) {
            let at = bucket(value);
            assert!(upper(at) >= value && at < BUCKETS, "{value}");
            assert!(at == 0 || upper(at - 1) < value, "{value}");
            assert!(upper(at) as f64 <= value as f64 * 1.125 + 1.0, "{value}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean()), (0, 0.0));
        (1..=1_000).for_each(|value| histogram.add(value));
        assert_eq!((histogram.count_at_most(8), histogram.sum()), (8, 500_500));
        assert!((440..=500).contains(&histogram.count_at_most(500)));
        assert_eq!(histogram.count_at_most(u64::MAX), 1_000);
        let early = histogram.clone();
        assert!((500..=563).contains(&histogram.quantile(0.5)));
        assert_eq!((histogram.quantile(1.0), histogram.max()), (1_000, 1_000));
        histogram.add(5_000);
        let since = histogram.since(&early);
        assert_eq!((since.count(), since.mean()), (1, 5_000.0));
        assert_eq!(since.max(), 5_000);
        let late = histogram.clone();
        assert_eq!(histogram.since(&late).max(), 0);
        histogram.add(9);
        assert_eq!(histogram.since(&late).max(), 9);
    }
}
