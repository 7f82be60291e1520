//! Protocols that are broken on purpose, one flaw at a time: the judge has to find each of them
//! within a stated number of transactions, and nothing without a flaw.
//!
//! On virtual cores (`--cfg kiln_sim`) alone: there the same transactions find the same flaw every
//! time. On real threads most flaws need luck, as a few instructions of one thread have to meet a
//! whole transaction of another; and a protocol that is broken may free a row twice, or lose one
//! that an index has, and take the process with it.

#![cfg(all(feature = "history", kiln_sim))]

mod judged;

use kiln_procedure::AbortCause;
use kiln_protocols::canary::{self, Canary};
use kiln_protocols::factors::{Claims, HealingFactors, RestorationKind, Use};
use kiln_protocols::{Configuration, Protocol};

use judged::{Extras, JOURNAL, Mix, Trial};

/// A canary must be found within so many transactions.
const TRANSACTIONS_MAX: u64 = 200_000;

/// A flaw, and a protocol that has it.
struct Case {
    name: String,
    canary: Option<Canary>,
    protocol: Configuration,
}

fn cases() -> Vec<Case> {
    let case = |canary: Canary, protocol: &str| Case {
        name: format!("{canary:?}"),
        canary: Some(canary),
        protocol: protocol.parse().expect("a protocol's name"),
    };
    let mut cases = Vec::new();
    for canary in Canary::ALL {
        let protocols: &[&str] = match canary {
            Canary::ReadValidationSkipped => &["silo", "occ", "healing", "tictoc"],
            Canary::SharersIgnored => &["hybrid"],
            Canary::NotExtended => &["tictoc", "tictoc+ts"],
            Canary::GapsWithoutTime => &["tictoc"],
            Canary::InstalledWithoutLocks
            | Canary::VersionReused
            | Canary::AbsenceNotNoted
            | Canary::InsertedPresent
            | Canary::LockedAtAnyVersion
            | Canary::MovedByTwo
            // No flaw where who moves a record has locked it.
            | Canary::MovingEntryFollowed => &["silo"],
            Canary::LeftKeyForgotten => &["silo", "tictoc", "2pl-no-wait"],
            Canary::SharedLockSkipped
            | Canary::SharedLockReleasedEarly
            | Canary::ReleasedBeforeInstall => &["2pl-no-wait"],
            Canary::NodeValidationSkipped
            | Canary::OwnInsertionHidesOthers
            | Canary::FoundWhereItWas => &["silo", "2pl-no-wait"],
            Canary::LockNotPassedOn => &["2pl-wait-for-graph", "2pl-dreadlocks", "mocc"],
            Canary::EdgesRemovedEarly => &["2pl-wait-for-graph", "2pl-dreadlocks"],
            Canary::YoungerWaits => &["2pl-wait-die"],
            // Under wait-die the reader that is left in the lock mostly dies of the older writer.
            Canary::LockPassedToTwo => &["2pl-wait-for-graph", "2pl-dreadlocks"],
            Canary::ReadTimestampIgnored
            | Canary::PendingVersionIgnored
            | Canary::PrunedTooEarly => &["mvcc"],
            Canary::SnapshotNotAwaited => &["mvcc", "mvcc+lagging"],
            Canary::UndoLost => &["serial", "2pl-no-wait"],
            Canary::UpdaterOnStaleValue => &["silo+cu", "occ+cu", "tictoc+cu", "mvcc+cu"],
            Canary::ReadStaysUnobserved => &["occ+cu", "tictoc+cu", "mvcc+cu"],
            Canary::GroupNotAdvanced => &["silo+ts", "tictoc+ts", "mvcc+ts"],
            Canary::GroupWithoutTime => &["tictoc+ts"],
            Canary::CopyNotReserved | Canary::CopyOfMovedRecord => &["tictoc+ts+sweeps"],
            Canary::GroupWritersIgnored => &["mvcc+ts"],
            Canary::ScaHashReused => &["vll-sca"],
            Canary::HeadNotWoken => &["vll"],
            Canary::ForwardedEarly => &["orthrus", "orthrus-shared", "vll-single", "dora"],
            Canary::OutOfSequence => &["vll-single"],
            Canary::FootprintMissIgnored => &["lock-sorted", "pre-no-wait", "strife"],
            Canary::FindingOutdated | Canary::HandleOfGoneRow | Canary::ScanOutdated => {
                &["lock-sorted", "vll"]
            }
            Canary::WrittenColumnForgotten => &["lock-sorted", "vll", "orthrus"],
            Canary::LeftBeforeUnlocking => &["vll"],
            Canary::SpecialsMergedByName | Canary::ResidualWithoutLocks | Canary::UnionLost => {
                &["strife"]
            }
            Canary::LeftThoughRead => &["strife+cu"],
            Canary::DependentNotRestored
            | Canary::DependencyForgotten
            | Canary::StaleHandleKept
            | Canary::LockOfHealerIgnored
            | Canary::EarlierElementIgnored => &["healing"],
            Canary::PartitionGuardIgnored => &["partitioned"],
            Canary::LocksLeftBehind => &["dora"],
            Canary::RangeNotLocked => &["vllr", "range-map"],
            Canary::IntentionForgotten => &["vllr", "range-hierarchical"],
            Canary::ScaIntentionsIgnored => &["vllr-sca"],
            Canary::UnlockedOutOfOrder => &["orthrus", "orthrus-shared", "dora"],
            Canary::DividedInUse => &["orthrus", "dora"],
            Canary::LogEpochAfterUnlocking => {
                &["silo", "tictoc", "mvcc", "2pl-no-wait", "healing"]
            }
            Canary::WriteLeftOut => &["silo", "tictoc", "mvcc", "2pl-no-wait", "vll", "dora"],
            // Under mvcc a row that moves is another record.
            Canary::KeyChangeAsUpdate => &["silo", "occ", "2pl-no-wait"],
            // The versions of the others are timestamps.
            Canary::DeletionForgotten => &["silo", "occ", "healing", "2pl-no-wait"],
            Canary::PlaceholderTaken => &["silo"],
            Canary::CommandsUnordered | Canary::ChangeNotTakenBack => {
                unreachable!("they are not among all")
            }
        };
        cases.extend(protocols.iter().map(|protocol| case(canary, protocol)));
    }
    // The engine lets one worker run at a time; without the engine nothing does.
    cases.push(Case {
        name: "SerialUnguarded".to_owned(),
        canary: None,
        protocol: Protocol::Serial.into(),
    });
    cases
}

