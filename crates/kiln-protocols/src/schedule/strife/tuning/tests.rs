//! What batches show, made up.

use super::*;

const NOW: Chosen = Chosen {
    size: 4096,
    samples: 100,
    alpha_permille: 200,
};

/// Four batches of 4096 transactions on eight workers with forty clusters of equal size.
const EVEN: Shown = Shown {
    batches: 4,
    full: 4,
    workers: 8,
    transactions: 4 * 4096,
    spot: 4 * 40,
    late: 4 * 12,
    left: 4 * 40,
    largest: 4 * 100,
    residuals: 4 * 100,
    serial_ns: 4 * 20_000,
    total_ns: 4 * 2_000_000,
    period_ns: 4 * 3_000_000,
};

fn bounds() -> Bounds {
    Bounds {
        size: 512..=8192,
        samples: 16..=320,
        alpha_permille: 25..=800,
    }
}

/// One that begins with [`NOW`].
fn begun() -> Tuner {
    Tuner {
        climb: Climb::new(NOW, RULES),
        ..Tuner::new(bounds())
    }
}

fn proposed(shown: Shown) -> Option<Step> {
    propose(NOW, &shown, &bounds(), |_| true)
}

#[test]
fn each_step_has_its_reason() {
    assert_eq!(proposed(EVEN), None);
    let lopsided = Shown {
        largest: 4 * 2000,
        ..EVEN
    };
    assert_eq!(proposed(lopsided), Some(Step::MoreSamples));
    let few_hits = Shown {
        spot: 4 * 40,
        late: 4 * 5,
        left: 4 * 40,
        ..lopsided
    };
    assert_eq!(proposed(few_hits), Some(Step::SmallerBatches));
    let merged = Shown {
        left: 4 * 20,
        ..few_hits
    };
    assert_eq!(proposed(merged), Some(Step::LargerAlpha));
    let serial = Shown {
        serial_ns: 4 * 200_000,
        ..EVEN
    };
    assert_eq!(proposed(serial), Some(Step::LargerBatches));
    assert_eq!(proposed(Shown { full: 3, ..serial }), None);
    let residual = Shown {
        residuals: 4 * 1500,
        largest: 4 * 60,
        ..EVEN
    };
    assert_eq!(proposed(residual), Some(Step::SmallerAlpha));
    let missed = Shown {
        spot: 4 * 5,
        left: 4 * 5,
        ..EVEN
    };
    assert_eq!(proposed(missed), Some(Step::FewerSamples));
    let long = Shown {
        total_ns: 4 * 13_000_000,
        ..EVEN
    };
    assert_eq!(proposed(long), Some(Step::SmallerBatches));
}

#[test]
fn steps_stay_within_bounds() {
    let mut now = NOW;
    for (step, expected) in [
        (Step::MoreSamples, (4096, 200, 200)),
        (Step::MoreSamples, (4096, 320, 200)),
        (Step::LargerBatches, (8192, 320, 200)),
        (Step::LargerBatches, (8192, 320, 200)),
        (Step::LargerAlpha, (8192, 320, 400)),
        (Step::FewerSamples, (8192, 160, 400)),
        (Step::SmallerAlpha, (8192, 160, 200)),
    ] {
        now = step.taken(now, &bounds());
        let found = (now.size, now.samples, now.alpha_permille);
        assert_eq!(found, expected, "{step:?}");
    }
    let most = Chosen {
        samples: 320,
        ..NOW
    };
    let lopsided = Shown {
        spot: 4 * 300,
        late: 4 * 120,
        left: 4 * 300,
        largest: 4 * 2000,
        ..EVEN
    };
    let step = propose(most, &lopsided, &bounds(), |_| true);
    assert_eq!(step, Some(Step::SmallerBatches));
}

/// What a batch would show, of a workload whose clusters are even from so many samples on.
/// Twice as even, twice as fast.
fn shown(now: Chosen, samples_needed: u32) -> Shown {
    let largest = if now.samples < samples_needed {
        2000
    } else {
        100
    };
    Shown {
        batches: 1,
        full: 1,
        workers: 8,
        transactions: 4096,
        spot: u64::from(now.samples.min(samples_needed)) * 2 / 3,
        late: if now.samples < samples_needed { 40 } else { 4 },
        left: u64::from(now.samples.min(samples_needed)) * 2 / 3,
        largest,
        residuals: 100,
        serial_ns: 20_000,
        total_ns: 10_000 * largest,
        period_ns: 10_000 * largest,
    }
}

#[test]
fn what_does_good_stays_and_what_does_not_is_taken_back() {
    let mut tuner = begun();
    // Steps go on while each is better: here the second one is, and the first one is not.
    for _ in 0..400 {
        tuner.learn(&shown(tuner.now(), 200));
    }
    assert_eq!(tuner.now().samples, 200);
    assert_eq!(tuner.tried, None);
    // A workload in which nothing helps: what is tried is taken back, and seldom repeated.
    let mut tuner = begun();
    let mut away = 0;
    for _ in 0..4000 {
        let lopsided = shown(
            Chosen {
                samples: 100,
                ..NOW
            },
            150,
        );
        tuner.learn(&lopsided);
        away += u32::from(tuner.now() != NOW);
    }
    assert!((1..400).contains(&away), "{away} of 4000 batches");
}

#[test]
fn a_try_that_makes_things_much_worse_ends_with_its_first_batch() {
    let mut tuner = begun();
    let lopsided = shown(NOW, 200);
    for _ in 0..BATCHES {
        tuner.learn(&lopsided);
    }
    assert_eq!(tuner.now().samples, 200);
    let slow = Shown {
        period_ns: lopsided.period_ns * 2,
        ..lopsided
    };
    for _ in 0..=SKIPPED {
        tuner.learn(&slow);
    }
    assert_eq!((tuner.now(), tuner.tried), (NOW, None));
}

#[test]
fn another_workload_makes_impatient() {
    let mut tuner = begun();
    tuner.patience = [(1000, 2000); Step::ALL.len()];
    let even = shown(
        Chosen {
            samples: 100,
            ..NOW
        },
        100,
    );
    for _ in 0..BATCHES {
        tuner.learn(&even);
    }
    tuner.patience = [(1000, 2000); Step::ALL.len()];
    for _ in 0..BATCHES * 3 {
        tuner.learn(&even);
    }
    assert_eq!(tuner.patience[0], (997, 2000));
    for _ in 0..BATCHES {
        tuner.learn(&shown(
            Chosen {
                samples: 100,
                ..NOW
            },
            150,
        ));
    }
    assert_eq!(tuner.now().samples, 200);
}

#[test]
fn what_somebody_has_chosen_stays() {
    let chosen = Batches {
        size: 100,
        samples: 7,
        residuals_permille: Some(0),
        ..Batches::default()
    };
    let mut tuner = Tuner::new(Bounds::new(chosen));
    let first = tuner.now();
    assert_eq!(
        (first.size, first.samples, first.alpha_permille),
        (100, 7, 0)
    );
    for _ in 0..100 {
        tuner.learn(&shown(NOW, 200));
    }
    assert_eq!(tuner.now(), first);
}
