//! The queues against a simple model of them: the same random requests, one after the other, must
//! have the same outcomes, and whom a waiter watches must lead it to all that it waits for.

use std::collections::BTreeSet;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::random::Random;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::deadlock::DeadlockPolicy;
use super::request::{CHANGED, GRANTED, Request, RequestRef};
use super::waiting::Look;
use super::{Alarms, BesideBits, BesideRecord, LockTable, Locks, Placement, QueuedLocks, Taken};
use crate::shared::core_slots::CoreSlots;

const WORKERS: usize = 7;
const RECORDS: usize = 3;

/// Remembers whom it is told to watch.
#[derive(Default)]
struct Watcher<const BY_AGE: bool, const OVERTAKES: bool> {
    stamp: u64,
    /// Workers with the stamps of their transactions.
    watched: Vec<(usize, u64)>,
}

impl<const BY_AGE: bool, const OVERTAKES: bool> DeadlockPolicy for Watcher<BY_AGE, OVERTAKES> {
    const BY_AGE: bool = BY_AGE;
    const OVERTAKES: bool = OVERTAKES;
    const WATCHES: bool = !BY_AGE;
    const REFUSED: [AbortCause; 2] = [AbortCause::Died; 2];

    fn stamp(&self) -> u64 {
        self.stamp
    }

    fn forget(&mut self, _: &Request) {
        self.watched.clear();
    }

    fn watch(&mut self, request: &Request) {
        self.watched
            .push((request.worker() as usize, request.stamp()));
    }
}

/// What a lock's queue should be.
#[derive(Clone, Default, Debug)]
struct Model {
    /// Workers, and whether exclusively.
    holders: Vec<(usize, bool)>,
    upgrade: Option<usize>,
    /// Workers, whether exclusively, and stamps.
    waiters: Vec<(usize, bool, u64)>,
    /// Whether a lock that is let go is free until a worker comes for it.
    may_be_overtaken: bool,
    /// Waiters that are not overtaken.
    insisting: BTreeSet<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Now,
    Later,
    Refused,
}

impl Model {
    fn is_shared(&self) -> bool {
        self.upgrade.is_none() && self.holders.iter().all(|holder| !holder.1)
    }

    fn take(&mut self, worker: usize, exclusive: bool, stamps: &[u64], by_age: bool) -> Expected {
        let stamp = stamps[worker];
        let is_older = |other: usize| stamp < stamps[other];
        let joins = !exclusive && self.is_shared();
        let is_free = match self.waiters.first() {
            None => self.holders.is_empty() || joins,
            Some(first) => {
                self.holders.is_empty()
                    && !self.insisting.contains(&first.0)
                    && !(by_age && is_older(first.0))
            }
        };
        if is_free {
            self.holders.push((worker, exclusive));
            return Expected::Now;
        }
        let mut at = self.waiters.len();
        if by_age {
            let may = match joins {
                true => is_older(self.waiters[0].0),
                false => self.holders.iter().all(|holder| is_older(holder.0)),
            };
            if !may || self.holders.is_empty() && !is_older(self.waiters[0].0) {
                return Expected::Refused;
            }
            let older = |waiter: &(usize, bool, u64)| waiter.2 < stamp;
            at = self.waiters.iter().position(older).unwrap_or(at);
        }
        self.waiters.insert(at, (worker, exclusive, stamp));
        Expected::Later
    }

    fn upgrade(&mut self, worker: usize, stamps: &[u64], by_age: bool) -> Expected {
        if let [only] = &mut self.holders[..] {
            only.1 = true;
            return Expected::Now;
        }
        let mut others = self.holders.iter().filter(|holder| holder.0 != worker);
        let is_oldest = others.all(|holder| stamps[worker] < stamps[holder.0]);
        if self.upgrade.is_some() || by_age && !is_oldest {
            return Expected::Refused;
        }
        self.upgrade = Some(worker);
        Expected::Later
    }

