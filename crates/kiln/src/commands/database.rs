//! Arguments that say which database is opened, and how.

use std::path::PathBuf;

use clap::Args;
use kiln::{Configuration, Database, Logging, Options};

use super::opening::Opening;

/// The arguments.
#[derive(Args)]
pub struct DatabaseArguments {
    /// Keep the database in this directory, which is made if it is not there; one that is there is
    /// recovered first, and one line on standard error says so [default: in memory alone]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// What the log in --data keeps of a call of a procedure: what it wrote, or the call, which
    /// only protocols can that order calls before they run (serial, vll and its kin)
    #[arg(long, value_parser = super::logging(), default_value_t = Logging::Values, requires = "data")]
    logging: Logging,
    /// The concurrency-control protocol, with its options
    #[arg(long, value_name = "P", value_parser = super::protocol)]
    pub protocol: Option<Configuration>,
    /// Let --protocol name a baseline that does not serialize transactions, and loses updates
    #[arg(long)]
    allow_unserializable: bool,
}

impl DatabaseArguments {
    /// The options that they ask for.
    ///
    /// # Errors
    /// A sentence for a protocol that does not serialize transactions, unless that is allowed.
    pub fn options(&self) -> Result<Options, String> {
        let protocol = allowed(self.protocol.unwrap_or_default(), self.allow_unserializable)?;
        Ok(Options::new()
            .protocol(protocol)
            .allow_unserializable(self.allow_unserializable)
            .data_dir(self.data.clone())
            .logging(self.logging))
    }
}

/// The protocol, if it may be run.
///
/// # Errors
/// A sentence for one that does not serialize transactions, unless that is allowed.
pub fn allowed(
    protocol: Configuration,
    allow_unserializable: bool,
) -> Result<Configuration, String> {
    if !protocol.protocol.is_serializable() && !allow_unserializable {
        return Err(format!(
            "protocol {protocol} does not serialize transactions ({}): it loses updates and breaks constraints, and exists to \
             be measured; --allow-unserializable runs it all the same",
            protocol.protocol.description()
        ));
    }
    Ok(protocol)
}

/// Opens a database, and says on standard error how far its recovery has come, what it has read,
/// and what was wrong with it.
///
/// # Errors
/// A sentence that says why it cannot be opened.
pub fn open(options: Options, quiet: bool) -> Result<Database, String> {
    let mut opening = Opening::new();
    let opened = Database::open_with_progress(options, |progress| {
        if !quiet {
            opening.show(progress);
        }
    });
    opening.clear();
    let database = opened.map_err(|error| format!("cannot open a database: {error:#}"))?;
    if let Some(recovery) = database.recovery() {
        for warning in &recovery.warnings {
            eprintln!("WARNING:  {warning}");
        }
        if !quiet {
            eprintln!("{recovery}");
        }
    }
    Ok(database)
}
