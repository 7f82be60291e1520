//! The serialization graph: its edges, and the sets of nodes that lie on cycles.

use std::collections::VecDeque;

use kiln_history::IndexId;

use crate::budget::Budget;
use crate::violation::KEPT_MAX;

/// The column that stands for whether an object exists; column `c` of a table is `c + 1`.
pub(crate) const EXISTENCE: u32 = 0;

/// The attempt of a version that was there before the history began.
pub(crate) const NOBODY: u32 = u32::MAX;

/// What makes one transaction come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The other replaced its version.
    WriteWrite,
    /// The other read its version.
    WriteRead,
    /// The other replaced the version that it read.
    ReadWrite,
    /// The other read a range without the entry that it removed, or with the one that it added.
    RangeWriteRead,
    /// The other added an entry to the range that it had read, or removed one from it.
    RangeReadWrite,
    /// It was over before the other began.
    RealTime,
    /// From or between auxiliary nodes: the rest of a step that another kind began.
    Rest,
}

impl Kind {
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// An edge with its reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) reason: Reason,
}

/// Why an edge is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    Item {
        kind: Kind,
        object: u32,
        column: u32,
        /// The version that `from` wrote or read, and the one that `to` read or wrote.
        versions: (u64, u64),
    },
    Range {
        kind: Kind,
        index: IndexId,
    },
    RealTime,
    Rest,
}

impl Reason {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Reason::Item { kind, .. } | Reason::Range { kind, .. } => *kind,
            Reason::RealTime => Kind::RealTime,
            Reason::Rest => Kind::Rest,
        }
    }
}

/// Takes the edges as they are found. If there is a cycle they are found twice: first bare, then
/// those within the cycles with their reasons. So the reasons of the others need no memory.
pub(crate) trait Sink {
    fn edge(&mut self, edge: Edge);
}

/// Edges without their reasons, in pieces, so that growing copies nothing.
pub(crate) struct BareEdges<'a> {
    pieces: Vec<Vec<(u32, u32)>>,
    last: Option<(u32, u32)>,
    /// What the pieces' memory is taken from.
    budget: Option<&'a Budget>,
}

/// The memory that an edge takes while the graph is made of it: in a piece and as a target.
pub(crate) const BYTES_PER_EDGE: usize = 12;

/// The memory that a node takes: where its edges begin, its component, and what finds it.
pub(crate) const BYTES_PER_NODE: usize = 32;

/// The most edges within components whose reasons are gathered.
pub(crate) const EXPLAINED_MAX: usize = 4_000_000;

/// Edges of one piece.
const PIECE: usize = 1 << 16;

impl Sink for BareEdges<'_> {
    #[inline]
    fn edge(&mut self, edge: Edge) {
        let pair = (edge.from, edge.to);
        // Columns of one row mostly have the same reader and writer.
        if self.last == Some(pair) {
            return;
        }
        self.last = Some(pair);
        match self.pieces.last_mut() {
            Some(piece) if piece.len() < PIECE => piece.push(pair),
            _ => {
                let mut budget = self.budget.iter();
                if !budget.all(|budget| budget.take(PIECE, BYTES_PER_EDGE)) {
                    return;
                }
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(pair);
                self.pieces.push(piece);
            }
        }
    }
}

impl<'a> BareEdges<'a> {
    pub(crate) fn new(budget: Option<&'a Budget>) -> BareEdges<'a> {
        BareEdges {
            pieces: Vec::new(),
            last: None,
            budget,
        }
    }

    pub(crate) fn append(&mut self, mut other: BareEdges<'_>) {
        self.pieces.append(&mut other.pieces);
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }
}

/// Edges within some sets of nodes, with their reasons.
pub(crate) struct DetailedEdges<'a> {
    /// The set of each node; 0 for those in none.
    pub(crate) sets: &'a [u32],
    pub(crate) edges: Vec<Edge>,
}

impl Sink for DetailedEdges<'_> {
    fn edge(&mut self, edge: Edge) {
        let set = |node: u32| self.sets[node as usize];
        if set(edge.from) != 0 && set(edge.from) == set(edge.to) {
            self.edges.push(edge);
        }
    }
}

/// A graph as the successors of each node.
pub(crate) struct Graph {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

/// The largest number of edges.
pub(crate) const EDGES_MAX: usize = u32::MAX as usize;

impl Graph {
    /// The graph of so many nodes; each edge is in it once. `None` if there are too many edges.
    pub(crate) fn new(nodes: usize, edges: BareEdges<'_>) -> Option<Graph> {
        if edges.len() >= EDGES_MAX {
            return None;
        }
        let mut starts = vec![0_u32; nodes + 2];
        for (from, _) in edges.pieces.iter().flatten() {
            starts[*from as usize + 2] += 1;
        }
        for node in 2..starts.len() {
            starts[node] += starts[node - 1];
        }
        // While it is filled, `starts[n + 1]` is where the next edge of node n goes.
        let mut targets = vec![0; edges.len()];
        for (from, to) in edges.pieces.into_iter().flatten() {
            let next = &mut starts[from as usize + 1];
            targets[*next as usize] = to;
            *next += 1;
        }
        starts.pop();
        let mut graph = Graph { starts, targets };
        graph.remove_duplicates();
        Some(graph)
    }

