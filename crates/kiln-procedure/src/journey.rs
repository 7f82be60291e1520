//! Where a run that has left off goes on: what a frame keeps of an attempt that travels from thread
//! to thread. The executor writes it and reads it.

use kiln_storage::index::LeafBatch;
use kiln_storage::slot::Slot;
use kiln_storage::table::IndexScan;

use crate::buffer::Matches;
use crate::code::Label;
use crate::ir::MATCHES_MAX;

/// Where a run that has left off goes on.
#[derive(Default)]
pub(crate) struct Journey {
    /// The op that is begun anew, unless that is inside of a scan itself.
    pub at: Label,
    /// The loops around it, the innermost one first.
    pub levels: Vec<Level>,
}

impl Journey {
    /// Forgets a run that does not go on.
    pub(crate) fn clear(&mut self) {
        self.levels.clear();
    }
}

/// A loop that was left, to be gone on with. Its op is before its body.
#[expect(
    clippy::large_enum_variant,
    reason = "a box for each scan would be an allocation for each"
)]
pub(crate) enum Level {
    Scan(ScanLevel),
    Rows {
        body: Label,
        position: usize,
    },
    Matching {
        body: Label,
        matching: Matching,
    },
    /// Look-ups that are made where they are prefetched: the one of this iteration is next.
    Foreseen {
        body: Label,
        iteration: i64,
        lookup: usize,
    },
    Region(OpenRegion),
}

/// A walk over the rows that have certain values.
pub(crate) struct Matching {
    pub position: Matches,
    values: [Slot; MATCHES_MAX],
    count: usize,
}

impl Matching {
    pub fn new(position: Matches, values: &[Slot]) -> Matching {
        let mut kept = [Slot::NULL; MATCHES_MAX];
        kept[..values.len()].copy_from_slice(values);
        Matching {
            position,
            values: kept,
            count: values.len(),
        }
    }

    /// The values.
    pub fn values(&self) -> &[Slot] {
        &self.values[..self.count]
    }
}

/// A scan, as far as it has got.
pub(crate) struct ScanLevel {
    pub body: Label,
    /// A cursor of an index that the run's program keeps.
    pub cursor: IndexScan<'static>,
    pub batch: LeafBatch,
    /// The entry of the batch at which it is.
    pub position: usize,
    /// Whether that one was met, and its iteration has begun.
    pub is_in_iteration: bool,
    /// Its number in the history, if the attempt is observed.
    pub range: Option<u32>,
}

// SAFETY: only the thread that runs the attempt follows the cursor's pointers, one thread after the
// other, while the epoch is held in which the attempt began.
unsafe impl Send for ScanLevel {}

impl ScanLevel {
    /// A scan that begins.
    pub fn new(body: Label, cursor: IndexScan<'_>, range: Option<u32>) -> ScanLevel {
        ScanLevel {
            body,
            // SAFETY: the index is of a table of the program, and the worker that runs the attempt
            // keeps the program until the attempt has ended; no other run uses the level.
            cursor: unsafe { std::mem::transmute::<IndexScan<'_>, IndexScan<'static>>(cursor) },
            batch: LeafBatch::default(),
            position: 0,
            is_in_iteration: false,
            range,
        }
    }
}

/// How far a region has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It runs its body.
    Body,
    /// It has caught an error, and takes changes back.
    TakesBack,
}

/// An open region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRegion {
    pub body: Label,
    /// The number of regions around it, and of changes in these when it began.
    pub around: u32,
    pub before: usize,
    /// The number of notifications when it began.
    pub notified: usize,
    pub stage: Stage,
}
