//! Explanations as PostgreSQL lays JSON out: an array of one object, whose `Plan` is a tree of
//! nodes.

use kiln_procedure::Program;
use kiln_procedure::explain::{Node, Property, tree};
use kiln_storage::types::json::quote;

use super::{Met, milliseconds};
use crate::parse::ExplainOptions;

/// A program's tree, and what is known of the program as a whole.
pub(super) struct Explained {
    root: Node,
    facts: Vec<(&'static str, Property)>,
}

impl Explained {
    pub fn of(program: &Program) -> Explained {
        let (root, facts) = tree(program);
        Explained { root, facts }
    }

    /// The text, with what a run has met.
    pub fn written(&self, met: Option<&Met>, options: ExplainOptions) -> String {
        let (mut of_root, mut behind) = (Vec::new(), Vec::new());
        if let Some(met) = met {
            let time = Property::Number(milliseconds(met.elapsed_ns));
            if options.timing {
                of_root.push(("Actual Total Time", time.clone()));
            }
            of_root.push(("Actual Rows", Property::Number(met.rows.to_string())));
            of_root.push(("Actual Loops", Property::Number("1".to_owned())));
            if options.summary {
                behind.push(("Execution Time", time));
            }
        }
        let mut writer = Writer::default();
        writer.out.push_str("[\n  {\n    \"Plan\": ");
        writer.node(&self.root, &of_root, 2);
        for (name, value) in self.facts.iter().chain(&behind) {
            writer.next(2);
            writer.property(name, value);
        }
        writer.out.push_str("\n  }\n]");
        writer.out
    }
}

#[derive(Default)]
struct Writer {
    out: String,
}

impl Writer {
    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.push_str(&"  ".repeat(indent));
    }

    fn next(&mut self, indent: usize) {
        self.out.push(',');
        self.line(indent);
    }

    /// A node, and `more` of it, whose braces stand at `indent`.
    fn node(&mut self, node: &Node, more: &[(&'static str, Property)], indent: usize) {
        self.out.push('{');
        for (position, (name, value)) in node.properties.iter().chain(more).enumerate() {
            match position {
                0 => self.line(indent + 1),
                _ => self.next(indent + 1),
            }
            self.property(name, value);
        }
        if !node.plans.is_empty() {
            self.next(indent + 1);
            self.out.push_str("\"Plans\": [");
            for (position, plan) in node.plans.iter().enumerate() {
                match position {
                    0 => self.line(indent + 2),
                    _ => self.next(indent + 2),
                }
                self.node(plan, &[], indent + 2);
            }
            self.line(indent + 1);
            self.out.push(']');
        }
        self.line(indent);
        self.out.push('}');
    }

    fn property(&mut self, name: &str, value: &Property) {
        quote(name, &mut self.out);
        self.out.push_str(": ");
        match value {
            Property::Text(text) => quote(text, &mut self.out),
            Property::Number(number) => self.out.push_str(number),
            Property::Flag(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Property::Names(names) => {
                self.out.push('[');
                for (position, name) in names.iter().enumerate() {
                    self.out.push_str(if position == 0 { "" } else { ", " });
                    quote(name, &mut self.out);
                }
                self.out.push(']');
            }
        }
    }
}
