//! What a reconnaissance found, in the order in which it did: the run that follows its plan makes
//! the same look-ups, and need not search for records whose locks it holds.
//!
//! A finding is believed when a look-up of the run asks for the same key of the same index; or has
//! the same [`LookupSite`], which says that without a look at keys. That its record still has that
//! key is for the caller to see, who holds the record's lock: it has a row and its index moves no
//! entries ([`Index::moves`](kiln_storage::table::Index::moves)).
//!
//! # Why the record is still that record
//!
//! A finding names a record by its address, and cells are used again: for another row, whose tid
//! may have the same version, so that nothing beside the record tells. What excludes it is that a
//! finding is of use in one epoch alone, that in which it was made ([`Findings::keep_of`]). No
//! worker needs to stay inside of it between the plan and the run:
//!
//! 1. The reconnaissance was in the epoch `e` when it met the record, so that the record was
//!    unlinked later, if ever. All cells that indexes have led to are given back through
//!    [`Participant::retire`](kiln_storage::epoch::Participant::retire), also that of an insert
//!    which is undone or has failed. So its tag is at least the global epoch of that moment, at
//!    least `e`.
//! 2. A cell with the tag `t` is not used again before the global epoch is `t + 2`, here `e + 2` at
//!    least.
//! 3. The run has published `e` as well, while the global epoch is at most `e + 1`, and holds it
//!    there until it ends. Epochs do not go back: so they have never been at `e + 2` between the
//!    meeting and the end of the run, whichever workers were inside of one meanwhile and whichever
//!    worker runs what another one has planned.
//!
//! Records that failed attempts have missed, and footprints, are kept longer, by their addresses.
//! They are used to lock and to label, which a wrong record suffers without harm; no row is read
//! because of them.

use std::ptr::slice_from_raw_parts;

use kiln_platform::atomic::prefetch_plain;
use kiln_platform::plain;
use kiln_procedure::Handle;
use kiln_procedure::access::{LookupSite, Sought};
use kiln_storage::record::RecordRef;
use kiln_storage::slot::Memory;
use kiln_storage::table::Index;

use super::scans::Scans;

/// No finding, or no note.
const NONE: u16 = u16::MAX;

/// Records of a call that are asked for before it runs.
const FETCHED_MAX: usize = 32;
/// Bytes of findings, and of keys, that are asked for.
const FETCHED_BYTES: usize = 512;

/// The bit of a finding's number that says that it has a site; the others are that site.
const OF_SITE: u16 = 1 << 15;

const _: () = assert!(Findings::MAX <= OF_SITE as usize && LookupSite::MAX < OF_SITE as usize - 1);

/// A record that the reconnaissance met.
#[derive(Clone, Copy, Debug)]
struct Met {
    record: RecordRef,
    /// The cache lines of the record that the run will touch, a bit each from its first.
    lines: u16,
    /// The finding that was of the same record before, if one was.
    twin: u16,
    /// The position of its lock among those that the run holds.
    lock: u16,
}

impl Met {
    #[inline(always)]
    fn new(record: RecordRef, lines: u16) -> Met {
        Met {
            record,
            lines,
            twin: NONE,
            lock: NONE,
        }
    }
}

/// One that is known by the key that led to it.
#[derive(Clone, Copy, Debug)]
struct Finding {
    met: Met,
    /// The index whose look-up led to it; null where none did, or the key is not kept.
    index: *const Index,
    /// Where its key begins among the keys.
    key: u16,
}

/// The iterations of an ordinal, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Iterations {
    /// In which something was found.
    found: u32,
    /// Of these those that have a [handle](Findings::handle).
    ready: u32,
}

/// Findings by their sites.
#[derive(Default)]
struct BySite {
    /// Those of one ordinal after the other; what is there counts if its iteration's bit is set.
    all: Vec<Met>,
    /// Of each ordinal.
    iterations: Vec<Iterations>,
}

const _: () = assert!(LookupSite::ITERATIONS <= u32::BITS as usize);

impl BySite {
    #[inline(always)]
    fn clear(&mut self) {
        self.iterations.clear();
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.iterations.is_empty()
    }

