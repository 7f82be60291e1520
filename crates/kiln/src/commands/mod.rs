//! One module a subcommand.

mod basis_factors;
pub mod bench;
pub mod check;
pub mod explain;
pub mod model;
pub mod sim;
pub mod sql;

use std::io::Write;

use kiln_engine::Configuration;

/// The name of the program's memory allocator.
pub const ALLOCATOR: &str = match cfg!(feature = "system-allocator") {
    true => "the system's",
    false => "mimalloc",
};

/// Reads a protocol with its options, for the command line.
fn protocol(text: &str) -> Result<Configuration, String> {
    text.parse()
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
