//! The judge: whether a history is serializable, and if not, why.
//!
//! It builds Adya's direct serialization graph (*Weak Consistency*, MIT 1999) from what
//! transactions recorded. An edge says that one transaction replaced another's version of a column,
//! read another's version, or read a version that another replaced; ranges of indexes and the
//! entries in them have the same edges. For strict serializability a transaction that ended before
//! another began comes before it, too. Nothing about the order of versions is guessed, so the
//! history is serializable if, and as far as the events tell only if, the graph has no cycle.
//! Besides, every value read must be the one that its version has.
//!
//! ```
//! use kiln_checker::{Options, check};
//! use kiln_history::{Cell, Clock, History, Log, Object, Version, WriteKind};
//!
//! // One transaction reads a row and replaces it.
//! let clock = Clock::new();
//! let mut log = Log::new(clock.clone(), 1 << 20);
//! log.begin(0, clock.now());
//! log.read(Object(8), Version(1), [Cell { column: 1, print: 10 }].into_iter());
//! log.write(Object(8), WriteKind::Update, [Cell { column: 1, print: 20 }].into_iter());
//! log.install(Object(8), Version(1), Version(2));
//! log.commit();
//! let history = History {
//!     logs: vec![log.take_words()],
//!     ..History::default()
//! };
//! let report = check(&history, &Options::default()).unwrap();
//! assert!(report.is_serializable());
//! assert_eq!(report.transactions, 1);
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `attempts` | the attempts of all logs, and whether the logs could have been recorded |
//! | `accesses` | reads, writes and installations by object; changes of entries by index |
//! | `items` | dependencies by objects; values against versions |
//! | `budget` | the memory that judging may take |
//! | `ranges`, `entries`, `nodes` | dependencies by ranges |
//! | `choices` | what ranges leave open |
//! | `real_time` | the order of real time |
//! | `graph`, `cycles` | components, and short cycles of the strongest class |
//! | `explain`, `values`, `names` | what was found, in words |

mod accesses;
mod attempts;
mod budget;
mod choices;
mod cycles;
mod entries;
mod explain;
mod graph;
mod items;
mod names;
mod nodes;
mod ranges;
mod real_time;
mod values;
mod violation;

use std::fmt;

use kiln_history::History;
use kiln_platform::thread;

use crate::accesses::{ACCESSES_MAX, Access, Accesses};
use crate::attempts::{Attempts, Ending};
use crate::budget::Budget;
use crate::choices::{Choice, Decision};
use crate::entries::Auxiliary;
use crate::graph::{BYTES_PER_NODE, BareEdges, DetailedEdges, EXPLAINED_MAX, Edge, Graph, Sink};
use crate::items::{Finding, Sweep};
use crate::names::Names;
use crate::ranges::Ranges;
use crate::violation::Violations;

pub use attempts::HistoryError;
pub use violation::{Anomaly, CycleClass, Violation};

/// Which order a protocol promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Some serial order.
    Serializable,
    /// A serial order in which a transaction that ended before another began comes first.
    #[default]
    Strict,
}

/// How a history is judged.
#[derive(Clone, Debug)]
pub struct Options {
    /// The order that was promised.
    pub order: Order,
    /// Threads that judge; at least one.
    pub threads: usize,
    /// The memory in bytes that judging may take, apart from the logs; a history that takes more is
    /// refused.
    pub memory_bytes: u64,
}

/// How far the judge is: the part that is done, from 0 to 1.
pub type Watch<'a> = dyn FnMut(f64) + 'a;

impl Default for Options {
    fn default() -> Options {
        Options {
            order: Order::default(),
            threads: thread::available_cores().clamp(1, 8),
            memory_bytes: 2 << 30,
        }
    }
}

/// What the judge found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The order that was asked for.
    pub order: Order,
    /// Transactions: committed ones, and rejected ones as readers.
    pub transactions: u64,
    /// The rejected ones among them.
    pub rejected: u64,
    /// Attempts that were repeated.
    pub aborted: u64,
    /// Events.
    pub events: u64,
    /// Dependencies between transactions, those of real time apart, each pair counted once.
    pub edges: u64,
    /// Whether it was left open if the choices can be made that ranges leave: the search took too
    /// long.
    pub is_open: bool,
    /// What is wrong: the first violations of each kind of rule.
    pub violations: Vec<Violation>,
    /// How many violations there are in all; cycles count once for each set of transactions that
    /// depend on each other.
    pub violations_count: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_serializable(&self) -> bool {
        self.violations_count == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let property = match self.order {
            Order::Serializable => "serializable",
            Order::Strict => "strictly serializable",
        };
        let (transactions, edges) = (self.transactions, self.edges);
        if self.is_serializable() {
            write!(
                formatter,
                "{property}: yes ({transactions} transactions, {edges} edges)"
            )?;
            return match self.is_open {
                true => formatter.write_str(
                    "\nNot decided: on which side of entries that came and went some ranges are.",
                ),
                false => Ok(()),
            };
        }
        let plural = if self.violations_count == 1 { "" } else { "s" };
        write!(
            formatter,
            "{property}: no ({} violation{plural} in {transactions} transactions, {edges} edges)",
            self.violations_count
        )?;
        for violation in &self.violations {
            write!(formatter, "\n\n{violation}")?;
        }
        Ok(())
    }
}

