//! A test harness that can say *skipped*, which the standard one cannot.
//!
//! Arguments are those of the standard harness as far as they matter: words that select tests by
//! their names, `--list`, and options, which are ignored. Authors of snippets use `--show` and
//! `--corpus=DIRECTORY`.

use std::fmt::Display;
use std::process::ExitCode;

use super::server::HOW_TO_GET_ONE;

/// Runs tests, counts and prints their results in the words of the standard harness.
pub struct Harness {
    filters: Vec<String>,
    list_only: bool,
    /// Whether `--show` was given: tests print what they compare.
    pub show: bool,
    /// Where `--corpus` says that the snippets are, if it was given.
    pub corpus: Option<String>,
    passed: usize,
    skipped: usize,
    failures: Vec<(String, String)>,
}

impl Harness {
    /// A harness that obeys the process's arguments.
    pub fn from_arguments() -> Harness {
        let mut harness = Harness {
            filters: Vec::new(),
            list_only: false,
            show: false,
            corpus: None,
            passed: 0,
            skipped: 0,
            failures: Vec::new(),
        };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--list" => harness.list_only = true,
                "--show" => harness.show = true,
                option if option.starts_with("--corpus=") => {
                    harness.corpus = Some(option["--corpus=".len()..].to_owned());
                }
                option if option.starts_with('-') => {}
                _ => harness.filters.push(argument),
            }
        }
        harness
    }

    fn selects(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(&**filter))
    }

    /// Runs a test; what it returns is printed behind its result.
    pub fn run<R: Display>(&mut self, name: &str, test: impl FnOnce() -> Result<R, String>) {
        if !self.selects(name) {
            return;
        }
        if self.list_only {
            println!("{name}: test");
            return;
        }
        match test() {
            Ok(remark) => {
                println!("test {name} ... ok{remark}");
                self.passed += 1;
            }
            Err(failure) => {
                println!("test {name} ... FAILED");
                self.failures.push((name.to_owned(), failure));
            }
        }
    }

    /// Says that a test did not run.
    pub fn skip(&mut self, name: &str) {
        if !self.selects(name) {
            return;
        }
        if self.list_only {
            println!("{name}: test");
            return;
        }
        println!("test {name} ... skipped");
        self.skipped += 1;
    }

    /// Prints the failures and the sum.
    pub fn finish(self) -> ExitCode {
        if self.list_only {
            return ExitCode::SUCCESS;
        }
        for (name, failure) in &self.failures {
            println!("\n---- {name} ----\n{failure}");
        }
        if self.skipped > 0 {
            eprintln!("\nSKIPPED: {HOW_TO_GET_ONE}");
        }
        let failed = self.failures.len();
        println!(
            "\ntest result: {}. {} passed; {failed} failed; {} skipped\n",
            if failed == 0 { "ok" } else { "FAILED" },
            self.passed,
            self.skipped
        );
        match failed {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}
