//! One line an operation.

use super::terms::Terms;
use crate::analysis::{DependencyKinds, Footprint};
use crate::ir::*;
use crate::names::{for_each_step, step_blocks, step_operation};
use crate::program::Program;

/// The headings of the columns.
const HEADINGS: [&str; COLUMNS] = [
    "op",
    "operation",
    "key",
    "columns",
    "depends on",
    "footprint",
    "line",
];
const COLUMNS: usize = 7;

/// A line of the listing: an operation, or a piece of control flow in the second column alone.
enum Line {
    Operation([String; COLUMNS]),
    Control(String),
}

/// The operations of a program as a table, in the order of the program, with conditionals and
/// loops shown by indentation. Only control flow around operations is shown. Keys are expressions
/// over the parameters and over columns that other operations read (`op 3.d_next_o_id`).
///
/// `depends on` names the operations that feed this one: by its key or record, by the values it
/// writes, by deciding whether it runs (left out where it feeds the key as well), and by own
/// writes that it reads through the table. `footprint` is `arguments` when the record or range
/// is known before the call runs, and else names the operation whose data it takes.
pub fn text(program: &Program) -> String {
    let mut listing = Listing::new(program);
    listing.block(&program.body);
    let parameters: Vec<String> = program
        .parameters
        .iter()
        .map(|parameter| {
            format!("{} {}", parameter.name, parameter.data_type)
                .trim()
                .to_owned()
        })
        .collect();
    let footprint = whole_footprint(program);
    let access = if program.analysis.is_read_only() {
        "read-only"
    } else {
        "writes"
    };
    let mut out = format!(
        "{}({})\nfootprint: {footprint}; {access}\n\n",
        program.name,
        parameters.join(", ")
    );
    out.push_str(&listing.render());
    out
}

pub(super) struct Listing<'a> {
    pub program: &'a Program,
    pub terms: Terms<'a>,
    lines: Vec<Line>,
    indent: usize,
}

/// Where the records come from that a program touches.
pub(super) fn whole_footprint(program: &Program) -> String {
    match program.analysis.footprint() {
        Footprint::FromArguments => "from arguments".to_owned(),
        Footprint::NeedsReconnaissance { because_of } => {
            format!("needs reconnaissance because of op {}", because_of.0)
        }
    }
}

/// Whether steps touch tables, or ask for rows from outside.
pub(super) fn has_operations(block: &[Step]) -> bool {
    let mut found = false;
    for_each_step(block, &mut |step| {
        let fills = matches!(step, Step::BufferFill { .. });
        found |= fills || step_operation(step).is_some();
    });
    found
}

impl<'a> Listing<'a> {
    pub fn new(program: &'a Program) -> Listing<'a> {
        Listing {
            program,
            terms: Terms::new(program),
            lines: Vec::new(),
            indent: 0,
        }
    }

    fn block(&mut self, block: &[Step]) {
        for step in block {
            self.step(step);
        }
    }

    fn control(&mut self, text: String) {
        self.lines
            .push(Line::Control(format!("{}{text}", "  ".repeat(self.indent))));
    }

    fn indented(&mut self, block: &[Step]) {
        self.indent += 1;
        self.block(block);
        self.indent -= 1;
    }

    fn step(&mut self, step: &Step) {
        if let Some(op) = step_operation(step) {
            self.operation(op, step);
        } else if !has_operations(std::slice::from_ref(step)) {
            return;
        }
        match step {
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.terms.of(*condition);
                if has_operations(then) {
                    self.control(format!("if {condition}"));
                    self.indented(then);
                    if has_operations(otherwise) {
                        self.control("else".to_owned());
                        self.indented(otherwise);
                    }
                } else {
                    self.control(format!("if not ({condition})"));
                    self.indented(otherwise);
                }
            }
            Step::Loop { before, body, .. } => {
                self.control(self.heading(step));
                self.indented(before);
                self.indented(body);
            }
            Step::ForRange { body, .. }
            | Step::ForEach { body, .. }
            | Step::ForBuffer { body, .. }
            | Step::Protect { body, .. } => {
                self.control(self.heading(step));
                self.indented(body);
            }
            Step::BufferFill { buffer, rows, .. } => {
                self.control(format!("fill buffer {} with {}", buffer.0, rows.name()));
            }
            _ => step_blocks(step)
                .into_iter()
                .for_each(|block| self.indented(block)),
        }
    }

