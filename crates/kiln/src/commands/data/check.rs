//! `kiln data check`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln_durability::inspect::{CheckReport, check};
use serde_json::json;

use super::{Bar, counted, path_text, readable, size_and_rate};

/// The arguments of `kiln data check`.
#[derive(Args)]
#[command(
    about = "Read all files that belong to a database, and say what is damaged",
    long_about = "Read all files that belong to a database, without opening it: the manifest, the checkpoints, and the log to its \
        end. Every byte of them is covered by a checksum.\n\n\
        The exit code is 0 when all is what was written, and 1 when something is damaged. No process may have the database \
        open: files come and go while it runs.",
    after_help = "Examples:\n  \
        kiln data check shop\n  \
        kiln data check shop --json"
)]
pub struct Arguments {
    /// The data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let mut bar = Bar::new("Checking");
    let report = check(&arguments.directory, "kiln data check", &mut |done, all| {
        bar.advance(done, all);
    });
    bar.clear();
    let report = report.map_err(readable)?;
    let path = path_text(&arguments.directory);
    super::super::print(&match arguments.json {
        true => as_json(&path, &report),
        false => as_text(&path, &report),
    })?;
    Ok(match report.damages.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn as_text(path: &str, report: &CheckReport) -> String {
    let mut text = format!(
        "Read {path}: {} ({}, {}) and the log ({}, {}, {});\n{}.\n",
        counted(report.checkpoints, "checkpoint"),
        counted(report.files, "file"),
        counted(report.rows, "row"),
        counted(report.segments, "segment"),
        counted(report.blocks, "block"),
        counted(report.entries, "entry"),
        size_and_rate(report.bytes, report.elapsed_ns)
    );
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    for damage in &report.damages {
        let _ = writeln!(text, "Damaged: {}", damage.message());
        if let Some(hint) = damage.hint() {
            let _ = writeln!(text, "  {hint}");
        }
    }
    let _ = match report.damages.len() as u64 {
        0 => writeln!(text, "All of it is what was written."),
        damages => writeln!(text, "{} found.", counted(damages, "damage")),
    };
    text
}

fn as_json(path: &str, report: &CheckReport) -> String {
    let damages = report.damages.iter();
    let damages = damages.map(|it| json!({"message": it.message(), "hint": it.hint()}));
    let value = json!({
        "directory": path,
        "is_whole": report.damages.is_empty(),
        "damages": damages.collect::<Vec<_>>(),
        "notes": report.notes,
        "checkpoints": report.checkpoints,
        "files": report.files,
        "rows": report.rows,
        "segments": report.segments,
        "blocks": report.blocks,
        "entries": report.entries,
        "bytes": report.bytes,
        "seconds": report.elapsed_ns as f64 / 1e9,
    });
    format!("{value}\n")
}
