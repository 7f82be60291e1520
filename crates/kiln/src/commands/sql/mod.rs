//! `kiln sql`: statements and scripts against a database in memory or in a data directory, and a shell.

mod describe;
mod interactive;
mod shell;
mod sources;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln::{Configuration, Options};

use shell::Shell;
use sources::Sources;

/// The arguments of `kiln sql`.
#[derive(Args)]
#[command(
    long_about = "Run SQL statements and scripts, or talk to a database.\n\n\
        Files and statements are run in the order given, on one database. It is gone at the end, unless --data \
        names a directory that keeps it. \
        Without any, statements are read from standard input; on a terminal that is a shell, in \
        which \\? explains itself.\n\n\
        The first error ends it all, with exit code 1, unless --continue-on-error is given.",
    after_help = "Examples:\n  \
        kiln sql\n  \
        kiln sql -c \"SELECT 2 + 2 AS four\"\n  \
        kiln sql --data shop -c \"CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER)\"\n  \
        kiln sql -f schema.sql -f procedures.sql -c \"CALL transfer(1, 2, 10.00)\" --csv"
)]
pub struct Arguments {
    #[command(flatten)]
    sources: Sources,
    /// Keep the database in this directory: it is made, or what is in it is recovered [default: in memory alone]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The concurrency-control protocol, with its options
    #[arg(long, value_name = "P", value_parser = super::protocol)]
    protocol: Option<Configuration>,
    /// Let --protocol name a baseline that does not serialize transactions, and loses updates
    #[arg(long)]
    allow_unserializable: bool,
    /// Print results as comma-separated values and nothing else, as psql -q --csv does
    #[arg(long)]
    csv: bool,
    /// Do not print what statements without a result did
    #[arg(short, long)]
    quiet: bool,
    /// Go on after a statement that failed
    #[arg(long)]
    continue_on_error: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let protocol = arguments.protocol.unwrap_or_default();
    if !protocol.protocol.is_serializable() && !arguments.allow_unserializable {
        return Err(format!(
            "protocol {protocol} does not serialize transactions ({}): it loses updates and breaks constraints, and exists to \
             be measured; --allow-unserializable runs it all the same",
            protocol.protocol.description()
        ));
    }
    // All files are read before anything runs: a missing one is no half-done work.
    let scripts = arguments.sources.read()?;
    let options = Options::new()
        .protocol(protocol)
        .allow_unserializable(arguments.allow_unserializable)
        .data_dir(arguments.data);
    let mut shell = Shell::open(options, arguments.csv, arguments.quiet || arguments.csv)?;
    let mut succeeded = true;
    if !scripts.is_empty() {
        for script in &scripts {
            succeeded &= shell.script(&script.name, &script.text, arguments.continue_on_error)?;
            if !succeeded && !arguments.continue_on_error {
                break;
            }
        }
    } else if std::io::stdin().is_terminal() {
        interactive::run(&mut shell)?;
    } else {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| format!("standard input: {error}"))?;
        succeeded = shell.script("<stdin>", &text, arguments.continue_on_error)?;
    }
    Ok(if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