/// Judges a history.
///
/// # Errors
/// Why it is no history, or too large.
pub fn check(history: &History, options: &Options) -> Result<Report, HistoryError> {
    check_watched(history, options, &mut |_| {})
}

/// Judges a history, and tells `watch` now and then how far it is.
///
/// # Errors
/// Why it is no history, or too large.
pub fn check_watched(
    history: &History,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Report, HistoryError> {
    let budget = &Budget::new(options.memory_bytes);
    let mut attempts = Attempts::of(history)?;
    let sequence = std::mem::take(&mut attempts.sequence);
    let attempts = attempts;
    let total: u64 = attempts
        .accesses
        .iter()
        .map(|count| u64::from(*count))
        .sum();
    if total > ACCESSES_MAX {
        return Err(HistoryError::TooLarge("there are more than 2^32 accesses"));
    }
    budget.take(total as usize, accesses::BYTES_PER_ACCESS);
    budget.take(attempts.all.capacity(), size_of::<attempts::Attempt>());
    budget.take(attempts.objects.len(), attempts::BYTES_PER_OBJECT);
    budget.take(history.objects.len(), 48);
    budget.check()?;
    watch(0.1);
    let names = Names::new(&attempts);
    let search = Search {
        attempts: &attempts,
        names: &names,
        options,
        budget,
    };
    let mut found = Found::default();
    let accesses = Accesses::of(&attempts, sequence, &names, &mut found.violations);
    let sink = || BareEdges::new(Some(budget));
    let (edges, nodes) = edges(&search, accesses, sink, &mut found, watch);
    let mut violations = std::mem::take(&mut found.violations);
    budget.take(nodes as usize, BYTES_PER_NODE);
    budget.check()?;
    watch(0.8);
    let mut bare = BareEdges::new(None);
    for part in edges {
        bare.append(part);
    }
    values::report(&attempts, &names, &found.findings, &mut violations);
    violations.count += found.count - found.findings.len() as u64;

    let too_many = HistoryError::TooLarge("there are more than 2^32 edges");
    let mut graph = Graph::new(nodes as usize, bare).ok_or(too_many.clone())?;
    let edges = graph.edges_within(attempts.all.len());
    let (mut components, mut count) = graph.components();
    let mut decision = Decision::Consistent;
    if count == 0 {
        let ended: Vec<u64> = attempts.all.iter().map(|a| a.responded.0).collect();
        decision = choices::decide(&graph, &ended, &found.choices);
    }
    let mut forced = &[][..];
    if let Decision::Contradiction { edges, .. } = &decision {
        forced = edges;
        graph = graph.with(forced).ok_or(too_many)?;
        (components, count) = graph.components();
    }
    let transactions = attempts.all.len() as u32;
    if let Some(sets) = graph.narrowed(&components, count, transactions, EXPLAINED_MAX) {
        components = sets;
    }
    drop(graph);
    let mut cycles = Violations::default();
    if count > 0 {
        let sets = (&*components, count);
        report_cycles(history, options, &names, sets, forced, &mut cycles)?;
        cycles.count = u64::from(count);
    }
    if let (Decision::Contradiction { last, .. }, Some(cycle)) =
        (&decision, cycles.kept.first_mut())
    {
        cycle.lines.push(explain::choice(&names, last));
    }

    let ended = |ending: Ending| attempts.all.iter().filter(|a| a.ending == ending).count() as u64;
    let rejected = ended(Ending::Rejected);
    // The strongest cycle comes first, and what individual reads and writes show follows.
    cycles.kept.sort_by_key(|violation| violation.anomaly);
    cycles.kept.append(&mut violations.kept);
    Ok(Report {
        order: options.order,
        transactions: ended(Ending::Committed) + rejected,
        rejected,
        aborted: ended(Ending::Aborted),
        events: attempts.events,
        edges,
        is_open: matches!(decision, Decision::Open),
        violations: cycles.kept,
        violations_count: cycles.count + violations.count,
    })
}

/// What the search for edges looks at.
struct Search<'s, 'a> {
    attempts: &'s Attempts<'a>,
    names: &'s Names<'s>,
    options: &'s Options,
    budget: &'s Budget,
}

/// What it finds apart from edges.
#[derive(Default)]
struct Found {
    /// Findings of all threads.
    findings: Vec<Finding>,
    count: u64,
    choices: Vec<Choice>,
    violations: Violations,
}

/// Finds all edges, and returns them with the number of nodes. The same history gives auxiliary
/// nodes the same numbers.
fn edges<'a, S: Sink + Send>(
    search: &Search<'_, 'a>,
    accesses: Accesses<'a>,
    sink: impl Fn() -> S + Sync,
    found: &mut Found,
    watch: &mut Watch<'_>,
) -> (Vec<S>, u32) {
    let Search {
        attempts,
        names,
        options,
        budget,
    } = *search;
    let Accesses {
        mut all,
        spans,
        entries,
        passing,
    } = accesses;
    let mut sinks = Vec::new();
    for sweep in sweep(&mut all, &spans, attempts, options.threads, &sink) {
        found.findings.extend(sweep.findings);
        found.count += sweep.findings_count;
        sinks.push(sweep.sink);
    }
    budget.give(all.len(), accesses::BYTES_PER_ACCESS);
    drop((all, spans));
    watch(0.4);
    let mut auxiliary = Auxiliary {
        next: attempts.all.len() as u32,
    };
    let mut others = sink();
    let changes: usize = entries.values().map(Vec::len).sum();
    if budget.take(changes, ranges::BYTES_PER_CHANGE) {
        let mut ranges = Ranges::new(entries, passing);
        let places = (&mut auxiliary, &mut others, &mut found.violations);
        found.choices = ranges.add(attempts, names, budget, places, &mut |part| {
            watch(0.4 + 0.4 * part);
        });
        budget.give(changes, ranges::BYTES_PER_CHANGE);
    }
    if options.order == Order::Strict {
        real_time::add(attempts, &mut auxiliary, &mut others);
    }
    sinks.push(others);
    (sinks, auxiliary.next)
}

