//! How values are read from texts and written as texts, as far as a session decides it.

use super::datetime::Zone;

/// What a session has set about texts. Its bytes travel with a call, as [`Style::bytes_of`] makes
/// them; none are the default.
#[derive(Clone, Debug)]
pub struct Style<'a> {
    /// The time zone.
    pub zone: Zone,
    /// What the zone is called.
    pub zone_name: &'a str,
    /// PostgreSQL's `extra_float_digits`: above 0 a number has the shortest digits that read back as
    /// the same.
    pub float_digits: i8,
}

/// The digits of the default.
const FLOAT_DIGITS: i8 = 1;

impl Default for Style<'_> {
    /// UTC, and the shortest digits.
    fn default() -> Self {
        Style {
            zone: Zone::UTC,
            zone_name: "UTC",
            float_digits: FLOAT_DIGITS,
        }
    }
}

impl<'a> Style<'a> {
    /// In place of a style where none may be asked for.
    pub const REFUSED: &'static [u8] = b"\0refused";

    /// A style as bytes: the digits, and the name of the zone as [`Zone::of_setting`] gives it.
    pub fn bytes_of(zone_name: &str, float_digits: i8) -> Vec<u8> {
        let mut bytes = vec![float_digits.cast_unsigned()];
        bytes.extend_from_slice(zone_name.as_bytes());
        bytes
    }

    /// The style without what the zone is called, which `to_char` alone wants to know.
    pub fn without_name(self) -> Style<'static> {
        let (zone, float_digits) = (self.zone, self.float_digits);
        Style {
            zone,
            zone_name: "",
            float_digits,
        }
    }

    /// The style that [`Style::bytes_of`] has written, or the default for no bytes.
    pub fn read(bytes: &'a [u8]) -> Style<'a> {
        let Some((digits, name)) = bytes.split_first() else {
            return Style::default();
        };
        let zone_name = std::str::from_utf8(name).unwrap_or("UTC");
        Style {
            zone: Zone::shown_as(zone_name),
            zone_name,
            float_digits: digits.cast_signed(),
        }
    }
}
