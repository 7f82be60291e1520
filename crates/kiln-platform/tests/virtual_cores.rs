//! Runs on virtual cores: the same seed gives the same run, schedules find what they should find,
//! and runs that cannot go on say why.

#![cfg(kiln_sim)]

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use kiln_platform::sim::{self, Cause, Config, Report, Schedule};
use kiln_platform::sync::{Arc, Condvar, Mutex, RwLock, lock};
use kiln_platform::{plain, random, schedule, spin, thread, time, work};

const SCHEDULES: [Schedule; 3] = [
    Schedule::Random,
    Schedule::Pct {
        depth: 3,
        steps: 50,
    },
    Schedule::LeastTime,
];

fn config(schedule: Schedule, seed: u64) -> Config {
    Config::new(schedule, seed)
}

/// A bit of everything: atomics, locks, conditions, parking, sleeping, allocation.
fn mixture() -> u64 {
    let counter = Arc::new(AtomicU64::new(0));
    let log = Arc::new(Mutex::new(Vec::<Box<u64>>::new()));
    let changed = Arc::new(Condvar::new());
    let shared = Arc::new(RwLock::new(0_u64));
    let waiter = {
        let (log, changed) = (log.clone(), changed.clone());
        let body = move || {
            let mut seen = lock(&log);
            while seen.len() < 20 {
                seen = changed.wait(seen).expect("no thread panics");
            }
            seen.iter()
                .map(|number| **number)
                .fold(0, u64::wrapping_add)
        };
        thread::spawn("waiter", body).expect("a thread")
    };
    thread::scope(|scope| {
        for position in 0..4 {
            let (counter, log, changed) = (&counter, &log, &changed);
            let shared = &shared;
            scope.spawn(move || {
                thread::pin_to_core(position);
                let mut backoff = spin::Backoff::new(random::Random::stream(1, position as u64));
                for round in 0..10 {
                    let number = counter.fetch_add(1, Ordering::Relaxed);
                    work::charge(work::Work::Step);
                    if round % 2 == 0 {
                        lock(log).push(Box::new(number * 31 + position as u64));
                        changed.notify_all();
                    }
                    if round % 3 == 0 {
                        *shared.write().expect("no thread panics") += 1;
                    } else {
                        assert!(*shared.read().expect("no thread panics") <= 16);
                    }
                    fence(Ordering::SeqCst);
                    backoff.wait(None);
                    thread::sleep(100 * number);
                }
            });
        }
    });
    let sum = waiter.join().expect("no thread panics");
    sum ^ *shared.read().expect("no thread panics") ^ time::now_ns() ^ random::fresh_seed()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for schedule in SCHEDULES {
        let run = |seed| sim::run(&config(schedule, seed), mixture).expect("the run ends");
        let first: Vec<(u64, Report)> = (0..20)
            .map(&run)
            .map(|run| (run.value, run.report))
            .collect();
        // Other allocations meanwhile must not matter.
        let noise: Vec<Vec<u8>> = (0..1_000).map(|size| vec![1; size]).collect();
        for (seed, expected) in first.iter().enumerate() {
            let again = run(seed as u64);
            assert_eq!(
                (again.value, again.report),
                *expected,
                "{schedule:?}, seed {seed}"
            );
        }
        drop(noise);
        let hashes: std::collections::BTreeSet<u64> =
            first.iter().map(|(_, report)| report.trace_hash).collect();
        let expected = if schedule == Schedule::LeastTime {
            1
        } else {
            15
        };
        assert!(
            hashes.len() >= expected,
            "{schedule:?}: {} different runs",
            hashes.len()
        );
        assert!(
            first
                .iter()
                .all(|(_, report)| report.unfinished == 0 && report.threads == 6)
        );
    }
}

#[test]
fn maps_of_the_standard_library_iterate_alike() {
    let order = || {
        let body = || {
            let map: std::collections::HashMap<u32, Box<u32>> =
                (0..100).map(|number| (number, Box::new(number))).collect();
            map.into_keys().collect::<Vec<u32>>()
        };
        let run = sim::run(&config(Schedule::Random, 1), body).expect("the run ends");
        run.value.clone()
    };
    let first = order();
    assert!((0..5).all(|_| order() == first));
}

