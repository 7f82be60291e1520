//! The random values that benchmark specifications ask for.
//!
//! Clause numbers are those of TPC-C, standard specification revision 5.11.

use kiln_platform::random::Random;

/// TPC-C's non-uniform random numbers (clause 2.1.6): `NURand(A, x, y)` with its constant `C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonUniform {
    /// The specification's `A`: 255 for last names, 1023 for customers, 8191 for items.
    pub a: i64,
    /// The specification's `C`, in `0..=A`.
    pub c: i64,
}

impl NonUniform {
    /// A constant drawn for one run.
    pub fn with_random_constant(a: i64, random: &mut Random) -> NonUniform {
        NonUniform {
            a,
            c: random.between(0, a),
        }
    }

    /// The generator for a measurement on a population that was made with `self`: its constant is
    /// 65 to 119 away, but neither 96 nor 112 (clause 2.1.6.1), so that the hot names of the run
    /// are not those of the population.
    pub fn for_run(self, random: &mut Random) -> NonUniform {
        loop {
            let distance = random.between(65, 119);
            let sign = if random.percent(50.0) { 1 } else { -1 };
            let c = self.c + sign * distance;
            if distance != 96 && distance != 112 && (0..=self.a).contains(&c) {
                return NonUniform { a: self.a, c };
            }
        }
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn next(self, random: &mut Random, low: i64, high: i64) -> i64 {
        let mixed = random.between(0, self.a) | random.between(low, high);
        (mixed + self.c) % (high - low + 1) + low
    }
}

/// The constants of one seed: `C-Load` for the population's last names, the rest for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Last names in the population (clause 4.3.2.3).
    pub load_last_name: NonUniform,
    /// Last names in calls.
    pub last_name: NonUniform,
    /// Customer numbers in calls.
    pub customer: NonUniform,
    /// Item numbers in calls.
    pub item: NonUniform,
}

impl Constants {
    /// The constants that belong to `seed`, the same for loaders and terminals.
    pub fn from_seed(seed: u64) -> Constants {
        let random = &mut Random::stream(seed, u64::MAX);
        let load_last_name = NonUniform::with_random_constant(255, random);
        Constants {
            load_last_name,
            last_name: load_last_name.for_run(random),
            customer: NonUniform::with_random_constant(1023, random),
            item: NonUniform::with_random_constant(8191, random),
        }
    }
}

/// The syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// Appends last name `number`, 0 to 999: one syllable for each of its three digits.
pub fn push_last_name(out: &mut String, number: i64) {
    for divisor in [100, 10, 1] {
        out.push_str(SYLLABLES[(number / divisor % 10) as usize]);
    }
}

const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends `length` characters of `alphabet`, which is ASCII.
#[inline]
fn push_random(out: &mut String, random: &mut Random, alphabet: &[u8], length: usize) {
    let mut remaining = length;
    while remaining > 0 {
        let mut chunk = [0_u8; 32];
        let taken = remaining.min(chunk.len());
        // Four characters a word: 16 bits scaled to the alphabet, a bias below one in a thousand.
        for group in chunk[..taken].chunks_mut(4) {
            let mut word = random.next_u64();
            for character in group {
                *character = alphabet[((word & 0xffff) as usize * alphabet.len()) >> 16];
                word >>= 16;
            }
        }
        out.push_str(std::str::from_utf8(&chunk[..taken]).expect("the alphabet is ASCII"));
        remaining -= taken;
    }
}

/// Appends an a-string (clause 4.3.2.2): `low..=high` random letters and digits.
pub fn push_alphanumeric(out: &mut String, random: &mut Random, low: usize, high: usize) {
    let length = random.between(low as i64, high as i64) as usize;
    push_random(out, random, ALPHANUMERIC, length);
}

/// Appends an n-string (clause 4.3.2.2): `length` random digits.
pub fn push_digits(out: &mut String, random: &mut Random, length: usize) {
    push_random(out, random, &ALPHANUMERIC[..10], length);
}

/// Appends `length` random capital letters.
pub fn push_capitals(out: &mut String, random: &mut Random, length: usize) {
    push_random(out, random, &ALPHANUMERIC[10..36], length);
}

/// Appends a zip code (clause 4.3.2.7): four random digits and `11111`.
pub fn push_zip(out: &mut String, random: &mut Random) {
    push_digits(out, random, 4);
    out.push_str("11111");
}