/// Runs trials until the judge objects. Returns its first objection and how many transactions it
/// took.
fn search(case: &Case) -> Result<(&'static str, u64), String> {
    let (mut transactions, mut broken) = (0, 0);
    let mix = match (case.canary, case.protocol.protocol) {
        (Some(Canary::CopyOfMovedRecord), _) => Mix::Moves,
        (
            Some(Canary::NotExtended | Canary::ReadTimestampIgnored | Canary::GroupWritersIgnored),
            _,
        )
        | (Some(Canary::UnlockedOutOfOrder | Canary::DividedInUse), Protocol::Orthrus) => {
            Mix::Values
        }
        _ => Mix::Everything,
    };
    let fewest = if mix == Mix::Moves { 2 } else { 3 };
    for seed in 0.. {
        let workers = match (case.protocol.protocol, case.canary, mix) {
            (Protocol::Serial, Some(_), _) => 1,
            // Several that control concurrency, and several that execute.
            (Protocol::Orthrus, Some(Canary::DividedInUse), _) => 5 + seed % 4,
            (_, Some(Canary::LockOfHealerIgnored), _) => 3,
            (_, _, Mix::Everything) => 2 + seed % 2,
            (_, _, Mix::Values) => 3 + seed % 2,
            (_, _, Mix::Moves) => 4 + seed % 4,
        };
        let trial = Trial {
            protocol: case.protocol,
            workers,
            cores: workers,
            // What was disturbed once commits with locks for a while: it takes more calls until it
            // meets who heals.
            calls: match case.canary {
                Some(Canary::LockOfHealerIgnored) => 40,
                _ => 12,
            },
            keys: fewest + (seed % 4) as usize,
            limit_ns: Some(200_000_000),
            extras: Extras {
                loops: false,
                texts: false,
                primary_keys: !case.protocol.looks_at_columns(),
                chains: case.protocol == Protocol::Healing,
                mix,
                through_keys: case.canary == Some(Canary::LeftKeyForgotten),
                // Two attempts that delete the same row free its memory twice, and the process
                // breaks down. That happens in the same trials each time, so it is known where it
                // does not.
                deletions: !matches!(
                    (case.protocol.protocol, case.canary),
                    (
                        _,
                        Some(
                            Canary::InstalledWithoutLocks
                                | Canary::LockPassedToTwo
                                | Canary::ForwardedEarly
                                | Canary::LocksLeftBehind
                                | Canary::UnlockedOutOfOrder
                                | Canary::SpecialsMergedByName
                                | Canary::ResidualWithoutLocks
                                | Canary::UnionLost
                                | Canary::IntentionForgotten
                                | Canary::ScaIntentionsIgnored
                        )
                    ) | (Protocol::Serial, None)
                ),
            },
            healing: HealingFactors {
                restoration: match case.canary {
                    Some(Canary::DependentNotRestored) => RestorationKind::Rerun,
                    _ => RestorationKind::Dependents,
                },
                ..HealingFactors::default()
            },
            lock_queue: Default::default(),
            claims: match case.canary {
                Some(Canary::WrittenColumnForgotten) => Claims::Columns,
                _ => Claims::Record,
            },
            early_aborts: match case.canary {
                Some(Canary::PlaceholderTaken) => Use::Off,
                _ => Use::On,
            },
            deadlock_avoidance: Default::default(),
            blocks: false,
            listens: matches!(
                case.canary,
                Some(
                    Canary::LogEpochAfterUnlocking
                        | Canary::WriteLeftOut
                        | Canary::KeyChangeAsUpdate
                        | Canary::DeletionForgotten
                )
            ),
            seed,
        };
        // A broken protocol may break itself before the judge can look.
        match trial.judge() {
            // Nothing but a broken protocol lets an attempt wait for a lock that none holds.
            Ok((report, counted)) if counted.aborts[AbortCause::LockTimeout.number()] > 0 => {
                return Ok(("waiting in vain", transactions + report.transactions));
            }
            Ok((report, _)) if report.is_serializable() => transactions += report.transactions,
            Ok((report, _)) => {
                let anomaly = report.violations[0].anomaly.name();
                return Ok((anomaly, transactions + report.transactions));
            }
            Err(error) if error.starts_with(JOURNAL) => {
                return Ok(("reported wrong", transactions + trial.calls * trial.workers));
            }
            // The attempt that has the lock looks once more.
            Err(error)
                if case.canary == Some(Canary::LockOfHealerIgnored)
                    && error.contains("a record changed under its lock") =>
            {
                let found = transactions + trial.calls * trial.workers;
                return Ok(("changed under its lock", found));
            }
            Err(_) => {
                broken += 1;
                transactions += trial.calls * trial.workers;
            }
        }
        if transactions > TRANSACTIONS_MAX {
            break;
        }
    }
    Err(format!(
        "not found in {transactions} transactions, {broken} trials broke off"
    ))
}

/// `KILN_CANARIES=NAME,NAME` asks for some of them.
#[test]
fn the_judge_finds_every_canary() {
    let mut survivors = Vec::new();
    println!(
        "{:<26} {:<12} {:<24} {:>12}",
        "canary", "protocol", "anomaly", "transactions"
    );
    let asked = std::env::var("KILN_CANARIES").ok();
    let is_asked = |case: &Case| {
        asked
            .as_ref()
            .is_none_or(|names| names.split(',').any(|name| name == case.name))
    };
    for case in cases().into_iter().filter(is_asked) {
        canary::release(case.canary);
        let found = search(&case);
        let protocol = case.protocol.name();
        match found {
            Ok((anomaly, transactions)) => {
                println!(
                    "{:<26} {protocol:<12} {anomaly:<24} {transactions:>12}",
                    case.name
                );
            }
            Err(why) => {
                println!("{:<26} {protocol:<12} survived: {why}", case.name);
                survivors.push(case.name);
            }
        }
    }
    canary::release(None);
    assert!(survivors.is_empty(), "the judge is blind to {survivors:?}");
}
