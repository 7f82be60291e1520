//! The numbers of look-ups that arguments decide.

use crate::code::PREFETCH_TURNS_MAX;
use crate::optimise::ORDINALS_MAX;

/// Which of the look-ups it is that nothing but a call's arguments decides: the same place has the
/// same key in the procedure and in its reconnaissance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u16);

impl Place {
    /// In a turn, from 0, of the loop around the look-up with this ordinal
    /// ([`PrefetchLookup::ordinal`](crate::ir::PrefetchLookup)); `None` for a turn whose records
    /// are not kept.
    #[inline(always)]
    pub(crate) fn of(ordinal: u16, turn: usize) -> Option<Place> {
        (turn < Place::TURNS).then_some(Place(ordinal << Place::TURN_BITS | turn as u16))
    }

    /// The place with this number.
    #[inline(always)]
    pub fn of_number(number: u16) -> Place {
        Place(number)
    }

    /// Its number: below [`Place::MAX`].
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0 as usize
    }

    /// The look-up.
    #[inline(always)]
    pub fn ordinal(self) -> usize {
        usize::from(self.0 >> Place::TURN_BITS)
    }

    /// The turn.
    #[inline(always)]
    pub fn turn(self) -> usize {
        usize::from(self.0) & (Place::STRIDE - 1)
    }

    /// The number of turns of which the records met are kept.
    pub const TURNS: usize = PREFETCH_TURNS_MAX;
    const TURN_BITS: u32 = 5;
    /// The distance of two ordinals in numbers.
    pub const STRIDE: usize = 1 << Place::TURN_BITS;
    /// Places have smaller numbers.
    pub const MAX: usize = ORDINALS_MAX as usize * Place::STRIDE;
}

const _: () = assert!(Place::TURNS <= Place::STRIDE);