    /// What a loop goes over, and what a protected region catches.
    pub fn heading(&self, step: &Step) -> String {
        match step {
            Step::Loop { condition, .. } => match condition {
                Some(condition) => format!("while {}", self.terms.of(*condition)),
                None => "loop".to_owned(),
            },
            Step::ForRange { variable, .. } => format!("for {}", self.terms.of(*variable)),
            Step::ForEach { array, .. } => format!("for each of {}", self.terms.of(*array)),
            Step::ForBuffer {
                buffer, matching, ..
            } => {
                let conditions: Vec<String> = matching
                    .iter()
                    .map(|one| format!("column {} = {}", one.column, self.terms.of(one.value)))
                    .collect();
                let condition = match conditions.is_empty() {
                    true => String::new(),
                    false => format!(" where {}", conditions.join(" and ")),
                };
                format!("for each row of buffer {}{condition}", buffer.0)
            }
            Step::Protect { handlers, .. } => {
                let handlers = handlers.iter().map(|handler| {
                    let names = handler.iter().map(|condition| match condition {
                        Condition::Others => "others".to_owned(),
                        Condition::State(state) => {
                            let name = state.condition_name();
                            name.map_or_else(|| state.to_string(), str::to_owned)
                        }
                    });
                    names.collect::<Vec<_>>().join(" or ")
                });
                let handlers: Vec<String> = handlers.collect();
                format!("protected, catching {}", handlers.join("; "))
            }
            _ => String::new(),
        }
    }

    fn operation(&mut self, op: OpId, step: &Step) {
        let operation = &self.program.operations[op.0 as usize];
        let facts = self.program.analysis.operation(op);
        let table = match step {
            Step::Lookup { table, .. }
            | Step::Scan { table, .. }
            | Step::Read { table, .. }
            | Step::Update { table, .. }
            | Step::Insert { table, .. }
            | Step::Delete { table, .. } => *table,
            _ => return,
        };
        let name = &self.program.tables[table.0 as usize].schema().name;
        let for_write = match step {
            Step::Lookup {
                intent: Intent::Write,
                ..
            }
            | Step::Scan {
                intent: Intent::Write,
                ..
            } => " for write",
            _ => "",
        };
        let verb = format!("{:?}", operation.kind).to_lowercase();
        let list = |columns: kiln_storage::schema::ColumnSet| {
            let names: Vec<_> = columns
                .iter()
                .map(|column| self.terms.column(table, column.index()))
                .collect();
            names.join(", ")
        };
        let columns = match step {
            Step::Read { .. } => format!("reads {}", list(facts.columns_read)),
            Step::Update { .. } => format!("writes {}", list(facts.columns_written)),
            Step::Insert { .. } | Step::Delete { .. } => "writes all".to_owned(),
            _ => String::new(),
        };
        let footprint = match facts.footprint {
            Footprint::FromArguments => "arguments".to_owned(),
            Footprint::NeedsReconnaissance { because_of } => format!("data of {}", because_of.0),
        };
        let line = operation
            .position
            .map_or_else(String::new, |(line, _)| line.to_string());
        let indent = "  ".repeat(self.indent);
        self.lines.push(Line::Operation([
            op.0.to_string(),
            format!("{indent}{verb} {name}{for_write}"),
            self.key(step, op),
            columns,
            self.dependencies(op),
            footprint,
            line,
        ]));
    }

