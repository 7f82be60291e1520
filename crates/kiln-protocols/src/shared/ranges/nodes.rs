//! The nodes of the prefix hierarchy: which ones a claim asks for, and which modes conflict (VLL
//! §2.7, Fig. 5 and 6).

use super::claim::{RangeClaim, SpaceId, prefix};
use crate::canary::Canary;

/// Some of the four modes in which a node can be wanted, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes(pub u8);

impl Modes {
    /// The node exclusively (Cx).
    pub const EXCLUSIVE: Modes = Modes(1);
    /// To share the node (Cs).
    pub const SHARED: Modes = Modes(2);
    /// Some node below it exclusively (Ix).
    pub const INTENDS_EXCLUSIVE: Modes = Modes(4);
    /// To share some node below it (Is).
    pub const INTENDS_SHARED: Modes = Modes(8);

    /// The modes of others that are in the way of these.
    #[inline(always)]
    pub const fn conflicts(self) -> Modes {
        Modes(CONFLICTS[self.0 as usize])
    }

    /// The mode of a claim's nodes, and that of the nodes above.
    #[inline(always)]
    pub const fn of(exclusive: bool) -> (Modes, Modes) {
        match exclusive {
            true => (Modes::EXCLUSIVE, Modes::INTENDS_EXCLUSIVE),
            false => (Modes::SHARED, Modes::INTENDS_SHARED),
        }
    }
}

/// By modes; an intention is not in the way of another one.
const CONFLICTS: [u8; 16] = {
    let of_each = [0b1111, 0b0101, 0b0011, 0b0001];
    let mut all = [0; 16];
    let mut modes = 0;
    while modes < 16 {
        let mut mode = 0;
        while mode < 4 {
            if modes >> mode & 1 != 0 {
                all[modes] |= of_each[mode];
            }
            mode += 1;
        }
        modes += 1;
    }
    all
};

/// A node, as far as its name goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// A hash of its space, its level and its prefix.
    pub hash: u64,
    /// Whether there are nodes below it.
    pub is_leaf: bool,
}

/// Multiplies to 128 bits and folds the halves together.
#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ (product >> 64) as u64
}

/// Odd numbers with about as many ones as zeros: digits of square roots.
const MIX: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0x6a09_e667_f3bc_c909,
    0xbb67_ae85_84ca_a73b,
];

#[inline(always)]
fn hash(space: SpaceId, level: usize, prefix: u128) -> u64 {
    let (high, low) = ((prefix >> 64) as u64, prefix as u64);
    let of_level = fold(space << 4 ^ level as u64 ^ MIX[0], MIX[1]);
    fold(fold(low ^ of_level, MIX[0]) ^ high ^ MIX[1], MIX[2])
}

/// Which node each level was at last, so that the same ones are not named again and again.
#[derive(Clone, Copy)]
pub struct Path {
    space: SpaceId,
    modes: [u8; kiln_storage::table::CUTS_MAX],
    prefixes: [u128; kiln_storage::table::CUTS_MAX],
}

impl Default for Path {
    fn default() -> Path {
        Path {
            space: SpaceId::MAX,
            modes: [0; kiln_storage::table::CUTS_MAX],
            prefixes: [0; kiln_storage::table::CUTS_MAX],
        }
    }
}

impl Path {
    /// Calls `want` with the nodes that `claim` asks for, but those that the last claims have asked
    /// for in the same mode.
    #[inline]
    pub fn nodes_of(&mut self, claim: &RangeClaim, mut want: impl FnMut(Node, Modes)) {
        if self.space != claim.space {
            *self = Path {
                space: claim.space,
                ..Path::default()
            };
        }
        let bits = claim.cuts.bits();
        let (own, above) = Modes::of(claim.exclusive);
        for level in 0..=claim.level as usize {
            let is_above = level < claim.level as usize;
            if Canary::IntentionForgotten.sings() && claim.exclusive && is_above {
                continue;
            }
            let modes = match is_above {
                true => above,
                false => own,
            };
            let (first, last) = (
                prefix(claim.first, bits[level]),
                prefix(claim.last, bits[level]),
            );
            for prefix in first..=last {
                if self.prefixes[level] != prefix {
                    (self.prefixes[level], self.modes[level]) = (prefix, 0);
                }
                if self.modes[level] & modes.0 == 0 {
                    self.modes[level] |= modes.0;
                    let node = Node {
                        hash: hash(claim.space, level, prefix),
                        is_leaf: level + 1 == bits.len(),
                    };
                    want(node, modes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_conflict_as_in_the_papers_figure_5() {
        let modes = [
            Modes::EXCLUSIVE,
            Modes::SHARED,
            Modes::INTENDS_EXCLUSIVE,
            Modes::INTENDS_SHARED,
        ];
        let conflict = |left: usize, right: usize| modes[left].conflicts().0 & modes[right].0 != 0;
        let table = [
            [true, true, true, true],
            [true, false, true, false],
            [true, true, false, false],
            [true, false, false, false],
        ];
        for (left, row) in table.iter().enumerate() {
            for (right, expected) in row.iter().enumerate() {
                assert_eq!(conflict(left, right), *expected, "{left} {right}");
            }
        }
    }
}
