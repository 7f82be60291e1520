//! Known scenarios with costs worked out by hand, on machines small enough for it.

use kiln_machine::AccessKind::{Load, Prefetch, ReadModifyWrite, Store};
use kiln_machine::{CacheShape, Costs, Machine, Preset, Work};

/// Two sockets of four cores with round costs, 8 lines of first-level cache, 32 of second, 128 of
/// last.
fn small() -> Preset {
    Preset {
        name: "small",
        description: "for tests",
        sockets: 2,
        cores_per_socket: 4,
        first_level: CacheShape {
            bytes: 8 * 64,
            ways: 8,
        },
        second_level: CacheShape {
            bytes: 32 * 64,
            ways: 32,
        },
        last_level: CacheShape {
            bytes: 128 * 64,
            ways: 128,
        },
        jitter_percent: 0,
        store_buffer: 4,
        prefetches_in_flight: 3,
        costs: Costs {
            first_level_ps: 1,
            second_level_ps: 5,
            last_level_ps: 20,
            exposed_percent: 100,
            store_ps: 1,
            atomic_ps: 7,
            prefetch_ps: 1,
            modified_ps: [40, 100, 100, 100],
            clean_ps: [30, 80, 80, 80],
            invalidate_ps: [35, 90, 90, 90],
            linger_ps: 0,
            memory_ps: [200, 300, 300, 300],
            occupancy_ps: 3,
        },
        ..Preset::named("sto").expect("a preset of this name exists")
    }
}

#[test]
fn a_line_bounces_between_two_cores() {
    let mut machine = Machine::new(&small(), 8);
    let mut now = machine.access(0, 0, ReadModifyWrite, 0);
    assert_eq!(now, 200 + 7);
    // Within the socket each turn costs the transfer and the operation.
    for turn in 0..10 {
        let done = machine.access(1 - turn % 2, 0, ReadModifyWrite, now);
        assert_eq!(done - now, 40 + 7);
        now = done;
    }
    // Core 0 has it; core 4 is on the other socket.
    for turn in 0..10 {
        let core = if turn % 2 == 0 { 4 } else { 0 };
        let done = machine.access(core, 0, ReadModifyWrite, now);
        assert_eq!(done - now, 100 + 7);
        now = done;
    }
    assert_eq!(machine.statistics().transfers_within, 10);
    assert_eq!(machine.statistics().transfers_across, 10);
    assert_eq!(machine.statistics().queued, 0, "no core asked too early");
}

#[test]
fn cores_that_own_their_lines_do_not_disturb_each_other() {
    let mut machine = Machine::new(&small(), 2);
    let mut now = [0; 2];
    for (core, now) in now.iter_mut().enumerate() {
        *now = machine.access(core, core as u32, ReadModifyWrite, 0);
    }
    for _ in 0..100 {
        for (core, now) in now.iter_mut().enumerate() {
            let done = machine.access(core, core as u32, ReadModifyWrite, *now);
            assert_eq!(done - *now, 7);
            *now = done;
        }
    }
    assert_eq!(machine.statistics().lines_transferred(), 0);
}

#[test]
fn two_counters_in_one_line_cost_what_one_counter_costs() {
    // False sharing is sharing: the model knows lines, not words.
    let mut machine = Machine::new(&small(), 2);
    let mut now = machine.access(0, 3, ReadModifyWrite, 0);
    now = now.max(machine.access(1, 3, ReadModifyWrite, now));
    let started = now;
    for turn in 0..100 {
        now = machine.access(turn % 2, 3, ReadModifyWrite, now);
    }
    assert_eq!(now - started, 100 * (40 + 7));
    assert_eq!(machine.heat(3).transfers, 101);
    assert_eq!(machine.hottest(5)[0].0, 3);
}

#[test]
fn a_line_that_everybody_reads_is_cheap_for_everybody() {
    let mut machine = Machine::new(&small(), 8);
    let mut now = 1_000;
    machine.access(0, 5, Load, 0);
    // The second core asks the first, which might have written; the third asks no core; the first
    // on the other socket gets the line from this one, and then it lies in both last-level caches.
    let costs: Vec<u64> = (1..8)
        .map(|core| {
            let done = machine.access(core, 5, Load, now);
            let cost = done - now;
            now = done + 100;
            cost
        })
        .collect();
    assert_eq!(costs, [30, 20, 20, 80, 20, 20, 20]);
    for round in 0..3 {
        for core in 0..8 {
            let done = machine.access(core, 5, Load, now);
            assert_eq!(done - now, 1, "round {round}, core {core}");
        }
    }
    // One write takes it from all: the farthest copy decides. Each reader then fetches it again.
    let written = machine.access(0, 5, ReadModifyWrite, now);
    assert_eq!(written - now, 90 + 7);
    let read = machine.access(1, 5, Load, written);
    assert_eq!(read - written, 40);
    let again = machine.access(2, 5, Load, read);
    assert_eq!(again - read, 20);
    assert_eq!(machine.statistics().upgrades, 1);
}

