//! One module a subcommand.

pub mod backup;
mod basis_factors;
pub mod bench;
pub mod check;
pub mod config;
pub mod crash;
pub mod data;
mod database;
pub mod explain;
pub mod health;
pub mod lab;
pub mod model;
mod opening;
pub mod serve;
mod settings;
pub mod sim;
pub mod sql;

use std::io::Write;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kiln_engine::{Configuration, Logging, Protocol, ProtocolOption};

/// The name of the program's memory allocator.
pub const ALLOCATOR: &str = match cfg!(feature = "system-allocator") {
    true => "the system's",
    false => "mimalloc",
};

/// Where protocols that lock keep their locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Locks {
    /// Beside the record
    Record,
    /// In a hash table with a latch for each bucket
    Table,
}

/// Protocols with their locks where `locks` says.
///
/// # Errors
/// A sentence that names the first that cannot have them there.
fn placed(
    protocols: Vec<Configuration>,
    locks: Option<Locks>,
) -> Result<Vec<Configuration>, String> {
    match locks {
        Some(Locks::Table) => protocols
            .into_iter()
            .map(|protocol| {
                let placed = protocol.with(ProtocolOption::LockTable);
                placed.map_err(|_| {
                    let lockers = Protocol::ALL
                        .into_iter()
                        .filter(|other| other.options().contains(&ProtocolOption::LockTable));
                    let names: Vec<&str> = lockers.map(Protocol::name).collect();
                    format!(
                        "{protocol} has no locks in a table; these can have them there: {}",
                        names.join(", ")
                    )
                })
            })
            .collect(),
        Some(Locks::Record) | None => Ok(protocols),
    }
}

/// Reads a protocol with its options, for the command line.
fn protocol(text: &str) -> Result<Configuration, String> {
    text.parse()
}

/// What the log keeps of a commit, for the command line.
fn logging() -> impl TypedValueParser<Value = Logging> {
    PossibleValuesParser::new(Logging::ALL.map(Logging::name)).map(|name| {
        let named = Logging::ALL.into_iter().find(|it| it.name() == name);
        named.expect("it is one of their names")
    })
}

/// Writes to standard output. A reader that went away (`| head`) ends the program quietly.
fn print(text: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(format!("standard output: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Parser};

    #[derive(Parser)]
    struct CommandLine<A: Args> {
        #[command(flatten)]
        arguments: A,
    }

    /// The arguments of a subcommand, from the words behind its name.
    pub(super) fn parsed_by<A: Args>(name: &str, words: &str) -> Result<A, String> {
        let words = std::iter::once(name).chain(words.split_whitespace());
        let line = CommandLine::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(line.arguments)
    }
}
