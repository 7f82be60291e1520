//! Whether a call that is made again writes the same, and whether it draws from sequences.
//!
//! Scans follow the keys of indexes, which are unique, so that the order of rows is a function of
//! the rows. What is left are builtins whose result differs from call to call, handlers that may
//! catch a shortage of memory, and numbers of rows whose tables have no primary key: these come
//! from the memory of the worker that inserts the row.

use kiln_storage::error::SqlState;

use crate::ir::*;
use crate::names::for_each_step;
use crate::procedure::Procedure;

/// See [`Analysis::draws`](super::Analysis::draws) and
/// [`Analysis::advances`](super::Analysis::advances).
pub(super) fn draws_and_advances(procedure: &Procedure) -> (bool, bool) {
    let (mut draws, mut advances) = (false, false);
    for_each_step(&procedure.body, &mut |step| {
        if let Step::Scalar(Instruction::Consult { function, .. }) = step {
            draws |= function.draws();
            advances |= function.advances();
        }
    });
    (draws, advances)
}

/// See [`Analysis::is_deterministic`](super::Analysis::is_deterministic).
pub(super) fn is_deterministic(procedure: &Procedure) -> bool {
    let mut is_deterministic = true;
    for_each_step(&procedure.body, &mut |step| {
        is_deterministic &= match step {
            // Clocks and random numbers. What takes no arguments and gives the same each time would
            // be a constant.
            Step::Scalar(Instruction::Call { arguments, .. }) => !arguments.is_empty(),
            // The answer may be another one by then.
            Step::Scalar(Instruction::Consult { .. }) | Step::BufferFill { .. } => false,
            // Whether memory is short is no function of the rows.
            Step::Protect { handlers, .. } => {
                let mut conditions = handlers.iter().flatten();
                !conditions.any(|condition| condition.catches(SqlState::OUT_OF_MEMORY))
            }
            Step::Insert { table, .. } => {
                let table = &procedure.tables[table.0 as usize];
                table.layout().row_number().is_none()
            }
            _ => true,
        };
    });
    is_deterministic
}
