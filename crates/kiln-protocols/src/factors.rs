//! Basis factors (STO §4): choices beside the protocol that decide how fast it is.
//!
//! The default of each is what the paper recommends and what should be used. The other value is a
//! choice of earlier systems, there so that its price can be measured (STO Figure 4).

/// The basis factors that lie in protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Factors {
    /// What a transaction does between two attempts.
    pub regulation: Regulation,
    /// How a failed attempt gets back to where it began.
    pub abort_mechanism: AbortMechanism,
    /// What keeps optimistic commits from waiting for each other in a circle.
    pub deadlock_avoidance: DeadlockAvoidance,
    /// How many workers only control concurrency under [`Protocol::Orthrus`](crate::Protocol) and
    /// [`Protocol::OrthrusShared`](crate::Protocol).
    pub concurrency_controllers: Controllers,
    /// Into how many partitions the data are divided; with 0 twice as many as there are cores under
    /// [`Protocol::Partitioned`](crate::Protocol), and as many under [`Protocol::VllSingle`](crate::Protocol) and [`Protocol::Dora`](crate::Protocol).
    pub partitions: u16,
    /// Which partition has which data under [`Protocol::Orthrus`](crate::Protocol), [`Protocol::VllSingle`](crate::Protocol) and
    /// [`Protocol::Dora`](crate::Protocol).
    pub partitioning: Partitioning,
    /// How calls are batched and clustered under [`Protocol::Strife`](crate::Protocol).
    pub batches: Batches,
    /// What [`Protocol::Healing`](crate::Protocol) does.
    pub healing: HealingFactors,
    /// Who gets a lock that is let go while others wait, where locks are queues.
    pub lock_queue: LockQueue,
    /// Whether attempts under [`Protocol::Silo`](crate::Protocol) end as soon as they meet what is bound to fail
    /// them.
    pub early_aborts: Use,
    /// What a transaction claims of a record that it has planned.
    pub claims: Claims,
}

/// What transactions claim of the records that they have planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claims {
    /// The record.
    #[default]
    Record,
    /// The columns that no registered procedure writes, or the record: those who read such columns
    /// alone are not in the way of those who write others.
    Columns,
}

/// Who gets a lock that is let go while others wait for it, where locks are queues of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockQueue {
    /// The first that comes for it: the first waiter, which is told, or a transaction that asks
    /// before it.
    #[default]
    Overtaking,
    /// The first waiter, as in the papers.
    Fifo,
}

/// How many workers only control concurrency (ORTHRUS §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// A fifth of the cores, at least one: 16 of 80, the paper's best.
    #[default]
    Fifth,
    /// So many, at most 32.
    Fixed(u16),
    /// Found out while they run, up to half of the cores, from how long `count` transactions take
    /// under different numbers.
    Auto {
        /// See [`Controllers::AUTO`].
        count: u32,
    },
}

impl Controllers {
    /// Found out from enough transactions for differences of some hundredths to be no chance.
    pub const AUTO: Controllers = Controllers::Auto { count: 2_000 };
}

/// Which partition has which part of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// As tables are declared to be divided: neighbouring parts are in neighbouring partitions.
    #[default]
    Declared,
    /// The parts are dealt out anew while transactions run when some partitions have more to do
    /// than others (ORTHRUS §3.3).
    Balanced {
        /// Claims of records for each partition that are compared; see [`Partitioning::BALANCED`].
        claims: u32,
    },
}

impl Partitioning {
    /// By enough claims for differences of some hundredths to be no chance.
    pub const BALANCED: Partitioning = Partitioning::Balanced { claims: 2_000 };
}

/// How calls are batched and clustered under [`Protocol::Strife`](crate::Protocol) (STRIFE §3.1, §5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// Calls of a batch, at most 65,536; with 0 there are 256 for each core at first, and then as
    /// many as batches show to be good.
    pub size: u32,
    /// How long the first call of a batch waits for others at most, in microseconds; with 0 it is
    /// four for each call of a batch, and at least 5000.
    pub wait_us: u32,
    /// Random transactions that special clusters are made of, `k`, at most 1024; with 0 ten for
    /// three cores at first, and then as many as batches show to be good.
    pub samples: u16,
    /// `α` in thousandths: two special clusters are merged when at least so many of their
    /// transactions are connected to both. With none it is 200 at first, and then what batches show
    /// to be good.
    pub residuals_permille: Option<u16>,
}

