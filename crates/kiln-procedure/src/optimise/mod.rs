//! What is improved in a program before it is verified and analysed.
//!
//! A front end compiles one statement at a time, so a procedure that reads a row, tests it and
//! writes it looks the same key up three times. [`merge_lookups`] makes one record handle of
//! them: fewer index look-ups, and protocols see that it is one record. [`set_intents`] then
//! tells each look-up whether its record will be written.
//!
//! | module | does |
//! |---|---|
//! | `numbering` | value numbering: repeated look-ups, repeated reads, repeated computations, copies |
//! | `expressions` | what computations compute, so that two of the same are known |
//! | `effects` | what a block may write |
//! | `reads` | one read instead of several in a row |
//! | `nulls` | tests for NULL that are decided |
//! | `dead` | steps whose result no other step reads |
//! | `live` | registers written again before they are read |
//! | `sink` | columns read only in the branch that needs them |
//! | `coalesce` | one register where a value was computed in one and moved to another |
//! | `intents` | which records are written later |
//! | `undo` | how the changes of protected regions are taken back |
//! | `registers` | registers and records numbered anew, without those that nothing names |
//! | `prefetch` | the records of a loop fetched before it |
//! | `given` | scans whose ranges arguments alone decide |
//!
//! A repeated look-up or read gives what the first one gave: the transaction is serializable, and
//! nothing of its own came between, which is what the passes prove. Nothing that can raise is
//! removed or moved.

mod coalesce;
mod dead;
mod effects;
mod expressions;
mod given;
mod intents;
mod live;
mod nulls;
mod numbering;
mod prefetch;
mod reads;
mod registers;
mod sink;
mod undo;

use crate::ir::OpId;
use crate::names::{for_each_step, for_each_step_mut, step_operation, step_operation_mut};
use crate::procedure::Procedure;

pub(crate) use dead::remove_unused;
pub(crate) use effects::Effects;
pub use given::number_scans;
pub use intents::set_intents;
pub(crate) use prefetch::ORDINALS_MAX;
pub use prefetch::add_prefetches;
pub use registers::renumber_registers;
pub use undo::note_undo;
pub(crate) use undo::noted_values;

/// Gives one record handle to all look-ups of one key, reads no column twice that cannot have
/// changed, computes nothing twice from the same values, propagates copies, and removes what became
/// useless. Operations are numbered anew, in the order of the program, so that an operation has a
/// lower number than those in its body.
///
/// Two look-ups are of one key when they are on one table and set of unique columns, the values are
/// the same (same register and not written between, copies of one another, or computed in the same
/// way from the same values by anything but a builtin), the first comes before the second on every
/// path within one iteration of every loop around both, and between them the procedure inserts or
/// deletes no record of the table and updates none of the columns. The record of a scan or of
/// another index is also recognised when its key columns are known: from a read, from the scan's
/// prefix, or from its own look-up.
///
/// Not recognised: a key read in a scan that ended (`SELECT min(k)` and then a look-up of `k`), as
/// the scan may have found nothing; a record that this procedure inserted; a look-up that only
/// one branch of a conditional made before; keys that separate calls of a builtin gave.
pub fn merge_lookups(procedure: &mut Procedure) {
    numbering::run(procedure);
    reads::merge(&mut procedure.body);
    nulls::run(procedure);
    live::run(procedure);
    dead::remove(procedure);
    sink::run(procedure);
    coalesce::run(procedure);
    renumber_operations(procedure);
}

/// Numbers the operations that are left in the order of the program.
pub(crate) fn renumber_operations(procedure: &mut Procedure) {
    let mut order = Vec::with_capacity(procedure.operations.len());
    for_each_step(&procedure.body, &mut |step| {
        order.extend(step_operation(step))
    });
    if order
        .iter()
        .any(|op| op.0 as usize >= procedure.operations.len())
    {
        // Verification reports it.
        return;
    }
    let operations = order
        .iter()
        .map(|op| procedure.operations[op.0 as usize].clone())
        .collect();
    procedure.operations = operations;
    let mut next = 0;
    for_each_step_mut(&mut procedure.body, &mut |step| {
        if let Some(op) = step_operation_mut(step) {
            *op = OpId(next);
            next += 1;
        }
    });
}
