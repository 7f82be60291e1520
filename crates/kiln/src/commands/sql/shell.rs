//! What scripts and the interactive shell have in common: running statements and printing what
//! comes of them.

use kiln_platform::time;
use kiln_sql::Notification;
use kiln_sql::parse::{self, SourceStatement};
use kiln_storage::error::{Error, Position};
use kiln_wire::backend::TransactionStatus;

use super::target::Target;
use crate::commands::print;

/// A shell: what runs its statements, and how their results are printed.
pub(super) struct Shell {
    target: Target,
    csv: bool,
    quiet: bool,
    timing: bool,
}

/// Whether to go on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// A piece of a script.
enum Piece<'a> {
    Sql { text: &'a str, start: Position },
    Command(&'a str),
}

const HELP: &str = "\
SQL statements end with a semicolon. Commands of the shell:
  \\d            tables
  \\d TABLE      columns, indexes and constraints of a table
  \\df           functions and procedures
  \\timing       whether to show how long statements take
  \\?            this help
  \\q            leave
";

impl Shell {
    /// A shell whose statements run there.
    pub(super) fn new(target: Target, csv: bool, quiet: bool) -> Shell {
        Shell {
            target,
            csv,
            quiet,
            timing: false,
        }
    }

    /// Where the data is, in words.
    pub(super) fn place(&self) -> String {
        self.target.place()
    }

    /// Runs a script. Returns whether all of it succeeded.
    ///
    /// # Errors
    /// Output that cannot be written.
    pub(super) fn script(
        &mut self,
        name: &str,
        text: &str,
        continue_on_error: bool,
    ) -> Result<bool, String> {
        let mut succeeded = true;
        for piece in pieces(text) {
            match piece {
                Piece::Command(command) => {
                    match self.command(command) {
                        Ok(Next::GoOn) => continue,
                        Ok(Next::Quit) => return Ok(succeeded),
                        Err(message) => eprintln!("{name}: {message}"),
                    }
                    succeeded = false;
                }
                Piece::Sql { text: sql, start } => {
                    for statement in parse::script(sql) {
                        let statement = moved(statement, start);
                        if !self.statement(name, text, statement)? {
                            succeeded = false;
                            if !continue_on_error {
                                return Ok(false);
                            }
                        }
                    }
                }
            }
            if !succeeded && !continue_on_error {
                return Ok(false);
            }
        }
        Ok(succeeded)
    }

    /// Runs one statement of `script` and prints its result. Returns whether it succeeded.
    ///
    /// # Errors
    /// Output that cannot be written.
    fn statement(
        &mut self,
        name: &str,
        script: &str,
        statement: SourceStatement<'_>,
    ) -> Result<bool, String> {
        let begin = time::now_ns();
        let outcome = self.target.execute(&statement);
        let elapsed_ns = time::now_ns() - begin;
        let succeeded = match outcome {
            Ok(result) => {
                for notice in &result.notices {
                    eprintln!("{notice}");
                }
                if let Some(rows) = &result.result {
                    let style = self.target.style();
                    match self.csv {
                        true => print(&rows.to_csv_in(&style))?,
                        false => print(&format!("{}\n", rows.to_table_in(&style)))?,
                    }
                }
                // psql names what a statement did unless its rows say it.
                let says_more = result.result.is_none() || !result.tag.starts_with("SELECT");
                if !self.quiet && says_more && !result.tag.is_empty() {
                    print(&format!("{}\n", result.tag))?;
                }
                true
            }
            Err(error) => {
                eprint!("{}", rendered_error(name, script, statement, &error));
                false
            }
        };
        for notification in self.target.notifications() {
            print(&format!("{}\n", told(&notification)))?;
        }
        if self.timing {
            print(&format!("Time: {:.3} ms\n", elapsed_ns as f64 / 1e6))?;
        }
        Ok(succeeded)
    }

    /// Runs a command that begins with a backslash.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn command(&mut self, line: &str) -> Result<Next, String> {
        let mut words = line.split_whitespace();
        let (command, argument) = (words.next().unwrap_or_default(), words.next());
        let argument = argument.map(|word| word.trim_end_matches(';'));
        match command.trim_end_matches(';') {
            "\\q" => return Ok(Next::Quit),
            "\\?" | "\\h" => print(HELP)?,
            "\\timing" => {
                self.timing = !self.timing;
                print(&format!(
                    "Timing is {}.\n",
                    if self.timing { "on" } else { "off" }
                ))?;
            }
            "\\d" | "\\dt" => print(&self.target.describe(argument)?)?,
            "\\df" => print(&self.target.functions(argument)?)?,
            unknown => return Err(format!("there is no command {unknown}; try \\?")),
        }
        Ok(Next::GoOn)
    }

    /// The prompt: it shows whether a transaction is open or has failed.
    pub(super) fn prompt(&self) -> &'static str {
        match self.target.status() {
            TransactionStatus::Failed => "kiln=!> ",
            TransactionStatus::Open => "kiln=*> ",
            TransactionStatus::Idle => "kiln=> ",
        }
    }
}

