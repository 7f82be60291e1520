//! `kiln data status`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln_durability::inspect::{Status, status};
use kiln_durability::{CheckpointEntry, moment_text};
use kiln_engine::Options;
use serde_json::{Value, json};

use super::{counted, path_text, readable, size};

/// The arguments of `kiln data status`.
#[derive(Args)]
#[command(
    about = "Show how large a database is, what a recovery would take, and whether a process has it open",
    long_about = "Show how large a database is, how long it would take to recover, and whether a process has it open.\n\n\
        A process may have the database open: then the figures are those of a moment."
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
    let status = status(&arguments.directory).map_err(readable)?;
    let path = path_text(&arguments.directory);
    super::super::print(&match arguments.json {
        true => as_json(&path, &status),
        false => as_text(&path, &status),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a recovery reads of checkpoints, in bytes, and the seconds that it would take.
fn recovery(status: &Status) -> (u64, f64) {
    let rates = status
        .manifest
        .recovery_rates(Options::new().recovery_threads);
    let checkpoint = status.manifest.checkpoints.last();
    let bytes = checkpoint.map_or(0, CheckpointEntry::bytes);
    (bytes, rates.seconds(bytes, status.replay_bytes))
}

fn as_text(path: &str, status: &Status) -> String {
    let manifest = &status.manifest;
    let checkpoints: u64 = manifest
        .checkpoints
        .iter()
        .map(CheckpointEntry::bytes)
        .sum();
    let last = match manifest.checkpoints.last() {
        None => "none".to_owned(),
        Some(last) => format!(
            "{}, of {}: {}, log epochs {} to {}",
            last.number,
            moment_text(last.written_us),
            counted(last.rows, "row"),
            last.start_epoch,
            last.end_epoch
        ),
    };
    let end = match &status.end {
        None => "empty".to_owned(),
        Some(end) => format!(
            "log epoch {}, written {}",
            end.header.epochs.1,
            moment_text(end.header.written_us)
        ),
    };
    let remark = match (&status.remark, &status.holder) {
        (None, _) => String::new(),
        (Some(remark), Some(_)) => format!("State            {remark}\n"),
        (Some(remark), None) => format!("When last open   {remark}\n"),
    };
    let (checkpoint_bytes, seconds) = recovery(status);
    let rates = manifest.recovery_rates(Options::new().recovery_threads);
    let last_recovery = manifest.recovery.map_or_else(String::new, |recovery| {
        format!(
            "Last recovery    {:.3} s, estimated {:.3} s\n",
            recovery.elapsed_us as f64 / 1e6,
            recovery.estimated_us as f64 / 1e6
        )
    });
    format!(
        "Data directory   {path}\n\
         Database         {}, format {}\n\
         Created          {}\n\
         In use           {}\n\
         {remark}\
         Checkpoints      {}, {}\n\
         Last checkpoint  {last}\n\
         Log              {}, {}\n\
         End of the log   {end}\n\
         Recovery         about {seconds:.1} s: {} of a checkpoint at {} a second, {} of log at {} a second\n\
         {last_recovery}",
        manifest.database,
        kiln_durability::format::FORMAT_VERSION,
        moment_text(manifest.created_us),
        match &status.holder {
            Some(holder) => format!("by {holder}"),
            None => "no".to_owned(),
        },
        manifest.checkpoints.len(),
        size(checkpoints),
        counted(status.segments, "segment"),
        size(status.log_bytes),
        size(checkpoint_bytes),
        size(rates.checkpoint_bytes_per_s),
        size(status.replay_bytes),
        size(rates.log_bytes_per_s),
    )
}

fn as_json(path: &str, status: &Status) -> String {
    let manifest = &status.manifest;
    let (checkpoint_bytes, seconds) = recovery(status);
    let rates = manifest.recovery_rates(Options::new().recovery_threads);
    let end = status.end.map(|end| {
        json!({
            "segment": end.segment,
            "offset": end.offset,
            "block": end.header.number,
            "epoch": end.header.epochs.1,
            "written": moment_text(end.header.written_us),
        })
    });
    let value = json!({
        "directory": path,
        "database": manifest.database.to_string(),
        "format": kiln_durability::format::FORMAT_VERSION,
        "created": moment_text(manifest.created_us),
        "holder": status.holder,
        "remark": status.remark,
        "checkpoints": manifest.checkpoints.iter().map(checkpoint_json).collect::<Vec<_>>(),
        "first_segment": manifest.first_segment,
        "segments": status.segments,
        "log_bytes": status.log_bytes,
        "log_end": end,
        "recovery": {
            "checkpoint_bytes": checkpoint_bytes,
            "checkpoint_bytes_per_s": rates.checkpoint_bytes_per_s,
            "log_bytes": status.replay_bytes,
            "log_bytes_per_s": rates.log_bytes_per_s,
            "seconds": seconds,
        },
        "last_recovery": manifest.recovery.map(|recovery| json!({
            "seconds": recovery.elapsed_us as f64 / 1e6,
            "estimated_seconds": recovery.estimated_us as f64 / 1e6,
        })),
    });
    format!("{value}\n")
}

/// What a manifest says of a checkpoint.
pub fn checkpoint_json(checkpoint: &CheckpointEntry) -> Value {
    json!({
        "number": checkpoint.number,
        "epochs": [checkpoint.start_epoch, checkpoint.end_epoch],
        "segment": checkpoint.segment,
        "catalog": checkpoint.catalog,
        "written": moment_text(checkpoint.written_us),
        "rows": checkpoint.rows,
        "files": checkpoint.files.len(),
        "bytes": checkpoint.bytes(),
    })
}