    /// A holder lets go.
    fn release(&mut self, worker: usize) {
        self.holders.retain(|holder| holder.0 != worker);
        if let (Some(_), [only]) = (self.upgrade, &mut self.holders[..]) {
            only.1 = true;
            self.upgrade = None;
        }
        let first = self.waiters.first();
        let insists = first.is_some_and(|first| self.insisting.contains(&first.0));
        if self.holders.is_empty() && (!self.may_be_overtaken || insists) {
            self.grant();
        }
    }

    /// A waiter gives up.
    fn withdraw(&mut self, worker: usize) {
        let is_next = self.waiters[0].0 == worker;
        self.waiters.retain(|waiter| waiter.0 != worker);
        self.insisting.remove(&worker);
        if is_next {
            self.grant();
        }
    }

    fn cancel_upgrade(&mut self) {
        self.upgrade = None;
        self.grant();
    }

    /// A waiter looks for the lock.
    fn come(&mut self, worker: usize, insists: bool) {
        self.insisting.remove(&worker);
        if self.may_be_overtaken && self.waiters.first().is_some_and(|first| first.0 == worker) {
            self.grant();
        }
        if insists && self.is_blocked(worker) {
            self.insisting.insert(worker);
        }
    }

    /// Whether the first waiter could have the lock.
    fn is_free_for_first(&self) -> bool {
        self.waiters
            .first()
            .is_some_and(|first| self.holders.is_empty() || !first.1 && self.is_shared())
    }

    fn grant(&mut self) {
        while self.is_free_for_first() {
            let (worker, exclusive, _) = self.waiters.remove(0);
            self.insisting.remove(&worker);
            self.holders.push((worker, exclusive));
        }
    }

    fn is_blocked(&self, worker: usize) -> bool {
        self.upgrade == Some(worker) || self.waiters.iter().any(|waiter| waiter.0 == worker)
    }

    /// Whom a worker waits for by the letter of the rules.
    fn conflicts(&self, worker: usize) -> Vec<usize> {
        let others = self.holders.iter().filter(|holder| holder.0 != worker);
        if self.upgrade == Some(worker) {
            return others.map(|holder| holder.0).collect();
        }
        let mut waiters = self.waiters.iter();
        let Some(position) = waiters.position(|waiter| waiter.0 == worker) else {
            return Vec::new();
        };
        let exclusive = self.waiters[position].1;
        let holders = others
            .filter(|holder| exclusive || holder.1 || self.upgrade == Some(holder.0))
            .map(|holder| holder.0);
        let ahead = self.waiters[..position].iter();
        let ahead = ahead
            .filter(|other| exclusive || other.1)
            .map(|other| other.0);
        holders.chain(ahead).collect()
    }

    fn contains(&self, worker: usize) -> bool {
        self.is_blocked(worker) || self.holders.iter().any(|holder| holder.0 == worker)
    }
}

