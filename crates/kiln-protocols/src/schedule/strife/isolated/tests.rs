//! What the analysis makes of batches, alone, among workers that race, and as they are tuned.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::thread;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

#[cfg(kiln_sim)]
use kiln_platform::sync::{Mutex, lock};

use super::*;
#[cfg(kiln_sim)]
use crate::batches::Chosen;
use crate::batches::Step;
use crate::factors::Batches;
use crate::schedule::strife::batch::Batch;

/// The headers of records that have no rows.
#[repr(C, align(16))]
#[derive(Default)]
struct Header([AtomicU64; 2]);

struct Records(Vec<Header>);

impl Records {
    fn new(count: usize) -> Records {
        Records((0..count).map(|_| Header::default()).collect())
    }

    fn claim(&self, number: usize, exclusive: bool) -> Claim {
        // SAFETY: the header is a record's, and lives as long as the test uses it.
        let record = unsafe { RecordRef::from_cell(NonNull::from(&self.0[number]).cast()) };
        Claim {
            record,
            exclusive,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        }
    }

    /// Transactions that write some records and read others.
    fn transactions(&self, sets: &[(&[usize], &[usize])]) -> Vec<Vec<Claim>> {
        let one = |(written, read): &(&[usize], &[usize])| {
            let written = written.iter().map(|&number| self.claim(number, true));
            let read = read.iter().map(|&number| self.claim(number, false));
            written.chain(read).collect()
        };
        sets.iter().map(one).collect()
    }
}

/// For each transaction, in the order in which they were added, its cluster, or none for a
/// residual. Each is in one place.
fn places(batch: &Batch, between: &Between) -> Vec<Option<u32>> {
    let count = batch.length(between) as usize;
    let mut places: Vec<Vec<Option<u32>>> = vec![Vec::new(); count];
    for at in 0..batch.residuals.length() {
        places[batch.residuals.get(at) as usize].push(None);
    }
    for (root, _) in batch.roots() {
        let queue = batch.queue(root).load(Ordering::Relaxed);
        let (length, mut next) = (queue >> 32, queue as u32);
        let mut found = 0;
        while next > 0 {
            places[next as usize - 1].push(Some(root));
            next = batch.next_between(between, next - 1);
            found += 1;
        }
        assert_eq!(found, length, "a queue is as long as it says");
    }
    let one = |places: Vec<Option<u32>>| {
        assert_eq!(places.len(), 1, "a transaction is in one place");
        places[0]
    };
    places.into_iter().map(one).collect()
}

/// Transactions of different clusters do not conflict, and residuals belong to no cluster
/// alone.
fn check(batch: &Batch, between: &mut Between) {
    let places = places(batch, between);
    // By record: whether a transaction writes it, and the places of those that touch it.
    let mut touched: BTreeMap<u64, (bool, Vec<Option<u32>>)> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        let context = batch.context_between(between, at as u32);
        for claim in context.footprint.claims() {
            let (is_written, by) = touched.entry(claim.record.address()).or_default();
            *is_written |= claim.exclusive && place.is_some();
            by.push(*place);
        }
    }
    for (is_written, by) in touched.values() {
        let mut clusters: Vec<u32> = by.iter().copied().flatten().collect();
        clusters.dedup();
        assert!(
            !is_written || clusters.windows(2).all(|two| two[0] == two[1]),
            "one cluster has a record that is written, not {clusters:?}"
        );
    }
}

fn analysed(batches: Batches, transactions: &[Vec<Claim>], seed: u64) -> Clusters {
    let shared = StrifeState::new(batches);
    // Its batches have the numbers of those before.
    for claim in transactions.iter().flatten() {
        claim.record.aux().store(0, Ordering::Relaxed);
    }
    let random = Random::from_seed(seed);
    let mut worker = Isolated::new(shared, transactions, random);
    let mut clusters = Clusters::default();
    worker.analyse_and(|shared, between| {
        check(&shared.batch, between);
        clusters = shared.batch.clusters(between);
    });
    clusters
}

