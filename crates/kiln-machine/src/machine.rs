//! The model itself: cores that touch lines.

use crate::buffers::{Prefetches, StoreBuffer};
use crate::cache::{Tags, Use};
use crate::line::{Cores, Line, NOBODY, UNTOUCHED};
use crate::preset::{Costs, DISTANCES, MAX_SOCKETS, Preset};
use crate::statistics::{LineHeat, MachineStatistics};
use crate::work::{Work, WorkCosts};

/// How a core touches a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load: the core waits until the line is there.
    Load,
    /// A store: the core goes on, and the line is fetched behind its back, as long as its store
    /// buffer has room.
    Store,
    /// An atomic read-modify-write: the core's store buffer drains, and it waits until it owns the
    /// line and the operation is done.
    ReadModifyWrite,
    /// A prefetch for reading: the core goes on, and a load that comes too early waits for the
    /// rest.
    Prefetch,
}

/// The private part of one core.
struct Core {
    first: Tags,
    second: Tags,
    stores: StoreBuffer,
    prefetches: Prefetches,
    /// What the variation of its work is drawn from.
    draws: u64,
}

/// Where a line came from.
#[derive(Clone, Copy)]
enum Source {
    LastLevel,
    /// Another core or another socket's caches, at a distance.
    Cache(usize),
    Memory(usize),
    /// It was there already; the other copies were invalidated.
    Own,
}

/// A machine of cores with private caches, sockets with last-level caches, and memory.
///
/// Calls should come in the order of the cores' times, as "least virtual time first" makes them:
/// the order of the calls is the order in which the accesses take effect, and a line that one call
/// has made busy is busy for all later ones.
pub struct Machine {
    costs: Costs,
    work: WorkCosts,
    /// Each core's socket.
    sockets: Vec<usize>,
    distances: [[u8; MAX_SOCKETS]; MAX_SOCKETS],
    /// The cores of each socket.
    cores_of: Vec<Cores>,
    cores: Vec<Core>,
    last_level: Vec<Tags>,
    lines: Vec<Line>,
    /// How many of 2^32 lines touched first count as in a last-level cache already.
    warm: u64,
    last_level_lines: u64,
    migratory: bool,
    jitter_percent: u64,
    statistics: MachineStatistics,
}

impl Machine {
    /// The first `cores` cores of a machine like `preset`, with cold caches.
    ///
    /// # Panics
    /// When the preset does not [`check`](Preset::check), or has fewer cores, or when `cores` is 0.
    pub fn new(preset: &Preset, cores: usize) -> Machine {
        if let Err(problem) = preset.check() {
            panic!("{problem}");
        }
        assert!(
            (1..=preset.cores()).contains(&cores),
            "{cores} cores of a machine {:?} with {}",
            preset.name,
            preset.cores()
        );
        let sockets: Vec<usize> = (0..cores).map(|core| preset.socket_of(core)).collect();
        let sockets_used = sockets[cores - 1] + 1;
        let mut cores_of = vec![Cores::default(); sockets_used];
        for (core, &socket) in sockets.iter().enumerate() {
            cores_of[socket].add(core);
        }
        Machine {
            costs: preset.costs,
            work: preset.work,
            distances: preset.distances,
            migratory: preset.migratory,
            jitter_percent: preset.jitter_percent,
            cores_of,
            cores: sockets
                .iter()
                .enumerate()
                .map(|(core, _)| Core {
                    first: Tags::new(preset.first_level),
                    second: Tags::new(preset.second_level),
                    stores: StoreBuffer::new(preset.store_buffer),
                    prefetches: Prefetches::new(preset.prefetches_in_flight),
                    draws: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(core as u64 + 1),
                })
                .collect(),
            last_level: (0..sockets_used)
                .map(|_| Tags::new(preset.last_level))
                .collect(),
            last_level_lines: (preset.last_level.lines() * sockets_used) as u64,
            sockets,
            lines: Vec::new(),
            warm: 0,
            statistics: MachineStatistics::default(),
        }
    }

    /// Tells the model that the program's data are `lines` lines and were used for a long time
    /// before the first access it is told about. Without it every first touch of a line comes from
    /// memory, so that a short run measures cold caches. With it a line's first touch finds it in
    /// the last-level cache as often as the data fit there: always when they fit, and with
    /// probability *room / lines* otherwise, decided by the line's number.
    pub fn assume_warm(&mut self, lines: u64) {
        let share = u128::from(self.last_level_lines) << 32;
        self.warm = (share / u128::from(lines.max(1))).min(1 << 32) as u64;
    }

