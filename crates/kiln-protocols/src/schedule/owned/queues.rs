//! The queue of a lock: requests in the order in which they came.
//!
//! Plain memory, used by one thread at a time: the owner of a partition, or who has a bucket's
//! latch. Requests are in the memory of their transactions, which stay where they are until the
//! last one was taken back. Locks are in a list for each bucket, linked through the first request
//! of each.

use std::ptr::null_mut;

use kiln_platform::plain;

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
        plain::reads_one(bucket);
        plain::reads_one(request);
        // SAFETY: the caller says that the request, and all that are in the bucket, are alive and
        // its own.
        unsafe {
            let lock = (*request).lock;
            while !first.is_null() {
                plain::reads_one(first);
                if (*first).lock == lock {
                    break;
                }
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
            true => {
                *bucket = to;
                plain::writes_one(bucket);
            }
            false => {
                // SAFETY: it is in the bucket, where all are alive.
                unsafe { (*self.before).next_lock = to };
                plain::writes_one(self.before);
            }
        }
    }
}

/// Puts a request into the queue of its lock; whether it is granted at once.
///
/// # Safety
/// The request stays where it is until it is taken back; it, and all that are in the bucket, are
/// the caller's alone.
pub unsafe fn enqueue(bucket: &mut Bucket, request: *mut Request) -> bool {
    // SAFETY: the caller alone uses this request and all that are in the bucket, and they are
    // alive.
    unsafe {
        let found = Found::new(bucket, request);
        let first = found.first;
        plain::writes_one(request);
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
        plain::reads_one(last);
        plain::writes_one(last);
        plain::writes_one(first);
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
    // SAFETY: the caller alone uses the request, which is in its queue.
    unsafe {
        let is_alone = (*request).previous.is_null() && (*request).next.is_null();
        (*request).exclusive |= is_alone;
        is_alone
    }
}

/// Takes a request out of the queue of its lock, granted or not; `granted` gets each request that
/// has the lock now.
///
/// # Safety
/// As for [`enqueue`], which put it in.
pub unsafe fn dequeue(
    bucket: &mut Bucket,
    request: *mut Request,
    granted: &mut impl FnMut(*mut Request),
) {
    // SAFETY: the caller alone uses this request, which `enqueue` has put in, and all that are in
    // the bucket, and they are alive.
    unsafe {
        let found = Found::new(bucket, request);
        let first = found.first;
        debug_assert!(!first.is_null(), "a request that is taken back is there");
        let has_waited = (*request).state == RequestState::Here;
        (*request).state = RequestState::Elsewhere;
        plain::writes_one(request);
        let (previous, next) = ((*request).previous, (*request).next);
        let mut now_first = first;
        if previous.is_null() {
            now_first = next;
            if next.is_null() {
                found.point(bucket, (*request).next_lock);
                return;
            }
            plain::reads_one(next);
            plain::writes_one(next);
            (*next).previous = null_mut();
            (*next).last = (*request).last;
            (*next).next_lock = (*request).next_lock;
            found.point(bucket, next);
        } else {
            (*previous).next = next;
            plain::reads_one(previous);
            plain::writes_one(previous);
            let neighbour = match next.is_null() {
                true => {
                    (*first).last = previous;
                    first
                }
                false => {
                    (*next).previous = previous;
                    next
                }
            };
            plain::writes_one(neighbour);
        }
        // A request that waits, waits for the holders, of which the first in the queue is one; or
        // for an exclusive request that waits before it, and may be the only one that keeps it from
        // sharing the lock with them.
        let sharers_end_here = has_waited
            && (*request).exclusive
            && !previous.is_null()
            && (*previous).state == RequestState::Granted
            && !(*previous).exclusive;
        let (mut at, is_free) = match sharers_end_here {
            true => (next, false),
            false if Canary::UnlockedOutOfOrder.sings() && !next.is_null() => (next, true),
            false => (now_first, true),
        };
        let first_to_go = at;
        while !at.is_null() && (*at).state != RequestState::Granted {
            if (*at).exclusive && (at != first_to_go || !is_free) {
                break;
            }
            (*at).state = RequestState::Granted;
            plain::reads_one(at);
            plain::writes_one(at);
            granted(at);
            if (*at).exclusive {
                break;
            }
            at = (*at).next;
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;
    use kiln_storage::record::RecordRef;
    use kiln_storage::table::Part;

    use super::*;
    use crate::shared::planning::{Claim, Findings};

    fn request(exclusive: bool) -> Box<Request> {
        let claim = Claim {
            // SAFETY: this test never follows the address.
            record: unsafe { RecordRef::from_address(64) },
            exclusive,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        };
        Box::new(Request::new(claim, 0, null_mut()))
    }

    /// Requests for one lock, which a test reaches through pointers alone, as the queue does.
    struct Requests(Vec<*mut Request>);

    impl Requests {
        fn new(exclusive: impl IntoIterator<Item = bool>) -> Requests {
            let pointer = |exclusive| Box::into_raw(request(exclusive));
            Requests(exclusive.into_iter().map(pointer).collect())
        }

        fn has(&self, number: usize) -> bool {
            // SAFETY: requests live as long as this.
            unsafe { (*self.0[number]).state == RequestState::Granted }
        }

        fn enqueue(&self, bucket: &mut Bucket, number: usize) -> bool {
            // SAFETY: requests live as long as this, and this thread alone uses them.
            unsafe { enqueue(bucket, self.0[number]) }
        }

        /// The requests that have the lock because this one goes.
        fn dequeue(&self, bucket: &mut Bucket, number: usize) -> Vec<usize> {
            let mut granted = Vec::new();
            let mut note = |request| {
                let number = self.0.iter().position(|own| *own == request);
                granted.push(number.expect("a request of this lock"));
            };
            // SAFETY: as above.
            unsafe { dequeue(bucket, self.0[number], &mut note) };
            granted
        }
    }

    impl Drop for Requests {
        fn drop(&mut self) {
            for request in self.0.drain(..) {
                // SAFETY: it came from a box, and no queue has it any more.
                drop(unsafe { Box::from_raw(request) });
            }
        }
    }

    #[test]
    fn a_writer_that_withdraws_lets_those_share_that_waited_behind_it() {
        let (mut bucket, requests) = (null_mut(), Requests::new([false, true, false, false, true]));
        assert!(requests.enqueue(&mut bucket, 0));
        assert!((1..5).all(|number| !requests.enqueue(&mut bucket, number)));
        assert_eq!(requests.dequeue(&mut bucket, 1), [2, 3]);
        assert!(!requests.has(4));
        for number in [0, 3] {
            assert_eq!(requests.dequeue(&mut bucket, number), []);
        }
        assert_eq!(requests.dequeue(&mut bucket, 2), [4]);
        assert_eq!(requests.dequeue(&mut bucket, 4), []);
        assert!(bucket.is_null());
    }

    /// Requests come and go, granted or not, as chance has it: each time exactly those have the
    /// lock that conflict with none before them.
    #[test]
    fn whoever_conflicts_with_none_before_it_has_the_lock() {
        const REQUESTS: usize = 12;
        let mut random = Random::from_seed(7);
        for _ in 0..200 {
            let exclusive: Vec<bool> = (0..REQUESTS).map(|_| random.below(3) == 0).collect();
            let (mut bucket, requests) = (null_mut(), Requests::new(exclusive.iter().copied()));
            let (mut queue, mut next) = (Vec::new(), 0);
            while next < REQUESTS || !queue.is_empty() {
                let comes = next < REQUESTS && (queue.is_empty() || random.below(2) == 0);
                let before: Vec<bool> = (0..REQUESTS).map(|number| requests.has(number)).collect();
                let (mut told, mut expected) = (Vec::new(), Vec::new());
                match comes {
                    true => {
                        queue.push(next);
                        told.extend(requests.enqueue(&mut bucket, next).then_some(next));
                        next += 1;
                    }
                    false => {
                        let gone = queue.remove(random.below(queue.len()));
                        told.extend(requests.dequeue(&mut bucket, gone));
                    }
                }
                for (position, &number) in queue.iter().enumerate() {
                    let ahead = &queue[..position];
                    let conflicts = |other: &usize| exclusive[number] || exclusive[*other];
                    let is_free = !ahead.iter().any(conflicts);
                    assert_eq!(
                        requests.has(number),
                        is_free,
                        "{exclusive:?} {queue:?} {number}"
                    );
                    if is_free && !before[number] {
                        expected.push(number);
                    }
                }
                assert_eq!(told, expected);
            }
            assert!(bucket.is_null());
        }
    }
}
