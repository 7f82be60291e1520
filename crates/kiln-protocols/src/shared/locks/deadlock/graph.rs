//! The waits-for graph: an attempt that is blocked looks for a cycle.
//!
//! Source: ORTHRUS §4 and VLL §3.1.1 (there after Gray), as Yu et al., *Staring into the Abyss*,
//! PVLDB 8, 2014, implement it (`DL_DETECT`): the graph is partitioned by worker. A worker writes
//! the edges from itself into its own part when it is blocked, and only then; others read them
//! without latches.
//!
//! # Why no deadlock is missed
//!
//! Take a cycle of attempts that wait for each other, each of which will wait for ever if none
//! gives up.
//!
//! 1. *Every attempt's edges are there in the end.* Edges are taken from the queue under its latch,
//!    in the moment in which the request is lined up. Later the attempt waits for another one than
//!    then only because one ahead left without having been served, or because one overtook it and
//!    then waits itself. Then it is told (`CHANGED`), takes its edges anew, and goes on as at the
//!    beginning. (An attempt ahead that is served stays ahead until it ends.) So there is a last
//!    time that each of the cycle writes its edges, and with these the cycle is in the graph.
//! 2. *The last one sees all.* An attempt that writes edges searches afterwards, with a fence of
//!    the total order in between. Of the cycle, one's fence is the last; its search reads nothing
//!    of the others' parts but their last edges, and finds none of them in the middle of a change.
//! 3. *A search that sees the cycle finds it.* It follows each attempt that it meets once, and by
//!    the edges of that attempt. What it has followed is noted by the attempt, not by the worker:
//!    others' edges may still lead to an attempt of the same worker that has ended, and if that one
//!    counted, then the present one would be passed over. That was an error of ours once. Every
//!    attempt in the cycle had an old edge somewhere on its way, and none saw the whole of it.
//!
//! So one search for each change of the edges is enough, and no attempt searches a second time for
//! the same. The one that finds the cycle is the victim; two may find it at the same time, then
//! both give up.
//!
//! # Why an old edge does no harm
//!
//! An edge leads to an attempt, not to a worker. An attempt that has ended has no edges, so an edge
//! that still points to it leads nowhere.

use kiln_platform::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use kiln_platform::memory::name_range;
use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_storage::table::WORKERS_MAX;

use super::DeadlockPolicy;
use crate::canary::Canary;
use crate::shared::locks::request::Request;
use crate::shared::workers::{WORKER_BITS, WorkerSet, worker_in};

/// An attempt as an edge's end: its number and, in the low bits, its worker.
type Attempt = u64;

/// One worker's part of the graph, on cache lines of its own.
#[repr(C, align(128))]
struct Partition {
    /// The attempt that is blocked; 0 when none is.
    blocked: AtomicU64,
    /// Counts the changes of the edges: odd while they change.
    version: AtomicU64,
    length: AtomicU32,
    /// For whom the attempt waits.
    edges: [AtomicU64; WORKERS_MAX],
}

/// The graph of all workers; clones are the same one.
#[derive(Clone)]
pub struct WaitsFor(Arc<[Partition]>);

impl Default for WaitsFor {
    fn default() -> WaitsFor {
        let partitions: Arc<[Partition]> = (0..WORKERS_MAX)
            .map(|_| Partition {
                blocked: AtomicU64::new(0),
                version: AtomicU64::new(0),
                length: AtomicU32::new(0),
                edges: [const { AtomicU64::new(0) }; WORKERS_MAX],
            })
            .collect();
        for (number, partition) in partitions.iter().enumerate() {
            let address = std::ptr::from_ref(partition).addr();
            name_range(address, size_of::<Partition>(), || {
                format!("waits-for[{number}]")
            });
        }
        WaitsFor(partitions)
    }
}

/// One worker's side of the graph.
pub struct WaitForGraph {
    graph: WaitsFor,
    worker: u32,
    attempt: Attempt,
    watched: Vec<Attempt>,
    /// Where the search still has to go.
    open: Vec<Attempt>,
    /// By worker: its attempt that the search has followed; others are of former searches.
    followed: Box<[Attempt; WORKERS_MAX]>,
    /// Whether the edges have changed since the last search.
    is_new: bool,
}