#[test]
fn writing_what_only_oneself_has_read_asks_nobody() {
    let mut machine = Machine::new(&small(), 8);
    let read = machine.access(0, 9, Load, 0);
    let written = machine.access(0, 9, ReadModifyWrite, read);
    assert_eq!(written - read, 7);
    assert_eq!(machine.statistics().upgrades, 0);
}

#[test]
fn cores_that_want_one_line_at_once_form_a_queue() {
    for cores in 1..=4 {
        let mut machine = Machine::new(&small(), 5);
        let start = machine.access(4, 0, ReadModifyWrite, 0);
        let last = (0..cores).map(|core| machine.access(core, 0, ReadModifyWrite, start));
        let last = last.max().expect("there is a core");
        // The first fetches across the sockets, the others from each other.
        let expected = (100 + 7) + (cores as u64 - 1) * (40 + 7);
        assert_eq!(last - start, expected, "{cores} cores");
        let waited: u64 = (1..cores as u64)
            .map(|before| 107 + (before - 1) * 47)
            .sum();
        assert_eq!(machine.statistics().queued_ps, waited);
        assert_eq!(machine.heat(0).queued_ps, waited);
    }
}

#[test]
fn contended_throughput_does_not_grow_with_the_cores() {
    let rate = |cores: usize| {
        let mut machine = Machine::new(&small(), 4);
        let mut times = vec![0; cores];
        let (mut operations, horizon) = (0, 1_000_000);
        loop {
            let (core, &now) = times
                .iter()
                .enumerate()
                .min_by_key(|(core, now)| (**now, *core))
                .expect("there is a core");
            if now > horizon {
                return operations;
            }
            times[core] = machine.access(core, 0, ReadModifyWrite, now);
            operations += 1;
        }
    };
    let (two, four) = (rate(2), rate(4));
    assert!(two >= four - 4 && two <= four + 4, "{two} and {four}");
    assert!(rate(1) > 6 * two, "one core keeps the line");
}

#[test]
fn whoever_has_to_give_a_line_up_can_use_it_until_the_request_arrives() {
    let mut preset = small();
    preset.costs.linger_ps = 25;
    let mut machine = Machine::new(&preset, 2);
    let start = machine.access(0, 0, ReadModifyWrite, 0);
    // Core 1 asks and has the line, and its operation done, 47 later; until 25 core 0 goes on.
    assert_eq!(machine.access(1, 0, ReadModifyWrite, start), start + 47);
    assert_eq!(machine.access(0, 0, ReadModifyWrite, start), start + 7);
    assert_eq!(machine.access(0, 0, Load, start + 7), start + 8);
    assert_eq!(machine.access(0, 0, Store, start + 8), start + 9);
    // Then it asks in turn, and waits until core 1 is done.
    let back = machine.access(0, 0, ReadModifyWrite, start + 25);
    assert_eq!(back, start + 47 + 47);
    // Core 1 lingers from when that request was let through, not from when it was made.
    assert_eq!(
        machine.access(1, 0, ReadModifyWrite, start + 47),
        start + 54
    );
    assert_eq!(machine.statistics().transfers_within, 2);
}

#[test]
fn a_migratory_machine_hands_modified_lines_over_to_readers() {
    let mut preset = small();
    preset.migratory = true;
    let mut machine = Machine::new(&preset, 2);
    let written = machine.access(0, 0, ReadModifyWrite, 0);
    let read = machine.access(1, 0, Load, written);
    assert_eq!(read - written, 40);
    assert_eq!(machine.access(1, 0, ReadModifyWrite, read), read + 7);
    // The old owner has lost it.
    let now = read + 1_000;
    assert_eq!(machine.access(0, 0, Load, now), now + 40);
    // Without migration the reader has to ask before it writes, and the writer may go on reading.
    let mut machine = Machine::new(&small(), 2);
    let written = machine.access(0, 0, ReadModifyWrite, 0);
    let read = machine.access(1, 0, Load, written);
    assert_eq!(machine.access(0, 0, Load, read), read + 1);
    assert_eq!(machine.access(1, 0, ReadModifyWrite, read), read + 35 + 7);
}

