//! Footprints: records with the modes in which they will be touched.

use std::ptr::slice_from_raw_parts;

use kiln_platform::atomic::prefetch_plain;
use kiln_storage::record::RecordRef;
use kiln_storage::table::{Part, Table};

use super::findings::Findings;

/// A record that a transaction will touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The record.
    pub record: RecordRef,
    /// Whether it will be written.
    pub exclusive: bool,
    /// Whether all that will be done to it are updates that can be left to the commit: said where the planner
    /// [looks at that](super::Planned::marks_left).
    pub is_left: bool,
    /// The part of the data that it belongs to, for protocols that divide the data; else the default.
    pub part: Part,
    /// The number of the finding that it comes from, or [`Findings::NO_FINDING`].
    pub finding: u16,
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
            is_left: false,
            part,
            finding: Findings::NO_FINDING,
        }
    }

    /// Whether its lock is the record's own, wherever the data are.
    #[inline(always)]
    fn is_of_record(&self) -> bool {
        self.part == Part::default()
    }

    /// What its lock is known by: the record's address, or its table where every partition has that.
    #[inline(always)]
    pub fn lock(&self) -> u64 {
        self.part.lock_of(self.record)
    }
}

/// Bytes of claims that are asked for.
const FETCHED_BYTES: usize = 256;

/// The records that a transaction will touch, each once, in the order of their addresses: one order for
/// all transactions. Its memory is used again.
///
/// A record may be there twice, with different parts: one of them is that of a row that was in its cell before.
#[derive(Debug, Default)]
pub struct Footprint {
    claims: Vec<Claim>,
    is_ordered: bool,
    /// For sorting: an address, a mode and a position each.
    keys: Vec<u64>,
    /// For sorting: the claims to be.
    others: Vec<Claim>,
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
            self.others = Vec::new();
            self.keys = Vec::new();
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

    /// Asks for the memory that its next claims will be kept in.
    #[inline]
    pub fn fetch_room(&self) {
        let claims = slice_from_raw_parts(self.claims.as_ptr(), self.claims.capacity());
        prefetch_plain(claims, FETCHED_BYTES);
    }

    /// Takes the claims of another one over.
    pub fn copy_from(&mut self, other: &Footprint) {
        self.claims.clone_from(&other.claims);
        self.is_ordered = other.is_ordered;
    }

    /// Puts the claims in order, each record once and in its strongest mode. The `findings` are those that
    /// the claims come from, if any do.
    pub fn order(&mut self, findings: &mut Findings) {
        if self.is_ordered {
            return;
        }
        match self.claims.iter().all(Claim::is_of_record) {
            true => self.order_by_record(findings),
            false => self.order_by_lock(findings),
        }
        self.is_ordered = true;
    }

    /// Where each claim has its record's own lock and no part: by sorting one word a claim, which takes a third of
    /// the time.
    fn order_by_record(&mut self, findings: &mut Findings) {
        let (claims, keys, others) = (&mut self.claims, &mut self.keys, &mut self.others);
        keys.clear();
        keys.extend(claims.iter().zip(0..).map(|(claim, position)| {
            let address = claim.record.address();
            debug_assert!(address % 8 == 0 && address >> 48 == 0);
            (address >> 3) << 19 | u64::from(!claim.exclusive) << 18 | position
        }));
        keys.sort_unstable();
        others.clear();
        for key in keys {
            let claim = claims[*key as usize & (Footprint::CLAIMS_MAX - 1)];
            match others.last_mut() {
                Some(earlier) if earlier.record == claim.record => {
                    earlier.is_left &= claim.is_left;
                    findings.pair(claim.finding, earlier.finding);
                }
                _ => others.push(claim),
            }
        }
        std::mem::swap(claims, others);
    }

    fn order_by_lock(&mut self, findings: &mut Findings) {
        self.claims
            .sort_unstable_by_key(|claim| (claim.lock(), claim.part, !claim.exclusive));
        self.claims.dedup_by(|later, earlier| {
            let is_same = (later.lock(), later.part) == (earlier.lock(), earlier.part);
            if is_same {
                earlier.is_left &= later.is_left;
                findings.pair(later.finding, earlier.finding);
            }
            is_same
        });
    }

    /// The claims, in order.
    #[inline]
    pub fn claims(&self) -> &[Claim] {
        debug_assert!(self.is_ordered);
        &self.claims
    }
}