/// All that is reached from `start`, not counting how it was reached.
fn reached(start: usize, edges: impl Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(worker) = open.pop() {
        for next in edges(worker) {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

struct Worker<P, const BY_AGE: bool, const OVERTAKES: bool> {
    locks: QueuedLocks<P, Watcher<BY_AGE, OVERTAKES>>,
    held: Vec<(usize, RequestRef, bool)>,
    /// Locks that this transaction had, or gave up: it takes no lock twice.
    left: [bool; RECORDS],
    /// The lock that is waited for.
    blocked: Option<(usize, RequestRef)>,
}

fn run<P: Placement, const BY_AGE: bool, const OVERTAKES: bool>(
    placement: &P,
    seed: u64,
) -> [u64; 4] {
    let cells: Vec<[AtomicU64; 4]> = (0..RECORDS).map(|_| Default::default()).collect();
    // SAFETY: the cells are aligned words, and live as long as the run.
    let record = |at: usize| unsafe { RecordRef::from_cell(NonNull::from(&cells[at]).cast()) };
    let mut random = Random::from_seed(seed);
    let model = Model {
        may_be_overtaken: OVERTAKES,
        ..Model::default()
    };
    let mut models = vec![model; RECORDS];
    let alarms = Alarms::new(CoreSlots::default());
    let mut workers: Vec<Worker<P, BY_AGE, OVERTAKES>> = (0..WORKERS)
        .map(|number| Worker {
            locks: QueuedLocks::new(
                placement.clone(),
                Watcher {
                    stamp: 1 + number as u64,
                    watched: Vec::new(),
                },
                alarms.clone(),
                number as u32,
            ),
            held: Vec::new(),
            left: [false; RECORDS],
            blocked: None,
        })
        .collect();
    let mut born = WORKERS as u64;
    let mut counts = [0; 4];
    for _ in 0..if cfg!(miri) { 300 } else { 6_000 } {
        let stamps: Vec<u64> = workers.iter().map(|it| it.locks.policy.stamp).collect();
        let number = random.below(WORKERS);
        let worker = &mut workers[number];
        match worker.blocked {
            Some((at, request)) => {
                if random.below(4) == 0 {
                    let left = worker
                        .locks
                        .give_up(record(at), request, AbortCause::Deadlock);
                    assert_eq!(left, Err(AbortCause::Deadlock));
                    worker.blocked = None;
                    worker.left[at] = true;
                    match models[at].upgrade == Some(number) {
                        true => models[at].cancel_upgrade(),
                        false => models[at].withdraw(number),
                    }
                    counts[3] += 1;
                }
            }
            None => match random.below(8) {
                0..5 => {
                    let at = random.below(RECORDS);
                    if worker.left[at] {
                        continue;
                    }
                    let exclusive = random.below(3) == 0;
                    let known = worker.held.iter().position(|held| held.0 == at);
                    let (expected, taken) = match known {
                        None => (
                            models[at].take(number, exclusive, &stamps, BY_AGE),
                            worker.locks.take(record(at), exclusive),
                        ),
                        Some(known) if !worker.held[known].2 => (
                            models[at].upgrade(number, &stamps, BY_AGE),
                            worker.locks.upgrade(record(at), worker.held[known].1),
                        ),
                        Some(_) => continue,
                    };
                    let crossed = Err(AbortCause::Died);
                    match (expected, taken) {
                        (Expected::Now, Ok(Taken::Now(request))) => match known {
                            None => worker.held.push((at, request, exclusive)),
                            Some(known) => worker.held[known].2 = true,
                        },
                        (Expected::Later, Ok(Taken::Later(request))) => {
                            worker.blocked = Some((at, request));
                            counts[0] += 1;
                            counts[1] += u64::from(known.is_some());
                        }
                        (Expected::Refused, refused) if refused == crossed => counts[2] += 1,
                        (expected, taken) => panic!("{expected:?}, not {taken:?}: {models:?}"),
                    }
                }
                5 if !worker.held.is_empty() => {
                    let (at, request, exclusive) =
                        worker.held.swap_remove(random.below(worker.held.len()));
                    worker.locks.release(record(at), request, exclusive);
                    models[at].release(number);
                    worker.left[at] = true;
                }
                _ => {
                    for (at, request, exclusive) in std::mem::take(&mut worker.held) {
                        worker.locks.release(record(at), request, exclusive);
                        models[at].release(number);
                    }
                    born += 1;
                    worker.locks.policy.stamp = born;
                    worker.left = [false; RECORDS];
                }
            },
        }
        // Now and then every worker that was told to look has looked, and all overtaken know it.
        let is_quiet = !OVERTAKES || random.below(4) == 0;
        if is_quiet {
            workers.iter_mut().for_each(|worker| worker.locks.own_up());
        }
        let mut open = true;
        while std::mem::take(&mut open) {
            for (number, worker) in workers.iter_mut().enumerate() {
                let Some((at, request)) = worker.blocked else {
                    continue;
                };
                let state = request.state.load(Ordering::Relaxed);
                let is_granted = !models[at].is_blocked(number);
                assert_eq!(state == GRANTED, is_granted, "worker {number}: {models:?}");
                if is_granted {
                    worker.blocked = None;
                    let exclusive = request.is_exclusive();
                    match worker.held.iter_mut().find(|held| held.0 == at) {
                        Some(held) => held.2 = true,
                        None => worker.held.push((at, request, exclusive)),
                    }
                } else if state == CHANGED && (is_quiet || random.below(2) == 0) {
                    let insists = OVERTAKES && random.below(3) == 0;
                    models[at].come(number, insists);
                    let look = worker.locks.look_ahead(record(at), request, insists);
                    let is_granted = !models[at].is_blocked(number);
                    assert_eq!(look == Look::Granted, is_granted, "{number}: {models:?}");
                    // It is noted as the holder next, and so may be those behind it.
                    open = true;
                }
            }
        }
        for (at, model) in models.iter().enumerate() {
            if model.is_free_for_first() {
                let first = workers[model.waiters[0].0].blocked;
                let (_, request) = first.expect("who waits is blocked");
                let state = request.state.load(Ordering::Relaxed);
                assert_eq!(state, CHANGED, "no waiter was told about {at}: {model:?}");
            }
        }
        if !is_quiet {
            continue;
        }
        for (at, model) in models.iter().enumerate() {
            let blocked = |&number: &usize| !BY_AGE && model.is_blocked(number);
            for number in (0..WORKERS).filter(blocked) {
                let watched = |number: usize| match workers[number].blocked {
                    Some((blocked, _)) if blocked == at => {
                        let watched = workers[number].locks.policy.watched.iter();
                        let there = |&&(other, stamp): &&(usize, u64)| {
                            let is_same = workers[other].locks.policy.stamp == stamp;
                            is_same && model.contains(other)
                        };
                        watched.filter(there).map(|&(other, _)| other).collect()
                    }
                    _ => Vec::new(),
                };
                let expected = reached(number, |number| model.conflicts(number));
                assert_eq!(reached(number, watched), expected, "{number} in {model:?}");
            }
        }
    }
    for (number, worker) in workers.iter_mut().enumerate() {
        if let Some((at, request)) = worker.blocked.take()
            && worker
                .locks
                .give_up(record(at), request, AbortCause::Deadlock)
                .is_ok()
            && worker.held.iter().all(|held| held.0 != at)
        {
            worker.held.push((at, request, true));
        }
        for (at, request, exclusive) in worker.held.drain(..) {
            worker.locks.release(record(at), request, exclusive);
        }
        assert!(worker.locks.pool.is_whole(), "worker {number}");
    }
    assert!(
        cells
            .iter()
            .all(|cell| cell[1].load(Ordering::Relaxed) == 0)
    );
    counts
}

fn runs<P: Placement>(placement: &P) {
    let mut counts = [[0; 4]; 4];
    for seed in 0..if cfg!(miri) { 1 } else { 30 } {
        let found = [
            run::<P, false, false>(placement, seed),
            run::<P, true, false>(placement, 1_000 + seed),
            run::<P, false, true>(placement, 2_000 + seed),
            run::<P, true, true>(placement, 3_000 + seed),
        ];
        for (sums, found) in counts.iter_mut().zip(found) {
            for (sum, count) in sums.iter_mut().zip(found) {
                *sum += count;
            }
        }
    }
    // Waits, upgrades among them, refusals, and waits that were given up: all of them happened.
    assert!(
        counts.iter().flatten().all(|&count| count > 20),
        "{counts:?}"
    );
}

#[test]
fn queues_beside_records_follow_the_rules() {
    runs(&BesideRecord);
    runs(&BesideBits::<{ 1 << 63 }>);
}

#[test]
fn queues_in_a_table_follow_the_rules() {
    // Two buckets, so that three locks meet.
    let table = LockTable::new(2);
    runs(&table);
    assert!(table.is_empty());
}
