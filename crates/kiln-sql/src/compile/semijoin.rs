//! EXISTS over rows that equal values of the rows outside, where no index finds them: the rows of
//! the subquery are computed once, without that condition, and kept by what it compares. Then each
//! row outside looks its values up among them. So a semi-join of n and m rows takes n + m steps and
//! not n · m.

use kiln_procedure::ir::{Class, Comparison, MATCHES_MAX, Match, Reg, Step};
use kiln_storage::error::Result;
use kiln_storage::types::DataType;

use super::Compiler;
use super::bound::{
    Body, Bound, BoundQuery, ColumnMeta, Kind, Operation, Select, SourceId, Subquery, SubqueryKind,
};
use super::path::FULL;
use super::query::QueryOptions;

/// How an EXISTS is looked up.
struct SemiJoin {
    /// The values that rows are found by, over rows that do not depend on those outside.
    rows: BoundQuery,
    /// What each of them equals.
    outside: Vec<Bound>,
    classes: Vec<Class>,
}

impl Compiler<'_> {
    /// Emits an EXISTS that is computed for many rows as a look-up, if it can be one and no index
    /// does better; says where its value is then.
    pub(super) fn emit_semi_join(&mut self, subquery: &Subquery) -> Result<Option<Reg>> {
        if subquery.kind != SubqueryKind::Exists || !self.is_in_loop() {
            return Ok(None);
        }
        let Some(join) = self.semi_join(subquery) else {
            return Ok(None);
        };
        let (known, buffer) = self.known_rows(subquery.number, join.classes.len());
        self.unless_done(known, |compiler| {
            let options = QueryOptions::default();
            compiler.emit_query(&join.rows, options, &mut |compiler, row| {
                compiler.push_distinct(buffer, &join.classes, row);
                Ok(())
            })
        })?;
        let values = self.emit_row(&join.outside)?;
        let result = self.builder.register(DataType::Boolean);
        self.set_truth(result, false);
        self.open_ir_loop();
        self.set_truth(result, true);
        self.builder.push(Step::Exit { depth: 0 });
        let body = self.close_ir_loop();
        let matching = values.iter().zip(&join.classes).enumerate();
        let matching = matching.map(|(column, (value, class))| Match {
            column: column as u16,
            value: *value,
            class: *class,
        });
        let row: Vec<Reg> = join
            .rows
            .columns
            .iter()
            .map(|column| self.builder.register(column.data_type.clone()))
            .collect();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: matching.collect(),
            row: row.into(),
            body,
        });
        Ok(Some(result))
    }

    fn semi_join(&self, subquery: &Subquery) -> Option<SemiJoin> {
        let query = &subquery.query;
        let Body::Select(select) = &query.body else {
            return None;
        };
        let is_plain = select.grouping.is_none()
            && select.row_functions.is_empty()
            && select.distinct_on.is_empty()
            && query.with.is_empty()
            && query.limit.is_none()
            && query.offset.is_none();
        if !is_plain || query.is_volatile() || self.has_index(select) {
            return None;
        }
        let is_own = |source: &SourceId| subquery.own_sources.contains(&source.0);
        let is_inside = |bound: &Bound| {
            let sources = bound.sources();
            !sources.is_empty() && sources.iter().all(is_own)
        };
        let (mut inside, mut outside, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        let mut filters = Vec::new();
        for filter in &select.filters {
            if filter.sources().iter().all(is_own) && !filter.sources().is_empty() {
                filters.push(filter.clone());
                continue;
            }
            let Kind::Operation(Operation::Compare(Comparison::Equal, class), operands) =
                &filter.kind
            else {
                return None;
            };
            let [left, right] = operands.as_slice() else {
                return None;
            };
            let is_outside = |bound: &Bound| !bound.sources().iter().any(is_own);
            let (own, other) = match (is_inside(left), is_inside(right)) {
                (true, false) if is_outside(right) => (left, right),
                (false, true) if is_outside(left) => (right, left),
                _ => return None,
            };
            inside.push(own.clone());
            outside.push(other.clone());
            classes.push(*class);
        }
        if inside.is_empty() || inside.len() > MATCHES_MAX {
            return None;
        }
        let columns = inside.iter().map(|bound| ColumnMeta {
            name: String::new(),
            data_type: bound.data_type.clone(),
            origin: None,
        });
        let rows = BoundQuery {
            columns: columns.collect(),
            ..BoundQuery::of(Select {
                filters,
                outputs: inside,
                open_outputs: Vec::new(),
                distinct: false,
                ..(**select).clone()
            })
        };
        rows.is_independent(&subquery.own_sources, &subquery.own_slots)
            .then_some(SemiJoin {
                rows,
                outside,
                classes,
            })
    }

    /// Whether an index leads to rows of a SELECT when all that is outside is there.
    fn has_index(&self, select: &Select) -> bool {
        let own: Vec<SourceId> = select.items.iter().map(|item| item.source).collect();
        select.items.iter().any(|item| {
            let conjuncts = item.left.as_deref().unwrap_or(&select.filters);
            let candidate = self.candidate(item, conjuncts, &own, &[], &[], false);
            candidate.cost.0 < FULL
        })
    }
}
