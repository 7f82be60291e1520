//! Entries that came and went while a range was read that did not meet them. The reader comes
//! before the addition or after the removal, and nothing recorded says which. Such a choice is no
//! edge of the graph, but a history is serializable only if each choice can be made so that no
//! cycle arises.
//!
//! An order of the graph's nodes is kept in which all edges go forward. Whatever choice it fulfils
//! needs nothing, and it fulfils nearly all, as it follows the times at which transactions ended.
//! Of the others:
//!
//! - If a path leads from the addition to the reader, the reader must come after the removal; if
//!   one leads from the reader to the removal, it must come before the addition. That is an edge,
//!   and the order is changed so that it goes forward. If both lead there, there is a cycle either
//!   way.
//! - If no path decides, one side is tried and, if that leads to a contradiction, the other.
//!
//! A contradiction that no other choice avoids is a violation. The search follows a limited number
//! of edges; a history for which they do not suffice is not accused.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use kiln_history::IndexId;

use crate::graph::{Edge, Graph, Kind, Reason};

/// A reader that comes before one transaction or after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) reader: u32,
    pub(crate) added: u32,
    pub(crate) removed: u32,
    /// What was added and removed.
    pub(crate) object: u32,
    pub(crate) index: IndexId,
}

/// The memory that a choice takes, with where its nodes name it.
pub(crate) const BYTES_PER_CHOICE: usize = 2 * size_of::<Choice>() + 3 * 8;

impl Choice {
    fn edge(&self, is_before: bool) -> Edge {
        let (from, to, kind) = match is_before {
            true => (self.reader, self.added, Kind::RangeReadWrite),
            false => (self.removed, self.reader, Kind::RangeWriteRead),
        };
        let index = self.index;
        let reason = Reason::Range { kind, index };
        Edge { from, to, reason }
    }
}

/// What became of all choices.
#[derive(Debug)]
pub(crate) enum Decision {
    /// They can be made together.
    Consistent,
    /// The search was given up.
    Open,
    /// They cannot: these edges, which follow from some of them, close cycles whichever side of the
    /// last one is taken.
    Contradiction { last: Choice, edges: Vec<Edge> },
}

/// Edges that are looked at before a search is given up.
const BUDGET: u64 = 50_000_000;

/// Makes choices about a graph without cycles. `ended` is when each transaction was over; the nodes
/// behind them are auxiliary.
pub(crate) fn decide(graph: &Graph, ended: &[u64], choices: &[Choice]) -> Decision {
    if choices.is_empty() {
        return Decision::Consistent;
    }
    let Some(order) = Arrangement::new(graph, ended) else {
        return Decision::Open;
    };
    let mut of_node: Vec<(u32, u32)> = Vec::with_capacity(3 * choices.len());
    for (number, choice) in choices.iter().enumerate() {
        let nodes = [choice.reader, choice.added, choice.removed];
        of_node.extend(nodes.map(|node| (node, number as u32)));
    }
    of_node.sort_unstable();
    let mut search = Search {
        order,
        choices,
        of_node,
        waiting: Vec::new(),
        free: Vec::new(),
        trail: Vec::new(),
    };
    search.run().unwrap_or(Decision::Open)
}

/// An order of all nodes in which the edges go forward.
struct Arrangement<'a> {
    graph: &'a Graph,
    nodes: Vec<u32>,
    places: Vec<u32>,
    /// Edges that were added.
    more: HashMap<u32, Vec<u32>>,
    /// The search that met each node last.
    met: Vec<u32>,
    searches: u32,
    stack: Vec<u32>,
    budget: u64,
}

/// The search was given up.
struct GivenUp;