    /// Makes room for an ordinal.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, ordinal: usize, met: Met) {
        let iterations = Iterations::default();
        self.iterations.resize(ordinal + 1, iterations);
        let needed = self.iterations.len() * LookupSite::STRIDE;
        if needed > self.all.len() {
            self.all.resize(needed, met);
        }
    }

    #[inline(always)]
    fn put(&mut self, site: LookupSite, met: Met) {
        if site.ordinal() >= self.iterations.len() {
            self.grow(site.ordinal(), met);
        }
        self.iterations[site.ordinal()].found |= 1 << site.iteration();
        self.all[site.number()] = met;
    }

    #[inline(always)]
    fn get(&self, site: LookupSite) -> Option<&Met> {
        let iterations = self.iterations.get(site.ordinal())?;
        match iterations.found >> site.iteration() & 1 {
            0 => None,
            _ => self.all.get(site.number()),
        }
    }

    /// A finding that has a handle.
    #[inline(always)]
    fn get_ready(&self, site: LookupSite) -> Option<&Met> {
        let iterations = self.iterations.get(site.ordinal())?;
        match iterations.ready >> site.iteration() & 1 {
            0 => None,
            _ => self.all.get(site.number()),
        }
    }

    /// A finding that is there has a handle.
    #[inline(always)]
    fn make_ready(&mut self, site: LookupSite) {
        if let Some(iterations) = self.iterations.get_mut(site.ordinal()) {
            iterations.ready |= iterations.found & 1 << site.iteration();
        }
    }

    /// A finding that is there, or one that no run will look at.
    #[inline(always)]
    fn get_mut(&mut self, site: LookupSite) -> Option<&mut Met> {
        self.all.get_mut(site.number())
    }

    fn iter(&self) -> impl Iterator<Item = &Met> {
        let used = self.iterations.len() * LookupSite::STRIDE;
        (0..used).filter_map(|number| self.get(LookupSite::of_number(number as u16)))
    }

    fn copy_from(&mut self, other: &BySite) {
        self.iterations.clone_from(&other.iterations);
        let used = other.iterations.len() * LookupSite::STRIDE;
        self.all.clear();
        self.all.extend_from_slice(&other.all[..used]);
    }
}

/// The findings of one reconnaissance; see the module's documentation. Its memory is used again.
pub struct Findings {
    /// Those that are known by their keys, in the order in which they were made.
    all: Vec<Finding>,
    /// Those that have a site.
    by_site: BySite,
    /// The values of the keys, one key after the other: their lower words, as none is kept that has
    /// more.
    keys: Vec<u64>,
    /// The look-up that the reconnaissance is at, and where its key begins.
    sought: (*const Index, u16),
    /// The finding to which the run should come next.
    next: usize,
    /// What was read of ordered indexes.
    pub scans: Scans,
    /// The epoch in which all was found.
    epoch: u64,
}

// SAFETY: the indexes are only compared, and only a worker inside the epoch follows the records and
// cursors.
unsafe impl Send for Findings {}

impl Default for Findings {
    fn default() -> Findings {
        Findings {
            all: Vec::new(),
            by_site: BySite::default(),
            keys: Vec::new(),
            sought: (std::ptr::null(), 0),
            next: 0,
            scans: Scans::default(),
            epoch: 0,
        }
    }
}

impl Findings {
    /// What is found beyond is looked up again.
    const MAX: usize = 4096;
    /// So many findings the run may have left out when it comes to the next one that it asks for.
    const SKIPPED_MAX: usize = 16;
    /// What names no finding.
    pub const NO_FINDING: u16 = NONE;

    /// Forgets everything; what comes is found in the epoch `epoch`.
    #[inline]
    pub fn start(&mut self, epoch: u64) {
        self.clear();
        self.epoch = epoch;
    }

