//! Footprints: records with the modes in which they will be touched.

use std::ptr::slice_from_raw_parts;
use std::slice;

use kiln_platform::atomic::prefetch_plain;
use kiln_platform::memory;
use kiln_platform::plain;
use kiln_storage::record::RecordRef;
use kiln_storage::table::{Part, Table};

use super::findings::Findings;
use super::groups::{self, Extent};

/// A record that a transaction will touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The record, or the name of the lock on its [unwritten columns](groups).
    pub record: RecordRef,
    /// Whether it will be written.
    pub exclusive: bool,
    /// Whether all that will be done to it are updates that can be deferred to the commit: said
    /// where the planner [looks at that](super::Planned::marks_deferred).
    pub is_deferred: bool,
    /// The part of the data that it belongs to, for protocols that divide the data; else the
    /// default.
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
        Claim::of_part(part, record, exclusive)
    }

    /// A claim on a record of a part.
    #[inline(always)]
    pub fn of_part(part: Part, record: RecordRef, exclusive: bool) -> Claim {
        Claim {
            record,
            exclusive,
            is_deferred: false,
            part,
            finding: Findings::NO_FINDING,
        }
    }

    /// The same on the lock on unwritten columns, if `extent` is that lock. A table that every
    /// partition has is locked as a whole, and has no other.
    #[inline(always)]
    #[must_use]
    pub fn within(mut self, extent: Extent) -> Claim {
        if extent == Extent::Unwritten && !self.part.is_replicated() {
            self.record = groups::unwritten_of(self.record);
        }
        self
    }

    /// Whether its lock is the record's own, wherever the data are.
    #[inline(always)]
    fn is_of_record(&self) -> bool {
        self.part == Part::default() && !groups::is_unwritten(self.record)
    }

    /// What its lock is known by: the record's address, or its table where every partition has
    /// that.
    #[inline(always)]
    pub fn lock(&self) -> u64 {
        self.part.lock_of(self.record)
    }
}

/// A claim on a record's own lock that says nothing else, in one word, by which such claims are
/// sorted: the address, a bit for a shared claim, and the number of the finding.
///
/// ```text
///  63                        19  18    17 16 15                 0
/// ┌────────────────────────────┬────────┬─────┬──────────────────┐
/// │ address / 8                │ shared │  0  │ finding          │
/// └────────────────────────────┴────────┴─────┴──────────────────┘
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
struct Word(u64);

impl Word {
    const ADDRESS: u32 = 19;
    const SHARED: u32 = 18;

    #[inline(always)]
    fn new(record: RecordRef, exclusive: bool, finding: u16) -> Word {
        let address = record.address();
        debug_assert!(address.is_multiple_of(8) && address >> 48 == 0);
        let shared = u64::from(!exclusive);
        Word((address >> 3) << Word::ADDRESS | shared << Word::SHARED | u64::from(finding))
    }

    #[inline(always)]
    fn claim(self) -> Claim {
        // SAFETY: the address of the record of which the word was made.
        let record = unsafe { RecordRef::from_address((self.0 >> Word::ADDRESS) << 3) };
        let is_shared = self.0 >> Word::SHARED & 1 != 0;
        let mut claim = Claim::of_part(Part::default(), record, !is_shared);
        claim.finding = self.0 as u16;
        claim
    }

    /// Whether both are of one record.
    #[inline(always)]
    fn shares_record(self, other: Word) -> bool {
        (self.0 ^ other.0) >> Word::ADDRESS == 0
    }
}

/// Bytes of claims that are asked for.
const FETCHED_BYTES: usize = 256;

/// Words of the filter by which few claims are seen to be of different records.
const FILTER_WORDS: usize = 64;
/// Of how many claims: with more, two of them are likely to have the same place there.
const FILTERED_MAX: usize = 64;

