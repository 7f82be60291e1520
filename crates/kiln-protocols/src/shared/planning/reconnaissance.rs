//! The access of a reconnaissance: it notes the records that a procedure meets, and does nothing.
//!
//! Rows are read as they are, while others may be writing them. A column of one word is then some
//! value that it had or gets; one of several words may be a mixture, which is as good a guess as
//! any, unless it is a text that is none, or the pointer of a spilled value, which no reader may
//! follow: there the reconnaissance ends, and what it has met so far is the plan. What the
//! procedure itself has written or deleted is remembered, so that loops over its own work end.

use kiln_platform::atomic::Ordering;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, KeptScan, LookupSite, Planning, Recalled, Recording, Remembering,
    Scanning, Sought, SoughtScan, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop};
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::layout::{is_possible, is_spilled};
use kiln_storage::record::{HEADER_BYTES, RecordRef, Tid, Words};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, Found, IndexScan, Part, Table};

use super::findings::Findings;
use super::footprint::{Claim, Footprint};
use super::groups::Extent;

/// What ends a reconnaissance before its procedure does; the caller does not hear of it.
const END: AbortCause = AbortCause::FootprintMiss;

/// The note of a handle to a row that the procedure inserted: it is nowhere.
const OWN_INSERT: u32 = u32::MAX;

/// What is planned besides the records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    /// Whether claims say the part of the data that their records belong to.
    pub is_divided: bool,
    /// Whether claims say that all that will be done to their records are updates that can be
    /// deferred to the commit.
    pub marks_deferred: bool,
    /// Whether claims need not be in order.
    pub is_in_any_order: bool,
    /// Whether the call runs right after it.
    pub is_run_soon: bool,
    /// Whether what is read of ordered indexes is kept for the run.
    pub keeps_scans: bool,
    /// Whether claims name [column groups](super::groups).
    pub by_group: bool,
    /// Whether claims say nothing but records and modes, and are put [in
    /// words](Footprint::add_word).
    pub is_in_words: bool,
}

/// Where a reconnaissance is, of those that each look at their own part of the data.
pub trait Whereabouts {
    /// Whether it goes from one to the other.
    const TRAVELS: bool;

    /// Where the records of a part are looked at, if that is not here.
    fn elsewhere(&self, part: Part) -> Option<u16>;

    /// Whether no records are looked at here, so that none should be asked for in advance.
    fn is_outside(&self) -> bool {
        false
    }
}

/// All of a reconnaissance is made in one place.
pub struct Anywhere;

impl Whereabouts for Anywhere {
    const TRAVELS: bool = false;

    #[inline(always)]
    fn elsewhere(&self, _: Part) -> Option<u16> {
        None
    }
}

/// See the module's documentation. The thread that runs it is inside of an epoch, or runs it for
/// one that is.
///
/// One that *travels* leaves off before it looks a key up, or reads a row, that belongs elsewhere:
/// the key's columns say so, or the row's. Where rows are divided by nothing but their addresses
/// all are looked at where the reconnaissance is.
pub struct Reconnaissance<'a, W = Anywhere> {
    footprint: &'a mut Footprint,
    findings: &'a mut Findings,
    memory: &'a mut Remembered,
    planned: Planned,
    /// What the key of the present look-up says of its record, where the data are divided.
    sought_part: Option<Part>,
    /// The site of the present look-up, whose record is met next.
    ahead: Option<LookupSite>,
    whereabouts: W,
    /// Whether it has come for an operation that is not done yet: it does not leave before that.
    has_arrived: bool,
    /// Where it wants to go.
    leaving_for: Option<u16>,
}

/// What the procedure has done, to be seen by itself.
#[derive(Debug, Default)]
pub struct Remembered {
    written: Vec<(RecordRef, ColumnId, Slot)>,
    deleted: Vec<RecordRef>,
}

impl Remembered {
    /// Forgets what an earlier procedure has done.
    pub fn clear(&mut self) {
        self.written.clear();
        self.deleted.clear();
    }

    /// What the procedure has written of a record.
    #[inline(always)]
    fn value_of(&self, record: RecordRef, column: ColumnId) -> Option<Slot> {
        if self.written.is_empty() {
            return None;
        }
        let mut written = self.written.iter().rev();
        let last = written.find(|one| (one.0, one.1) == (record, column))?;
        Some(last.2)
    }
}

