//! The unsafe baselines do what they exist for, and no more: they are not serializable, which the
//! judge sees, and still break neither memory nor indexes.

#![cfg(feature = "history")]

mod judged;

use kiln_protocols::Protocol;

use judged::{Extras, NO_HISTORY, Trial};

/// Seeds of a protocol's trials. `KILN_SEEDS=FIRST..END` asks for others.
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

#[test]
fn the_judge_sees_that_baselines_are_unsafe_and_they_come_through() {
    let unsafe_ones = Protocol::ALL.into_iter().filter(|it| !it.is_serializable());
    for protocol in unsafe_ones {
        let (mut serializable, mut anomalies, mut histories_broken) = (0, 0, 0);
        for seed in seeds() {
            let trial = Trial {
                protocol: protocol.into(),
                workers: 2 + seed % 4,
                cores: 2 + seed % 4,
                calls: if cfg!(kiln_sim) { 12 } else { 500 },
                keys: 4 + (seed % 5) as usize,
                limit_ns: None,
                extras: Extras {
                    loops: false,
                    texts: true,
                    deletions: true,
                    primary_keys: true,
                    through_keys: false,
                    chains: false,
                    mix: Default::default(),
                },
                healing: Default::default(),
                lock_queue: Default::default(),
                claims: Default::default(),
                early_aborts: Default::default(),
                deadlock_avoidance: Default::default(),
                listens: false,
                blocks: false,
                seed,
            };
            match trial.judge() {
                Ok((report, _)) if report.is_serializable() => serializable += 1,
                Ok(_) => anomalies += 1,
                Err(error) if error.starts_with(NO_HISTORY) => histories_broken += 1,
                Err(error) => panic!("{trial:?}: {error}"),
            }
        }
        println!(
            "{protocol}: {serializable} trials serializable, {anomalies} with anomalies, \
             {histories_broken} without a sensible history"
        );
        assert!(anomalies > 0, "{protocol} looks serializable");
    }
}
