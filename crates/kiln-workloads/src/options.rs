//! Reads the values of options.

use std::fmt::Display;
use std::str::FromStr;

use crate::definition::WorkloadOption;

/// An option with its present value.
pub(crate) fn option(
    name: &'static str,
    value: impl Display,
    help: &'static str,
) -> WorkloadOption {
    WorkloadOption {
        name,
        value: value.to_string(),
        help,
    }
}

/// A number in `low..=high`.
pub(crate) fn number<T>(option: &str, value: &str, low: T, high: T) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    match value.parse() {
        Ok(number) if low <= number && number <= high => Ok(number),
        _ => Err(format!(
            "{option} is \"{value}\", but must be a number from {low} to {high}"
        )),
    }
}

/// A percentage, 0 to 100.
pub(crate) fn percent(option: &str, value: &str) -> Result<f64, String> {
    number(option, value, 0.0, 100.0)
}

/// One of several values, by its name.
pub(crate) fn choice<T: Copy>(
    option: &str,
    value: &str,
    choices: &[(&str, T)],
) -> Result<T, String> {
    if let Some((_, chosen)) = choices.iter().find(|(name, _)| *name == value) {
        return Ok(*chosen);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let (last, others) = names.split_last().expect("there is something to choose");
    Err(format!(
        "{option} is \"{value}\", but must be {} or {last}",
        others.join(", ")
    ))
}

/// The name of one of several values.
pub(crate) fn chosen<T: Copy + PartialEq>(
    choices: &'static [(&'static str, T)],
    value: T,
) -> &'static str {
    let found = choices.iter().find(|(_, choice)| *choice == value);
    found.expect("every choice has a name").0
}

/// The message for an option that the workload does not have.
pub(crate) fn unknown(workload: &str, option: &str, known: &[WorkloadOption]) -> String {
    let names: Vec<&str> = known.iter().map(|option| option.name).collect();
    format!(
        "{workload} has no option \"{option}\"; it has {}",
        names.join(", ")
    )
}
