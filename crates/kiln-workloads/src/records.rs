//! Which records a transaction touches: hot or cold ones, in which partitions.
//!
//! Several papers measure transactions that touch some records of one table and differ only in
//! how those are chosen. Here is one chooser for all of them. The table has partitions, which are
//! the first column of its key, with the same number of records each. Hot records are spread
//! evenly over the partitions; the rest is cold.
//!
//! ```text
//!  partition     1          2          3
//!             ┌──────┐   ┌──────┐   ┌──────┐
//!   record 1  │ hot  │   │ hot  │   │ hot  │   two records of each partition are set aside,
//!   record 2  │ hot  │   │ hot  │   │      │   as there are five hot ones
//!             ├──────┤   ├──────┤   ├──────┤
//!   record 3… │ cold │   │ cold │   │ cold │
//! ```
//!
//! A transaction has a home partition: that of its first hot record, that of its worker, or any.
//! Its cold records are drawn uniformly or by a Zipf distribution from the home partition, or from
//! a few others as the settings say.

use kiln_platform::random::Random;
use kiln_platform::time;
use kiln_storage::types::Value;

use crate::RowSink;
use crate::definition::WorkloadOption;
use crate::options::{choice, chosen, number, option, percent};
use crate::population::part_rows;
use crate::random::Ranks;

/// Where in a transaction its hot records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPosition {
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// Anywhere.
    Random,
}

const POSITIONS: &[(&str, HotPosition)] = &[
    ("first", HotPosition::First),
    ("last", HotPosition::Last),
    ("random", HotPosition::Random),
];

/// Where a transaction without hot records is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In any partition.
    Any,
    /// In the partition of its worker: the first one's is the first, and after the last it starts
    /// again.
    Worker,
}

const HOMES: &[(&str, Home)] = &[("any", Home::Any), ("worker", Home::Worker)];

/// How transactions choose their records.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordChoice {
    /// Records of the table; rounded down to the same number in each partition.
    pub records: u32,
    /// Records that a transaction touches, no two the same.
    pub operations: u32,
    /// Records of the hot set; 0 is none.
    pub hot_records: u32,
    /// Records of a transaction that are hot. With 0 there is no hot set, whatever its size.
    pub hot_operations: u32,
    /// Where those are in it.
    pub hot_position: HotPosition,
    /// The exponent of the Zipf distribution of the cold records of a partition; 0 is uniform.
    pub theta: f64,
    /// Partitions of the table.
    pub partitions: u32,
    /// The exponent of the Zipf distribution of the partition where a transaction without hot
    /// records is at home; 0 is uniform.
    pub partition_theta: f64,
    /// Where a transaction without hot records is at home. (ORTHRUS §4.3: a worker has its own
    /// partition.)
    pub home: Home,
    /// Partitions of a transaction, over which its records go round; 0 is any partition for each
    /// record. (ORTHRUS Appendix A: single, dual, random.)
    pub spread: u32,
    /// Transactions that have so many partitions, in percent; the others stay at home (ORTHRUS
    /// §4.3).
    pub spread_percent: f64,
    /// Cold records that are in another partition than home, in percent.
    pub remote_percent: f64,
    /// The most cold records that are in another partition than home; each transaction draws how
    /// many (STRIFE §5.1).
    pub remote_accesses: u32,
    /// After so many milliseconds the hot records move to other partitions; 0 is never
    /// (STRIFE §5.5).
    pub vary_ms: u32,
}

impl Default for RecordChoice {
    fn default() -> RecordChoice {
        RecordChoice {
            records: 100_000,
            operations: 10,
            hot_records: 0,
            hot_operations: 0,
            hot_position: HotPosition::First,
            theta: 0.0,
            partitions: 1,
            partition_theta: 0.0,
            home: Home::Any,
            spread: 1,
            spread_percent: 100.0,
            remote_percent: 0.0,
            remote_accesses: 0,
            vary_ms: 0,
        }
    }
}