/// The transactions of Figure 2 of the paper that belong to one warehouse: three of one, three of
/// another.
const WAREHOUSES: [(&[usize], &[usize]); 6] = [
    (&[8, 0, 1], &[]),
    (&[8, 1, 2], &[]),
    (&[8, 2, 3], &[]),
    (&[9, 4, 5], &[]),
    (&[9, 5, 6], &[]),
    (&[9, 6, 7], &[]),
];
/// The one that belongs to both.
const OUTLIER: (&[usize], &[usize]) = (&[8, 9, 3, 4], &[]);

/// Most often these transactions make two clusters of three and a residual.
fn assert_two_clusters(sets: &[(&[usize], &[usize])]) {
    let records = Records::new(10);
    let transactions = records.transactions(sets);
    let (mut usual, seeds) = (0, 40);
    for seed in 0..seeds {
        let clusters = analysed(Batches::default(), &transactions, seed);
        // Unless the outlier is the first that SPOT draws: it makes one special cluster of both.
        match (clusters.conflict_free, clusters.residuals) {
            (sizes, 1) if sizes == [3, 3] => usual += 1,
            (sizes, 0) => assert_eq!(sizes, [7]),
            other => panic!("{other:?}"),
        }
    }
    assert!(usual > seeds / 2, "{usual} of {seeds}");
}

#[test]
fn an_outlier_becomes_a_residual() {
    assert_two_clusters(&[&WAREHOUSES[..], &[OUTLIER]].concat());
}

/// That the outlier has labelled records of both does not tie the others together.
#[test]
fn who_touches_hot_records_first_ties_no_others_together() {
    assert_two_clusters(&[&[OUTLIER], &WAREHOUSES[..]].concat());
}

/// What became of batches is counted when they end, and how long each of their steps lasted.
#[test]
fn batches_are_counted_when_they_end() {
    const BATCHES: u64 = 5;
    let records = Records::new(12);
    let transactions = records.transactions(&[
        (&[8, 0, 1], &[]),
        (&[8, 1, 2], &[]),
        (&[9, 4, 5], &[]),
        (&[9, 5, 6], &[]),
        (&[8, 9, 3], &[]),
        (&[10], &[]),
        (&[], &[11]),
    ]);
    let batches = Batches {
        samples: 3,
        ..Batches::default()
    };
    let random = Random::from_seed(3);
    let mut worker = Isolated::new(StrifeState::new(batches), &transactions, random);
    let mut expected = BatchStatistics::default();
    for _ in 0..BATCHES {
        let look = |shared: &StrifeState, between: &mut Between| {
            let clusters = shared.batch.clusters(between);
            expected.spot += clusters.spot as u64;
            expected.small += clusters.conflict_free.len() as u64;
            expected.largest += clusters.conflict_free[0] as u64;
            expected.residuals += clusters.residuals as u64;
        };
        worker.analyse_or_run(look, Some(|_, _| {}));
    }
    let counts = worker.counts;
    assert_eq!(
        (counts.batches, counts.transactions),
        (BATCHES, 7 * BATCHES)
    );
    assert_eq!(counts.analysed, BATCHES);
    assert_eq!(
        (counts.spot, counts.special + counts.small),
        (expected.spot, expected.small)
    );
    assert!(counts.special > 0 && counts.small > 0, "{counts:?}");
    assert_eq!(
        (counts.largest, counts.residuals),
        (expected.largest, expected.residuals)
    );
    for step in Step::ALL {
        let lasts = match step {
            Step::Plan | Step::Prepare | Step::Exclude | Step::Last => false,
            Step::Residual => counts.residuals > 0,
            _ => true,
        };
        assert_eq!(counts.step(step).lasted > 0, lasts, "{}", step.name());
    }
}

