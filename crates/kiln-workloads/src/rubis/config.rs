//! RUBiS' settings.

use super::{ABOUT, Terminal, closing_checks, populate_part};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{number, option, unknown};
use crate::population::parts;

/// The settings of RUBiS.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Items for sale.
    pub items: u32,
    /// Users, who sell, bid and buy.
    pub users: u32,
    /// Bids that each item has at first.
    pub bids_per_item: u32,
    /// The exponent of the Zipf distribution of items; 0 is uniform.
    pub theta: f64,
    /// The exponent of the Zipf distribution of users.
    pub user_theta: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            items: 20_000,
            users: 10_000,
            bids_per_item: 10,
            theta: 0.8,
            user_theta: 0.2,
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
        let Config {
            items,
            users,
            bids_per_item,
            theta,
            user_theta,
        } = *self;
        vec![
            option("items", items, "Items for sale."),
            option("users", users, "Users, who sell, bid and buy."),
            option(
                "bids-per-item",
                bids_per_item,
                "Bids that each item has at first.",
            ),
            option("theta", theta, "Zipf skew of the items; 0 is uniform."),
            option(
                "user-theta",
                user_theta,
                "Zipf skew of the users; 0 is uniform.",
            ),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "items" => self.items = number(option, value, 1, 100_000_000)?,
            "users" => self.users = number(option, value, 1, 1_000_000_000)?,
            "bids-per-item" => self.bids_per_item = number(option, value, 0, 10_000)?,
            "theta" => self.theta = number(option, value, 0.0, 10.0)?,
            "user-theta" => self.user_theta = number(option, value, 0.0, 10.0)?,
            _ => return Err(unknown(ABOUT.name, option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    fn shrink(&mut self) {
        self.items = 5;
        self.users = 5;
        self.bids_per_item = 3;
    }

    fn parts(&self) -> u64 {
        parts(self.items.into())
    }

    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        populate_part(self, seed, part, sink);
    }

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        (0..workers)
            .map(|worker| Terminal::new(self, seed, worker))
            .collect()
    }

    fn closing_checks(&self, _seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(self, totals)
    }
}
