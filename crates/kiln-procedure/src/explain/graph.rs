//! The dependencies as a graph for Graphviz.

use std::borrow::Cow;

use crate::analysis::DependencyKinds;
use crate::ir::OpId;
use crate::program::Program;

/// The program dependency graph in Graphviz's language (`kiln explain … --dot | dot -Tsvg`): key
/// dependencies are solid as in healing's figures, value dependencies dashed, control
/// dependencies dotted (left out where the same operation feeds the key), and own writes that
/// are read back grey. Operations that write have a thicker border.
pub fn dot(program: &Program) -> String {
    let analysis = &program.analysis;
    let mut out = format!("digraph {} {{\n", quoted(&program.name));
    out.push_str("  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n");
    for (position, operation) in program.operations.iter().enumerate() {
        let facts = analysis.operation(OpId(position as u16));
        let table = program
            .tables
            .iter()
            .find(|table| table.id() == operation.table);
        let Some(table) = table else { continue };
        let schema = table.schema();
        let verb = format!("{:?}", operation.kind).to_lowercase();
        let mut label = format!("{position}: {verb} {}", schema.name);
        let listed = facts.columns_read.union(facts.columns_written);
        let names: Vec<Cow<'_, str>> = listed
            .iter()
            .map(|column| schema.columns[column.index()].label())
            .collect();
        match names.len() {
            0 => {}
            all if all == schema.columns.len() => label.push_str("\nall columns"),
            _ => {
                label.push('\n');
                label.push_str(&names.join(", "));
            }
        }
        let border = if facts.columns_written.is_empty() {
            ""
        } else {
            ", penwidth=2"
        };
        out.push_str(&format!(
            "  op{position} [label={}{border}];\n",
            quoted(&label)
        ));
    }
    for dependency in analysis.dependencies() {
        let is = |kind: DependencyKinds| dependency.kinds.intersects(kind);
        let styles = [
            (is(DependencyKinds::KEY), "solid"),
            (is(DependencyKinds::VALUE), "dashed"),
            (
                is(DependencyKinds::CONTROL) && !is(DependencyKinds::KEY),
                "dotted",
            ),
            (is(DependencyKinds::OWN_WRITE), "solid, color=grey"),
        ];
        for (_, style) in styles.into_iter().filter(|(holds, _)| *holds) {
            let (from, to) = (dependency.from.0, dependency.to.0);
            out.push_str(&format!("  op{from} -> op{to} [style={style}];\n"));
        }
    }
    out.push_str("}\n");
    out
}

/// A string of Graphviz's language.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}