#[test]
fn sweeping_more_than_a_cache_holds_misses_it() {
    let mut machine = Machine::new(&small(), 1);
    let mut now = 0;
    let mut sweep = |machine: &mut Machine, lines: u32| {
        let mut costs = Vec::new();
        for line in 0..lines {
            let done = machine.access(0, line, Load, now);
            costs.push(done - now);
            now = done;
        }
        costs
    };
    assert_eq!(sweep(&mut machine, 8), [200; 8], "memory at first");
    assert_eq!(sweep(&mut machine, 8), [1; 8], "they fit the first level");
    sweep(&mut machine, 32);
    assert_eq!(
        sweep(&mut machine, 32),
        [5; 32],
        "they fit the second level"
    );
    sweep(&mut machine, 128);
    assert_eq!(
        sweep(&mut machine, 128),
        [20; 128],
        "they fit the last level"
    );
    sweep(&mut machine, 129);
    assert_eq!(sweep(&mut machine, 129), [200; 129], "they fit nowhere");
}

#[test]
fn a_modified_line_that_gave_way_is_found_in_the_last_level_cache() {
    let mut machine = Machine::new(&small(), 2);
    let mut now = machine.access(0, 0, ReadModifyWrite, 0);
    for line in 1..40 {
        now = machine.access(0, line, Load, now);
    }
    // No core owns the line any more, so the other core need not ask core 0.
    let done = machine.access(1, 0, Load, now);
    assert_eq!(done - now, 20);
}

#[test]
fn remote_memory_is_that_of_whoever_touched_a_line_first() {
    let mut machine = Machine::new(&small(), 8);
    let mut now = 0;
    for line in 0..1_000 {
        now = machine.access(0, line, Load, now);
    }
    let done = machine.access(4, 0, Load, now);
    assert_eq!(done - now, 300);
    assert_eq!(machine.statistics().memory_remote, 1);
}

#[test]
fn out_of_order_cores_stand_still_for_a_part_of_a_load() {
    let mut preset = small();
    preset.costs.exposed_percent = 25;
    let mut machine = Machine::new(&preset, 2);
    assert_eq!(machine.access(0, 0, Load, 0), 50);
    assert_eq!(machine.access(0, 0, Load, 500), 501);
    // Another core's modified line is waited for in full, and so is an atomic operation.
    let now = machine.access(0, 0, ReadModifyWrite, 1_000);
    assert_eq!(machine.access(1, 0, Load, now), now + 40);
    assert_eq!(
        machine.access(1, 1, ReadModifyWrite, 5_000),
        5_000 + 200 + 7
    );
    // The line is on its way all the same: another core that wants it waits until it has arrived.
    machine.access(0, 9, Load, 6_000);
    assert_eq!(machine.access(1, 9, ReadModifyWrite, 6_050), 6_200 + 35 + 7);
}

#[test]
fn a_prefetch_hides_latency() {
    let mut machine = Machine::new(&small(), 1);
    // In time: the load is a hit.
    let now = machine.access(0, 0, Prefetch, 0);
    assert_eq!(now, 1);
    assert_eq!(machine.access(0, 0, Load, 500), 501);
    // Too late: the load waits for the rest.
    machine.access(0, 1, Prefetch, 1_000);
    assert_eq!(machine.access(0, 1, Load, 1_050), 1_200);
    // Three at once take as long as one.
    let mut now = 2_000;
    for line in 10..13 {
        now = machine.access(0, line, Prefetch, now);
    }
    for line in 10..13 {
        now = machine.access(0, line, Load, now);
    }
    assert_eq!(now, 2_202, "the last one's arrival, and nothing after it");
    // A fourth finds no room and waits until the first is there.
    let mut now = 3_000;
    for line in 20..24 {
        now = machine.access(0, line, Prefetch, now);
    }
    assert_eq!(now, 3_201);
    assert_eq!(machine.statistics().prefetches, 9);
}

#[test]
fn stores_do_not_stall_until_their_buffer_is_full() {
    let mut machine = Machine::new(&small(), 1);
    let mut now = 0;
    for line in 0..4 {
        let done = machine.access(0, line, Store, now);
        assert_eq!(done - now, 1, "line {line}");
        now = done;
    }
    // The fifth waits until the first is out, at 200; the others follow it by one each.
    now = machine.access(0, 4, Store, now);
    assert_eq!(now, 201);
    // The line it has written is its own to read.
    now = machine.access(0, 4, Load, now);
    assert_eq!(now, 202);
    // An atomic operation waits until all are out: the last line arrives at 200 + 200.
    let done = machine.access(0, 0, ReadModifyWrite, now);
    assert_eq!(done, 400 + 7);
    // So does a fence.
    machine.access(0, 50, Store, done);
    let fence = Preset::named("sto").expect("a preset").work.fence_ps;
    assert_eq!(
        machine.compute(0, Work::Fence, done + 1),
        done + 200 + fence
    );
}

#[test]
fn a_store_behind_a_slow_one_leaves_after_it() {
    let mut machine = Machine::new(&small(), 1);
    let now = machine.access(0, 0, Load, 0);
    let now = machine.access(0, 7, Store, now);
    let now = machine.access(0, 0, Store, now);
    // Both are out when the slow one is, so the atomic operation on the other line waits for it.
    assert_eq!(machine.access(0, 0, ReadModifyWrite, now), 200 + 200 + 7);
}