/// How [`Protocol::Healing`](crate::Protocol) does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealingFactors {
    /// What runs again when something that was read has changed.
    pub restoration: RestorationKind,
    /// In which order a commit locks and validates.
    pub validation_order: ValidationOrder,
    /// Whether attempts keep what they did, without which there is nothing to restore (healing
    /// §5.2.5).
    pub access_cache: Use,
    /// Whether they keep the columns that they read, without which each change of a record they
    /// read does harm.
    pub read_copies: Use,
    /// Whether commits lock what was only read, as the paper's do (healing §4.2.1): they wait for
    /// each other where both only read.
    pub read_locks: Use,
    /// Of so many calls in a hundred the program is taken for one that was never seen before: they
    /// do not heal (healing §5.2.3).
    pub ad_hoc_percent: u8,
}

impl Default for HealingFactors {
    fn default() -> HealingFactors {
        HealingFactors {
            restoration: RestorationKind::Dependents,
            validation_order: ValidationOrder::Tree,
            access_cache: Use::On,
            read_copies: Use::On,
            read_locks: Use::Off,
            ad_hoc_percent: 0,
        }
    }
}

/// What of its program runs again to restore an attempt (healing §4.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestorationKind {
    /// What depends on the operation whose record has changed, as in the paper.
    #[default]
    Dependents,
    /// All of it, over what the look-ups of the last run have led to.
    Rerun,
}

/// The order in which healing locks and validates what was read and written (healing §4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidationOrder {
    /// Tables before those that were created later, which may reference them, and in a table by
    /// address.
    #[default]
    Tree,
    /// By address.
    Address,
    /// The opposite of the recommended one.
    Reversed,
}

/// Whether something that can be left out is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

impl Use {
    /// As on the command line.
    const fn name(self) -> &'static str {
        match self {
            Use::On => "on",
            Use::Off => "off",
        }
    }
}

/// The choice with a name.
fn named<C: Copy, const N: usize>(name: &str, all: [(&str, C); N]) -> Option<C> {
    let mut all = all.into_iter();
    all.find(|(known, _)| *known == name)
        .map(|(_, choice)| choice)
}

impl Factors {
    /// All of them: names and values as on the command line. Where the protocol or the system
    /// chooses, the value says so.
    pub fn choices(self) -> Vec<(&'static str, String)> {
        // Without `..`: a factor that is added has to be named here.
        let Factors {
            regulation,
            abort_mechanism,
            deadlock_avoidance,
            concurrency_controllers,
            partitions,
            partitioning,
            batches,
            healing,
            lock_queue,
            early_aborts,
            claims,
        } = self;
        let Batches {
            size,
            wait_us,
            samples,
            residuals_permille,
        } = batches;
        let HealingFactors {
            restoration,
            validation_order,
            access_cache,
            read_copies,
            read_locks,
            ad_hoc_percent,
        } = healing;
        let or_auto = |number: u32| match number {
            0 => "auto".to_owned(),
            number => number.to_string(),
        };
        let backoff = match regulation {
            Regulation::Backoff => "exponential",
            Regulation::None => "none",
        };
        let aborts = match abort_mechanism {
            AbortMechanism::Return => "return",
            AbortMechanism::Unwind => "unwind",
        };
        let deadlock = match deadlock_avoidance {
            DeadlockAvoidance::Spin => "spin",
            DeadlockAvoidance::Sort => "sort",
        };
        let lock_queue = match lock_queue {
            LockQueue::Overtaking => "overtaking",
            LockQueue::Fifo => "fifo",
        };
        let claims = match claims {
            Claims::Record => "record",
            Claims::Columns => "columns",
        };
        let restoration = match restoration {
            RestorationKind::Dependents => "dependents",
            RestorationKind::Rerun => "rerun",
        };
        let order = match validation_order {
            ValidationOrder::Tree => "tree",
            ValidationOrder::Address => "address",
            ValidationOrder::Reversed => "reversed",
        };
        let cc_threads = match concurrency_controllers {
            Controllers::Fifth => "a fifth".to_owned(),
            Controllers::Fixed(number) => number.to_string(),
            Controllers::AUTO => "auto".to_owned(),
            Controllers::Auto { count } => format!("auto of {count}"),
        };
        let partitioning = match partitioning {
            Partitioning::Declared => "declared".to_owned(),
            Partitioning::BALANCED => "balanced".to_owned(),
            Partitioning::Balanced { claims } => format!("balanced of {claims}"),
        };
        let alpha = residuals_permille.map(|permille| (f64::from(permille) / 1000.0).to_string());
        vec![
            ("backoff", backoff.to_owned()),
            ("aborts", aborts.to_owned()),
            ("deadlock", deadlock.to_owned()),
            ("restoration", restoration.to_owned()),
            ("validation-order", order.to_owned()),
            ("access-cache", access_cache.name().to_owned()),
            ("read-copies", read_copies.name().to_owned()),
            ("read-locks", read_locks.name().to_owned()),
            ("ad-hoc", ad_hoc_percent.to_string()),
            ("lock-queue", lock_queue.to_owned()),
            ("early-abort", early_aborts.name().to_owned()),
            ("claims", claims.to_owned()),
            ("cc-threads", cc_threads),
            ("data-partitions", or_auto(partitions.into())),
            ("partitioning", partitioning),
            ("batch-size", or_auto(size)),
            ("batch-us", or_auto(wait_us)),
            ("k", or_auto(samples.into())),
            ("alpha", alpha.unwrap_or_else(|| "auto".to_owned())),
        ]
    }

