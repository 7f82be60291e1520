//! `kiln backup` and `kiln restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln_durability::backup::{back_up_closed, restore as make};
use kiln_durability::{moment_from_text, moment_text};

use super::data::{Bar, grouped, readable, size_and_rate};

/// The arguments of `kiln backup`.
#[derive(Args)]
#[command(
    about = "Copy a database that no process has open",
    long_about = "Copy a database that no process has open: its last checkpoint and the log after it, with a checksum of \
        each file.\n\n\
        While a database is open, its process alone can copy it: a program that has it open calls Database::backup, and \
        its transactions go on meanwhile.",
    after_help = "Examples:\n  \
        kiln backup shop /mnt/backups/shop-monday\n  \
        kiln restore /mnt/backups/shop-monday shop-again"
)]
pub struct Backup {
    /// The data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the copy is to be: an empty directory, or a path where nothing is
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

/// The arguments of `kiln restore`.
#[derive(Args)]
#[command(
    about = "Make a data directory from a backup, up to a time if wanted",
    long_about = "Make a data directory from a backup.\n\n\
        All of the backup is read and compared with its checksums before anything is made. The new directory holds the same \
        database, with a log of its own from then on.",
    after_help = "Examples:\n  \
        kiln restore /mnt/backups/shop-monday shop-again\n  \
        kiln restore /mnt/backups/shop-monday shop-at-noon --to \"2026-01-31 12:00:00\"\n  \
        kiln restore /mnt/backups/shop-monday shop-at-noon --to 2026-01-31T13:00:00+01:00"
)]
pub struct Restore {
    /// The backup
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// Where the data directory is to be: an empty directory, or a path where nothing is
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Leave out what was written to the log after this time; without a zone it is in UTC. The
    /// times of a backup go from the end of its checkpoint to when it was taken [default: restore
    /// all of it]
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<i64>,
}

/// Reads a time, for the command line.
fn time(text: &str) -> Result<i64, String> {
    moment_from_text(text).map_err(|error| error.message().to_owned())
}

/// Runs `kiln backup`.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn back_up(arguments: Backup) -> Result<ExitCode, String> {
    let mut bar = Bar::new("Copying");
    let report = back_up_closed(
        &arguments.directory,
        &arguments.target,
        "kiln backup",
        &mut |done, all| {
            bar.advance(done, all);
        },
    );
    bar.clear();
    let report = report.map_err(readable)?;
    let list = &report.list;
    let checkpoint = match &list.checkpoint {
        Some(checkpoint) => format!(
            "checkpoint {} with {} rows, and the log up to",
            checkpoint.number,
            grouped(checkpoint.rows)
        ),
        None => "all of the log, up to".to_owned(),
    };
    super::print(&format!(
        "Copied database {} to {}: {checkpoint} log epoch {}.\nTaken at {}; {}.\n",
        list.database,
        arguments.target.display(),
        list.last_epoch,
        moment_text(list.taken_us),
        size_and_rate(list.bytes(), report.elapsed_ns)
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `kiln restore`.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn restore(arguments: Restore) -> Result<ExitCode, String> {
    let Restore {
        backup,
        directory,
        to,
    } = arguments;
    let mut bar = Bar::new("Checking and copying");
    let report = make(&backup, &directory, to, "kiln restore", &mut |done, all| {
        bar.advance(done, all);
    });
    bar.clear();
    let report = report.map_err(readable)?;
    let until = match report.last_us {
        Some(last_us) => format!("what was written to its log until {}", moment_text(last_us)),
        None => "nothing of its log".to_owned(),
    };
    let left_out = match report.groups_left_out {
        0 => String::new(),
        groups => format!(" Left out: {} later groups of commits.", grouped(groups)),
    };
    super::print(&format!(
        "Restored database {} to {}, with {until}.{left_out}\n{}.\n",
        report.list.database,
        directory.display(),
        size_and_rate(report.bytes, report.elapsed_ns)
    ))?;
    Ok(ExitCode::SUCCESS)
}
