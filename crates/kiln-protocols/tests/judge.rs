//! The judge finds nothing wrong with any protocol.

#![cfg(feature = "history")]

mod judged;

use kiln_protocols::{Configuration, Protocol};

use judged::{Extras, Trial};

/// Seeds of a protocol's trials, each with other programs. `KILN_SEEDS=FIRST..END` asks for others.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("KILN_SEEDS").ok();
    let bounds = asked.as_deref().and_then(|asked| asked.split_once(".."));
    match bounds {
        Some((first, end)) => {
            let number = |text: &str| text.parse().expect("KILN_SEEDS is FIRST..END");
            number(first)..number(end)
        }
        None if cfg!(kiln_sim) => 0..400,
        None => 0..20,
    }
}

/// Numbers of workers, from two on.
const WORKERS: u64 = if cfg!(kiln_sim) { 7 } else { 3 };

fn trials(protocol: impl Into<Configuration> + Copy, workers: impl Fn(u64) -> u64) {
    let (mut transactions, mut edges) = (0, 0);
    for seed in seeds() {
        let trial = Trial {
            protocol: protocol.into(),
            workers: workers(seed),
            calls: if cfg!(kiln_sim) { 12 } else { 500 },
            keys: 4 + (seed % 5) as usize,
            limit_ns: None,
            extras: Extras {
                texts: true,
                deletions: true,
            },
            seed,
        };
        let report = trial
            .judge()
            .unwrap_or_else(|error| panic!("{trial:?}: {error}"));
        assert!(report.is_serializable(), "{trial:?}\n{report}");
        transactions += report.transactions;
        edges += report.edges;
    }
    assert!(edges > transactions / 2, "the transactions met each other");
}

#[test]
fn serial_is_serializable() {
    trials(Protocol::Serial, |_| 1);
}

#[test]
fn silo_is_serializable() {
    trials(Protocol::Silo, |seed| 2 + seed % WORKERS);
}

#[test]
fn occ_is_serializable() {
    trials(Protocol::Occ, |seed| 2 + seed % WORKERS);
}

#[test]
fn tictoc_is_serializable() {
    trials(Protocol::TicToc, |seed| 2 + seed % WORKERS);
}

#[test]
fn hybrid_is_serializable() {
    trials(Protocol::Hybrid, |seed| 2 + seed % WORKERS);
}

#[test]
fn mocc_is_serializable() {
    trials(Protocol::Mocc, |seed| 2 + seed % WORKERS);
}

#[test]
fn two_phase_locking_is_serializable() {
    trials(Protocol::TwoPhaseLockingNoWait, |seed| 2 + seed % WORKERS);
}
