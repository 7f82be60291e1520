//! The shell on a terminal: history, and statements of several lines.

use std::path::PathBuf;

use kiln_sql::parse;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};

use super::shell::{Next, Shell};

/// Keeps reading until every statement has its semicolon.
struct Statements;

impl Validator for Statements {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_ready(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Statements {
    type Candidate = String;

    fn complete(
        &self,
        _line: &str,
        place: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((place, Vec::new()))
    }
}

impl Hinter for Statements {
    type Hint = String;
}

impl Highlighter for Statements {}
impl Helper for Statements {}

/// Whether the shell may act on `text`.
fn is_ready(text: &str) -> bool {
    text.trim_start().starts_with('\\') || parse::is_complete(text)
}

/// Where earlier lines are kept: in the user's home, if there is one.
fn history_path() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".kiln_history"))
}

/// Reads and runs statements until the user leaves.
///
/// # Errors
/// A terminal that cannot be read.
pub(super) fn run(shell: &mut Shell) -> Result<(), String> {
    let terminal = |error: ReadlineError| format!("the terminal cannot be read: {error}");
    let mut editor: Editor<Statements, DefaultHistory> = Editor::new().map_err(terminal)?;
    editor.set_helper(Some(Statements));
    let history = history_path();
    if let Some(path) = &history {
        // There is none the first time.
        let _ = editor.load_history(path);
    }
    println!(
        "kiln {}: {}. \\? for help, \\q to leave.",
        env!("CARGO_PKG_VERSION"),
        shell.place()
    );
    loop {
        match editor.readline(shell.prompt()) {
            Ok(text) => {
                if text.trim().is_empty() {
                    continue;
                }
                let _ = editor.add_history_entry(text.trim_end());
                if text.trim_start().starts_with('\\') {
                    match shell.command(text.trim()) {
                        Ok(Next::GoOn) => {}
                        Ok(Next::Quit) => break,
                        Err(message) => eprintln!("{message}"),
                    }
                } else {
                    shell.script("<terminal>", &text, false)?;
                }
            }
            // Ctrl-C drops what was typed, Ctrl-D leaves.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal(error)),
        }
    }
    if let Some(path) = &history
        && let Err(error) = editor.save_history(path)
    {
        eprintln!("the history is lost: {}: {error}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_ready;

    #[test]
    fn statements_are_read_to_their_semicolon() {
        for ready in ["select 1;", "\\d", "  \\df", ""] {
            assert!(is_ready(ready), "{ready}");
        }
        for unfinished in ["select 1", "select ';", "create procedure p() as $$ begin;"] {
            assert!(!is_ready(unfinished), "{unfinished}");
        }
    }
}
