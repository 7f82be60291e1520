//! The settings that there are.

use super::NO_ROLE;
use super::planner::WITHOUT_EFFECTS;
use crate::server;

/// A setting: its name in lower case, as PostgreSQL writes it, its default, its values and what it
/// is for.
pub(super) type Known = (&'static str, &'static str, &'static str, Kind, &'static str);

/// Which values a setting takes.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Its default and these other words for it, in lower case.
    Fixed(&'static [&'static str]),
    /// A time zone.
    Zone,
    /// None: it says what is so.
    ReadOnly,
    Boolean,
    /// Numbers from the first to the second.
    Integer(i64, i64),
    /// A number that is not negative.
    Real,
    /// Bytes: a number with a unit, or so many kilobytes for each.
    Size(u64),
    /// Milliseconds, or a number with a unit; 0 for none.
    Duration,
    /// One of these.
    Word(&'static [&'static str]),
    /// A list of schemas, of which only one has tables.
    SchemaPath,
    /// Whatever is asked for is taken, and serializable is given.
    Isolation,
    Text,
}

pub(super) const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error",
];

/// Those with an effect: by name.
const KNOWN: &[Known] = &[
    (
        "application_name",
        "application_name",
        "",
        Kind::Text,
        "The name of the client's program, for reports.",
    ),
    (
        "backslash_quote",
        "backslash_quote",
        "safe_encoding",
        Kind::Fixed(&["on"]),
        "How \\' is read in texts that begin with E.",
    ),
    (
        "bytea_output",
        "bytea_output",
        "hex",
        Kind::Fixed(&[]),
        "How bytes are written.",
    ),
    (
        "check_function_bodies",
        "check_function_bodies",
        "on",
        Kind::Boolean,
        "Taken for pg_dump; bodies are always checked.",
    ),
    (
        "client_encoding",
        "client_encoding",
        "UTF8",
        Kind::Fixed(&["utf-8", "unicode", "'utf-8'"]),
        "The encoding of the client's texts.",
    ),
    (
        "client_min_messages",
        "client_min_messages",
        "notice",
        Kind::Word(LEVELS),
        "Messages below this level are not sent.",
    ),
    (
        "datestyle",
        "DateStyle",
        "ISO, MDY",
        Kind::Fixed(&["iso", "iso, us", "iso,mdy"]),
        "How dates are written and read.",
    ),
    (
        "default_table_access_method",
        "default_table_access_method",
        "heap",
        Kind::Text,
        "Taken for pg_dump; there is one.",
    ),
    (
        "default_tablespace",
        "default_tablespace",
        "",
        Kind::Text,
        "Taken for pg_dump; there is one.",
    ),
    (
        "default_text_search_config",
        "default_text_search_config",
        "pg_catalog.simple",
        Kind::Text,
        "Taken for drivers; there is no text search.",
    ),
    (
        "default_transaction_deferrable",
        "default_transaction_deferrable",
        "off",
        Kind::Boolean,
        "Taken for drivers; no transaction needs it.",
    ),
    (
        "default_transaction_isolation",
        "default_transaction_isolation",
        "serializable",
        Kind::Isolation,
        "The isolation of transactions, which are all serializable.",
    ),
    (
        "default_transaction_read_only",
        "default_transaction_read_only",
        "off",
        Kind::Boolean,
        "Whether transactions may only read, unless they say otherwise.",
    ),
    (
        "escape_string_warning",
        "escape_string_warning",
        "on",
        Kind::Boolean,
        "Taken for drivers; texts with a backslash are as they stand.",
    ),
    (
        "extra_float_digits",
        "extra_float_digits",
        "1",
        Kind::Integer(-15, 3),
        "Taken for drivers; numbers are always written exactly.",
    ),
    (
        "idle_in_transaction_session_timeout",
        "idle_in_transaction_session_timeout",
        "0",
        Kind::Duration,
        "How long a transaction block may wait for its next statement; 0 for as long as it likes.",
    ),
    (
        "idle_session_timeout",
        "idle_session_timeout",
        "0",
        Kind::Fixed(&["0ms"]),
        "How long a session may idle.",
    ),
    (
        "integer_datetimes",
        "integer_datetimes",
        "on",
        Kind::ReadOnly,
        "Times are whole microseconds.",
    ),
    (
        "intervalstyle",
        "IntervalStyle",
        "postgres",
        Kind::Fixed(&[]),
        "How intervals are written.",
    ),
    (
        "is_superuser",
        "is_superuser",
        "",
        Kind::ReadOnly,
        "Whether the session's role is a superuser.",
    ),
    (
        "kiln.protocol",
        "kiln.protocol",
        "",
        Kind::Text,
        "The protocol of all transactions; a superuser changes it for the whole database.",
    ),
    (
        "kiln.replay",
        "kiln.replay",
        "on",
        Kind::Boolean,
        "Whether blocks run again when they meet conflicts.",
    ),
    (
        "lc_collate",
        "lc_collate",
        "C",
        Kind::ReadOnly,
        "The order of texts.",
    ),
    (
        "lc_ctype",
        "lc_ctype",
        "C",
        Kind::ReadOnly,
        "The classes of characters.",
    ),
    (
        "lc_messages",
        "lc_messages",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "The language of messages.",
    ),
    (
        "lc_monetary",
        "lc_monetary",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "How money is written.",
    ),
    (
        "lc_numeric",
        "lc_numeric",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "How numbers are written by to_char.",
    ),
    (
        "lc_time",
        "lc_time",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "How dates are written by to_char.",
    ),
    (
        "lock_timeout",
        "lock_timeout",
        "0",
        Kind::Duration,
        "How long a statement waits for a worker, or for a table that is being changed; 0 for as long as it takes.",
    ),
    (
        "max_identifier_length",
        "max_identifier_length",
        "63",
        Kind::ReadOnly,
        "Bytes of a name.",
    ),
    (
        "max_index_keys",
        "max_index_keys",
        "32",
        Kind::ReadOnly,
        "Columns of a key, at most.",
    ),
    (
        "password_encryption",
        "password_encryption",
        "scram-sha-256",
        Kind::Fixed(&[]),
        "How passwords are kept.",
    ),
    (
        "quote_all_identifiers",
        "quote_all_identifiers",
        "off",
        Kind::Boolean,
        "Taken for pg_dump.",
    ),
    (
        "role",
        "role",
        NO_ROLE,
        Kind::Text,
        "The role that was changed to.",
    ),
    (
        "row_security",
        "row_security",
        "on",
        Kind::Boolean,
        "Taken for pg_dump; there are no policies.",
    ),
    (
        "search_path",
        "search_path",
        "\"$user\", public",
        Kind::SchemaPath,
        "Where names without a schema are looked for.",
    ),
    (
        "server_encoding",
        "server_encoding",
        "UTF8",
        Kind::ReadOnly,
        "The encoding of all texts.",
    ),
    (
        "server_version",
        "server_version",
        server::VERSION,
        Kind::ReadOnly,
        "The version of PostgreSQL whose protocol and SQL this is like.",
    ),
    (
        "server_version_num",
        "server_version_num",
        "150000",
        Kind::ReadOnly,
        "The same as a number.",
    ),
    (
        "session_authorization",
        "session_authorization",
        "",
        Kind::Text,
        "The session's role.",
    ),
    (
        "standard_conforming_strings",
        "standard_conforming_strings",
        "on",
        Kind::Fixed(&["true", "yes", "1"]),
        "A backslash in a text is one.",
    ),
    (
        "statement_timeout",
        "statement_timeout",
        "0",
        Kind::Duration,
        "How long a statement may take; 0 for as long as it needs.",
    ),
    (
        "synchronous_commit",
        "synchronous_commit",
        "on",
        Kind::Word(&[
            "on",
            "off",
            "local",
            "remote_write",
            "remote_apply",
            "true",
            "false",
            "yes",
            "no",
            "1",
            "0",
        ]),
        "Whether a commit waits until it is on disk.",
    ),
    (
        "timezone",
        "TimeZone",
        "UTC",
        Kind::Zone,
        "The time zone in which times are written and read.",
    ),
    (
        "transaction_deferrable",
        "transaction_deferrable",
        "off",
        Kind::Boolean,
        "Taken for drivers; no transaction needs it.",
    ),
    (
        "transaction_isolation",
        "transaction_isolation",
        "serializable",
        Kind::Isolation,
        "The isolation of the transaction, which is serializable.",
    ),
    (
        "transaction_read_only",
        "transaction_read_only",
        "off",
        Kind::Boolean,
        "Whether the transaction may only read.",
    ),
    (
        "xmloption",
        "xmloption",
        "content",
        Kind::Text,
        "Taken for pg_dump; there is no XML.",
    ),
];

/// The setting of this name in lower case.
pub(super) fn known(name: &str) -> Option<&'static Known> {
    [KNOWN, WITHOUT_EFFECTS].into_iter().find_map(|settings| {
        let found = settings.binary_search_by(|(known, ..)| (*known).cmp(name));
        found.ok().map(|at| &settings[at])
    })
}

/// All settings that there are.
pub(super) fn all() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().chain(WITHOUT_EFFECTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_name() {
        for settings in [KNOWN, WITHOUT_EFFECTS] {
            assert!(settings.is_sorted_by_key(|(name, ..)| *name));
        }
        assert!(all().all(|(name, shown, ..)| shown.to_lowercase() == *name));
    }
}
