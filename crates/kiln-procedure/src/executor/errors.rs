//! Errors and notices that a program raises.

use kiln_storage::error::Error;

use super::{Executor, Flow};
use crate::access::Access;
use crate::frame::Notice;
use crate::ir::*;

impl<'a, A: Access> Executor<'a, A> {
    #[cold]
    pub(super) fn raise(&mut self, error: &Failure) -> Flow {
        let error = self.error(error);
        attempt!(self, Err(error))
    }

    #[cold]
    fn error(&self, failure: &Failure) -> Error {
        let mut error = Error::new(failure.state, self.message(failure));
        let text = |source: &TextSource| match source {
            TextSource::Literal(text) => Some(text.clone()),
            TextSource::Register(register) => {
                let slot = self.get(*register);
                (!slot.is_null()).then(|| self.frame.memory.heap.str(slot).to_owned())
            }
        };
        if let Some(detail) = failure.detail.as_ref().and_then(text) {
            error = error.with_detail(detail);
        }
        if let Some(hint) = failure.hint.as_ref().and_then(text) {
            error = error.with_hint(hint);
        }
        if let Some(constraint) = &failure.constraint {
            error = error.with_constraint(constraint);
        }
        if let Some((line, column)) = failure.position {
            error = error.at(line, column);
        }
        error
    }

    fn message(&self, failure: &Failure) -> String {
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
                let slot = self.get(*register);
                let heap = &self.frame.memory.heap;
                message.push_str(if slot.is_null() {
                    "<NULL>"
                } else {
                    heap.str(slot)
                });
            }
        }
        message
    }

    #[cold]
    pub(super) fn notice(&mut self, level: &'static str, failure: &Failure) {
        let message = self.message(failure);
        self.frame.notices.push(Notice { level, message });
    }
}
