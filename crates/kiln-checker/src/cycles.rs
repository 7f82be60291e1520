//! Cycles: a short one of the strongest class.

use std::collections::VecDeque;

use crate::graph::{Edge, Graph, Kind};
use crate::violation::CycleClass;

/// A cycle in order: each edge begins where the one before ends, the first where the last ends.
pub(crate) struct Cycle {
    pub(crate) class: CycleClass,
    pub(crate) real_time: bool,
    pub(crate) edges: Vec<Edge>,
}

/// Edges that are looked at for a class before a longer cycle is taken than there may be.
const BUDGET: u64 = 20_000_000;

/// Lengths to which cycles are looked for, one after the other.
const LENGTHS: [u32; 7] = [2, 3, 4, 6, 10, 20, u32::MAX];

const READS_AND_WRITES: u8 =
    Kind::WriteWrite.bit() | Kind::WriteRead.bit() | Kind::RangeWriteRead.bit() | Kind::Rest.bit();
const ANTI_DEPENDENCIES: u8 = Kind::ReadWrite.bit() | Kind::RangeReadWrite.bit();

/// The strongest class of the cycles in one strongly connected component, and a short cycle of it.
/// Nodes below `transactions` are transactions, the others auxiliary.
pub(crate) fn find(edges: Vec<Edge>, transactions: u32) -> Option<Cycle> {
    let component = Component::new(edges, transactions);
    for real_time in [0, Kind::RealTime.bit()] {
        let allowed = [
            Kind::WriteWrite.bit() | Kind::Rest.bit(),
            READS_AND_WRITES,
            READS_AND_WRITES | ANTI_DEPENDENCIES,
            READS_AND_WRITES | Kind::ReadWrite.bit(),
            READS_AND_WRITES | ANTI_DEPENDENCIES,
        ];
        for (position, kinds) in allowed.into_iter().enumerate() {
            let kinds = kinds | real_time;
            let found = match position {
                2 => component.with_one_anti_dependency(kinds),
                _ => component.shortest(kinds),
            };
            if let Some(edges) = found {
                let (class, real_time) = classify(&edges);
                return Some(Cycle {
                    class,
                    real_time,
                    edges,
                });
            }
        }
    }
    None
}

fn classify(edges: &[Edge]) -> (CycleClass, bool) {
    let count = |kind: Kind| edges.iter().filter(|e| e.reason.kind() == kind).count();
    let by_ranges = count(Kind::RangeReadWrite);
    let reads = count(Kind::WriteRead) + count(Kind::RangeWriteRead);
    let class = match count(Kind::ReadWrite) + by_ranges {
        0 if reads == 0 => CycleClass::G0,
        0 => CycleClass::G1c,
        1 => CycleClass::GSingle,
        _ if by_ranges == 0 => CycleClass::G2Item,
        _ => CycleClass::G2,
    };
    (class, count(Kind::RealTime) > 0)
}

/// A strongly connected component; its nodes are numbered from 0.
struct Component {
    edges: Vec<Edge>,
    /// The ends of each edge, from and to, and its kind's bit.
    ends: Vec<(u32, u32, u8)>,
    /// The first edge of each node.
    starts: Vec<u32>,
    is_transaction: Vec<bool>,
}

impl Component {
    fn new(mut edges: Vec<Edge>, transactions: u32) -> Component {
        edges.sort_by_key(|edge| (edge.from, edge.to, edge.reason.kind()));
        let mut nodes: Vec<u32> = edges.iter().map(|edge| edge.from).collect();
        nodes.dedup();
        let number = |node: u32| nodes.binary_search(&node).map(|number| number as u32);
        // Strongly connected: every node has an edge from it.
        edges.retain(|edge| number(edge.to).is_ok());
        let ends: Vec<(u32, u32, u8)> = edges
            .iter()
            .filter_map(|edge| {
                let kind = edge.reason.kind().bit();
                Some((number(edge.from).ok()?, number(edge.to).ok()?, kind))
            })
            .collect();
        let first = |node: u32| ends.partition_point(|(from, ..)| *from < node) as u32;
        let starts = (0..=nodes.len() as u32).map(first).collect();
        let is_transaction = nodes.iter().map(|node| *node < transactions).collect();
        Component {
            edges,
            ends,
            starts,
            is_transaction,
        }
    }

    /// A shortest cycle of edges of some kinds.
    fn shortest(&self, kinds: u8) -> Option<Vec<Edge>> {
        let nodes = self.is_transaction.len();
        let allowed = self.ends.iter().filter(|(.., kind)| kind & kinds != 0);
        let graph = Graph::of_pairs(nodes, allowed.map(|(from, to, _)| (*from, *to)));
        let (components, count) = graph.components();
        if count == 0 {
            return None;
        }
        let starts: Vec<(u32, u32)> = (0..nodes as u32)
            .filter(|node| components[*node as usize] != 0 && self.is_transaction[*node as usize])
            .map(|node| (node, node))
            .collect();
        let mut search = Search::new(self, kinds, &components);
        let found = search.shortest_of(&starts, |_| 0);
        let found = found.or_else(|| {
            // The budget was too small for the shortest: any will do.
            search.budget = u64::MAX;
            let (from, to) = starts[0];
            search.path(from, to, 0, u32::MAX)
        });
        let path = found.expect("the node is on a cycle");
        Some(path.iter().map(|edge| self.edges[*edge as usize]).collect())
    }