impl<'a> Reconnaissance<'a> {
    /// Collects, in one place, into `footprint`, which says what `planned` asks for, and into
    /// `findings`; `memory` is there to be used again.
    pub fn new(
        footprint: &'a mut Footprint,
        findings: &'a mut Findings,
        memory: &'a mut Remembered,
        planned: Planned,
    ) -> Reconnaissance<'a> {
        memory.clear();
        let parts = (footprint, findings, memory);
        Reconnaissance::at(Anywhere, parts, planned, false)
    }

    /// Whether a handle is of a row that the procedure inserted, which is nowhere.
    pub fn is_new(handle: &Handle) -> bool {
        handle.note == OWN_INSERT
    }
}

impl<'a, W: Whereabouts> Reconnaissance<'a, W> {
    /// Goes on at `whereabouts`, for an operation for which it `has_arrived`, or begins there; what
    /// it has met, and what its procedure has done, are known.
    pub fn at(
        whereabouts: W,
        (footprint, findings, memory): (&'a mut Footprint, &'a mut Findings, &'a mut Remembered),
        planned: Planned,
        has_arrived: bool,
    ) -> Reconnaissance<'a, W> {
        Reconnaissance {
            footprint,
            findings,
            memory,
            planned,
            sought_part: None,
            ahead: None,
            whereabouts,
            has_arrived,
            leaving_for: None,
        }
    }

    /// Where it goes on, once it has left off.
    pub fn leaving_for(&self) -> Option<u16> {
        self.leaving_for
    }

    /// Whether records of a part are to be looked at here.
    ///
    /// # Errors
    /// [`Halt::Leaves`] when they are not.
    #[inline(always)]
    fn stay(&mut self, part: Option<Part>) -> Result<(), Halt> {
        if W::TRAVELS
            && !self.has_arrived
            && let Some(part) = part
            && let Some(partition) = self.whereabouts.elsewhere(part)
        {
            self.leaving_for = Some(partition);
            return Err(Halt::Leaves);
        }
        Ok(())
    }

    /// As [`Reconnaissance::stay`], for a record, whose part may be known.
    #[inline(always)]
    fn stay_with(
        &mut self,
        table: &Table,
        record: RecordRef,
        known: Option<Part>,
    ) -> Result<(), Halt> {
        if W::TRAVELS && !self.has_arrived && table.schema().partition_column().is_some() {
            let part = known.unwrap_or_else(|| table.part_of(record));
            self.stay(Some(part))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn has_deleted(&self, record: RecordRef) -> bool {
        !self.memory.deleted.is_empty() && self.memory.deleted.contains(&record)
    }

    /// The cache lines of a record that have these words, if they are to be asked for before the
    /// run.
    #[inline(always)]
    fn lines(&self, touched: Words, record: RecordRef) -> u16 {
        match self.planned.is_run_soon {
            true => 0,
            false => touched.lines_at(record),
        }
    }

    /// Notes a record with which `observed` will be done, as far as that is known; `find` gives the
    /// finding's number.
    #[inline(always)]
    fn meet(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: Option<&Observed>,
        find: impl FnOnce(&mut Findings) -> u16,
    ) -> Result<Visit, Halt> {
        self.stay_with(table, record, self.sought_part)?;
        charge(Work::Record);
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            return Ok(Visit::Dead);
        }
        let finding = find(self.findings);
        let has_room = match self.planned.is_in_words {
            true => (self.footprint).add_word(record, intent == Intent::Write, finding),
            false => self.claim(table, record, intent, observed, finding),
        };
        if !has_room {
            return Err(END.into());
        }
        let is_absent = tid.is_absent() || self.has_deleted(record);
        Ok(match is_absent {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note: 0 }),
        })
    }

    /// Notes a record that is met at a site, where claims are in words and the run follows soon.
    #[inline(always)]
    fn meet_at(
        &mut self,
        site: LookupSite,
        record: RecordRef,
        intent: Intent,
    ) -> Result<Visit, Halt> {
        debug_assert!(self.planned.is_run_soon);
        charge(Work::Record);
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        if tid.is_dead() {
            return Ok(Visit::Dead);
        }
        let finding = self.findings.found_at(site, record, 0);
        if !(self.footprint).add_word(record, intent == Intent::Write, finding) {
            return Err(END.into());
        }
        let is_absent = tid.is_absent() || self.has_deleted(record);
        Ok(match is_absent {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note: 0 }),
        })
    }

    /// Notes a record with which `observed` will be done.
    #[inline(never)]
    fn meet_anywhere(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        let lines = self.lines(observed.touched, record);
        let ahead = self.ahead.take();
        let find = |findings: &mut Findings| match ahead {
            Some(site) => findings.found_at(site, record, lines),
            None => findings.found(record, lines),
        };
        self.meet(table, record, intent, Some(observed), find)
    }

    /// Adds a claim on a record with which `observed` will be done; says no when there is no room.
    #[inline]
    fn claim(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: Option<&Observed>,
        finding: u16,
    ) -> bool {
        let exclusive = intent == Intent::Write;
        let mut claim = match self.sought_part.take() {
            Some(part) => Claim::of_part(part, record, exclusive),
            None => Claim::new(table, record, exclusive, self.planned.is_divided),
        };
        let is_deferred = observed.is_some_and(|observed| observed.is_deferred);
        claim.is_deferred = self.planned.marks_deferred && is_deferred && exclusive;
        claim.finding = finding;
        let extent = match (self.planned.by_group, observed) {
            (true, Some(observed)) => Extent::of(table, intent, observed),
            _ => Extent::Record,
        };
        self.footprint.add_within(claim, extent)
    }

    /// Notes what a look-up's key says of the part of its record.
    #[inline(always)]
    fn seek_part(&mut self, table: &Table, index: usize, value_of: impl FnOnce(usize) -> Slot) {
        if self.planned.is_divided {
            self.sought_part = table.part_of_key(index, value_of);
        }
    }

    /// Whether a value may be handed to a procedure although it may be a mixture of two.
    fn is_sound(table: &Table, column: ColumnId, slot: Slot, memory: &Memory) -> bool {
        // Nothing of it is in the heap.
        if slot.words().1 == 0 || slot.is_null() {
            return true;
        }
        let data_type = &table.schema().columns[column.index()].data_type;
        let is_string = table.layout().byte_strings().contains(column);
        !is_string || is_possible(memory.heap.bytes(slot), data_type)
    }
}

