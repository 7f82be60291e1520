//! Updates that can be deferred to the commit: the same steps twice.

use kiln_platform::sync::Arc;
use kiln_storage::schema::ColumnSet;

use super::{Lowering, number};
use crate::analysis::DeferredUpdate;
use crate::code::{Defer, Op, Updater};
use crate::ir::*;

impl Lowering<'_> {
    /// An update that can be deferred to the commit, with the steps of its region: once for
    /// accesses that do, and once as it stands.
    ///
    /// ```text
    ///       unless deferring, to plain
    ///       the region without what is deferred to the commit
    ///       defer, and to end
    ///       what is deferred to the commit, and the update        an operand is NULL
    ///       to end
    /// plain the region, and the update
    /// end
    /// ```
    pub(super) fn deferrable(&mut self, deferred: &DeferredUpdate, region: &[Step], update: &Step) {
        let Step::Update {
            table,
            record,
            columns,
            ..
        } = update
        else {
            unreachable!("only updates are deferred to the commit")
        };
        let (plain, end) = (self.label(), self.label());
        self.emit(Op::UnlessDeferring { to: self.to(plain) });
        self.landed = self.code.ops.len();
        for (step, is_elided) in region.iter().zip(&deferred.elided) {
            if !is_elided {
                self.part_of(deferred, step, false);
            }
        }
        let indexed = columns.iter().copied();
        let indexed = indexed.filter(|(column, _)| !deferred.columns.contains(*column));
        let defer = Defer {
            op: deferred.op,
            table: self.table(*table),
            record: *record,
            updater: Arc::new(Updater::of(&deferred.updater)),
            operands: deferred.operands.clone(),
            guard: deferred.guard.clone(),
            indexed: indexed.collect(),
        };
        let defer = number(&mut self.code.defers, defer);
        self.emit(Op::Defer {
            defer,
            to: self.to(end),
        });
        if !deferred.guard.is_empty() {
            self.landed = self.code.ops.len();
            for (step, is_elided) in region.iter().zip(&deferred.elided) {
                if *is_elided {
                    self.step(step);
                } else {
                    self.part_of(deferred, step, true);
                }
            }
            self.step(update);
            self.emit(Op::Jump { to: self.to(end) });
        }
        self.land(plain);
        for step in region {
            self.step(step);
        }
        self.step(update);
        self.land(end);
    }

    /// What a step of a region reads that is, or is not, deferred to the commit; steps that are no
    /// reads are not left.
    fn part_of(&mut self, deferred: &DeferredUpdate, step: &Step, is_deferred: bool) {
        let Step::Read {
            op,
            table,
            record,
            columns,
        } = step
        else {
            if !is_deferred {
                self.step(step);
            }
            return;
        };
        let unread = deferred.unread.iter().find(|(read, _)| read == op);
        let unread = unread.map_or(ColumnSet::EMPTY, |(_, columns)| *columns);
        let columns: Vec<_> = columns
            .iter()
            .copied()
            .filter(|(column, _)| unread.contains(*column) == is_deferred)
            .collect();
        if !columns.is_empty() {
            let columns = self.columns(*op, *table, *record, &columns);
            let read = number(&mut self.code.reads, columns);
            self.emit(Op::Read { read });
        }
    }
}
