//! Planning: in which order the sources of a SELECT are joined, and by which path each is read.
//!
//! There are no statistics: a whole unique key is better than a range of an index, a longer fixed
//! prefix better than a shorter one, and anything better than reading everything. Sources are taken
//! greedily, the most selective one first; where all rows of one must be read, the one that leads
//! is that from which the others are reached best. The right side of a LEFT JOIN comes when all
//! that its condition names is there.

use kiln_procedure::ir::{Class, Comparison, MATCHES_MAX};
use kiln_storage::types::DataType;

#[cfg(test)]
use crate::database::panics::planted;

use kiln_engine::IndexUse;

use super::Compiler;
use super::bound::{Bound, FromItem, ItemKind, Kind, Operation, OrderKey, Select, SourceId};
use super::path::{Access, Candidate, Each, FULL, Restriction, candidate_expressions, restriction};

/// How the rows of one SELECT come about.
pub(super) struct Plan {
    /// Conditions on nothing: checked once, before anything is read.
    pub guards: Vec<Bound>,
    pub steps: Vec<PlanStep>,
    /// Whether the rows come in the wanted order.
    pub ordered: bool,
    /// Whether there is at most one row.
    pub single: bool,
}

/// One source in the order of joining.
pub(super) struct PlanStep {
    pub source: SourceId,
    pub kind: ItemKind,
    pub access: Access,
    /// Key columns that take several values: the access runs for each of them.
    pub each: Vec<Each>,
    /// What a row of the source must satisfy; of a LEFT JOIN, the rest of its ON.
    pub filters: Vec<Bound>,
    /// Whether it is the right side of a LEFT JOIN, and what the joined rows must satisfy.
    pub left: Option<Vec<Bound>>,
    /// The columns of it whose values the access path itself gives.
    pub known: Vec<(u16, Bound)>,
    /// The columns that later steps and the output need whatever happens.
    pub needed: Vec<(SourceId, u16)>,
    /// All columns that later steps and the output may need.
    pub all_needed: Vec<(SourceId, u16)>,
    /// Whether its rows are copied once before the loops over other sources begin.
    pub buffered: bool,
    /// What the rows of the copy are found by: columns that equal values of sources before it.
    pub matches: Vec<(u16, Class, Bound)>,
}

impl PlanStep {
    /// Whether a filter of this step looks at nothing but its source, so that a copy of the rows
    /// holds only those that pass it. What is volatile and names no source is for each joined row.
    pub(super) fn is_own(&self, filter: &Bound) -> bool {
        let sources = filter.sources();
        let is_of_joined_row = sources.is_empty() && filter.is_volatile();
        !is_of_joined_row && sources.iter().all(|source| *source == self.source)
    }

    /// The columns of the source that are looked at once its rows are there.
    pub(super) fn used_columns(&self) -> Vec<u16> {
        let filters = self.filters.iter().flat_map(Bound::columns);
        let used = self.all_needed.iter().copied().chain(filters);
        let own = used.filter(|(source, _)| *source == self.source);
        let mut columns: Vec<u16> = own.map(|(_, column)| column).collect();
        columns.extend(self.matches.iter().map(|(column, _, _)| *column));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The filters that are left to be checked when the rows are visited.
    pub(super) fn late_filters(&self) -> Vec<Bound> {
        let filters = self.filters.iter();
        filters
            .filter(|filter| !self.buffered || !self.is_own(filter))
            .cloned()
            .collect()
    }
}

/// What the next source of a SELECT is chosen from.
struct Choice<'b> {
    /// Among them may be some that were joined since.
    left_to_join: &'b [&'b FromItem],
    /// The conjuncts that no step has checked.
    pending: &'b [Bound],
    /// All sources of the SELECT.
    own: &'b [SourceId],
}

impl Choice<'_> {
    /// Whether an item cannot be next when `joined` are there.
    fn waits(&self, item: &FromItem, joined: &[SourceId]) -> bool {
        let missing = |bound: &Bound| {
            bound.sources().iter().any(|source| {
                *source != item.source && self.own.contains(source) && !joined.contains(source)
            })
        };
        let missing_of_item =
            |(source, _): &(SourceId, u16)| self.own.contains(source) && !joined.contains(source);
        joined.contains(&item.source)
            || (item.left.is_some() && joined.is_empty())
            || item.left.iter().flatten().any(missing)
            || item.kind.columns().iter().any(missing_of_item)
    }
}

/// How much less reading all rows costs when their copy is searched by a value.
const MATCHED: i32 = 1_000;

/// The most sources of which every one is tried as the one that leads.
const LOOK_AHEAD_ITEMS_MAX: usize = 8;

