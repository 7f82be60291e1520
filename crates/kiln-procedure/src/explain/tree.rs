//! The operations as a tree of nodes, with PostgreSQL's names where it has them.

use super::listing::{Listing, has_operations, whole_footprint};
use crate::analysis::Footprint;
use crate::ir::*;
use crate::names::{for_each_step, step_blocks, step_operation};
use crate::program::Program;

/// A node of a plan: what it is, and what it takes its rows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What is known of it, by PostgreSQL's names of properties where it has them; `Node Type` is
    /// the first.
    pub properties: Vec<(&'static str, Property)>,
    /// The nodes below.
    pub plans: Vec<Node>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// A text.
    Text(String),
    /// A number, as it is written.
    Number(String),
    /// Yes or no.
    Flag(bool),
    /// Names.
    Names(Vec<String>),
}

/// The operations of a program as a tree, and what is known of the program as a whole.
///
/// A look-up is an `Index Scan`, and a scan of all of a table a `Seq Scan`; what is done for each
/// row of a scan stands beside it below a `Nested Loop`. INSERT, UPDATE and DELETE are
/// `ModifyTable`. Columns that are read stand with what finds their row. Nodes that depend on a
/// condition say it as `Condition`.
pub fn tree(program: &Program) -> (Node, Vec<(&'static str, Property)>) {
    let builder = Builder {
        listing: Listing::new(program),
    };
    let mut plans = builder.block(&program.body);
    let root = match plans.len() {
        1 => plans.remove(0),
        _ => Node::of("Result", plans),
    };
    let facts = vec![
        ("Program", Property::Text(program.name.clone())),
        ("Footprint", Property::Text(whole_footprint(program))),
        ("Read Only", Property::Flag(program.analysis.is_read_only())),
    ];
    (root, facts)
}

impl Node {
    fn of(node_type: &str, plans: Vec<Node>) -> Node {
        let properties = vec![("Node Type", Property::Text(node_type.to_owned()))];
        Node { properties, plans }
    }

    fn with(mut self, name: &'static str, value: &str) -> Node {
        let value = Property::Text(value.to_owned());
        self.properties.push((name, value));
        self
    }

    /// Adds to what the nodes below are to this one.
    fn related(mut self, first: &str, others: &str) -> Node {
        for (position, plan) in self.plans.iter_mut().enumerate() {
            let relationship = if position == 0 { first } else { others };
            let relationship = Property::Text(relationship.to_owned());
            (plan.properties).insert(1, ("Parent Relationship", relationship));
        }
        self
    }
}

struct Builder<'a> {
    listing: Listing<'a>,
}

