//! What the analysis of a batch of `strife` takes: 10,000 transactions with twenty keys each, by
//! one worker and by two (STRIFE, Fig. 9): `cargo bench -p kiln-protocols --bench clustering [--
//! --quick]`.
//!
//! Footprints are known, so nothing is planned, and nothing is run: it is PREPARE's labels, SPOT,
//! FUSE, MERGE and ALLOCATE. Batches: the twenty keys of one of thirty partitions, uniformly
//! (`ycsb-low`) or some of them often (`ycsb-high`); one of a hundred hot records and nineteen cold
//! ones (`hot`). Figures are the least and the median of the rounds, in milliseconds a batch, with
//! what became of the last one.

use std::ptr::NonNull;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::random::Random;
use kiln_platform::{thread, time};
use kiln_protocols::batches::Clusters;
use kiln_protocols::factors::Batches;
use kiln_protocols::schedule::strife::{Isolated, StrifeState};
use kiln_protocols::shared::planning::{Claim, Findings};
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

const KEYS: usize = 20;
const PARTITIONS: usize = 30;
const HOT: usize = 100;

/// The header of a record and some of its columns: two cache lines.
#[repr(C, align(128))]
struct Record([AtomicU64; 16]);

fn claims(records: &[Record], mut draw: impl FnMut() -> usize) -> Vec<Claim> {
    let claim = |_| Claim {
        // SAFETY: the record lives until the end of the benchmark.
        record: unsafe { RecordRef::from_cell(NonNull::from(&records[draw()]).cast()) },
        exclusive: true,
        is_deferred: false,
        part: Part::default(),
        finding: Findings::NO_FINDING,
    };
    (0..KEYS).map(claim).collect()
}

/// The records that transactions of a workload touch.
fn transactions(workload: &str, records: &[Record], count: usize) -> Vec<Vec<Claim>> {
    let mut random = Random::from_seed(7);
    let each = records.len() / PARTITIONS;
    let mut one = |_| {
        let partition = random.below(PARTITIONS) * each;
        match workload {
            "ycsb-low" => claims(records, || partition + random.below(each)),
            // The square of the square favours small numbers about as Zipf's law does.
            "ycsb-high" => claims(records, || {
                partition + (random.unit().powi(8) * each as f64) as usize
            }),
            _ => {
                let mut hot = Some(random.below(HOT));
                let cold = HOT..records.len();
                claims(records, || {
                    hot.take()
                        .unwrap_or_else(|| cold.start + random.below(cold.len()))
                })
            }
        }
    };
    (0..count).map(&mut one).collect()
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, count, rows) = if quick {
        (3, 500, 30_000)
    } else {
        (21, 10_000, 1_000_000)
    };
    let records: Vec<Record> = (0..rows)
        .map(|_| Record([const { AtomicU64::new(0) }; 16]))
        .collect();
    println!("milliseconds for {count} transactions, least and median of {rounds} rounds");
    for workload in ["ycsb-low", "ycsb-high", "hot"] {
        let transactions = transactions(workload, &records, count);
        for threads in [1, 2] {
            let batches = Batches {
                size: count as u32,
                samples: 100,
                ..Batches::default()
            };
            let shared = StrifeState::new(batches);
            let parts = transactions.chunks(count.div_ceil(threads)).enumerate();
            let workers: Vec<Isolated> = parts
                .map(|(at, part)| Isolated::new(shared.clone(), part, Random::from_seed(at as u64)))
                .collect();
            let work = |(at, mut worker): (usize, Isolated)| {
                thread::pin_to_core(at);
                let mut found = Clusters::default();
                let mut times: Vec<f64> = (0..rounds)
                    .map(|_| {
                        let begin = time::now_ns();
                        worker.analyse(&mut |clusters| found = clusters);
                        (time::now_ns() - begin) as f64 / 1e6
                    })
                    .collect();
                times.sort_by(f64::total_cmp);
                (times, found)
            };
            let done: Vec<(Vec<f64>, Clusters)> = thread::scope(|scope| {
                let work = &work;
                let handles: Vec<_> = (workers.into_iter().enumerate())
                    .map(|one| scope.spawn(move || work(one)))
                    .collect();
                (handles.into_iter())
                    .map(|handle| handle.join().expect("no worker fails"))
                    .collect()
            });
            let times = &done[0].0;
            let found = done.iter().map(|(_, found)| found);
            let found = found.max_by_key(|found| found.transactions);
            let found = found.expect("there are workers");
            println!(
                "{workload:<10} {threads} threads {:>8.2} {:>8.2}   {} spot, {} clusters, {} residuals",
                times[0],
                times[rounds / 2],
                found.spot,
                found.conflict_free.len(),
                found.residuals
            );
        }
    }
}
