//! The basis factors on the command line.

use clap::{Args, ValueEnum};
use kiln_engine::BasisFactors;
use kiln_engine::factors::{AbortMechanism, Batches, DeadlockAvoidance, Regulation};

const HEADING: &str = "Basis factors (the default is the recommended choice)";

/// Arguments that put basis factors back to choices that are not recommended.
#[derive(Args)]
#[command(next_help_heading = HEADING)]
pub struct BasisFactorArguments {
    /// What a transaction does between two attempts
    #[arg(long, value_enum, default_value_t = Backoff::Exponential)]
    backoff: Backoff,
    /// How a failed attempt gets back to where it began
    #[arg(long, value_enum, default_value_t = Aborts::Return)]
    aborts: Aborts,
    /// What indexes are for keys that are looked up whole
    #[arg(long, value_enum, default_value_t = Indexes::Hash)]
    indexes: Indexes,
    /// Whether ordered indexes are partitioned by the prefixes that all their scans fix
    #[arg(long, value_enum, default_value_t = Switch::On)]
    contention_aware: Switch,
    /// What keeps optimistic commits from waiting for each other in a circle
    #[arg(long, value_enum, default_value_t = Deadlock::Spin)]
    deadlock: Deadlock,
    /// Under orthrus: how many of the threads only control concurrency [default: a fifth of the cores, at least 1]
    #[arg(long, value_name = "N", help_heading = "Planned execution",
          value_parser = clap::value_parser!(u16).range(1..=32))]
    cc_threads: Option<u16>,
    /// Under strife: calls of a batch [default: 256 for each core]
    #[arg(long, value_name = "N", help_heading = "Planned execution",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch_size: Option<u32>,
    /// Under strife: microseconds that the first call of a batch waits for others at most [default: 1000]
    #[arg(long, value_name = "US", help_heading = "Planned execution",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    batch_us: Option<u32>,
    /// Under strife: random transactions that special clusters are made of [default: ten for three cores]
    #[arg(long, value_name = "N", help_heading = "Planned execution",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    k: Option<u16>,
    /// Under strife: the part of their transactions that two special clusters must have in common to be merged
    #[arg(long, value_name = "0..1", help_heading = "Planned execution", default_value = "0.2",
          value_parser = permille)]
    alpha: u16,
}

/// A number from 0 to 1, in thousandths.
fn permille(text: &str) -> Result<u16, String> {
    match text.parse::<f64>() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok((part * 1000.0).round() as u16),
        _ => Err("from 0 to 1".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backoff {
    /// A random time that doubles with each failure
    Exponential,
    /// Nothing
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Aborts {
    /// By return values
    Return,
    /// By unwinding the stack, as exceptions do; for silo
    Unwind,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Indexes {
    /// A hash index beside the ordered one
    Hash,
    /// The ordered index alone
    Ordered,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// They are
    On,
    /// They are not
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deadlock {
    /// Bounded spinning on each lock
    Spin,
    /// Locking in a global order; for silo
    Sort,
}

impl From<&BasisFactorArguments> for BasisFactors {
    fn from(arguments: &BasisFactorArguments) -> BasisFactors {
        let mut factors = BasisFactors::default();
        if arguments.backoff == Backoff::None {
            factors.protocols.regulation = Regulation::None;
        }
        if arguments.aborts == Aborts::Unwind {
            factors.protocols.abort_mechanism = AbortMechanism::Unwind;
        }
        if arguments.deadlock == Deadlock::Sort {
            factors.protocols.deadlock_avoidance = DeadlockAvoidance::Sort;
        }
        factors.protocols.concurrency_controllers = arguments.cc_threads.unwrap_or(0);
        factors.protocols.batches = Batches {
            size: arguments.batch_size.unwrap_or(0),
            wait_us: arguments.batch_us.unwrap_or(0),
            samples: arguments.k.unwrap_or(0),
            residuals_permille: arguments.alpha,
        };
        factors.hash_indexes = arguments.indexes == Indexes::Hash;
        factors.partitioned_indexes = arguments.contention_aware == Switch::On;
        factors
    }
}
