//! Vectors from PostgreSQL 15 and seeded random checks.

use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_decimal_is_two_words() {
    assert_eq!(size_of::<Decimal>(), 16);
    assert_eq!(align_of::<Decimal>(), 8);
}

#[test]
fn quotients_have_the_scale_of_postgresql() {
    for (dividend, divisor, quotient) in [("1", "3", "0.33333333333333333333")] {
        assert_eq!(
            decimal(dividend)
                .try_div(decimal(divisor))
                .unwrap()
                .to_string(),
            quotient
        );
    }
}