    /// Core `core`, at its own time `now_ps`, touches cache line `line` (a small dense number: the
    /// model keeps a state for each number up to the largest). Returns when the core may go on, in
    /// picoseconds, never before `now_ps`.
    ///
    /// # Panics
    /// When there is no such core.
    #[inline]
    pub fn access(&mut self, core: usize, line: u32, kind: AccessKind, now_ps: u64) -> u64 {
        let index = line as usize;
        if index >= self.lines.len() {
            self.add_lines(index + 1);
        }
        let done = match kind {
            AccessKind::Load => self.load(core, line, now_ps),
            AccessKind::Store => self.store(core, line, now_ps),
            AccessKind::ReadModifyWrite => self.read_modify_write(core, line, now_ps),
            AccessKind::Prefetch => self.prefetch(core, line, now_ps),
        };
        self.statistics.memory_ps += done - now_ps;
        done
    }

    /// As [`Machine::access`], to plain memory: without what a hit in the first-level cache takes,
    /// as that is in the prices of the work that uses it.
    ///
    /// # Panics
    /// As [`Machine::access`].
    pub fn access_plain(&mut self, core: usize, line: u32, kind: AccessKind, now_ps: u64) -> u64 {
        let done = self.access(core, line, kind, now_ps);
        let hit = match kind {
            AccessKind::Load => self.exposed(self.costs.first_level_ps),
            AccessKind::Store => self.costs.store_ps,
            AccessKind::ReadModifyWrite | AccessKind::Prefetch => 0,
        };
        let spared = hit.min(done - now_ps);
        self.statistics.memory_ps -= spared;
        done - spared
    }

    /// Core `core` works from `now_ps` on without touching memory. Returns when it is done.
    ///
    /// # Panics
    /// When there is no such core.
    #[inline]
    pub fn compute(&mut self, core: usize, work: Work, now_ps: u64) -> u64 {
        let cost = self.work.of(work);
        match work {
            Work::Spin | Work::Backoff { .. } => self.statistics.spin_ps += cost,
            Work::Picoseconds(_) => self.statistics.compute_ps += cost,
            Work::Fence => {
                let drained = self.cores[core].stores.drained_ps().max(now_ps);
                self.statistics.store_buffer_ps += drained - now_ps;
                self.statistics.memory_ps += drained - now_ps;
                self.statistics.compute_ps += cost;
                return drained + cost;
            }
            _ => {
                let cost = self.varied(core, cost);
                self.statistics.compute_ps += cost;
                return now_ps + cost;
            }
        }
        now_ps + cost
    }

    /// A time between `cost` less the preset's variation and `cost` plus it, each as likely.
    #[inline(always)]
    fn varied(&mut self, core: usize, cost: u64) -> u64 {
        let spread = cost * self.jitter_percent / 100;
        if spread == 0 {
            return cost;
        }
        let draws = &mut self.cores[core].draws;
        *draws ^= *draws << 13;
        *draws ^= *draws >> 7;
        *draws ^= *draws << 17;
        // The product's high half is below twice the spread and one.
        let drawn = (u128::from(*draws) * u128::from(2 * spread + 1)) >> 64;
        cost - spread + drawn as u64
    }

    /// The totals so far.
    pub fn statistics(&self) -> &MachineStatistics {
        &self.statistics
    }

    /// Forgets the totals and the lines' heat; the caches keep their content. Called after a
    /// warm-up.
    pub fn reset_statistics(&mut self) {
        self.statistics = MachineStatistics::default();
        for line in &mut self.lines {
            line.heat = LineHeat::default();
        }
    }

    /// How contended a line was; not at all if it was never touched.
    pub fn heat(&self, line: u32) -> LineHeat {
        let state = self.lines.get(line as usize);
        state.map(|state| state.heat).unwrap_or_default()
    }

    /// At most `count` lines that were contended, the one waited for longest first; among equals,
    /// the one transferred most often, and then the lowest number.
    pub fn hottest(&self, count: usize) -> Vec<(u32, LineHeat)> {
        let heats = self.lines.iter().map(|line| line.heat).enumerate();
        let mut lines: Vec<(u32, LineHeat)> = heats
            .filter(|(_, heat)| heat.transfers > 0)
            .map(|(line, heat)| (line as u32, heat))
            .collect();
        lines.sort_by_key(|(line, heat)| {
            (std::cmp::Reverse((heat.queued_ps, heat.transfers)), *line)
        });
        lines.truncate(count);
        lines
    }