/// Appends an a-string of 26 to 50 characters, one in ten of which has `ORIGINAL` somewhere
/// (i_data and s_data, clause 4.3.3.1).
pub fn push_original_data(out: &mut String, random: &mut Random) {
    const MARK: &str = "ORIGINAL";
    let start = out.len();
    push_alphanumeric(out, random, 26, 50);
    if random.percent(10.0) {
        let at = start + random.below(out.len() - start - MARK.len() + 1);
        out.replace_range(at..at + MARK.len(), MARK);
    }
}

/// The numbers `1..=count` in random order.
pub fn permutation(random: &mut Random, count: usize) -> Vec<i64> {
    let mut numbers: Vec<i64> = (1..=count as i64).collect();
    random.shuffle(&mut numbers);
    numbers
}

/// Zipf-distributed ranks: rank `k` of `1..=n` comes with a probability proportional to
/// `1 / k^theta`.
///
/// Rejection-inversion (Hörmann and Derflinger, 1996): exact, in constant expected time and space
/// for every `theta`. A `theta` of zero is the uniform distribution.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    theta: f64,
    count: f64,
    /// The integral at the lower end, shifted so that rank 1 is never rejected.
    integral_low: f64,
    /// The integral at the upper end, `count + 1/2`.
    integral_high: f64,
    /// Distances from a rank below which no integral need be computed.
    shortcut: f64,
}

impl Zipf {
    /// Ranks `1..=count`.
    ///
    /// # Panics
    /// When `count` is zero, or `theta` is negative or not finite.
    pub fn new(count: u64, theta: f64) -> Zipf {
        assert!(count > 0, "a Zipf distribution needs at least one rank");
        assert!(
            theta >= 0.0 && theta.is_finite(),
            "theta is {theta}, but must be zero or more"
        );
        let mut zipf = Zipf {
            theta,
            count: count as f64,
            integral_low: 0.0,
            integral_high: 0.0,
            shortcut: 0.0,
        };
        zipf.integral_low = zipf.integral(1.5) - 1.0;
        zipf.integral_high = zipf.integral(zipf.count + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// `x^-theta`.
    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// An antiderivative of the weight: `(x^(1-theta) - 1) / (1 - theta)`, or `ln x` at 1.
    fn integral(&self, x: f64) -> f64 {
        let exponent = 1.0 - self.theta;
        let log = x.ln();
        if (exponent * log).abs() < 1e-9 {
            log
        } else {
            (exponent * log).exp_m1() / exponent
        }
    }

    /// The inverse of [`Zipf::integral`].
    fn inverse(&self, y: f64) -> f64 {
        let exponent = 1.0 - self.theta;
        // Rounding may leave the domain of the logarithm at its edge.
        let scaled = (exponent * y).max(-1.0);
        if scaled.abs() < 1e-9 {
            y.exp()
        } else {
            (scaled.ln_1p() / exponent).exp()
        }
    }

    /// A rank in `1..=count`.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_high + random.unit() * (self.integral_low - self.integral_high);
            let x = self.inverse(u);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            if rank - x <= self.shortcut || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }
}

/// Numbers of `1..=count`, uniform or Zipf-distributed.
#[derive(Clone, Copy, Debug)]
pub enum Ranks {
    /// Each as likely.
    Uniform {
        /// The greatest number.
        count: u64,
    },
    /// The smaller, the more likely.
    Zipf(Zipf),
}

impl Ranks {
    /// Numbers of `1..=count`; a `theta` of zero is the uniform distribution.
    ///
    /// # Panics
    /// When `count` is zero, or `theta` is negative or not finite.
    pub fn new(count: u64, theta: f64) -> Ranks {
        assert!(count > 0, "there is a number to draw");
        match theta {
            0.0 => Ranks::Uniform { count },
            _ => Ranks::Zipf(Zipf::new(count, theta)),
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> i64 {
        match self {
            Ranks::Uniform { count } => *count as i64,
            Ranks::Zipf(zipf) => zipf.count as i64,
        }
    }

    /// A number.
    #[inline]
    pub fn next(&self, random: &mut Random) -> i64 {
        match self {
            Ranks::Uniform { count } => random.between(1, *count as i64),
            Ranks::Zipf(zipf) => zipf.next(random) as i64,
        }
    }

    /// A number for which `taken` is false, of which there must be one. After a few attempts, which
    /// a great skew makes fail, it is the next one that is free.
    pub fn next_free(&self, random: &mut Random, mut taken: impl FnMut(i64) -> bool) -> i64 {
        const ATTEMPTS: usize = 8;
        let mut number = self.next(random);
        for _ in 1..ATTEMPTS {
            if !taken(number) {
                return number;
            }
            number = self.next(random);
        }
        while taken(number) {
            number = number % self.count() + 1;
        }
        number
    }
}

#[cfg(test)]
mod tests;