/// With `α` = 0 all that is connected becomes one cluster (Fig. 10a); with 1 hardly anything is
/// merged.
#[test]
fn alpha_decides_between_clusters_and_residuals() {
    let records = Records::new(64);
    let mut sets: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for number in 0..60 {
        let both = if number % 10 == 0 {
            (number / 10) % 2 * 2
        } else {
            number % 3
        };
        sets.push((vec![both, 4 + number], vec![]));
        if number % 10 == 0 {
            sets.push((vec![0, 1], vec![]));
        }
    }
    let sets: Vec<(&[usize], &[usize])> = sets.iter().map(|(w, r)| (&w[..], &r[..])).collect();
    let transactions = records.transactions(&sets);
    let with = |residuals_permille: u16| {
        let batches = Batches {
            samples: 60,
            residuals_permille: Some(residuals_permille),
            ..Batches::default()
        };
        analysed(batches, &transactions, 3)
    };
    let (none, usual) = (with(0), with(1000));
    assert_eq!(
        (none.conflict_free.len(), none.residuals),
        (1, 0),
        "{none:?}"
    );
    assert_eq!(
        (usual.conflict_free.len(), usual.residuals),
        (3, 6),
        "{usual:?}"
    );
}

/// A record that no transaction writes ties none together (PREPARE), and transactions that
/// write nothing are clusters of their own.
#[test]
fn records_that_are_only_read_are_ignored() {
    let records = Records::new(8);
    let transactions = records.transactions(&[
        (&[0], &[7]),
        (&[1], &[7]),
        (&[2], &[7, 0]),
        (&[], &[7]),
        (&[], &[6, 7]),
    ]);
    let clusters = analysed(Batches::default(), &transactions, 1);
    let mut sizes = clusters.conflict_free.clone();
    sizes.sort_unstable();
    // The third reads what the first writes.
    assert_eq!((sizes, clusters.residuals), (vec![1, 1, 1, 2], 0));
}

/// Random batches, analysed by several workers at once.
fn race(seed: u64, batches_count: usize) {
    let mut random = Random::from_seed(seed);
    let records = Records::new(6 + random.below(30));
    let batches = Batches {
        // More than there are, so that all workers are in each batch.
        size: 200,
        wait_us: 0,
        samples: 1 + random.below(6) as u16,
        residuals_permille: [Some(0), Some(200), Some(1000), None][random.below(4)],
    };
    let shared = StrifeState::new(batches);
    let count = records.0.len();
    let mut workers: Vec<Isolated> = (0..3)
        .map(|worker| {
            let mut one = |_| -> Vec<Claim> {
                let claims = 1 + random.below(4);
                let mut claim = |_| records.claim(random.below(count), random.percent(60.0));
                (0..claims).map(&mut claim).collect()
            };
            let transactions: Vec<Vec<Claim>> = (0..4 + worker * 30).map(&mut one).collect();
            let random = Random::stream(seed, worker as u64);
            Isolated::new(shared.clone(), &transactions, random)
        })
        .collect();
    thread::scope(|scope| {
        for worker in &mut workers {
            scope.spawn(move || {
                for _ in 0..batches_count {
                    worker.analyse_and(|shared, between| check(&shared.batch, between));
                }
            });
        }
    });
}

#[cfg(not(kiln_sim))]
#[test]
fn clusters_do_not_conflict() {
    for seed in 0..if cfg!(miri) { 2 } else { 100 } {
        race(seed, 3);
    }
}

