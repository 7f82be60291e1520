//! `kiln sql`: statements and scripts against a database in memory or in a data directory, or
//! against a server, and a shell.

mod describe;
mod interactive;
mod remote;
mod shell;
mod sources;
mod target;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::Args;

use super::database::DatabaseArguments;
use shell::Shell;
use sources::Sources;
use target::Target;

/// The arguments of `kiln sql`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        kiln sql\n  \
        kiln sql -c \"SELECT 2 + 2 AS four\"\n  \
        kiln sql --data shop\n  \
        kiln sql --data shop -c \"CREATE TABLE seats (id INTEGER PRIMARY KEY, free INTEGER)\"\n  \
        kiln sql --connect postgresql://kiln@localhost:5432/kiln -c \"SELECT version()\"\n  \
        kiln sql -f schema.sql -f procedures.sql -c \"CALL transfer(1, 2, 10.00)\" --csv")]
pub struct Arguments {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    database: DatabaseArguments,
    /// Run them on a server, of Kiln or of PostgreSQL:
    /// postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=MODE&sslrootcert=FILE; for a Unix
    /// socket ?host=DIRECTORY. Passwords are better in PGPASSWORD
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "logging", "protocol", "allow_unserializable"])]
    connect: Option<String>,
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
    // All files are read before anything runs: a missing one is no half-done work.
    let scripts = arguments.sources.read()?;
    let quiet = arguments.quiet || arguments.csv;
    let target = match &arguments.connect {
        Some(url) => Target::connect(url)?,
        None => Target::open(arguments.database.options()?, quiet)?,
    };
    let mut shell = Shell::new(target, arguments.csv, quiet);
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
