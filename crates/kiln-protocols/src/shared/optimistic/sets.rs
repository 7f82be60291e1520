//! What an attempt keeps of the records that it meets and writes.

use kiln_platform::atomic::AtomicU64;
use kiln_storage::layout::Blob;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;
use kiln_storage::table::Table;

use crate::shared::scratch::RowImage;

/// Marks an [`Item`] without a write.
pub const NO_WRITE: u32 = u32::MAX;

/// Marks an [`Item`] that relies on its record's tid.
pub const WHOLE: u64 = u64::MAX;

/// Marks an [`Item`] of which no column was observed so far: it relies on its record's tid, unless
/// the attempt writes the record. Then any version will do.
pub const UNOBSERVED: u64 = u64::MAX - 1;

impl<N> Item<N> {
    /// A record that was seen at the tid `observed`, all of it, by an attempt with so many writes.
    #[inline(always)]
    pub fn new(record: RecordRef, observed: u64, note: N, writes: usize) -> Item<N> {
        Item {
            record,
            observed,
            split: WHOLE,
            note,
            write: NO_WRITE,
            searched: writes as u32,
        }
    }

    /// Whether it relies on the second timestamp and not on the tid.
    #[inline(always)]
    pub fn is_split(&self) -> bool {
        self.split < UNOBSERVED
    }

    /// Whether no column was observed, and the protocol has no second timestamp.
    #[inline(always)]
    pub fn is_unobserved(&self) -> bool {
        self.split == UNOBSERVED
    }
}

/// A record that the attempt met: an element of its read set.
pub struct Item<N> {
    /// The record.
    pub record: RecordRef,
    /// Its tid when it was met, without the lock bit; of a record that the attempt has locked at
    /// any version, that one.
    pub observed: u64,
    /// Its second timestamp when it was met, if that alone is relied on; else [`WHOLE`].
    pub split: u64,
    /// What the protocol noted of it besides.
    pub note: N,
    /// The position of its write, or [`NO_WRITE`]. Another item of the same record may know a write
    /// that this one does not know yet.
    pub write: u32,
    /// How many writes the attempt had when none of them was found to be of the record: while there
    /// are no more, none is.
    pub(super) searched: u32,
}

/// What the attempt does to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Some columns change.
    Update,
    /// The record is new.
    Insert,
    /// The record goes.
    Delete,
    /// An insert of this attempt that it deleted again.
    Forget,
    /// An insert over the absent record that another attempt has put into the indexes for the same
    /// primary key: whichever commits first has the record. Of protocols without [early
    /// aborts](super::Optimistic::early_aborts).
    Share,
    /// An update, of a protocol that validates nothing, of a row that another attempt has deleted
    /// meanwhile, or inserts and has not committed.
    Lost,
}

/// A record that the attempt writes: an element of its write set.
pub struct Write {
    /// The record.
    pub record: RecordRef,
    table: *const Table,
    /// The first item that met it.
    pub item: u32,
    /// What happens to it.
    pub kind: WriteKind,
    /// The columns that the image holds.
    pub columns: ColumnSet,
    /// The new values; there is one when there are columns.
    pub(super) image: Option<RowImage>,
    /// The columns that updates deferred to the commit will write, and those that these will read.
    pub(super) pending: ColumnSet,
    pub(super) pending_read: ColumnSet,
    /// Whether it inserts the row again after having deleted it.
    pub(super) comes_back: bool,
    /// Whether the second timestamp is locked by this attempt.
    pub locks_split: bool,
}

impl Write {
    /// A write without columns so far.
    #[inline(always)]
    pub(super) fn new(record: RecordRef, table: &Table, item: u32, kind: WriteKind) -> Write {
        Write {
            record,
            table,
            item,
            kind,
            columns: ColumnSet::EMPTY,
            image: None,
            pending: ColumnSet::EMPTY,
            pending_read: ColumnSet::EMPTY,
            comes_back: false,
            locks_split: false,
        }
    }

    /// Whether the record is new.
    #[inline(always)]
    pub fn inserts(&self) -> bool {
        matches!(self.kind, WriteKind::Insert | WriteKind::Forget)
    }

    /// Whether it changes under which keys the record is found, or takes the record out of the
    /// indexes.
    pub fn moves(&self) -> bool {
        self.removes() || self.comes_back || self.table().indexed_columns().intersects(self.columns)
    }

    /// Without validation: whether the row of a record with this tid is gone, or is still another
    /// attempt's to insert.
    #[inline(always)]
    pub fn comes_too_soon_or_late(&self, present: Tid) -> bool {
        let is_lost = !self.inserts() && present.is_absent();
        debug_assert!(
            !is_lost || self.kind == WriteKind::Update,
            "others are claimed"
        );
        is_lost
    }

    /// Whether updates deferred to the commit will write it.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether it inserts the row again after having deleted it.
    pub fn comes_back(&self) -> bool {
        self.comes_back
    }

    /// Takes columns out of the image.
    pub fn take_back(&mut self, columns: ColumnSet) {
        for blob in self.table().layout().blobs(columns, self.image()) {
            // SAFETY: an image's blob is the attempt's own until it is installed.
            unsafe { Blob::free(blob) };
        }
        self.columns = self.columns.difference(columns);
    }

    /// The record's table.
    #[inline(always)]
    pub fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }

    /// The new values; of a write with columns.
    #[inline(always)]
    pub fn image<'a>(&self) -> &'a [AtomicU64] {
        let image = self.image.expect("a write with columns has an image");
        // SAFETY: the scratch is cleared only when the attempt has ended.
        unsafe { image.words() }
    }

    /// Whether the record is gone when this is installed.
    #[inline(always)]
    pub fn removes(&self) -> bool {
        matches!(self.kind, WriteKind::Delete | WriteKind::Forget)
    }
}
