//! Operations, and loops whose bodies are run by calls.

use kiln_storage::schema::ColumnId;

use super::{Lowering, Pending, number};
use crate::code::{
    Columns, Foreseen, Insert, Label, Lookup, NotedUndo, Op, PREFETCH_ITERATIONS_MAX, Prefetch,
    PrefetchedLookup, Protect, Rows, Scan, Walk,
};
use crate::ir::*;

impl Lowering<'_> {
    pub(super) fn operation(&mut self, step: &Step) {
        match step {
            Step::Prefetch {
                first,
                last,
                lookups,
                ..
            } => self.prefetch((*first, *last), lookups, &[]),
            Step::Lookup { .. } => {
                let lookup = self.lookup(step);
                let lookup = number(&mut self.code.lookups, lookup);
                // A conditional on `found` behind it may lead elsewhere.
                let next = self.label();
                let to = self.to(next);
                self.emit(Op::Lookup { lookup, to });
                self.labels[next.0] = Some(self.code.ops.len() as Label);
            }
            Step::Scan {
                op,
                table,
                index,
                range,
                reverse,
                record,
                intent,
                body,
            } => {
                let scan = Scan {
                    op: *op,
                    table: self.table(*table),
                    index: *index as usize,
                    range: (**range).clone(),
                    reverse: *reverse,
                    given: of_op(&self.procedure.given_scans, *op),
                    record: *record,
                    intent: *intent,
                    observed: self.analysis.observed(*op),
                };
                let scan = number(&mut self.code.scans, scan);
                let end = self.label();
                self.emit(Op::Scan {
                    scan,
                    to: self.to(end),
                });
                self.called(end, body);
            }
            Step::Read {
                op,
                table,
                record,
                columns,
            } => {
                let columns = self.columns(*op, *table, *record, columns);
                let read = number(&mut self.code.reads, columns);
                self.emit(Op::Read { read });
            }
            Step::Update {
                op,
                table,
                record,
                columns,
            } => {
                let columns = self.columns(*op, *table, *record, columns);
                let update = number(&mut self.code.updates, columns);
                self.emit(Op::Update { update });
            }
            Step::Insert {
                op,
                table,
                values,
                record,
                conflict,
            } => {
                let insert = Insert {
                    op: *op,
                    table: self.table(*table),
                    values: values.clone(),
                    record: *record,
                    conflict: *conflict,
                };
                let insert = number(&mut self.code.inserts, insert);
                self.emit(Op::Insert { insert });
            }
            Step::Delete { op, table, record } => self.emit(Op::Delete {
                op: *op,
                table: *table,
                record: *record,
            }),
            Step::SaveRecord { target, record } => self.emit(Op::SaveRecord {
                target: *target,
                record: *record,
            }),
            Step::RestoreRecord { record, source } => self.emit(Op::RestoreRecord {
                record: *record,
                source: *source,
            }),
            Step::ForBuffer {
                buffer,
                matching,
                row,
                body,
            } => {
                let walk = Walk {
                    buffer: *buffer,
                    width: self.procedure.buffers[buffer.0 as usize],
                    matching: matching.clone(),
                    row: row.clone(),
                };
                let walk = number(&mut self.code.walks, walk);
                let end = self.label();
                self.emit(Op::ForBuffer {
                    walk,
                    to: self.to(end),
                });
                self.called(end, body);
            }
            Step::Protect {
                region,
                handlers,
                caught,
                body,
            } => {
                let protect = Protect {
                    region: *region,
                    handlers: handlers.clone(),
                    caught: *caught,
                };
                let protect = number(&mut self.code.protects, protect);
                let end = self.label();
                self.emit(Op::Protect {
                    protect,
                    to: self.to(end),
                });
                let outside = std::mem::replace(&mut self.reserved, self.hidden);
                self.called(end, body);
                self.reserved = outside;
            }
            Step::NoteUndo {
                table,
                record,
                undo,
            } => self.note_undo(*table, *record, undo),
            Step::Diagnose {
                region,
                item,
                target,
            } => self.emit(Op::Diagnose {
                region: *region,
                item: *item,
                target: *target,
            }),
            Step::Emit { row } => {
                let row = number(&mut self.code.emits, row.clone());
                self.emit(Op::Emit { row });
            }
            _ => self.rows(step),
        }
    }

    /// Old values are put back through hidden registers behind those of the loops around the
    /// innermost region: loops within it have ended then.
    fn note_undo(&mut self, table: TableRef, record: RecordReg, undo: &Undo) {
        let first = self.reserved;
        let mut back = undo.clone();
        let mut count = 0;
        for register in back.registers_mut() {
            let number = u16::try_from(first + count);
            *register = Reg(number.expect("the IR's limits leave room for hidden registers"));
            count += 1;
        }
        self.code.registers = self.code.registers.max(first + count);
        let noted = NotedUndo {
            table: self.table(table),
            record,
            undo: undo.clone(),
            back,
        };
        let undo = number(&mut self.code.undos, noted);
        self.emit(Op::NoteUndo { undo });
    }

    /// Where a prefetch before the loop around notes what it finds for a look-up.
    fn foreseen(&self, op: OpId) -> Option<Foreseen> {
        let mut foreseen = self.foreseen.iter();
        let (_, first_sighting, ordinal) = foreseen.find(|(known, ..)| *known == op)?;
        let (iteration, first) = *self.counted.last()?;
        Some(Foreseen {
            first_sighting: *first_sighting,
            iteration,
            first,
            ordinal: *ordinal,
        })
    }

    /// What is fetched for the iterations from the one register's value to the other's; and met, if
    /// `body` has the look-ups.
    pub(super) fn prefetch(
        &mut self,
        (first, last): (Reg, Reg),
        lookups: &[PrefetchLookup],
        body: &[Step],
    ) {
        let lookups = lookups.iter().map(|lookup| {
            let first_sighting = self.code.sightings;
            self.code.sightings += PREFETCH_ITERATIONS_MAX;
            if lookup.is_certain {
                self.foreseen
                    .push((lookup.op, first_sighting, lookup.ordinal));
            }
            let step = body
                .iter()
                .find(|step| matches!(step, Step::Lookup { op, .. } if *op == lookup.op));
            PrefetchedLookup {
                table: self.table(lookup.table),
                index: lookup.index as usize,
                key: lookup.key.clone(),
                touched: lookup.touched,
                touched_by_all: lookup.touched_by_all,
                first_sighting,
                met: step.map(|step| self.lookup(step)).zip(lookup.ordinal),
            }
        });
        let lookups = lookups.collect();
        let prefetch = Prefetch {
            first,
            last,
            lookups,
        };
        let prefetch = number(&mut self.code.prefetches, prefetch);
        self.emit(Op::Prefetch { prefetch });
    }

    fn lookup(&self, step: &Step) -> Lookup {
        let Step::Lookup {
            op,
            table,
            index,
            key,
            record,
            found,
            intent,
        } = step
        else {
            unreachable!("called with look-ups");
        };
        Lookup {
            op: *op,
            table: self.table(*table),
            index: *index as usize,
            key: key.clone(),
            record: *record,
            found: *found,
            intent: *intent,
            observed: self.analysis.observed(*op),
            foreseen: self.foreseen(*op),
            given: of_op(&self.procedure.given, *op),
            is_known: self.is_known(*op),
        }
    }

    fn rows(&mut self, step: &Step) {
        let width = |buffer: &BufferId| self.procedure.buffers[buffer.0 as usize];
        let rows = match step {
            Step::BufferClear { buffer } => Rows::Clear { buffer: *buffer },
            Step::BufferFill {
                buffer,
                rows,
                arguments,
            } => Rows::Fill {
                buffer: *buffer,
                rows: rows.clone(),
                arguments: arguments.clone(),
            },
            Step::BufferPush { buffer, row } => Rows::Push {
                buffer: *buffer,
                row: row.clone(),
            },
            Step::BufferPushDistinct {
                buffer,
                row,
                classes,
                added,
            } => Rows::PushDistinct {
                buffer: *buffer,
                row: row.clone(),
                classes: classes.clone(),
                added: *added,
            },
            Step::BufferSort { buffer, by } => Rows::Sort {
                buffer: *buffer,
                width: width(buffer),
                by: by.clone(),
            },
            Step::BufferCount { buffer, target } => Rows::Count {
                buffer: *buffer,
                width: width(buffer),
                target: *target,
            },
            Step::BufferRow { buffer, at, row } => Rows::At {
                buffer: *buffer,
                at: *at,
                row: row.clone(),
            },
            other => unreachable!("{other:?} is lowered elsewhere"),
        };
        let rows = number(&mut self.code.rows, rows);
        self.emit(Op::Rows { rows });
    }

    /// Whether the code is that of a restoration in which the operation gives what it gave.
    fn is_known(&self, op: OpId) -> bool {
        self.changed.is_some_and(|changed| !changed.contains(op))
    }

    pub(super) fn columns(
        &self,
        op: OpId,
        table: TableRef,
        record: RecordReg,
        columns: &[(ColumnId, Reg)],
    ) -> Columns {
        Columns {
            op,
            table: self.table(table),
            record,
            columns: columns.into(),
            is_known: self.is_known(op),
        }
    }

    /// A body that is run by a call.
    fn called(&mut self, end: Pending, body: &[Step]) {
        let again = self.label();
        self.landed = self.code.ops.len();
        self.iterations(again, end, true, body);
        self.land(again);
        self.emit(Op::EndIteration);
        self.land(end);
    }
}

/// What a list has for an operation.
fn of_op<T: Copy>(list: &[(OpId, T)], op: OpId) -> Option<T> {
    let mut list = list.iter();
    list.find(|(known, _)| *known == op)
        .map(|(_, value)| *value)
}
