//! `kiln data`: what is in a data directory, and whether it is what was written.

mod catalog;
mod check;
mod inspect;
mod status;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kiln::Error;
use kiln_lab::progress::Progress;

/// The arguments of `kiln data`.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Arguments),
    Inspect(inspect::Arguments),
    Status(status::Arguments),
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    match arguments.command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
    }
}

/// Parts of reading that the bar shows.
const PARTS: u64 = 1_000;

/// A bar for bytes that are read or copied, on a terminal.
pub struct Bar {
    progress: Option<Progress>,
    done: u64,
}

impl Bar {
    /// For what is called so.
    pub fn new(what: &str) -> Bar {
        let is_seen = std::io::stderr().is_terminal();
        Bar {
            progress: is_seen.then(|| Progress::steps(what, PARTS)),
            done: 0,
        }
    }

    /// Shows that `done` bytes of `all` are done.
    pub fn advance(&mut self, done: u64, all: u64) {
        let parts = (done as f64 / all.max(1) as f64 * PARTS as f64) as u64;
        if let Some(progress) = &self.progress {
            progress.advance(parts.saturating_sub(self.done));
        }
        self.done = self.done.max(parts);
    }

    /// Removes it.
    pub fn clear(self) {
        self.progress.into_iter().for_each(Progress::clear);
    }
}

/// An error with all that it says.
#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub fn readable(error: Error) -> String {
    format!("{error:#}")
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = (digits.as_bytes().rchunks(3))
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(",")
}

/// A number of bytes in a unit that suits it.
fn size(bytes: u64) -> String {
    let scaled = |unit: f64| bytes as f64 / unit;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", scaled(1e3)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled(1e6)),
        _ => format!("{:.2} GB", scaled(1e9)),
    }
}

/// The size and the rate of `bytes` that took `elapsed_ns`.
pub fn size_and_rate(bytes: u64, elapsed_ns: u64) -> String {
    let seconds = elapsed_ns as f64 / 1e9;
    let rate = (bytes as f64 / seconds.max(1e-9)) as u64;
    format!("{} in {seconds:.3} s, {} a second", size(bytes), size(rate))
}

/// `1 row`, `2 rows`.
fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ if what.ends_with('y') => format!("{} {}ies", grouped(number), &what[..what.len() - 1]),
        _ => format!("{} {what}s", grouped(number)),
    }
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// A table of words: columns are as wide as their widest cell, and numbers are at the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let is_number = |cell: &str| cell.starts_with(|first: char| first.is_ascii_digit());
    let is_numeric: Vec<bool> = (0..columns)
        .map(|column| {
            let mut cells = rows.iter().skip(1).filter_map(|row| row.get(column));
            cells.all(|cell| is_number(cell) && !cell.contains('-'))
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line.push_str(&match is_numeric[column] {
                true => format!(" {cell:>width$} "),
                false => format!(" {cell:<width$} "),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(2_000, "entry"), "2,000 entries");
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(64 << 20), "67.1 MB");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", "rows"], ["a", "1,000"], ["long", "7"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            table(&rows),
            "  name   rows\n  a     1,000\n  long      7\n"
        );
    }
}
