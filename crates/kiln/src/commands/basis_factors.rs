//! The basis factors on the command line.

use clap::{Args, ValueEnum};
use kiln_engine::BasisFactors;
use kiln_engine::factors;
use kiln_engine::factors::{
    AbortMechanism, Batches, Controllers, DeadlockAvoidance, Regulation, Use,
};

const HEADING: &str = "Basis factors (the default is the recommended choice)";

const HEALING: &str = "Transaction healing";

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
    /// Under orthrus and orthrus-shared: how many of the threads only control concurrency, up to
    /// 32; `auto` finds it out while they run [default: a fifth of the cores, at least 1]
    #[arg(long, value_name = "auto|N", help_heading = "Planned execution", value_parser = controllers)]
    cc_threads: Option<Controllers>,
    /// Under partitioned, vll-single and dora: into how many partitions the data are divided
    /// [default: twice as many as there are cores; under the others as many]
    #[arg(long, value_name = "N", help_heading = "Planned execution",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    data_partitions: Option<u16>,
    /// Under orthrus, vll-single and dora: which partition has which data. What tables do not
    /// declare (PARTITION BY) is divided by a hash of its records
    #[arg(long, value_enum, help_heading = "Planned execution", default_value_t = Partitioning::Declared)]
    partitioning: Partitioning,
    /// Under strife: calls of a batch; auto begins with 256 for each core, and looks at what
    /// batches show
    #[arg(long, value_name = "auto|N", help_heading = "Planned execution", default_value = "auto",
          value_parser = auto_or::<1, 65_536>)]
    batch_size: Auto<u32>,
    /// Under strife: microseconds that the first call of a batch waits for others at most [default:
    /// 4 for each call of a batch, at least 5000]
    #[arg(long, value_name = "US", help_heading = "Planned execution",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    batch_us: Option<u32>,
    /// Under strife: random transactions that special clusters are made of; auto begins with ten
    /// for three cores, and looks at what batches show
    #[arg(long, value_name = "auto|N", help_heading = "Planned execution", default_value = "auto",
          value_parser = auto_or::<1, 1024>)]
    k: Auto<u32>,
    /// Under strife: the part of their transactions that two special clusters must have in common
    /// to be merged; auto begins with 0.2, and looks at what batches show
    #[arg(long, value_name = "auto|0..1", help_heading = "Planned execution", default_value = "auto",
          value_parser = permille)]
    alpha: Auto<u16>,
    /// Under healing: what of its procedure runs again when something that an attempt read has
    /// changed
    #[arg(long, value_enum, default_value_t = Restoration::Dependents, help_heading = HEALING)]
    restoration: Restoration,
    /// Under healing: in which order a commit locks and validates
    #[arg(long, value_enum, default_value_t = ValidationOrder::Tree, help_heading = HEALING)]
    validation_order: ValidationOrder,
    /// Under healing: whether attempts keep what they did, without which they abort
    #[arg(long, value_enum, default_value_t = Switch::On, help_heading = HEALING)]
    access_cache: Switch,
    /// Under healing: whether attempts keep the columns that they read
    #[arg(long, value_enum, default_value_t = Switch::On, help_heading = HEALING)]
    read_copies: Switch,
    /// Under healing: whether commits lock what was only read, as in the paper
    #[arg(long, value_enum, default_value_t = Switch::Off, help_heading = HEALING)]
    read_locks: Switch,
    /// Under healing: of so many calls in a hundred the procedure is taken for one never seen
    /// before
    #[arg(long, value_name = "PERCENT", default_value_t = 0, help_heading = HEALING,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    ad_hoc: u8,
    /// Under 2pl-wait-die, 2pl-wait-for-graph, 2pl-dreadlocks and lock-sorted: who gets a lock that
    /// is let go while others wait
    #[arg(long, value_enum, default_value_t = LockQueue::Overtaking, help_heading = "Locks")]
    lock_queue: LockQueue,
    /// Where locks are planned, but for partitioned, dora, strife and locks on ranges: what a
    /// transaction claims of a record that it has planned
    #[arg(long, value_enum, default_value_t = Claims::Record, help_heading = "Planned execution")]
    claims: Claims,
    /// Under silo: whether an attempt ends as soon as it meets what will fail its commit
    #[arg(long, value_enum, default_value_t = Switch::On, help_heading = "Silo")]
    early_abort: Switch,
}

/// A value, or what the system makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Auto<T> {
    Auto,
    Fixed(T),
}

impl<T> Auto<T> {
    fn fixed(self) -> Option<T> {
        match self {
            Auto::Auto => None,
            Auto::Fixed(value) => Some(value),
        }
    }
}

/// A number from 0 to 1, in thousandths.
fn permille(text: &str) -> Result<Auto<u16>, String> {
    match text.parse::<f64>() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(Auto::Fixed((part * 1000.0).round() as u16)),
        Err(_) if text == "auto" => Ok(Auto::Auto),
        _ => Err("auto, or from 0 to 1".to_owned()),
    }
}