impl<W: Whereabouts> Access for Reconnaissance<'_, W> {
    fn begin(&mut self) {}

    // Always: so that it becomes a part of the loop that makes look-ups ahead.
    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        match self.planned.is_in_words && !W::TRAVELS {
            true => match self.ahead.take() {
                Some(site) => self.meet_at(site, record, intent),
                None => self.meet_anywhere(table, record, intent, observed),
            },
            false => self.meet_anywhere(table, record, intent, observed),
        }
    }
    #[inline(always)]
    fn guard(&mut self, _: &Table, _: usize, _: NodeVersion) -> Result<(), AbortCause> {
        Ok(())
    }

    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        if handle.note == OWN_INSERT {
            return Err(END.into());
        }
        self.stay_with(table, handle.record, None)?;
        let (layout, row) = (table.layout(), table.row(handle.record));
        for &(column, register) in columns {
            let slot = match self.memory.value_of(handle.record, column) {
                Some(slot) => slot,
                None => layout.column(column).load(row, &mut memory.heap),
            };
            if is_spilled(slot) || !Self::is_sound(table, column, slot, memory) {
                return Err(END.into());
            }
            memory.slots[register.0 as usize] = slot;
        }
        Ok(())
    }

    fn update(
        &mut self,
        _: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        let record = handle.record;
        let values = columns
            .iter()
            .map(|&(column, register)| (record, column, memory.slots[register.0 as usize]));
        self.memory.written.extend(values);
        if self.memory.written.len() > Footprint::CLAIMS_MAX {
            return Err(END.into());
        }
        Ok(())
    }

    /// The row that is in the way, if there is one; it is not made.
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        if W::TRAVELS {
            let part = table.part_of_row(|column| memory.slots[values[column.index()].0 as usize]);
            self.stay(part)?;
        }
        for (position, index) in table.indexes().iter().enumerate() {
            if !index.supports_lookup() {
                continue;
            }
            let columns = &index.definition().columns;
            let value_of = |column: &ColumnId| memory.slots[values[column.index()].0 as usize];
            let key = columns.iter().map(value_of);
            let Found::Entry(entry) = index.get_in_way(&memory.heap, key) else {
                continue;
            };
            if entry.is_moving() {
                continue;
            }
            self.seek_part(table, position, |at| value_of(&columns[at]));
            let (record, intent) = (entry.record(), Intent::Write);
            let lines = self.lines(Words::HEADER, record);
            let find = |findings: &mut Findings| findings.found(record, lines);
            if let Visit::Present(handle) = self.meet(table, record, intent, None, find)? {
                return Ok(Inserted::Exists {
                    index: position,
                    handle,
                });
            }
        }
        // SAFETY: the reference is never followed: `read` looks at the note first, and all others
        // of this access only compare it.
        let record = unsafe { RecordRef::from_address(HEADER_BYTES as u64) };
        Ok(Inserted::New(Handle {
            record,
            note: OWN_INSERT,
        }))
    }

    fn delete(&mut self, _: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        self.memory.deleted.push(handle.record);
        Ok(())
    }

    fn bring_back(
        &mut self,
        _: &Table,
        handle: &mut Handle,
        _: &[Reg],
        _: &mut Memory,
    ) -> Result<(), Halt> {
        let deleted = &mut self.memory.deleted;
        deleted.retain(|record| *record != handle.record);
        Ok(())
    }

    fn moves_entries(&self) -> bool {
        false
    }

    /// What another attempt moves is not there yet, or not any more.
    fn resolve(&self, _: &Table, _: usize, entry: Entry) -> Result<Option<RecordRef>, AbortCause> {
        Ok((!entry.is_moving()).then(|| entry.record()))
    }

    fn commit(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        Ok(())
    }

    fn roll_back(&mut self) {}
}