impl<'a> Arrangement<'a> {
    /// Transactions as early as they ended, as far as the edges allow it. None if there is a cycle.
    fn new(graph: &'a Graph, ended: &[u64]) -> Option<Arrangement<'a>> {
        let count = graph.nodes();
        let mut incoming = vec![0_u32; count];
        for node in 0..count as u32 {
            for next in graph.successors(node) {
                incoming[*next as usize] += 1;
            }
        }
        let mut nodes = Vec::with_capacity(count);
        let mut places = vec![0; count];
        let mut transactions = BinaryHeap::new();
        let mut auxiliary = Vec::new();
        let ready = |node: u32,
                     auxiliary: &mut Vec<u32>,
                     transactions: &mut BinaryHeap<Reverse<(u64, u32)>>| {
            match ended.get(node as usize) {
                Some(ended) => transactions.push(Reverse((*ended, node))),
                None => auxiliary.push(node),
            }
        };
        for node in 0..count as u32 {
            if incoming[node as usize] == 0 {
                ready(node, &mut auxiliary, &mut transactions);
            }
        }
        loop {
            let first = |transactions: &mut BinaryHeap<Reverse<(u64, u32)>>| {
                transactions.pop().map(|Reverse((_, node))| node)
            };
            let Some(node) = auxiliary.pop().or_else(|| first(&mut transactions)) else {
                break;
            };
            places[node as usize] = nodes.len() as u32;
            nodes.push(node);
            for next in graph.successors(node) {
                incoming[*next as usize] -= 1;
                if incoming[*next as usize] == 0 {
                    ready(*next, &mut auxiliary, &mut transactions);
                }
            }
        }
        (nodes.len() == count).then(|| Arrangement {
            graph,
            nodes,
            places,
            more: HashMap::new(),
            met: vec![0; count],
            searches: 0,
            stack: Vec::new(),
            budget: BUDGET,
        })
    }

    fn is_before(&self, first: u32, second: u32) -> bool {
        self.places[first as usize] < self.places[second as usize]
    }

    /// Marks the nodes that a path leads to from one node, no later than another; says whether the
    /// other is one of them.
    fn reaches(&mut self, from: u32, to: u32) -> Result<bool, GivenUp> {
        let last = self.places[to as usize];
        self.searches += 1;
        self.stack.clear();
        self.stack.push(from);
        self.met[from as usize] = self.searches;
        while let Some(node) = self.stack.pop() {
            let more = self.more.get(&node).map_or(&[][..], Vec::as_slice);
            for next in self.graph.successors(node).iter().chain(more) {
                self.budget = self.budget.checked_sub(1).ok_or(GivenUp)?;
                if *next == to {
                    return Ok(true);
                }
                let met = &mut self.met[*next as usize];
                if *met != self.searches && self.places[*next as usize] < last {
                    *met = self.searches;
                    self.stack.push(*next);
                }
            }
        }
        Ok(false)
    }

    /// Adds an edge that closes no cycle, and calls `moved` for the nodes that are later now.
    fn add(&mut self, from: u32, to: u32, mut moved: impl FnMut(u32)) -> Result<(), GivenUp> {
        self.more.entry(from).or_default().push(to);
        if self.is_before(from, to) {
            return Ok(());
        }
        let is_cycle = self.reaches(to, from)?;
        debug_assert!(!is_cycle, "the caller has looked");
        let (first, last) = (self.places[to as usize], self.places[from as usize]);
        let span = first as usize..last as usize + 1;
        self.budget = self.budget.checked_sub(span.len() as u64).ok_or(GivenUp)?;
        // What the second leads to goes behind the first; each part keeps its order.
        let (met, searches) = (&self.met, self.searches);
        let is_later = |node: &u32| met[*node as usize] == searches;
        let part = &mut self.nodes[span.clone()];
        let later: Vec<u32> = part.iter().copied().filter(is_later).collect();
        let earlier: Vec<u32> = part
            .iter()
            .copied()
            .filter(|node| !is_later(node))
            .collect();
        let (begin, end) = part.split_at_mut(earlier.len());
        begin.copy_from_slice(&earlier);
        end.copy_from_slice(&later);
        for place in span {
            self.places[self.nodes[place] as usize] = place as u32;
        }
        later.into_iter().for_each(&mut moved);
        Ok(())
    }

    /// Takes the edge back that was added last from a node. The order remains one.
    fn take_back(&mut self, from: u32) {
        self.more.entry(from).or_default().pop();
    }
}

struct Search<'a> {
    order: Arrangement<'a>,
    choices: &'a [Choice],
    /// The choices that name each node.
    of_node: Vec<(u32, u32)>,
    /// Choices to be looked at.
    waiting: Vec<u32>,
    /// Those that no path decided.
    free: Vec<u32>,
    /// The sides taken, and whether the other one was possible when it was taken.
    trail: Vec<(u32, bool, bool)>,
}

impl Search<'_> {
    fn run(&mut self) -> Result<Decision, GivenUp> {
        self.waiting.extend(0..self.choices.len() as u32);
        loop {
            // What is certain comes first.
            let (number, is_free) = match (self.waiting.pop(), &mut self.free) {
                (Some(number), _) => (number, false),
                (None, free) => match free.pop() {
                    Some(number) => (number, true),
                    None => return Ok(Decision::Consistent),
                },
            };
            let choice = self.choices[number as usize];
            let order = &mut self.order;
            if order.is_before(choice.reader, choice.added)
                || order.is_before(choice.removed, choice.reader)
            {
                continue;
            }
            let before = !order.reaches(choice.added, choice.reader)?;
            let after = !order.reaches(choice.reader, choice.removed)?;
            match (before, after) {
                (true, true) if is_free => self.take(number, false, true)?,
                (true, true) => self.free.push(number),
                (false, false) if !self.turn()? => {
                    return Ok(self.contradiction(choice));
                }
                (false, false) => {}
                (before, _) => self.take(number, before, false)?,
            }
        }
    }

    /// Takes a side of a choice.
    fn take(&mut self, number: u32, is_before: bool, has_other: bool) -> Result<(), GivenUp> {
        self.trail.push((number, is_before, has_other));
        let edge = self.choices[number as usize].edge(is_before);
        let (of_node, waiting) = (&self.of_node, &mut self.waiting);
        self.order.add(edge.from, edge.to, |node| {
            let first = of_node.partition_point(|(of, _)| *of < node);
            let of = of_node[first..].iter().take_while(|(of, _)| *of == node);
            waiting.extend(of.map(|(_, number)| *number));
        })
    }

    /// Takes the other side of the last choice that had one. Returns whether there was one.
    fn turn(&mut self) -> Result<bool, GivenUp> {
        let Some(last) = self.trail.iter().rposition(|(.., has_other)| *has_other) else {
            return Ok(false);
        };
        let undone = self.trail.split_off(last);
        for (number, is_before, _) in undone.iter().rev() {
            let edge = self.choices[*number as usize].edge(*is_before);
            self.order.take_back(edge.from);
        }
        self.free.clear();
        self.waiting.clear();
        self.waiting.extend(0..self.choices.len() as u32);
        let looked_at = self.choices.len() as u64;
        let left = self.order.budget.checked_sub(looked_at);
        self.order.budget = left.ok_or(GivenUp)?;
        let (number, is_before, _) = undone[0];
        self.take(number, !is_before, false)?;
        Ok(true)
    }

    fn contradiction(&self, last: Choice) -> Decision {
        let taken = self.trail.iter().map(|(number, is_before, _)| {
            let choice = &self.choices[*number as usize];
            choice.edge(*is_before)
        });
        let edges = taken.chain([last.edge(true), last.edge(false)]).collect();
        Decision::Contradiction { last, edges }
    }
}