impl WaitForGraph {
    /// For the worker with this number.
    pub fn new(graph: WaitsFor, worker: u32) -> WaitForGraph {
        WaitForGraph {
            graph,
            worker,
            attempt: 1 << WORKER_BITS | u64::from(worker),
            watched: Vec::with_capacity(WORKERS_MAX),
            open: Vec::with_capacity(WORKERS_MAX * 2),
            followed: Box::new([0; WORKERS_MAX]),
            is_new: false,
        }
    }

    fn own(&self) -> &Partition {
        &self.graph.0[self.worker as usize]
    }

    /// Adds the attempts that `attempt` waits for to the search; returns whether it waits. What
    /// changes meanwhile does not matter: an attempt that changes its edges searches itself.
    fn follow(&mut self, attempt: Attempt) -> bool {
        let partition = &self.graph.0[worker_in(attempt)];
        // Acquire pairs with the release in `block`: the edges are there.
        let version = partition.version.load(Ordering::Acquire);
        if version % 2 == 1 || partition.blocked.load(Ordering::Relaxed) != attempt {
            return false;
        }
        let known = self.open.len();
        let length = partition.length.load(Ordering::Relaxed) as usize;
        let edges = partition.edges.iter().take(length);
        self.open
            .extend(edges.map(|edge| edge.load(Ordering::Relaxed)));
        // Acquire keeps the reads above before the comparison below.
        fence(Ordering::Acquire);
        let is_whole = partition.version.load(Ordering::Relaxed) == version;
        if !is_whole {
            self.open.truncate(known);
        }
        is_whole
    }

    /// Whether a path leads from this worker back to it.
    fn search(&mut self) -> bool {
        let mut seen = WorkerSet::default();
        self.open.clear();
        self.open.extend_from_slice(&self.watched);
        while let Some(attempt) = self.open.pop() {
            if attempt == self.attempt {
                return true;
            }
            let worker = worker_in(attempt);
            let is_followed = seen.contains(worker) && self.followed[worker] == attempt;
            if !is_followed && self.follow(attempt) {
                seen.insert(worker);
                self.followed[worker] = attempt;
            }
        }
        false
    }
}

impl DeadlockPolicy for WaitForGraph {
    const WATCHES: bool = true;
    const OVERTAKES: bool = true;
    const REFUSED: [AbortCause; 2] = [AbortCause::Deadlock; 2];

    #[inline]
    fn begin(&mut self) {
        self.attempt += 1 << WORKER_BITS;
    }

    #[inline(always)]
    fn stamp(&self) -> u64 {
        self.attempt
    }

    fn forget(&mut self, _: &Request) {
        self.watched.clear();
    }

    fn watch(&mut self, request: &Request) {
        self.watched.push(request.stamp());
    }

    fn block(&mut self) {
        let own = self.own();
        let version = own.version.load(Ordering::Relaxed);
        own.version.store(version + 1, Ordering::Relaxed);
        // Release: a worker that reads one of the edges below reads the version above as well.
        fence(Ordering::Release);
        for (edge, watched) in own.edges.iter().zip(&self.watched) {
            edge.store(*watched, Ordering::Relaxed);
        }
        let length = self.watched.len().min(WORKERS_MAX) as u32;
        own.length.store(length, Ordering::Relaxed);
        own.blocked.store(self.attempt, Ordering::Relaxed);
        // Release pairs with the acquire in `follow`.
        own.version.store(version + 2, Ordering::Release);
        // Of two that block each other one comes first here, and the other sees its edges.
        fence(Ordering::SeqCst);
        self.is_new = true;
        if Canary::EdgesRemovedEarly.sings() {
            self.own().blocked.store(0, Ordering::Relaxed);
        }
    }

    fn is_deadlocked(&mut self, _: u32) -> bool {
        std::mem::take(&mut self.is_new) && self.search()
    }

    fn unblock(&mut self) {
        // Release: nothing of what follows the wait comes before its end.
        self.own().blocked.store(0, Ordering::Release);
    }
}