#[test]
fn runs_side_by_side_do_not_disturb_each_other() {
    let expected = sim::run(&config(Schedule::Random, 5), mixture)
        .expect("the run ends")
        .report;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let run = sim::run(&config(Schedule::Random, 5), mixture);
                    assert_eq!(run.expect("the run ends").report, expected);
                }
            });
        }
    });
}

/// Something that takes about a tenth of a microsecond on a modelled machine.
fn compute() {
    for _ in 0..8 {
        work::charge(work::Work::Lookup);
    }
}

/// Two threads that add by loading and storing; says whether an update was lost.
fn loses_an_update() -> bool {
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    schedule::point("sum.load");
                    let seen = sum.load(Ordering::SeqCst);
                    schedule::point("sum.store");
                    // By the clock the sum is stored some time after it was loaded.
                    compute();
                    sum.store(seen + 1, Ordering::SeqCst);
                }
            });
        }
    });
    sum.load(Ordering::SeqCst) < 40
}

#[test]
fn schedules_find_a_lost_update() {
    for schedule in SCHEDULES {
        let lost = |seed| {
            sim::run(&config(schedule, seed), loses_an_update)
                .expect("ends")
                .value
        };
        let found = (0..50).filter(|seed| lost(*seed)).count();
        assert!(found > 0, "{schedule:?} finds nothing");
    }
}

