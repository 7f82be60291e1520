//! Types of settings, and how their values are read from text.

use std::fmt;
use std::path::PathBuf;

use kiln::{Configuration, Logging};
use kiln_platform::net::SocketAddr;
use kiln_server::Authentication;

/// What a setting can be.
pub trait Value: Sized {
    /// The value of a text.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(text: &str) -> Result<Self, String>;
}

/// One of several names.
fn named<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last().expect("there are names");
        format!("it is {} or {last}", others.join(", "))
    })
}

/// No text is no value.
impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            text => T::parse(text).map(Some),
        }
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, String> {
        let names = [
            ("true", true),
            ("false", false),
            ("on", true),
            ("off", false),
        ];
        named(text, &names)
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(PathBuf::from(text))
    }
}

impl Value for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        let address = text.parse();
        address.map_err(|_| "invalid socket address: it is ADDRESS:PORT".to_owned())
    }
}

/// Addresses, of which there is one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(pub Vec<SocketAddr>);

impl Value for Addresses {
    fn parse(text: &str) -> Result<Self, String> {
        let addresses: Result<Vec<SocketAddr>, String> = text
            .split(',')
            .map(|part| SocketAddr::parse(part.trim()))
            .collect();
        addresses.map(Addresses)
    }
}

/// A number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Value for Number<MIN, MAX> {
    fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Number(number)),
            _ => Err(format!("it is a number from {MIN} to {MAX}")),
        }
    }
}

impl Value for Configuration {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl Value for Logging {
    fn parse(text: &str) -> Result<Self, String> {
        named(text, &Logging::ALL.map(|logging| (logging.name(), logging)))
    }
}

impl Value for Authentication {
    fn parse(text: &str) -> Result<Self, String> {
        let names = [
            ("automatic", Authentication::Automatic),
            ("trust", Authentication::Trust),
            ("password", Authentication::Password),
        ];
        named(text, &names)
    }
}

/// A time, or that there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(Option<u64>);

/// Units, in milliseconds.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];

impl Period {
    /// No bound.
    pub const OFF: Period = Period(None);

    /// Milliseconds; 0 is off.
    pub fn of_ms(ms: u64) -> Period {
        Period((ms > 0).then_some(ms))
    }

    /// Seconds; 0 is off.
    pub fn of_s(seconds: u64) -> Period {
        Period::of_ms(seconds * 1_000)
    }

    /// In milliseconds; 0 when it is off.
    pub fn ms(self) -> u64 {
        self.0.unwrap_or(0)
    }

    /// In seconds, rounded up; 0 when it is off.
    pub fn s(self) -> u64 {
        self.ms().div_ceil(1_000)
    }

    /// In nanoseconds, unless it is off.
    pub fn ns(self) -> Option<u64> {
        self.0.map(|ms| ms * 1_000_000)
    }
}

impl Value for Period {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Period::OFF);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
        match (number.parse::<u32>(), unit) {
            (Ok(number), Some((_, ms))) => Ok(Period::of_ms(u64::from(number) * ms)),
            _ => Err("it is off, or a number with ms, s, min or h".to_owned()),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ms) = self.0 else {
            return f.write_str("off");
        };
        let units = UNITS.iter().rev();
        let unit = units.clone().find(|(_, unit_ms)| ms % unit_ms == 0);
        let (name, unit_ms) = unit.unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", ms / unit_ms)
    }
}

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

impl Value for Format {
    fn parse(text: &str) -> Result<Self, String> {
        named(text, &[("text", Format::Text), ("json", Format::Json)])
    }
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub tracing_subscriber::filter::LevelFilter);

impl Value for Level {
    fn parse(text: &str) -> Result<Self, String> {
        use tracing_subscriber::filter::LevelFilter;
        let names = [
            ("off", LevelFilter::OFF),
            ("error", LevelFilter::ERROR),
            ("warn", LevelFilter::WARN),
            ("info", LevelFilter::INFO),
            ("debug", LevelFilter::DEBUG),
        ];
        named(text, &names).map(Level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_are_written_in_the_largest_that_fits() {
        for (text, ms) in [
            ("off", 0),
            ("0s", 0),
            ("100ms", 100),
            ("10s", 10_000),
            ("2 min", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(Period::parse(text).map(Period::ms), Ok(ms), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1.5s", "1day", "99999999999s"] {
            assert!(Period::parse(text).is_err(), "{text}");
        }
        for (ms, text) in [
            (0, "off"),
            (100, "100ms"),
            (90_000, "90s"),
            (60_000, "1min"),
        ] {
            assert_eq!(Period::of_ms(ms).to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_said_in_words() {
        assert_eq!(
            Authentication::parse("me"),
            Err("it is automatic, trust or password".to_owned())
        );
        assert_eq!(
            Number::<1, 9>::parse("10"),
            Err("it is a number from 1 to 9".to_owned())
        );
        assert!(Addresses::parse("127.0.0.1:1, nowhere").is_err());
        let two = Addresses::parse("127.0.0.1:1, [::1]:2").map(|it| it.0.len());
        assert_eq!(two, Ok(2));
        assert_eq!(Option::<bool>::parse(""), Ok(None));
    }
}
