//! `kiln serve`: a database for clients that speak PostgreSQL's protocol.

mod log;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use kiln::{Database, Options};
use kiln_platform::net::{self, SocketAddr};
use kiln_platform::{file, process};
use kiln_server::{Address, Logged, Server, ServerOptions, Tls};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::filter::LevelFilter;

use super::database;
use super::opening::Opening;
use super::settings::{Format, Given, Resolved, Settings, variable};
use log::Log;

/// The arguments of `kiln serve`.
///
/// Each flag can also be set in the environment and in a file; see `kiln config`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        kiln serve --data shop\n  \
        kiln serve --data shop --listen 127.0.0.1:5433 --socket-dir /run/kiln\n  \
        kiln serve --data shop --admin 127.0.0.1:9432\n  \
        psql -h 127.0.0.1 -U kiln\n  \
        psql \"postgresql://kiln@127.0.0.1:5432/kiln\"")]
pub struct Arguments {
    #[command(flatten)]
    given: Given,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let resolved = arguments.given.resolve(variable)?;
    let settings = Settings::of(&resolved)?;
    check(&settings, &resolved)?;
    let level = match arguments.quiet {
        true => settings.log_level.0.min(LevelFilter::ERROR),
        false => settings.log_level.0,
    };
    let _log = Log::start(settings.log_format, level)?;
    let voice = Voice {
        format: settings.log_format,
        is_quiet: arguments.quiet,
    };
    match (serve(&settings, voice), settings.log_format) {
        (Ok(()), _) => Ok(ExitCode::SUCCESS),
        (Err(why), Format::Text) => Err(why),
        (Err(why), Format::Json) => {
            tracing::error!("{why}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Checks what settings mean to each other.
fn check(settings: &Settings, resolved: &Resolved) -> Result<(), String> {
    let requires = |one: &str, other: &str| {
        let lacks = resolved.is_set(one) && !resolved.is_set(other);
        lacks.then(|| {
            format!(
                "{one} is set, which needs {other} as well (--{})",
                other.replace('_', "-")
            )
        })
    };
    let faults = [
        requires("tls_cert", "tls_key"),
        requires("tls_key", "tls_cert"),
        (settings.tls_required)
            .then(|| requires("tls_required", "tls_cert"))
            .flatten(),
        requires("logging", "data"),
    ];
    match faults.into_iter().flatten().next() {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

/// How the server says what scripts look for.
#[derive(Clone, Copy)]
struct Voice {
    format: Format,
    is_quiet: bool,
}

fn serve(settings: &Settings, voice: Voice) -> Result<(), String> {
    let options = server_options(settings)?;
    let database = open(database_options(settings)?, voice)?;
    // From here on the server ends in good order. A signal during a recovery ends the process, and
    // nothing is lost.
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("cannot take signals: {error}"))?;
    let signal = signals.handle();
    allow_descriptors(options.connections_max);
    warn_of(settings, &database);
    let server = Server::start(database.clone(), options).map_err(|error| format!("{error:#}"))?;
    announce(settings, &server, voice);
    let name = match signals.forever().next() {
        Some(SIGINT) => "SIGINT",
        _ => "SIGTERM",
    };
    tell_manager("STOPPING=1");
    tracing::info!(
        clients = server.clients(),
        "{name}: clients end what they have begun"
    );
    signal.close();
    server.end();
    database.close();
    tracing::info!("the server has ended");
    Ok(())
}

fn server_options(settings: &Settings) -> Result<ServerOptions, String> {
    let addresses = &settings.listen.0;
    let mut listen: Vec<Address> = addresses.iter().copied().map(Address::Tcp).collect();
    if let (Some(directory), Some(first)) = (&settings.socket_dir, addresses.first()) {
        let port = first.port();
        listen.push(Address::Unix(directory.join(format!(".s.PGSQL.{port}"))));
    }
    let mut logged = Logged::default();
    logged.slow_ns = settings.log_slow.ns();
    logged.values = settings.log_values;
    logged.database = true;
    logged.block_ns = settings.log_block.ns();
    let mut options = ServerOptions::default();
    options.listen = listen;
    options.connections_max = settings.connections.0 as usize;
    options.authentication = settings.auth;
    options.tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => Some(tls(certificate, key)?),
        _ => None,
    };
    options.tls_required = settings.tls_required;
    options.drain_s = settings.drain.s();
    options.admin = settings.admin;
    options.logged = logged;
    Ok(options)
}

fn database_options(settings: &Settings) -> Result<Options, String> {
    let connections = settings.connections.0 as usize;
    let protocol = database::allowed(settings.protocol, settings.allow_unserializable)?;
    let options = Options::new()
        .protocol(protocol)
        .allow_unserializable(settings.allow_unserializable)
        .data_dir(settings.data.clone())
        .logging(settings.logging)
        .recovery_target_s(settings.recovery_target.s())
        .session_slots(settings.session_slots.0 as usize)
        .slot_wait_ms(settings.slot_wait.ms())
        .idle_in_transaction_ms(settings.idle_in_transaction.ms())
        .inbox_capacity(connections)
        // The server's own statements have sessions as well.
        .sessions_max(connections + 100);
    Ok(match settings.workers {
        Some(workers) => options.workers(workers.0 as usize),
        None => options,
    })
}

/// Opens the database, and says how far its recovery has come, what it has read, and what was wrong
/// with it.
fn open(options: Options, voice: Voice) -> Result<Database, String> {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data = options.data_dir.as_ref().map(|data| data.display().to_string()),
        protocol = %options.protocol,
        workers = options.workers,
        "starting"
    );
    let began_ns = kiln_platform::time::now_ns();
    let mut opening = Opening::new();
    let shows = !voice.is_quiet && voice.format == Format::Text;
    let opened = Database::open_with_progress(options, |progress| {
        if shows {
            opening.show(progress);
        }
    });
    opening.clear();
    let database = opened.map_err(|error| format!("cannot open a database: {error:#}"))?;
    if let Some(recovery) = database.recovery() {
        for warning in &recovery.warnings {
            tracing::warn!("{warning}");
        }
        let elapsed_ms = (kiln_platform::time::now_ns() - began_ns) as f64 / 1e6;
        tracing::info!(elapsed_ms, "{recovery}");
    }
    Ok(database)
}

/// Each client has a descriptor; files, the log and the system's own have some.
fn allow_descriptors(connections: usize) {
    let wanted = connections + 256;
    match net::allow_descriptors(wanted) {
        Ok(allowed) if allowed < wanted => tracing::warn!(
            "this process may have {allowed} open files: so many clients less 256 find room (ulimit -n {wanted})"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!("the bound on open files is not known: {error}"),
    }
}

/// Says that clients are served. Scripts look for the line `Listening on ADDRESS`, which has
/// nothing before it unless the log is JSON.
fn announce(settings: &Settings, server: &Server, voice: Voice) {
    let lines = server
        .addresses()
        .iter()
        .map(|it| format!("Listening on {it}"));
    let admin = server.admin_address();
    let admin = admin.map(|it| format!("Metrics and health on http://{it}"));
    let data = match &settings.data {
        Some(directory) => format!("Data directory {}", directory.display()),
        None => "Nothing is kept: the database is gone when the server ends; --data DIR keeps it"
            .to_owned(),
    };
    let lines = lines.chain(admin).chain([data]);
    match voice.format {
        Format::Json => lines.for_each(|line| tracing::info!("{line}")),
        Format::Text if voice.is_quiet => {}
        Format::Text => lines.for_each(|line| eprintln!("{line}")),
    }
    tell_manager("READY=1");
}

/// Tells systemd, if it wants to know.
fn tell_manager(state: &str) {
    if let Err(error) = process::notify_manager(state) {
        tracing::warn!("the service manager cannot be told {state}: {error}");
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
fn warn_of(settings: &Settings, database: &Database) {
    let is_open = |address: &SocketAddr| !address.ip().is_loopback();
    if let Some(admin) = settings.admin.filter(is_open) {
        tracing::warn!(
            "all who can reach {admin} can read the metrics: names of tables, procedures and roles among them"
        );
    }
    let Some(open) = settings.listen.0.iter().find(|address| is_open(address)) else {
        return;
    };
    let catalog = database.engine().catalog();
    if !catalog.roles().has_passwords() {
        tracing::warn!(
            "no client from another machine can connect to {open}: no role has a password (ALTER ROLE kiln PASSWORD '…')"
        );
    }
    if !settings.tls_required {
        tracing::warn!(
            "what clients of {open} send and receive can be read on the way, but for passwords, unless they use TLS; \
             --tls-required has them use it"
        );
    }
}
