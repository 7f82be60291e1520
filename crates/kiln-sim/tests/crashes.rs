//! Databases that crash on virtual cores: nothing acknowledged is lost, and each deliberate flaw of
//! the log, of the recovery and of the order of commits loses something.

#![cfg(kiln_sim)]

use kiln_sim::CrashPlan;

fn plan(protocols: &[&str], seed: u64, seeds: u64) -> CrashPlan {
    let protocols = protocols.iter();
    CrashPlan {
        protocols: protocols
            .map(|name| name.parse().expect("a protocol's name"))
            .collect(),
        seed,
        seeds,
        lives: CrashPlan::LIVES,
        crashes: Some(CrashPlan::CRASHES),
        calls: CrashPlan::CALLS,
        jobs: kiln_platform::thread::available_cores(),
        keep: None,
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    let plan = plan(
        &["silo+cu+ts", "mvcc", "2pl-wait-die", "strife", "vll"],
        1,
        1,
    );
    assert_eq!(kiln_sim::first_loss(&plan), Ok(None));
    // In one test: a flaw is there for the whole process.
    #[cfg(feature = "canaries")]
    every_canary_is_caught();
}

/// Each flaw is found within so many seeds of a protocol. The search begins near the seed that shows
/// it, as far as that is known: a flaw that few crashes show takes minutes from the first one.
#[cfg(feature = "canaries")]
fn every_canary_is_caught() {
    use kiln_durability::canary::{self, Canary};
    use kiln_protocols::canary as order;

    const SEEDS_MAX: u64 = 100;
    let mut missed = Vec::new();
    let mut search = |name: String, protocol: &str, from: u64| {
        let plan = plan(&[protocol], from, SEEDS_MAX);
        let found = kiln_sim::first_loss(&plan).expect("the plan is sound");
        match found {
            Some((_, seed, lost)) => println!("{name}, {protocol}: seed {seed}: {lost}"),
            None => missed.push(format!("{name}, {protocol}")),
        }
    };
    for canary in Canary::ALL {
        canary::release(Some(canary));
        let from = match canary {
            Canary::GroupWithoutEndApplied => 66,
            Canary::ReaderNotAwaited | Canary::SequencesNotLogged => 9,
            _ => 1,
        };
        search(format!("{canary:?}"), "silo", from);
    }
    canary::release(None);
    for protocol in ["silo", "mvcc", "2pl-no-wait"] {
        order::release(Some(order::Canary::LogEpochAfterUnlocking));
        search("LogEpochAfterUnlocking".to_owned(), protocol, 1);
    }
    order::release(Some(order::Canary::CommandsUnordered));
    search("CommandsUnordered".to_owned(), "vll", 6);
    order::release(None);
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
