//! A shell's statements, run by a server: Kiln's or PostgreSQL's.

mod connection;
mod describe;
mod socket;
mod tls;
mod url;

use kiln_sql::parse::SourceStatement;
use kiln_sql::{DataType, Notice, Notification, ResultSet, StatementResult, Value};
use kiln_storage::error::{Error, SqlState};
use kiln_wire::backend::TransactionStatus;
use kiln_wire::client::{Answer, Fields};
use kiln_wire::format;

use super::super::print;
use connection::{Connection, Failure};
use url::Target;

/// A session with a server.
pub(super) struct Remote {
    connection: Connection,
    place: String,
    /// What has come with answers on the channels to which the session listens.
    notifications: Vec<Notification>,
}

impl Remote {
    /// Connects to the server that a URL names.
    ///
    /// # Errors
    /// A sentence that says why that is not possible.
    pub fn connect(url: &str) -> Result<Remote, String> {
        let target = Target::parse(url, |name| std::env::var(name).ok())?;
        let place = format!("{}:{}", target.host, target.port);
        let mut connection = Connection::open(&target).map_err(|failure| {
            let reason = match failure {
                Failure::Refused(fields) => fields.get(b'M').to_owned(),
                Failure::Broken(message) => message,
            };
            format!("cannot connect to {place}: {reason}")
        })?;
        for fields in connection.notices() {
            eprintln!("{}", notice(&fields));
        }
        let version = connection.version();
        let place = format!(
            "database {} at {place}, server {version}, as {}",
            target.database, target.user
        );
        Ok(Remote {
            connection,
            place,
            notifications: Vec::new(),
        })
    }

    /// Where it is, in words.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Takes what has come with answers on the channels to which the session listens.
    pub fn notifications(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.notifications)
    }

    /// Whether a transaction block is open, and whether it has failed.
    pub fn status(&self) -> TransactionStatus {
        self.connection.status()
    }

    /// Runs one statement of a script. What COPY sends is printed.
    ///
    /// # Errors
    /// The server's, with line and column in the script; 08006 when the connection is over.
    pub fn execute(&mut self, source: &SourceStatement<'_>) -> Result<StatementResult, Error> {
        let answers = self.connection.run(source.text).map_err(|failure| {
            let message = match failure {
                Failure::Refused(fields) => fields.get(b'M').to_owned(),
                Failure::Broken(message) => message,
            };
            Error::new(SqlState::CONNECTION_FAILURE, message)
        })?;
        let mut result = StatementResult::default();
        let mut refused = None;
        for answer in answers {
            match answer {
                Answer::RowDescription(columns) => result.result = Some(described(columns)),
                Answer::Row(values) => {
                    if let Some(result) = &mut result.result {
                        result.rows.push(values.into_iter().map(value).collect());
                    }
                }
                Answer::CommandComplete(tag) => result.tag = tag,
                Answer::Notice(fields) => result.notices.push(notice(&fields)),
                Answer::CopyData(data) => {
                    print(&String::from_utf8_lossy(&data)).map_err(Error::internal)?;
                }
                Answer::Notification(session, channel, payload) => {
                    self.notifications.push(Notification {
                        session: session.into(),
                        channel,
                        payload,
                    });
                }
                Answer::Error(fields) => refused = Some(error(&fields, source)),
                _ => {}
            }
        }
        match refused {
            None => Ok(result),
            // What the server has said before it refused.
            Some(error) => {
                for notice in &result.notices {
                    eprintln!("{notice}");
                }
                Err(error)
            }
        }
    }
}

/// A result without rows yet. Values come as texts; a number's type aligns them.
fn described(columns: Vec<(String, u32, kiln_wire::frontend::Format)>) -> ResultSet {
    let columns = columns.into_iter().map(|(name, oid, _)| {
        let data_type = match format::parameter_type(oid) {
            Ok(Some(data_type)) if data_type.is_number() => DataType::Integer,
            _ if NUMBERS.contains(&oid) => DataType::Integer,
            _ => DataType::Text,
        };
        (name, data_type)
    });
    ResultSet {
        columns: columns.collect(),
        rows: Vec::new(),
    }
}

/// Types that psql aligns as numbers and that Kiln does not have: oid, xid, cid, real, money, xid8.
const NUMBERS: [u32; 6] = [26, 28, 29, 700, 790, 5069];

fn value(bytes: Option<Vec<u8>>) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn notice(fields: &Fields) -> Notice {
    const LEVELS: [&str; 5] = ["WARNING", "NOTICE", "INFO", "LOG", "DEBUG"];
    let level = LEVELS.into_iter().find(|level| *level == fields.get(b'V'));
    Notice {
        level: level.unwrap_or("NOTICE"),
        state: SqlState::parse(fields.get(b'C')).unwrap_or(SqlState::SUCCESSFUL_COMPLETION),
        message: fields.get(b'M').to_owned(),
    }
}

/// The server's error, with its place in the script.
fn error(fields: &Fields, source: &SourceStatement<'_>) -> Error {
    let state = SqlState::parse(fields.get(b'C')).unwrap_or(SqlState::INTERNAL_ERROR);
    let mut error = Error::new(state, fields.get(b'M'));
    if let detail @ [_, ..] = fields.get(b'D').as_bytes() {
        error = error.with_detail(String::from_utf8_lossy(detail));
    }
    if let hint @ [_, ..] = fields.get(b'H').as_bytes() {
        error = error.with_hint(String::from_utf8_lossy(hint));
    }
    match fields.get(b'P').parse::<usize>() {
        Ok(position @ 1..) => {
            let before: String = source.text.chars().take(position - 1).collect();
            let lines = before.matches('\n').count() as u32;
            let line = before.rsplit('\n').next().unwrap_or_default();
            let column = line.chars().count() as u32 + 1;
            match lines {
                0 => error.at(source.line, source.column + column - 1),
                _ => error.at(source.line + lines, column),
            }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_place_in_the_script() {
        let script = "select 1; select 2,\n  é, nothing";
        let source = kiln_sql::parse::script(script)[1];
        for (position, place) in [
            ("1", (1, 11)),
            ("8", (1, 18)),
            ("12", (2, 2)),
            ("16", (2, 6)),
        ] {
            let fields = Fields(vec![
                (b'C', "42703".to_owned()),
                (b'M', "column \"nothing\" does not exist".to_owned()),
                (b'H', "Look.".to_owned()),
                (b'P', position.to_owned()),
            ]);
            let error = error(&fields, &source);
            let found = error.position().expect("it has one");
            assert_eq!((found.line, found.column), place, "{position}");
            assert_eq!((error.hint(), error.detail()), (Some("Look."), None));
        }
    }
}
