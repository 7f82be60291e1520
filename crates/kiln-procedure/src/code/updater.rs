//! What an update does to a record, as a small program of its own: old columns and captured
//! operands in, new columns out (STO §6.1).
//!
//! The analysis makes one of every update whose old values no other step of its procedure looks at
//! ([`analysis::updaters`](crate::analysis::updaters)). A protocol with commit-time updates keeps
//! the operands when the update comes, and runs the updater when it holds the record's lock: so it
//! need not have observed what it changes.
//!
//! An updater is verified and lowered by the same code as procedures are. It touches no record but
//! the one that it is for, and no other memory than the one that it is given. It may raise; then
//! the transaction is rejected, as it would have been by the procedure.

use kiln_storage::schema::{ColumnId, ColumnSet};

use super::Code;
use crate::analysis::{Analysis, UpdaterSource};
use crate::ir::Reg;

/// What an update does to a record.
#[derive(Debug)]
pub struct Updater {
    pub(crate) code: Code,
    columns_read: Box<[(ColumnId, Reg)]>,
    columns_written: Box<[(ColumnId, Reg)]>,
    operands: usize,
    read: ColumnSet,
    written: ColumnSet,
    can_raise: bool,
    /// The operands of types of byte strings, a bit each.
    byte_strings: u128,
}

impl Updater {
    /// Lowers an updater.
    pub fn of(source: &UpdaterSource) -> Updater {
        let (read, written) = (source.columns_read.iter(), source.columns_written.iter());
        let registers = (0..).map(Reg);
        Updater {
            code: Code::of(&source.procedure, &Analysis::default()),
            columns_read: read.clone().copied().zip(registers).collect(),
            columns_written: source.columns_written.clone(),
            operands: source.operands,
            read: read.copied().collect(),
            written: written.map(|(column, _)| *column).collect(),
            can_raise: source.can_raise,
            byte_strings: source.byte_strings,
        }
    }

    /// The columns whose old values it takes, and the registers in which it expects them.
    #[inline(always)]
    pub fn inputs(&self) -> &[(ColumnId, Reg)] {
        &self.columns_read
    }

    /// The columns that it writes, and the registers in which their values are after
    /// [`Updater::run`].
    #[inline(always)]
    pub fn outputs(&self) -> &[(ColumnId, Reg)] {
        &self.columns_written
    }

    /// The columns whose old values it takes.
    #[inline(always)]
    pub fn columns_read(&self) -> ColumnSet {
        self.read
    }

    /// The columns that it writes.
    #[inline(always)]
    pub fn columns_written(&self) -> ColumnSet {
        self.written
    }

    /// The number of operands.
    #[inline(always)]
    pub fn operand_count(&self) -> usize {
        self.operands
    }

    /// Whether the operand at this position is of a type of byte strings.
    #[inline(always)]
    pub fn is_byte_string(&self, position: usize) -> bool {
        self.byte_strings >> position & 1 != 0
    }

    /// Whether it may raise an error.
    pub fn can_raise(&self) -> bool {
        self.can_raise
    }
}
