//! Outputs that are computed for the sorted rows.
//!
//! Volatile functions and functions that give rows are called after the sort and after DISTINCT ON,
//! unless one of these goes by what they give: so a sequence counts in the order of the rows, and
//! DISTINCT ON chooses among the rows of FROM (`make_sort_input_target` of PostgreSQL's planner).

use kiln_procedure::ir::Step;
use kiln_storage::error::Result;

use super::Compiler;
use super::bound::rewrite_in_place;
use super::bound::{Bound, BoundQuery, Kind, RowFunction, RowFunctions, Select, SourceId};
use super::leaves::{Leaves, plain_columns};
use super::limit::Limits;
use super::produce::{OutputSink, types_of};
use super::query::QueryOptions;

/// A SELECT taken apart at its sort.
pub(super) struct Postponed {
    /// Its rows up to the sort, as rows of `source`.
    sorted: BoundQuery,
    source: SourceId,
    /// What is computed for them.
    functions: Vec<(SourceId, RowFunctions)>,
    outputs: Vec<Bound>,
}

impl<'a> Compiler<'a> {
    /// Takes a SELECT apart, if some of its outputs are computed for the sorted rows.
    pub(super) fn split_at_sort(
        &mut self,
        query: &BoundQuery,
        select: &Select,
    ) -> Option<Postponed> {
        if query.order.is_empty() || select.distinct {
            return None;
        }
        let order = query.order.iter().map(|key| &key.bound);
        let keys: Vec<&Bound> = order.chain(&select.distinct_on).collect();
        let gives_rows = |bound: &Bound| {
            let sources = bound.sources();
            let mut functions = select.row_functions.iter();
            functions.any(|(source, _)| sources.contains(source))
        };
        let rows_are_late =
            !select.row_functions.is_empty() && !keys.iter().any(|key| gives_rows(key));
        let is_late = |bound: &&Bound| {
            let is_late = match gives_rows(bound) {
                true => rows_are_late,
                false => bound.is_volatile(),
            };
            is_late && !keys.contains(bound)
        };
        if !select.outputs.iter().any(|bound| is_late(&bound)) {
            return None;
        }
        let mut leaves = Leaves::of(select);
        let mut functions = select.row_functions.clone();
        if !rows_are_late {
            for (source, _) in functions.drain(..) {
                leaves = leaves.with(source);
            }
        }
        let late = select.outputs.iter().filter(is_late);
        let of_functions = functions.iter().flat_map(|(_, calls)| &calls.parts);
        for bound in late.chain(of_functions.flat_map(RowFunction::expressions)) {
            leaves.collect(bound, &mut |_| false);
        }
        let others = select.outputs.iter().filter(|bound| !is_late(bound));
        others.for_each(|bound| {
            leaves.place(bound);
        });
        let columns = plain_columns(leaves.columns.iter());
        let source = self.add_derived_source("", &columns, None);
        let mut outputs = select.outputs.clone();
        for bound in &mut outputs {
            let at = match is_late(&&*bound) {
                true => None,
                false => leaves.columns.iter().position(|known| known == bound),
            };
            match at {
                Some(at) => {
                    let column = at as u16;
                    bound.kind = Kind::Column { source, column };
                }
                None => rewrite_in_place(bound, &mut |node| leaves.in_rows_of(source, node)),
            }
        }
        let of_functions = functions.iter_mut().flat_map(|(_, calls)| &mut calls.parts);
        for bound in of_functions.flat_map(RowFunction::expressions_mut) {
            rewrite_in_place(bound, &mut |node| leaves.in_rows_of(source, node));
        }
        let sorted = Select {
            outputs: leaves.columns,
            open_outputs: Vec::new(),
            row_functions: match rows_are_late {
                true => Vec::new(),
                false => select.row_functions.clone(),
            },
            ..select.clone()
        };
        let sorted = BoundQuery {
            columns,
            order: query.order.clone(),
            ..BoundQuery::of(sorted)
        };
        Some(Postponed {
            sorted,
            source,
            functions,
            outputs,
        })
    }

    /// Emits a SELECT that is taken apart, within its limits.
    pub(super) fn emit_postponed(
        &mut self,
        postponed: &Postponed,
        options: QueryOptions,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        if !options.materialise {
            return self.emit_late_outputs(postponed, limits, sink);
        }
        let types = types_of(&postponed.outputs);
        let buffer = self.builder.buffer(types.len());
        self.builder.push(Step::BufferClear { buffer });
        self.emit_late_outputs(postponed, limits, &mut |compiler, row| {
            let row = row.into();
            compiler.builder.push(Step::BufferPush { buffer, row });
            Ok(())
        })?;
        self.emit_buffer_rows(buffer, &types, &Limits::default(), sink)
    }

    fn emit_late_outputs(
        &mut self,
        postponed: &Postponed,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        let Postponed {
            sorted,
            source,
            functions,
            outputs,
        } = postponed;
        let unlimited = Limits::default();
        let (before, after) = match functions.is_empty() {
            true => (limits, &unlimited),
            false => (&unlimited, limits),
        };
        let outside = self.depth;
        self.start_limits(after);
        self.emit_limited(
            sorted,
            QueryOptions::default(),
            before,
            &mut |compiler, row| {
                compiler.set_row(*source, row);
                compiler.emit_output_functions(functions, &mut |compiler| {
                    compiler.within_limits(after, outside, &mut |compiler| {
                        let row = compiler.emit_row(outputs)?;
                        sink(compiler, &row)
                    })
                })
            },
        )
    }
}
