//! Which columns of a table one timestamp should cover (timestamp splitting, STO §6.2).
//!
//! A record has one timestamp in its header, which every write advances, and may have more, each
//! for a group of columns, which only writes of these columns advance. A transaction that observes
//! only columns of such a group notes that timestamp and not the header's, and writes of other
//! columns do not disturb it. The columns without a timestamp of their own are the *base* group,
//! covered by the header.
//!
//! # The cost rule
//!
//! Every registered procedure says, for each of its operations that finds records of the table,
//! which columns it observes and which it writes ([`Observed`]). With `f` for how often it does so,
//! as a share of all that happens to the table, a grouping costs
//!
//! ```text
//!   FALSE_CONFLICT · Σ f(a)·f(b)    over a that observes and b that writes no column in common, but a
//!                                   timestamp: if they meet on one record, a fails for nothing
//!   + TIMESTAMP · Σ f(a)·(k − 1)    for a that notes k > 1 timestamps
//!   + TIMESTAMP · Σ f(b)·k          for b that advances k timestamps beside the header's
//!   + WORD · k                      for k timestamps beside the header's: memory in every record
//! ```
//!
//! The pairs that do have a column in common conflict whatever the grouping is, and do not count.
//! An attempt that fails is run again, some dozens of times the price of a timestamp, but only a
//! part of the pairs meet on one record: the factors stand for one pair in four. The search starts
//! with a group for each set of columns that the same operations observe and write, and then joins
//! the two groups whose joining costs least, down to one; the cheapest grouping met on the way is
//! taken, and of equal ones that with fewer groups. Any of its groups may be the base: the cheapest
//! choice is taken there too.
//!
//! # When a table is split anew
//!
//! A table that runs has a split already, and a change of it holds transactions up. Once calls were
//! counted, [`better`] says that another one is taken only if it saves a tenth of the cost
//! ([`GAIN_MIN`]), so that two splits of nearly the same cost do not take turns.

use std::collections::BTreeMap;

use kiln_storage::schema::{ColumnId, ColumnSet, TableId};

use crate::analysis::Observed;
use crate::ir::{OpId, OperationKind};
use crate::program::Program;

/// The price of a timestamp that is noted or advanced.
const TIMESTAMP: f64 = 1.0;
/// The price of an attempt that fails for nothing, times the share of pairs that meet.
const FALSE_CONFLICT: f64 = 16.0;
/// The price of a timestamp's memory, per record, in timestamps noted by the average operation.
const WORD: f64 = 0.05;
/// The timestamps that a record can have here, the header's included: the second is in its `aux`
/// word. STO found that a third costs more than it gains (§6.2).
pub const TIMESTAMPS_MAX: usize = 2;
/// The least part of a split's cost that another one must save to take its place.
pub const GAIN_MIN: f64 = 0.1;
/// The most groups that the search starts with.
const START_MAX: usize = 16;

/// A procedure and how often it is called, in any unit.
#[derive(Clone, Copy, Debug)]
pub struct Weighted<'a> {
    /// The procedure.
    pub program: &'a Program,
    /// Its weight.
    pub weight: f64,
}

/// What one operation that finds records, and those on its records, do to columns of a table.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The procedure's name.
    pub procedure: String,
    /// The operation.
    pub op: OpId,
    /// The line of its statement, from 1.
    pub line: Option<u32>,
    /// How often, as a share of all usages of the table.
    pub share: f64,
    /// The columns that it observes.
    pub observed: ColumnSet,
    /// The columns that it writes.
    pub written: ColumnSet,
}

/// Columns covered by one timestamp.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnGroup {
    /// The columns.
    pub columns: ColumnSet,
    /// The share of usages that observe one of them.
    pub observed: f64,
    /// The share of usages that write one of them.
    pub written: f64,
}

/// The column groups of a table; the first is the base, covered by the header's timestamp.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// The groups; never none.
    pub groups: Vec<ColumnGroup>,
    /// What this grouping costs by the cost rule.
    pub cost: f64,
    /// What a single group would cost.
    pub cost_of_one: f64,
    /// What the procedures do with the table.
    pub usages: Vec<Usage>,
}

impl Grouping {
    /// The grouping of a table with `columns` columns that has some split: one group has these,
    /// the base all others.
    pub fn of(columns: usize, split: ColumnSet, usages: Vec<Usage>) -> Grouping {
        let all: ColumnSet = (0..columns as u16).map(ColumnId).collect();
        let mut groups = vec![all.difference(split)];
        if !split.is_empty() {
            groups.push(split);
        }
        Grouping::with(all, groups, usages)
    }

