//! Checks of the arithmetic against integers of 128 bits and against itself, and the limits.
//! Vectors from PostgreSQL are in `vector_tests.rs`.

use std::collections::HashMap;

use kiln_platform::random::Random;

use super::wide::Wide;
use super::*;

const ROUNDS: usize = 20_000;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A number of any magnitude that fits, small ones as likely as large ones.
fn random_decimal(random: &mut Random, digits_max: i64, scale_max: i64) -> Decimal {
    let mut mantissa = 0_i128;
    for _ in 0..random.between(0, digits_max) {
        mantissa = mantissa * 10 + i128::from(random.between(0, 9));
    }
    if random.percent(50.0) {
        mantissa = -mantissa;
    }
    Decimal::new(mantissa, random.between(0, scale_max) as u8).unwrap()
}

#[test]
fn a_decimal_is_two_words() {
    assert_eq!(size_of::<Decimal>(), 16);
    assert_eq!(align_of::<Decimal>(), 8);
}

#[test]
fn packing_keeps_the_value_and_leaves_the_flag_byte_free() {
    let mut random = Random::from_seed(1);
    let extremes = [
        Decimal::ZERO,
        Decimal::ONE,
        Decimal::MAX,
        -Decimal::MAX,
        -Decimal::ONE,
    ];
    let randoms = (0..ROUNDS).map(|_| random_decimal(&mut random, 33, 63));
    for value in extremes.into_iter().chain(randoms) {
        let (low, high) = value.pack();
        assert_eq!(high & 0xff, 0);
        assert_eq!((high >> 8) as u8, value.scale());
        assert_eq!(high as i64 >> 16, (value.mantissa() >> 64) as i64);
        assert_eq!(low, value.mantissa() as u64);
        let unpacked = Decimal::unpack(low, high | 1);
        assert_eq!(
            (unpacked.mantissa(), unpacked.scale()),
            (value.mantissa(), value.scale())
        );
    }
}

#[test]
fn text_and_value_convert_into_each_other() {
    let mut random = Random::from_seed(2);
    for _ in 0..ROUNDS {
        let value = random_decimal(&mut random, 33, 63);
        let text = value.to_string();
        let read = decimal(&text);
        assert_eq!(
            (read.mantissa(), read.scale()),
            (value.mantissa(), value.scale()),
            "{text}"
        );
    }
    assert_eq!(format!("[{:>8}]", decimal("-1.50")), "[   -1.50]");
}

#[test]
fn sums_products_and_comparisons_agree_with_integers() {
    let mut random = Random::from_seed(3);
    for _ in 0..ROUNDS {
        // Few enough digits that integers at a common scale hold every exact result.
        let left = random_decimal(&mut random, 15, 8);
        let right = random_decimal(&mut random, 15, 8);
        let at_8 = |value: Decimal| value.mantissa() * 10_i128.pow(8 - u32::from(value.scale()));
        let larger_scale = left.scale().max(right.scale());

        let sum = left.try_add(right).unwrap();
        assert_eq!(
            (at_8(sum), sum.scale()),
            (at_8(left) + at_8(right), larger_scale)
        );
        let difference = left.try_sub(right).unwrap();
        assert_eq!(at_8(difference), at_8(left) - at_8(right));
        let product = left.try_mul(right).unwrap();
        assert_eq!(product.mantissa(), left.mantissa() * right.mantissa());
        assert_eq!(product.scale(), left.scale() + right.scale());
        assert_eq!(left.cmp(&right), at_8(left).cmp(&at_8(right)));
        assert_eq!(left == right, at_8(left) == at_8(right));
        if !right.is_zero() {
            let remainder = left.try_rem(right).unwrap();
            assert_eq!(
                at_8(remainder),
                at_8(left) % at_8(right),
                "{left} % {right}"
            );
            let whole = left.try_div_trunc(right).unwrap();
            assert_eq!(
                whole.mantissa(),
                at_8(left) / at_8(right),
                "div({left}, {right})"
            );
        }
    }
}