impl Compiler<'_> {
    /// Plans the rows of `select`. `order` is what is wanted; `limited` says that only the first
    /// rows will be asked for.
    pub(super) fn plan(&mut self, select: &Select, order: &[OrderKey], limited: bool) -> Plan {
        self.plan_for(select, order, limited, None)
    }

    /// As [`Compiler::plan`]; the rows of `target` are visited themselves, and not copies of them.
    pub(super) fn plan_for(
        &mut self,
        select: &Select,
        order: &[OrderKey],
        limited: bool,
        target: Option<SourceId>,
    ) -> Plan {
        #[cfg(test)]
        planted::reach(planted::Step::Plan);
        let own: Vec<SourceId> = select.items.iter().map(|item| item.source).collect();
        let is_own = |source: &SourceId| own.contains(source);
        let mut guards = Vec::new();
        let mut pending: Vec<Bound> = Vec::new();
        for filter in &select.filters {
            let is_for_each_row = !own.is_empty() && filter.is_volatile();
            if is_for_each_row || filter.sources().iter().any(is_own) {
                pending.push(filter.clone());
            } else {
                guards.push(filter.clone());
            }
        }
        let mut left_to_join: Vec<&FromItem> = select.items.iter().collect();
        let mut joined: Vec<SourceId> = Vec::new();
        let mut steps: Vec<PlanStep> = Vec::new();
        let mut ordered = order.is_empty();
        let mut all_single = true;
        while !left_to_join.is_empty() {
            let is_first = joined.is_empty();
            // One row at most so far: the order is that of this step.
            let leads = all_single;
            let wanted = if leads { order } else { &[] };
            let choice = Choice {
                left_to_join: &left_to_join,
                pending: &pending,
                own: &own,
            };
            let mut best = self.choose(&choice, &joined, wanted, limited);
            if leads && left_to_join.len() > 1 {
                best = self.lead_by_what_follows(&choice, best, &joined, wanted, limited);
            }
            // What waits for itself (a LEFT JOIN whose condition names later sources) cannot be:
            // conditions only see sources before them.
            let Some((position, mut candidate)) = best else {
                break;
            };
            candidate.name_values(self);
            let item = left_to_join.remove(position);
            if leads {
                ordered = order.is_empty() || candidate.ordered;
            }
            let is_lookup = (matches!(candidate.access, Access::Lookup { .. })
                && candidate.each.is_empty())
                || item.kind.gives_one_row();
            self.note_use(item, &candidate.access);
            let depends = candidate_expressions(&candidate.access, &candidate.each)
                .into_iter()
                .any(|bound| bound.sources().iter().any(is_own))
                || item.kind.columns().iter().any(|(source, _)| is_own(source));
            let scans = !candidate.each.is_empty()
                || match &item.kind {
                    ItemKind::Table(_) => matches!(candidate.access, Access::Scan { .. }),
                    ItemKind::Derived(_)
                    | ItemKind::With(_)
                    | ItemKind::Catalog(..)
                    | ItemKind::Sequence(_)
                    | ItemKind::Full(_) => true,
                    kind if kind.calls_volatile() => true,
                    kind => kind.expressions().into_iter().any(Bound::is_volatile),
                };
            let buffered =
                !is_first && !all_single && scans && !depends && target != Some(item.source);
            joined.push(item.source);
            let is_last = left_to_join.is_empty();
            let ready = |bound: &Bound| {
                let sources = bound.sources();
                let is_there = sources
                    .iter()
                    .all(|source| !is_own(source) || joined.contains(source));
                // What is volatile and names no source of this query is for each joined row.
                let waits = !is_last && !sources.iter().any(is_own) && bound.is_volatile();
                is_there && !waits
            };
            let mut filters: Vec<Bound> = Vec::new();
            let mut after: Vec<Bound> = Vec::new();
            match &item.left {
                Some(on) => {
                    for (index, conjunct) in on.iter().enumerate() {
                        if !candidate.implied.contains(&index) {
                            filters.push(conjunct.clone());
                        }
                    }
                    pending.retain(|conjunct| {
                        let now = ready(conjunct);
                        if now {
                            after.push(conjunct.clone());
                        }
                        !now
                    });
                }
                None => {
                    let mut index = 0;
                    pending.retain(|conjunct| {
                        let implied = candidate.implied.contains(&index);
                        index += 1;
                        let now = ready(conjunct);
                        if now && !implied {
                            filters.push(conjunct.clone());
                        }
                        !now && !implied
                    });
                }
            }
            // A loop inside keeps the order of the one outside.
            all_single = all_single && is_lookup;
            let mut matches = Vec::new();
            if buffered {
                let is_there = |bound: &Bound| {
                    let sources = bound.sources();
                    !bound.is_volatile() && !sources.is_empty() && !sources.contains(&item.source)
                };
                filters.retain(
                    |filter| match restriction(item.source, 0, filter, &is_there) {
                        Some(Restriction {
                            comparison: Comparison::Equal,
                            column,
                            class,
                            value,
                            ..
                        }) if matches.len() < MATCHES_MAX => {
                            matches.push((column, class, value.clone()));
                            false
                        }
                        _ => true,
                    },
                );
            }
            steps.push(PlanStep {
                source: item.source,
                kind: item.kind.clone(),
                access: candidate.access,
                each: candidate.each,
                filters,
                left: item.left.is_some().then_some(after),
                known: candidate.known,
                needed: Vec::new(),
                all_needed: Vec::new(),
                buffered,
                matches,
            });
        }
        self.collect_needed(select, order, &mut steps);
        Plan {
            guards,
            steps,
            ordered: ordered || all_single,
            single: all_single,
        }
    }

    /// The best source to be joined next, if one can be.
    fn choose(
        &self,
        choice: &Choice<'_>,
        joined: &[SourceId],
        wanted: &[OrderKey],
        limited: bool,
    ) -> Option<(usize, Candidate)> {
        let mut best: Option<(usize, Candidate)> = None;
        // Inner joins go first: they can only make fewer rows.
        let rank = |position: usize, candidate: &Candidate| {
            (choice.left_to_join[position].left.is_some(), candidate.cost)
        };
        for (position, item) in choice.left_to_join.iter().enumerate() {
            if choice.waits(item, joined) {
                continue;
            }
            let candidate = self.next_candidate(choice, item, joined, wanted, limited);
            let is_better = best
                .as_ref()
                .is_none_or(|(known, best)| rank(position, &candidate) < rank(*known, best));
            if is_better {
                best = Some((position, candidate));
            }
        }
        best
    }

    /// The best path to an item when `joined` are there.
    fn next_candidate(
        &self,
        choice: &Choice<'_>,
        item: &FromItem,
        joined: &[SourceId],
        wanted: &[OrderKey],
        limited: bool,
    ) -> Candidate {
        let conjuncts = item.left.as_deref().unwrap_or(choice.pending);
        let mut candidate = self.candidate(item, conjuncts, choice.own, joined, wanted, limited);
        if candidate.cost.0 == FULL {
            let is_there = |bound: &Bound| {
                let sources = bound.sources();
                sources.iter().any(|source| joined.contains(source))
                    && sources
                        .iter()
                        .all(|source| joined.contains(source) || !choice.own.contains(source))
            };
            let is_matched = conjuncts.iter().any(|conjunct| {
                restriction(item.source, 0, conjunct, &is_there)
                    .is_some_and(|one| one.comparison == Comparison::Equal)
            });
            if is_matched {
                candidate.cost.1 -= MATCHED;
            }
        }
        candidate
    }

    /// Among the sources of which all rows would be read, that one leads from which the others are
    /// reached best: rows without an index lead to those with one, and not the other way.
    fn lead_by_what_follows(
        &self,
        choice: &Choice<'_>,
        best: Option<(usize, Candidate)>,
        joined: &[SourceId],
        wanted: &[OrderKey],
        limited: bool,
    ) -> Option<(usize, Candidate)> {
        let (known, best) = best?;
        let items = choice.left_to_join;
        let is_left = items[known].left.is_some();
        if best.cost.0 != FULL || is_left || items.len() > LOOK_AHEAD_ITEMS_MAX {
            return Some((known, best));
        }
        let mut chosen = (self.cost_after(choice, joined, known), known, best);
        for (position, item) in items.iter().enumerate() {
            if position == known || item.left.is_some() || choice.waits(item, joined) {
                continue;
            }
            let candidate = self.next_candidate(choice, item, joined, wanted, limited);
            let cost = self.cost_after(choice, joined, position);
            if (cost, candidate.cost) < (chosen.0, chosen.2.cost) {
                chosen = (cost, position, candidate);
            }
        }
        Some((chosen.1, chosen.2))
    }

    /// What joining all others costs when an item leads: how many of them are searched row by row,
    /// searched through a copy, and read by a range.
    fn cost_after(&self, choice: &Choice<'_>, joined: &[SourceId], lead: usize) -> [usize; 3] {
        let mut joined = joined.to_vec();
        joined.push(choice.left_to_join[lead].source);
        let mut cost = [0; 3];
        while let Some((position, candidate)) = self.choose(choice, &joined, &[], false) {
            joined.push(choice.left_to_join[position].source);
            match candidate.cost {
                (0, _) => {}
                (FULL, detail) if detail > -MATCHED => cost[0] += 1,
                (FULL, _) => cost[1] += 1,
                _ => cost[2] += 1,
            }
        }
        cost
    }

    /// Fills in which columns of each source are needed after its own step.
    fn collect_needed(&self, select: &Select, order: &[OrderKey], steps: &mut [PlanStep]) {
        let mut eager = Vec::new();
        let mut all = Vec::new();
        let add = |bound: &Bound, eager: &mut Vec<_>, all: &mut Vec<_>| {
            super::emit::eager_columns(bound, eager);
            bound.collect_columns(all);
        };
        for bound in select.row_expressions() {
            add(bound, &mut eager, &mut all);
        }
        if select.grouping.is_none() {
            for key in order {
                add(&key.bound, &mut eager, &mut all);
            }
        }
        for step in steps.iter_mut().rev() {
            for bound in step.left.iter().flatten() {
                add(bound, &mut eager, &mut all);
            }
            let of_step = |columns: &[(SourceId, u16)]| -> Vec<(SourceId, u16)> {
                let mut own: Vec<_> = columns
                    .iter()
                    .copied()
                    .filter(|(source, _)| *source == step.source)
                    .collect();
                own.sort_unstable();
                own.dedup();
                own
            };
            step.needed = of_step(&eager);
            step.all_needed = of_step(&all);
            for bound in &step.filters {
                add(bound, &mut eager, &mut all);
            }
            for bound in candidate_expressions(&step.access, &step.each) {
                add(bound, &mut eager, &mut all);
            }
            for (_, _, bound) in &step.matches {
                add(bound, &mut eager, &mut all);
            }
            let of_item = step.kind.columns();
            eager.extend(&of_item);
            all.extend(of_item);
        }
    }

    fn note_use(&mut self, item: &FromItem, access: &Access) {
        let ItemKind::Table(table) = &item.kind else {
            return;
        };
        let (index, point, prefix_columns) = match access {
            Access::Lookup { index, key } => (*index, true, key.len()),
            Access::Scan { index, range, .. } => (*index, false, range.prefix.len()),
            Access::Rows => return,
        };
        let table = table.id();
        let used = IndexUse {
            table,
            index,
            point,
            prefix_columns,
        };
        if !self.requirements.contains(&used) {
            self.requirements.push(used);
        }
    }

    /// Whether for each row of `target` the other sources of `select` give at most one: each has a
    /// unique key that is fixed by the target and those before it.
    pub(super) fn matches_once(&self, select: &Select, target: SourceId) -> bool {
        let mut proven = vec![target];
        let own: Vec<SourceId> = select.items.iter().map(|item| item.source).collect();
        loop {
            let before = proven.len();
            for item in &select.items {
                if proven.contains(&item.source) {
                    continue;
                }
                let conjuncts = item.left.as_deref().unwrap_or(&select.filters);
                let candidate = self.candidate(item, conjuncts, &own, &proven, &[], false);
                if candidate.cost.0 == 0 {
                    proven.push(item.source);
                }
            }
            if proven.len() == before {
                return proven.len() == own.len();
            }
        }
    }
}