    /// A shortest cycle with exactly one anti-dependency.
    fn with_one_anti_dependency(&self, kinds: u8) -> Option<Vec<Edge>> {
        let anti: Vec<u32> = (0..self.ends.len() as u32)
            .filter(|edge| self.ends[*edge as usize].2 & ANTI_DEPENDENCIES != 0)
            .collect();
        let pairs: Vec<(u32, u32)> = anti
            .iter()
            .map(|edge| {
                let (from, to, _) = self.ends[*edge as usize];
                (to, from)
            })
            .collect();
        let everywhere = vec![1; self.is_transaction.len()];
        let mut search = Search::new(self, kinds & !ANTI_DEPENDENCIES, &everywhere);
        let entered = |node: u32| u32::from(self.is_transaction[node as usize]);
        let path = search.shortest_of(&pairs, entered)?;
        // The path leads back to where an anti-dependency begins.
        let begin = match path.first() {
            Some(first) => self.ends[*first as usize].0,
            None => return None,
        };
        let end = self.ends[*path.last()? as usize].1;
        let closing = anti.iter().find(|edge| {
            let (from, to, _) = self.ends[**edge as usize];
            (from, to) == (end, begin)
        })?;
        let all = std::iter::once(closing).chain(&path);
        Some(all.map(|edge| self.edges[*edge as usize]).collect())
    }
}

/// A search for short paths; entering a transaction counts one, entering an auxiliary node nothing.
struct Search<'a> {
    component: &'a Component,
    kinds: u8,
    /// Paths stay within one of these.
    sets: &'a [u32],
    budget: u64,
    /// The search that reached each node last, how far it was, and by which edge it was reached.
    reached: Vec<(u32, u32, u32)>,
    searches: u32,
    queue: VecDeque<(u32, u32)>,
}

impl<'a> Search<'a> {
    fn new(component: &'a Component, kinds: u8, sets: &'a [u32]) -> Search<'a> {
        Search {
            component,
            kinds,
            sets,
            budget: BUDGET,
            reached: vec![(0, 0, 0); component.is_transaction.len()],
            searches: 0,
            queue: VecDeque::new(),
        }
    }

    /// The shortest of the paths between some pairs, as edges; `start` is what a pair's first node
    /// counts.
    fn shortest_of(
        &mut self,
        pairs: &[(u32, u32)],
        start: impl Fn(u32) -> u32,
    ) -> Option<Vec<u32>> {
        let mut best: Option<Vec<u32>> = None;
        for mut length in LENGTHS {
            for (from, to) in pairs {
                if let Some((path, found)) = self.measured(*from, *to, start(*from), length) {
                    best = Some(path);
                    length = found - 1;
                }
            }
            if best.is_some() || self.budget == 0 {
                break;
            }
        }
        best
    }

    fn path(&mut self, from: u32, to: u32, start: u32, length: u32) -> Option<Vec<u32>> {
        self.measured(from, to, start, length).map(|(path, _)| path)
    }

    /// A shortest path of at most this length, and its length.
    fn measured(&mut self, from: u32, to: u32, start: u32, length: u32) -> Option<(Vec<u32>, u32)> {
        self.searches += 1;
        self.queue.clear();
        self.queue.push_back((from, start));
        self.reached[from as usize] = (self.searches, start, u32::MAX);
        while let Some((node, distance)) = self.queue.pop_front() {
            if self.reached[node as usize].1 < distance {
                continue;
            }
            let component = self.component;
            let edges = component.starts[node as usize]..component.starts[node as usize + 1];
            for edge in edges {
                if self.budget == 0 {
                    return None;
                }
                self.budget -= 1;
                let (_, next, kind) = component.ends[edge as usize];
                if kind & self.kinds == 0 || self.sets[next as usize] != self.sets[node as usize] {
                    continue;
                }
                let step = u32::from(component.is_transaction[next as usize]);
                let there = distance + step;
                if there > length {
                    continue;
                }
                if next == to {
                    return Some((self.back(edge, from), there));
                }
                let (search, before, _) = self.reached[next as usize];
                if search == self.searches && before <= there {
                    continue;
                }
                self.reached[next as usize] = (self.searches, there, edge);
                match step {
                    0 => self.queue.push_front((next, there)),
                    _ => self.queue.push_back((next, there)),
                }
            }
        }
        None
    }

    /// The edges of the path that ends with `last`.
    fn back(&self, last: u32, from: u32) -> Vec<u32> {
        let mut path = vec![last];
        loop {
            let (node, ..) = self.component.ends[path[path.len() - 1] as usize];
            if node == from {
                break;
            }
            path.push(self.reached[node as usize].2);
        }
        path.reverse();
        path
    }
}