/// The records that a transaction will touch, each once, in the order of their addresses: one order
/// for all transactions, where a protocol needs one. Its memory is used again.
///
/// A record may be there twice, with different parts: one of them is that of a row that was in its
/// cell before.
#[derive(Debug, Default)]
pub struct Footprint {
    /// The claims that are in words; there are others or these, but for a moment.
    words: Vec<Word>,
    claims: Vec<Claim>,
    /// Whether each record is there once, in order if that was asked for.
    is_arranged: bool,
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
        if self.words.capacity() > Footprint::CLAIMS_KEPT {
            self.words = Vec::with_capacity(Footprint::CLAIMS_KEPT);
        }
        self.words.clear();
        self.claims.clear();
        self.is_arranged = true;
    }

    /// Adds a claim; says no when there is no room.
    #[inline]
    pub fn add(&mut self, claim: Claim) -> bool {
        if self.claims.len() >= Footprint::CLAIMS_MAX {
            return false;
        }
        self.claims.push(claim);
        self.is_arranged = false;
        true
    }

    /// Adds a claim on a record's own lock that says nothing but the number of its finding, in a
    /// word, for a user of [`Footprint::iter`]; says no when there is no room.
    #[inline(always)]
    pub fn add_word(&mut self, record: RecordRef, exclusive: bool, finding: u16) -> bool {
        if self.words.len() >= Footprint::CLAIMS_MAX {
            return false;
        }
        self.words.push(Word::new(record, exclusive, finding));
        self.is_arranged = false;
        true
    }

    /// Adds a claim on the locks that `extent` names; says no when there is no room.
    #[inline(always)]
    pub fn add_within(&mut self, claim: Claim, extent: Extent) -> bool {
        if extent == Extent::Both {
            // The finding is of the record's own lock.
            let mut other = claim.within(Extent::Unwritten);
            other.finding = Findings::NO_FINDING;
            if other.record != claim.record && !self.add(other) {
                return false;
            }
        }
        self.add(claim.within(extent))
    }

    /// Asks for the memory that its next claims will be kept in.
    #[inline]
    pub fn fetch_room(&self) {
        let claims = slice_from_raw_parts(self.claims.as_ptr(), self.claims.capacity());
        prefetch_plain(claims, FETCHED_BYTES);
        let words = slice_from_raw_parts(self.words.as_ptr(), self.words.capacity());
        prefetch_plain(words, FETCHED_BYTES);
    }

    /// Tells virtual cores that the calling thread reads the claims.
    #[inline(always)]
    pub(super) fn note_reads(&self) {
        plain::reads(self.words.as_slice());
        plain::reads(self.claims.as_slice());
    }

    /// As [`Footprint::note_reads`], where the thread has made them.
    #[inline(always)]
    pub(super) fn note_writes(&self) {
        plain::writes(self.words.as_slice());
        plain::writes(self.claims.as_slice());
    }

    /// Takes the claims of another one over.
    pub fn copy_from(&mut self, other: &Footprint) {
        self.words.clone_from(&other.words);
        self.claims.clone_from(&other.claims);
        self.is_arranged = other.is_arranged;
    }

    /// Puts the claims in order, each record once and in its strongest mode. The `findings` are
    /// those that the claims come from, if any do.
    pub fn order(&mut self, findings: &mut Findings) {
        if self.is_arranged {
            return;
        }
        match (self.words.is_empty(), self.claims.is_empty()) {
            (true, true) => {}
            (false, true) => self.order_words(findings),
            (has_no_words, false) => {
                if !has_no_words {
                    let words = self.words.drain(..);
                    self.claims.extend(words.map(Word::claim));
                }
                match self.claims.iter().all(Claim::is_of_record) {
                    true => self.order_by_record(findings),
                    false => self.order_by_lock(findings),
                }
            }
        }
        self.is_arranged = true;
    }

    /// By sorting the words, and nothing else.
    fn order_words(&mut self, findings: &mut Findings) {
        self.words.sort_unstable();
        let mut pairs = self.words.windows(2);
        if !pairs.any(|pair| pair[0].shares_record(pair[1])) {
            return;
        }
        self.words.dedup_by(|later, earlier| {
            let is_same = later.shares_record(*earlier);
            if is_same {
                findings.pair(later.0 as u16, earlier.0 as u16);
            }
            is_same
        });
    }

    /// As [`Footprint::order`], but the claims may stay as they were added: for a worker that makes
    /// all requests of a transaction in one critical section, where each claim has its record's own
    /// lock.
    #[inline]
    pub fn unite(&mut self, findings: &mut Findings) {
        debug_assert!(
            self.claims
                .iter()
                .all(|claim| claim.part == Part::default())
        );
        if !self.is_arranged && self.is_distinct() {
            self.is_arranged = true;
        }
        self.order(findings);
    }

    /// Whether there are few claims, and of different records for sure: no two have the same place
    /// in a filter, which takes less time than sorting them.
    fn is_distinct(&self) -> bool {
        if self.len() > FILTERED_MAX {
            return false;
        }
        let mut filter = [0_u64; FILTER_WORDS];
        let mut taken = 0;
        for claim in self.added() {
            let hash = memory::hash(claim.record.address());
            let word = &mut filter[(hash >> 58) as usize];
            let bit = 1 << (hash >> 52 & 63);
            taken |= *word & bit;
            *word |= bit;
        }
        taken == 0
    }

    /// Where each claim has its record's own lock and no part: by sorting one word a claim, which
    /// takes a third of the time.
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
                    earlier.is_deferred &= claim.is_deferred;
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
                earlier.is_deferred &= later.is_deferred;
                findings.pair(later.finding, earlier.finding);
            }
            is_same
        });
    }

    /// The claims, in order if that was asked for, of a planner that puts none in words.
    #[inline]
    pub fn claims(&self) -> &[Claim] {
        debug_assert!(self.is_arranged);
        assert!(self.words.is_empty(), "no claim is left out");
        &self.claims
    }

    /// The claims, in order if that was asked for.
    #[inline(always)]
    pub fn iter(&self) -> Claims<'_> {
        debug_assert!(self.is_arranged);
        self.added()
    }

    /// The claims as they were added, or as they are arranged.
    #[inline(always)]
    fn added(&self) -> Claims<'_> {
        Claims {
            words: self.words.iter(),
            claims: self.claims.iter(),
        }
    }

    /// How many they are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.words.len() + self.claims.len()
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The claims of a footprint, one after the other.
pub struct Claims<'a> {
    words: slice::Iter<'a, Word>,
    claims: slice::Iter<'a, Claim>,
}

