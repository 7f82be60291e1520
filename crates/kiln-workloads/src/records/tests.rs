use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The records of some transactions, each checked to have distinct records that exist.
fn transactions(choice: &RecordChoice, count: usize) -> Vec<Vec<(i64, i64)>> {
    choice.validate().expect("the settings are valid");
    let random = &mut Random::from_seed(7);
    let mut draw = RecordDraw::new(choice, 7, 0, time::now_ns());
    let mut all = Vec::new();
    for _ in 0..count {
        draw.draw(random);
        let records: Vec<(i64, i64)> = draw
            .partitions
            .iter()
            .copied()
            .zip(draw.ids.iter().copied())
            .collect();
        assert_eq!(records.len(), choice.operations as usize);
        let distinct: BTreeSet<_> = records.iter().collect();
        assert_eq!(distinct.len(), records.len(), "{records:?}");
        for (partition, id) in &records {
            assert!((1..=i64::from(choice.partitions)).contains(partition));
            assert!((1..=choice.per_partition()).contains(id));
        }
        all.push(records);
    }
    all
}

fn hot_positions(records: &[(i64, i64)], set_aside: i64) -> Vec<usize> {
    let all = records.iter().enumerate();
    let hot = all.filter(|(_, (_, id))| *id <= set_aside);
    hot.map(|(position, _)| position).collect()
}

#[test]
fn hot_records_come_first_last_or_anywhere() {
    let mut choice = RecordChoice {
        records: 1_000,
        hot_records: 20,
        hot_operations: 2,
        ..RecordChoice::default()
    };
    for records in transactions(&choice, 500) {
        assert_eq!(hot_positions(&records, 20), [0, 1]);
    }
    choice.hot_position = HotPosition::Last;
    for records in transactions(&choice, 500) {
        assert_eq!(hot_positions(&records, 20), [8, 9]);
    }
    choice.hot_position = HotPosition::Random;
    let mut found = BTreeMap::new();
    for records in transactions(&choice, 5_000) {
        let positions = hot_positions(&records, 20);
        assert_eq!(positions.len(), 2);
        for position in positions {
            *found.entry(position).or_insert(0) += 1;
        }
    }
    assert_eq!(found.len(), 10);
    assert!(found.values().all(|count| (850..1_150).contains(count)));
}

#[test]
fn some_partitions_are_home_to_more_transactions_than_others() {
    let mut choice = RecordChoice {
        records: 1_000,
        partitions: 10,
        partition_theta: 1.0,
        ..RecordChoice::default()
    };
    let mut homes = [0; 11];
    for records in transactions(&choice, 10_000) {
        homes[records[0].0 as usize] += 1;
        assert!(
            records
                .iter()
                .all(|(partition, _)| *partition == records[0].0)
        );
    }
    // A tenth of the sum of 1/1 to 1/10 is 0.293: the first has 3414 of 10000.
    assert!((3_200..3_600).contains(&homes[1]), "{homes:?}");
    assert!((1_500..1_900).contains(&homes[2]), "{homes:?}");
    (choice.hot_records, choice.hot_operations) = (10, 1);
    assert!(choice.validate().is_err());
}

#[test]
fn a_worker_may_be_at_home_in_its_partition() {
    let choice = RecordChoice {
        records: 1_000,
        partitions: 4,
        home: Home::Worker,
        spread: 2,
        ..RecordChoice::default()
    };
    choice.validate().unwrap();
    for (worker, home) in [(0, 1), (3, 4), (4, 1), (6, 3)] {
        let random = &mut Random::from_seed(7);
        let mut draw = RecordDraw::new(&choice, 7, worker, time::now_ns());
        let mut others = BTreeSet::new();
        for _ in 0..200 {
            draw.draw(random);
            assert!(
                draw.partitions
                    .iter()
                    .step_by(2)
                    .all(|partition| *partition == home)
            );
            others.insert(draw.partitions[1]);
        }
        assert_eq!(others.len(), 3);
        assert!(!others.contains(&home));
    }
}

#[test]
fn some_transactions_stay_at_home() {
    for (spread, most) in [(2, 2), (0, 8)] {
        let choice = RecordChoice {
            records: 8_000,
            partitions: 8,
            spread,
            spread_percent: 30.0,
            ..RecordChoice::default()
        };
        let mut single = 0;
        for records in transactions(&choice, 10_000) {
            let partitions: BTreeSet<i64> = records.iter().map(|(p, _)| *p).collect();
            assert!(partitions.len() <= most);
            single += i32::from(partitions.len() == 1);
        }
        assert!((6_800..7_200).contains(&single), "{single}");
    }
}

#[test]
fn hot_records_are_spread_over_the_partitions_and_all_are_drawn() {
    let choice = RecordChoice {
        records: 3_000,
        hot_records: 7,
        hot_operations: 1,
        partitions: 3,
        ..RecordChoice::default()
    };
    let mut hot = BTreeMap::new();
    for records in transactions(&choice, 7_000) {
        *hot.entry(records[0]).or_insert(0) += 1;
        // Two or three hot records in each partition: the cold ones start with the fourth.
        assert!(records[1..].iter().all(|(_, id)| *id > 3));
    }
    let places: Vec<(i64, i64)> = hot.keys().copied().collect();
    assert_eq!(
        places,
        [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2)]
    );
    assert!(hot.values().all(|count| (850..1_150).contains(count)));
}

