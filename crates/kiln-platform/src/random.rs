//! Seeded random numbers. The same seed gives the same sequence on every machine.

/// A small, fast generator (wyrand); not for secrets.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// A generator whose whole sequence is determined by `seed`.
    pub fn from_seed(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// The generator of part `stream` of a run seeded with `seed`: streams do not overlap in
    /// practice, and each is determined by both numbers.
    pub fn stream(seed: u64, stream: u64) -> Random {
        // splitmix64's finaliser decorrelates neighbouring stream numbers.
        let mut mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random::from_seed(mixed ^ (mixed >> 31))
    }

    /// A uniformly distributed word.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Uniform in `low..=high`, both included.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.i64(low..=high)
    }

    /// Uniform in `0..bound`.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.0.f64()
    }

    /// True with probability `percent` in a hundred.
    #[inline]
    pub fn percent(&mut self, percent: f64) -> bool {
        self.unit() * 100.0 < percent
    }

    /// Permutes `items` uniformly.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

/// A seed that differs between runs, for callers that were given none; print it. On virtual cores
/// the run's seed determines it.
pub fn fresh_seed() -> u64 {
    #[cfg(kiln_sim)]
    if crate::sim::is_running() {
        return crate::backend::runtime::draw();
    }
    fastrand::Rng::new().u64(..)
}

/// Bytes of the system's randomness, for an identifier that no other database in the world has. On
/// virtual cores the run's seed determines them.
///
/// # Errors
/// The system's, when it has no source of randomness.
pub fn entropy<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    #[cfg(kiln_sim)]
    if crate::sim::is_running() {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&crate::backend::runtime::draw().to_le_bytes()[..piece.len()]);
        }
        return Ok(bytes);
    }
    // The system gives at most 256 bytes at a time, and as many all at once.
    for piece in bytes.chunks_mut(256) {
        while !fill(piece) {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
    Ok(bytes)
}

/// Fills at most 256 bytes; says whether the system did.
fn fill(piece: &mut [u8]) -> bool {
    let (start, length) = (piece.as_mut_ptr().cast(), piece.len());
    // SAFETY: the piece may be written in its whole length.
    #[cfg(target_os = "linux")]
    return usize::try_from(unsafe { libc::getrandom(start, length, 0) }) == Ok(length);
    // SAFETY: as above.
    #[cfg(not(target_os = "linux"))]
    return unsafe { libc::getentropy(start, length) } == 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_fills_all_bytes_and_never_repeats() {
        let [first, second] = [(); 2].map(|()| entropy::<300>().expect("the system has some"));
        assert_ne!(first, second);
        // 0 comes 44 times in a row by chance in one of 2^352 runs.
        assert!(
            first
                .windows(44)
                .all(|piece| piece.iter().any(|byte| *byte != 0))
        );
    }
}
