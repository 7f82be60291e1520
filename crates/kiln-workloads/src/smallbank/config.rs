//! SmallBank's settings.

use super::{ABOUT, Terminal, closing_checks, parts, populate_part};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{number, option, percent, unknown};

/// How calls choose customers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    /// Zipf: customer 1 is the most popular. A theta of 0 is uniform (healing, Table 2).
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// A share of the choices falls on the first customers, uniformly; the rest on all others.
    Hot {
        /// How many customers are hot.
        accounts: u32,
        /// The share of choices that fall on them, in percent.
        percent: f64,
    },
}

/// The settings of SmallBank.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Customers, each with a savings and a checking account: at least 2.
    pub accounts: u32,
    /// How calls choose customers.
    pub skew: Skew,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            accounts: 100_000,
            skew: Skew::Zipf { theta: 0.0 },
        }
    }
}

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config { accounts, skew } = *self;
        let (theta, hot_accounts, hot_percent) = match skew {
            Skew::Zipf { theta } => (theta, 0, 0.0),
            Skew::Hot { accounts, percent } => (0.0, accounts, percent),
        };
        vec![
            option("accounts", accounts, "Customers."),
            option("theta", theta, "Zipf skew of the customers; 0 is uniform."),
            option(
                "hot-accounts",
                hot_accounts,
                "Size of the hot set, which replaces theta; 0 is none.",
            ),
            option(
                "hot-percent",
                hot_percent,
                "Choices that fall on the hot set.",
            ),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        /// The share of H-Store's hot spot, until hot-percent says otherwise.
        const HOT_PERCENT: f64 = 25.0;
        match option {
            "accounts" => self.accounts = number(option, value, 2, 1_000_000_000)?,
            "theta" => {
                self.skew = Skew::Zipf {
                    theta: number(option, value, 0.0, 10.0)?,
                }
            }
            "hot-accounts" => {
                let accounts = number(option, value, 0, 1_000_000_000)?;
                self.skew = match self.skew {
                    _ if accounts == 0 => Skew::Zipf { theta: 0.0 },
                    Skew::Hot { percent, .. } => Skew::Hot { accounts, percent },
                    Skew::Zipf { .. } => Skew::Hot {
                        accounts,
                        percent: HOT_PERCENT,
                    },
                };
            }
            "hot-percent" => {
                let percent = percent(option, value)?;
                match self.skew {
                    Skew::Hot { accounts, .. } => self.skew = Skew::Hot { accounts, percent },
                    Skew::Zipf { .. } => {
                        return Err(
                            "hot-percent needs a hot set: set hot-accounts first".to_owned()
                        );
                    }
                }
            }
            _ => return Err(unknown("smallbank", option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        if self.accounts < 2 {
            return Err(format!(
                "accounts is {}, but payments need at least 2 customers",
                self.accounts
            ));
        }
        match self.skew {
            Skew::Hot { accounts, .. } if accounts >= self.accounts => Err(format!(
                "hot-accounts is {accounts}, but must be less than accounts, {}",
                self.accounts
            )),
            _ => Ok(()),
        }
    }

    fn shrink(&mut self) {
        self.accounts = 5;
    }

    fn parts(&self) -> u64 {
        parts(self)
    }

    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        populate_part(self, seed, part, sink);
    }

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        (0..workers)
            .map(|worker| Terminal::new(self, seed, worker))
            .collect()
    }

    fn closing_checks(&self, seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(self, seed, totals)
    }
}
