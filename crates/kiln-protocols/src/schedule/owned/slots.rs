//! Which partition has which part of the data, balanced by observed load (`--partitioning
//! balanced`).
//!
//! ORTHRUS §3.3 notes that skew leaves some CC threads with too much to do and others with too
//! little, and points to what is known of that. Here the parts of the data fall into [`SLOTS`]
//! *slots*, and a table says which partition has which slot. At first it says what holds without
//! it: part modulo partitions.
//!
//! Each worker counts the claims of its transactions by slot, in counters of its own. One worker,
//! which looks after a partition, adds them up: one worker's counters at a time, and with pauses,
//! as it has something else to do. When it has seen all, and the busiest partition has clearly more
//! than its share, the slots are assigned anew, as [`assign`] says. That is adopted as another
//! number of partitions is (`balance.rs`): new transactions are kept out until no lock is held.
//!
//! A slot is not divided: a partition whose one slot has more than a share keeps that one, and
//! gives next to all others away.

use kiln_platform::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::time;
use kiln_storage::table::{Part, WORKERS_MAX};

use crate::shared::planning::Claim;

/// Parts of the data that differ by a multiple of this have one slot.
const SLOTS: usize = 256;
/// Between the looks at two workers' counters, in nanoseconds for each claim that a partition must
/// have had.
const PAUSE_NS: u64 = 50;
/// Such pauses before it begins again.
const REST: u64 = 100;
/// The busiest partition has clearly more than its share when it has so many times as much.
const MORE: f64 = 1.15;
/// Another assignment pays if the busiest partition had so many times what it would have then.
const PAYS: f64 = 1.1;
/// So much more than under the most even assignment a partition may have, if fewer slots move for
/// that.
const LOOSE: f64 = 1.03;

/// The claims of a worker's transactions, by slot. It alone writes them.
#[repr(align(128))]
struct Counts([AtomicU32; SLOTS]);

/// The table of slots, and the search for a better one.
pub struct Slots {
    /// By slot: its partition. Changes only while no transaction may have locks.
    partitions: Box<[AtomicU32]>,
    /// By worker.
    counts: Box<[Counts]>,
    /// Workers that there have been.
    workers: AtomicUsize,
    search: Mutex<Search>,
    /// When the worker that looks should do so again.
    look_ns: AtomicU64,
    /// Claims that there must be for each partition before chance no longer decides which one is
    /// the busiest.
    claims: u32,
}

/// What one worker has found out.
struct Search {
    /// The next worker whose counters are added.
    next: usize,
    /// By slot: the claims of all workers before that, modulo 2³².
    sums: Box<[u32]>,
    /// What those were when the slots were last thought over.
    before: Box<[u32]>,
    /// By slot: what came between.
    loads: Box<[u32]>,
    /// The assignment to be adopted.
    better: Vec<u16>,
}

impl Slots {
    /// For so many partitions, between which differences are no chance after so many claims for
    /// each.
    pub fn new(partitions: usize, claims: u32) -> Slots {
        let zeros = || vec![0; SLOTS].into_boxed_slice();
        Slots {
            partitions: (0..SLOTS)
                .map(|slot| AtomicU32::new((slot % partitions) as u32))
                .collect(),
            counts: (0..WORKERS_MAX)
                .map(|_| Counts([const { AtomicU32::new(0) }; SLOTS]))
                .collect(),
            workers: AtomicUsize::new(0),
            search: Mutex::new(Search {
                next: 0,
                sums: zeros(),
                before: zeros(),
                loads: zeros(),
                better: Vec::new(),
            }),
            look_ns: AtomicU64::new(0),
            claims,
        }
    }

    /// The partition of a part of the data.
    #[inline(always)]
    pub fn partition(&self, part: Part) -> usize {
        // Relaxed: a worker that begins a transaction has seen that none keeps it out any more.
        self.partitions[part.partition(SLOTS)].load(Ordering::Relaxed) as usize
    }

    /// There is a worker with this number.
    pub fn come(&self, worker: u32) {
        self.workers
            .fetch_max(worker as usize + 1, Ordering::Relaxed);
    }

    /// Counts what a transaction of a worker wants, but for tables that every partition has.
    #[inline]
    pub fn count(&self, worker: u32, claims: &[Claim]) {
        let counts = &self.counts[worker as usize].0;
        for claim in claims.iter().filter(|claim| !claim.part.is_replicated()) {
            let count = &counts[claim.part.partition(SLOTS)];
            // Relaxed, and no atomic addition: the worker alone writes it.
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
        }
    }