/// A number within bounds.
fn auto_or<const LEAST: u32, const MOST: u32>(text: &str) -> Result<Auto<u32>, String> {
    match text.parse::<u32>() {
        Ok(number) if (LEAST..=MOST).contains(&number) => Ok(Auto::Fixed(number)),
        Err(_) if text == "auto" => Ok(Auto::Auto),
        _ => Err(format!("auto, or from {LEAST} to {MOST}")),
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
    /// As hash, and both are split as the rows of their table are divided (PARTITION BY)
    Split,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Partitioning {
    /// As declared
    Declared,
    /// Dealt out anew while transactions run when some partitions have more to do than others
    Balanced,
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LockQueue {
    /// The first that comes for it, also before those that wait
    Overtaking,
    /// The first that waits, as in the papers
    Fifo,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Claims {
    /// The record
    Record,
    /// Its columns that no registered procedure writes, or the record
    Columns,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Restoration {
    /// What depends on it, as in the paper
    Dependents,
    /// All of it, over what look-ups have led to before
    Rerun,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ValidationOrder {
    /// Tables before those that were created later, and in a table by address
    Tree,
    /// By address
    Address,
    /// The opposite of tree
    Reversed,
}

/// Reads `--cc-threads`.
fn controllers(text: &str) -> Result<Controllers, String> {
    match text.parse() {
        Ok(number @ 1..=32) => Ok(Controllers::Fixed(number)),
        _ if text == "auto" => Ok(Controllers::AUTO),
        _ => Err("a number from 1 to 32, or auto".to_owned()),
    }
}

impl Switch {
    fn to_use(self) -> Use {
        match self {
            Switch::On => Use::On,
            Switch::Off => Use::Off,
        }
    }
}

impl From<&BasisFactorArguments> for BasisFactors {
    fn from(arguments: &BasisFactorArguments) -> BasisFactors {
        let mut chosen = BasisFactors::default();
        if arguments.backoff == Backoff::None {
            chosen.protocols.regulation = Regulation::None;
        }
        if arguments.aborts == Aborts::Unwind {
            chosen.protocols.abort_mechanism = AbortMechanism::Unwind;
        }
        if arguments.deadlock == Deadlock::Sort {
            chosen.protocols.deadlock_avoidance = DeadlockAvoidance::Sort;
        }
        chosen.protocols.concurrency_controllers = arguments.cc_threads.unwrap_or_default();
        if arguments.partitioning == Partitioning::Balanced {
            chosen.protocols.partitioning = factors::Partitioning::BALANCED;
        }
        chosen.protocols.batches = Batches {
            size: arguments.batch_size.fixed().unwrap_or(0),
            wait_us: arguments.batch_us.unwrap_or(0),
            samples: arguments.k.fixed().unwrap_or(0) as u16,
            residuals_permille: arguments.alpha.fixed(),
        };
        chosen.protocols.partitions = arguments.data_partitions.unwrap_or(0);
        let healing = &mut chosen.protocols.healing;
        healing.restoration = match arguments.restoration {
            Restoration::Dependents => factors::RestorationKind::Dependents,
            Restoration::Rerun => factors::RestorationKind::Rerun,
        };
        healing.validation_order = match arguments.validation_order {
            ValidationOrder::Tree => factors::ValidationOrder::Tree,
            ValidationOrder::Address => factors::ValidationOrder::Address,
            ValidationOrder::Reversed => factors::ValidationOrder::Reversed,
        };
        healing.access_cache = arguments.access_cache.to_use();
        healing.read_copies = arguments.read_copies.to_use();
        healing.read_locks = arguments.read_locks.to_use();
        healing.ad_hoc_percent = arguments.ad_hoc;
        if arguments.lock_queue == LockQueue::Fifo {
            chosen.protocols.lock_queue = factors::LockQueue::Fifo;
        }
        if arguments.claims == Claims::Columns {
            chosen.protocols.claims = factors::Claims::Columns;
        }
        chosen.protocols.early_aborts = arguments.early_abort.to_use();
        chosen.hash_indexes = arguments.indexes != Indexes::Ordered;
        chosen.split_indexes = arguments.indexes == Indexes::Split;
        chosen.partitioned_indexes = arguments.contention_aware == Switch::On;
        chosen
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: BasisFactorArguments,
    }

    fn parsed(arguments: &[String]) -> BasisFactors {
        let name = std::iter::once("kiln".to_owned());
        let line = Line::try_parse_from(name.chain(arguments.iter().cloned()));
        BasisFactors::from(&line.expect("the arguments are valid").arguments)
    }

    #[test]
    fn what_departs_is_what_was_given() {
        assert!(parsed(&[]).departures().is_empty());
        for line in [
            "--backoff none --aborts unwind --indexes ordered --contention-aware off --deadlock sort",
            "--indexes split --cc-threads 4 --data-partitions 80 --partitioning balanced",
            "--cc-threads auto",
            "--batch-size 960 --batch-us 70 --k 200 --alpha 0.05",
            "--alpha 0",
            "--lock-queue fifo",
            "--claims columns",
            "--early-abort off --deadlock sort",
            "--restoration rerun --validation-order reversed --access-cache off --read-copies off --read-locks on",
            "--ad-hoc 7",
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let factors = parsed(&words);
            let departures = factors.departures().into_iter();
            let again: Vec<String> = departures
                .flat_map(|(name, value)| [format!("--{name}"), value])
                .collect();
            assert_eq!(again.len(), words.len(), "{line}: {again:?}");
            assert_eq!(parsed(&again), factors, "{line}");
        }
    }
}