    /// Forgets everything.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.all.clear();
        self.by_site.clear();
        self.keys.clear();
        self.scans.clear();
        self.sought.0 = std::ptr::null();
        self.next = 0;
    }

    /// Whether there is nothing.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.by_site.is_empty()
    }

    /// Forgets what was found in another epoch than this one.
    #[inline(always)]
    pub fn keep_of(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.clear();
        }
    }

    /// Takes over what another one has, before a run.
    pub fn copy_from(&mut self, other: &Findings) {
        self.all.clone_from(&other.all);
        self.by_site.copy_from(&other.by_site);
        self.keys.clone_from(&other.keys);
        self.scans.copy_from(&other.scans);
        (self.sought, self.next, self.epoch) = (other.sought, other.next, other.epoch);
    }

    /// The reconnaissance looks a key up, of a look-up that has no site.
    #[inline(always)]
    pub fn seek(&mut self, sought: &Sought<'_>, memory: &Memory) {
        let index = &sought.table.indexes()[sought.index];
        let begin = self.keys.len();
        if !index.key_layout().is_packed() || begin > u16::MAX as usize {
            return;
        }
        let mut uppers = 0;
        for register in sought.key {
            let (lower, upper) = memory.slots[register.0 as usize].words();
            uppers |= upper;
            self.keys.push(lower);
        }
        match uppers {
            0 => self.sought = (index, begin as u16),
            _ => self.keys.truncate(begin),
        }
    }

    /// That look-up is over.
    #[inline(always)]
    pub fn sought(&mut self) {
        self.sought.0 = std::ptr::null();
    }

    /// The reconnaissance has met a record, of which the run will touch these cache lines, for a
    /// worker that asks for them before the run ([`Findings::fetch_records`]). Returns the
    /// finding's number.
    #[inline(always)]
    pub fn found(&mut self, record: RecordRef, lines: u16) -> u16 {
        let number = self.all.len();
        if number >= Findings::MAX {
            return NONE;
        }
        let (index, key) = self.sought;
        self.all.push(Finding {
            met: Met::new(record, lines),
            index,
            key,
        });
        number as u16
    }

    /// As [`Findings::found`], for the run's look-up at a site.
    #[inline(always)]
    pub fn found_at(&mut self, site: LookupSite, record: RecordRef, lines: u16) -> u16 {
        self.by_site.put(site, Met::new(record, lines));
        site.number() as u16 | OF_SITE
    }

    #[inline(always)]
    fn met(&mut self, finding: u16) -> Option<&mut Met> {
        match finding & OF_SITE {
            0 => Some(&mut self.all.get_mut(finding as usize)?.met),
            _ => self
                .by_site
                .get_mut(LookupSite::of_number(finding & !OF_SITE)),
        }
    }

    /// Asks for the memory of the findings themselves, before they are used.
    #[inline]
    pub fn fetch(&self) {
        prefetch_plain(self.all.as_slice(), FETCHED_BYTES);
        prefetch_plain(self.by_site.all.as_slice(), FETCHED_BYTES);
        prefetch_plain(self.keys.as_slice(), FETCHED_BYTES);
    }

    /// Tells virtual cores that the calling thread reads the findings, which another one may have
    /// made.
    #[inline(always)]
    pub fn note_reads(&self) {
        plain::reads(self.all.as_slice());
        plain::reads(self.by_site.all.as_slice());
        plain::reads(self.keys.as_slice());
    }

    /// As [`Findings::note_reads`], of findings that the thread has made and others will follow.
    #[inline(always)]
    pub fn note_writes(&self) {
        plain::writes(self.all.as_slice());
        plain::writes(self.by_site.all.as_slice());
        plain::writes(self.keys.as_slice());
    }

    /// Asks for the memory that the next findings will be kept in.
    #[inline]
    pub fn fetch_room(&self) {
        let all = slice_from_raw_parts(self.all.as_ptr(), self.all.capacity());
        prefetch_plain(all, FETCHED_BYTES);
        let by_site = slice_from_raw_parts(self.by_site.all.as_ptr(), self.by_site.all.capacity());
        prefetch_plain(by_site, FETCHED_BYTES);
        let keys = slice_from_raw_parts(self.keys.as_ptr(), self.keys.capacity());
        prefetch_plain(keys, FETCHED_BYTES);
    }

    /// Asks for what the run will touch of the records, or of the first of them, as yet before the
    /// run. That says nothing of the records, so it may be done in any epoch.
    #[inline]
    pub fn fetch_records(&self) {
        let by_key = self.all.iter().map(|finding| &finding.met);
        for met in by_key.chain(self.by_site.iter()).take(FETCHED_MAX) {
            met.record.fetch(met.lines);
        }
    }

    /// The finding `later` is of the same record as `earlier`, whose lock is that of both.
    #[inline]
    pub fn pair(&mut self, later: u16, earlier: u16) {
        if let Some(met) = self.met(later) {
            met.twin = earlier;
        }
    }

    /// The lock of a finding's record is held, at this position among all that are. The run may use
    /// the finding without a look at anything, its index excepted, if it `is_ready`: the record has
    /// a row, and only the run itself could change that.
    #[inline(always)]
    pub fn held(&mut self, finding: u16, lock: u32, is_ready: bool) {
        let Ok(lock) = u16::try_from(lock) else {
            return;
        };
        let Some(met) = self.met(finding) else {
            return;
        };
        met.lock = lock;
        if is_ready && lock != NONE && finding & OF_SITE != 0 && finding != NONE {
            let site = LookupSite::of_number(finding & !OF_SITE);
            self.by_site.make_ready(site);
        }
    }

    /// What the run's look-up at a site leads to, if it [may use that](Findings::held), unless the
    /// index of the look-up moves entries.
    #[inline(always)]
    pub fn handle(&self, site: LookupSite) -> Option<Handle> {
        let met = self.by_site.get_ready(site)?;
        Some(Handle {
            record: met.record,
            note: u32::from(met.lock),
        })
    }

    /// The run has deleted a record, which may be one that has been found.
    pub fn forget_handles(&mut self) {
        for iterations in &mut self.by_site.iterations {
            iterations.ready = 0;
        }
    }

    /// The finding to which the run should come next.
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.next
    }

    /// Goes back to where [`Findings::position`] was, for a look-up that is made again.
    #[inline(always)]
    pub fn go_back(&mut self, position: usize) {
        self.next = position;
    }

    /// The record that was found for this key, and the position of its lock, if one was taken.
    #[inline(always)]
    pub fn recall(
        &mut self,
        sought: &Sought<'_>,
        memory: &Memory,
    ) -> Option<(RecordRef, Option<u32>)> {
        if let Some(site) = sought.site
            && let Some(&met) = self.by_site.get(site)
        {
            return Some((met.record, self.lock(met)));
        }
        let finding = self.all.get(self.next)?;
        if !self.is_of(finding, sought, memory) {
            self.skip_to(sought, memory)?;
        }
        let record = self.all[self.next].met.record;
        Some((record, self.next_lock()))
    }

    /// Goes on to what a look-up asks for, when the run has left something out that the
    /// reconnaissance had found.
    #[cold]
    fn skip_to(&mut self, sought: &Sought<'_>, memory: &Memory) -> Option<()> {
        let mut left = self.all[self.next..].iter().take(Findings::SKIPPED_MAX + 1);
        self.next += left.position(|finding| self.is_of(finding, sought, memory))?;
        Some(())
    }

    /// Whether a finding is what a look-up asks for.
    #[inline(always)]
    fn is_of(&self, finding: &Finding, sought: &Sought<'_>, memory: &Memory) -> bool {
        if !std::ptr::eq(finding.index, &sought.table.indexes()[sought.index]) {
            return false;
        }
        let known = &self.keys[finding.key as usize..][..sought.key.len()];
        // Equal words are equal values: keys that are kept are packed, so none is bytes that lie
        // elsewhere.
        let mut differences = 0;
        for (known, register) in known.iter().zip(sought.key) {
            let (lower, upper) = memory.slots[register.0 as usize].words();
            differences |= (lower ^ known) | upper;
        }
        differences == 0
    }

    /// The position of a record's lock, if the record is what was found next.
    #[inline(always)]
    pub fn lock_of(&mut self, record: RecordRef) -> Option<u32> {
        let finding = self.all.get(self.next)?;
        match finding.met.record == record {
            true => self.next_lock(),
            false => None,
        }
    }

    /// The position of the next finding's lock; the run has come to it.
    #[inline(always)]
    fn next_lock(&mut self) -> Option<u32> {
        let met = self.all[self.next].met;
        self.next += 1;
        self.lock(met)
    }

    /// The position of a finding's lock.
    #[inline(always)]
    fn lock(&mut self, met: Met) -> Option<u32> {
        let lock = match met.twin {
            NONE => met.lock,
            twin => self.met(twin)?.lock,
        };
        (lock != NONE).then_some(u32::from(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_of_what_was_found_and_held_with_a_row() {
        // SAFETY: no code follows it here.
        let record = |number: u64| unsafe { RecordRef::from_address(number * 64) };
        let site = LookupSite::of_number;
        let handle = |findings: &Findings, at: u16| findings.handle(site(at));
        let mut findings = Findings::default();
        findings.start(1);
        let numbers = [1, 2, 40].map(|at| findings.found_at(site(at), record(at.into()), 0));
        assert!([1, 2, 40].iter().all(|at| handle(&findings, *at).is_none()));
        findings.held(numbers[0], 7, true);
        findings.held(numbers[1], 8, false);
        findings.held(numbers[2], 9, true);
        // Neither without a finding, nor of a site at which nothing was found.
        findings.held(Findings::NO_FINDING, 3, true);
        findings.held(OF_SITE | 3, 3, true);
        let known = |findings: &Findings, at: u16| {
            let handle = handle(findings, at);
            handle.map(|handle| (handle.record.address() / 64, handle.note))
        };
        assert_eq!(known(&findings, 1), Some((1, 7)));
        assert_eq!(known(&findings, 40), Some((40, 9)));
        assert!(
            [0, 2, 3, 41, 1_000]
                .iter()
                .all(|at| handle(&findings, *at).is_none())
        );
        let copy = {
            let mut copy = Findings::default();
            copy.copy_from(&findings);
            copy
        };
        assert_eq!(known(&copy, 40), Some((40, 9)));
        findings.forget_handles();
        assert!([1, 40].iter().all(|at| handle(&findings, *at).is_none()));
        // What was held for a plan of another epoch is of no use.
        findings.keep_of(2);
        findings.held(numbers[0], 7, true);
        assert!(handle(&findings, 1).is_none());
    }
}
