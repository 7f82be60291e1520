//! The counters of the nodes of the prefix hierarchy (VLL §2.7): `vllr`.
//!
//! Memory is bounded: a fixed number of nodes, each with the counters of all prefixes that its
//! number is a hash of. Two prefixes may share one, and then their transactions may wait for each
//! other in vain. That hardly matters for intentions, which are in the way of no transaction that
//! has one as well; so leaves and the nodes above them have nodes of their own.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;

use super::{OwnRanges, QueueSide, RangeLedger};
use crate::access::range_locking::RangeLocking;
use crate::canary::Canary;
use crate::schedule::vll::{Analysis, Ledger, VllState};
use crate::shared::positions::Positions;
use crate::shared::ranges::nodes::{Modes, Node, Path};
use crate::shared::ranges::plan::{Naming, Request, merge};
use crate::shared::ranges::{RangeClaim, RangePlan};

/// Leaves as a power of two: a megabyte of counters.
const LEAF_BITS: u32 = 16;
/// Nodes above leaves as a power of two.
const INNER_BITS: u32 = 14;
const NODES: usize = (1 << LEAF_BITS) + (1 << INNER_BITS);

/// Four counters of 16 bits, one for each mode: Cx, Cs, Ix, Is. A transaction counts once in each,
/// or twice with what it took unplanned, and there are not that many in flight.
#[derive(Clone, Copy, Default)]
struct Counts(u64);

impl Counts {
    /// One in each of the modes.
    #[inline(always)]
    const fn one(modes: Modes) -> u64 {
        let modes = modes.0 as u64;
        modes & 1 | (modes & 2) << 15 | (modes & 4) << 30 | (modes & 8) << 45
    }

    /// Whether a request is counted in one of the modes.
    #[inline(always)]
    const fn has(self, modes: Modes) -> bool {
        self.0 & (Counts::one(modes) * 0xffff) != 0
    }
}

/// A node. Changed under the queue's latch alone; atomics so that the machine model sees who
/// touches it.
#[derive(Default)]
struct Counted {
    /// All requests.
    all: AtomicU64,
    /// Of these, what was taken unplanned: it is in no plan.
    taken: AtomicU64,
}

/// What a word counts. Relaxed, as all uses: the latch orders them.
#[inline(always)]
fn counts(word: &AtomicU64) -> Counts {
    Counts(word.load(Ordering::Relaxed))
}

#[inline(always)]
fn add(word: &AtomicU64, one: u64) {
    word.store(counts(word).0 + one, Ordering::Relaxed);
}

#[inline(always)]
fn subtract(word: &AtomicU64, one: u64) {
    word.store(counts(word).0 - one, Ordering::Relaxed);
}

/// The counters, in their place under the queue's latch.
pub struct PrefixCounters {
    nodes: Box<[Counted]>,
}

impl Default for PrefixCounters {
    fn default() -> PrefixCounters {
        PrefixCounters {
            nodes: (0..NODES).map(|_| Counted::default()).collect(),
        }
    }
}

/// Nodes are known by their numbers.
pub struct Numbers;

impl Naming for Numbers {
    const BY_NODES: bool = true;

    #[inline(always)]
    fn name(node: Node) -> u64 {
        match node.is_leaf {
            true => node.hash >> (64 - LEAF_BITS),
            false => (1 << LEAF_BITS) + (node.hash >> (64 - INNER_BITS)),
        }
    }
}

/// Which modes of which nodes the transactions scanned so far want: the four bit arrays of the
/// contention analysis (D_X, D_S, and two for intentions), by node. 80 kB together.
pub struct NodeModes {
    modes: Box<[u8]>,
    /// The nodes whose modes are not 0.
    dirty: Vec<u32>,
}

impl Ledger for PrefixCounters {
    type Access = RangeLocking<QueueSide<PrefixCounters>>;
    type Analysis = NodeModes;

    const TAKES_BACK: bool = true;

    fn held(txn: u32) -> u32 {
        txn
    }

    fn access(shared: &Arc<VllState<Self>>, participant: Participant) -> Self::Access {
        let side = QueueSide::new(shared.clone(), participant.slot() as u32);
        RangeLocking::new(participant, side)
    }

    /// All are compared before any is counted: a transaction is not in its own way.
    #[inline]
    fn request(&mut self, _: u32, demand: &RangePlan<Numbers>) -> bool {
        let mut is_free = true;
        for request in demand.requests() {
            let all = &self.nodes[request.name() as usize].all;
            let before = counts(all);
            is_free &= !before.has(request.modes().conflicts());
            all.store(before.0 + Counts::one(request.modes()), Ordering::Relaxed);
        }
        is_free
    }

    #[inline]
    fn withdraw(&mut self, demand: &RangePlan<Numbers>) {
        for request in demand.requests() {
            let counted = &self.nodes[request.name() as usize];
            subtract(&counted.all, Counts::one(request.modes()));
        }
    }

    #[inline]
    fn is_left_to(&self, demand: &RangePlan<Numbers>) -> bool {
        let mut requests = demand.requests().iter();
        requests.all(|request| {
            let counted = &self.nodes[request.name() as usize];
            !counts(&counted.taken).has(request.modes().conflicts())
        })
    }
}

