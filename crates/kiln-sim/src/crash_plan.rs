//! Which crashes to make: see the module `crash`.

use std::path::PathBuf;

use kiln_engine::Configuration;
use kiln_protocols::Protocol;

/// Seeds of crashes for some protocols.
#[derive(Clone, Debug)]
pub struct CrashPlan {
    /// The protocols of each seed's first life and of every other one, in the order of the report.
    pub protocols: Vec<Configuration>,
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Lives of a seed, one after the other; a crash ends each but the last.
    pub lives: u64,
    /// Crashes of a life; `None` for each kind at each moment.
    pub crashes: Option<usize>,
    /// Transactions of each of the four clients of a life.
    pub calls: usize,
    /// Real cores that seeds may use at a time. The result does not depend on it.
    pub jobs: usize,
    /// Where the disk goes that lost something, as it was after the recovery, to be looked at
    /// (`kiln data inspect`).
    pub keep: Option<PathBuf>,
}

impl CrashPlan {
    /// The default of [`CrashPlan::seeds`].
    pub const SEEDS: u64 = 4;
    /// The default of [`CrashPlan::lives`].
    pub const LIVES: u64 = 3;
    /// The default of [`CrashPlan::crashes`].
    pub const CRASHES: usize = 20;
    /// The default of [`CrashPlan::calls`].
    pub const CALLS: usize = 6;

    /// All protocols that may keep a log: plain, with each of their options that may be alone, and
    /// with all of these.
    pub fn configurations() -> Vec<Configuration> {
        let mut all = Vec::new();
        for protocol in Protocol::serializable() {
            let plain = Configuration::of(protocol);
            let options = protocol.options();
            let with = |configuration: Configuration, option| {
                configuration
                    .with(option)
                    .expect("it is one of its options")
            };
            all.push(plain);
            let alone = options.iter().map(|option| plain.with(*option));
            all.extend(alone.filter_map(Result::ok));
            if options.len() > 1 {
                all.push(options.iter().fold(plain, |all, option| with(all, *option)));
            }
        }
        all
    }

    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn validate(&self) -> Result<(), String> {
        if self.protocols.is_empty() {
            return Err("a run needs a protocol".to_owned());
        }
        if let Some(other) = self
            .protocols
            .iter()
            .find(|it| !it.protocol.is_serializable())
        {
            return Err(format!(
                "{other} does not isolate transactions, and keeps no log"
            ));
        }
        let settings = [
            ("seeds", self.seeds),
            ("lives", self.lives),
            ("crashes", self.crashes.unwrap_or(1) as u64),
            ("calls", self.calls as u64),
            ("jobs", self.jobs as u64),
        ];
        match settings.into_iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(format!("{name} is 0, but must be at least 1")),
            None => Ok(()),
        }
    }

    /// The arguments of the command that carries this plan out.
    pub fn arguments(&self) -> String {
        let protocols: Vec<String> = self
            .protocols
            .iter()
            .map(Configuration::to_string)
            .collect();
        let crashes = match self.crashes {
            Some(count) => format!("--crashes {count}"),
            None => "--all".to_owned(),
        };
        format!(
            "crash --protocol {} --seed {} --seeds {} --lives {} {crashes} --calls {}",
            protocols.join(","),
            self.seed,
            self.seeds,
            self.lives,
            self.calls
        )
    }
}
