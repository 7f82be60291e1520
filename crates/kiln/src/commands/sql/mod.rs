//! `kiln sql`: statements and scripts against a database in memory or in a data directory, and a shell.

mod describe;
mod interactive;
mod shell;
mod sources;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln::{Configuration, Logging, Options};

use shell::Shell;
use sources::Sources;

/// The arguments of `kiln sql`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        kiln sql\n  \
        kiln sql -c \"SELECT 2 + 2 AS four\"\n  \
        kiln sql --data shop\n  \
        kiln sql --data shop -c \"CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER)\"\n  \
        kiln sql -f schema.sql -f procedures.sql -c \"CALL transfer(1, 2, 10.00)\" --csv")]
pub struct Arguments {
    #[command(flatten)]
    sources: Sources,
    /// Keep the database in this directory, which is made if it is not there; one that is there is recovered
    /// first, and one line on standard error says so [default: in memory alone]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// What the log in --data keeps of a call of a procedure: what it wrote, or the call, which only protocols can that order
    /// calls before they run (serial, vll and its kin)
    #[arg(long, value_parser = super::logging(), default_value_t = Logging::Values, requires = "data")]
    logging: Logging,
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
        .data_dir(arguments.data)
        .logging(arguments.logging);
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
