//! RAISE and ASSERT.

use kiln_procedure::ir::{Failure, Instruction, Reg, Step, TextSource};
use kiln_storage::error::{Result, SqlState, Subject};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast;

use super::super::bound::Bound;
use super::super::coerce::{self, CastContext};
use super::super::{Compiler, Position, fail, unsupported};
use super::at;
use super::body::Body;
use super::exception::outside_handler;
use super::variables::{failure, refuse};
use crate::parse::Expression;
use crate::parse::plpgsql::{Raise, RaiseLevel, RaiseMessage, RaiseOption};

impl Body {
    /// `RAISE`.
    pub(super) fn raise(
        &mut self,
        c: &mut Compiler<'_>,
        raise: &Raise,
        position: Position,
    ) -> Result<()> {
        let mut state = match raise.level {
            RaiseLevel::Exception => SqlState::RAISE_EXCEPTION,
            RaiseLevel::Warning => SqlState::WARNING,
            _ => SqlState::SUCCESSFUL_COMPLETION,
        };
        let mut message: Option<(String, Vec<Reg>)> = None;
        match &raise.message {
            RaiseMessage::Again => {
                let region = self
                    .caught
                    .ok_or_else(|| outside_handler("RAISE without parameters", position))?;
                c.builder.push(Step::RaiseAgain { region });
                return Ok(());
            }
            RaiseMessage::Format { format, arguments } => {
                message = Some(format_message(c, format, arguments)?);
            }
            RaiseMessage::Condition { state: named, name } => {
                state = *named;
                message = Some((name.clone(), Vec::new()));
            }
            RaiseMessage::Options => {}
        }
        let (mut detail, mut hint) = (None, None);
        let mut subject = Subject::default();
        let has_format = matches!(raise.message, RaiseMessage::Format { .. });
        let is_condition = matches!(raise.message, RaiseMessage::Condition { .. });
        for (option, value) in &raise.options {
            let given_twice = |name: &str| {
                let message = format!("RAISE option already specified: {name}");
                fail(SqlState::SYNTAX_ERROR, message, at(value.position))
            };
            match option {
                RaiseOption::Message if has_format => return Err(given_twice("MESSAGE")),
                RaiseOption::Message => {
                    message = Some(match text(c, value)? {
                        TextSource::Literal(text) => (text, Vec::new()),
                        TextSource::Register(register) => ("%".to_owned(), vec![register]),
                    });
                }
                RaiseOption::Detail => detail = Some(text(c, value)?),
                RaiseOption::Hint => hint = Some(text(c, value)?),
                RaiseOption::ErrorCode if is_condition => return Err(given_twice("ERRCODE")),
                RaiseOption::ErrorCode => match text(c, value)? {
                    TextSource::Literal(code) => state = state_of(&code, at(value.position))?,
                    TextSource::Register(_) => {
                        let feature = "an ERRCODE that is not a constant";
                        return Err(refuse(c, unsupported(feature, at(value.position))));
                    }
                },
                RaiseOption::Constraint => match text(c, value)? {
                    TextSource::Literal(name) => subject.constraint = Some(name),
                    TextSource::Register(_) => {
                        let feature = "a CONSTRAINT that is not a constant";
                        return Err(refuse(c, unsupported(feature, at(value.position))));
                    }
                },
                RaiseOption::Column => subject.column = constant(text(c, value)?),
                RaiseOption::DataType => subject.data_type = constant(text(c, value)?),
                RaiseOption::Table => subject.table = constant(text(c, value)?),
                RaiseOption::Schema => subject.schema = constant(text(c, value)?),
            }
        }
        let (message, arguments) =
            message.unwrap_or_else(|| (state.as_str().to_owned(), Vec::new()));
        let error = Box::new(Failure {
            state,
            message,
            arguments: arguments.into(),
            detail,
            hint,
            subject: Some(Box::new(subject)),
            position,
        });
        let level = match raise.level {
            RaiseLevel::Exception => {
                c.builder.push(Step::Raise { error });
                return Ok(());
            }
            RaiseLevel::Debug => "DEBUG",
            RaiseLevel::Log => "LOG",
            RaiseLevel::Info => "INFO",
            RaiseLevel::Notice => "NOTICE",
            RaiseLevel::Warning => "WARNING",
        };
        c.builder.push(Step::Notice { level, error });
        Ok(())
    }

