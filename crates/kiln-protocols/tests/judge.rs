//! The judge finds nothing wrong with any protocol.

#![cfg(feature = "history")]

mod judged;

use kiln_procedure::AbortCause;
use kiln_protocols::factors::{
    Claims, DeadlockAvoidance, HealingFactors, LockQueue, RestorationKind, Use, ValidationOrder,
};
use kiln_protocols::{Configuration, Protocol, ProtocolOption, Statistics};

use judged::{Extras, Mix, Trial};

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
        None => 0..6,
    }
}

/// Numbers of workers, from two on.
const WORKERS: u64 = if cfg!(kiln_sim) { 7 } else { 3 };

fn trials(protocol: impl Into<Configuration> + Copy, workers: impl Fn(u64) -> u64) -> Statistics {
    trials_of(protocol, workers, seeds())
}

fn trials_of(
    protocol: impl Into<Configuration> + Copy,
    workers: impl Fn(u64) -> u64,
    seeds: impl IntoIterator<Item = u64>,
) -> Statistics {
    trials_with(protocol, workers, seeds, |_| {})
}

fn trials_with(
    protocol: impl Into<Configuration> + Copy,
    workers: impl Fn(u64) -> u64,
    seeds: impl IntoIterator<Item = u64>,
    change: fn(&mut Trial),
) -> Statistics {
    let (mut transactions, mut edges) = (0, 0);
    let mut statistics = Statistics::default();
    for seed in seeds {
        let mut trial = Trial {
            protocol: protocol.into(),
            workers: workers(seed),
            cores: match seed % 4 {
                // One is left over, for a thread besides the workers.
                1 => workers(seed) + 1,
                3 => (workers(seed) / 2).max(2),
                _ => workers(seed),
            },
            calls: if cfg!(kiln_sim) { 12 } else { 500 },
            keys: 4 + (seed % 5) as usize,
            limit_ns: None,
            extras: Extras {
                loops: true,
                texts: true,
                deletions: true,
                primary_keys: !protocol.into().looks_at_columns(),
                through_keys: (seed / 4).is_multiple_of(2),
                chains: protocol.into().protocol == Protocol::Healing,
                mix: Mix::Everything,
            },
            healing: HealingFactors::default(),
            lock_queue: LockQueue::Overtaking,
            claims: Claims::Record,
            early_aborts: Use::On,
            deadlock_avoidance: DeadlockAvoidance::Spin,
            listens: seed % 3 != 0,
            blocks: seed % 5 == 1 && workers(seed) > 1,
            seed,
        };
        change(&mut trial);
        let (report, counted) = trial
            .judge()
            .unwrap_or_else(|error| panic!("{trial:?}: {error}"));
        assert!(report.is_serializable(), "{trial:?}\n{report}");
        transactions += report.transactions;
        edges += report.edges;
        statistics.add(&counted);
    }
    assert!(edges > transactions / 2, "the transactions met each other");
    statistics
}

#[test]
fn serial_is_serializable() {
    trials(Protocol::Serial, |_| 1);
}

#[test]
fn silo_is_serializable() {
    trials(Protocol::Silo, |seed| 2 + seed % WORKERS);
}

fn configured(name: &str) {
    let configuration: Configuration = name.parse().expect("a protocol's name");
    trials(configuration, |seed| 2 + seed % WORKERS);
}

#[test]
fn silo_with_commit_time_updates_is_serializable() {
    configured("silo+cu");
}

#[test]
fn occ_with_commit_time_updates_is_serializable() {
    configured("occ+cu");
}

#[test]
fn tictoc_with_commit_time_updates_is_serializable() {
    configured("tictoc+cu");
}

/// A row was found, an update of it deferred to the commit, and before that the row was deleted and
/// inserted again by one other transaction. The look-up counts as of the lock: it was recorded as
/// of the meeting once, and the judge objected to a history that was fine.
#[cfg(kiln_sim)]
#[test]
fn rows_that_go_and_come_back_are_found_when_they_are_locked() {
    for (name, seed) in [("occ+cu", 2046), ("tictoc+cu", 1375)] {
        let configuration: Configuration = name.parse().expect("a protocol's name");
        trials_with(
            configuration,
            |seed| 2 + seed % WORKERS,
            [seed],
            |trial| trial.listens = false,
        );
    }
}