#[test]
fn warm_data_come_from_the_last_level_cache_as_far_as_they_fit() {
    let mut machine = Machine::new(&small(), 4);
    machine.assume_warm(100);
    assert_eq!(machine.access(0, 0, Load, 0), 20);
    let mut machine = Machine::new(&Preset::named("orthrus").expect("a preset"), 1);
    let room = 24 * 1024 * 1024 / 64;
    machine.assume_warm(4 * room);
    let mut now = 0;
    for line in 0..10_000 {
        now = machine.access(0, line, Load, now);
    }
    let hits = machine.statistics().last_level_hits;
    assert!(
        (2_200..2_800).contains(&hits),
        "{hits} of 10,000 in a quarter"
    );
}

#[test]
fn compute_takes_what_the_preset_says() {
    let preset = small();
    let mut machine = Machine::new(&preset, 1);
    let now = machine.compute(0, Work::Step, 10);
    assert_eq!(now, 10 + preset.work.step_ps);
    let now = machine.compute(0, Work::Backoff { spins: 3 }, now);
    assert_eq!(now, 10 + preset.work.step_ps + 3 * preset.work.spin_ps);
    assert_eq!(machine.compute(0, Work::Picoseconds(9), now), now + 9);
    assert_eq!(machine.statistics().spin_ps, 3 * preset.work.spin_ps);
    assert_eq!(machine.statistics().compute_ps, preset.work.step_ps + 9);
}

#[test]
fn work_varies_around_its_price() {
    let mut preset = small();
    preset.jitter_percent = 50;
    preset.work.step_ps = 1_000;
    let mut machine = Machine::new(&preset, 2);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..10_000 {
        for (core, times) in times.iter_mut().enumerate() {
            times.push(machine.compute(core, Work::Step, 7) - 7);
        }
    }
    for times in &times {
        let (least, most) = (times.iter().min(), times.iter().max());
        assert!(
            least.is_some_and(|least| (500..510).contains(least)),
            "{least:?}"
        );
        assert!(
            most.is_some_and(|most| (1_490..=1_500).contains(most)),
            "{most:?}"
        );
        let mean = times.iter().sum::<u64>() / 10_000;
        assert!((990..1_010).contains(&mean), "{mean}");
    }
    assert_ne!(times[0], times[1], "cores vary each in its own way");
    // A wait of a given length is that long.
    assert_eq!(machine.compute(0, Work::Picoseconds(9), 0), 9);
}

#[test]
fn the_presets_are_possible_machines() {
    for preset in Preset::ALL {
        preset.check().expect("the preset is sound");
        assert_eq!(Preset::named(preset.name).as_ref(), Some(preset));
        let costs = preset.costs;
        let rising = [
            costs.first_level_ps,
            costs.second_level_ps,
            costs.last_level_ps,
            costs.modified_ps[0],
            costs.memory_ps[0],
        ];
        assert!(rising.is_sorted(), "{}: {rising:?}", preset.name);
        for by_distance in [costs.modified_ps, costs.clean_ps, costs.memory_ps] {
            assert!(by_distance.is_sorted(), "{}: {by_distance:?}", preset.name);
        }
        // Every core can be reached, and the last one works.
        let mut machine = Machine::new(preset, preset.cores());
        assert!(machine.access(preset.cores() - 1, 0, Load, 0) > 0);
    }
    assert_eq!(Preset::named("nowhere"), None);
    let cores = |name| Preset::named(name).expect("a preset").cores();
    assert_eq!(
        [
            cores("orthrus"),
            cores("sto"),
            cores("strife"),
            cores("healing")
        ],
        [80, 32, 30, 48]
    );
}

#[test]
#[should_panic(expected = "81 cores of a machine \"orthrus\" with 80")]
fn more_cores_than_the_machine_has_are_refused() {
    Machine::new(&Preset::named("orthrus").expect("a preset"), 81);
}

#[test]
fn impossible_machines_are_refused() {
    let mut lopsided = small();
    lopsided.distances[0][1] = 2;
    let coreless = Preset {
        cores_per_socket: 0,
        ..small()
    };
    let bufferless = Preset {
        store_buffer: 0,
        ..small()
    };
    let cacheless = Preset {
        first_level: CacheShape { bytes: 0, ways: 8 },
        ..small()
    };
    let mut overexposed = small();
    overexposed.costs.exposed_percent = 101;
    let erratic = Preset {
        jitter_percent: 101,
        ..small()
    };
    for preset in [
        lopsided,
        coreless,
        bufferless,
        cacheless,
        overexposed,
        erratic,
    ] {
        preset.check().expect_err("the shape is impossible");
    }
}
