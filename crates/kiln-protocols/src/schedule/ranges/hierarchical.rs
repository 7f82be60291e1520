//! A traditional lock manager of the prefix hierarchy (VLL §3.4.1, “Hierarchical Lock Manager”):
//! `range-hierarchical`.
//!
//! A hash table from nodes to requests, with a latch for each bucket. It locks the nodes that
//! `vllr` counts, intentions on all nodes above included, and so has as many queues to enter and to
//! leave as that has counters.
//!
//! The requests of a bucket are in the order in which they came. One is granted when it is in the
//! way of none before it for the same node. A worker takes the locks of its plan one by one in the
//! order of the nodes' names, and waits for each: all do so in the same order, so none waits in a
//! circle. What a plan has missed is taken if it is free, and not waited for.

use kiln_platform::memory::name_range;
use kiln_platform::plain;
use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_procedure::AbortCause;

use super::signals::Signals;
use crate::shared::core_slots::CoreSlots;
use crate::shared::ranges::nodes::{Modes, Node, Path};
use crate::shared::ranges::plan::{Naming, Request, merge};
use crate::shared::ranges::{RangeClaim, RangeManager, RangePlan};

/// Nodes are known by sixty bits of their hashes.
pub struct Hashes;

impl Naming for Hashes {
    const BY_NODES: bool = true;

    #[inline(always)]
    fn name(node: Node) -> u64 {
        node.hash >> 4
    }
}

/// A request for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The node.
    name: u64,
    /// The worker whose transaction asks.
    worker: u32,
    modes: Modes,
    is_granted: bool,
}

/// The requests for the nodes of a bucket, the first one first.
#[derive(Default)]
struct Requests(Vec<Entry>);

impl Requests {
    /// The modes in which others than `worker` have a node, or wait for it.
    fn modes_of_others(&self, name: u64, worker: u32) -> u8 {
        let entries = self.0.iter();
        let others = entries.filter(|entry| entry.name == name && entry.worker != worker);
        others.fold(0, |modes, entry| modes | entry.modes.0)
    }

    /// Whether a worker would have a node at once.
    fn is_free(&self, worker: u32, request: Request) -> bool {
        let conflicts = request.modes().conflicts().0;
        self.modes_of_others(request.name(), worker) & conflicts == 0
    }

    /// Adds a request; whether it is granted.
    fn add(&mut self, worker: u32, request: Request) -> bool {
        let is_granted = self.is_free(worker, request);
        self.0.push(Entry {
            name: request.name(),
            worker,
            modes: request.modes(),
            is_granted,
        });
        is_granted
    }

    /// Whether a worker has a node already.
    fn has(&self, worker: u32, request: Request) -> bool {
        let entries = self.0.iter();
        let own = entries.filter(|entry| {
            (entry.name, entry.worker) == (request.name(), worker) && entry.is_granted
        });
        let modes = own.fold(0, |modes, entry| modes | entry.modes.0);
        request.modes().0 & !modes == 0
    }

    /// Whether a worker waits for nothing here.
    fn has_all(&self, worker: u32) -> bool {
        let mut own = self.0.iter().filter(|entry| entry.worker == worker);
        own.all(|entry| entry.is_granted)
    }

    /// Takes back all requests of a worker for a node; `granted` hears of the workers whose
    /// requests are granted because of that.
    fn remove(&mut self, worker: u32, name: u64, mut granted: impl FnMut(u32)) {
        self.0
            .retain(|entry| (entry.name, entry.worker) != (name, worker));
        let mut before = 0;
        for entry in self.0.iter_mut().filter(|entry| entry.name == name) {
            if !entry.is_granted && entry.modes.conflicts().0 & before == 0 {
                entry.is_granted = true;
                granted(entry.worker);
            }
            before |= entry.modes.0;
        }
    }
}

/// A bucket with its latch, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Bucket(Mutex<Requests>);

/// The lock table of all workers.
pub struct HierarchicalLocks {
    buckets: Box<[Bucket]>,
    signals: Signals,
}

impl HierarchicalLocks {
    /// The number of buckets as a power of two, as many as the traditional lock table has.
    const BUCKET_BITS: u32 = 15;

    /// For workers that share these core slots.
    pub fn new(core_slots: CoreSlots) -> HierarchicalLocks {
        let buckets = (0..1 << HierarchicalLocks::BUCKET_BITS).map(|_| Bucket::default());
        let buckets: Box<[Bucket]> = buckets.collect();
        for (number, bucket) in buckets.iter().enumerate() {
            let address = std::ptr::from_ref(bucket).addr();
            name_range(address, size_of::<Bucket>(), || {
                format!("lock_table.bucket[{number}]")
            });
        }
        HierarchicalLocks {
            buckets,
            signals: Signals::new(core_slots),
        }
    }

    /// Calls `body` with the bucket of a node, under its latch.
    #[inline]
    fn latched<R>(&self, name: u64, body: impl FnOnce(&mut Requests) -> R) -> R {
        let number = name >> (60 - HierarchicalLocks::BUCKET_BITS);
        let mut requests = lock(&self.buckets[number as usize].0);
        plain::reads(requests.0.as_slice());
        let result = body(&mut requests);
        plain::writes(requests.0.as_slice());
        result
    }

