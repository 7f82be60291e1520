//! The same measurements made on the model, so that its mistakes show before any transaction runs.

use kiln_machine::{AccessKind, Machine, Preset};
use kiln_platform::time;

/// A core's time and where it is in its program.
struct Side {
    now_ps: u64,
    turn: u64,
    /// Whether its last load found that it is its turn.
    mine: bool,
}

/// Nanoseconds per hand-over of a flag between two cores.
pub(super) fn ping_pong(preset: &Preset) -> f64 {
    const TIMES: u64 = 1_000;
    let mut machine = Machine::new(preset, 2);
    let mut sides = [0, 0].map(|now_ps| Side {
        now_ps,
        turn: 0,
        mine: false,
    });
    let mut flag = 0;
    while flag < 2 * TIMES {
        let core = usize::from(sides[1].now_ps < sides[0].now_ps);
        let side = &mut sides[core];
        // Each access is an event of its own, and takes effect when it is made.
        let kind = match side.mine {
            true => AccessKind::Store,
            false => AccessKind::Load,
        };
        side.now_ps = machine.access(core, 0, kind, side.now_ps);
        if side.mine {
            flag += 1;
            side.turn += 1;
        }
        side.mine = !side.mine && flag == 2 * side.turn + core as u64;
    }
    sides[0].now_ps.max(sides[1].now_ps) as f64 / (2 * TIMES) as f64 / 1_000.0
}

/// Nanoseconds per atomic addition when two cores make them to one word.
pub(super) fn contended_atomic(preset: &Preset) -> f64 {
    const TIMES: u64 = 1_000;
    let mut machine = Machine::new(preset, 2);
    let mut now = [0, 0];
    for _ in 0..TIMES {
        let core = usize::from(now[1] < now[0]);
        now[core] = machine.access(core, 0, AccessKind::ReadModifyWrite, now[core]);
    }
    now[0].max(now[1]) as f64 / TIMES as f64 / 1_000.0
}

/// Nanoseconds per atomic addition to a line that the other core has modified, or both have read.
pub(super) fn atomic_after(preset: &Preset, shared: bool) -> f64 {
    const LINES: u32 = 512;
    let mut machine = Machine::new(preset, 2);
    let (mut owner, mut other) = (0, 0);
    for line in 0..LINES {
        owner = machine.access(0, line, AccessKind::Store, owner);
    }
    other = machine
        .compute(0, kiln_machine::Work::Fence, owner)
        .max(other);
    if shared {
        for core in [1, 0, 1] {
            for line in 0..LINES {
                other = machine.access(core, line, AccessKind::Load, other);
            }
        }
    }
    let start = other;
    for line in 0..LINES {
        other = machine.access(1, line, AccessKind::ReadModifyWrite, other);
    }
    (other - start) as f64 / f64::from(LINES) / 1_000.0
}

/// Nanoseconds per load from memory among a batch that was prefetched together.
pub(super) fn memory_prefetched(preset: &Preset, batch: u32) -> f64 {
    const BATCHES: u32 = 100;
    let mut machine = Machine::new(preset, 1);
    let mut now = 0;
    for first in (0..BATCHES).map(|number| number * batch) {
        for kind in [AccessKind::Prefetch, AccessKind::Load] {
            for line in first..first + batch {
                now = machine.access(0, line, kind, now);
            }
        }
    }
    now as f64 / f64::from(BATCHES * batch) / 1_000.0
}

/// Nanoseconds per dependent load in a random cycle through `bytes`. Every load waits for the one
/// before, so nothing is hidden.
pub(super) fn chase(preset: &Preset, bytes: usize) -> f64 {
    let mut waiting = preset.clone();
    waiting.costs.exposed_percent = 100;
    let mut machine = Machine::new(&waiting, 1);
    let count = (bytes / 64) as u32;
    let (mut line, mut now, mut start) = (0_u32, 0, 0);
    // Twice through, the second time measured; of a long cycle a part does.
    let (before, steps) = (count, count.min(1 << 20));
    for step in 0..before + steps {
        if step == before {
            start = now;
        }
        now = machine.access(0, line, AccessKind::Load, now);
        line = line.wrapping_mul(0x2C92_77B5).wrapping_add(1) & (count - 1);
    }
    (now - start) as f64 / f64::from(steps) / 1_000.0
}

/// How many accesses a second the model itself answers: `cores` cores on lines of which most are in
/// their own caches, a tenth are shared by all, and some are touched for the first time.
pub(super) fn accesses_per_second(preset: &Preset, cores: usize) -> f64 {
    const ACCESSES: u64 = 4_000_000;
    let mut machine = Machine::new(preset, cores);
    let mut now = vec![0_u64; cores];
    let mut draw = 0x2545_F491_4F6C_DD1D_u64;
    let start = time::now_ns();
    for access in 0..ACCESSES {
        draw ^= draw << 13;
        draw ^= draw >> 7;
        draw ^= draw << 17;
        let core = (access % cores as u64) as usize;
        let line = match draw & 15 {
            0 => (draw >> 8) as u32 & 63,
            1 => 4_096 + ((draw >> 8) as u32 & 0xF_FFFF),
            _ => 2_000_000 + 1_024 * core as u32 + ((draw >> 8) as u32 & 511),
        };
        let kind = match draw >> 40 & 15 {
            0 => AccessKind::ReadModifyWrite,
            1..=3 => AccessKind::Store,
            4 => AccessKind::Prefetch,
            _ => AccessKind::Load,
        };
        now[core] = machine.access(core, line, kind, now[core]);
    }
    ACCESSES as f64 * 1e9 / (time::now_ns() - start) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_hands_over_at_what_its_costs_say() {
        let mut preset = Preset::named("orthrus").expect("a preset of this name exists");
        let lingering = contended_atomic(&preset);
        preset.costs.linger_ps = 0;
        let costs = preset.costs;
        assert!(lingering < contended_atomic(&preset) / 2.0, "{lingering}");
        let nanoseconds = |picoseconds: u64| picoseconds as f64 / 1_000.0;
        let close = |measured: f64, expected: f64| {
            assert!(
                (measured / expected - 1.0).abs() < 0.02,
                "{measured} for {expected}"
            );
        };
        close(
            contended_atomic(&preset),
            nanoseconds(costs.modified_ps[0] + costs.atomic_ps),
        );
        close(
            atomic_after(&preset, true),
            nanoseconds(costs.invalidate_ps[0] + costs.atomic_ps),
        );
        close(
            atomic_after(&preset, false),
            nanoseconds(costs.modified_ps[0] + costs.atomic_ps),
        );
        // Without migration, a hand-over is the reader's fetch and the writer's invalidation.
        let hand_over = nanoseconds(costs.modified_ps[0] + costs.invalidate_ps[0]);
        let measured = ping_pong(&preset);
        assert!(
            (0.8..1.3).contains(&(measured / hand_over)),
            "{measured} for {hand_over}"
        );
        let memory = nanoseconds(costs.memory_ps[0]);
        assert!(memory_prefetched(&preset, 8) < memory / 4.0);
        assert!(accesses_per_second(&preset, 4) > 10_000.0);
    }
}
