//! Updaters as the IR has them.

use kiln_storage::schema::ColumnId;
use kiln_storage::types::{DataType, OutOfLine};

use crate::ir::*;
use crate::procedure::{Parameter, Procedure, ResultShape};
use crate::verify::verify;

/// An updater in the IR, from which the one that runs is lowered
/// ([`Updater::of`](crate::Updater::of)).
#[derive(Debug)]
pub struct UpdaterSource {
    /// Its parameters are the old values and then the operands; it emits the new values.
    pub(crate) procedure: Procedure,
    /// The columns whose old values it takes.
    pub(crate) columns_read: Box<[ColumnId]>,
    /// The number of operands.
    pub(crate) operands: usize,
    /// The columns that it writes, and the registers of their new values.
    pub(crate) columns_written: Box<[(ColumnId, Reg)]>,
    /// Whether it may raise an error.
    pub(crate) can_raise: bool,
    /// The operands of types of byte strings, a bit each.
    pub(crate) byte_strings: u128,
}

impl UpdaterSource {
    /// An updater that runs `body`. Its first registers, of the types `registers`, take the old
    /// values of `columns_read`, the next `operands` ones the operands; then those of
    /// `columns_written` hold the new values. `None` when `body` breaks a rule of the IR.
    pub(super) fn new(
        mut body: Block,
        registers: Vec<DataType>,
        columns_read: Box<[ColumnId]>,
        operands: usize,
        columns_written: Box<[(ColumnId, Reg)]>,
        can_raise: bool,
    ) -> Option<UpdaterSource> {
        let inputs = columns_read.len() + operands;
        let mut byte_strings = 0;
        for (position, data_type) in registers[columns_read.len()..inputs].iter().enumerate() {
            let bit = 1_u128.checked_shl(position as u32)?;
            match data_type.out_of_line() {
                _ if matches!(data_type, DataType::Catalog(_)) => return None,
                // They would have to be copied too.
                OutOfLine::Elements => return None,
                OutOfLine::Bytes => byte_strings |= bit,
                OutOfLine::Nothing | OutOfLine::LongNumbers => {}
            }
        }
        let parameters = registers.iter().take(inputs).enumerate();
        let parameters = parameters.map(|(position, data_type)| Parameter {
            name: String::new(),
            data_type: data_type.clone(),
            register: Reg(position as u16),
        });
        // The new values are what it gives back: so verification looks whether they are there.
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
        let procedure = Procedure {
            name: "updater".to_owned(),
            parameters: parameters.collect(),
            result: ResultShape {
                columns: columns.collect::<Option<_>>()?,
            },
            registers,
            body,
            ..Procedure::default()
        };
        verify(&procedure).ok()?;
        Some(UpdaterSource {
            procedure,
            columns_read,
            operands,
            columns_written,
            can_raise,
            byte_strings,
        })
    }

    /// Whether it may raise an error.
    pub fn can_raise(&self) -> bool {
        self.can_raise
    }
}
