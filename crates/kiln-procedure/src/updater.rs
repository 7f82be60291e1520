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

use kiln_storage::error::Error;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::types::DataType;

use crate::code::{Code, Op};
use crate::executor::compute::match_op;
use crate::ir::*;
use crate::program::{Parameter, Program, ResultShape};

/// What an update does to a record; see the [module](self).
#[derive(Debug)]
pub struct Updater {
    code: Code,
    columns_read: Box<[(ColumnId, Reg)]>,
    columns_written: Box<[(ColumnId, Reg)]>,
    operands: usize,
    read: ColumnSet,
    written: ColumnSet,
    can_raise: bool,
    /// The operands that lie in a heap, a bit each.
    with_bytes: u128,
}

impl Updater {
    /// An updater that runs `body`. Its first registers, of the types `registers`, take the old
    /// values of `columns_read`, the next `operands` ones the operands; then those of
    /// `columns_written` hold the new values. `None` when `body` breaks a rule of the IR.
    pub(crate) fn new(
        body: Block,
        registers: Vec<DataType>,
        columns_read: &[ColumnId],
        operands: usize,
        columns_written: Box<[(ColumnId, Reg)]>,
        can_raise: bool,
    ) -> Option<Updater> {
        let inputs = columns_read.len() + operands;
        let mut with_bytes = 0;
        for (position, data_type) in registers[columns_read.len()..inputs].iter().enumerate() {
            match data_type {
                DataType::Char(_)
                | DataType::VarChar(_)
                | DataType::Text
                | DataType::Bytea
                | DataType::Uuid
                | DataType::Interval => with_bytes |= 1_u128.checked_shl(position as u32)?,
                // Their elements would have to be copied too.
                DataType::Array(_) | DataType::Catalog(_) => return None,
                _ if position >= u128::BITS as usize => return None,
                _ => {}
            }
        }
        let parameters = registers.iter().take(inputs).enumerate();
        let parameters = parameters.map(|(position, data_type)| Parameter {
            name: String::new(),
            data_type: data_type.clone(),
            register: Reg(position as u16),
        });
        // The new values are what it gives back: so verification looks whether they are there.
        let mut body = body;
        body.push(Step::Emit {
            row: columns_written
                .iter()
                .map(|(_, register)| *register)
                .collect(),
        });
        let columns = columns_written.iter();
        let columns = columns.map(|(_, register)| {
            let data_type = registers.get(register.0 as usize)?;
            Some((String::new(), data_type.clone()))
        });
        let program = Program {
            name: "updater".to_owned(),
            parameters: parameters.collect(),
            result: ResultShape {
                columns: columns.collect::<Option<_>>()?,
            },
            registers,
            body,
            ..Program::default()
        };
        crate::verify::verify(&program).ok()?;
        let registers = columns_read.iter().enumerate();
        Some(Updater {
            code: Code::of(&program),
            columns_read: registers
                .map(|(position, column)| (*column, Reg(position as u16)))
                .collect(),
            operands,
            read: columns_read.iter().copied().collect(),
            written: columns_written.iter().map(|(column, _)| *column).collect(),
            columns_written,
            can_raise,
            with_bytes,
        })
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
    pub fn operand_count(&self) -> usize {
        self.operands
    }

    /// Whether the operand at this position lies in a heap, and must be copied to be kept.
    #[inline(always)]
    pub fn operand_has_bytes(&self, position: usize) -> bool {
        self.with_bytes >> position & 1 != 0
    }

    /// Whether it may raise an error.
    pub fn can_raise(&self) -> bool {
        self.can_raise
    }

    /// Makes room for its registers and puts the operands into theirs. Their bytes are in the
    /// memory's heap.
    #[inline]
    pub fn prepare(&self, operands: &[Slot], memory: &mut Memory) {
        if memory.slots.len() < self.code.registers {
            memory.slots.resize(self.code.registers, Slot::NULL);
        }
        let first = self.columns_read.len();
        memory.slots[first..first + self.operands].copy_from_slice(operands);
    }

    /// Computes the new values. The old ones and the operands are in their registers.
    ///
    /// # Errors
    /// What the procedure would have raised: 22003, 22012, 23502, 23514, ….
    pub fn run(&self, memory: &mut Memory) -> Result<(), Error> {
        let code = &self.code;
        let mut next = 0;
        macro_rules! get {
            ($register:expr) => {
                memory.slots[$register.0 as usize]
            };
        }
        macro_rules! set {
            ($register:expr, $slot:expr) => {{
                let slot: Slot = $slot;
                memory.slots[$register.0 as usize] = slot;
            }};
        }
        macro_rules! jump {
            ($to:expr) => {
                next = $to as usize
            };
        }
        macro_rules! jump_if {
            ($truth:expr, $when:expr, $to:expr) => {
                if ($truth) == $when {
                    jump!($to);
                }
            };
        }
        macro_rules! entry {
            ($table:expr, $number:expr) => {
                &$table[$number as usize]
            };
        }
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(error) => return Err(error),
                }
            };
        }
        // An updater is short, and nothing ends it before its time.
        macro_rules! called {
            () => {};
        }
        macro_rules! refetch {
            () => {};
        }
        loop {
            let op = code.ops[next];
            next += 1;
            match_op! { op, code, *memory, [get, set, jump, jump_if, entry, attempt, called, refetch] {
                Op::Return => return Ok(()),
                // Only says which registers hold the result.
                Op::Emit { .. } => {}
                other => unreachable!("{other:?} is no computation"),
            } }
        }
    }
}