/// A notification as psql prints it.
fn told(notification: &Notification) -> String {
    let Notification {
        session,
        channel,
        payload,
    } = notification;
    let payload = match payload.as_str() {
        "" => String::new(),
        payload => format!(" with payload \"{payload}\""),
    };
    format!(
        "Asynchronous notification \"{channel}\"{payload} received from server process with PID {session}."
    )
}

/// Splits a script at the lines that hold a command: those that begin with a backslash where no
/// statement is open.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 1, 0);
    for (number, line) in (1_u32..).zip(text.split_inclusive('\n')) {
        let end = at + line.len();
        if line.trim_start().starts_with('\\') && parse::is_complete(&text[start..at]) {
            let position = Position {
                line: start_line,
                column: 1,
            };
            pieces.push(Piece::Sql {
                text: &text[start..at],
                start: position,
            });
            pieces.push(Piece::Command(line.trim()));
            (start, start_line) = (end, number + 1);
        }
        at = end;
    }
    let position = Position {
        line: start_line,
        column: 1,
    };
    pieces.push(Piece::Sql {
        text: &text[start..],
        start: position,
    });
    pieces
}

/// A statement of a text that begins at `start` of its script.
fn moved(mut statement: SourceStatement<'_>, start: Position) -> SourceStatement<'_> {
    statement.line += start.line - 1;
    statement
}

/// An error as people read it: where, SQLSTATE, what, the line of the script with the place marked,
/// and what else is known.
fn rendered_error(
    name: &str,
    script: &str,
    statement: SourceStatement<'_>,
    error: &Error,
) -> String {
    let last_line = statement.line + statement.text.matches('\n').count() as u32;
    // Errors of a procedure may carry a place in the script that created it.
    let inside = error.position().filter(|place| {
        (statement.line..=last_line).contains(&place.line)
            && (place.line > statement.line || place.column >= statement.column)
    });
    let place = inside.unwrap_or(statement.position());
    let mut text = format!(
        "{name}:{}:{}: ERROR {}: {}\n",
        place.line,
        place.column,
        error.state(),
        error.message()
    );
    if inside.is_some()
        && let Some(line) = script.lines().nth(place.line as usize - 1)
    {
        let line = line.replace('\t', " ");
        let marker = " ".repeat(place.column as usize - 1);
        text += &format!("  {line}\n  {marker}^\n");
    }
    if let Some(detail) = error.detail() {
        text += &format!("DETAIL:  {detail}\n");
    }
    if let Some(hint) = error.hint() {
        text += &format!("HINT:  {hint}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_storage::error::SqlState;

    #[test]
    fn commands_stand_on_lines_of_their_own_between_statements() {
        let script = "select 1;\n\\d t\nselect '\n\\d not a command\n';\n  \\q\n";
        let shown: Vec<String> = pieces(script)
            .iter()
            .map(|piece| match piece {
                Piece::Sql { text, start } => format!("{}:{text}", start.line),
                Piece::Command(command) => (*command).to_owned(),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1:select 1;\n",
                "\\d t",
                "3:select '\n\\d not a command\n';\n",
                "\\q",
                "7:"
            ]
        );
    }

    #[test]
    fn errors_point_at_their_place() {
        let script = "select 1;\nselect *\nfrom nowhere;";
        let statement = parse::script(script)[1];
        let error = Error::new(SqlState::UNDEFINED_TABLE, "no such table").with_hint("Make it.");
        let text = rendered_error("a.sql", script, statement, &error.at(3, 6));
        assert_eq!(
            text,
            "a.sql:3:6: ERROR 42P01: no such table\n  from nowhere;\n       ^\nHINT:  Make it.\n"
        );
        let error = Error::new(SqlState::DIVISION_BY_ZERO, "division by zero").at(70, 2);
        let text = rendered_error("a.sql", script, statement, &error);
        assert_eq!(text, "a.sql:2:1: ERROR 22012: division by zero\n");
    }
}