    fn with(all: ColumnSet, groups: Vec<ColumnSet>, usages: Vec<Usage>) -> Grouping {
        let share = |of: &dyn Fn(&Usage) -> bool| {
            let usages = usages.iter().filter(|usage| of(usage));
            usages.map(|usage| usage.share).sum()
        };
        let cost = cost_with_base(&groups, &usages);
        let groups = groups.into_iter().map(|columns| ColumnGroup {
            columns,
            observed: share(&|usage| usage.observed.intersects(columns)),
            written: share(&|usage| usage.written.intersects(columns)),
        });
        Grouping {
            groups: groups.collect(),
            cost,
            cost_of_one: cost_with_base(&[all], &usages),
            usages,
        }
    }

    /// Whether the table is looked at, and no procedure writes what is there.
    pub fn is_read_only(&self) -> bool {
        let mut usages = self.usages.iter();
        !self.usages.is_empty() && usages.all(|usage| usage.written.is_empty())
    }

    /// The columns that do not belong to the base.
    pub fn split(&self) -> ColumnSet {
        let others = self.groups.iter().skip(1);
        others.fold(ColumnSet::EMPTY, |all, group| all.union(group.columns))
    }

    /// Whether there is more than the base.
    pub fn is_split(&self) -> bool {
        self.groups.len() > 1
    }

    /// The number of the group that has a column; 0 is the base.
    pub fn group_of(&self, column: ColumnId) -> usize {
        let of = |group: &ColumnGroup| group.columns.contains(column);
        self.groups.iter().position(of).unwrap_or(0)
    }

    /// Whether observing `observed` can fail because of a write of `written`.
    pub fn meet(&self, observed: ColumnSet, written: ColumnSet) -> bool {
        let groups: Vec<ColumnSet> = self.groups.iter().map(|group| group.columns).collect();
        meet(&groups, observed, written)
    }
}

