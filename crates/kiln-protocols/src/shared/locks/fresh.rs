//! Marks of new records, for locks that are not beside the records: no transaction has the lock of
//! a record that none knew. So its maker marks it until the transaction has ended, and a
//! transaction that is granted the lock meanwhile starts again.

use kiln_platform::atomic::Ordering;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

/// The `aux` of a record whose transaction has not ended.
pub const FRESH: u64 = 1;

/// Whether a record that is locked may be touched.
///
/// # Errors
/// Why the attempt fails instead: the record's maker has not ended.
#[inline(always)]
pub fn admit(record: RecordRef) -> Result<(), AbortCause> {
    // Acquire pairs with the release in `finish`: what the record's maker did is visible.
    match record.aux().load(Ordering::Acquire) {
        FRESH => Err(AbortCause::KeyInTransit),
        _ => Ok(()),
    }
}

/// The transaction of a new record has ended.
#[inline(always)]
pub fn finish(record: RecordRef) {
    // Release: see `admit`.
    record.aux().store(0, Ordering::Release);
}