impl RecordChoice {
    /// The option of this name.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn option(&self, name: &'static str) -> WorkloadOption {
        match name {
            "records" => option(name, self.records, "Records of the table."),
            "operations" => option(name, self.operations, "Records of a transaction."),
            "hot-records" => option(name, self.hot_records, "Records of the hot set; 0 is none."),
            "hot-operations" => option(
                name,
                self.hot_operations,
                "Records of a transaction that are hot.",
            ),
            "hot-position" => option(
                name,
                chosen(POSITIONS, self.hot_position),
                "Where the hot records of a transaction are: first, last, random.",
            ),
            "theta" => option(
                name,
                self.theta,
                "Zipf skew of the cold records of a partition; 0 is uniform.",
            ),
            "partitions" => option(name, self.partitions, "Partitions of the table."),
            "partition-theta" => option(
                name,
                self.partition_theta,
                "Zipf skew of the partition where a transaction without hot records is at home; 0 is uniform.",
            ),
            "home" => option(
                name,
                chosen(HOMES, self.home),
                "Where a transaction without hot records is at home: any, worker (its worker's partition).",
            ),
            "spread" => option(
                name,
                self.spread,
                "Partitions of a transaction; 0 is any for each record.",
            ),
            "spread-percent" => option(
                name,
                self.spread_percent,
                "Transactions that have so many partitions; the others stay at home.",
            ),
            "remote-percent" => option(
                name,
                self.remote_percent,
                "Cold records from another partition than the transaction's home.",
            ),
            "remote-accesses" => option(
                name,
                self.remote_accesses,
                "The most records of a transaction from another partition than its home.",
            ),
            "vary-ms" => option(
                name,
                self.vary_ms,
                "Milliseconds after which the hot records move; 0 is never.",
            ),
            other => panic!("there is no option {other}"),
        }
    }

    /// Sets one of the options that [`RecordChoice::option`] knows.
    pub(crate) fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "records" => self.records = number(option, value, 1, 1_000_000_000)?,
            "operations" => self.operations = number(option, value, 1, 1_000)?,
            "hot-records" => self.hot_records = number(option, value, 0, 1_000_000_000)?,
            "hot-operations" => self.hot_operations = number(option, value, 0, 1_000)?,
            "hot-position" => self.hot_position = choice(option, value, POSITIONS)?,
            "theta" => self.theta = number(option, value, 0.0, 10.0)?,
            "partitions" => self.partitions = number(option, value, 1, 32_767)?,
            "partition-theta" => self.partition_theta = number(option, value, 0.0, 10.0)?,
            "home" => self.home = choice(option, value, HOMES)?,
            "spread" => self.spread = number(option, value, 0, 32_767)?,
            "spread-percent" => self.spread_percent = percent(option, value)?,
            "remote-percent" => self.remote_percent = percent(option, value)?,
            "remote-accesses" => self.remote_accesses = number(option, value, 0, 1_000)?,
            "vary-ms" => self.vary_ms = number(option, value, 0, 86_400_000)?,
            other => panic!("there is no option {other}"),
        }
        Ok(())
    }

    /// Whether the settings fit together.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.hot_operations > self.hot_records {
            return Err(format!(
                "hot-operations is {}, but no two records of a transaction are the same, and \
                 hot-records is {}",
                self.hot_operations, self.hot_records
            ));
        }
        if self.partition_theta > 0.0 && self.hot_operations > 0 {
            return Err(format!(
                "partition-theta is {}, but a transaction is at home where its first hot record is, and \
                 hot-operations is {}",
                self.partition_theta, self.hot_operations
            ));
        }
        if self.home == Home::Worker && (self.hot_operations > 0 || self.partition_theta > 0.0) {
            return Err(format!(
                "home is worker, but a transaction is at home where its first hot record is, or where \
                 partition-theta says: hot-operations is {}, and partition-theta {}",
                self.hot_operations, self.partition_theta
            ));
        }
        if self.hot_operations > self.operations {
            return Err(format!(
                "hot-operations is {}, but operations is {}",
                self.hot_operations, self.operations
            ));
        }
        if self.spread > self.partitions {
            return Err(format!(
                "spread is {}, but there are {} partitions",
                self.spread, self.partitions
            ));
        }
        let least = self.set_aside(self.least_partitions()) + i64::from(self.operations);
        if self.per_partition() < least {
            return Err(format!(
                "records is {}, but each of {} partitions needs at least {least}: its share of the \
                 hot records, and a cold one for each operation",
                self.records, self.partitions
            ));
        }
        Ok(())
    }

    /// Records of each partition.
    fn per_partition(&self) -> i64 {
        i64::from(self.records / self.partitions)
    }

    /// Records of all partitions.
    pub(crate) fn rows(&self) -> u64 {
        u64::from(self.partitions) * u64::from(self.records / self.partitions)
    }

    /// The fewest partitions that the hot records are ever spread over.
    fn least_partitions(&self) -> u32 {
        match self.vary_ms {
            0 => self.partitions,
            _ => 1,
        }
    }

    /// Records of each partition that are not cold while the hot ones are in so many partitions;
    /// none if no transaction wants a hot one.
    fn set_aside(&self, hot_partitions: u32) -> i64 {
        match self.hot_operations {
            0 => 0,
            _ => i64::from(self.hot_records.div_ceil(hot_partitions)),
        }
    }

    /// Makes the rows of one part: the key's columns, and the others as `fill` makes them.
    pub(crate) fn populate_part(
        &self,
        part: u64,
        sink: &mut dyn RowSink,
        columns: &[&str],
        mut fill: impl FnMut(&mut [Value]),
    ) {
        let rows = part_rows(self.rows(), part);
        sink.table("records", columns, rows.end - rows.start);
        let per_partition = self.per_partition() as u64;
        let mut row = vec![Value::Null; columns.len()];
        for number in rows {
            row[0] = Value::SmallInt((number / per_partition) as i16 + 1);
            row[1] = Value::Integer((number % per_partition) as i32 + 1);
            fill(&mut row[2..]);
            sink.row(&row);
        }
    }
}

