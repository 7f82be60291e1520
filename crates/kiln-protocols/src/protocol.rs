//! What can be chosen: protocols by name, what each promises, as its row says, with options.

use std::fmt;
use std::str::FromStr;

use crate::options::{Options, ProtocolOption};
use crate::registration::Promises;
use crate::registry::Protocol;

impl Protocol {
    /// Its name.
    pub const fn name(self) -> &'static str {
        self.registration().name
    }

    /// One line on what it is.
    pub const fn description(self) -> &'static str {
        self.registration().description
    }

    /// The protocol called `name`, or known to others by that name.
    pub fn parse(name: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|protocol| {
            let row = protocol.registration();
            row.name == name || row.aliases.contains(&name)
        })
    }

    /// The protocols that keep their promise, without the baselines that exist to be measured.
    pub fn serializable() -> impl Iterator<Item = Protocol> {
        Protocol::ALL.into_iter().filter(|it| it.is_serializable())
    }

    /// Whether committed transactions behave as if they had run one after the other. Where this is
    /// false the protocol is a baseline for measurements, and nothing else.
    pub const fn is_serializable(self) -> bool {
        self.promises().serializable
    }

    /// Whether that order agrees with real time: what begins after another has committed comes
    /// after it (strict serializability).
    pub const fn is_strict(self) -> bool {
        self.promises().strict
    }

    /// Whether only one transaction may run at a time in the whole database.
    pub const fn is_single_worker(self) -> bool {
        self.promises().single_worker
    }

    /// Whether a log may keep the calls of procedures in place of what they write: an order of the
    /// calls that conflict is fixed before they run, and they hold whatever they have read and
    /// written until they have committed.
    pub const fn logs_commands(self) -> bool {
        self.promises().logs_commands
    }

    /// Whether records keep something in `aux` between transactions, which has to go before another
    /// protocol takes over.
    pub const fn leaves_aux(self) -> bool {
        self.promises().leaves_aux
    }

    /// Whether an open block holds nothing for which statements of others wait: what it writes is
    /// its own until it commits.
    pub const fn holds_nothing_in_blocks(self) -> bool {
        self.promises().holds_nothing_in_blocks
    }

    /// Whether it runs calls in batches, and can say what became of one.
    pub const fn explains_batches(self) -> bool {
        self.promises().explains_batches
    }

    /// The options that it takes.
    pub const fn options(self) -> &'static [ProtocolOption] {
        self.registration().options
    }

    /// Whether a basis factor that some protocols have is one of its.
    pub(crate) fn has_factor(self, factor: &str) -> bool {
        self.registration().factors.contains(&factor)
    }

    const fn promises(self) -> &'static Promises {
        &self.registration().promises
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A protocol with its options: what a database is run with. Written `silo+cu+ts`.
///
/// The default is what is recommended: `silo` with both of its options. A protocol's plain name
/// means the plain protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The protocol.
    pub protocol: Protocol,
    options: Options,
}

impl Configuration {
    /// The default: `silo+cu+ts`.
    pub const DEFAULT: Configuration = Configuration {
        protocol: Protocol::Silo,
        options: Options::NONE
            .with(ProtocolOption::CommitTimeUpdates)
            .with(ProtocolOption::TimestampSplitting),
    };

    /// A protocol without options.
    pub const fn of(protocol: Protocol) -> Configuration {
        Configuration {
            protocol,
            options: Options::NONE,
        }
    }

    /// The default, and every protocol that keeps its promise, without options.
    pub fn serializable() -> impl Iterator<Item = Configuration> {
        let plain = Protocol::serializable().map(Configuration::of);
        std::iter::once(Configuration::DEFAULT).chain(plain)
    }

    /// The same with `option` turned on.
    ///
    /// # Errors
    /// A sentence that says what the protocol takes instead.
    pub fn with(self, option: ProtocolOption) -> Result<Configuration, String> {
        if !self.protocol.options().contains(&option) {
            let names: Vec<String> = (self.protocol.options().iter())
                .map(|option| format!("+{}", option.name()))
                .collect();
            let instead = match names.is_empty() {
                true => "it takes none".to_owned(),
                false => format!("it takes {}", names.join(", ")),
            };
            let (name, option) = (self.protocol, option.name());
            return Err(format!("{name} has no option \"+{option}\": {instead}"));
        }
        if option == ProtocolOption::Sweeps && !self.has(ProtocolOption::TimestampSplitting) {
            let name = self.protocol;
            return Err(format!(
                "{name} has the option \"+sweeps\" behind \"+ts\" alone"
            ));
        }
        Ok(Configuration {
            options: self.options.with(option),
            ..self
        })
    }