    /// Asks for a node, and waits until the worker has it.
    fn take(
        &self,
        worker: u32,
        request: Request,
        deadline_ns: Option<u64>,
    ) -> Result<(), AbortCause> {
        let is_granted = self.latched(request.name(), |requests| {
            let is_granted = requests.add(worker, request);
            if !is_granted {
                self.signals.clear(worker);
            }
            is_granted
        });
        if is_granted {
            return Ok(());
        }
        point("ranges.waits");
        let waited = self.signals.wait(worker, deadline_ns);
        // It may have got it at the last moment; else it is taken back with all that the attempt
        // has.
        waited.or_else(|cause| {
            let has_all = |requests: &mut Requests| requests.has_all(worker);
            match self.latched(request.name(), has_all) {
                true => Ok(()),
                false => Err(cause),
            }
        })
    }

    /// Takes a node if it is free, and notes it in `names` unless the worker has it already;
    /// whether it has it now.
    fn take_free(&self, worker: u32, request: Request, names: &mut Vec<u64>) -> bool {
        self.latched(request.name(), |requests| {
            if requests.has(worker, request) {
                return true;
            }
            let is_free = requests.is_free(worker, request);
            if is_free {
                requests.add(worker, request);
                names.push(request.name());
            }
            is_free
        })
    }

    /// Lets a node go.
    fn release(&self, worker: u32, name: u64) {
        self.latched(name, |requests| {
            requests.remove(worker, name, |other| self.signals.grant(other));
        });
    }
}

/// A worker's side of the locks. Its number is that of its transaction.
pub struct HierarchicalSide {
    locks: Arc<HierarchicalLocks>,
    worker: u32,
    deadline_ns: Option<u64>,
    /// The nodes that the attempt has asked for.
    names: Vec<u64>,
    /// What it has besides its plan.
    taken: Vec<RangeClaim>,
    /// For the nodes of one claim.
    nodes: Vec<Request>,
}

impl HierarchicalSide {
    /// The side of the worker with this number.
    pub fn new(locks: Arc<HierarchicalLocks>, worker: u32) -> HierarchicalSide {
        HierarchicalSide {
            locks,
            worker,
            deadline_ns: None,
            names: Vec::new(),
            taken: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

impl RangeManager for HierarchicalSide {
    type Naming = Hashes;
    const TAKES_PLANS: bool = true;

    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    fn take_plan(&mut self, plan: &RangePlan<Hashes>) -> Result<(), AbortCause> {
        for &request in plan.requests() {
            self.names.push(request.name());
            self.locks.take(self.worker, request, self.deadline_ns)?;
        }
        Ok(())
    }

    fn take(&mut self, claim: &RangeClaim) -> bool {
        // The last ones first: what is asked for again was most often asked for just before.
        let mut known = self.taken.iter().rev().take(64);
        if known.any(|known| known.covers(claim)) {
            return true;
        }
        nodes(claim, &mut self.nodes);
        // What is taken of the nodes before one that is not free stays until the attempt ends.
        let (locks, worker, names) = (&*self.locks, self.worker, &mut self.names);
        let mut wanted = self.nodes.iter();
        if !wanted.all(|&request| locks.take_free(worker, request, names)) {
            return false;
        }
        self.taken.push(*claim);
        true
    }

    fn release(&mut self) {
        for name in self.names.drain(..) {
            self.locks.release(self.worker, name);
        }
        self.taken.clear();
    }
}

/// The nodes that a claim asks for.
fn nodes(claim: &RangeClaim, nodes: &mut Vec<Request>) {
    nodes.clear();
    Path::default().nodes_of(&claim.widened(), |node, modes: Modes| {
        nodes.push(Request::new(Hashes::name(node), modes));
    });
    merge(nodes);
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;

    use super::*;

    fn request(name: u64, exclusive: bool) -> Request {
        Request::new(name, Modes::of(exclusive).0)
    }

    #[test]
    fn requests_are_granted_in_their_order() {
        let mut requests = Requests::default();
        assert!(requests.add(1, request(7, false)));
        assert!(requests.add(2, request(7, false)));
        assert!(!requests.add(3, request(7, true)));
        assert!(
            !requests.add(4, request(7, false)),
            "a writer waits before it"
        );
        assert!(requests.add(5, request(8, true)), "it is another node");
        assert!(!requests.is_free(1, request(7, true)));
        assert!(requests.has(1, request(7, false)) && !requests.has(1, request(7, true)));
        let mut granted = Vec::new();
        requests.remove(1, 7, |worker| granted.push(worker));
        assert_eq!(granted, []);
        requests.remove(2, 7, |worker| granted.push(worker));
        assert_eq!(granted, [3]);
        requests.remove(3, 7, |worker| granted.push(worker));
        assert_eq!(granted, [3, 4]);
        assert!(requests.has_all(4) && requests.has_all(5));
    }

    /// A worker that waits and gives up lets those through that waited for it alone.
    #[test]
    fn a_request_that_is_given_up_is_in_no_way() {
        let mut random = Random::from_seed(5);
        let mut requests = Requests::default();
        for _ in 0..10_000 {
            let worker = random.below(6) as u32;
            let name = random.below(2) as u64;
            let is_there = |requests: &Requests| {
                let mut entries = requests.0.iter();
                entries.any(|entry| entry.worker == worker)
            };
            match is_there(&requests) {
                true => [0, 1]
                    .iter()
                    .for_each(|&name| requests.remove(worker, name, |_| {})),
                false => {
                    requests.add(worker, request(name, random.below(2) == 0));
                }
            }
            // Granted is who is in the way of none before, and no other.
            for (at, entry) in requests.0.iter().enumerate() {
                let before = requests.0[..at].iter().filter(|one| one.name == entry.name);
                let modes = before.fold(0, |modes, one| modes | one.modes.0);
                assert_eq!(entry.is_granted, entry.modes.conflicts().0 & modes == 0);
            }
        }
    }
}
