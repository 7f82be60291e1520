//! How a database is opened.

use std::fmt;
use std::path::PathBuf;

use kiln_platform::thread;
use kiln_protocols::factors::Factors;
use kiln_protocols::{Configuration, Protocol};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::table::WORKERS_MAX;

/// Declares the options: fields with their documentation, and a setter of the same name for each.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)*) => {
        /// The settings of a database. Start from the defaults and change what matters:
        ///
        /// ```
        /// use kiln_engine::{Options, Protocol};
        /// let options = Options::new().workers(2).protocol(Protocol::Silo);
        /// assert_eq!(options.workers, 2);
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Options {
            /// The protocol to start with, and its options (`silo+cu+ts`);
            /// [`Engine::set_protocol`](crate::Engine::set_protocol) changes it.
            pub protocol: Configuration,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Options {
            fn default() -> Options {
                Options { protocol: Configuration::default(), $($name: $default,)* }
            }
        }

        impl Options {
            /// The protocol to start with, and its options.
            #[must_use]
            pub fn protocol(mut self, protocol: impl Into<Configuration>) -> Options {
                self.protocol = protocol.into();
                self
            }

            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Options {
                self.$name = $name;
                self
            })*
        }
    };
}

/// The default of [`Options::recovery_threads`] at most: one of them finds out which changes are
/// whose, and cannot keep up with more.
const RECOVERY_THREADS: usize = 16;
/// The default of [`Options::session_slots`].
const SESSION_SLOTS: usize = 64;

options! {
    /// Threads that run calls; by default one for each core.
    workers: usize = thread::available_cores().min(WORKERS_MAX - RESERVED - SESSION_SLOTS);
    /// Whether each worker stays on a core of its own. An operating system that refuses is no
    /// error. With more workers than cores it may have to go to another one, while fewer of them do
    /// more.
    pin_workers: bool = true;
    /// Milliseconds from epoch to epoch (10): how long removed rows stay in memory at least.
    epoch_ms: u64 = 10;
    /// Calls that may wait for each worker (1,024); further ones are refused or wait outside.
    inbox_capacity: usize = 1_024;
    /// Sessions that may be open at one time (65,536). One that runs nothing costs some hundred
    /// bytes.
    sessions_max: usize = 65_536;
    /// Worker slots that sessions share (64): so many of their statements and open blocks, Rust
    /// transactions and loaders run at a time. Further ones wait for a slot.
    session_slots: usize = SESSION_SLOTS;
    /// Milliseconds that a statement waits for a worker slot at most (10,000).
    slot_wait_ms: u64 = 10_000;
    /// Milliseconds that a change of the catalog waits for the transactions that are in its way to
    /// end (10,000). Others go on meanwhile, but for moments of two milliseconds.
    ddl_wait_ms: u64 = 10_000;
    /// Milliseconds that a session's open transaction may idle before it is rolled back (60,000);
    /// 0 lets it idle forever, which holds up changes of its tables and the reuse of memory.
    idle_in_transaction_ms: u64 = 60_000;
    /// Outcomes that are remembered by their idempotency key (65,536); 0 refuses keys.
    idempotency_capacity: usize = 65_536;
    /// Seconds that such an outcome is remembered (600).
    idempotency_age_s: u64 = 600;
    /// The directory that keeps the database (`None`: it ends with the process). `Database::open`
    /// makes it or recovers what is in it; an [`Engine`](crate::Engine) by itself has none, as it
    /// does not know the statements in a log.
    data_dir: Option<PathBuf> = None;
    /// The length of a segment of the log, in bytes (64 MiB): a multiple of 4,096, from 16 KiB to 1
    /// GiB.
    log_segment_bytes: u64 = 64 << 20;
    /// What the log keeps of a commit (what it wrote).
    logging: Logging = Logging::Values;
    /// Seconds that a recovery is to take at most, as estimated (20): when it would take longer a
    /// checkpoint is written. 0 writes none by itself;
    /// [`Engine::checkpoint`](crate::Engine::checkpoint) does.
    recovery_target_s: u64 = 20;
    /// Bytes of the log after which a checkpoint is written in any case (4 GiB).
    checkpoint_log_bytes: u64 = 4 << 30;
    /// Threads with which a data directory is recovered: they read blocks of a checkpoint, apply
    /// the log each for keys of its own, and build the indexes of several tables. By default one
    /// for each core, 16 at most.
    recovery_threads: usize = thread::available_cores().min(RECOVERY_THREADS);
    /// Whether the protocol may be one that does not serialize transactions (false). Such a
    /// protocol ([`Protocol::is_serializable`](kiln_protocols::Protocol::is_serializable)) is a
    /// baseline for measurements: it loses updates and breaks constraints.
    allow_unserializable: bool = false;
    /// Basis factors; the default is what is recommended, the others are there to be measured.
    basis_factors: BasisFactors = BasisFactors::default();
    /// Bytes of memory set aside at the start (0), so that growth within them costs no page faults
    /// while transactions run.
    reserve_bytes: usize = 0;
    /// Bytes that each worker may fill with what its transactions read and wrote, from the first
    /// one on (`None`: nothing is recorded); see
    /// [`Engine::record_history`](crate::Engine::record_history).
    record_history: Option<usize> = None;
    /// Determines the random waits between attempts.
    seed: u64 = 1;
}