#[test]
fn quotients_are_the_nearest_of_their_scale() {
    let mut random = Random::from_seed(4);
    let mut wide_quotients = 0;
    for _ in 0..ROUNDS {
        let left = random_decimal(&mut random, 30, 12);
        let right = random_decimal(&mut random, 30, 12);
        if right.is_zero() {
            assert_eq!(
                left.try_div(right).unwrap_err().state(),
                SqlState::DIVISION_BY_ZERO
            );
            continue;
        }
        let Ok(quotient) = left.try_div(right) else {
            continue;
        };
        // |dividend * 10^raise - quotient * divisor| * 2 <= divisor, all at one scale.
        let raise = quotient.scale() + right.scale() - left.scale();
        let dividend = Wide::from_u128(left.mantissa().unsigned_abs())
            .checked_scale_up(u32::from(raise))
            .unwrap();
        let back = Wide::product(
            quotient.mantissa().unsigned_abs(),
            right.mantissa().unsigned_abs(),
        );
        wide_quotients += usize::from(dividend.high != 0);
        let error = if dividend >= back {
            dividend.sub(back)
        } else {
            back.sub(dividend)
        };
        let divisor = right.mantissa().unsigned_abs();
        assert!(
            error.high == 0 && error.low <= divisor - error.low,
            "{left} / {right}"
        );
        // On a tie the quotient is the one away from zero, so that it is not the smaller one.
        assert!(
            error.low * 2 != divisor || back >= dividend,
            "{left} / {right} rounds down"
        );
        assert!(
            quotient.is_zero()
                || quotient.is_negative() == (left.is_negative() != right.is_negative())
        );
    }
    assert!(
        wide_quotients > 1_000,
        "only {wide_quotients} quotients needed 256 bits"
    );
}

#[test]
fn roots_are_the_nearest_of_their_scale() {
    let mut random = Random::from_seed(5);
    for _ in 0..2_000 {
        let value = random_decimal(&mut random, 30, 12).abs();
        let Ok(root) = value.sqrt() else { continue };
        let raise = 2 * u32::from(root.scale()) - u32::from(value.scale());
        let square = Wide::from_u128(value.mantissa().unsigned_abs())
            .checked_scale_up(raise)
            .unwrap();
        // root - 1/2 < exact <= root + 1/2, hence root^2 - root < square <= root^2 + root.
        let root = root.mantissa().unsigned_abs();
        let upper = Wide::product(root, root + 1);
        assert!(square <= upper, "the root of {value} is too small");
        assert!(
            root == 0 || square > Wide::product(root, root - 1),
            "the root of {value} is too large"
        );
    }
    let error = decimal("-1").sqrt().unwrap_err();
    assert_eq!(error.state(), SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION);
}

#[test]
fn division_of_256_bits_undoes_the_product() {
    let mut random = Random::from_seed(6);
    for _ in 0..ROUNDS {
        let word = |random: &mut Random| {
            u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
        };
        let quotient = word(&mut random) >> random.between(0, 127);
        let divisor = (word(&mut random) >> random.between(1, 127)).max(1);
        let remainder = word(&mut random) % divisor;
        let product = Wide::product(quotient, divisor);
        let (low, carry) = product.low.overflowing_add(remainder);
        let dividend = Wide {
            high: product.high + u128::from(carry),
            low,
        };
        assert_eq!(dividend.divide(divisor), Some((quotient, remainder)));
    }
    assert_eq!(Wide { high: 5, low: 0 }.divide(5), None);
}

#[test]
fn equal_values_hash_equally_whatever_their_scale() {
    let mut map = HashMap::new();
    map.insert(decimal("1.50"), "first");
    assert_eq!(map.get(&decimal("1.5000")), Some(&"first"));
    assert_eq!(map.get(&decimal("1.51")), None);
    map.insert(decimal("0.000"), "zero");
    assert_eq!(map.get(&decimal("0")), Some(&"zero"));
}

