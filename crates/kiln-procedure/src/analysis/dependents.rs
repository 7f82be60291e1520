//! Which steps of a program run again when what one of its operations gave has changed (healing
//! §4.2.2).
//!
//! The paper walks its dependency graph from the operation whose record has changed. Here the walk
//! is made once, over steps: an operation depends on another one through the computations,
//! conditions and rows between the two, and these run again as well. Two sets come of it:
//!
//! - the steps that have *changed*: those that were named, and all that take something from one
//!   that has changed: by a value, by a key, by what decides whether they run, or through a column
//!   that the procedure itself writes;
//! - the steps that *run*: these, and those that bring back what the first take and the frame has
//!   lost. What is written once, outside of a loop around both, is still in its register when the
//!   program has ended; a variable that is assigned twice, or in a loop, is not.
//!
//! # What is in neither
//!
//! Every other step would do what it has done, so that its registers, its writes and its rows stay.
//! The frame is then as a run of the whole program would have left it, which the next restoration
//! relies on: of what several steps write, all of them run or none does.
//!
//! # Coarse on purpose
//!
//! A register has changed when any step that writes it has: where the program may have got to in
//! between is not asked. A column of a table has changed when any operation that writes it has, of
//! whatever record. Scans run anew as a whole, and operations that write run again only as changed
//! ones.

use std::collections::BTreeMap;

use kiln_storage::schema::{ColumnId, TableId};

use crate::ir::*;
use crate::names::{Use, step_blocks, step_record, step_registers};
use crate::procedure::Procedure;

/// What one step may write and another one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    Register(Reg),
    Record(RecordReg),
    Buffer(BufferId),
    /// The rows that the program emits.
    Results,
    Notices,
    /// A column of a table's rows, as the attempt sees them.
    Column(TableId, ColumnId),
    /// Which rows a table has under which keys, as the attempt sees it.
    Keys(TableId),
}

/// A step, by its number in the order of the program: each before the steps of its own blocks.
struct Node<'p> {
    step: &'p Step,
    parent: Option<usize>,
    /// The number behind the last step in its blocks.
    end: usize,
    /// For an EXIT or CONTINUE: the number of the loop that it leaves an iteration of.
    target: Option<usize>,
    uses: Vec<(Resource, Use)>,
}

/// The steps that use a resource.
#[derive(Default)]
struct Users {
    writers: Vec<usize>,
    readers: Vec<usize>,
}

/// The steps of a program and what they have to do with each other.
pub(crate) struct Steps<'p> {
    nodes: Vec<Node<'p>>,
    users: BTreeMap<Resource, Users>,
    returns: Vec<usize>,
}

/// What a walk has found: a flag for each step.
pub(crate) struct Dependents {
    /// Whether it runs again.
    pub runs: Vec<bool>,
    /// Whether it may give, or do, something else than it did.
    pub has_changed: Vec<bool>,
}

/// A step with a body that may run more than once.
fn is_loop(step: &Step) -> bool {
    matches!(
        step,
        Step::Loop { .. }
            | Step::ForRange { .. }
            | Step::ForEach { .. }
            | Step::ForBuffer { .. }
            | Step::Scan { .. }
            | Step::Protect { .. }
    )
}

/// For each block of a step, whether an EXIT in it leaves the step.
fn iterations(step: &Step) -> [bool; 2] {
    match step {
        Step::Loop { .. } => [false, true],
        step => [is_loop(step); 2],
    }
}