impl Iterator for Claims<'_> {
    type Item = Claim;

    // Always: so that what is done with each claim is a part of the caller's loop.
    #[inline(always)]
    fn next(&mut self) -> Option<Claim> {
        match self.words.next() {
            Some(word) => Some(word.claim()),
            None => self.claims.next().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(address: u64, exclusive: bool) -> Claim {
        Claim {
            // SAFETY: the tests compare the reference, and never follow it.
            record: unsafe { RecordRef::from_address(address) },
            exclusive,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        }
    }

    #[test]
    fn claims_of_different_records_stay_as_they_are() {
        for length in [0, 1, 2, 11, 12, 13, 24, 25, 40, 41, 100] {
            let claims: Vec<_> = (0..length)
                .rev()
                .map(|at| claim(64 + at * 16, at % 2 == 0))
                .collect();
            let mut footprint = Footprint::default();
            footprint.clear();
            assert!(claims.iter().all(|&claim| footprint.add(claim)));
            footprint.unite(&mut Findings::default());
            if length <= 40 {
                assert_eq!(footprint.claims(), claims);
            }
            assert_eq!(footprint.claims().len() as u64, length);
        }
    }

    /// A record is claimed for its unwritten columns, and again to be deleted: each of its locks is
    /// there once, in its strongest mode and in the order of all locks.
    #[test]
    fn both_locks_of_a_record_are_named_once() {
        let record = |number: u64| claim((1 << 35) + number * 16, true);
        let shared = |number: u64| Claim {
            exclusive: false,
            ..record(number)
        };
        let mut footprint = Footprint::default();
        footprint.clear();
        assert!(footprint.add_within(shared(3), Extent::Unwritten));
        assert!(footprint.add_within(shared(2), Extent::Record));
        assert!(footprint.add_within(record(3), Extent::Both));
        assert!(footprint.add_within(record(1), Extent::Record));
        footprint.unite(&mut Findings::default());
        let split = record(3).within(Extent::Unwritten);
        let expected = [record(1), shared(2), record(3), split];
        assert_eq!(footprint.claims(), expected);
        assert!(footprint.claims().is_sorted_by_key(Claim::lock));
    }

    /// Words are the claims of which they were made, in order and each record once; and so are words
    /// and other claims together.
    #[test]
    fn words_are_claims() {
        for length in [0, 1, 2, 12, 13, 24, 40, 41, 100] {
            for twins in [false, true] {
                let mut expected = Vec::new();
                let (mut words, mut mixed) = (Footprint::default(), Footprint::default());
                words.clear();
                mixed.clear();
                for at in (0..length).rev() {
                    let one = Claim {
                        finding: at as u16,
                        ..claim((1 << 46) + at / (1 + u64::from(twins)) * 16, at % 3 == 0)
                    };
                    expected.push(one);
                    assert!(words.add_word(one.record, one.exclusive, one.finding));
                    assert!(match at % 2 {
                        0 => mixed.add(one),
                        _ => mixed.add_word(one.record, one.exclusive, one.finding),
                    });
                }
                let added: Vec<Claim> = words.added().collect();
                assert_eq!(added, expected);
                expected.sort_by_key(|claim| (claim.record.address(), !claim.exclusive));
                expected.dedup_by_key(|claim| claim.record);
                words.order(&mut Findings::default());
                mixed.order(&mut Findings::default());
                let known = |claim: Claim| (claim.record, claim.exclusive);
                for footprint in [words, mixed] {
                    assert_eq!(footprint.len(), expected.len());
                    let claims = footprint.iter().map(known);
                    assert!(claims.eq(expected.iter().copied().map(known)));
                }
            }
        }
    }

    #[test]
    fn claims_of_one_record_become_the_strongest() {
        for length in [2, 12, 13, 24, 39, 100] {
            for (first, second) in [(0, length - 1), (length / 2 - 1, length - 1), (0, 1)] {
                let mut footprint = Footprint::default();
                footprint.clear();
                for at in 0..length {
                    let twin = if at == second { first } else { at };
                    // The lower half of this address is 0.
                    let address = (1 << 35) + twin * 16;
                    assert!(footprint.add(claim(address, at == second)));
                }
                footprint.unite(&mut Findings::default());
                let claims = footprint.claims();
                assert_eq!(claims.len() as u64, length - 1);
                let exclusive = claims.iter().filter(|claim| claim.exclusive);
                let records: Vec<_> = exclusive.map(|claim| claim.record.address()).collect();
                assert_eq!(records, [(1 << 35) + first * 16]);
            }
        }
    }
}
