//! `pg_cancel_backend` and `pg_terminate_backend`.

use kiln_engine::Signal;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Instruction, Reg};
use kiln_storage::error::Result;
use kiln_storage::types::DataType;
use sqlparser::ast::Expr;

use super::bound::{Bound, Kind, Operation};
use super::session_value::SessionValue;
use super::{Compiler, Position};
use crate::catalog::SignalSession;

impl Compiler<'_> {
    /// Binds a call of a function that sends a signal to a session; `None` for any other.
    ///
    /// # Errors
    /// 0A000 within a routine, and for one that waits for another session and differs from row to
    /// row; 42883 for other arguments.
    pub(super) fn bind_signal(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Option<Bound>> {
        let signal = match (name, arguments) {
            ("pg_cancel_backend", _) => Signal::Cancel,
            ("pg_terminate_backend", [number, timeout]) => {
                let types = [DataType::Integer, DataType::BigInt];
                self.bind_known_arguments(name, arguments, &types, position)?;
                let value = SessionValue::Terminate([number.to_string(), timeout.to_string()]);
                return self.ask_session(value, name, position).map(Some);
            }
            ("pg_terminate_backend", _) => Signal::Terminate,
            _ => return Ok(None),
        };
        let number = self.bind_arguments_of(name, arguments, &[DataType::Integer], position)?;
        let mut operands = vec![
            self.ask_session(SessionValue::Number, name, position)?,
            self.ask_session(SessionValue::Role, name, position)?,
        ];
        operands.extend(number);
        let kind = Kind::Operation(Operation::Signal(signal), operands);
        Ok(Some(Bound::new(kind, DataType::Boolean, position)))
    }

    /// Emits the signal to a session.
    pub(super) fn emit_signal(
        &mut self,
        signal: Signal,
        operands: &[Bound],
        target: Option<Reg>,
    ) -> Result<Reg> {
        let mut arguments = Vec::with_capacity(operands.len());
        for operand in operands {
            arguments.push(self.emit(operand)?);
        }
        let function = SignalSession {
            current: self.current_catalog()?,
            signal,
        };
        let target = target.unwrap_or_else(|| self.builder.register(DataType::Boolean));
        self.builder.scalar(Instruction::Consult {
            function: Arc::new(function),
            target,
            arguments: arguments.into(),
        });
        Ok(target)
    }
}
