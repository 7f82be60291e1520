//! `kiln serve`: a database for clients that speak PostgreSQL's protocol.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use kiln::Database;
use kiln_platform::file;
use kiln_platform::net::{self, SocketAddr};
use kiln_server::{Address, Authentication, Server, ServerOptions, Tls};
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
    /// Who must prove with a password who they are: `automatic` asks as soon as a role has a password, and trusts this machine
    /// until then; `trust` trusts this machine always; `password` trusts nobody. Clients from other machines are always asked
    #[arg(long, value_name = "WHO", default_value = "automatic", value_parser = authentication)]
    auth: Authentication,
    /// Encrypt connections of clients that ask for it, with the certificate in this PEM file, its issuers behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Refuse clients from other machines that do not ask for encryption
    #[arg(long, requires = "tls_cert")]
    tls_required: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let listen = arguments.listen.iter().copied().map(Address::Tcp);
    let mut listen: Vec<Address> = listen.collect();
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(tls(certificate, key)?),
        _ => None,
    };
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
    server_options.authentication = arguments.auth;
    server_options.tls = tls;
    server_options.tls_required = arguments.tls_required;
    warn_of(&arguments, &database);
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

fn authentication(text: &str) -> Result<Authentication, String> {
    match text {
        "automatic" => Ok(Authentication::Automatic),
        "trust" => Ok(Authentication::Trust),
        "password" => Ok(Authentication::Password),
        _ => Err("it is automatic, trust or password".to_owned()),
    }
}

fn tls(certificate: &Path, key: &Path) -> Result<Tls, String> {
    let read = |path: &Path| {
        file::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    Tls::new(read(certificate)?.as_bytes(), read(key)?.as_bytes()).map_err(|error| {
        format!(
            "cannot encrypt with {} and {}: {error}",
            certificate.display(),
            key.display()
        )
    })
}

/// Says what the clients of other machines cannot do, and what others could read.
fn warn_of(arguments: &Arguments, database: &Database) {
    let mut listen = arguments.listen.iter();
    let Some(open) = listen.find(|address| !address.ip().is_loopback()) else {
        return;
    };
    let catalog = database.engine().catalog();
    if !catalog.roles().has_passwords() {
        eprintln!(
            "WARNING:  no client from another machine can connect to {open}: no role has a password (ALTER ROLE kiln PASSWORD '…')"
        );
    }
    if !arguments.tls_required {
        eprintln!(
            "WARNING:  what clients of {open} send and receive can be read on the way, but for passwords, unless they use TLS; \
             --tls-required has them use it"
        );
    }
}
