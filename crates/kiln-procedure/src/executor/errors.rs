//! Errors and notices that a program raises.

use kiln_storage::error::Error;
use kiln_storage::slot::Memory;

use crate::frame::{Frame, Notice};
use crate::ir::*;

/// Notes a notice for the client.
#[cold]
pub(super) fn notice(frame: &mut Frame, level: &'static str, failure: &Failure) {
    let message = message(&frame.memory, failure);
    frame.notices.push(Notice { level, message });
}

/// The error that a program raises.
#[cold]
pub(crate) fn error(memory: &Memory, failure: &Failure) -> Error {
    let mut error = Error::new(failure.state, message(memory, failure));
    let text = |source: &TextSource| match source {
        TextSource::Literal(text) => Some(text.clone()),
        TextSource::Register(register) => {
            let slot = memory.slots[register.0 as usize];
            (!slot.is_null()).then(|| memory.heap.str(slot).to_owned())
        }
    };
    if let Some(detail) = failure.detail.as_ref().and_then(text) {
        error = error.with_detail(detail);
    }
    if let Some(hint) = failure.hint.as_ref().and_then(text) {
        error = error.with_hint(hint);
    }
    if let Some(subject) = &failure.subject {
        error = error.about((**subject).clone());
    }
    if let Some((line, column)) = failure.position {
        error = error.at(line, column);
    }
    error
}

fn message(memory: &Memory, failure: &Failure) -> String {
    if failure.arguments.is_empty() {
        return failure.message.clone();
    }
    let mut arguments = failure.arguments.iter();
    let mut message = String::new();
    let mut characters = failure.message.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            message.push(character);
        } else if characters.next_if_eq(&'%').is_some() {
            message.push('%');
        } else if let Some(register) = arguments.next() {
            let slot = memory.slots[register.0 as usize];
            let heap = &memory.heap;
            message.push_str(if slot.is_null() {
                "<NULL>"
            } else {
                heap.str(slot)
            });
        }
    }
    message
}
