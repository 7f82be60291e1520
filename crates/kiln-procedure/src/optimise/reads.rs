//! One read of several columns instead of several reads in a row.

use crate::analysis::names::{Use, step_blocks_mut, step_record, step_registers};
use crate::ir::*;

/// Moves the columns of a read to an earlier read of the same record in the same block, when
/// between the two there are only computations, look-ups and other reads, none of which names the
/// registers that move or finds the record anew.
pub(super) fn merge(block: &mut Block) {
    for step in block.iter_mut() {
        for inner in step_blocks_mut(step).into_iter().flatten() {
            merge(inner);
        }
    }
    let mut later = 1;
    while later < block.len() {
        match earlier_read(block, later) {
            Some(earlier) => {
                let Step::Read { columns: moved, .. } = block.remove(later) else {
                    unreachable!("only reads are moved");
                };
                if let Step::Read { columns, .. } = &mut block[earlier] {
                    *columns = columns.iter().chain(&moved).copied().collect();
                }
            }
            None => later += 1,
        }
    }
}

/// The read that the one at `later` can be joined to.
fn earlier_read(block: &Block, later: usize) -> Option<usize> {
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
        if names_target {
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
            Step::Scalar(_) | Step::Read { .. } => {}
            Step::Lookup { .. } if step_record(step) != Some((*record, Use::Write)) => {}
            _ => return None,
        }
    }
    None
}