    fn remove_duplicates(&mut self) {
        let (mut read, mut kept) = (0, 0);
        for node in 0..self.nodes() {
            let end = self.starts[node + 1] as usize;
            self.targets[read..end].sort_unstable();
            self.starts[node] = kept as u32;
            for position in read..end {
                let target = self.targets[position];
                let is_new = position == read || self.targets[kept - 1] != target;
                if is_new {
                    self.targets[kept] = target;
                    kept += 1;
                }
            }
            read = end;
        }
        *self.starts.last_mut().expect("one more than nodes") = kept as u32;
        self.targets.truncate(kept);
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn successors(&self, node: u32) -> &[u32] {
        let (begin, end) = (self.starts[node as usize], self.starts[node as usize + 1]);
        &self.targets[begin as usize..end as usize]
    }

    /// Edges from one of the first `transactions` nodes to another.
    pub(crate) fn edges_within(&self, transactions: usize) -> u64 {
        let targets = &self.targets[..self.starts[transactions] as usize];
        let within = targets.iter().filter(|to| (**to as usize) < transactions);
        within.count() as u64
    }

    /// The strongly connected components of more than one node (Tarjan's algorithm, with a stack of
    /// its own): each cycle lies within one. Returns the number of each node's component, 0 for
    /// nodes on no cycle, and how many components there are.
    pub(crate) fn components(&self) -> (Vec<u32>, u32) {
        const UNSEEN: u32 = 0;
        /// Above every order: the node's component is complete.
        const DONE: u32 = u32::MAX;
        let nodes = self.nodes();
        // The order in which nodes were met, from 1; later the least order that is reached.
        let mut low = vec![UNSEEN; nodes];
        let mut components = vec![0_u32; nodes];
        let mut count = 0;
        let mut next_order = 1;
        let mut open: Vec<u32> = Vec::new();
        // A node, its order, and the position of its next edge.
        let mut path: Vec<(u32, u32, u32)> = Vec::new();
        for root in 0..nodes as u32 {
            if low[root as usize] != UNSEEN {
                continue;
            }
            let mut entered = Some(root);
            loop {
                if let Some(node) = entered.take() {
                    low[node as usize] = next_order;
                    path.push((node, next_order, self.starts[node as usize]));
                    open.push(node);
                    next_order += 1;
                }
                let Some((node, order, position)) = path.last_mut() else {
                    break;
                };
                if *position < self.starts[*node as usize + 1] {
                    let target = self.targets[*position as usize];
                    *position += 1;
                    match low[target as usize] {
                        UNSEEN => entered = Some(target),
                        DONE => {}
                        reached => {
                            let mine = &mut low[*node as usize];
                            *mine = reached.min(*mine);
                        }
                    }
                    continue;
                }
                let (node, order) = (*node, *order);
                path.pop();
                let reached = low[node as usize];
                if let Some((parent, ..)) = path.last() {
                    let parent = &mut low[*parent as usize];
                    *parent = reached.min(*parent);
                }
                if reached == order {
                    let alone = open.last() == Some(&node);
                    count += u32::from(!alone);
                    loop {
                        let member = open.pop().expect("the node itself is open");
                        low[member as usize] = DONE;
                        if !alone {
                            components[member as usize] = count;
                        }
                        if member == node {
                            break;
                        }
                    }
                }
            }
        }
        (components, count)
    }

    /// Where components have so many edges that their reasons do not fit: a short cycle of each of
    /// the first ones in their stead.
    pub(crate) fn narrowed(
        &self,
        components: &[u32],
        count: u32,
        transactions: u32,
        edges_max: usize,
    ) -> Option<Vec<u32>> {
        let set = |node: u32| components[node as usize];
        let nodes = || (0..self.nodes() as u32).filter(|node| set(*node) != 0);
        let inside = |node: u32| {
            let successors = self.successors(node).iter();
            successors.filter(move |next| set(**next) == set(node))
        };
        let edges: usize = nodes().map(|node| inside(node).count()).sum();
        if edges <= edges_max {
            return None;
        }
        let mut starts = vec![None; count.min(KEPT_MAX as u32) as usize];
        for node in nodes().filter(|node| *node < transactions) {
            if let Some(start) = starts.get_mut(set(node) as usize - 1) {
                start.get_or_insert(node);
            }
        }
        let mut narrowed = vec![0; components.len()];
        let mut reached = vec![u32::MAX; components.len()];
        for start in starts.into_iter().flatten() {
            let mut queue = VecDeque::from([start]);
            'search: while let Some(node) = queue.pop_front() {
                for &next in inside(node) {
                    if next == start {
                        let mut of_cycle = node;
                        while of_cycle != start {
                            narrowed[of_cycle as usize] = set(start);
                            of_cycle = reached[of_cycle as usize];
                        }
                        narrowed[start as usize] = set(start);
                        break 'search;
                    }
                    if reached[next as usize] == u32::MAX {
                        reached[next as usize] = node;
                        queue.push_back(next);
                    }
                }
            }
        }
        Some(narrowed)
    }

