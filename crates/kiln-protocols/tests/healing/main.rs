//! Healing equals running again: while random programs run, between any two of their operations or
//! before their commit, another transaction changes rows, and the healed attempt must do what a
//! fresh run on the changed rows does.
//!
//! Two tables of each kind have the same rows. In one the program is interrupted and healed, in the
//! other it runs once, serially, after the changes. The rows, the result and the error must be the
//! same.
//!
//! `KILN_HEALING_CASES` says how many cases, `KILN_TEST_SEED` where they begin.

mod changes;
mod database;
mod interrupted;
mod programs;

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::access::{Deferring, GoesOn, Planning, Remembering};
use kiln_procedure::{Access, Arguments, Executor, Frame, Program, Stop};
use kiln_protocols::Statistics;
use kiln_protocols::access::healing::Healing;
use kiln_protocols::factors::{HealingFactors, RestorationKind, Use, ValidationOrder};
use kiln_protocols::phases::Phased;
use kiln_storage::types::Value;

use changes::Others;
use database::*;
use interrupted::{Interrupted, Pending};
use programs::{PARAMETERS, program};

/// Attempts of one call in a row, without competitors, that may fail.
const ATTEMPTS_MAX: u32 = 50;

/// What the cases met.
#[derive(Default)]
struct Met {
    healed: u64,
    rejected: u64,
    aborts: u64,
    /// Changes made between operations.
    between: u64,
}

/// The access that is interrupted and heals.
fn access(others: &Others, factors: HealingFactors, defers: bool) -> Healing {
    let participant = others.healed.epochs.register().expect("a slot is free");
    Healing::new(participant, factors, defers)
}

struct Pair {
    factors: HealingFactors,
    defers: bool,
    others: Others,
    healing: Healing,
    frame: Frame,
    met: Met,
    /// Of accesses that are gone.
    statistics: Statistics,
}

impl Pair {
    fn new(factors: HealingFactors, defers: bool) -> Pair {
        let others = Others::new();
        Pair {
            healing: access(&others, factors, defers),
            factors,
            defers,
            frame: Frame::new(),
            others,
            met: Met::default(),
            statistics: Statistics::default(),
        }
    }

    fn case(&mut self, seed: u64) {
        let mut random = Random::from_seed(seed);
        // One that has never been disturbed keeps nothing for a restoration.
        if random.below(3) == 0 {
            self.healing.add_counts(&mut self.statistics);
            self.healing = access(&self.others, self.factors, self.defers);
        }
        for _ in 0..2 {
            self.others.refill(&mut random);
        }
        let (making, operations) = (random.between(0, i64::MAX) as u64, 2 + random.below(7));
        let program_healed = program(&self.others.healed, making, operations);
        let program_fresh = program(&self.others.fresh, making, operations);
        // In two cases of three what a restoration needs is kept, in the others what no other
        // worker disturbs keeps nothing.
        if random.below(3) > 0 {
            self.healing.expect_disturbance(&program_healed);
        }
        self.call(&mut random, [&program_healed, &program_fresh], seed);
    }

    /// Calls the same program in both databases, which must do the same.
    fn call(&mut self, random: &mut Random, [healed, fresh]: [&Arc<Program>; 2], seed: u64) {
        let values: Vec<Value> = (0..PARAMETERS)
            .map(|_| Value::Integer(random.below(KEYS) as i32))
            .collect();
        let mut arguments = Arguments::from_values(&values);
        arguments.bind(healed).expect("the arguments suit it");
        let mut pending = Pending {
            left: 1 + random.below(4),
            after: None,
            random: Random::from_seed(random.between(0, i64::MAX) as u64),
        };
        // In two cases of three the changes come at any time, in the others at the end of the first
        // run.
        if random.below(3) > 0 {
            pending.draw();
        }
        let effect = self.heal(healed, &arguments, pending);
        let outcome = self.others.fresh.worker.call(fresh, &arguments, None);
        let expected = effect_of(&self.others.fresh.worker, fresh, outcome);
        assert_eq!(effect, expected, "seed {seed}: {:#?}", fresh.body);
        assert_eq!(
            self.others.healed.rows(),
            self.others.fresh.rows(),
            "seed {seed}: {:#?}",
            fresh.body
        );
        self.met.rejected += u64::from(expected.is_err());
        for database in [&self.others.healed, &self.others.fresh] {
            database.epochs.advance();
        }
    }

