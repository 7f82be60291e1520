//! A compiled procedure.

use std::ops::Deref;

use kiln_platform::sync::{Arc, OnceLock};
use kiln_storage::schema::ColumnSet;

use crate::analysis::Analysis;
use crate::calls::CallCounts;
use crate::code::Code;
use crate::ir::OpId;
use crate::procedure::Procedure;
use crate::restoration::{Change, Restoration, Restorations, Whole};

/// A compiled procedure: immutable, shared by all workers. It is its [`Procedure`] with what was
/// found out of that.
#[derive(Debug, Default)]
pub struct Program {
    /// The procedure in the IR.
    pub procedure: Procedure,
    /// What the first analysis found.
    pub analysis: Analysis,
    /// What the executor runs.
    pub code: Code,
    /// What [`Program::reconnaissance`] gives, made when a protocol first asks; `None` inside when
    /// the procedure itself serves.
    pub reconnaissance: OnceLock<Option<Box<Program>>>,
    /// As `reconnaissance`, for [`Program::reconnaissance_with_keys`].
    pub reconnaissance_with_keys: OnceLock<Option<Box<Program>>>,
    /// What [`Program::restoration`] gives, made when a protocol first asks.
    pub restorations: Restorations,
    /// How often it was called, where it is a stored procedure's: set once, when that is created.
    pub calls: OnceLock<Arc<CallCounts>>,
}

impl Deref for Program {
    type Target = Procedure;

    #[inline(always)]
    fn deref(&self) -> &Procedure {
        &self.procedure
    }
}

impl Program {
    /// A procedure with its analysis, lowered to the form that is run.
    pub(crate) fn of(procedure: Procedure, analysis: Analysis) -> Program {
        let code = Code::of(&procedure, &analysis);
        Program {
            procedure,
            analysis,
            code,
            ..Program::default()
        }
    }

    /// What runs again when a record that `op`, a look-up or a scan, has met is found to have
    /// changed.
    pub fn restoration(&self, op: OpId, change: Change) -> &Restoration {
        let whole = Whole {
            procedure: &self.procedure,
            analysis: &self.analysis,
            code: &self.code,
        };
        self.restorations.of(whole, op, change)
    }

    /// Whether an operation finds its records by columns that can change.
    pub fn finds_by_changeable(&self, op: OpId) -> bool {
        let operation = &self.operations[op.0 as usize];
        let mut tables = self.tables.iter();
        let table = tables.find(|table| table.id() == operation.table);
        let primary: Option<ColumnSet> =
            table.map(|table| table.schema().primary_key.iter().copied().collect());
        let keys = self.analysis.operation(op).key_columns;
        primary.is_none_or(|primary| !keys.difference(primary).is_empty())
    }
}
