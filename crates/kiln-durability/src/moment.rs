//! Times in files, as users read and write them.

use kiln_storage::error::Result;
use kiln_storage::types::datetime::{
    MICROSECONDS_PER_DAY, UNIX_EPOCH_DAYS, format_timestamptz, parse_timestamptz,
};

/// Microseconds from 1970 to 2000, where timestamps of SQL begin.
const UNIX_EPOCH_US: i64 = UNIX_EPOCH_DAYS * MICROSECONDS_PER_DAY;

/// A time in microseconds since 1970, in UTC: `2026-01-31 12:30:00.5+00`.
pub fn moment_text(since_1970_us: i64) -> String {
    format_timestamptz(since_1970_us.saturating_sub(UNIX_EPOCH_US))
}

/// Reads a time: microseconds since 1970. Without a zone it is in UTC.
///
/// # Errors
/// 22007 for what is no time, 22008 for one out of range.
pub fn moment_from_text(text: &str) -> Result<i64> {
    Ok(parse_timestamptz(text)?.saturating_add(UNIX_EPOCH_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for (text, since_1970_us) in [
            ("1970-01-01 00:00:00+00", 0),
            ("2026-01-31 12:30:00.5+00", 1_769_862_600_500_000),
        ] {
            assert_eq!(moment_text(since_1970_us), text);
            assert_eq!(moment_from_text(text), Ok(since_1970_us));
        }
        let half_past = Ok(1_769_862_600_500_000);
        for text in [
            "2026-01-31T12:30:00.5Z",
            "2026-01-31 12:30:00.5",
            "2026-01-31T14:30:00.5+02:00",
        ] {
            assert_eq!(moment_from_text(text), half_past, "{text}");
        }
        assert!(moment_from_text("half past twelve").is_err());
        for any in [i64::MIN, i64::MIN + 1, -1, i64::MAX - 1, i64::MAX] {
            assert!(!moment_text(any).is_empty());
        }
    }
}