impl Builder<'_> {
    fn block(&self, block: &[Step]) -> Vec<Node> {
        block.iter().flat_map(|step| self.step(step)).collect()
    }

    fn step(&self, step: &Step) -> Vec<Node> {
        if let Some(op) = step_operation(step) {
            return self.operation(op, step).into_iter().collect();
        }
        if !has_operations(std::slice::from_ref(step)) {
            return Vec::new();
        }
        match step {
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.listing.terms.of(*condition);
                let mut plans = self.conditional(then, &condition);
                plans.extend(self.conditional(otherwise, &format!("NOT ({condition})")));
                plans
            }
            Step::BufferFill { rows, .. } => {
                vec![Node::of("Function Scan", Vec::new()).with("Function Name", rows.name())]
            }
            Step::Protect { .. } => vec![self.repeated("Protected Region", "Catches", step)],
            _ => vec![self.repeated("Loop", "Over", step)],
        }
    }

    /// Steps that run under a condition.
    fn conditional(&self, block: &[Step], condition: &str) -> Vec<Node> {
        let plans = self.block(block).into_iter();
        plans
            .map(|plan| match plan.properties.last() {
                Some(("Condition", _)) => Node::of("Result", vec![plan]).related("Outer", "Outer"),
                _ => plan,
            })
            .map(|plan| plan.with("Condition", condition))
            .collect()
    }

    /// Steps with a body.
    fn repeated(&self, node_type: &str, heading: &'static str, step: &Step) -> Node {
        let blocks = step_blocks(step).into_iter();
        let plans = blocks.flat_map(|block| self.block(block)).collect();
        let node = Node::of(node_type, plans).related("Outer", "Inner");
        node.with(heading, &self.listing.heading(step))
    }

    /// `None` for a read, which stands with what finds its row.
    fn operation(&self, op: OpId, step: &Step) -> Option<Node> {
        match step {
            Step::Lookup { index, intent, .. } => {
                let node = self.finding("Index Scan", op, step, Some(*index));
                Some(for_write(node, *intent))
            }
            Step::Scan {
                index,
                range,
                reverse,
                intent,
                body,
                ..
            } => {
                let is_all = range.prefix.is_empty()
                    && range.lower.is_none()
                    && range.upper.is_none()
                    && *index == 0;
                let node = match is_all {
                    true => self.finding("Seq Scan", op, step, None),
                    false => self.finding("Index Scan", op, step, Some(*index)),
                };
                let direction = if *reverse { "Backward" } else { "Forward" };
                let node = for_write(node.with("Scan Direction", direction), *intent);
                let mut below = self.block(body);
                if below.is_empty() {
                    return Some(node);
                }
                below.insert(0, node);
                Some(Node::of("Nested Loop", below).related("Outer", "Inner"))
            }
            Step::Update { .. } => Some(self.change("Update", op)),
            Step::Insert { .. } => Some(self.change("Insert", op)),
            Step::Delete { .. } => Some(self.change("Delete", op)),
            _ => None,
        }
    }

    /// A node that finds rows, by an index if they are not all rows.
    fn finding(&self, node_type: &str, op: OpId, step: &Step, index: Option<u16>) -> Node {
        let (program, table) = (self.listing.program, self.table(op));
        let mut node = Node::of(node_type, Vec::new());
        if let Some(index) = index {
            node = node.with("Index Name", &self.listing.index(table, index).name);
        }
        node = node.with("Relation Name", self.relation(op));
        if index.is_some() {
            node = node.with("Index Cond", &self.listing.key(step, op));
        }
        let mut read = Vec::new();
        for_each_step(&program.body, &mut |step| {
            let Step::Read {
                op: by, columns, ..
            } = step
            else {
                return;
            };
            if program.analysis.operation(*by).found_by.contains(&op) {
                for (column, _) in columns {
                    let name = self
                        .listing
                        .terms
                        .column(table, column.index())
                        .into_owned();
                    if !read.contains(&name) {
                        read.push(name);
                    }
                }
            }
        });
        if !read.is_empty() {
            node.properties
                .push(("Columns Read", Property::Names(read)));
        }
        self.facts(node, op)
    }

    fn change(&self, operation: &str, op: OpId) -> Node {
        let facts = self.listing.program.analysis.operation(op);
        let node = Node::of("ModifyTable", Vec::new()).with("Operation", operation);
        let mut node = node.with("Relation Name", self.relation(op));
        if operation == "Update" {
            let columns = facts.columns_written.iter();
            let names = columns.map(|column| {
                let name = self.listing.terms.column(self.table(op), column.index());
                name.into_owned()
            });
            let names = Property::Names(names.collect());
            node.properties.push(("Columns Written", names));
        }
        self.facts(node, op)
    }

    /// What the analysis knows of an operation.
    fn facts(&self, mut node: Node, op: OpId) -> Node {
        let analysis = &self.listing.program.analysis;
        let number = |op: OpId| Property::Number(op.0.to_string());
        node.properties.push(("Operation Number", number(op)));
        let footprint = match analysis.operation(op).footprint {
            Footprint::FromArguments => "arguments".to_owned(),
            Footprint::NeedsReconnaissance { because_of } => {
                format!("data of operation {}", because_of.0)
            }
        };
        node.with("Footprint", &footprint)
    }

    fn table(&self, op: OpId) -> TableRef {
        let program = self.listing.program;
        let wanted = program.operations[op.0 as usize].table;
        let position = program.tables.iter().position(|table| table.id() == wanted);
        TableRef(position.unwrap_or(0) as u16)
    }

    fn relation(&self, op: OpId) -> &str {
        let table = self.table(op);
        &self.listing.program.tables[table.0 as usize].schema().name
    }
}

fn for_write(mut node: Node, intent: Intent) -> Node {
    if intent == Intent::Write {
        node.properties.push(("For Write", Property::Flag(true)));
    }
    node
}