#[test]
fn comparison_survives_scales_that_cannot_be_aligned() {
    let tiny = Decimal::new(1, 63).unwrap();
    let pairs = [
        (Decimal::MAX, tiny),
        (Decimal::ZERO, tiny),
        (tiny, Decimal::ONE),
    ];
    for (left, right) in pairs {
        assert_eq!(
            left.cmp(&right),
            if left == Decimal::MAX {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        );
        assert_eq!(right.cmp(&left), left.cmp(&right).reverse());
        assert_eq!((-left).cmp(&-right), left.cmp(&right).reverse());
        assert_ne!(left, right);
    }
}

#[test]
fn what_does_not_fit_is_an_error_that_says_so() {
    let tiny = Decimal::new(1, 63).unwrap();
    let results = [
        Decimal::MAX.try_add(Decimal::ONE),
        (-Decimal::MAX).try_sub(Decimal::ONE),
        Decimal::MAX.try_mul(Decimal::from(2)),
        Decimal::MAX.try_mul(Decimal::MAX),
        tiny.try_mul(tiny),
        Decimal::MAX.try_add(tiny),
        Decimal::MAX.try_div(tiny),
        tiny.try_div(Decimal::MAX),
        Decimal::MAX.round(1),
        Decimal::ONE.round(64),
        Decimal::new(1 << 111, 0),
        Decimal::new(i128::MIN, 0),
        Decimal::new(i128::MAX, 0),
        Decimal::new(0, 64),
        Decimal::parse("1e40"),
        Decimal::parse(&"9".repeat(40)),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.state(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        assert!(
            error
                .detail()
                .is_some_and(|detail| detail.contains("33 significant digits"))
        );
    }
    assert_eq!(Decimal::MAX.try_add(Decimal::ZERO), Ok(Decimal::MAX));
    assert_eq!(Decimal::new(-(1 << 111) + 1, 0), Ok(-Decimal::MAX));
}

#[test]
fn columns_refuse_what_exceeds_their_precision() {
    assert_eq!(
        decimal("999.994").rescale(5, 2).unwrap().to_string(),
        "999.99"
    );
    let error = decimal("999.995").rescale(5, 2).unwrap_err();
    assert_eq!(error.message(), "numeric field overflow");
    assert_eq!(
        error.detail(),
        Some("A field with precision 5, scale 2 must round to an absolute value less than 10^3.")
    );
    let error = decimal("1").rescale(4, 4).unwrap_err();
    assert_eq!(
        error.detail(),
        Some("A field with precision 4, scale 4 must round to an absolute value less than 1.")
    );
}

#[test]
fn doubles_and_integers_convert_as_in_postgresql() {
    let mut random = Random::from_seed(7);
    for _ in 0..ROUNDS {
        let integer = random.next_u64() as i64 >> random.between(0, 63);
        assert_eq!(Decimal::from(integer).to_i64(), Ok(integer));
        let value = random_decimal(&mut random, 15, 10);
        assert_eq!(Decimal::from_f64(value.to_f64()).unwrap(), value);
    }
    assert_eq!(decimal("2.5").to_i64(), Ok(3));
    assert_eq!(decimal("-2.5").to_i64(), Ok(-3));
    assert_eq!(decimal("32767.4").to_i16(), Ok(32_767));
    assert_eq!(
        decimal("32767.5").to_i16().unwrap_err().message(),
        "smallint out of range"
    );
    assert_eq!(
        Decimal::from_f64(f64::NAN).unwrap_err().state(),
        SqlState::FEATURE_NOT_SUPPORTED
    );
}

#[test]
fn exponentials_undo_logarithms() {
    let mut random = Random::from_seed(9);
    for _ in 0..2_000 {
        let value = Decimal::new(i128::from(random.between(1, 1_000_000_000)), 6).unwrap();
        let back = value.ln().unwrap().exp().unwrap();
        // 16 significant digits of a logarithm below 7 leave an error of 10^-15, relatively.
        let error = back.try_sub(value).unwrap().abs();
        let bound = value.to_f64() * 1e-14;
        assert!(error.to_f64() <= bound, "exp(ln({value})) = {back}");
        let square = value.power(Decimal::from(2)).unwrap();
        assert_eq!(square, value.try_mul(value).unwrap(), "{value} squared");
    }
}

#[test]
fn words_that_no_value_packs_to_never_panic() {
    let mut random = Random::from_seed(10);
    for _ in 0..ROUNDS {
        let torn = |random: &mut Random| {
            let mask = u64::MAX << random.between(0, 63);
            Decimal::unpack(random.next_u64() & mask, random.next_u64())
        };
        let (left, right) = (torn(&mut random), torn(&mut random));
        let results = [
            left.try_add(right),
            left.try_sub(right),
            left.try_mul(right),
            left.try_div(right),
            left.try_div_trunc(right),
            left.try_rem(right),
            left.round(2),
            left.rescale(12, 2),
            left.sqrt(),
            left.ln(),
            left.exp(),
            left.power(right),
            left.ceil(),
            left.floor(),
        ];
        // Overflow is likely; what fits is a number like any other.
        for value in results.into_iter().flatten() {
            assert_eq!(decimal(&value.to_string()), value);
        }
        assert_eq!(left.cmp(&right), right.cmp(&left).reverse());
        assert!(left.abs().to_f64().is_finite());
    }
}
