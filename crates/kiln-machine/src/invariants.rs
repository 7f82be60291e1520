//! What holds whatever the cores do.

use crate::{AccessKind, Machine, MachineStatistics, Preset, Work};

/// A small generator of our own, since the crate depends on nothing.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27) % bound
    }
}

/// Runs random accesses, the core with the least time first, and returns the trace's digest.
fn run(preset: &Preset, cores: usize, accesses: u32, seed: u64) -> (u64, MachineStatistics) {
    let mut machine = Machine::new(preset, cores);
    let mut draws = Draws(seed);
    let mut times = vec![0_u64; cores];
    let mut digest = 0_u64;
    for step in 0..accesses {
        let earliest = times.iter().enumerate().min_by_key(|(_, now)| **now);
        let core = earliest.expect("there is a core").0;
        // A few hot lines, some warm ones, and many cold ones.
        let line = match draws.below(3) {
            0 => draws.below(3),
            1 => draws.below(300),
            _ => draws.below(100_000),
        } as u32;
        let kind = [
            AccessKind::Load,
            AccessKind::Load,
            AccessKind::Store,
            AccessKind::ReadModifyWrite,
            AccessKind::Prefetch,
        ][draws.below(5) as usize];
        let before = times[core];
        let mut after = machine.access(core, line, kind, before);
        assert!(after > before, "an access takes time: {before} to {after}");
        if draws.below(4) == 0 {
            let work = [Work::Step, Work::Fence, Work::Spin][draws.below(3) as usize];
            let worked = machine.compute(core, work, after);
            assert!(worked > after, "work takes time: {after} to {worked}");
            after = worked;
        }
        times[core] = after;
        digest = digest.rotate_left(7) ^ after ^ u64::from(line);
        if step % 4_096 == 0 {
            machine.check();
        }
    }
    machine.check();
    assert_served_once(machine.statistics());
    (digest, *machine.statistics())
}

/// Every access is served by exactly one place.
fn assert_served_once(statistics: &MachineStatistics) {
    let served = statistics.first_level_hits
        + statistics.second_level_hits
        + statistics.last_level_hits
        + statistics.transfers_within
        + statistics.transfers_across
        + statistics.memory_local
        + statistics.memory_remote;
    assert_eq!(served, statistics.accesses(), "{statistics:?}");
}

#[test]
fn states_stay_consistent_and_time_goes_forward() {
    for preset in Preset::ALL {
        for (seed, cores) in [1, 2, 7, preset.cores()].into_iter().enumerate() {
            let cores = cores.min(preset.cores());
            let (_, statistics) = run(preset, cores, 40_000, seed as u64);
            assert_eq!(statistics.accesses(), 40_000);
            assert_eq!(
                statistics.lines_transferred() > 0,
                cores > 1,
                "{}: {statistics:?}",
                preset.name
            );
        }
    }
}

#[test]
fn the_same_accesses_take_the_same_time() {
    let preset = Preset::named("healing").expect("a preset");
    assert_eq!(run(&preset, 48, 60_000, 9), run(&preset, 48, 60_000, 9));
    assert_ne!(
        run(&preset, 48, 60_000, 9).0,
        run(&preset, 48, 60_000, 10).0
    );
}

#[test]
fn statistics_can_be_taken_between_two_times() {
    let preset = Preset::named("sto").expect("a preset");
    let mut machine = Machine::new(&preset, 2);
    machine.access(0, 0, AccessKind::Load, 0);
    let earlier = *machine.statistics();
    machine.access(1, 0, AccessKind::Store, 1_000_000);
    let later = machine.statistics().since(&earlier);
    assert_eq!((later.loads, later.stores, later.memory_local), (0, 1, 0));
    assert_eq!(later.transfers_within, 1);
    machine.reset_statistics();
    assert_eq!(*machine.statistics(), MachineStatistics::default());
    assert!(machine.hottest(9).is_empty());
}