#[test]
fn silo_with_timestamp_splitting_is_serializable() {
    configured("silo+ts");
}

#[test]
fn mvcc_with_lagging_snapshots_is_serializable() {
    configured("mvcc+lagging");
    configured("mvcc+cu+ts+lagging");
}

/// Attempts that run to their commit, with both ways to lock there.
#[test]
fn silo_without_early_aborts_is_serializable() {
    let workers = |seed| 2 + seed % WORKERS;
    trials_with(Protocol::Silo, workers, seeds(), |trial| {
        trial.early_aborts = Use::Off;
        trial.deadlock_avoidance = match trial.seed % 3 {
            0 => DeadlockAvoidance::Spin,
            _ => DeadlockAvoidance::Sort,
        };
    });
}

#[test]
fn tictoc_with_timestamp_splitting_is_serializable() {
    configured("tictoc+ts");
}

#[test]
fn tictoc_with_sweeps_is_serializable() {
    configured("tictoc+ts+sweeps");
}

#[test]
fn tictoc_with_everything_is_serializable() {
    configured("tictoc+cu+ts+sweeps");
}

#[test]
fn tictoc_with_both_is_serializable() {
    configured("tictoc+cu+ts");
}

#[test]
fn mvcc_with_commit_time_updates_is_serializable() {
    configured("mvcc+cu");
}

#[test]
fn mvcc_with_timestamp_splitting_is_serializable() {
    configured("mvcc+ts");
}

#[test]
fn mvcc_with_both_is_serializable() {
    configured("mvcc+cu+ts");
}

#[test]
fn silo_with_both_is_serializable() {
    configured("silo+cu+ts");
}

#[test]
fn occ_is_serializable() {
    trials(Protocol::Occ, |seed| 2 + seed % WORKERS);
}

#[test]
fn healing_is_serializable() {
    let counted = trials(Protocol::Healing, |seed| 2 + seed % WORKERS);
    println!(
        "healing: {} committed, {} healings of {} operations, {:?}",
        counted.committed,
        counted.healings,
        counted.restored_total(),
        counted.aborts
    );
    if cfg!(kiln_sim) {
        assert!(counted.healings * 20 > counted.committed);
    }
}

#[test]
fn healing_with_commit_time_updates_is_serializable() {
    configured("healing+cu");
}

/// In the other validation orders, without copies, and with calls that do not heal.
#[test]
fn healing_of_other_kinds_is_serializable() {
    let kinds: [fn(&mut Trial); 5] = [
        |trial| trial.healing.restoration = RestorationKind::Rerun,
        |trial| trial.healing.read_locks = Use::On,
        |trial| trial.healing.validation_order = ValidationOrder::Reversed,
        |trial| trial.healing.read_copies = Use::Off,
        |trial| trial.healing.ad_hoc_percent = 50,
    ];
    for (number, kind) in kinds.iter().enumerate() {
        let seeds = seeds().skip(number).step_by(kinds.len());
        trials_with(Protocol::Healing, |seed| 2 + seed % WORKERS, seeds, *kind);
    }
}

