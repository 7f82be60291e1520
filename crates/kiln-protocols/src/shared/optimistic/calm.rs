//! Attempts that do without second timestamps and commit-time updates, while no other worker
//! disturbs them.
//!
//! Both cost instructions, and save an attempt only where others change its records meanwhile. So a
//! worker's attempts observe tids alone, and update where the procedure does, until one is
//! *disturbed*: it fails, or another attempt has changed one of its records and it commits all the
//! same, thanks to the one or the other. Then the next [`CAREFUL_MIN`] attempts are *careful*, and
//! use both. A careful attempt that is disturbed makes as many more careful.
//!
//! It is a choice of the reader alone. A writer of split columns advances their
//! timestamp in any case, as others may rely on it.
//!
//! The attempts of a transaction of several statements are careful: they take as long as a client
//! thinks.

/// How many attempts are careful after one that was disturbed. A careful attempt costs a tenth to a
/// fifth more instructions than another one, and one that fails is repeated: so one in twenty may
/// fail before care is worth it.
pub const CAREFUL_MIN: u32 = 32;

/// Whether a worker's attempts are careful.
#[derive(Default)]
pub(super) struct Calm {
    /// So many attempts are careful.
    careful: u32,
}

impl Calm {
    /// An attempt begins; whether it is careful.
    #[inline(always)]
    pub fn begins_careful(&mut self) -> bool {
        let is_careful = self.careful > 0;
        self.careful = self.careful.saturating_sub(1);
        is_careful
    }

    /// The attempt that began last was disturbed.
    #[inline(always)]
    pub fn is_disturbed(&mut self) {
        self.careful = CAREFUL_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_careful_for_a_while_after_one_that_was_disturbed() {
        let mut calm = Calm::default();
        assert!(!calm.begins_careful());
        calm.is_disturbed();
        let careful = (0..100).filter(|_| calm.begins_careful());
        assert_eq!(careful.count(), CAREFUL_MIN as usize);
        assert!(!calm.begins_careful());
    }
}