impl<W: Whereabouts> Remembering for Reconnaissance<'_, W> {
    /// Nothing is found in advance where that would be asked for by a thread that looks at none of
    /// it.
    #[inline(always)]
    fn recalls(&self) -> bool {
        W::TRAVELS && self.whereabouts.is_outside()
    }

    #[inline(always)]
    fn is_run_soon(&self) -> bool {
        self.planned.is_run_soon
    }

    #[inline(always)]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        let value_of = |position: usize| memory.slots[sought.key[position].0 as usize];
        self.seek_part(sought.table, sought.index, value_of);
        self.stay(self.sought_part)?;
        match sought.site {
            Some(_) => self.ahead = sought.site,
            None => self.findings.seek(sought, memory),
        }
        Ok(None)
    }

    #[inline(always)]
    fn looked_up(&mut self) {
        self.findings.sought();
        (self.ahead, self.sought_part) = (None, None);
    }

    #[inline(always)]
    fn seek_ahead(
        &mut self,
        site: LookupSite,
        table: &Table,
        index: usize,
        value_of: impl Fn(usize) -> Slot,
    ) {
        self.ahead = Some(site);
        self.seek_part(table, index, value_of);
    }

    #[inline(always)]
    fn seek_scan(
        &mut self,
        sought: &SoughtScan<'_>,
        memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        Ok(match self.planned.keeps_scans {
            true => self.findings.scans.begin(sought, memory),
            false => KeptScan::No,
        })
    }

    #[inline(always)]
    fn recall_leaf(&mut self, leaf: &mut u16, batch: &mut LeafBatch) -> bool {
        self.findings.scans.recall_leaf(leaf, batch)
    }

    #[inline(always)]
    fn has_read(&mut self, scan: u16, batch: &LeafBatch) -> bool {
        self.findings.scans.read(scan, batch)
    }

    #[inline(always)]
    fn has_scanned(&mut self, scan: u16, rest: Option<IndexScan<'_>>) {
        self.findings.scans.end(scan, rest);
    }
}

impl<W: Whereabouts> Travelling for Reconnaissance<'_, W> {
    const TRAVELS: bool = W::TRAVELS;

    #[inline(always)]
    fn has_done(&mut self) {
        self.has_arrived = false;
    }

    #[inline(always)]
    fn seeks_range(&mut self, table: &Table, index: usize, prefix: &[Slot]) -> Result<(), Halt> {
        self.stay(table.part_of_range(index, prefix))
    }
}

impl<W: Whereabouts> Planning for Reconnaissance<'_, W> {}
impl<W: Whereabouts> Scanning for Reconnaissance<'_, W> {}
impl<W: Whereabouts> Deferring for Reconnaissance<'_, W> {}
impl<W: Whereabouts> Recording for Reconnaissance<'_, W> {}
impl<W: Whereabouts> Flawed for Reconnaissance<'_, W> {}