    /// The cores' number.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    #[cold]
    fn add_lines(&mut self, needed: usize) {
        let length = needed.next_multiple_of(1 << 12);
        self.lines.resize(length, Line::NEW);
    }

    fn load(&mut self, core: usize, line: u32, now_ps: u64) -> u64 {
        self.statistics.loads += 1;
        let state = &self.lines[line as usize];
        if state.holds(core) {
            let cost = self.private_hit(core, line);
            let served = now_ps + self.exposed(cost);
            // A prefetch that comes too late is a load that began earlier.
            let wait = self.cores[core].prefetches.arrival_ps(line, served) - served;
            if wait == 0 {
                return served;
            }
            let exposed = self.exposed(wait);
            self.statistics.prefetch_ps += exposed;
            return served + exposed;
        }
        if state.lingers(core, now_ps) {
            let cost = self.lingering_hit();
            return now_ps + self.exposed(cost);
        }
        let (done, hidden) = self.fetch(core, line, now_ps);
        done - hidden
    }

    /// How much of a load's time the core stands still.
    #[inline(always)]
    fn exposed(&self, cost: u64) -> u64 {
        (cost * self.costs.exposed_percent / 100).max(1)
    }

    fn store(&mut self, core: usize, line: u32, now_ps: u64) -> u64 {
        self.statistics.stores += 1;
        let stores = &mut self.cores[core].stores;
        let issued = stores.room_at(now_ps);
        self.statistics.store_buffer_ps += issued - now_ps;
        let ready = if self.own_without_asking(core, line) {
            self.private_hit(core, line);
            let prefetches = &mut self.cores[core].prefetches;
            prefetches.arrival_ps(line, issued)
        } else if self.lines[line as usize].lingers(core, issued) {
            self.lingering_write(core, line);
            issued
        } else {
            self.fetch_exclusive(core, line, issued)
        };
        let stores = &mut self.cores[core].stores;
        // A store whose line is there leaves at once if nothing is before it.
        if ready > issued || stores.drained_ps() > issued {
            stores.push(ready);
        }
        issued + self.costs.store_ps
    }

    fn read_modify_write(&mut self, core: usize, line: u32, now_ps: u64) -> u64 {
        self.statistics.read_modify_writes += 1;
        let drained = self.cores[core].stores.drained_ps().max(now_ps);
        self.statistics.store_buffer_ps += drained - now_ps;
        let owned = if self.own_without_asking(core, line) {
            let beyond_first = self.private_hit(core, line) - self.costs.first_level_ps;
            let served = drained + beyond_first;
            let arrival = self.cores[core].prefetches.arrival_ps(line, served);
            self.statistics.prefetch_ps += arrival - served;
            arrival
        } else if self.lines[line as usize].lingers(core, drained) {
            // The operation is done on the old holder's copy, before the new one gets it.
            self.lingering_write(core, line);
            return drained + self.costs.atomic_ps;
        } else {
            self.fetch_exclusive(core, line, drained)
        };
        let done = owned + self.costs.atomic_ps;
        // The line stays locked in the core's cache until the operation is done.
        self.lines[line as usize].busy_until_ps = done;
        done
    }

    fn prefetch(&mut self, core: usize, line: u32, now_ps: u64) -> u64 {
        self.statistics.prefetches += 1;
        if self.lines[line as usize].holds(core) {
            self.private_hit(core, line);
            return now_ps + self.costs.prefetch_ps;
        }
        let issued = self.cores[core].prefetches.room_at(now_ps);
        self.statistics.prefetch_ps += issued - now_ps;
        let (arrival, _) = self.fetch(core, line, issued);
        self.cores[core].prefetches.push(line, arrival);
        issued + self.costs.prefetch_ps
    }

    /// What it costs `core` to get at a line that its private caches hold.
    #[inline(always)]
    fn private_hit(&mut self, core: usize, line: u32) -> u64 {
        let caches = &mut self.cores[core];
        if caches.first.use_line(line) == Use::Present {
            self.statistics.first_level_hits += 1;
            return self.costs.first_level_ps;
        }
        caches.second.use_line(line);
        self.statistics.second_level_hits += 1;
        self.costs.second_level_ps
    }

    /// What a load costs of a line that the core still has although it was asked to give it up.
    #[cold]
    fn lingering_hit(&mut self) -> u64 {
        self.statistics.first_level_hits += 1;
        self.costs.first_level_ps
    }