/// What a step uses, apart from what the steps in its blocks do.
fn uses(procedure: &Procedure, step: &Step) -> Vec<(Resource, Use)> {
    let mut uses = Vec::new();
    step_registers(step, &mut |register, usage| {
        uses.push((Resource::Register(*register), usage));
    });
    if let Some((record, usage)) = step_record(step) {
        uses.push((Resource::Record(record), usage));
    }
    let table_of = |table: TableRef| &procedure.tables[table.0 as usize];
    let keys = |table| Resource::Keys(table_of(table).id());
    let column = |table, column| Resource::Column(table_of(table).id(), column);
    match step {
        Step::BufferClear { buffer }
        | Step::BufferFill { buffer, .. }
        | Step::BufferPush { buffer, .. } => {
            uses.push((Resource::Buffer(*buffer), Use::Write));
        }
        Step::BufferPushDistinct { buffer, .. } | Step::BufferSort { buffer, .. } => {
            uses.push((Resource::Buffer(*buffer), Use::Read));
            uses.push((Resource::Buffer(*buffer), Use::Write));
        }
        Step::BufferCount { buffer, .. }
        | Step::BufferRow { buffer, .. }
        | Step::ForBuffer { buffer, .. } => {
            uses.push((Resource::Buffer(*buffer), Use::Read));
        }
        Step::Emit { .. } => uses.push((Resource::Results, Use::Write)),
        Step::Notice { .. } | Step::Notify { .. } => {
            uses.push((Resource::Notices, Use::Write));
        }
        Step::Lookup { table, .. } | Step::Scan { table, .. } => {
            uses.push((keys(*table), Use::Read));
        }
        Step::Read { table, columns, .. } => {
            uses.extend((columns.iter()).map(|(of, _)| (column(*table, *of), Use::Read)));
        }
        Step::Update { table, columns, .. } => {
            let is_key = |of: &ColumnId| table_of(*table).indexed_columns().contains(*of);
            if columns.iter().any(|(of, _)| is_key(of)) {
                uses.push((keys(*table), Use::Write));
            }
            uses.extend((columns.iter()).map(|(of, _)| (column(*table, *of), Use::Write)));
        }
        Step::Insert {
            table, conflict, ..
        } => {
            if conflict.is_some() {
                uses.push((keys(*table), Use::Read));
            }
            uses.extend(writes_all(procedure, *table));
        }
        Step::Delete { table, .. } => uses.extend(writes_all(procedure, *table)),
        // Registers and records, which are there already.
        Step::Scalar(_)
        | Step::If { .. }
        | Step::Loop { .. }
        | Step::ForRange { .. }
        | Step::ForEach { .. }
        | Step::Exit { .. }
        | Step::Continue { .. }
        | Step::Return
        | Step::Raise { .. }
        // A program with regions runs again as a whole.
        | Step::Protect { .. }
        | Step::NoteUndo { .. }
        | Step::Diagnose { .. }
        | Step::RaiseAgain { .. }
        | Step::Prefetch { .. }
        | Step::SaveRecord { .. }
        | Step::RestoreRecord { .. } => {}
    }
    uses
}

/// What an operation uses that brings or removes a whole row.
fn writes_all(procedure: &Procedure, table: TableRef) -> impl Iterator<Item = (Resource, Use)> {
    let table = &procedure.tables[table.0 as usize];
    let id = table.id();
    let columns = (0..table.schema().columns.len() as u16).map(ColumnId);
    let columns = columns.map(move |column| (Resource::Column(id, column), Use::Write));
    columns.chain([(Resource::Keys(id), Use::Write)])
}

/// Whether what a step computes may not reach its register: lowered together with the jump that it
/// decides, it does not.
fn is_condition(step: &Step) -> bool {
    use Instruction as I;
    matches!(
        step,
        Step::Scalar(I::Compare { .. } | I::IsNull { .. } | I::Not { .. } | I::AnyNull { .. })
    )
}

/// Whether a step writes rows of tables.
fn is_change(step: &Step) -> bool {
    matches!(
        step,
        Step::Update { .. } | Step::Insert { .. } | Step::Delete { .. }
    )
}

impl<'p> Steps<'p> {
    /// The steps of a verified program.
    pub fn of(procedure: &'p Procedure) -> Steps<'p> {
        let mut steps = Steps {
            nodes: Vec::new(),
            users: BTreeMap::new(),
            returns: Vec::new(),
        };
        steps.add(procedure, &procedure.body, None, &mut Vec::new());
        steps
    }

    fn add(
        &mut self,
        procedure: &'p Procedure,
        block: &'p [Step],
        parent: Option<usize>,
        loops: &mut Vec<usize>,
    ) {
        for step in block {
            let number = self.nodes.len();
            let target = match step {
                Step::Exit { depth } | Step::Continue { depth } => {
                    Some(loops[loops.len() - 1 - *depth as usize])
                }
                _ => None,
            };
            let uses = uses(procedure, step);
            for &(resource, usage) in &uses {
                let users = self.users.entry(resource).or_default();
                let users = match usage {
                    Use::Read => &mut users.readers,
                    Use::Write => &mut users.writers,
                };
                if users.last() != Some(&number) {
                    users.push(number);
                }
            }
            if matches!(step, Step::Return) {
                self.returns.push(number);
            }
            self.nodes.push(Node {
                step,
                parent,
                end: number + 1,
                target,
                uses,
            });
            for (block, is_iteration) in step_blocks(step).into_iter().zip(iterations(step)) {
                if is_iteration {
                    loops.push(number);
                }
                self.add(procedure, block, Some(number), loops);
                if is_iteration {
                    loops.pop();
                }
            }
            self.nodes[number].end = self.nodes.len();
        }
    }

    /// The steps in order, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'p Step)> {
        self.nodes.iter().map(|node| node.step).enumerate()
    }