    /// Makes a choice by the name and the value that [`Factors::choices`] gives it.
    ///
    /// # Errors
    /// A sentence that names both: no factor has this name, or it has no such value.
    pub fn choose(&mut self, name: &str, value: &str) -> Result<(), String> {
        let chosen = self.choice(name, value);
        chosen.ok_or_else(|| format!("there is no basis factor {name} with the value \"{value}\""))
    }

    fn choice(&mut self, name: &str, value: &str) -> Option<()> {
        /// A number from 1 on, or 0 where the system chooses.
        fn or_auto<N: std::str::FromStr + PartialOrd + Default>(value: &str) -> Option<N> {
            match value {
                "auto" => Some(N::default()),
                _ => value.parse().ok().filter(|number| *number > N::default()),
            }
        }
        let switch = || {
            [Use::On, Use::Off]
                .into_iter()
                .find(|one| one.name() == value)
        };
        match name {
            "backoff" => {
                let all = [
                    ("exponential", Regulation::Backoff),
                    ("none", Regulation::None),
                ];
                self.regulation = named(value, all)?;
            }
            "aborts" => {
                let all = [
                    ("return", AbortMechanism::Return),
                    ("unwind", AbortMechanism::Unwind),
                ];
                self.abort_mechanism = named(value, all)?;
            }
            "deadlock" => {
                let all = [
                    ("spin", DeadlockAvoidance::Spin),
                    ("sort", DeadlockAvoidance::Sort),
                ];
                self.deadlock_avoidance = named(value, all)?;
            }
            "restoration" => {
                let all = [
                    ("dependents", RestorationKind::Dependents),
                    ("rerun", RestorationKind::Rerun),
                ];
                self.healing.restoration = named(value, all)?;
            }
            "validation-order" => {
                let all = [
                    ("tree", ValidationOrder::Tree),
                    ("address", ValidationOrder::Address),
                    ("reversed", ValidationOrder::Reversed),
                ];
                self.healing.validation_order = named(value, all)?;
            }
            "access-cache" => self.healing.access_cache = switch()?,
            "read-copies" => self.healing.read_copies = switch()?,
            "read-locks" => self.healing.read_locks = switch()?,
            "ad-hoc" => {
                let percent = value.parse().ok().filter(|percent| *percent <= 100);
                self.healing.ad_hoc_percent = percent?;
            }
            "lock-queue" => {
                let all = [
                    ("overtaking", LockQueue::Overtaking),
                    ("fifo", LockQueue::Fifo),
                ];
                self.lock_queue = named(value, all)?;
            }
            "early-abort" => self.early_aborts = switch()?,
            "claims" => {
                let all = [("record", Claims::Record), ("columns", Claims::Columns)];
                self.claims = named(value, all)?;
            }
            "cc-threads" => {
                self.concurrency_controllers = match (value, value.strip_prefix("auto of ")) {
                    ("a fifth", _) => Controllers::Fifth,
                    ("auto", _) => Controllers::AUTO,
                    (_, Some(count)) => Controllers::Auto {
                        count: count.parse().ok()?,
                    },
                    (number, None) => Controllers::Fixed(number.parse().ok()?),
                }
            }
            "data-partitions" => self.partitions = or_auto(value)?,
            "partitioning" => {
                self.partitioning = match (value, value.strip_prefix("balanced of ")) {
                    ("declared", _) => Partitioning::Declared,
                    ("balanced", _) => Partitioning::BALANCED,
                    (_, claims) => Partitioning::Balanced {
                        claims: claims?.parse().ok()?,
                    },
                }
            }
            "batch-size" => self.batches.size = or_auto(value)?,
            "batch-us" => self.batches.wait_us = or_auto(value)?,
            "k" => self.batches.samples = or_auto(value)?,
            "alpha" => {
                self.batches.residuals_permille = match value {
                    "auto" => None,
                    part => {
                        let part: f64 = part.parse().ok()?;
                        let permille = (0.0..=1.0).contains(&part).then_some(part * 1000.0);
                        Some(permille?.round() as u16)
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Those that are not as recommended, with their values.
    pub fn departures(self) -> Vec<(&'static str, String)> {
        let recommended = Factors::default().choices();
        let mut choices = self.choices();
        choices.retain(|choice| !recommended.contains(choice));
        choices
    }
}

/// Contention regulation (STO §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Regulation {
    /// Wait for a random time that doubles with each failure.
    #[default]
    Backoff,
    /// Try again at once, as Silo does by default.
    None,
}

/// The abort mechanism (STO §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbortMechanism {
    /// Return values that every caller checks.
    #[default]
    Return,
    /// Unwinding of the stack from the access to the scheduler, as with exceptions.
    Unwind,
}

/// Deadlock avoidance in the commit of optimistic protocols (STO §4.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadlockAvoidance {
    /// Lock in the order of the writes, and give up when that takes long.
    #[default]
    Spin,
    /// Sort the write set and wait for each lock.
    Sort,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_by_name_is_what_the_choices_say() {
        let healing = HealingFactors {
            restoration: RestorationKind::Rerun,
            validation_order: ValidationOrder::Reversed,
            access_cache: Use::Off,
            read_copies: Use::Off,
            read_locks: Use::On,
            ad_hoc_percent: 40,
        };
        let other = Factors {
            regulation: Regulation::None,
            abort_mechanism: AbortMechanism::Unwind,
            deadlock_avoidance: DeadlockAvoidance::Sort,
            concurrency_controllers: Controllers::Fixed(16),
            partitions: 80,
            partitioning: Partitioning::BALANCED,
            batches: Batches {
                size: 10_000,
                wait_us: 700,
                samples: 100,
                residuals_permille: Some(205),
            },
            healing,
            lock_queue: LockQueue::Fifo,
            early_aborts: Use::Off,
            claims: Claims::Columns,
        };
        let mut third = other;
        third.concurrency_controllers = Controllers::Auto { count: 7 };
        third.partitioning = Partitioning::Balanced { claims: 9 };
        third.batches.residuals_permille = Some(0);
        third.healing.validation_order = ValidationOrder::Address;
        let mut fourth = third;
        fourth.concurrency_controllers = Controllers::AUTO;
        let mut chosen = Factors::default();
        for factors in [other, third, fourth, Factors::default()] {
            for (name, value) in factors.choices() {
                assert_eq!(chosen.choose(name, &value), Ok(()));
            }
            assert_eq!(chosen, factors);
        }
        for (name, value) in [
            ("hope", "on"),
            ("k", "0"),
            ("k", "many"),
            ("lock-queue", "lifo"),
            ("claims", "rows"),
            ("early-abort", "maybe"),
            ("alpha", "1.5"),
            ("ad-hoc", "101"),
            ("partitioning", "balanced of"),
            ("cc-threads", ""),
        ] {
            let error = chosen
                .choose(name, value)
                .expect_err("there is no such choice");
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        assert_eq!(chosen, Factors::default());
    }
}