    /// `ASSERT condition [, message]`.
    pub(super) fn assert(
        &mut self,
        c: &mut Compiler<'_>,
        condition: &Expression,
        message: Option<&Expression>,
        position: Position,
    ) -> Result<()> {
        let condition = self.condition(c, condition)?;
        let error = fail(SqlState::ASSERT_FAILURE, "assertion failed", position);
        let mut error = failure(&error);
        let Some(message) = message else {
            let error = Box::new(error);
            c.builder.scalar(Instruction::Require {
                condition,
                null_fails: true,
                error,
            });
            return Ok(());
        };
        c.open();
        let given = output_text(c, message);
        match given {
            Ok(register) => match literal(c, register) {
                Some(text) => error.message = text,
                None => {
                    error.message = "%".to_owned();
                    error.arguments = [register].into();
                }
            },
            Err(error) => {
                c.close();
                return Err(error);
            }
        }
        c.builder.push(Step::Raise {
            error: Box::new(error),
        });
        let otherwise = c.close();
        c.builder.push(Step::If {
            condition,
            then: Vec::new(),
            otherwise,
        });
        Ok(())
    }
}

/// A name that is known when compiling; a computed one is dropped.
fn constant(text: TextSource) -> Option<String> {
    match text {
        TextSource::Literal(name) => Some(name),
        TextSource::Register(_) => None,
    }
}

/// A format and its arguments; without arguments, the text itself.
fn format_message(
    c: &mut Compiler<'_>,
    format: &str,
    arguments: &[Expression],
) -> Result<(String, Vec<Reg>)> {
    if arguments.is_empty() {
        return Ok((format.replace("%%", "%"), Vec::new()));
    }
    let mut registers = Vec::with_capacity(arguments.len());
    for argument in arguments {
        registers.push(output_text(c, argument)?);
    }
    Ok((format.to_owned(), registers))
}

/// The text that an expression's value prints as.
fn output_text(c: &mut Compiler<'_>, value: &Expression) -> Result<Reg> {
    let typed = c.expression(&value.expr, None)?;
    let bound = match c.builder.constant_value(typed.register) {
        Some(known) => Bound::constant(known.clone(), typed.data_type, at(value.position)),
        None => Bound::register(typed.register, typed.data_type, at(value.position)),
    };
    let text = coerce::to_output_text(bound)?;
    c.emit(&text)
}

/// The text in a register that is a constant.
fn literal(c: &Compiler<'_>, register: Reg) -> Option<String> {
    match c.builder.constant_value(register) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// An option's value. NULL is refused when the statement runs.
fn text(c: &mut Compiler<'_>, value: &Expression) -> Result<TextSource> {
    if let ast::Expr::Value(literal) = &value.expr
        && let ast::Value::SingleQuotedString(text) = &literal.value
    {
        return Ok(TextSource::Literal(text.clone()));
    }
    let position = at(value.position);
    let typed = c.expression(&value.expr, Some(&DataType::Text))?;
    let register = c.cast(&typed, &DataType::Text, CastContext::Variable, position)?;
    if let Some(text) = literal(c, register) {
        return Ok(TextSource::Literal(text));
    }
    let message = "RAISE statement option cannot be null";
    let error = fail(SqlState::NULL_VALUE_NOT_ALLOWED, message, position);
    let error = Box::new(failure(&error));
    c.builder.scalar(Instruction::RequireNotNull {
        source: register,
        error,
    });
    Ok(TextSource::Register(register))
}

/// The state that ERRCODE names: by its characters or by a condition's name.
fn state_of(code: &str, position: Position) -> Result<SqlState> {
    SqlState::parse(code)
        .or_else(|| SqlState::from_condition_name(code))
        .ok_or_else(|| {
            let message = format!("unrecognized exception condition \"{code}\"");
            fail(SqlState::UNDEFINED_OBJECT, message, position)
        })
}
