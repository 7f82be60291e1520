//! Which look-ups and scans find records that will be written.

use std::collections::BTreeSet;

use crate::ir::*;
use crate::names::{for_each_step, for_each_step_mut};
use crate::procedure::Procedure;

/// Gives [`Intent::Write`] to every look-up and scan whose record, or a saved copy of its handle,
/// is updated or deleted, on whatever path: a lock taken too strong is better than one that must
/// be strengthened later.
///
/// A record register that several operations set counts as written for all of them.
pub fn set_intents(procedure: &mut Procedure) {
    let mut records: BTreeSet<RecordReg> = BTreeSet::new();
    let mut registers: BTreeSet<Reg> = BTreeSet::new();
    let mut columns: BTreeSet<(BufferId, usize)> = BTreeSet::new();
    for_each_step(&procedure.body, &mut |step| {
        if let Step::Update { record, .. } | Step::Delete { record, .. } = step {
            records.insert(*record);
        }
    });
    // From a written record backwards over saved handles, which may have come through buffers,
    // until nothing is new.
    loop {
        let before = (records.len(), registers.len(), columns.len());
        for_each_step(&procedure.body, &mut |step| match step {
            Step::RestoreRecord { record, source } if records.contains(record) => {
                registers.insert(*source);
            }
            Step::SaveRecord { target, record } if registers.contains(target) => {
                records.insert(*record);
            }
            Step::ForBuffer { buffer, row, .. } => {
                for (column, register) in row.iter().enumerate() {
                    if registers.contains(register) {
                        columns.insert((*buffer, column));
                    }
                }
            }
            Step::BufferPush { buffer, row } => {
                for (column, register) in row.iter().enumerate() {
                    if columns.contains(&(*buffer, column)) {
                        registers.insert(*register);
                    }
                }
            }
            _ => {}
        });
        if before == (records.len(), registers.len(), columns.len()) {
            break;
        }
    }
    for_each_step_mut(&mut procedure.body, &mut |step| {
        if let Step::Lookup { record, intent, .. } | Step::Scan { record, intent, .. } = step {
            *intent = if records.contains(record) {
                Intent::Write
            } else {
                Intent::Read
            };
        }
    });
}
