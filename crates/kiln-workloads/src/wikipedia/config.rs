//! Wikipedia's settings.

use super::{ABOUT, Terminal, closing_checks, populate};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{choice, chosen, number, option, percent, unknown};

/// How often each transaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// OLTP-bench's weights, from a trace.
    Trace,
    /// Each as often as any other, so that the rare ones are tried.
    Even,
}

/// The settings of Wikipedia.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Pages.
    pub pages: u32,
    /// Users with an account.
    pub users: u32,
    /// How often each transaction runs.
    pub mix: Mix,
    /// The exponent of the Zipf distribution of pages; 0 is uniform.
    pub theta: f64,
    /// Edits by people without an account, in percent.
    pub anonymous_percent: f64,
    /// Characters of an article on average.
    pub text_length: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            pages: 1_000,
            users: 2_000,
            mix: Mix::Trace,
            theta: 1.0001,
            anonymous_percent: 26.0,
            text_length: 2_000,
        }
    }
}

const MIXES: &[(&str, Mix)] = &[("trace", Mix::Trace), ("even", Mix::Even)];

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config {
            pages,
            users,
            mix,
            theta,
            anonymous_percent,
            text_length,
        } = *self;
        vec![
            option("pages", pages, "Pages."),
            option("users", users, "Users with an account."),
            option(
                "mix",
                chosen(MIXES, mix),
                "How often each transaction runs: trace, or even for each as often as any other.",
            ),
            option("theta", theta, "Zipf skew of the pages; 0 is uniform."),
            option(
                "anonymous-percent",
                anonymous_percent,
                "Edits by people without an account.",
            ),
            option(
                "text-length",
                text_length,
                "Characters of an article, on average.",
            ),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "pages" => self.pages = number(option, value, 1, 10_000_000)?,
            "users" => self.users = number(option, value, 1, 100_000_000)?,
            "mix" => self.mix = choice(option, value, MIXES)?,
            "theta" => self.theta = number(option, value, 0.0, 10.0)?,
            "anonymous-percent" => self.anonymous_percent = percent(option, value)?,
            "text-length" => self.text_length = number(option, value, 10, 1_000_000)?,
            _ => return Err(unknown(ABOUT.name, option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    fn shrink(&mut self) {
        self.pages = 5;
        self.users = 6;
        self.mix = Mix::Even;
        self.text_length = 40;
    }

    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        if part == 0 {
            populate(self, seed, sink);
        }
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
