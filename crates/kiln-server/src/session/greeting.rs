//! The beginning of a session: what the client sets, and what it is told.

use kiln_sql::SqlState;

use super::Session;

/// Settings that clients are told of at the start, because their drivers go by them. All but the client's own are always so.
const REPORTED: &[(&str, &str)] = &[
    ("server_version", "15.0 (Kiln)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("is_superuser", "on"),
    ("session_authorization", "kiln"),
];

/// Parameters of a startup message that are no settings.
const NO_SETTINGS: &[&str] = &["user", "database", "replication", "options"];

impl Session {
    /// Applies the settings of a startup message, and reports those that drivers want to know.
    pub fn begin<'a>(&mut self, parameters: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut application = "";
        for (name, value) in parameters {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if NO_SETTINGS.contains(&name) || !name.bytes().all(is_word) {
                continue;
            }
            if name == "application_name" {
                application = value;
            }
            let text = format!("SET {name} TO '{}'", value.replace('\'', "''"));
            // What cannot be set is not as the client wants it, which is told of what matters to drivers: a driver's time zone, say.
            if let Err(error) = self.sql.run(&text, ())
                && error.state() == SqlState::UNDEFINED_OBJECT
            {
                let message = format!("the setting \"{name}\" is not known, and ignored");
                self.answers
                    .notice("WARNING", error.state().as_str(), &message);
            }
        }
        for (name, value) in REPORTED {
            self.answers.parameter_status(name, value);
        }
        self.answers
            .parameter_status("application_name", application);
    }
}