    /// Goes on with the search if it is time; whether there is a better assignment to so many
    /// partitions.
    pub fn look(&self, partitions: usize) -> bool {
        let now = time::now_ns();
        // Relaxed: the mutex keeps the search.
        if now < self.look_ns.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(mut search) = self.search.try_lock() else {
            return false;
        };
        let search = &mut *search;
        let pause = PAUSE_NS * u64::from(self.claims);
        self.look_ns.store(now + pause, Ordering::Relaxed);
        for (sum, count) in search.sums.iter_mut().zip(&self.counts[search.next].0) {
            *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
        }
        search.next += 1;
        if search.next < self.workers.load(Ordering::Relaxed) {
            return false;
        }
        self.look_ns.store(now + REST * pause, Ordering::Relaxed);
        search.think(&self.assignment(), partitions, self.claims)
    }

    /// Lets what [`Slots::look`] has found hold, while no transaction has a lock.
    pub fn adopt(&self) {
        let search = lock(&self.search);
        self.set(&search.better);
    }

    /// There are so many partitions now, and no transaction has a lock.
    pub fn divide(&self, partitions: usize) {
        let search = lock(&self.search);
        let begin: Vec<u16> = (0..SLOTS).map(|slot| (slot % partitions) as u16).collect();
        self.set(&assign(&begin, &search.loads, partitions).unwrap_or(begin));
    }

    fn assignment(&self) -> Vec<u16> {
        let partitions = self.partitions.iter();
        partitions
            .map(|partition| partition.load(Ordering::Relaxed) as u16)
            .collect()
    }

    fn set(&self, assignment: &[u16]) {
        for (slot, partition) in self.partitions.iter().zip(assignment) {
            // Relaxed: see `partition`.
            slot.store(u32::from(*partition), Ordering::Relaxed);
        }
    }
}

impl Search {
    /// The counters of all workers are added: looks for a better assignment, and whether there is
    /// one.
    fn think(&mut self, now: &[u16], partitions: usize, claims: u32) -> bool {
        self.next = 0;
        let sums = self.sums.iter_mut();
        let mut total = 0;
        for ((sum, before), load) in sums.zip(&self.before).zip(&mut self.loads) {
            *load = sum.wrapping_sub(*before);
            total += u64::from(*load);
        }
        if total < u64::from(claims) * partitions as u64 {
            // They go on counting.
            self.sums.fill(0);
            return false;
        }
        std::mem::swap(&mut self.before, &mut self.sums);
        self.sums.fill(0);
        match assign(now, &self.loads, partitions) {
            Some(better) => {
                self.better = better;
                true
            }
            None => false,
        }
    }
}

/// Assigns slots with these loads to so many partitions, if the busiest one has clearly more than
/// its share `now`, and would have clearly less then.
///
/// The slots are taken by their loads, the greatest first, and each goes to the partition that has
/// the least so far (longest processing time first: at most 4/3 of what the best assignment has).
/// That says what a partition must have. In a second pass slots stay where they are, unless it
/// would be more than that; if that comes to as much, fewer move.
fn assign(now: &[u16], loads: &[u32], partitions: usize) -> Option<Vec<u16>> {
    let total: u64 = loads.iter().copied().map(u64::from).sum();
    let busiest = busiest(now, loads, partitions) as f64;
    if busiest <= MORE * total as f64 / partitions as f64 {
        return None;
    }
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|slot| std::cmp::Reverse(loads[*slot]));
    let even = greedy(now, loads, partitions, &order, 0);
    let least = self::busiest(&even, loads, partitions);
    let bound = (LOOSE * least as f64) as u64;
    let few = greedy(now, loads, partitions, &order, bound);
    let chosen = match self::busiest(&few, loads, partitions) <= bound {
        true => few,
        false => even,
    };
    (busiest >= PAYS * self::busiest(&chosen, loads, partitions) as f64).then_some(chosen)
}

/// What the busiest partition has.
fn busiest(assignment: &[u16], loads: &[u32], partitions: usize) -> u64 {
    let mut sums = vec![0; partitions];
    for (partition, load) in assignment.iter().zip(loads) {
        sums[usize::from(*partition)] += u64::from(*load);
    }
    sums.into_iter().max().unwrap_or(0)
}