/// What the procedures do with a table; `deferring` with commit-time updates.
pub fn usages(programs: &[Weighted<'_>], table: TableId, deferring: bool) -> Vec<Usage> {
    let mut found = Vec::new();
    for Weighted { program, weight } in programs {
        for (position, operation) in program.operations.iter().enumerate() {
            let finds = matches!(operation.kind, OperationKind::Lookup | OperationKind::Scan);
            if operation.table != table || !finds {
                continue;
            }
            let op = OpId(position as u16);
            let observed: Observed = program.analysis.observed(op);
            found.push(Usage {
                procedure: program.name.clone(),
                op,
                line: operation.position.map(|(line, _)| line),
                share: *weight,
                observed: observed.columns(deferring),
                written: observed.written,
            });
        }
    }
    let total: f64 = found.iter().map(|usage| usage.share).sum();
    if total > 0.0 {
        found.iter_mut().for_each(|usage| usage.share /= total);
    }
    found
}

/// The columns of a table with `columns` columns that none of the programs writes, if a lock for
/// them beside that of the record pays: some operation looks at such columns alone while others
/// write. That a row is there counts as one of its columns, which insertions and deletions write,
/// and at which all look: where there are any a second lock is of no use.
pub fn unwritten(columns: usize, programs: &[Weighted<'_>], table: TableId) -> ColumnSet {
    let come_and_go = programs.iter().any(|one| {
        let mut operations = one.program.operations.iter();
        operations.any(|operation| {
            let kinds = [OperationKind::Insert, OperationKind::Delete];
            operation.table == table && kinds.contains(&operation.kind)
        })
    });
    if come_and_go {
        return ColumnSet::EMPTY;
    }
    let usages = usages(programs, table, false);
    let written = usages.iter().map(|usage| usage.written);
    let written = written.fold(ColumnSet::EMPTY, ColumnSet::union);
    let all: ColumnSet = (0..columns as u16).map(ColumnId).collect();
    let unwritten = all.difference(written);
    let looks_alone =
        |usage: &Usage| usage.written.is_empty() && !usage.observed.intersects(written);
    match !written.is_empty() && usages.iter().any(looks_alone) {
        true => unwritten,
        false => ColumnSet::EMPTY,
    }
}

/// The column groups of a table with `columns` columns by the cost rule, at most `groups_max` of
/// them.
pub fn derive(columns: usize, usages: Vec<Usage>, groups_max: usize) -> Grouping {
    let all: ColumnSet = (0..columns as u16).map(ColumnId).collect();
    let mut groups = start(columns, &usages);
    let (cost_of_one, _) = cost(&[all], &usages);
    let mut best = (cost_of_one, vec![all]);
    loop {
        if groups.len() <= groups_max {
            let (cost, base) = cost(&groups, &usages);
            let is_better =
                cost < best.0 - 1e-9 || (cost < best.0 + 1e-9 && groups.len() < best.1.len());
            if is_better {
                let mut chosen = groups.clone();
                chosen.swap(0, base);
                best = (cost, chosen);
            }
        }
        if groups.len() <= 1 {
            break;
        }
        groups = joined(&groups, &usages);
    }
    let (_, mut chosen) = best;
    // The base first, the others in the order of their columns.
    chosen[1..].sort_by_key(|group| group.iter().next());
    Grouping::with(all, chosen, usages)
}

/// The split that a table with `columns` columns gets: [`derive()`], but for tables whose rows no
/// procedure writes. All their columns are split, so that a reader need not note the timestamp
/// that every write would advance, which under `tictoc` is one that readers advance, too.
pub fn best(columns: usize, usages: Vec<Usage>) -> Grouping {
    let whole = Grouping::of(columns, ColumnSet::EMPTY, usages);
    match whole.is_read_only() {
        true => {
            let all = whole.groups[0].columns;
            Grouping::of(columns, all, whole.usages)
        }
        false => derive(columns, whole.usages, TIMESTAMPS_MAX),
    }
}

/// The columns to split of a table that has `present` split now, when another split must be
/// worth the change.
pub fn better(columns: usize, present: ColumnSet, usages: Vec<Usage>) -> ColumnSet {
    let (best, now) = (
        best(columns, usages.clone()),
        Grouping::of(columns, present, usages),
    );
    // That a table is only read is no matter of shares.
    let is_worth_it = best.is_read_only() || best.cost <= (1.0 - GAIN_MIN) * now.cost;
    match is_worth_it {
        true => best.split(),
        false => present,
    }
}

/// A group for each set of columns that the same usages observe and write.
fn start(columns: usize, usages: &[Usage]) -> Vec<ColumnSet> {
    if columns == 0 {
        return vec![ColumnSet::EMPTY];
    }
    let mut by_usage: BTreeMap<Vec<(bool, bool)>, ColumnSet> = BTreeMap::new();
    for column in (0..columns as u16).map(ColumnId) {
        let of = |usage: &Usage| {
            (
                usage.observed.contains(column),
                usage.written.contains(column),
            )
        };
        let signature = usages.iter().map(of).collect();
        by_usage.entry(signature).or_default().insert(column);
    }
    let mut groups: Vec<ColumnSet> = by_usage.into_values().collect();
    groups.sort_by_key(|group| group.iter().next());
    while groups.len() > START_MAX {
        // Those alike in how often they are written.
        let written = |group: &ColumnSet| -> f64 {
            let writing = usages
                .iter()
                .filter(|usage| usage.written.intersects(*group));
            writing.map(|usage| usage.share).sum()
        };
        groups.sort_by(|one, other| written(one).total_cmp(&written(other)));
        let gap = |at: &usize| written(&groups[at + 1]) - written(&groups[*at]);
        let closest = (0..groups.len() - 1).min_by(|one, other| gap(one).total_cmp(&gap(other)));
        let at = closest.unwrap_or(0);
        let other = groups.remove(at + 1);
        groups[at] = groups[at].union(other);
    }
    groups
}

/// The groups with the two joined whose joining costs least.
fn joined(groups: &[ColumnSet], usages: &[Usage]) -> Vec<ColumnSet> {
    let mut best: Option<(f64, Vec<ColumnSet>)> = None;
    for one in 0..groups.len() {
        for other in one + 1..groups.len() {
            let mut next = groups.to_vec();
            let removed = next.remove(other);
            next[one] = next[one].union(removed);
            let (cost, _) = cost(&next, usages);
            if best.as_ref().is_none_or(|(least, _)| cost < least - 1e-9) {
                best = Some((cost, next));
            }
        }
    }
    best.map_or_else(|| groups.to_vec(), |(_, next)| next)
}

/// What a grouping costs, and which of its groups is the base then.
fn cost(groups: &[ColumnSet], usages: &[Usage]) -> (f64, usize) {
    let costs = (0..groups.len()).map(|base| {
        let mut ordered = groups.to_vec();
        ordered.swap(0, base);
        (cost_with_base(&ordered, usages), base)
    });
    let least = costs.min_by(|one, other| one.0.total_cmp(&other.0));
    least.unwrap_or((0.0, 0))
}

fn cost_with_base(groups: &[ColumnSet], usages: &[Usage]) -> f64 {
    let mut cost = WORD * (groups.len() - 1) as f64;
    for one in usages {
        let noted = groups
            .iter()
            .filter(|group| one.observed.intersects(**group))
            .count();
        cost += TIMESTAMP * one.share * noted.saturating_sub(1) as f64;
        let own = &groups[1..];
        let advanced = own
            .iter()
            .filter(|group| one.written.intersects(**group))
            .count();
        cost += TIMESTAMP * one.share * advanced as f64;
        for other in usages {
            let in_common = one.observed.intersects(other.written);
            if !in_common && meet(groups, one.observed, other.written) {
                cost += FALSE_CONFLICT * one.share * other.share;
            }
        }
    }
    cost
}

/// Whether a timestamp that covers something observed is advanced; the first group's is advanced by
/// every write.
fn meet(groups: &[ColumnSet], observed: ColumnSet, written: ColumnSet) -> bool {
    if written.is_empty() {
        return false;
    }
    let mut groups = groups.iter();
    let base = groups.next().copied().unwrap_or_default();
    observed.intersects(base)
        || groups.any(|group| observed.intersects(*group) && written.intersects(*group))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS_MAX: usize = 4;

    fn set(columns: &[u16]) -> ColumnSet {
        columns.iter().map(|column| ColumnId(*column)).collect()
    }

    fn usages(list: &[(f64, &[u16], &[u16])]) -> Vec<Usage> {
        let one = |(share, observed, written): &(f64, &[u16], &[u16])| Usage {
            procedure: String::new(),
            op: OpId(0),
            line: None,
            share: *share,
            observed: set(observed),
            written: set(written),
        };
        list.iter().map(one).collect()
    }

    fn groups(grouping: &Grouping) -> Vec<ColumnSet> {
        grouping.groups.iter().map(|group| group.columns).collect()
    }

    /// A reader of a column that is never written does not share with the one that is.
    #[test]
    fn frequently_written_columns_are_split() {
        let grouping = derive(
            4,
            usages(&[(0.5, &[1], &[]), (0.5, &[2], &[3])]),
            GROUPS_MAX,
        );
        assert_eq!(groups(&grouping), [set(&[3]), set(&[0, 1, 2])]);
        assert!(!grouping.meet(set(&[1]), set(&[3])));
        assert!(grouping.cost < grouping.cost_of_one);
    }

    /// A column that no procedure writes needs no timestamp of its own.
    #[test]
    fn constant_tables_are_not_split() {
        let grouping = derive(
            3,
            usages(&[(0.7, &[1], &[]), (0.3, &[0, 2], &[])]),
            GROUPS_MAX,
        );
        assert_eq!(groups(&grouping), [set(&[0, 1, 2])]);
    }

    /// A true conflict is not paid for twice: splitting would not remove it.
    #[test]
    fn columns_in_common_do_not_count() {
        let grouping = derive(
            2,
            usages(&[(0.5, &[0, 1], &[]), (0.5, &[], &[1])]),
            GROUPS_MAX,
        );
        assert!(!grouping.is_split());
    }

    /// Two columns, each read and written by its own procedure, and names that both read: the third
    /// timestamp pays. When one of the procedures is rare, it does not.
    #[test]
    fn three_groups_where_it_pays() {
        let busy = usages(&[(0.3, &[0], &[0]), (0.3, &[1], &[1]), (0.4, &[2], &[])]);
        assert_eq!(derive(3, busy, GROUPS_MAX).groups.len(), 3);
        let rare = usages(&[(0.001, &[0], &[0]), (0.599, &[1], &[1]), (0.4, &[2], &[])]);
        assert_eq!(derive(3, rare, GROUPS_MAX).groups.len(), 2);
    }

    /// What no procedure writes is split as a whole, and what no procedure uses is not.
    #[test]
    fn tables_that_are_only_read_are_split() {
        let reader = usages(&[(1.0, &[1], &[])]);
        assert_eq!(best(3, reader.clone()).split(), set(&[0, 1, 2]));
        assert_eq!(better(3, ColumnSet::EMPTY, reader), set(&[0, 1, 2]));
        assert!(!best(3, Vec::new()).is_split());
    }

    /// Two procedures, each of which reads the column that the other writes: the one that writes
    /// more often has its column in the base. About where they are alike, the split stays as it is,
    /// whichever it is.
    #[test]
    fn a_split_stays_while_another_saves_little() {
        let mix = |share: f64| usages(&[(share, &[0], &[1]), (1.0 - share, &[1], &[0])]);
        let taken = |share: f64, present: &[u16]| better(2, set(present), mix(share));
        for present in [0, 1] {
            assert_eq!(taken(0.9, &[present]), set(&[0]));
            assert_eq!(taken(0.1, &[present]), set(&[1]));
            for share in [0.49, 0.5, 0.51] {
                assert_eq!(taken(share, &[present]), set(&[present]), "{share}");
            }
        }
    }

    /// Many columns, each with procedures of its own, end in few groups, and each column in one.
    #[test]
    fn groups_are_few_and_disjoint() {
        let mut list = Vec::new();
        for column in 0..60_u16 {
            list.push(Usage {
                procedure: String::new(),
                op: OpId(0),
                line: None,
                share: f64::from(column + 1) / 1830.0,
                observed: set(&[column]),
                written: set(&[59 - column]),
            });
        }
        let grouping = derive(60, list, GROUPS_MAX);
        assert!(grouping.groups.len() <= GROUPS_MAX);
        let total: usize = grouping
            .groups
            .iter()
            .map(|group| group.columns.len())
            .sum();
        assert_eq!(total, 60);
    }
}