impl Compiler<'_> {
    /// Whether a value can never be NULL.
    pub(super) fn never_null(&self, bound: &Bound) -> bool {
        match &bound.kind {
            Kind::Constant(value) => !value.is_null(),
            Kind::Column { source, column } => {
                let source = self.source(*source);
                !source.nullable
                    && source
                        .table
                        .as_ref()
                        .is_some_and(|table| table.schema().columns[*column as usize].not_null)
            }
            Kind::Operation(operation, operands) => {
                matches!(
                    operation,
                    Operation::Integer(..)
                        | Operation::Decimal(_)
                        | Operation::Double(_)
                        | Operation::Compare(..)
                        | Operation::IntegerToDecimal
                        | Operation::IntegerToDouble
                        | Operation::CheckWidth(_)
                        | Operation::Rescale { .. }
                        | Operation::Not
                        | Operation::Concat
                ) && operands.iter().all(|operand| self.never_null(operand))
            }
            Kind::Case {
                branches,
                otherwise,
            } => otherwise.as_ref().is_some_and(|otherwise| {
                self.never_null(otherwise)
                    && branches.iter().all(|(_, result)| self.never_null(result))
            }),
            Kind::Coalesce(operands) => operands.iter().any(|operand| self.never_null(operand)),
            Kind::Shared(_, inner) => self.never_null(inner),
            _ => false,
        }
    }

    /// The type of a source's column.
    pub(super) fn column_type(&self, source: SourceId, column: u16) -> DataType {
        self.source(source).columns[column as usize].1.clone()
    }
}
