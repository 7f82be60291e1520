//! Footprints: records with the modes in which they will be touched.

use kiln_storage::record::RecordRef;
use kiln_storage::table::{Part, Table};

/// A record that a transaction will touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The record.
    pub record: RecordRef,
    /// Whether it will be written.
    pub exclusive: bool,
    /// The part of the data that it belongs to, for protocols that divide the data; else the default.
    pub part: Part,
}

impl Claim {
    /// A claim on a record of `table`, whose part is looked up if the data are divided.
    #[inline(always)]
    pub fn new(table: &Table, record: RecordRef, exclusive: bool, is_divided: bool) -> Claim {
        let part = match is_divided {
            true => table.part_of(record),
            false => Part::default(),
        };
        Claim {
            record,
            exclusive,
            part,
        }
    }

    /// What its lock is known by: the record's address, or its table where every partition has that.
    #[inline(always)]
    pub fn lock(&self) -> u64 {
        self.part.lock_of(self.record)
    }
}

/// The records that a transaction will touch, each once, in the order of their addresses: one order for
/// all transactions. Its memory is used again.
///
/// A record may be there twice, with different parts: one of them is that of a row that was in its cell before.
#[derive(Debug, Default)]
pub struct Footprint {
    claims: Vec<Claim>,
    is_ordered: bool,
}

impl Footprint {
    /// A footprint has no more claims than this; what goes beyond is met unplanned.
    pub const CLAIMS_MAX: usize = 1 << 18;
    /// Memory for more claims than this is given back.
    const CLAIMS_KEPT: usize = 1 << 12;

    /// Forgets all claims.
    #[inline]
    pub fn clear(&mut self) {
        if self.claims.capacity() > Footprint::CLAIMS_KEPT {
            self.claims = Vec::with_capacity(Footprint::CLAIMS_KEPT);
        }
        self.claims.clear();
        self.is_ordered = true;
    }

    /// Adds a claim; says no when there is no room.
    #[inline]
    pub fn add(&mut self, claim: Claim) -> bool {
        if self.claims.len() >= Footprint::CLAIMS_MAX {
            return false;
        }
        self.claims.push(claim);
        self.is_ordered = false;
        true
    }

    /// Puts the claims in order, each record once and in its strongest mode.
    pub fn order(&mut self) {
        if self.is_ordered {
            return;
        }
        self.claims
            .sort_unstable_by_key(|claim| (claim.lock(), claim.part, !claim.exclusive));
        self.claims.dedup_by_key(|claim| (claim.lock(), claim.part));
        self.is_ordered = true;
    }

    /// The claims, in order.
    #[inline]
    pub fn claims(&self) -> &[Claim] {
        debug_assert!(self.is_ordered);
        &self.claims
    }
}
