//! The ranges that a transaction asks for.

use std::cmp::Reverse;
use std::marker::PhantomData;

use kiln_platform::plain;

use super::claim::RangeClaim;
use super::nodes::{Modes, Node, Path};
use crate::shared::planning::Demand;

/// How a kind of locks names the nodes that it has.
pub trait Naming: Send + Sync + 'static {
    /// Whether ranges are locked by nodes; else by their first and last points.
    const BY_NODES: bool;

    /// The name of a node, below 2 to the power of 60: two nodes may have the same.
    fn name(node: Node) -> u64;
}

/// A node by its name, and the modes in which it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request(u64);

impl Request {
    /// The node with this name.
    #[inline(always)]
    pub fn new(name: u64, modes: Modes) -> Request {
        Request(name << 4 | u64::from(modes.0))
    }

    /// The node's name.
    #[inline(always)]
    pub fn name(self) -> u64 {
        self.0 >> 4
    }

    /// The modes.
    #[inline(always)]
    pub fn modes(self) -> Modes {
        Modes((self.0 & 15) as u8)
    }
}

/// Sorts requests by their names, and makes those of the same name one.
pub fn merge(requests: &mut Vec<Request>) {
    requests.sort_unstable();
    requests.dedup_by(|later, earlier| {
        let is_same = later.name() == earlier.name();
        if is_same {
            earlier.0 |= later.0;
        }
        is_same
    });
}

/// The ranges that a transaction asks for: in the order of their first keys, none within another.
/// Its memory is used again.
#[derive(Debug)]
pub struct RangePlan<N> {
    claims: Vec<RangeClaim>,
    /// By claim: the greatest last key of its space up to it.
    reach: Vec<u128>,
    requests: Vec<Request>,
    is_arranged: bool,
    naming: PhantomData<fn() -> N>,
}

impl<N> Default for RangePlan<N> {
    fn default() -> RangePlan<N> {
        RangePlan {
            claims: Vec::new(),
            reach: Vec::new(),
            requests: Vec::new(),
            is_arranged: true,
            naming: PhantomData,
        }
    }
}

impl<N: Naming> RangePlan<N> {
    /// A plan has no more claims than this; what goes beyond is met unplanned.
    pub const CLAIMS_MAX: usize = 1 << 17;
    /// Memory for more claims than this is given back.
    const CLAIMS_KEPT: usize = 1 << 11;

    /// The claims.
    #[inline(always)]
    pub fn claims(&self) -> &[RangeClaim] {
        debug_assert!(self.is_arranged);
        &self.claims
    }

    /// The nodes that the claims ask for, in the order of their names, each once; none where ranges
    /// are not locked by nodes.
    #[inline(always)]
    pub fn requests(&self) -> &[Request] {
        debug_assert!(self.is_arranged);
        &self.requests
    }

    /// Whether one of the claims covers `wanted`.
    #[inline]
    pub fn covers(&self, wanted: &RangeClaim) -> bool {
        debug_assert!(self.is_arranged);
        let place = (wanted.space, wanted.first);
        let end = (self.claims).partition_point(|claim| (claim.space, claim.first) <= place);
        for (claim, reach) in self.claims[..end].iter().zip(&self.reach).rev() {
            if claim.space != wanted.space || *reach < wanted.last {
                return false;
            }
            if claim.covers(wanted) {
                return true;
            }
        }
        false
    }

    /// Takes over what another plan asks for.
    #[inline]
    pub fn copy_from(&mut self, other: &RangePlan<N>) {
        debug_assert!(other.is_arranged);
        Demand::clear(self);
        self.claims.extend_from_slice(&other.claims);
        self.reach.extend_from_slice(&other.reach);
        self.requests.extend_from_slice(&other.requests);
        self.is_arranged = true;
    }
}

impl<N: Naming> Demand for RangePlan<N> {
    type Claim = RangeClaim;

    fn clear(&mut self) {
        if self.claims.capacity() > RangePlan::<N>::CLAIMS_KEPT {
            *self = RangePlan::default();
        }
        self.claims.clear();
        self.reach.clear();
        self.requests.clear();
        self.is_arranged = true;
    }

    #[inline]
    fn claim(&mut self, claim: RangeClaim) -> bool {
        if self.claims.len() >= RangePlan::<N>::CLAIMS_MAX {
            return false;
        }
        self.claims.push(match N::BY_NODES {
            true => claim.widened(),
            false => claim,
        });
        self.is_arranged = false;
        true
    }

    #[inline(always)]
    fn note_reads(&self) {
        plain::reads(self.claims.as_slice());
        plain::reads(self.reach.as_slice());
        plain::reads(self.requests.as_slice());
    }

    #[inline(always)]
    fn note_writes(&self) {
        plain::writes(self.claims.as_slice());
        plain::writes(self.reach.as_slice());
        plain::writes(self.requests.as_slice());
    }

    fn arrange(&mut self) {
        if self.is_arranged {
            return;
        }
        self.is_arranged = true;
        let by_place = |claim: &RangeClaim| {
            let mode = !claim.exclusive;
            (claim.space, claim.first, Reverse(claim.last), mode)
        };
        self.claims.sort_unstable_by_key(by_place);
        // The one before that reaches furthest covers what any before covers, but for its mode.
        let mut furthest: Option<RangeClaim> = None;
        self.claims.retain(|claim| {
            if furthest.is_some_and(|before| before.covers(claim)) {
                return false;
            }
            if furthest
                .is_none_or(|before| before.space != claim.space || before.last <= claim.last)
            {
                furthest = Some(*claim);
            }
            true
        });
        self.reach.clear();
        let mut reach = (u64::MAX, 0);
        for claim in &self.claims {
            let before = match reach.0 == claim.space {
                true => reach.1,
                false => 0,
            };
            reach = (claim.space, claim.last.max(before));
            self.reach.push(reach.1);
        }
        self.requests.clear();
        if N::BY_NODES {
            let (requests, mut path) = (&mut self.requests, Path::default());
            for claim in &self.claims {
                path.nodes_of(claim, |node, modes| {
                    requests.push(Request::new(N::name(node), modes));
                });
            }
            merge(requests);
        }
    }
}
