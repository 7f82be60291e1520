//! The errors of texts that are no JSON, in PostgreSQL's words.

use crate::error::{Error, SqlState};

#[cold]
pub(super) fn invalid(detail: impl Into<String>) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type json",
    )
    .with_detail(detail.into())
}

#[cold]
pub(super) fn no_text(detail: &str) -> Error {
    Error::new(
        SqlState::UNTRANSLATABLE_CHARACTER,
        "unsupported Unicode escape sequence",
    )
    .with_detail(detail)
}

#[cold]
pub(super) fn too_deep() -> Error {
    Error::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .with_detail("A JSON value is nested too deeply.")
}
