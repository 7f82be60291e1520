//! The `kiln` command: benchmarks, a SQL shell, and the analysis of procedures.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measured at 6 ns an allocation, and the best of those compared at freeing on another thread.
/// Runs on virtual cores bring an allocator of their own.
#[cfg(not(any(kiln_sim, feature = "system-allocator")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A main-memory, multicore, serializable database for hot data.
#[derive(Parser)]
#[command(name = "kiln", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a benchmark under one or several protocols, and audit it
    Bench(commands::bench::Arguments),
    /// Run a workload, record what its transactions did, and judge whether that is serializable
    Check(commands::check::Arguments),
    /// Run SQL statements and scripts, or talk to a database
    ///
    /// Files and statements are run in the order given, on one database. It is gone at the end,
    /// unless --data names a directory that keeps it. Without any, statements are read from
    /// standard input; on a terminal that is a shell, in which \? explains itself.
    ///
    /// The first error ends it all, with exit code 1, unless --continue-on-error is given; on a
    /// terminal the shell goes on. Mistakes in the arguments end with exit code 2.
    Sql(commands::sql::Arguments),
    /// Serve a database to clients of PostgreSQL: psql, drivers, pgbench
    Serve(commands::serve::Arguments),
    Config(commands::config::Arguments),
    Health(commands::health::Arguments),
    /// Check, inspect and sum up the directory in which a database is kept
    Data(commands::data::Arguments),
    Backup(commands::backup::Backup),
    Restore(commands::backup::Restore),
    /// Run a workload on virtual cores: test it under many schedules, or measure a modelled machine
    Sim(commands::sim::Arguments),
    /// Measure the papers' figures again, and draw and judge them
    Lab(commands::lab::Arguments),
    /// Show what a procedure does to which records: its operations, keys and footprint
    Explain(commands::explain::Arguments),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Check(arguments) => commands::check::run(arguments),
        Command::Sql(arguments) => commands::sql::run(arguments),
        Command::Serve(arguments) => commands::serve::run(arguments),
        Command::Config(arguments) => commands::config::run(arguments),
        Command::Health(arguments) => commands::health::run(arguments),
        Command::Data(arguments) => commands::data::run(arguments),
        Command::Backup(arguments) => commands::backup::back_up(arguments),
        Command::Restore(arguments) => commands::backup::restore(arguments),
        Command::Sim(arguments) => commands::sim::run(arguments),
        Command::Lab(arguments) => commands::lab::run(arguments),
        Command::Explain(arguments) => commands::explain::run(arguments),
    };
    match result {
        Ok(code) => code,
        Err(message) => {
            eprintln!("kiln: {message}");
            ExitCode::FAILURE
        }
    }
}