/// Goes through all objects, by several threads.
fn sweep<'a, 'b, S: Sink + Send>(
    mut accesses: &mut [Access],
    spans: &[(u32, u32)],
    attempts: &'b Attempts<'a>,
    threads: usize,
    sink: &(impl Fn() -> S + Sync),
) -> Vec<Sweep<'b, S>>
where
    'a: 'b,
{
    // Objects of one thread follow each other, and have a fair share of the accesses.
    let share = accesses.len().div_ceil(threads.max(1)).max(1);
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut offset = 0;
    while begin < spans.len() {
        let full = spans[begin..].partition_point(|(first, _)| (*first as usize) < offset + share);
        let end = begin + full.max(1);
        let upto = spans
            .get(end)
            .map_or(offset + accesses.len(), |(first, _)| *first as usize);
        let (part, rest) = std::mem::take(&mut accesses).split_at_mut(upto - offset);
        parts.push((begin..end, offset, part));
        (accesses, begin, offset) = (rest, end, upto);
    }
    let work = |(objects, offset, part): (std::ops::Range<usize>, usize, &mut [Access])| {
        let mut sweep = Sweep::new(attempts, sink());
        let within = |(begin, end): (u32, u32)| begin as usize - offset..end as usize - offset;
        for object in objects.clone() {
            // The first few accesses of objects to come; hot objects keep the memory busy anyway.
            let ahead = |distance: usize| match object + distance {
                later if later < objects.end => part[within(spans[later])].iter().take(8),
                _ => [].iter().take(0),
            };
            ahead(16).for_each(|access| attempts.prefetch(access.attempt()));
            ahead(8).for_each(|access| {
                attempts.prefetch_event(access.attempt(), access.position);
            });
            sweep.object(object as u32, &mut part[within(spans[object])]);
        }
        sweep
    };
    if threads <= 1 {
        return parts.into_iter().map(work).collect();
    }
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = parts
            .into_iter()
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Sweep<'b, S>>| match worker.join() {
            Ok(sweep) => sweep,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.into_iter().map(join).collect()
    })
}

/// Reports a cycle of each component, of the first ones if there are many.
fn report_cycles(
    history: &History,
    options: &Options,
    names: &Names<'_>,
    (components, count): (&[u32], u32),
    forced: &[Edge],
    cycles: &mut Violations,
) -> Result<(), HistoryError> {
    // All edges once more, with their reasons, but only those within components.
    let mut attempts = Attempts::of(history)?;
    let sequence = std::mem::take(&mut attempts.sequence);
    let mut ignored = Found::default();
    let accesses = Accesses::of(&attempts, sequence, names, &mut ignored.violations);
    let search = Search {
        attempts: &attempts,
        names,
        options,
        // There is room for what `Graph::narrowed` has left.
        budget: &Budget::new(u64::MAX),
    };
    let sink = || DetailedEdges {
        sets: components,
        edges: Vec::new(),
    };
    let (sinks, _) = edges(&search, accesses, sink, &mut ignored, &mut |_| {});
    let mut by_component: Vec<Vec<Edge>> = (0..count).map(|_| Vec::new()).collect();
    let edges = sinks.into_iter().flat_map(|sink| sink.edges);
    for edge in edges.chain(forced.iter().copied()) {
        let component = components[edge.from as usize];
        if component != 0 && component == components[edge.to as usize] {
            by_component[component as usize - 1].push(edge);
        }
    }
    let transactions = attempts.all.len() as u32;
    by_component.sort_by_key(Vec::len);
    for edges in by_component.into_iter().take(violation::KEPT_MAX) {
        let Some(cycle) = cycles::find(edges, transactions) else {
            continue;
        };
        let anomaly = Anomaly::Cycle {
            class: cycle.class,
            real_time: cycle.real_time,
        };
        cycles.add(anomaly, || explain::cycle(&attempts, names, &cycle.edges));
    }
    Ok(())
}
