//! Dates and row numbers that calls bring along, so that a procedure has the same effect wherever
//! it runs.

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400 * 1_000_000;

/// The date of populations, and where logical clocks begin: 2026-01-01, in microseconds since
/// 2000-01-01.
pub(crate) const START: i64 = 9_497 * DAY;