/// Assigns the slots in this order: each stays where it is if that partition has no more than
/// `bound` with it, and else goes to the one that has least. Those without load stay.
fn greedy(now: &[u16], loads: &[u32], partitions: usize, order: &[usize], bound: u64) -> Vec<u16> {
    let mut sums = vec![0; partitions];
    let mut assignment = now.to_vec();
    for &slot in order {
        let (home, load) = (usize::from(now[slot]), u64::from(loads[slot]));
        let stays = load == 0 || sums[home] + load <= bound;
        let partition = match stays {
            true => home,
            false => (0..partitions).min_by_key(|one| sums[*one]).unwrap_or(home),
        };
        sums[partition] += load;
        assignment[slot] = partition as u16;
    }
    assignment
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;

    use super::*;

    fn in_turn(partitions: usize) -> Vec<u16> {
        (0..SLOTS).map(|slot| (slot % partitions) as u16).collect()
    }

    fn moved(one: &[u16], other: &[u16]) -> usize {
        one.iter()
            .zip(other)
            .filter(|(one, other)| one != other)
            .count()
    }

    #[test]
    fn even_loads_stay_where_they_are() {
        for partitions in [1, 3, 16, 32] {
            let noise = |slot: usize| 1_000 + (slot as u32 * 37) % 100;
            let loads: Vec<u32> = (0..SLOTS).map(noise).collect();
            assert_eq!(assign(&in_turn(partitions), &loads, partitions), None);
        }
    }

    #[test]
    fn a_slot_that_is_more_than_a_share_keeps_next_to_no_others() {
        let mut loads = vec![10; SLOTS];
        loads[5] = 2_000;
        let now = in_turn(4);
        let better = assign(&now, &loads, 4).expect("partition 1 has 2630 of 4550");
        assert_eq!((better[5], busiest(&better, &loads, 4)), (1, 2_060));
        // Only those that were with it have moved, and six of those are within what is loose.
        assert_eq!(moved(&now, &better), SLOTS / 4 - 7);
        assert_eq!(assign(&better, &loads, 4), None, "it is as good as it gets");
    }

    #[test]
    fn parts_that_fall_together_come_apart() {
        // Only every eighth part is used, and there are eight partitions.
        let loads: Vec<u32> = (0..SLOTS as u32)
            .map(|slot| if slot % 8 == 0 { 100 } else { 0 })
            .collect();
        let better = assign(&in_turn(8), &loads, 8).expect("one partition has all");
        assert_eq!(busiest(&better, &loads, 8), 400);
    }

    #[test]
    fn no_partition_has_much_more_than_it_must() {
        let mut random = Random::from_seed(7);
        for _ in 0..200 {
            let partitions = 1 + random.below(32);
            let exponent = random.below(4) as i32;
            let loads: Vec<u32> = (0..SLOTS)
                .map(|_| (random.below(100) as f64).powi(exponent) as u32)
                .collect();
            let now: Vec<u16> = (0..SLOTS)
                .map(|_| random.below(partitions) as u16)
                .collect();
            let total: u64 = loads.iter().copied().map(u64::from).sum();
            let greatest = u64::from(loads.iter().copied().max().unwrap_or(0));
            let must = (total as f64 / partitions as f64).max(greatest as f64);
            let before = busiest(&now, &loads, partitions) as f64;
            let after = match assign(&now, &loads, partitions) {
                Some(better) => busiest(&better, &loads, partitions) as f64,
                None => before,
            };
            assert!(after <= before);
            assert!(after <= 1.4 * must + 1.0, "{after} of {must}");
        }
    }

    #[test]
    fn a_search_needs_all_workers_and_enough_claims() {
        let slots = Slots::new(2, 4);
        slots.come(1);
        let count = |worker: usize, slot: usize, claims: u32| {
            let count = &slots.counts[worker].0[slot];
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(claims),
                Ordering::Relaxed,
            );
        };
        let round = || {
            let mut is_better = false;
            for _ in 0..2 {
                slots.look_ns.store(0, Ordering::Relaxed);
                is_better = slots.look(2);
            }
            is_better
        };
        // Both slots are of partition 0.
        count(0, 0, 3);
        count(1, 2, 3);
        assert!(!round(), "6 claims of 8");
        count(1, 2, 3);
        slots.look_ns.store(0, Ordering::Relaxed);
        assert!(!slots.look(2), "one worker of two");
        slots.look_ns.store(0, Ordering::Relaxed);
        assert!(slots.look(2));
        slots.adopt();
        let partitions = slots.assignment();
        assert_ne!(partitions[0], partitions[2]);
        assert!(!round(), "nothing has come since");
        // Another number begins from what was counted last.
        slots.divide(3);
        assert_ne!(slots.assignment()[0], slots.assignment()[2]);
    }
}