    /// A write to a line that the core still has although it was asked to give it up: it is
    /// modified when it leaves, so a reader who was to share it takes it away.
    #[cold]
    fn lingering_write(&mut self, core: usize, line: u32) {
        self.statistics.first_level_hits += 1;
        if self.migratory {
            self.lines[line as usize].sharers.remove(core);
        }
    }

    /// Makes `core` the owner if no other core needs to be asked. Returns whether it is the owner.
    #[inline(always)]
    fn own_without_asking(&mut self, core: usize, line: u32) -> bool {
        let socket = self.sockets[core];
        let state = &mut self.lines[line as usize];
        if !state.is_exclusive(core, socket) {
            return false;
        }
        state.owner = core as u8;
        state.last_level = 0;
        true
    }

    /// Gets a line that `core` does not hold, to read it. Returns when it is there, and for how
    /// long before that a core that only wants its value can do something else.
    fn fetch(&mut self, core: usize, line: u32, now_ps: u64) -> (u64, u64) {
        let socket = self.sockets[core];
        let (source, cost) = self.source(core, line);
        let state = &mut self.lines[line as usize];
        let start = state.busy_until_ps.max(now_ps);
        let done = start + cost;
        // While a line is on its way, every other core that wants it waits; when the last-level
        // cache serves it, only until the cache is free for the next request.
        state.busy_until_ps = match source {
            Source::LastLevel => start + self.costs.occupancy_ps,
            _ => done,
        };
        state.give_up(start, self.costs.linger_ps);
        let owner = std::mem::replace(&mut state.owner, NOBODY);
        if owner != NOBODY && self.migratory {
            // The reader is the only one to have it now, and may write it without asking.
            state.sharers = Cores::only(core);
        } else {
            state.sharers.add(core);
            // What was modified goes to the last-level cache of its owner's socket too.
            if owner != NOBODY {
                self.keep_in_last_level(self.sockets[usize::from(owner)], line);
            }
        }
        self.keep_in_last_level(socket, line);
        self.count(line, source, start - now_ps);
        self.keep_in_private(core, line);
        let hidden = match source {
            Source::LastLevel | Source::Memory(_) => cost - self.exposed(cost),
            Source::Cache(_) | Source::Own => 0,
        };
        (done, hidden)
    }

    /// Gets a line that `core` may not write yet, so that it may. Returns when it is there.
    fn fetch_exclusive(&mut self, core: usize, line: u32, now_ps: u64) -> u64 {
        let socket = self.sockets[core];
        let held = self.lines[line as usize].holds(core);
        let (source, cost) = if held {
            (Source::Own, 0)
        } else {
            self.source(core, line)
        };
        let farthest = self.farthest_copy(core, line);
        let invalidate = farthest.map_or(0, |distance| self.costs.invalidate_ps[distance]);
        let state = &mut self.lines[line as usize];
        let start = state.busy_until_ps.max(now_ps);
        // The line and the invalidations travel at the same time. A modified line's only holder
        // gives it away, which is its invalidation.
        let done = match state.owner {
            NOBODY => start + cost.max(invalidate),
            _ => start + cost,
        };
        state.busy_until_ps = done;
        if !held {
            state.give_up(start, self.costs.linger_ps);
        }
        state.owner = core as u8;
        state.sharers = Cores::only(core);
        state.last_level = 0;
        self.count(line, source, start - now_ps);
        if held {
            self.private_hit(core, line);
        } else {
            // An inclusive last-level cache reserves room for what the cores have.
            self.reserve_in_last_level(socket, line);
            self.keep_in_private(core, line);
        }
        done
    }

    /// The cache or memory that can give `line` to `core` soonest, and what that costs.
    fn source(&mut self, core: usize, line: u32) -> (Source, u64) {
        let socket = self.sockets[core];
        let state = &mut self.lines[line as usize];
        if state.home == UNTOUCHED {
            state.home = socket as u8;
            let scrambled = u64::from(line.wrapping_mul(0x85EB_CA6B).rotate_left(13));
            if scrambled < self.warm {
                state.last_level = 1 << socket;
                self.reserve_in_last_level(socket, line);
                return (Source::LastLevel, self.costs.last_level_ps);
            }
            return (Source::Memory(0), self.costs.memory_ps[0]);
        }
        let state = self.lines[line as usize];
        if state.owner != NOBODY {
            let owner_socket = self.sockets[usize::from(state.owner)];
            let distance = self.distance(socket, owner_socket);
            return (Source::Cache(distance), self.costs.modified_ps[distance]);
        }
        if state.last_level >> socket & 1 == 1 {
            // A single sharer may have written its copy without asking, so it is asked.
            let single = state.sharers.single();
            let here = single.is_some_and(|other| self.sockets[usize::from(other)] == socket);
            return match here {
                true => (Source::Cache(0), self.costs.clean_ps[0]),
                false => (Source::LastLevel, self.costs.last_level_ps),
            };
        }
        let nearest = (0..self.cores_of.len())
            .filter(|&other| self.has_copy(&state, other))
            .map(|other| self.distance(socket, other))
            .min();
        if let Some(distance) = nearest {
            return (Source::Cache(distance), self.costs.clean_ps[distance]);
        }
        let distance = self.distance(socket, usize::from(state.home));
        (Source::Memory(distance), self.costs.memory_ps[distance])
    }