/// A workload gets more hot records, and fewer again, with so many samples or as `auto`
/// chooses: what `auto` chose after each part, and the virtual time of one of its first batches
/// and of one of its last.
#[cfg(kiln_sim)]
fn change_workload(samples: u16) -> Vec<(Chosen, u64, u64)> {
    use kiln_platform::time;
    use kiln_platform::work::{Work, charge};
    const WORKERS: usize = 8;
    const HOT: usize = 128;
    const COLD: usize = 20_000;
    const SIZE: usize = 1_920;

    let run = |transactions: u32, with_locks: bool| {
        for _ in 0..transactions * if with_locks { 600 } else { 300 } {
            charge(Work::Commit);
        }
    };
    let records = Records::new(HOT + COLD);
    let batches = Batches {
        size: SIZE as u32,
        samples,
        ..Batches::default()
    };
    let shared = StrifeState::new(batches);
    let mut random = Random::from_seed(1);
    let mut part = |(hot, count): (usize, usize)| {
        let mut transaction = |_| -> Vec<Claim> {
            let mut cold = |_| records.claim(HOT + random.below(COLD), true);
            let mut claims: Vec<Claim> = (0..2).map(&mut cold).collect();
            claims.push(records.claim(random.below(hot), true));
            claims
        };
        let workers: Vec<Vec<Vec<Claim>>> = (0..WORKERS)
            .map(|_| (0..SIZE / WORKERS).map(&mut transaction).collect())
            .collect();
        let times: Mutex<Vec<u64>> = Mutex::default();
        let workers: Vec<Isolated> = (workers.iter().enumerate())
            .map(|(at, own)| Isolated::new(shared.clone(), own, Random::stream(2, at as u64)))
            .collect();
        thread::scope(|scope| {
            for (at, mut worker) in workers.into_iter().enumerate() {
                let times = &times;
                scope.spawn(move || {
                    thread::pin_to_core(at);
                    for _ in 0..count {
                        let look =
                            |_: &StrifeState, _: &mut Between| lock(times).push(time::now_ns());
                        worker.analyse_or_run(look, Some(run));
                    }
                });
            }
        });
        let times = lock(&times);
        let of = |first: usize, last: usize| (times[last] - times[first]) / (last - first) as u64;
        (shared.chosen(), of(0, 5), of(count - 12, count - 1))
    };
    [(4, 20), (HOT, 48), (4, 20)].map(&mut part).to_vec()
}

/// More hot records than samples find are tied together, and `auto` draws more: at the end of
/// such a time batches take at most four fifths of what they take with the samples that it
/// began with. When few records are hot, trying costs nothing in the long run.
#[cfg(kiln_sim)]
#[test]
fn auto_follows_a_workload_that_changes() {
    /// What `auto` begins with on eight cores.
    const FIRST: u16 = 27;
    use kiln_platform::sim::{self, Config, Preset, Schedule};
    let run = |samples: u16| {
        let mut config = Config::new(Schedule::LeastTime, 7);
        config.cores = 8;
        config.machine = Preset::named("strife").expect("the paper's machine");
        let run = sim::run(&config, || change_workload(samples));
        run.unwrap_or_else(|failure| panic!("{failure}"))
            .value
            .clone()
    };
    let (first, parts) = (run(FIRST), run(0));
    let [few, many, again] = parts.as_slice() else {
        panic!("{parts:?}")
    };
    assert_eq!(few.0.samples, u32::from(FIRST), "{parts:?}");
    assert!(many.0.samples >= 2 * few.0.samples, "{parts:?}");
    let (last, last_first) = (many.2, first[1].2);
    assert!(last * 5 < last_first * 4, "{last} and {last_first}");
    for (part, fixed) in [(few, &first[0]), (again, &first[2])] {
        assert!(part.2 * 20 < fixed.2 * 21, "{parts:?}, {first:?}");
    }
    assert_eq!(parts, run(0), "a schedule repeats what is chosen");
}

#[cfg(kiln_sim)]
#[test]
fn clusters_do_not_conflict_under_many_schedules() {
    use kiln_platform::sim::{self, Config, Schedule};
    for seed in 0..400 {
        let schedule = match seed % 2 {
            0 => Schedule::Random,
            _ => Schedule::Pct {
                depth: 2 + (seed / 2 % 3) as u32,
                steps: 3_000,
            },
        };
        let mut config = Config::new(schedule, seed);
        config.cores = 3;
        let run = sim::run(&config, || race(seed, 2));
        run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}
