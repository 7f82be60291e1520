//! `RAISE`.

use super::ast::{Raise, RaiseLevel, RaiseMessage, RaiseOption};
use crate::parse::tokens::Tokens;
use kiln_storage::error::{Result, SqlState};
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// Parses `range`, which begins after RAISE and ends before the semicolon.
pub(super) fn raise(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Raise> {
    let mut index = range.start;
    let level = match tokens.word(index) {
        "debug" => Some(RaiseLevel::Debug),
        "log" => Some(RaiseLevel::Log),
        "info" => Some(RaiseLevel::Info),
        "notice" => Some(RaiseLevel::Notice),
        "warning" => Some(RaiseLevel::Warning),
        "exception" => Some(RaiseLevel::Exception),
        _ => None,
    };
    if level.is_some() {
        index += 1;
    }
    // USING stands outside of parentheses; the arguments before it may hold none of their own.
    let using = tokens.find(index, |tokens, index| {
        tokens.word(index) == "using" || *tokens.get(index) == Token::SemiColon
    })?;
    let level = level.unwrap_or(RaiseLevel::Exception);
    let message = match tokens.get(index) {
        _ if index == range.end && range.is_empty() => RaiseMessage::Again,
        _ if index == range.end => return Err(tokens.syntax_error(index)),
        _ if index == using => RaiseMessage::Options,
        Token::SingleQuotedString(format) | Token::EscapedStringLiteral(format) => {
            let format = format.clone();
            message(tokens, index, format, using)?
        }
        Token::Word(_) if tokens.word(index) == "sqlstate" => {
            let Token::SingleQuotedString(code) = tokens.get(index + 1) else {
                return Err(tokens.syntax_error(index + 1));
            };
            let state = SqlState::parse(code).ok_or_else(|| {
                tokens.error_at(index + 1, SqlState::SYNTAX_ERROR, "invalid SQLSTATE code")
            })?;
            end_of_message(tokens, index + 2, using)?;
            RaiseMessage::Condition {
                state,
                name: code.clone(),
            }
        }
        Token::Word(word) => {
            let state = SqlState::from_condition_name(&word.value).ok_or_else(|| {
                tokens.error_at(
                    index,
                    SqlState::UNDEFINED_OBJECT,
                    format!("unrecognized exception condition \"{}\"", word.value),
                )
            })?;
            end_of_message(tokens, index + 1, using)?;
            RaiseMessage::Condition {
                state,
                name: word.value.clone(),
            }
        }
        _ => return Err(tokens.syntax_error(index)),
    };
    let options = if using < range.end {
        options(tokens, using + 1..range.end)?
    } else {
        Vec::new()
    };
    Ok(Raise {
        level,
        message,
        options,
    })
}

fn end_of_message(tokens: &Tokens<'_>, index: usize, end: usize) -> Result<()> {
    if index == end {
        Ok(())
    } else {
        Err(tokens.syntax_error(index))
    }
}

fn message(tokens: &Tokens<'_>, index: usize, format: String, end: usize) -> Result<RaiseMessage> {
    let mut arguments = Vec::new();
    if index + 1 < end {
        if *tokens.get(index + 1) != Token::Comma {
            return Err(tokens.syntax_error(index + 1));
        }
        for argument in tokens.split(index + 2..end) {
            arguments.push(tokens.expression(argument)?);
        }
    }
    let placeholders = format.replace("%%", "").matches('%').count();
    if placeholders != arguments.len() {
        let many = if arguments.len() > placeholders {
            "many"
        } else {
            "few"
        };
        return Err(tokens.error_at(
            index,
            SqlState::SYNTAX_ERROR,
            format!("too {many} parameters specified for RAISE"),
        ));
    }
    Ok(RaiseMessage::Format { format, arguments })
}

fn options(
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<Vec<(RaiseOption, crate::parse::Expression)>> {
    let mut options: Vec<(RaiseOption, crate::parse::Expression)> = Vec::new();
    for part in tokens.split(range) {
        let option = match tokens.word(part.start) {
            "message" => RaiseOption::Message,
            "detail" => RaiseOption::Detail,
            "hint" => RaiseOption::Hint,
            "errcode" => RaiseOption::ErrorCode,
            "column" => RaiseOption::Column,
            "constraint" => RaiseOption::Constraint,
            "datatype" => RaiseOption::DataType,
            "table" => RaiseOption::Table,
            "schema" => RaiseOption::Schema,
            _ => {
                return Err(tokens.error(
                    part.start,
                    SqlState::SYNTAX_ERROR,
                    "unrecognized RAISE statement option",
                ));
            }
        };
        if !matches!(tokens.get(part.start + 1), Token::Eq | Token::Assignment) {
            return Err(tokens.syntax_error(part.start + 1));
        }
        if options.iter().any(|(known, _)| *known == option) {
            let message = format!(
                "RAISE option already specified: {}",
                tokens.word(part.start)
            );
            return Err(tokens.error_at(part.start, SqlState::SYNTAX_ERROR, message));
        }
        options.push((option, tokens.expression(part.start + 2..part.end)?));
    }
    Ok(options)
}
