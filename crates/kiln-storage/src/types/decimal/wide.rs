//! Unsigned integers of 256 bits: just enough for quotients and roots of 33-digit mantissas.

use std::cmp::Ordering;

/// `high * 2^128 + low`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wide {
    pub(super) high: u128,
    pub(super) low: u128,
}

impl Wide {
    pub(super) const fn from_u128(low: u128) -> Wide {
        Wide { high: 0, low }
    }

    /// The whole product of two words.
    pub(super) fn product(left: u128, right: u128) -> Wide {
        const HALF: u128 = u64::MAX as u128;
        let (left_high, left_low) = (left >> 64, left & HALF);
        let (right_high, right_low) = (right >> 64, right & HALF);
        let bottom = left_low * right_low;
        let cross = left_high * right_low + (bottom >> 64);
        let middle = left_low * right_high + (cross & HALF);
        Wide {
            high: left_high * right_high + (cross >> 64) + (middle >> 64),
            low: middle << 64 | bottom & HALF,
        }
    }

    /// `self * factor`, or `None` when that leaves 256 bits.
    pub(super) fn checked_mul(self, factor: u128) -> Option<Wide> {
        let low = Wide::product(self.low, factor);
        let high = Wide::product(self.high, factor);
        if high.high != 0 {
            return None;
        }
        Some(Wide {
            high: high.low.checked_add(low.high)?,
            low: low.low,
        })
    }

    /// `self * 10^exponent`, or `None` when that leaves 256 bits.
    pub(super) fn checked_scale_up(self, exponent: u32) -> Option<Wide> {
        let mut result = self;
        let mut rest = exponent;
        while rest > 0 && result != Wide::from_u128(0) {
            let step = rest.min(38);
            result = result.checked_mul(10_u128.pow(step))?;
            rest -= step;
        }
        Some(result)
    }

    /// The difference; `other` is not larger.
    pub(super) fn sub(self, other: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Wide {
            high: self
                .high
                .wrapping_sub(other.high)
                .wrapping_sub(u128::from(borrow)),
            low,
        }
    }

    fn bit(self, index: u32) -> u128 {
        if index >= 128 {
            self.high >> (index - 128) & 1
        } else {
            self.low >> index & 1
        }
    }

    fn bit_length(self) -> u32 {
        if self.high != 0 {
            256 - self.high.leading_zeros()
        } else {
            128 - self.low.leading_zeros()
        }
    }

    /// Quotient and remainder by a divisor below 2^127; `None` when the quotient leaves 128 bits.
    pub(super) fn divide(self, divisor: u128) -> Option<(u128, u128)> {
        debug_assert!(
            divisor != 0 && divisor < 1 << 127,
            "divisor {divisor} is out of range"
        );
        if self.high == 0 {
            return Some((self.low / divisor, self.low % divisor));
        }
        if self.high >= divisor {
            return None;
        }
        // Long division bit by bit: the remainder stays below the divisor, thus below 2^127, so
        // that doubling it never overflows.
        let mut remainder = self.high;
        let mut quotient = 0;
        for index in (0..128).rev() {
            remainder = remainder << 1 | self.low >> index & 1;
            quotient <<= 1;
            if remainder >= divisor {
                remainder -= divisor;
                quotient |= 1;
            }
        }
        Some((quotient, remainder))
    }

    /// Quotient and remainder by a divisor below 2^127, of whatever size.
    pub(super) fn divide_wide(self, divisor: u128) -> (Wide, u128) {
        let (high, rest) = (self.high / divisor, self.high % divisor);
        // The rest is below the divisor, so that the lower quotient fits.
        let lower = Wide {
            high: rest,
            low: self.low,
        }
        .divide(divisor);
        let (low, remainder) = lower.unwrap_or((0, 0));
        (Wide { high, low }, remainder)
    }

    /// The integer square root and whether the remainder rounds it up (half away from zero).
    pub(super) fn square_root(self) -> (u128, bool) {
        // Digit by digit in base 2: `root` is the root of the bits taken so far and `rest` what
        // they leave, at most twice the root.
        let mut root = 0_u128;
        let mut rest = Wide::from_u128(0);
        let pairs = self.bit_length().div_ceil(2);
        for pair in (0..pairs).rev() {
            let next = self.bit(2 * pair + 1) << 1 | self.bit(2 * pair);
            rest = Wide {
                high: rest.high << 2 | rest.low >> 126,
                low: rest.low << 2 | next,
            };
            // The trial is 4 * root + 1.
            let trial = Wide {
                high: root >> 126,
                low: root << 2 | 1,
            };
            root <<= 1;
            if rest.cmp(&trial).is_ge() {
                rest = rest.sub(trial);
                root |= 1;
            }
        }
        // (root + 1/2)^2 = root^2 + root + 1/4: past the half exactly when rest > root.
        (root, rest.cmp(&Wide::from_u128(root)).is_gt())
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Wide) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Wide) -> Ordering {
        (self.high, self.low).cmp(&(other.high, other.low))
    }
}