/// Draws the records of one worker's transactions.
#[derive(Debug)]
pub(crate) struct RecordDraw {
    choice: RecordChoice,
    seed: u64,
    /// The worker that makes the transactions.
    worker: usize,
    /// When the run began, for hot records that move.
    begin_ns: u64,
    /// How often they have moved since.
    phase: u64,
    /// The partitions that have the hot records.
    hot_partitions: Vec<i64>,
    /// Records of each partition before its cold ones.
    set_aside: i64,
    cold: Ranks,
    /// Where transactions without hot records are at home.
    homes: Ranks,
    /// The partitions of the current transaction; the first is home.
    spread: Vec<i64>,
    /// Whether home is the only partition of the current transaction, whatever its spread.
    stays_home: bool,
    /// The partitions of the current transaction's records.
    pub(crate) partitions: Vec<i64>,
    /// Their numbers there.
    pub(crate) ids: Vec<i64>,
}

impl RecordDraw {
    /// The drawer of a worker, by its number from 0, in a run that began at `begin_ns`.
    pub(crate) fn new(
        choice: &RecordChoice,
        seed: u64,
        worker: usize,
        begin_ns: u64,
    ) -> RecordDraw {
        let buffer = || Vec::with_capacity(choice.operations as usize);
        RecordDraw {
            choice: choice.clone(),
            seed,
            worker,
            begin_ns,
            phase: 0,
            hot_partitions: (1..=i64::from(choice.partitions)).collect(),
            set_aside: choice.set_aside(choice.partitions),
            cold: cold(choice, choice.partitions),
            homes: Ranks::new(choice.partitions.into(), choice.partition_theta),
            spread: Vec::with_capacity(choice.partitions as usize),
            stays_home: false,
            partitions: buffer(),
            ids: buffer(),
        }
    }

    /// Draws the records of the next transaction into `partitions` and `ids`.
    pub(crate) fn draw(&mut self, random: &mut Random) {
        if self.choice.vary_ms > 0 {
            let period_ns = u64::from(self.choice.vary_ms) * 1_000_000;
            let phase = time::now_ns().saturating_sub(self.begin_ns) / period_ns;
            if phase != self.phase {
                self.move_hot_records(phase);
            }
        }
        self.partitions.clear();
        self.ids.clear();
        self.choose_spread(random);
        for operation in 1..self.choice.hot_operations {
            self.push_hot(operation, random);
        }
        self.push_cold(random);
        self.place_hot_records(random);
    }

    /// All workers move them to the same partitions, a random number of them.
    fn move_hot_records(&mut self, phase: u64) {
        self.phase = phase;
        let partitions = i64::from(self.choice.partitions);
        self.hot_partitions.clear();
        self.hot_partitions.extend(1..=partitions);
        if phase > 0 && partitions > 1 {
            let random = &mut Random::stream(self.seed, (2 << 32) + phase);
            random.shuffle(&mut self.hot_partitions);
            let count = random.between(1, partitions - 1);
            self.hot_partitions.truncate(count as usize);
        }
        let count = self.hot_partitions.len() as u32;
        self.set_aside = self.choice.set_aside(count);
        self.cold = cold(&self.choice, count);
    }

    /// Where hot record `number`, from 0, is.
    fn hot_place(&self, number: i64) -> (i64, i64) {
        let partitions = self.hot_partitions.len() as i64;
        let partition = self.hot_partitions[(number % partitions) as usize];
        (partition, number / partitions + 1)
    }

    fn push(&mut self, (partition, id): (i64, i64)) {
        self.partitions.push(partition);
        self.ids.push(id);
    }

    fn is_chosen(&self, (partition, id): (i64, i64)) -> bool {
        let mut chosen = self.partitions.iter().zip(&self.ids);
        chosen.any(|(other, number)| (*other, *number) == (partition, id))
    }