    /// Runs the program, has others change rows meanwhile and at the end of the first run, and
    /// brings it to its end.
    fn heal(&mut self, program: &Program, arguments: &Arguments, mut pending: Pending) -> Effect {
        self.healing.begin_call(None);
        for attempt in 0..ATTEMPTS_MAX {
            self.healing.prepare(attempt);
            self.healing.begin();
            self.healing
                .plan(program, arguments)
                .expect("nothing is planned");
            let (mut has_locks, mut part) = (false, None);
            let stop = loop {
                let left = pending.left;
                let mut interrupted = Interrupted {
                    healing: &mut self.healing,
                    others: &mut self.others,
                    pending: &mut pending,
                    has_locks,
                };
                let (access, frame) = (&mut interrupted, &mut self.frame);
                let run = match part.take() {
                    None => Executor::run(program, access, frame, arguments),
                    Some(part) => Executor::restore(program, part, access, frame),
                };
                self.met.between += (left - pending.left) as u64;
                if pending.after.is_none() {
                    for _ in 0..std::mem::take(&mut pending.left) {
                        self.others.change(&mut pending.random, has_locks);
                    }
                }
                has_locks = true;
                let Err(stop) = run.and_then(|()| self.healing.commit()) else {
                    return Ok(self.frame.result_values(program));
                };
                match self.healing.goes_on(program, &stop) {
                    GoesOn::No => break stop,
                    GoesOn::Again => {}
                    GoesOn::Restored(restoration) => part = Some(restoration),
                }
                self.met.healed += 1;
            };
            let error = match stop {
                Stop::Raise(error) => self.healing.confirm_raise(error).ok(),
                Stop::Abort(_) => None,
            };
            self.healing.roll_back();
            if let Some(error) = error {
                return Err((error.state(), error.to_string()));
            }
            self.met.aborts += 1;
        }
        panic!("an attempt without competitors fails again and again");
    }
}

fn cases() -> u64 {
    let asked = std::env::var("KILN_HEALING_CASES").ok();
    asked.map_or(3_000, |asked| asked.parse().expect("a number of cases"))
}

fn first_seed() -> u64 {
    let asked = std::env::var("KILN_TEST_SEED").ok();
    asked.map_or(0, |asked| asked.parse().expect("a seed"))
}

fn run(factors: HealingFactors, cases: u64) -> (Met, Statistics) {
    run_with(factors, false, cases)
}

fn run_with(factors: HealingFactors, defers: bool, cases: u64) -> (Met, Statistics) {
    let mut pair = Pair::new(factors, defers);
    for seed in first_seed()..first_seed() + cases {
        pair.case(seed);
    }
    pair.healing.add_counts(&mut pair.statistics);
    let Met {
        healed,
        rejected,
        aborts,
        between,
    } = pair.met;
    let Others { made, given_up, .. } = pair.others;
    println!(
        "{cases} cases: healed {healed} times, {rejected} rejected, {aborts} aborts, {made} changes, {between} of \
         them between operations, {given_up} given up"
    );
    assert!(between > cases / 2, "few changes come between operations");
    (pair.met, pair.statistics)
}

#[test]
fn healing_equals_running_again() {
    let (met, statistics) = run(HealingFactors::default(), cases());
    assert!(met.healed * 10 > cases(), "most cases have nothing to heal");
    assert!(met.aborts * 50 < cases(), "attempts are aborted instead");
    assert_eq!(statistics.healings, met.healed);
    assert!(statistics.restored_total() > met.healed / 2);
    let parts = met.healed - statistics.reruns.values().sum::<u64>();
    println!(
        "{parts} parts, {:.2} of the operations, all for {:?}",
        statistics.run_again_share(),
        statistics.reruns
    );
    assert!(parts * 15 > met.healed, "whole programs run again");
    assert!(statistics.run_again_share() < 0.99);
}

#[test]
fn running_again_with_the_access_cache_equals_running_again() {
    let factors = HealingFactors {
        restoration: RestorationKind::Rerun,
        ..HealingFactors::default()
    };
    let (met, statistics) = run(factors, cases());
    assert_eq!(statistics.reruns.get("chosen"), Some(&met.healed));
}

#[test]
fn healing_in_other_orders_and_without_copies_equals_running_again() {
    for order in [ValidationOrder::Address, ValidationOrder::Reversed] {
        let factors = HealingFactors {
            validation_order: order,
            read_locks: Use::On,
            ..HealingFactors::default()
        };
        run(factors, cases() / 10);
    }
    let factors = HealingFactors {
        read_copies: Use::Off,
        ..HealingFactors::default()
    };
    let (met, _) = run(factors, cases() / 10);
    assert!(met.healed > 0);
}

#[test]
fn healing_with_commit_time_updates_equals_running_again() {
    run_with(HealingFactors::default(), true, cases() / 3);
}

#[test]
fn without_access_cache_attempts_abort() {
    let factors = HealingFactors {
        access_cache: Use::Off,
        ..HealingFactors::default()
    };
    let (met, statistics) = run(factors, cases() / 10);
    assert_eq!((met.healed, statistics.healings), (0, 0));
    assert!(met.aborts > 0);
}
