//! The beginning of a session: what the client sets, and what it is told.

use kiln_sql::{Result, SqlState};

use super::Session;

/// Settings that clients are told of at the start and when they change, because their drivers go by
/// them.
const REPORTED: &[&str] = &[
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "default_transaction_read_only",
    "in_hot_standby",
    "is_superuser",
    "session_authorization",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
    "search_path",
];

/// Parameters of a startup message that are no settings.
const NO_SETTINGS: &[&str] = &["user", "database", "replication"];

/// Whether clients are told of a setting.
pub(super) fn is_reported(name: &str) -> bool {
    REPORTED.contains(&name)
}

impl Session {
    /// Applies the settings of the role and then those of a startup message, and reports those that
    /// drivers want to know.
    ///
    /// # Errors
    /// Those of SET, but for settings that are not known, and for values that are not supported:
    /// these are ignored, and the client is told.
    pub fn begin<'a>(
        &mut self,
        parameters: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<()> {
        for notice in self.sql.begin_as_role() {
            self.answers.notice("WARNING", "01000", &notice.message);
        }
        for (name, value) in parameters {
            // A driver's extensions of the protocol are none.
            if name == "options" {
                for (name, value) in switches(value) {
                    self.begin_with(&name, &value)?;
                }
            } else if !NO_SETTINGS.contains(&name) && !name.starts_with("_pq_.") {
                self.begin_with(name, value)?;
            }
        }
        for name in REPORTED {
            let value = match *name {
                // Without replicas.
                "in_hot_standby" => "off".to_owned(),
                name => (self.sql.setting(&name.to_lowercase())).unwrap_or_default(),
            };
            self.answers.parameter_status(name, &value);
        }
        self.sql.changed_settings();
        Ok(())
    }

    fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        let Err(error) = self.sql.begin_with(name, value) else {
            return Ok(());
        };
        let message = match error.state() {
            SqlState::UNDEFINED_OBJECT => {
                format!("the setting \"{name}\" is not known, and ignored")
            }
            SqlState::FEATURE_NOT_SUPPORTED => {
                format!("a setting is ignored: {}", error.message())
            }
            _ => return Err(error),
        };
        self.answers
            .notice("WARNING", error.state().as_str(), &message);
        Ok(())
    }
}

/// The settings of a parameter `options`: `-c name=value` and `--name=value`, where a backslash
/// keeps a blank.
fn switches(text: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let last = words.len() - 1;
        match character {
            '\\' => words[last].extend(characters.next()),
            character if character.is_whitespace() => words.push(String::new()),
            character => words[last].push(character),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.as_str() {
            "-c" => words.next().unwrap_or_default(),
            other => match other
                .strip_prefix("--")
                .or_else(|| other.strip_prefix("-c"))
            {
                Some(setting) => setting.to_owned(),
                None => continue,
            },
        };
        if let Some((name, value)) = setting.split_once('=') {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::switches;

    #[test]
    fn options_are_settings() {
        let found =
            switches("-c statement_timeout=5s  --search-path=public -cDateStyle=ISO,\\ MDY -x");
        let expected = [
            ("statement_timeout", "5s"),
            ("search_path", "public"),
            ("DateStyle", "ISO, MDY"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
    }
}
