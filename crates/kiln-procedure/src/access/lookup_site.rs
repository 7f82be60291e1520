//! The numbers of look-ups that arguments decide.

use crate::code::PREFETCH_ITERATIONS_MAX;
use crate::optimise::ORDINALS_MAX;

/// Which of the look-ups it is that nothing but a call's arguments decides: a
/// site has one key, in the procedure and in its reconnaissance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupSite(u16);

impl LookupSite {
    /// In an iteration, from 0, of the loop around the look-up with this ordinal
    /// ([`PrefetchLookup::ordinal`](crate::ir::PrefetchLookup)); `None` for an iteration whose
    /// records are not kept.
    #[inline(always)]
    pub(crate) fn of(ordinal: u16, iteration: usize) -> Option<LookupSite> {
        (iteration < LookupSite::ITERATIONS).then_some(LookupSite(
            ordinal << LookupSite::ITERATION_BITS | iteration as u16,
        ))
    }

    /// The site with this number.
    #[inline(always)]
    pub fn of_number(number: u16) -> LookupSite {
        LookupSite(number)
    }

    /// Its number: below [`LookupSite::MAX`].
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0 as usize
    }

    /// The look-up.
    #[inline(always)]
    pub fn ordinal(self) -> usize {
        usize::from(self.0 >> LookupSite::ITERATION_BITS)
    }

    /// The iteration.
    #[inline(always)]
    pub fn iteration(self) -> usize {
        usize::from(self.0) & (LookupSite::STRIDE - 1)
    }

    /// The number of iterations of which the records met are kept.
    pub const ITERATIONS: usize = PREFETCH_ITERATIONS_MAX;
    const ITERATION_BITS: u32 = 5;
    /// The distance of two ordinals in numbers.
    pub const STRIDE: usize = 1 << LookupSite::ITERATION_BITS;
    /// Sites have smaller numbers.
    pub const MAX: usize = ORDINALS_MAX as usize * LookupSite::STRIDE;
}

const _: () = assert!(LookupSite::ITERATIONS <= LookupSite::STRIDE);
