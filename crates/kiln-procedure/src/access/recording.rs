//! What an access adds to the history of an observed attempt.

use kiln_history::{Log, Version};
use kiln_platform::atomic::Ordering;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::table::Table;

use super::Handle;

/// Which versions an attempt relied on, for histories. Without a log nothing else of this is asked.
pub trait Recording {
    /// Where the attempt's history goes, if it is observed: the executor records there what the
    /// attempt met, read and wrote, and the access what it installed.
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        None
    }

    /// The version that a read through `handle` relies on.
    fn version_of(&self, handle: &Handle) -> Version {
        present_version(handle.record)
    }

    /// The version that the attempt relied on when it last met `record` and found no row there.
    fn version_met(&self, record: RecordRef) -> Version {
        present_version(record)
    }

    /// The version in which a record is dead that the attempt has met so, whatever it relied on
    /// when it met the record before.
    fn version_dead(&self, record: RecordRef) -> Version {
        self.version_met(record)
    }

    /// In a snapshot from before `record` took over its key in the index at `index`: the record
    /// that it had it from.
    fn former_holder(&self, table: &Table, index: usize, record: RecordRef) -> Option<RecordRef> {
        let _ = (table, index, record);
        None
    }

    /// The timestamp of the snapshot that the attempt reads, if it does.
    fn snapshot(&self) -> Option<Version> {
        None
    }
}

/// The version that a record has now.
fn present_version(record: RecordRef) -> Version {
    Version(Tid(record.tid().load(Ordering::Relaxed)).version())
}
