//! Crashes: nothing acknowledged is lost, whatever the disk does.
//!
//! A *life* is a run on virtual cores over a [simulated disk](kiln_platform::sim::disk): it opens
//! the database, lets clients work, and notes what each was told, and when. The disk is filmed
//! meanwhile, so that one life shows what a crash at every moment of every operation leaves. Each
//! such disk is opened again, perhaps under another protocol, and has to hold what was told until
//! then, and only what transactions one after the other can have made. Then the next life goes on
//! with one of these disks.
//!
//! | module | holds |
//! |---|---|
//! | `schema` | tables whose rows tell what came before what |
//! | `definitions` | the client that changes the catalog |
//! | `clients` | the others |
//! | `life` | one run |
//! | `picture` | what a database holds, and whether that can be |
//! | `ledger` | what clients were told, and whether it is there |
//! | `search` | a seed: lives, crashes, failing and damaged disks |

mod clients;
mod definitions;
mod ledger;
mod life;
mod picture;
mod schema;
mod search;

use std::collections::BTreeMap;

use kiln_engine::Configuration;
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{thread, time};

use crate::crash_plan::CrashPlan;
use crate::report::show;
use search::Case;
pub(crate) use search::Counted;

/// What the seeds of a protocol have done.
struct Tested {
    counted: Counted,
    seeds: u64,
    seconds: f64,
    /// The first seed that lost something, and what.
    lost: Option<(u64, String)>,
}

/// The first thing that the plan's seeds find lost, of the first protocol that loses something:
/// which, under what seed, and what.
pub(crate) fn first_loss(plan: &CrashPlan) -> Option<(Configuration, u64, String)> {
    plan.protocols.iter().find_map(|protocol| {
        let (seed, lost) = test(plan, *protocol).lost?;
        Some((*protocol, seed, lost))
    })
}

/// Carries out the plan. Returns whether nothing was lost.
///
/// # Errors
/// Why there is no result.
pub(crate) fn run(plan: &CrashPlan) -> Result<bool, String> {
    let mut lines = vec![format!(
        "{:<28} {:>6} {:>7} {:>9} {:>8} {:>8} {:>13} {:>9} {:>8} {:>5}",
        "protocol",
        "seeds",
        "lives",
        "failures",
        "crashes",
        "damaged",
        "acknowledged",
        "judged",
        "seconds",
        "lost"
    )];
    let (mut sum, mut seconds, mut is_well) = (Counted::default(), 0.0, true);
    for protocol in &plan.protocols {
        let tested = test(plan, *protocol);
        let name = protocol.to_string();
        eprintln!(
            "{name}: {} crashes in {:.1} s",
            tested.counted.crashes, tested.seconds
        );
        if let Some((seed, lost)) = &tested.lost {
            let again = CrashPlan {
                protocols: vec![*protocol],
                seed: *seed,
                seeds: 1,
                ..plan.clone()
            };
            show(&format!(
                "{name}, seed {seed}: {lost}\n  again: cargo sim {}\n",
                again.arguments()
            ))?;
            is_well = false;
        }
        lines.push(line(
            &name,
            tested.seeds,
            &tested.counted,
            tested.seconds,
            u64::from(tested.lost.is_some()),
        ));
        sum.add(&tested.counted);
        seconds += tested.seconds;
    }
    lines.push(line("all", plan.seeds, &sum, seconds, u64::from(!is_well)));
    show(&(lines.join("\n") + "\n"))?;
    Ok(is_well)
}

fn line(name: &str, seeds: u64, counted: &Counted, seconds: f64, lost: u64) -> String {
    format!(
        "{name:<28} {seeds:>6} {:>7} {:>9} {:>8} {:>8} {:>13} {:>9} {seconds:>8.1} {lost:>5}",
        counted.lives,
        counted.failed_disks,
        counted.crashes,
        counted.damaged,
        counted.acknowledged,
        counted.judged
    )
}

/// Runs the seeds of a protocol, several at a time, up to the first that loses something.
fn test(plan: &CrashPlan, protocol: Configuration) -> Tested {
    let begin = time::now_ns();
    let next = AtomicU64::new(plan.seed);
    let end = plan.seed.saturating_add(plan.seeds);
    let runs: Mutex<BTreeMap<u64, Result<Counted, String>>> = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(|| {
                loop {
                    // Relaxed: a seed carries nothing but itself.
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let done = seed_of(plan, protocol, seed);
                    if done.is_err() {
                        // Those that are under way end; the first of all is reported.
                        next.store(end, Ordering::Relaxed);
                    }
                    lock(&runs).insert(seed, done);
                }
            });
        }
    });
    let mut tested = Tested {
        counted: Counted::default(),
        seeds: 0,
        seconds: (time::now_ns() - begin) as f64 / 1e9,
        lost: None,
    };
    for (seed, run) in std::mem::take(&mut *lock(&runs)) {
        tested.seeds += 1;
        match run {
            Ok(counted) => tested.counted.add(&counted),
            Err(lost) => tested.lost = tested.lost.or(Some((seed, lost))),
        }
    }
    tested
}

fn seed_of(plan: &CrashPlan, protocol: Configuration, seed: u64) -> Result<Counted, String> {
    let case = Case {
        protocol,
        protocols: &CrashPlan::configurations(),
        seed,
        lives: plan.lives,
        crashes: plan.crashes,
        deeds: plan.calls,
        keep: plan.keep.as_deref(),
    };
    case.run()
}
