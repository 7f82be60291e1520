//! The compact lock, for who never waits: a record's `aux` word without any memory of who holds it.
//!
//! The highest bit says exclusive; else the word counts the sharers.

use kiln_platform::atomic::Ordering;
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;

use super::{ByRecord, Locks, Taken};
use crate::canary::Canary;

/// Held by one writer.
const EXCLUSIVE: u64 = 1 << 63;

/// The locks of a worker that aborts where it would have to wait, beside the records.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockWords;

impl Locks for LockWords {
    type Held = ();
    type Naming = ByRecord;
    const NEW_AUX: Option<u64> = Some(EXCLUSIVE);

    #[inline(always)]
    fn take(&mut self, record: RecordRef, exclusive: bool) -> Result<Taken<()>, AbortCause> {
        match exclusive {
            true if !take(record) => return Err(AbortCause::WriteLock),
            true => {}
            false if Canary::SharedLockSkipped.sings() => {}
            false if !share(record) => return Err(AbortCause::ReadLock),
            false if Canary::SharedLockReleasedEarly.sings() => release(record, false),
            false => {}
        }
        Ok(Taken::Now(()))
    }

    #[inline(always)]
    fn take_new(&mut self, _: RecordRef) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn upgrade(&mut self, record: RecordRef, (): ()) -> Result<Taken<()>, AbortCause> {
        let upgraded = match shares_without_lock() {
            true => take(record),
            false => upgrade(record),
        };
        match upgraded {
            true => Ok(Taken::Now(())),
            false => Err(AbortCause::WriteLock),
        }
    }

    fn wait(&mut self, _: RecordRef, (): ()) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn release(&mut self, record: RecordRef, (): (), exclusive: bool) {
        if exclusive || !shares_without_lock() {
            release(record, exclusive);
        }
    }
}

/// Whether a canary keeps no lock on what is only read.
#[inline(always)]
fn shares_without_lock() -> bool {
    Canary::SharedLockSkipped.sings() || Canary::SharedLockReleasedEarly.sings()
}

/// Takes the shared lock if no writer holds the record.
#[inline(always)]
fn share(record: RecordRef) -> bool {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen != EXCLUSIVE {
        // Acquire pairs with the release of the last writer: its row is visible.
        match word.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Takes the exclusive lock if no transaction holds the record.
#[inline(always)]
fn take(record: RecordRef) -> bool {
    // Acquire pairs with the releases of the last writer and of the last readers: this one's
    // writes come after their accesses.
    let taken = record
        .aux()
        .compare_exchange(0, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok()
}

/// Turns the caller's shared lock into the exclusive one if no other transaction shares it.
#[inline(always)]
fn upgrade(record: RecordRef) -> bool {
    // Acquire: as for `take`, with respect to the other readers that have let go.
    let taken = record
        .aux()
        .compare_exchange(1, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok()
}

/// Lets go of a lock held in this mode.
#[inline(always)]
fn release(record: RecordRef, exclusive: bool) {
    // Release pairs with the acquisitions above.
    if exclusive {
        record.aux().store(0, Ordering::Release);
    } else {
        record.aux().fetch_sub(1, Ordering::Release);
    }
}