#[test]
fn transactions_are_in_as_many_partitions_as_they_should() {
    for spread in [1, 2, 5, 8] {
        let choice = RecordChoice {
            records: 8_000,
            partitions: 8,
            hot_records: 16,
            hot_operations: 2,
            spread,
            ..RecordChoice::default()
        };
        for records in transactions(&choice, 500) {
            let partitions: BTreeSet<i64> = records.iter().map(|(p, _)| *p).collect();
            assert_eq!(partitions.len(), spread as usize);
        }
    }
    let anywhere = RecordChoice {
        records: 8_000,
        partitions: 8,
        spread: 0,
        ..RecordChoice::default()
    };
    let mut counts = BTreeMap::new();
    for records in transactions(&anywhere, 500) {
        let partitions: BTreeSet<i64> = records.iter().map(|(p, _)| *p).collect();
        *counts.entry(partitions.len()).or_insert(0) += 1;
    }
    assert!(counts.len() >= 4 && !counts.contains_key(&1), "{counts:?}");
}

#[test]
fn remote_records_are_a_share_or_at_most_so_many() {
    let mut choice = RecordChoice {
        records: 8_000,
        partitions: 4,
        hot_records: 8,
        hot_operations: 1,
        remote_percent: 30.0,
        ..RecordChoice::default()
    };
    let remote = |records: &[(i64, i64)]| {
        let home = records[0].0;
        records
            .iter()
            .filter(|(partition, _)| *partition != home)
            .count()
    };
    let all = transactions(&choice, 2_000);
    let share: usize = all.iter().map(|records| remote(records)).sum();
    assert!((5_100..5_700).contains(&share), "{share} of 18000");

    choice.remote_percent = 0.0;
    choice.remote_accesses = 3;
    let mut counts = [0; 4];
    for records in transactions(&choice, 4_000) {
        counts[remote(&records)] += 1;
    }
    assert!(
        counts.iter().all(|count| (850..1_150).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn cold_records_are_skewed_within_their_partition() {
    let choice = RecordChoice {
        records: 3_000,
        operations: 20,
        theta: 0.99,
        partitions: 3,
        ..RecordChoice::default()
    };
    let mut first = 0;
    for records in transactions(&choice, 1_000) {
        first += usize::from(records.iter().any(|(_, id)| *id == 1));
    }
    assert!(first > 850, "{first}");
}

#[test]
fn without_hot_operations_all_records_are_cold() {
    let choice = RecordChoice {
        records: 40,
        hot_records: 39,
        ..RecordChoice::default()
    };
    let drawn: BTreeSet<_> = transactions(&choice, 200).into_iter().flatten().collect();
    assert_eq!(drawn.len(), 40);
}

#[test]
fn hot_records_move_together() {
    let choice = RecordChoice {
        records: 3_000,
        hot_records: 12,
        hot_operations: 1,
        partitions: 6,
        vary_ms: 1_000,
        ..RecordChoice::default()
    };
    choice.validate().unwrap();
    let begin = time::now_ns();
    let mut left = RecordDraw::new(&choice, 7, 0, begin);
    let mut right = RecordDraw::new(&choice, 7, 0, begin);
    let mut counts = BTreeSet::new();
    for phase in 0..40 {
        left.move_hot_records(phase);
        right.move_hot_records(phase);
        assert_eq!(left.hot_partitions, right.hot_partitions);
        let count = left.hot_partitions.len();
        assert_eq!(count == 6, phase == 0);
        counts.insert(count);
        let places: BTreeSet<_> = (0..12).map(|number| left.hot_place(number)).collect();
        assert_eq!(places.len(), 12);
        assert!(places.iter().all(|(_, id)| *id <= left.set_aside));
        assert_eq!(left.cold.count() + left.set_aside, 500);
    }
    assert_eq!(counts.len(), 6);

    // The clock moves them.
    let restless = RecordChoice {
        vary_ms: 1,
        ..choice
    };
    let mut draw = RecordDraw::new(&restless, 7, 0, begin);
    kiln_platform::thread::sleep(3_000_000);
    draw.draw(&mut Random::from_seed(1));
    assert!(draw.phase >= 3, "{}", draw.phase);
}

#[test]
fn settings_that_do_not_fit_are_explained() {
    let base = RecordChoice {
        records: 100,
        ..RecordChoice::default()
    };
    for (choice, parts) in [
        (
            RecordChoice {
                hot_operations: 1,
                ..base.clone()
            },
            ["hot-operations is 1", "hot-records is 0"],
        ),
        (
            RecordChoice {
                hot_records: 20,
                hot_operations: 11,
                ..base.clone()
            },
            ["hot-operations is 11", "operations is 10"],
        ),
        (
            RecordChoice {
                spread: 2,
                ..base.clone()
            },
            ["spread is 2", "1 partitions"],
        ),
        (
            RecordChoice {
                home: Home::Worker,
                hot_records: 1,
                hot_operations: 1,
                ..base.clone()
            },
            ["home is worker", "hot-operations is 1"],
        ),
        (
            RecordChoice {
                home: Home::Worker,
                partition_theta: 0.5,
                ..base.clone()
            },
            ["home is worker", "partition-theta 0.5"],
        ),
        (
            RecordChoice {
                partitions: 10,
                hot_records: 1,
                hot_operations: 1,
                ..base.clone()
            },
            ["records is 100", "at least 11"],
        ),
        (
            RecordChoice {
                partitions: 5,
                hot_records: 20,
                hot_operations: 1,
                vary_ms: 1,
                ..base.clone()
            },
            ["records is 100", "at least 30"],
        ),
    ] {
        let message = choice.validate().unwrap_err();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}