/// An attempt found that a record had no row yet, and locked it to rely on that. The attempt that
/// had put the record into the indexes failed and buried it, locked or not, another attempt
/// inserted a row under its key, and the first attempt committed all the same.
#[cfg(kiln_sim)]
#[test]
fn locked_records_without_a_row_may_be_buried() {
    let workers = |seed| 2 + seed % WORKERS;
    trials_with(Protocol::Healing, workers, [14_552], |trial| {
        trial.healing.read_locks = Use::On;
        trial.listens = false;
    });
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
fn mvcc_is_serializable() {
    trials(Protocol::Mvcc, |seed| 2 + seed % WORKERS);
}

#[test]
fn two_phase_locking_is_serializable() {
    trials(Protocol::TwoPhaseLockingNoWait, |seed| 2 + seed % WORKERS);
}

/// Two-phase locking with queues of requests, at both places where they can be, under either choice
/// of who gets a lock that is let go. What the protocol does against deadlocks has to happen, and
/// no transaction may wait in vain.
fn locking(protocol: Protocol, expected: Option<AbortCause>, in_table: bool) {
    for lock_queue in [LockQueue::Overtaking, LockQueue::Fifo] {
        locking_by(protocol, expected, in_table, lock_queue);
    }
}

fn locking_by(
    protocol: Protocol,
    expected: Option<AbortCause>,
    in_table: bool,
    lock_queue: LockQueue,
) {
    let mut configuration = Configuration::from(protocol);
    if in_table {
        let option = ProtocolOption::LockTable;
        configuration = configuration.with(option).expect("it takes the option");
    }
    let change: fn(&mut Trial) = match lock_queue {
        LockQueue::Overtaking => |_| {},
        LockQueue::Fifo => |trial| trial.lock_queue = LockQueue::Fifo,
    };
    let counted = trials_with(configuration, |seed| 2 + seed % WORKERS, seeds(), change);
    let aborts = |cause: AbortCause| counted.aborts[cause.number()];
    println!(
        "{configuration}: {} committed, {:?}",
        counted.committed, counted.aborts
    );
    if let Some(expected) = expected {
        // How often real threads meet is the system's business.
        if cfg!(kiln_sim) {
            assert!(
                aborts(expected) > 10,
                "{} of {expected:?}",
                aborts(expected)
            );
        }
        assert_eq!(
            aborts(AbortCause::ReadLock) + aborts(AbortCause::WriteLock),
            0
        );
    }
    // Also on virtual cores, where more circles of waiting attempts close in a second than
    // elsewhere in a day: an attempt finds each of them, and the bound of the wait ends none.
    assert_eq!(
        aborts(AbortCause::LockTimeout),
        0,
        "an attempt waited in vain"
    );
}

#[test]
fn two_phase_locking_in_a_table_is_serializable() {
    locking(Protocol::TwoPhaseLockingNoWait, None, true);
}

#[test]
fn wait_die_is_serializable() {
    locking(
        Protocol::TwoPhaseLockingWaitDie,
        Some(AbortCause::Died),
        false,
    );
}

#[test]
fn wait_die_in_a_table_is_serializable() {
    locking(
        Protocol::TwoPhaseLockingWaitDie,
        Some(AbortCause::Died),
        true,
    );
}

#[test]
fn wait_for_graph_is_serializable() {
    let deadlock = Some(AbortCause::Deadlock);
    locking(Protocol::TwoPhaseLockingWaitForGraph, deadlock, false);
}

#[test]
fn wait_for_graph_in_a_table_is_serializable() {
    let deadlock = Some(AbortCause::Deadlock);
    locking(Protocol::TwoPhaseLockingWaitForGraph, deadlock, true);
}

#[test]
fn dreadlocks_is_serializable() {
    let deadlock = Some(AbortCause::Deadlock);
    locking(Protocol::TwoPhaseLockingDreadlocks, deadlock, false);
}

#[test]
fn dreadlocks_in_a_table_is_serializable() {
    let deadlock = Some(AbortCause::Deadlock);
    locking(Protocol::TwoPhaseLockingDreadlocks, deadlock, true);
}

/// Protocols that plan, at both places for their locks: no attempts wait in a circle.
fn planned(protocol: Protocol) {
    locking(protocol, None, false);
    locking(protocol, None, true);
}

#[test]
fn sorted_locks_are_serializable() {
    planned(Protocol::LockSorted);
}

#[test]
fn atomic_requests_are_serializable() {
    planned(Protocol::LockAtomic);
}

#[test]
fn locks_at_once_are_serializable() {
    planned(Protocol::PreNoWait);
}

/// Calls do not wait in vain, in the queue of transactions or for a partition. Where a partition
/// counts its requests, one that wants what a block has ends there at once.
fn queued(protocol: Protocol) {
    let counted = trials(protocol, |seed| 2 + seed % WORKERS);
    let aborts = |cause: AbortCause| counted.aborts[cause.number()];
    println!(
        "{}: {} committed, {:?}",
        protocol.name(),
        counted.committed,
        counted.aborts
    );
    if protocol != Protocol::VllSingle {
        assert_eq!(aborts(AbortCause::LockTimeout), 0);
    }
}

#[test]
fn vll_is_serializable() {
    queued(Protocol::Vll);
}

#[test]
fn vll_with_a_lock_manager_is_serializable() {
    queued(Protocol::VllArrayed);
}

#[test]
fn vll_with_contention_analysis_is_serializable() {
    queued(Protocol::VllSca);
}

#[test]
fn orthrus_is_serializable() {
    queued(Protocol::Orthrus);
}

#[test]
fn orthrus_with_one_lock_table_is_serializable() {
    queued(Protocol::OrthrusShared);
}

/// Calls whose time is over while they wait for partitions let go what they have.
#[test]
fn demands_that_are_withdrawn_leave_nothing() {
    for protocol in [
        Protocol::Orthrus,
        Protocol::OrthrusShared,
        Protocol::VllSingle,
        Protocol::Dora,
    ] {
        let seeds = seeds().filter(|seed| seed % 4 != 3).step_by(2);
        let counted = trials_with(
            protocol,
            |seed| 2 + seed % WORKERS,
            seeds,
            |trial| {
                let is_slow = trial.protocol.protocol == Protocol::VllSingle;
                let unit = if is_slow { 150_000 } else { 20_000 };
                trial.limit_ns = Some(unit * (1 + trial.seed % 7));
            },
        );
        let withdrawn = counted.aborts[AbortCause::LockTimeout.number()];
        println!(
            "{}: {withdrawn} withdrawn, {} committed",
            protocol.name(),
            counted.committed
        );
        if cfg!(kiln_sim) {
            assert!(withdrawn * 100 > counted.committed);
        }
    }
}

#[test]
fn strife_is_serializable() {
    queued(Protocol::Strife);
}

#[test]
fn strife_with_commit_time_updates_is_serializable() {
    configured("strife+cu");
}

#[test]
fn partitions_are_serializable() {
    queued(Protocol::Partitioned);
}

#[test]
fn vll_with_a_thread_for_each_partition_is_serializable() {
    queued(Protocol::VllSingle);
}

/// A worker ran a statement of a block, and then a transaction that came to it from another one and
/// lacked a lock. It took the lock as statements do, and waited for the latch that it had itself.
#[cfg(kiln_sim)]
#[test]
fn who_ran_a_statement_runs_transactions_that_flow() {
    trials_of(Protocol::Dora, |seed| 2 + seed % WORKERS, [1336]);
}

#[test]
fn transactions_that_flow_are_serializable() {
    queued(Protocol::Dora);
}

#[test]
fn counted_ranges_are_serializable() {
    queued(Protocol::Vllr);
}

#[test]
fn counted_ranges_with_contention_analysis_are_serializable() {
    queued(Protocol::VllrSca);
}

#[test]
fn ranges_in_a_map_are_serializable() {
    queued(Protocol::RangeMap);
}

#[test]
fn ranges_with_intentions_in_a_table_are_serializable() {
    queued(Protocol::RangeHierarchical);
}

/// Claims by column group, under every protocol that has them, of groups that programs write as
/// well: no transaction waits in vain.
#[test]
fn claims_by_column_group_are_serializable() {
    let names = [
        "lock-sorted",
        "lock-sorted+table",
        "lock-atomic",
        "lock-atomic+table",
        "pre-no-wait",
        "pre-no-wait+table",
        "vll",
        "vll-sca",
        "vll-arrayed",
        "vll-single",
        "orthrus",
        "orthrus-shared",
    ];
    for (number, name) in names.into_iter().enumerate() {
        let configuration: Configuration = name.parse().expect("a protocol's name");
        let seeds = seeds().skip(number % 3).step_by(3);
        let change: fn(&mut Trial) = |trial| trial.claims = Claims::Columns;
        let counted = trials_with(configuration, |seed| 2 + seed % WORKERS, seeds, change);
        println!(
            "{name}: {} committed, {:?}",
            counted.committed, counted.aborts
        );
        if configuration.protocol != Protocol::VllSingle {
            assert_eq!(counted.aborts[AbortCause::LockTimeout.number()], 0);
        }
    }
}