#[test]
fn a_script_forces_an_interleaving_and_its_absence() {
    // Both load before either stores, then one after the other.
    let script = |steps: &[(&str, &'static str)]| {
        let mut config = config(Schedule::Random, 1);
        config.script = steps
            .iter()
            .map(|(name, point)| ((*name).to_owned(), *point))
            .collect();
        let body = || {
            let sum = Arc::new(AtomicU64::new(0));
            let add = |name: &str| {
                let sum = sum.clone();
                let body = move || {
                    schedule::point("sum.load");
                    let seen = sum.load(Ordering::SeqCst);
                    schedule::point("sum.store");
                    sum.store(seen + 1, Ordering::SeqCst);
                    schedule::point("sum.end");
                };
                thread::spawn(name, body).expect("a thread")
            };
            for thread in [add("t1"), add("t2")] {
                thread.join().expect("no thread panics");
            }
            sum.load(Ordering::SeqCst)
        };
        sim::run(&config, body).map(|run| run.value)
    };
    let lost = [("t1", "sum.store"), ("t2", "sum.end"), ("t1", "sum.end")];
    assert_eq!(script(&lost), Ok(1));
    let kept = [("t1", "sum.end"), ("t2", "sum.end")];
    assert_eq!(script(&kept), Ok(2));
    let missed = script(&[("t1", "sum.end"), ("t1", "sum.load")]).expect_err("never reached");
    assert_eq!(
        missed.to_string(),
        "seed 1: the run ended before t1 reached sum.load"
    );
}

#[test]
fn spin_loops_end_under_every_schedule() {
    for schedule in SCHEDULES {
        for seed in 0..20 {
            let body = || {
                let turn = AtomicU64::new(0);
                thread::scope(|scope| {
                    for me in 0..3 {
                        let turn = &turn;
                        scope.spawn(move || {
                            for round in 0..5 {
                                let mut spinner = spin::Spinner::default();
                                while turn.load(Ordering::Acquire) != round * 3 + me {
                                    spinner.spin();
                                }
                                turn.fetch_add(1, Ordering::Release);
                            }
                        });
                    }
                });
                turn.load(Ordering::Relaxed)
            };
            let mut config = config(schedule, seed);
            config.steps_max = 100_000;
            assert_eq!(sim::run(&config, body).expect("the loops end").value, 15);
        }
    }
}

#[test]
fn a_panic_names_the_thread_and_the_seed() {
    for schedule in SCHEDULES {
        let body = || {
            let held = Arc::new(Mutex::new(0));
            let inside = held.clone();
            let body = move || {
                let _guard = lock(&inside);
                panic!("the number is {}", 7);
            };
            let thread = thread::spawn("unlucky", body).expect("a thread");
            // Waits for a thread that never ends well.
            let _ = thread.join();
        };
        let failure = sim::run(&config(schedule, 12), body).expect_err("it panics");
        assert_eq!(
            failure.to_string(),
            "seed 12: unlucky panicked: the number is 7"
        );
    }
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    for schedule in SCHEDULES {
        let found = (0..50).find_map(|seed| {
            let body = || {
                let locks = [Mutex::new(()), Mutex::new(())];
                for (number, lock) in locks.iter().enumerate() {
                    let address = std::ptr::from_ref(lock).addr();
                    sim::name_range(address, size_of_val(lock), || format!("lock {number}"));
                }
                let locks = &locks;
                thread::scope(|scope| {
                    for (first, second) in [(0, 1), (1, 0)] {
                        scope.spawn(move || {
                            let _first = lock(&locks[first]);
                            schedule::point("test.between");
                            for _ in 0..100 {
                                compute();
                            }
                            let _second = lock(&locks[second]);
                        });
                    }
                });
            };
            sim::run(&config(schedule, seed), body).err()
        });
        let failure = found.unwrap_or_else(|| panic!("{schedule:?} deadlocks for no seed"));
        let text = failure.to_string();
        let Cause::Deadlock { waits } = failure.cause else {
            panic!("{text}")
        };
        assert_eq!(waits.len(), 3, "{text}");
        for part in [
            "main waits for the threads of a scope",
            "mutex lock 0",
            "mutex lock 1",
            "after test.between",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn a_run_without_end_is_given_up() {
    for schedule in SCHEDULES {
        let mut config = config(schedule, 3);
        config.steps_max = 10_000;
        let body = || {
            let stop = AtomicBool::new(false);
            while !stop.load(Ordering::Relaxed) {
                spin::hint();
            }
        };
        let failure = sim::run(&config, body).expect_err("it never ends");
        assert!(
            matches!(failure.cause, Cause::TooLong { steps: 10_000, .. }),
            "{failure}"
        );
    }
}

#[test]
fn time_is_virtual_and_sleeping_takes_none() {
    for schedule in SCHEDULES {
        let body = || {
            let begin = time::now_ns();
            let sleeper = thread::spawn("sleeper", || {
                thread::sleep(3_600_000_000_000);
                time::now_ns()
            });
            thread::park_for(1_000_000);
            let parked = time::now_ns();
            let woken = sleeper.expect("a thread").join().expect("no thread panics");
            (parked - begin, woken - begin)
        };
        let (parked, slept) = sim::run(&config(schedule, 1), body)
            .expect("the run ends")
            .value;
        assert!(
            (1_000_000..1_100_000).contains(&parked),
            "{schedule:?}: {parked}"
        );
        assert!(
            (3_600_000_000_000..3_600_001_000_000).contains(&slept),
            "{schedule:?}: {slept}"
        );
    }
}

#[test]
fn quiet_parts_are_not_counted_and_still_wait() {
    for schedule in SCHEDULES {
        let body = || {
            sim::quiet(|| {
                let (sum, go) = (AtomicU64::new(0), AtomicBool::new(false));
                thread::scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|| {
                            while !go.load(Ordering::Acquire) {
                                spin::hint();
                            }
                            for _ in 0..1_000 {
                                sum.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    }
                    thread::yield_now();
                    go.store(true, Ordering::Release);
                });
                sum.load(Ordering::Relaxed)
            })
        };
        let run = sim::run(&config(schedule, 1), body).expect("the run ends");
        assert_eq!((run.value, run.report.accesses), (3_000, 0), "{schedule:?}");
    }
}

#[test]
fn cores_that_share_a_line_wait_for_each_other() {
    let per_core = |cores: usize, shared: bool| {
        let mut config = config(Schedule::LeastTime, 1);
        config.machine = sim::Preset::named("orthrus").expect("a preset");
        config.cores = cores;
        let body = move || {
            #[repr(align(128))]
            struct CachePadded(AtomicU64);
            let counters: Vec<CachePadded> =
                (0..cores).map(|_| CachePadded(AtomicU64::new(0))).collect();
            let counters = &counters;
            let begin = time::now_ns();
            thread::scope(|scope| {
                for core in 0..cores {
                    scope.spawn(move || {
                        thread::pin_to_core(core);
                        for _ in 0..200 {
                            let counter = &counters[if shared { 0 } else { core }].0;
                            counter.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            time::now_ns() - begin
        };
        sim::run(&config, body).expect("the run ends").value
    };
    assert!(
        per_core(16, false) < 2 * per_core(1, false),
        "cores do not share what is apart"
    );
    assert!(
        per_core(16, true) > 10 * per_core(16, false),
        "one line is handed around"
    );
    assert!(
        per_core(80, true) > 4 * per_core(16, true),
        "and farther on a larger machine"
    );
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refusal = |change: fn(&mut Config)| {
        let mut config = config(Schedule::LeastTime, 1);
        change(&mut config);
        sim::run(&config, || ()).expect_err("refused").to_string()
    };
    assert!(refusal(|config| config.cores = 0).contains("at least one core"));
    assert!(refusal(|config| config.cores = 1_000).contains("1000"));
    let pct = |depth, steps| Schedule::Pct { depth, steps };
    assert!(!refusal(|config| config.schedule = Schedule::Pct { depth: 0, steps: 1 }).is_empty());
    assert!(pct(1, 1) != pct(0, 1));
    assert!(refusal(|config| config.script.push(("a".to_owned(), "b"))).contains("script"));
}

/// Two cores that hand ten lines of plain memory to and fro this often. Returns the lines that
/// moved and the virtual nanoseconds that it took.
fn hands_over(rounds: u64, tells: bool) -> (u64, u64) {
    let mut config = config(Schedule::LeastTime, 1);
    config.cores = 2;
    let body = || {
        let turn = AtomicU64::new(0);
        let letter = vec![0_u64; 80];
        let began = time::now_ns();
        thread::scope(|scope| {
            for me in 0..2 {
                let (turn, letter) = (&turn, &letter);
                scope.spawn(move || {
                    thread::pin_to_core(me as usize);
                    for round in 0..rounds {
                        let mut spinner = spin::Spinner::default();
                        while turn.load(Ordering::Acquire) != round * 2 + me {
                            spinner.spin();
                        }
                        if tells {
                            plain::reads(letter.as_slice());
                            plain::writes(letter.as_slice());
                        }
                        turn.fetch_add(1, Ordering::Release);
                    }
                });
            }
        });
        let moved = sim::statistics().lines_transferred();
        (moved, time::now_ns() - began)
    };
    sim::run(&config, body).expect("the run ends").value
}

#[test]
fn plain_memory_that_is_handed_over_moves_its_lines() {
    const ROUNDS: u64 = 50;
    let (silent, silent_ns) = hands_over(ROUNDS, false);
    let (told, told_ns) = hands_over(ROUNDS, true);
    let lines = 2 * ROUNDS * 10;
    assert!(
        told >= silent + lines - 20,
        "{told} and {silent} lines moved"
    );
    assert!(
        told_ns > silent_ns + 10 * lines,
        "{told_ns} and {silent_ns} ns"
    );
}

/// What a core has in its first-level cache is in the prices of the work that uses it.
#[test]
fn plain_memory_of_one_core_costs_nothing() {
    let body = || {
        let memory = vec![0_u64; 80];
        plain::writes(memory.as_slice());
        let began = time::now_ns();
        for _ in 0..1_000 {
            plain::reads(memory.as_slice());
            plain::writes(memory.as_slice());
        }
        time::now_ns() - began
    };
    let run = sim::run(&config(Schedule::LeastTime, 1), body).expect("the run ends");
    // The clock itself takes some.
    assert!(run.value < 200, "{} ns", run.value);
}