    /// By what an operation finds its record or range; for an insert, its primary key.
    pub fn key(&self, step: &Step, op: OpId) -> String {
        match step {
            Step::Lookup {
                table, index, key, ..
            } => {
                let definition = self.index(*table, *index);
                let pairs = definition.columns.iter().zip(key);
                let pairs = pairs.map(|(column, register)| {
                    let column = self.terms.column(*table, column.index());
                    format!("{column} = {}", self.terms.of(*register))
                });
                pairs.collect::<Vec<_>>().join(", ")
            }
            Step::Scan {
                table,
                index,
                range,
                reverse,
                ..
            } => {
                let definition = self.index(*table, *index);
                let mut parts = Vec::new();
                for (column, register) in definition.columns.iter().zip(&range.prefix) {
                    let column = self.terms.column(*table, column.index());
                    parts.push(format!("{column} = {}", self.terms.of(*register)));
                }
                for (bound, open, closed) in [(range.lower, ">", ">="), (range.upper, "<", "<=")] {
                    let Some(Bound { value, inclusive }) = bound else {
                        continue;
                    };
                    let column = definition.columns[range.prefix.len()];
                    let column = self.terms.column(*table, column.index());
                    let operator = if inclusive { closed } else { open };
                    parts.push(format!("{column} {operator} {}", self.terms.of(value)));
                }
                if parts.is_empty() {
                    parts.push("all".to_owned());
                }
                let order = if *reverse { ", backwards" } else { "" };
                format!("{}{order}", parts.join(", "))
            }
            Step::Insert { table, values, .. } => {
                let schema = self.program.tables[table.0 as usize].schema();
                if schema.primary_key.is_empty() {
                    return "a new row".to_owned();
                }
                let parts = schema.primary_key.iter().map(|column| {
                    let name = self.terms.column(*table, column.index());
                    format!("{name} = {}", self.terms.of(values[column.index()]))
                });
                parts.collect::<Vec<_>>().join(", ")
            }
            _ => {
                let found_by = &self.program.analysis.operation(op).found_by;
                format!("record of {}", numbers(found_by.iter().copied()))
            }
        }
    }

    pub fn index(&self, table: TableRef, index: u16) -> &kiln_storage::schema::IndexDefinition {
        self.program.tables[table.0 as usize].indexes()[index as usize].definition()
    }

    fn dependencies(&self, op: OpId) -> String {
        let dependencies = self.program.analysis.dependencies_of(op);
        let of = |wanted: DependencyKinds, but_not: DependencyKinds| {
            let matching = dependencies.iter().filter(move |dependency| {
                dependency.kinds.intersects(wanted) && !dependency.kinds.intersects(but_not)
            });
            numbers(matching.map(|dependency| dependency.from))
        };
        let none = DependencyKinds::default();
        let parts = [
            ("key", of(DependencyKinds::KEY, none)),
            ("value", of(DependencyKinds::VALUE, none)),
            (
                "control",
                of(DependencyKinds::CONTROL, DependencyKinds::KEY),
            ),
            ("own write", of(DependencyKinds::OWN_WRITE, none)),
        ];
        let parts = parts.into_iter().filter(|(_, from)| !from.is_empty());
        parts
            .map(|(kind, from)| format!("{kind} ← {from}"))
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn render(&self) -> String {
        let mut rows: Vec<Vec<[String; COLUMNS]>> = vec![vec![HEADINGS.map(str::to_owned)]];
        for line in &self.lines {
            rows.push(match line {
                Line::Operation(cells) => wrapped(cells),
                Line::Control(text) => {
                    let mut cells = [const { String::new() }; COLUMNS];
                    cells[1] = text.clone();
                    vec![cells]
                }
            });
        }
        let mut widths = [0; COLUMNS];
        for cells in rows.iter().flatten() {
            // Conditions may be long, and nothing stands to the right of them.
            let is_control = cells[0].is_empty() && cells[2..].iter().all(String::is_empty);
            for (width, cell) in widths.iter_mut().zip(cells).filter(|_| !is_control) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        for cells in rows.iter().flatten() {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                // Numbers stand to the right.
                let numeric = matches!(HEADINGS[column], "op" | "line");
                line.push_str(if column == 0 { "" } else { "  " });
                line.push_str(&if numeric {
                    padding + cell
                } else {
                    cell.clone() + &padding
                });
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Cells wider than this are broken at their commas, in characters.
const CELL_MAX: usize = 44;

/// The lines that an operation's cells take.
fn wrapped(cells: &[String; COLUMNS]) -> Vec<[String; COLUMNS]> {
    let columns: Vec<Vec<String>> = cells.iter().map(|cell| wrap(cell)).collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        std::array::from_fn(|column| columns[column].get(at).cloned().unwrap_or_default())
    };
    (0..height).map(line).collect()
}

fn wrap(cell: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in cell.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if (line.clone() + part).trim_end().chars().count() <= CELL_MAX => {
                line.push_str(part);
            }
            _ => lines.push(part.to_owned()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn numbers(operations: impl Iterator<Item = OpId>) -> String {
    operations
        .map(|op| op.0.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