/// What a log keeps of a commit (healing App. C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logging {
    /// What it wrote: the new values of the columns that it changed.
    #[default]
    Values,
    /// The call of the procedure that it is of, to be made again: its name, its arguments and its
    /// place in the order of calls. What has no such call is kept by its values: statements,
    /// transactions of several of them, loads, and procedures that ask a clock, draw random numbers
    /// or insert into tables without a primary key; and so are calls while a checkpoint is being
    /// written. Only for protocols that fix the order of calls before they run
    /// ([`Protocol::logs_commands`](kiln_protocols::Protocol::logs_commands)). The log is shorter,
    /// and a recovery takes as long as the calls took.
    Commands,
}

impl Logging {
    /// All of them.
    pub const ALL: [Logging; 2] = [Logging::Values, Logging::Commands];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Logging::Values => "values",
            Logging::Commands => "commands",
        }
    }
}

impl fmt::Display for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Choices beside the protocol that decide how fast a database is (STO §4). The default is what
/// that paper recommends; the other values are there so that their price can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BasisFactors {
    /// Those of the protocols.
    pub protocols: Factors,
    /// Whether indexes whose whole keys are looked up get a hash index beside them (STO §4.4).
    pub hash_indexes: bool,
    /// Whether ordered indexes are partitioned by the prefixes that all their scans fix: the
    /// contention-aware indexes of STO §4.5.
    pub partitioned_indexes: bool,
    /// Whether indexes are split as the rows of their tables are divided, so that those who use
    /// different partitions share no node or bucket of them (the physically partitioned indexes of
    /// ORTHRUS §4.3).
    pub split_indexes: bool,
}

impl Default for BasisFactors {
    fn default() -> BasisFactors {
        BasisFactors {
            protocols: Factors::default(),
            hash_indexes: true,
            partitioned_indexes: true,
            split_indexes: false,
        }
    }
}

/// The basis factors that the derived physical design of tables depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DesignFactors {
    /// See [`BasisFactors::hash_indexes`].
    pub hash_indexes: bool,
    /// See [`BasisFactors::partitioned_indexes`].
    pub partitioned_indexes: bool,
    /// See [`BasisFactors::split_indexes`].
    pub split_indexes: bool,
}

impl BasisFactors {
    /// Those that the derived physical design depends on.
    pub fn design(&self) -> DesignFactors {
        DesignFactors {
            hash_indexes: self.hash_indexes,
            partitioned_indexes: self.partitioned_indexes,
            split_indexes: self.split_indexes,
        }
    }

    /// All of them: names and values as on the command line, in the order of their names.
    pub fn choices(&self) -> Vec<(&'static str, String)> {
        // Without `..`: a factor that is added has to be named here.
        let BasisFactors {
            protocols,
            hash_indexes,
            partitioned_indexes,
            split_indexes,
        } = *self;
        let indexes = match (hash_indexes, split_indexes) {
            (true, false) => "hash",
            (true, true) => "split",
            (false, false) => "ordered",
            (false, true) => "ordered and split",
        };
        let contention_aware = match partitioned_indexes {
            true => "on",
            false => "off",
        };
        let mut choices = protocols.choices();
        choices.push(("indexes", indexes.to_owned()));
        choices.push(("contention-aware", contention_aware.to_owned()));
        choices.sort_unstable();
        choices
    }

