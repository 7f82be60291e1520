//! A procedure in the IR: what a front end makes, and what is verified, optimised, analysed and
//! lowered.

use kiln_platform::sync::Arc;
use kiln_storage::deferral::DeferredCheck;
use kiln_storage::table::Table;
use kiln_storage::types::DataType;

use crate::ir::*;

/// A parameter of a procedure.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its type; arguments are converted to it.
    pub data_type: DataType,
    /// Its register; the parameters have the first registers, in order.
    pub register: Reg,
}

/// What comes back from a procedure: the rows of its [`Step::Emit`]s.
#[derive(Clone, Debug, Default)]
pub struct ResultShape {
    /// Names and types of the columns; empty when nothing comes back. Every result set of the
    /// procedure shares them.
    pub columns: Arc<[(String, DataType)]>,
}

/// Where a program leaves the keys whose check may wait until the transaction ends.
#[derive(Clone, Debug)]
pub struct DeferredKeys {
    /// The constraint.
    pub check: DeferredCheck,
    /// A row of it is a key.
    pub buffer: BufferId,
    /// The types of its columns.
    pub types: Vec<DataType>,
}

/// A procedure in the IR.
#[derive(Clone, Debug, Default)]
pub struct Procedure {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// What it returns.
    pub result: ResultShape,
    /// The type of each register.
    pub registers: Vec<DataType>,
    /// The number of record registers.
    pub records: usize,
    /// The width of each row buffer.
    pub buffers: Vec<usize>,
    /// The number of protected regions.
    pub regions: usize,
    /// Keys whose checks may wait until the transaction ends.
    pub deferred: Vec<DeferredKeys>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The tables that its operations name by [`TableRef`].
    pub tables: Vec<Arc<Table>>,
    /// The operations, by [`OpId`].
    pub operations: Vec<Operation>,
    /// The steps.
    pub body: Block,
    /// The look-ups outside of loops whose keys arguments alone decide, with the ordinal and the
    /// iteration by which each is known. Those of a reconnaissance have the numbers of the
    /// procedure's own.
    pub given: Vec<(OpId, GivenLookup)>,
    /// The scans whose ranges arguments alone decide, with numbers: equal ones have equal ranges.
    /// Those of a reconnaissance have the numbers of the procedure's own.
    pub given_scans: Vec<(OpId, u16)>,
}

impl Procedure {
    /// Whether a register is a parameter's or a constant's, and so has one value in a call.
    pub(crate) fn is_given(&self, register: Reg) -> bool {
        let mut parameters = self.parameters.iter();
        parameters.any(|parameter| parameter.register == register)
            || (self.constants.iter()).any(|constant| constant.register == register)
    }
}
