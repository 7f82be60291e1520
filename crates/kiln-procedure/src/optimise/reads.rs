//! One read of several columns instead of several reads in a row.

use super::dead::may_raise;
use super::numbering::has_blocks;
use crate::ir::*;
use crate::names::{Use, step_blocks_mut, step_record, step_registers};

/// Moves the columns of a read to an earlier read of the same record in the same block, when
/// control goes straight from the one to the other, and no step between names the registers that
/// move, finds the record anew, or may change the columns; nor, in a protected region, may raise:
/// the handler of the error would find the registers written too early.
pub(super) fn merge(block: &mut Block) {
    merge_in(block, false);
}

fn merge_in(block: &mut Block, is_protected: bool) {
    for step in block.iter_mut() {
        let is_protected = is_protected || matches!(step, Step::Protect { .. });
        for inner in step_blocks_mut(step).into_iter().flatten() {
            merge_in(inner, is_protected);
        }
    }
    let mut later = 1;
    while later < block.len() {
        let Some(earlier) = earlier_read(block, later, is_protected) else {
            later += 1;
            continue;
        };
        let Step::Read { columns: moved, .. } = block.remove(later) else {
            unreachable!("only reads are moved");
        };
        if let Step::Read { columns, .. } = &mut block[earlier] {
            *columns = columns.iter().chain(&moved).copied().collect();
        }
    }
}

/// The read that the one at `later` can be joined to.
fn earlier_read(block: &Block, later: usize, is_protected: bool) -> Option<usize> {
    let Step::Read {
        table,
        record,
        columns,
        ..
    } = &block[later]
    else {
        return None;
    };
    for earlier in (0..later).rev() {
        let step = &block[earlier];
        let mut names_target = false;
        step_registers(step, &mut |register, _| {
            names_target |= columns.iter().any(|(_, target)| target == register);
        });
        if names_target || has_blocks(step) || step_record(step) == Some((*record, Use::Write)) {
            return None;
        }
        match step {
            Step::Read {
                table: other,
                record: read,
                ..
            } if other == table && read == record => {
                return Some(earlier);
            }
            Step::Exit { .. }
            | Step::Continue { .. }
            | Step::Return
            | Step::Raise { .. }
            | Step::RaiseAgain { .. } => {
                return None;
            }
            Step::Delete { .. } | Step::Update { .. } if is_protected => return None,
            Step::Delete { table: other, .. } if other == table => return None,
            Step::Update {
                table: other,
                columns: written,
                ..
            } if other == table => {
                let moves = |column| columns.iter().any(|(moved, _)| *moved == column);
                if written.iter().any(|(column, _)| moves(*column)) {
                    return None;
                }
            }
            _ if is_protected && may_raise(step) => return None,
            _ => {}
        }
    }
    None
}
