//! Real time: a transaction that was over before another began comes before it.

use crate::attempts::Attempts;
use crate::entries::Auxiliary;
use crate::graph::{Edge, Reason, Sink};

/// Adds the edges of real time: one chain of auxiliary nodes, one for each end of a transaction in
/// order of time. A transaction leads to its own node, the nodes lead forward, and the last one
/// before a transaction began leads to it.
pub(crate) fn add<S: Sink>(attempts: &Attempts<'_>, auxiliary: &mut Auxiliary, sink: &mut S) {
    let transactions = || (0..attempts.all.len() as u32).filter(|n| attempts.get(*n).counts());
    let mut ends: Vec<(u64, u32)> = transactions()
        .map(|number| (attempts.get(number).responded.0, number))
        .collect();
    ends.sort_unstable();
    let first = auxiliary.take(ends.len());
    for (position, (_, attempt)) in ends.iter().enumerate() {
        let node = first + position as u32;
        sink.edge(Edge {
            from: *attempt,
            to: node,
            reason: Reason::RealTime,
        });
        if position > 0 {
            sink.edge(Edge {
                from: node - 1,
                to: node,
                reason: Reason::Rest,
            });
        }
    }
    for attempt in transactions() {
        let invoked = attempts.get(attempt).invoked.0;
        let before = ends.partition_point(|(end, _)| *end < invoked);
        if before > 0 {
            sink.edge(Edge {
                from: first + before as u32 - 1,
                to: attempt,
                reason: Reason::Rest,
            });
        }
    }
}