impl Analysis<RangePlan<Numbers>> for NodeModes {
    /// The requests of a plan are their own positions.
    type Marks = ();

    fn new() -> NodeModes {
        NodeModes {
            modes: vec![0; NODES].into(),
            dirty: Vec::new(),
        }
    }

    fn add(&mut self, demand: &RangePlan<Numbers>, (): &mut ()) -> bool {
        let mut is_clear = true;
        for request in demand.requests() {
            let modes = &mut self.modes[request.name() as usize];
            is_clear &= *modes & request.modes().conflicts().0 == 0;
            *modes |= match Canary::ScaIntentionsIgnored.sings() {
                true => request.modes().0 & 3,
                false => request.modes().0,
            };
            self.dirty.push(request.name() as u32);
        }
        is_clear
    }

    fn clear(&mut self) {
        for node in self.dirty.drain(..) {
            self.modes[node as usize] = 0;
        }
    }

    fn forget((): &mut ()) {}
}

/// What an attempt has of the nodes.
#[derive(Default)]
pub struct Own {
    /// By its plan, in the order of the nodes.
    planned: Vec<Request>,
    /// Besides.
    taken: TakenNodes,
    /// For the nodes of one claim.
    wanted: Vec<Request>,
}

impl Own {
    /// The modes in which the attempt has a node by its plan.
    #[inline]
    fn planned_modes_of(requests: &[Request], name: u64) -> Modes {
        match requests.binary_search_by_key(&name, |request| request.name()) {
            Ok(at) => requests[at].modes(),
            Err(_) => Modes(0),
        }
    }
}

/// Nodes with the modes in which they were taken, each once.
#[derive(Default)]
struct TakenNodes {
    requests: Vec<Request>,
    by_name: Positions,
}

impl TakenNodes {
    fn find(&self, name: u64) -> Option<usize> {
        let (len, hash) = (self.requests.len(), || Self::hash(name));
        let mut candidates = self.by_name.candidates(len, hash);
        candidates.find(|position| self.requests[*position].name() == name)
    }

    fn hash(name: u64) -> u64 {
        name.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn modes_of(&self, name: u64) -> Modes {
        let found = self.find(name);
        found.map_or(Modes(0), |position| self.requests[position].modes())
    }

    fn add(&mut self, request: Request) {
        if let Some(position) = self.find(request.name()) {
            let modes = self.requests[position].modes().0 | request.modes().0;
            self.requests[position] = Request::new(request.name(), Modes(modes));
            return;
        }
        self.requests.push(request);
        let requests = &self.requests;
        self.by_name.append(requests.len(), |position| {
            Some(Self::hash(requests[position].name()))
        });
    }

    fn take_all(&mut self) -> std::vec::Drain<'_, Request> {
        self.by_name.clear();
        self.requests.drain(..)
    }
}

impl OwnRanges<Numbers> for Own {
    fn hold(&mut self, plan: &RangePlan<Numbers>) {
        debug_assert!(self.taken.requests.is_empty());
        self.planned.clear();
        self.planned.extend_from_slice(plan.requests());
    }

    fn wants(&mut self, claim: &RangeClaim) -> bool {
        let wanted = &mut self.wanted;
        wanted.clear();
        Path::default().nodes_of(&claim.widened(), |node, modes| {
            wanted.push(Request::new(Numbers::name(node), modes));
        });
        merge(wanted);
        let (planned, taken) = (&self.planned, &self.taken);
        // An attempt that has the node, whatever it has it for, needs it no second time.
        wanted.retain_mut(|request| {
            let name = request.name();
            let own = Own::planned_modes_of(planned, name).0 | taken.modes_of(name).0;
            *request = Request::new(name, Modes(request.modes().0 & !own));
            request.modes() != Modes(0)
        });
        !wanted.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.taken.requests.is_empty()
    }

    fn forget(&mut self) {
        self.planned.clear();
    }
}

impl RangeLedger for PrefixCounters {
    type Own = Own;
    type Naming = Numbers;

    fn take(&mut self, own: &mut Own, _: u32, _: &RangeClaim) -> bool {
        for request in &own.wanted {
            let name = request.name();
            let all = counts(&self.nodes[name as usize].all);
            let planned = Counts::one(Own::planned_modes_of(&own.planned, name));
            let taken = Counts::one(own.taken.modes_of(name));
            let others = Counts(all.0 - planned - taken);
            if others.has(request.modes().conflicts()) {
                return false;
            }
        }
        for request in &own.wanted {
            let counted = &self.nodes[request.name() as usize];
            let one = Counts::one(request.modes());
            add(&counted.all, one);
            add(&counted.taken, one);
        }
        own.wanted
            .iter()
            .for_each(|request| own.taken.add(*request));
        true
    }

    fn release(&mut self, own: &mut Own, _: u32) {
        for request in own.taken.take_all() {
            let counted = &self.nodes[request.name() as usize];
            let one = Counts::one(request.modes());
            subtract(&counted.all, one);
            subtract(&counted.taken, one);
        }
    }
}