    /// The graph with more edges.
    pub(crate) fn with(&self, more: &[Edge]) -> Option<Graph> {
        let mut edges = BareEdges::new(None);
        let reason = Reason::Rest;
        for from in 0..self.nodes() as u32 {
            let successors = self.successors(from).iter();
            successors.for_each(|&to| edges.edge(Edge { from, to, reason }));
        }
        more.iter().for_each(|edge| edges.edge(*edge));
        Graph::new(self.nodes(), edges)
    }

    /// The graph of some edges between nodes that are numbered from 0.
    pub(crate) fn of_pairs(nodes: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Graph {
        let mut edges = BareEdges::new(None);
        for (from, to) in pairs {
            let reason = Reason::Rest;
            edges.edge(Edge { from, to, reason });
        }
        Graph::new(nodes, edges).expect("a part of a graph is smaller than the whole")
    }

    /// Whether the nodes can be put in an order in which all edges go forward; slow, for tests.
    #[cfg(test)]
    fn is_acyclic(&self) -> bool {
        let nodes = self.nodes();
        let mut incoming = vec![0; nodes];
        for target in &self.targets {
            incoming[*target as usize] += 1;
        }
        let mut ready: Vec<u32> = (0..nodes as u32)
            .filter(|node| incoming[*node as usize] == 0)
            .collect();
        let mut done = 0;
        while let Some(node) = ready.pop() {
            done += 1;
            for target in self.successors(node) {
                incoming[*target as usize] -= 1;
                if incoming[*target as usize] == 0 {
                    ready.push(*target);
                }
            }
        }
        done == nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_platform::random::Random;

    #[test]
    fn components_are_the_nodes_on_cycles() {
        let pairs = [
            (0, 1),
            (1, 2),
            (2, 0),
            (2, 3),
            (3, 4),
            (4, 5),
            (5, 4),
            (5, 6),
        ];
        let graph = Graph::of_pairs(8, pairs.into_iter());
        let (components, count) = graph.components();
        assert_eq!(count, 2);
        assert_eq!(components[0], components[1]);
        assert_eq!(components[0], components[2]);
        assert_eq!(components[4], components[5]);
        assert_ne!(components[0], components[4]);
        for alone in [3, 6, 7] {
            assert_eq!(components[alone], 0);
        }
    }

    #[test]
    fn components_of_many_edges_are_narrowed_to_a_cycle_each() {
        // A ring of five with a chord, and a pair; node 2 is on the short cycle of node 0.
        let pairs = [
            (0, 1),
            (1, 2),
            (2, 3),
            (3, 4),
            (4, 0),
            (2, 0),
            (5, 6),
            (6, 5),
            (4, 5),
        ];
        let graph = Graph::of_pairs(8, pairs.into_iter());
        let (components, count) = graph.components();
        assert_eq!(graph.narrowed(&components, count, 8, 8), None);
        let narrowed = graph
            .narrowed(&components, count, 8, 7)
            .expect("there are eight edges");
        for node in 0..8 {
            let expected = if [3, 4].contains(&node) {
                0
            } else {
                components[node]
            };
            assert_eq!(narrowed[node], expected, "{node}");
        }
    }

    #[test]
    fn components_agree_with_reachability() {
        for seed in 0..300 {
            let mut random = Random::from_seed(seed);
            let nodes = 1 + random.below(9);
            let pairs: Vec<(u32, u32)> = (0..random.below(20))
                .map(|_| (random.below(nodes) as u32, random.below(nodes) as u32))
                .filter(|(from, to)| from != to)
                .collect();
            let graph = Graph::of_pairs(nodes, pairs.iter().copied());
            let mut reaches = vec![vec![false; nodes]; nodes];
            for (from, to) in &pairs {
                reaches[*from as usize][*to as usize] = true;
            }
            for via in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        reaches[from][to] |= reaches[from][via] && reaches[via][to];
                    }
                }
            }
            let (components, count) = graph.components();
            assert_eq!(graph.is_acyclic(), count == 0, "seed {seed}");
            for from in 0..nodes {
                assert_eq!(components[from] != 0, reaches[from][from], "seed {seed}");
                for to in 0..nodes {
                    let together = components[from] != 0 && components[from] == components[to];
                    let expected = reaches[from][to] && reaches[to][from];
                    assert_eq!(together, expected, "seed {seed}: {from} {to}");
                }
            }
        }
    }

    #[test]
    fn a_long_path_needs_no_recursion() {
        let nodes = 1_000_000;
        let ring = (0..nodes).map(|node| (node, (node + 1) % nodes));
        let (components, count) = Graph::of_pairs(nodes as usize, ring).components();
        assert_eq!(count, 1);
        assert!(components.iter().all(|component| *component == 1));
    }
}
