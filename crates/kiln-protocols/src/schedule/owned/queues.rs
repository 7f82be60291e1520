//! The queue of a lock: requests in the order in which they came.
//!
//! Plain memory, used by one thread at a time: the owner of a partition, or who has a bucket's latch. Requests are in the
//! memory of their transactions, which stay where they are until the last one was taken back. Locks are in a list for
//! each bucket, linked through the first request of each.

use std::ptr::null_mut;

use super::{Request, RequestState};
use crate::canary::Canary;

/// The locks of a bucket: the first request of the first one.
pub type Bucket = *mut Request;

/// Where a lock is found: its first request, and where the pointer to that is.
struct Found {
    first: *mut Request,
    /// The first request of the lock before it in the bucket; none when it is the bucket's first.
    before: *mut Request,
}

impl Found {
    /// Finds the lock of a request, or the end of its bucket.
    ///
    /// # Safety
    /// The request, and all that are in the bucket, are alive, and the caller's alone.
    #[inline]
    unsafe fn new(bucket: &Bucket, request: *const Request) -> Found {
        let (mut first, mut before) = (*bucket, null_mut());
        // SAFETY: by the contract.
        unsafe {
            let lock = (*request).lock;
            while !first.is_null() && (*first).lock != lock {
                before = first;
                first = (*first).next_lock;
            }
        }
        Found { first, before }
    }

    /// Lets the pointer to the lock point to `to`.
    ///
    /// # Safety
    /// As for [`Found::new`], in the same bucket.
    unsafe fn point(&self, bucket: &mut Bucket, to: *mut Request) {
        match self.before.is_null() {
            true => *bucket = to,
            // SAFETY: alive, by the contract.
            false => unsafe { (*self.before).next_lock = to },
        }
    }
}

/// Puts a request into the queue of its lock; whether it is granted at once.
///
/// # Safety
/// The request stays where it is until it is taken back; it, and all that are in the bucket, are the caller's alone.
pub unsafe fn enqueue(bucket: &mut Bucket, request: *mut Request) -> bool {
    // SAFETY: by the contract, for this request and all that are in the bucket.
    unsafe {
        let found = Found::new(bucket, request);
        let first = found.first;
        (*request).next = null_mut();
        if first.is_null() {
            (*request).previous = null_mut();
            (*request).last = request;
            (*request).next_lock = null_mut();
            (*request).state = RequestState::Granted;
            found.point(bucket, request);
            return true;
        }
        let last = (*first).last;
        (*request).previous = last;
        (*last).next = request;
        (*first).last = request;
        // If the last one shares the lock, then all do.
        let is_granted =
            !(*request).exclusive && (*last).state == RequestState::Granted && !(*last).exclusive;
        (*request).state = match is_granted {
            true => RequestState::Granted,
            false => RequestState::Here,
        };
        is_granted
    }
}

/// Makes a granted request exclusive if no other has its lock or waits for it; whether it is.
///
/// # Safety
/// As for [`enqueue`], which has put it in.
pub unsafe fn upgrade(request: *mut Request) -> bool {
    // SAFETY: by the contract.
    unsafe {
        let is_alone = (*request).previous.is_null() && (*request).next.is_null();
        (*request).exclusive |= is_alone;
        is_alone
    }
}

/// Takes a request out of the queue of its lock, granted or not; `granted` gets each request that has the lock now.
///
/// # Safety
/// As for [`enqueue`], which put it in.
pub unsafe fn dequeue(
    bucket: &mut Bucket,
    request: *mut Request,
    granted: &mut impl FnMut(*mut Request),
) {
    // SAFETY: by the contract, for this request and all that are in the bucket.
    unsafe {
        let found = Found::new(bucket, request);
        let first = found.first;
        debug_assert!(!first.is_null(), "a request that is taken back is there");
        (*request).state = RequestState::Elsewhere;
        let (previous, next) = ((*request).previous, (*request).next);
        let mut now_first = first;
        if previous.is_null() {
            now_first = next;
            if next.is_null() {
                found.point(bucket, (*request).next_lock);
                return;
            }
            (*next).previous = null_mut();
            (*next).last = (*request).last;
            (*next).next_lock = (*request).next_lock;
            found.point(bucket, next);
        } else {
            (*previous).next = next;
            match next.is_null() {
                true => (*first).last = previous,
                false => (*next).previous = previous,
            }
        }
        // Whoever waits, waits for the holders, of whom the first in the queue is one.
        let first_to_go = match Canary::UnlockedOutOfOrder.sings() && !next.is_null() {
            true => next,
            false => now_first,
        };
        let mut at = first_to_go;
        while !at.is_null() && (*at).state != RequestState::Granted {
            if (*at).exclusive && at != first_to_go {
                break;
            }
            (*at).state = RequestState::Granted;
            granted(at);
            if (*at).exclusive {
                break;
            }
            at = (*at).next;
        }
    }
}
