//! Numbers as people read them.

/// A whole number with commas between its thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate, rounded to a whole number.
pub(crate) fn rate(per_second: f64) -> String {
    grouped(per_second.round() as u64)
}

/// Three significant digits, and never fewer than the whole number has.
pub(crate) fn significant(number: f64) -> String {
    match number.abs() {
        size if size >= 999.5 => grouped(number.round() as u64),
        size if size >= 99.95 => format!("{number:.0}"),
        size if size >= 9.995 => format!("{number:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{number:.2}"),
    }
}

/// A ratio: small ones keep two significant digits.
pub(crate) fn ratio(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        small if small < 0.000_05 => "< 0.0001".to_owned(),
        small if small < 0.1 => format!("{small:.4}"),
        _ => format!("{number:.2}"),
    }
}

/// Bytes as mebibytes.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", significant(bytes as f64 / f64::from(1 << 20)))
}

/// The middle value; the mean of the two middle ones when their number is even, 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn digits_follow_the_size() {
        for (number, text) in [
            (0.0, "0"),
            (0.126, "0.13"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1,235"),
        ] {
            assert_eq!(significant(number), text);
        }
        for (number, text) in [
            (0.0, "0"),
            (0.00001, "< 0.0001"),
            (0.0123, "0.0123"),
            (2.5, "2.50"),
        ] {
            assert_eq!(ratio(number), text);
        }
        assert_eq!(mebibytes(3 << 19), "1.50 MiB");
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    }
}