    /// The options that are on.
    pub(crate) const fn options(self) -> Options {
        self.options
    }

    /// Whether `option` is on.
    pub const fn has(self, option: ProtocolOption) -> bool {
        self.options.has(option)
    }

    /// Whether it looks at which columns are observed: with commit-time updates or timestamp
    /// splitting.
    pub const fn has_columns(self) -> bool {
        self.has(ProtocolOption::CommitTimeUpdates) || self.has(ProtocolOption::TimestampSplitting)
    }

    /// Whether an attempt may rely on some columns of a record and not on all: then a transaction
    /// that changes a primary key deletes the row and inserts another.
    pub const fn looks_at_columns(self) -> bool {
        self.has_columns() || self.protocol.promises().looks_at_columns
    }

    /// As [`Protocol::is_strict`], with the options: snapshots that lag are in the past.
    pub const fn is_strict(self) -> bool {
        self.protocol.is_strict() && !self.has(ProtocolOption::LaggingSnapshots)
    }

    /// As [`Protocol::leaves_aux`], with the options: the second timestamp stays.
    pub const fn leaves_aux(self) -> bool {
        self.protocol.leaves_aux() || self.has_columns()
    }

    /// Whether what it keeps in `aux` outlives the record that has it.
    pub(crate) const fn aux_outlives_records(self) -> bool {
        self.protocol.promises().aux_outlives_records
    }

    /// As [`Protocol::is_single_worker`].
    pub const fn is_single_worker(self) -> bool {
        self.protocol.is_single_worker()
    }

    /// Whether which columns of a table are split may change only while no transaction is open:
    /// timestamps of such columns are not those of the record, and say nothing of what was read and
    /// written before. A transaction from before the change and one from after it could then each
    /// come before the other.
    pub const fn orders_columns(self) -> bool {
        self.has(ProtocolOption::TimestampSplitting) && self.protocol.promises().orders_columns
    }

    /// Its name as a text; [`Configuration::from_str`] reads it.
    pub fn name(self) -> String {
        self.to_string()
    }
}

impl From<Protocol> for Configuration {
    fn from(protocol: Protocol) -> Configuration {
        Configuration::of(protocol)
    }
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration::DEFAULT
    }
}

impl PartialEq<Protocol> for Configuration {
    fn eq(&self, other: &Protocol) -> bool {
        *self == Configuration::from(*other)
    }
}

impl FromStr for Configuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Configuration, String> {
        let mut words = text.split('+');
        let name = words.next().unwrap_or_default();
        let protocol = Protocol::parse(name).ok_or_else(|| {
            let names = Protocol::ALL.map(Protocol::name).join(", ");
            format!("there is no protocol \"{name}\" [possible values: {names}]")
        })?;
        words.try_fold(Configuration::from(protocol), |configuration, word| {
            let option = ProtocolOption::ALL
                .into_iter()
                .find(|option| option.name() == word)
                .ok_or_else(|| {
                    let names = ProtocolOption::ALL.map(|option| format!("+{}", option.name()));
                    let names = names.join(", ");
                    format!("protocols have no option \"+{word}\" [possible values: {names}]")
                })?;
            configuration.with(option)
        })
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.protocol.name().to_owned();
        for option in ProtocolOption::ALL {
            if self.has(option) {
                text += "+";
                text += option.name();
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_mistakes_say_what_is_possible() {
        for protocol in Protocol::ALL {
            let mut all = Configuration::from(protocol);
            for option in protocol.options() {
                all = all.with(*option).expect("it takes the option");
            }
            assert_eq!(all.name().parse(), Ok(all));
        }
        let refused = |text: &str| text.parse::<Configuration>().expect_err(text);
        assert!(refused("hope").contains("[possible values: serial, none, silo"));
        assert!(
            refused("silo+luck")
                .contains("\"+luck\" [possible values: +cu, +ts, +table, +sweeps, +lagging]")
        );
        assert!(refused("tictoc+cu+sweeps").contains("\"+sweeps\" behind \"+ts\" alone"));
        assert!(refused("serial+cu").contains("serial has no option \"+cu\": it takes none"));
        assert!(refused("").contains("there is no protocol \"\""));
    }

    #[test]
    fn the_default_is_silo_with_all_that_it_takes() {
        assert_eq!("silo+cu+ts".parse(), Ok(Configuration::default()));
        assert_eq!(Configuration::default().protocol, Protocol::default());
        assert_eq!("silo".parse(), Ok(Configuration::of(Protocol::Silo)));
    }
}