    /// Makes a choice by the name and the value that [`BasisFactors::choices`] gives it.
    ///
    /// # Errors
    /// A sentence that names both: no factor has this name, or it has no such value.
    pub fn choose(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        (self.hash_indexes, self.split_indexes) = match (name, value) {
            ("indexes", "hash") => (true, false),
            ("indexes", "split") => (true, true),
            ("indexes", "ordered") => (false, false),
            ("indexes", "ordered and split") => (false, true),
            ("contention-aware", "on" | "off") => {
                self.partitioned_indexes = value == "on";
                return Ok(());
            }
            _ => return self.protocols.choose(name, value),
        };
        Ok(())
    }

    /// Those that are not as recommended.
    pub fn departures(&self) -> Vec<(&'static str, String)> {
        let recommended = BasisFactors::default().choices();
        let choices = self.choices().into_iter();
        choices
            .filter(|choice| !recommended.contains(choice))
            .collect()
    }
}

/// Worker slots that belong to the engine itself: its maintenance.
pub(crate) const RESERVED: usize = 1;

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options::default()
    }

    /// Checks whether a protocol has the basis factors.
    ///
    /// # Errors
    /// 22023.
    pub(crate) fn validate_protocol(&self, protocol: Configuration) -> Result<()> {
        if !protocol.protocol.is_serializable() && !self.allow_unserializable {
            let what = protocol.protocol.description();
            let message = format!("protocol {protocol} does not serialize transactions ({what})");
            let hint = "It loses updates and breaks constraints, and exists to be measured. Set allow_unserializable to \
                        open a database that may run it, or choose another protocol.";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint));
        }
        if self.logging == Logging::Commands && !protocol.protocol.logs_commands() {
            let message = format!(
                "a log of {protocol} cannot keep commands, as calls have no order before they run"
            );
            let names = Protocol::ALL.iter().filter(|it| it.logs_commands());
            let names: Vec<&str> = names.map(|it| it.name()).collect();
            let hint = format!("Log values, or choose one of {}.", names.join(", "));
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint));
        }
        match self.basis_factors.protocols.refusal(protocol) {
            Some(refusal) => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, refusal)),
            None => Ok(()),
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// 22023 that names the setting, its value and the allowed ones.
    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |message: String, hint: String| {
            Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint))
        };
        let worker_slots = WORKERS_MAX - RESERVED;
        if self.workers == 0 {
            return refuse(
                "a database needs at least one worker, not 0".to_owned(),
                format!("Set workers to a number from 1 to {worker_slots}."),
            );
        }
        if self.recovery_threads == 0 {
            return refuse(
                "a recovery needs at least one thread, not 0".to_owned(),
                "Set recovery_threads to a number from 1 on.".to_owned(),
            );
        }
        if self.workers.saturating_add(self.session_slots) > worker_slots {
            let (workers, slots) = (self.workers, self.session_slots);
            return refuse(
                format!("{workers} workers and {slots} session slots are more than {worker_slots}"),
                format!(
                    "Lower workers or session_slots so that their sum is at most {worker_slots}."
                ),
            );
        }
        if self.record_history.is_some() && !kiln_protocols::RECORDS_HISTORIES {
            return refuse(
                "record_history is set, but this build records no histories".to_owned(),
                "Build with the feature \"history\", or leave it out.".to_owned(),
            );
        }
        self.validate_protocol(self.protocol)?;
        let segment = self.log_segment_bytes;
        if !segment.is_multiple_of(4_096) || !(16 << 10..=1 << 30).contains(&segment) {
            return refuse(
                format!("log_segment_bytes cannot be {segment}"),
                "Set it to a multiple of 4096 from 16384 (16 KiB) to 1073741824 (1 GiB)."
                    .to_owned(),
            );
        }
        for (name, value) in [
            ("epoch_ms", self.epoch_ms),
            ("inbox_capacity", self.inbox_capacity as u64),
            ("ddl_wait_ms", self.ddl_wait_ms),
            ("sessions_max", self.sessions_max as u64),
            ("session_slots", self.session_slots as u64),
            ("slot_wait_ms", self.slot_wait_ms),
        ] {
            if value == 0 {
                return refuse(
                    format!("{name} must not be 0"),
                    format!("Set {name} to 1 or more."),
                );
            }
        }
        Ok(())
    }
}