    /// The largest distance of a copy that is not `core`'s own or its last-level cache's.
    fn farthest_copy(&self, core: usize, line: u32) -> Option<usize> {
        let socket = self.sockets[core];
        let mut state = self.lines[line as usize];
        state.sharers.remove(core);
        state.last_level &= !(1 << socket);
        if state.sharers.is_empty() && state.last_level == 0 {
            return None;
        }
        (0..self.cores_of.len())
            .filter(|&other| self.has_copy(&state, other))
            .map(|other| self.distance(socket, other))
            .max()
    }

    /// Whether a socket's last-level cache or one of its cores has a copy.
    fn has_copy(&self, state: &Line, socket: usize) -> bool {
        state.last_level >> socket & 1 == 1 || state.sharers.overlaps(&self.cores_of[socket])
    }

    fn distance(&self, one: usize, other: usize) -> usize {
        let distance = usize::from(self.distances[one][other]);
        debug_assert!(distance < DISTANCES, "presets are checked");
        distance
    }

    fn count(&mut self, line: u32, source: Source, queued_ps: u64) {
        let statistics = &mut self.statistics;
        let heat = &mut self.lines[line as usize].heat;
        match source {
            Source::LastLevel => statistics.last_level_hits += 1,
            Source::Cache(0) => statistics.transfers_within += 1,
            Source::Cache(_) => statistics.transfers_across += 1,
            Source::Memory(0) => statistics.memory_local += 1,
            Source::Memory(_) => statistics.memory_remote += 1,
            Source::Own => statistics.upgrades += 1,
        }
        heat.transfers += u64::from(matches!(source, Source::Cache(_) | Source::Own));
        if queued_ps > 0 {
            statistics.queued += 1;
            statistics.queued_ps += queued_ps;
            heat.queued_ps += queued_ps;
        }
    }

    /// Puts a valid copy into a socket's last-level cache.
    fn keep_in_last_level(&mut self, socket: usize, line: u32) {
        self.lines[line as usize].last_level |= 1 << socket;
        self.reserve_in_last_level(socket, line);
    }

    /// Makes room in a socket's last-level cache; what gives way is no longer there.
    fn reserve_in_last_level(&mut self, socket: usize, line: u32) {
        if let Use::Evicted(victim) = self.last_level[socket].use_line(line) {
            self.lines[victim as usize].last_level &= !(1 << socket);
        }
    }

    /// Puts a line into a core's private caches. What gives way in the second level leaves the
    /// first too, and goes to the last-level cache.
    fn keep_in_private(&mut self, core: usize, line: u32) {
        let caches = &mut self.cores[core];
        caches.first.use_line(line);
        let Use::Evicted(victim) = caches.second.use_line(line) else {
            return;
        };
        let state = &mut self.lines[victim as usize];
        if !state.holds(core) {
            return;
        }
        state.sharers.remove(core);
        if state.owner == core as u8 {
            state.owner = NOBODY;
        }
        // A clean line is mostly there already.
        let socket = self.sockets[core];
        if state.last_level >> socket & 1 == 0 {
            self.keep_in_last_level(socket, victim);
        }
    }
}

#[cfg(test)]
impl Machine {
    /// Checks the invariants of every line's state.
    pub(crate) fn check(&self) {
        for (number, line) in self.lines.iter().enumerate() {
            if line.owner != NOBODY {
                assert_eq!(
                    line.sharers,
                    Cores::only(usize::from(line.owner)),
                    "line {number} is modified and shared: {line:?}"
                );
                assert_eq!(
                    line.last_level, 0,
                    "line {number} has stale copies: {line:?}"
                );
            }
            assert!(
                line.home != UNTOUCHED || line.sharers.is_empty(),
                "line {number} is held but was never touched"
            );
        }
    }
}