    /// Draws the first hot record, and the partitions of the transaction.
    fn choose_spread(&mut self, random: &mut Random) {
        let partitions = i64::from(self.choice.partitions);
        let home = match self.choice.hot_operations {
            0 if self.choice.home == Home::Worker => self.worker as i64 % partitions + 1,
            0 => self.homes.next(random),
            _ => {
                let number = random.between(0, i64::from(self.choice.hot_records) - 1);
                let place = self.hot_place(number);
                self.push(place);
                place.0
            }
        };
        self.spread.clear();
        self.spread.push(home);
        self.stays_home =
            self.choice.spread_percent < 100.0 && !random.percent(self.choice.spread_percent);
        if self.stays_home {
            return;
        }
        while self.spread.len() < self.choice.spread as usize {
            let other = random.between(1, partitions);
            match self.spread.contains(&other) {
                true => {
                    // The next that is not there yet, so that this ends soon however many are
                    // wanted.
                    let free = (1..partitions).map(|step| (other + step - 1) % partitions + 1);
                    let mut free = free.filter(|candidate| !self.spread.contains(candidate));
                    let next = free.next().expect("spread is at most partitions");
                    self.spread.push(next);
                }
                false => self.spread.push(other),
            }
        }
    }

    /// The partition of record `operation` of the transaction when it is not remote.
    fn partition(&self, operation: u32, random: &mut Random) -> i64 {
        match self.choice.spread {
            _ if self.stays_home => self.spread[0],
            0 => random.between(1, self.choice.partitions.into()),
            count => self.spread[(operation % count) as usize],
        }
    }

    /// Draws a hot record of the operation's partition, or of any when there is none.
    fn push_hot(&mut self, operation: u32, random: &mut Random) {
        let hot = i64::from(self.choice.hot_records);
        let stride = self.hot_partitions.len() as i64;
        let wanted = self.partition(operation, random);
        let position = self
            .hot_partitions
            .iter()
            .position(|partition| *partition == wanted);
        if let Some(first) = position.map(|position| position as i64)
            && first < hot
        {
            // Those of the partition are first, first + stride, and so on.
            let count = (hot - first - 1) / stride + 1;
            let start = random.between(0, count - 1);
            let mut all = (0..count).map(|step| first + (start + step) % count * stride);
            if let Some(number) = all.find(|number| !self.is_chosen(self.hot_place(*number))) {
                return self.push(self.hot_place(number));
            }
        }
        let start = random.between(0, hot - 1);
        let mut all = (0..hot).map(|step| (start + step) % hot);
        let number = all
            .find(|number| !self.is_chosen(self.hot_place(*number)))
            .expect("there are as many hot records as hot operations");
        self.push(self.hot_place(number));
    }

    /// Draws the cold records.
    fn push_cold(&mut self, random: &mut Random) {
        let first = self.choice.hot_operations;
        let mut remote = match self.choice.partitions {
            1 => 0,
            _ => random.between(
                0,
                i64::from(
                    self.choice
                        .remote_accesses
                        .min(self.choice.operations - first),
                ),
            ),
        };
        for operation in first..self.choice.operations {
            let left = i64::from(self.choice.operations - operation);
            let is_remote = if self.choice.remote_accesses > 0 {
                random.between(1, left) <= remote
            } else {
                self.choice.partitions > 1
                    && self.choice.remote_percent > 0.0
                    && random.percent(self.choice.remote_percent)
            };
            let partition = if is_remote {
                remote -= 1;
                // Any but home.
                let drawn = random.between(1, i64::from(self.choice.partitions) - 1);
                drawn + i64::from(drawn >= self.spread[0])
            } else {
                self.partition(operation, random)
            };
            let (cold, set_aside) = (self.cold, self.set_aside);
            let rank = cold.next_free(random, |rank| self.is_chosen((partition, set_aside + rank)));
            self.push((partition, set_aside + rank));
        }
    }

    /// Puts the hot records, which come first, where they belong.
    fn place_hot_records(&mut self, random: &mut Random) {
        match self.choice.hot_position {
            HotPosition::First => {}
            HotPosition::Last => {
                self.partitions
                    .rotate_left(self.choice.hot_operations as usize);
                self.ids.rotate_left(self.choice.hot_operations as usize);
            }
            HotPosition::Random => {
                for position in (1..self.ids.len()).rev() {
                    let other = random.below(position + 1);
                    self.partitions.swap(position, other);
                    self.ids.swap(position, other);
                }
            }
        }
    }
}

/// The cold records of a partition while the hot ones are in so many partitions.
fn cold(choice: &RecordChoice, hot_partitions: u32) -> Ranks {
    let count = choice.per_partition() - choice.set_aside(hot_partitions);
    Ranks::new(count as u64, choice.theta)
}

#[cfg(test)]
mod tests;