    /// The number of the step that many steps before this one in its block.
    pub fn before(&self, step: usize, count: usize) -> usize {
        let is_beside = |other: &usize| self.nodes[*other].parent == self.nodes[step].parent;
        let mut beside = (0..=step).rev().filter(is_beside);
        beside.nth(count).expect("as many steps come before")
    }

    /// The step and those around it, from the inside.
    fn around(&self, step: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(step), |step| self.nodes[*step].parent)
    }

    /// Whether some loop has both in its iterations; a loop counts as being in its own.
    fn share_loop(&self, one: usize, other: usize) -> bool {
        self.around(one).any(|around| {
            let node = &self.nodes[around];
            is_loop(node.step) && (around..node.end).contains(&other)
        })
    }

    /// Whether `second` may run after `first`.
    fn may_follow(&self, first: usize, second: usize) -> bool {
        first < second || self.share_loop(first, second)
    }

    /// Whether what `reader` took of a resource may not be what is there at the end of the program.
    fn is_lost(&self, resource: Resource, reader: usize) -> bool {
        let writers = &self.users[&resource].writers;
        match resource {
            Resource::Register(_) | Resource::Record(_) => {
                writers.len() > 1
                    || writers.iter().any(|writer| {
                        is_condition(self.nodes[*writer].step) || self.share_loop(*writer, reader)
                    })
            }
            _ => true,
        }
    }

    /// What runs again when the steps with these numbers give something else.
    pub fn dependents(&self, changed: &[usize]) -> Dependents {
        let mut walk = Walk {
            steps: self,
            found: Dependents {
                runs: vec![false; self.nodes.len()],
                has_changed: vec![false; self.nodes.len()],
            },
            run: Vec::new(),
            changed: Vec::new(),
        };
        for step in changed {
            walk.changes(*step);
        }
        walk.go_on();
        walk.found
    }
}

/// A walk along the dependencies.
struct Walk<'s, 'p> {
    steps: &'s Steps<'p>,
    found: Dependents,
    /// Steps whose part in the walk is still to come.
    run: Vec<usize>,
    changed: Vec<usize>,
}

impl Walk<'_, '_> {
    fn runs(&mut self, step: usize) {
        if !std::mem::replace(&mut self.found.runs[step], true) {
            self.run.push(step);
        }
    }

    fn changes(&mut self, step: usize) {
        if !std::mem::replace(&mut self.found.has_changed[step], true) {
            self.changed.push(step);
            self.runs(step);
        }
    }

    fn go_on(&mut self) {
        loop {
            if let Some(step) = self.changed.pop() {
                self.follow(step);
            } else if let Some(step) = self.run.pop() {
                self.prepare(step);
            } else {
                return;
            }
        }
    }

    /// Marks what depends on a step that has changed: all that takes something from it has changed.
    fn follow(&mut self, step: usize) {
        let steps = self.steps;
        let node = &steps.nodes[step];
        for (resource, usage) in &node.uses {
            if *usage == Use::Write {
                for reader in &steps.users[resource].readers {
                    if steps.may_follow(step, *reader) {
                        self.changes(*reader);
                    }
                }
            }
        }
        // Whether and how often what is in its blocks runs.
        for inner in step + 1..node.end {
            self.changes(inner);
        }
        if let Some(target) = node.target {
            self.changes(target);
        }
        if matches!(node.step, Step::Return) {
            for later in 0..steps.nodes.len() {
                if steps.may_follow(step, later) {
                    self.changes(later);
                }
            }
        }
    }

    /// Marks what a step that runs needs: what it takes is there when it does, and what it decides
    /// is decided.
    fn prepare(&mut self, step: usize) {
        let steps = self.steps;
        let node = &steps.nodes[step];
        let differs = match node.step {
            // No arguments: a clock, or random numbers.
            Step::Scalar(Instruction::Call { arguments, .. }) => arguments.is_empty(),
            // What lies around the program.
            Step::Scalar(Instruction::Consult { .. }) | Step::BufferFill { .. } => true,
            Step::Scan { .. } => true,
            other => is_change(other),
        };
        if differs {
            self.changes(step);
        }
        for &(resource, usage) in &node.uses {
            if usage == Use::Write || steps.is_lost(resource, step) {
                for writer in &steps.users[&resource].writers {
                    self.runs(*writer);
                }
            }
        }
        if let Some(parent) = node.parent {
            self.runs(parent);
        }
        if is_loop(node.step) {
            for inner in step + 1..node.end {
                if steps.nodes[inner].target == Some(step) {
                    self.runs(inner);
                }
            }
        }
        for at in &steps.returns {
            if steps.may_follow(*at, step) {
                self.runs(*at);
            }
        }
    }
}
