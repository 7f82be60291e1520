//! `pg_notify`, and to which channels a session listens.

use kiln_procedure::ir::{Instruction, Reg, Step};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType, Value};
use sqlparser::ast::Expr;

use super::bound::{Bound, Kind, Operation, RowFunction};
use super::functions::{self, Named};
use super::session_value::SessionValue;
use super::{Compiler, Position};

/// Bytes that a channel's name may have.
const CHANNEL_BYTES_MAX: usize = 63;
/// Bytes that a payload may have.
const PAYLOAD_BYTES_MAX: usize = 7_999;

/// The channel of a notification.
const CHANNEL: Named = ("notify_channel", |heap, operands| {
    let name = operands.first().filter(|slot| !slot.is_null());
    match name.map(|name| heap.str(*name).len()) {
        None | Some(0) => Err(refused("channel name cannot be empty")),
        Some(bytes) if bytes > CHANNEL_BYTES_MAX => Err(refused("channel name too long")),
        Some(_) => Ok(operands[0]),
    }
});

/// The payload of a notification: the empty text for NULL.
const PAYLOAD: Named = ("notify_payload", payload);

fn payload(heap: &mut Heap, operands: &[Slot]) -> Result<Slot> {
    match operands.first().filter(|slot| !slot.is_null()) {
        None => Ok(heap.push_str("")),
        Some(text) if heap.str(*text).len() > PAYLOAD_BYTES_MAX => {
            Err(refused("payload string too long"))
        }
        Some(text) => Ok(*text),
    }
}

fn refused(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Compiler<'_> {
    /// Binds a call of `pg_notify`; `None` for any other.
    ///
    /// # Errors
    /// 42883 for other arguments.
    pub(super) fn bind_notify(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        position: Position,
    ) -> Result<Option<Bound>> {
        if name != "pg_notify" {
            return Ok(None);
        }
        let types = [DataType::Text, DataType::Text];
        let operands = self.bind_arguments_of(name, arguments, &types, position)?;
        let checked = operands.into_iter().zip([CHANNEL, PAYLOAD]);
        let checked = checked.map(|(operand, check)| {
            functions::direct(check, vec![operand], DataType::Text, position)
        });
        let kind = Kind::Operation(Operation::Notify, checked.collect());
        let void = DataType::Catalog(CatalogType::Void);
        Ok(Some(Bound::new(kind, void, position)))
    }

    /// Emits the notification. A call gives the empty text.
    pub(super) fn emit_notify(&mut self, operands: &[Bound], target: Option<Reg>) -> Result<Reg> {
        let [channel, payload] = operands else {
            return Err(Error::internal(
                "a notification has a channel and a payload",
            ));
        };
        let (channel, payload) = (self.emit(channel)?, self.emit(payload)?);
        self.builder.push(Step::Notify { channel, payload });
        let void = DataType::Catalog(CatalogType::Void);
        let nothing = self.builder.constant(void, Value::Text(String::new()));
        Ok(match target {
            None => nothing,
            Some(target) => {
                let source = nothing;
                self.builder.scalar(Instruction::Move { target, source });
                target
            }
        })
    }

    /// Binds a call of `pg_listening_channels`; `None` for any other.
    ///
    /// # Errors
    /// 0A000 within a routine.
    pub(super) fn bind_channels(
        &mut self,
        name: &str,
        arguments: usize,
        position: Position,
    ) -> Result<Option<RowFunction>> {
        if name != "pg_listening_channels" || arguments > 0 {
            return Ok(None);
        }
        let channels = self.ask_session(SessionValue::Channels, name, position)?;
        Ok(Some(RowFunction::Unnest(channels, None)))
    }
}
