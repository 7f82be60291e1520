//! `kiln serve`: a database for clients that speak PostgreSQL's protocol.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kiln_platform::net::{self, SocketAddr};
use kiln_server::{Address, Server, ServerOptions};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::database::{self, DatabaseArguments};

/// The arguments of `kiln serve`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        kiln serve --data shop\n  \
        kiln serve --data shop --listen 127.0.0.1:5433 --socket-dir /run/kiln\n  \
        psql -h 127.0.0.1 -U kiln\n  \
        psql \"postgresql://kiln@127.0.0.1:5432/kiln\"")]
pub struct Arguments {
    #[command(flatten)]
    database: DatabaseArguments,
    /// Listen for TCP connections on these addresses of this machine, separated by commas; port 0 lets the system choose
    #[arg(
        long,
        value_name = "ADDRESS[,…]",
        value_delimiter = ',',
        default_value = "127.0.0.1:5432"
    )]
    listen: Vec<SocketAddr>,
    /// Listen on the Unix socket .s.PGSQL.PORT in this directory as well, with the port of the first address, as psql and drivers
    /// look for it with -h DIR
    #[arg(long, value_name = "DIR")]
    socket_dir: Option<PathBuf>,
    /// Threads that run transactions [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// Clients at a time; further ones are told that there are too many
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    connections: u32,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let mut listen = Vec::new();
    for address in &arguments.listen {
        if !address.ip().is_loopback() {
            return Err(format!(
                "{address} can be reached from other machines, and there are no passwords yet: listen on a loopback address, and \
                 let others in through an SSH tunnel"
            ));
        }
        listen.push(Address::Tcp(*address));
    }
    if let (Some(directory), Some(first)) = (&arguments.socket_dir, arguments.listen.first()) {
        let port = first.port();
        listen.push(Address::Unix(directory.join(format!(".s.PGSQL.{port}"))));
    }
    let connections = arguments.connections as usize;
    let mut options = (arguments.database.options()?)
        .inbox_capacity(connections)
        // The server's own statements have sessions as well.
        .sessions_max(connections + 100);
    if let Some(workers) = arguments.workers {
        options = options.workers(workers.into());
    }
    let database = database::open(options, arguments.quiet)?;
    // From here on the server ends in good order. A signal during a recovery ends the process, and nothing is lost.
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("cannot take signals: {error}"))?;
    let signal = signals.handle();
    // Each client has a descriptor; files, the log and the system's own have some.
    let wanted = connections + 256;
    match net::allow_descriptors(wanted) {
        Ok(allowed) if allowed < wanted => eprintln!(
            "WARNING:  this process may have {allowed} open files: so many clients less 256 find room (ulimit -n {wanted})"
        ),
        Ok(_) => {}
        Err(error) => eprintln!("WARNING:  the bound on open files is not known: {error}"),
    }
    let mut server_options = ServerOptions::default();
    server_options.listen = listen;
    server_options.connections_max = connections;
    let server =
        Server::start(database.clone(), server_options).map_err(|error| format!("{error:#}"))?;
    if !arguments.quiet {
        for address in server.addresses() {
            eprintln!("Listening on {address}");
        }
        match &arguments.database.data {
            Some(directory) => eprintln!("Data directory {}", directory.display()),
            None => eprintln!(
                "Nothing is kept: the database is gone when the server ends; --data DIR keeps it"
            ),
        }
    }
    let name = match signals.forever().next() {
        Some(SIGINT) => "SIGINT",
        _ => "SIGTERM",
    };
    if !arguments.quiet {
        eprintln!(
            "{name}: {} clients end what they have begun",
            server.clients()
        );
    }
    signal.close();
    server.end();
    database.close();
    Ok(ExitCode::SUCCESS)
}
