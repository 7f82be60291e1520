//! The queue of one lock, as the holder of its latch sees it; see the rules in the module above.

use kiln_platform::atomic::Ordering;

use super::request::{CHANGED, GRANTED, PARKED, RequestRef, WAITING};
use crate::canary::Canary;
use crate::shared::workers::WorkerSet;

/// What became of the wish to hold a shared lock exclusively.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Upgrade {
    Granted,
    /// The other sharers have to leave first.
    Pending,
    /// Another sharer waits for the same: one of the two must give up.
    Crossed,
}

/// A queue under its latch: first the holders, then the waiters. Where overtaking is allowed there
/// may be no holder; then the first waiter has been told to look.
pub(super) struct Queue {
    /// Its first request, whose second half describes the queue; none when no transaction wants the
    /// lock.
    pub(super) first: Option<RequestRef>,
    /// The workers that sleep and are to be woken once the latch is free.
    pub(super) sleepers: WorkerSet,
}

impl Queue {
    #[inline(always)]
    pub(super) fn new(first: Option<RequestRef>) -> Queue {
        Queue {
            first,
            sleepers: WorkerSet::default(),
        }
    }

    #[inline(always)]
    fn head(&self) -> RequestRef {
        self.first.expect("a queue with a request has a first one")
    }

    /// Whether a new request gets the lock at once: it is in no holder's way, and no request waits.
    #[inline(always)]
    pub(super) fn is_free_for(&self, exclusive: bool) -> bool {
        let Some(head) = self.first else {
            return true;
        };
        !exclusive
            && !head.is_exclusive()
            && head.waiters.load(Ordering::Relaxed) == 0
            && !head.upgrade_pending.load(Ordering::Relaxed)
    }

    /// Whether a new request may take a lock that was let go before the first waiter has come for
    /// it. By age only if it is younger than all who wait, as these will wait for it.
    #[inline]
    pub(super) fn may_overtake(&self, stamp: u64, by_age: bool) -> bool {
        self.first.is_some_and(|first| {
            first.holders.load(Ordering::Relaxed) == 0
                && !first.insists.load(Ordering::Relaxed)
                && (!by_age || first.stamp() < stamp)
        })
    }

    /// Adds a new request that takes the lock before those who wait.
    pub(super) fn overtake(&mut self, request: RequestRef) {
        let first = self.head();
        request.last.set(first.last.get());
        request.next_lock.set(first.next_lock.get());
        copy(&request.waiters, &first.waiters);
        request.next.set(Some(first));
        first.previous.set(Some(request));
        self.first = Some(request);
    }

    /// Adds a new request that gets the lock at once.
    #[inline]
    pub(super) fn join(&mut self, request: RequestRef) {
        match self.first {
            None => self.first = Some(request),
            Some(head) => {
                add(&head.holders, 1);
                self.insert_behind(head, head.last.get(), request);
            }
        }
    }

    /// Adds a new request that waits: at the end, or before those that are older.
    pub(super) fn line_up(&mut self, request: RequestRef, by_age: bool) {
        let head = self.head();
        request.state.store(WAITING, Ordering::Relaxed);
        request.is_holder.store(false, Ordering::Relaxed);
        let mut ahead = head.last.get();
        if by_age {
            while let Some(other) = ahead
                && !other.is_holder()
                && other.stamp() < request.stamp()
            {
                ahead = other.previous.get();
            }
        }
        add(&head.waiters, 1);
        self.insert_behind(head, ahead, request);
    }

    fn insert_behind(&mut self, head: RequestRef, ahead: Option<RequestRef>, request: RequestRef) {
        let ahead = ahead.expect("who would be the first takes the lock, or may not wait");
        let behind = ahead.next.get();
        request.previous.set(Some(ahead));
        request.next.set(behind);
        ahead.next.set(Some(request));
        match behind {
            Some(behind) => behind.previous.set(Some(request)),
            None => head.last.set(Some(request)),
        }
    }

    /// Takes a request out of the list; the counts are the caller's.
    #[inline]
    fn unlink(&mut self, request: RequestRef) {
        let (previous, next) = (request.previous.get(), request.next.get());
        match previous {
            Some(previous) => previous.next.set(next),
            None => {
                self.first = next;
                if let Some(next) = next {
                    // What describes the queue moves to its new first request.
                    next.last.set(request.last.get());
                    next.next_lock.set(request.next_lock.get());
                    copy(&next.holders, &request.holders);
                    copy(&next.waiters, &request.waiters);
                    let pending = request.upgrade_pending.load(Ordering::Relaxed);
                    next.upgrade_pending.store(pending, Ordering::Relaxed);
                }
            }
        }
        match (next, self.first) {
            (Some(next), _) => next.previous.set(previous),
            (None, Some(head)) => head.last.set(previous),
            (None, None) => {}
        }
    }

    /// Lets go of a lock that is held and not being upgraded, and passes it on; or leaves it to the
    /// worker that comes first, the first waiter or, if that may be overtaken, another one.
    #[inline]
    pub(super) fn release(&mut self, request: RequestRef, may_be_overtaken: bool) {
        self.unlink(request);
        let Some(head) = self.first else { return };
        let left = head.holders.load(Ordering::Relaxed) - 1;
        head.holders.store(left, Ordering::Relaxed);
        if Canary::LockNotPassedOn.sings() {
            return;
        }
        if left == 0 {
            if may_be_overtaken && !head.insists.load(Ordering::Relaxed) {
                self.call(head);
            } else {
                self.grant_from(Some(head));
            }
        } else if left == 1 && head.upgrade_pending.load(Ordering::Relaxed) {
            head.upgrade_pending.store(false, Ordering::Relaxed);
            head.exclusive.store(true, Ordering::Relaxed);
            self.tell(head, GRANTED);
        } else if Canary::LockPassedToTwo.sings() {
            let mut at = Some(head);
            while let Some(holder) = at.filter(|request| request.is_holder()) {
                // Two writers in one record would be more than a wrong history.
                if holder.is_exclusive() {
                    return;
                }
                at = holder.next.get();
            }
            head.holders.store(0, Ordering::Relaxed);
            self.grant_from(at);
            add(&head.holders, left);
        }
    }

    /// Takes out a request that waits.
    pub(super) fn withdraw(&mut self, request: RequestRef) {
        let (ahead, behind) = (request.previous.get(), request.next.get());
        self.unlink(request);
        let Some(head) = self.first else { return };
        let waiters = head.waiters.load(Ordering::Relaxed) - 1;
        head.waiters.store(waiters, Ordering::Relaxed);
        let is_next = ahead.is_none_or(|ahead| ahead.is_holder());
        self.left_without_being_served(behind, is_next);
    }

    /// The requests from `behind` on have one less to wait for; `is_next` if holders alone are
    /// ahead of them.
    fn left_without_being_served(&mut self, behind: Option<RequestRef>, is_next: bool) {
        let mut at = match is_next {
            true => self.grant_from(behind),
            false => behind,
        };
        // A waiter that could have relied on the one that left, or on one that has got the lock
        // beside others, has to look whom it waits for now. A request behind an exclusive one waits
        // for that one alone.
        while let Some(waiter) = at {
            self.call(waiter);
            if waiter.is_exclusive() {
                break;
            }
            at = waiter.next.get();
        }
    }

    /// Tells those that wait directly for the holders to look who these are now.
    pub(super) fn call_those_overtaken(&mut self) {
        let first = self.first_waiter();
        self.left_without_being_served(first, false);
    }

    fn first_waiter(&self) -> Option<RequestRef> {
        let mut at = self.first;
        while let Some(holder) = at.filter(|request| request.is_holder()) {
            at = holder.next.get();
        }
        at
    }

    /// Whether holders alone are ahead of a request that waits.
    pub(super) fn is_next(&self, request: RequestRef) -> bool {
        let ahead = request.previous.get();
        !request.is_holder() && ahead.is_none_or(|ahead| ahead.is_holder())
    }

    /// The owner of a request that waits has come for the lock: it gets it if it is the next and in
    /// no holder's way, and those that share it with it do.
    pub(super) fn come(&mut self, request: RequestRef) {
        if self.is_next(request) {
            match self.head().holders.load(Ordering::Relaxed) {
                0 => {
                    self.grant_from(Some(request));
                }
                // It shares the lock with one that has overtaken it, for whom those behind wait now
                // too.
                _ => self.left_without_being_served(Some(request), true),
            }
        }
    }

    /// Grants the lock to the waiters from `at` on, the first one, as far as it goes. Returns the
    /// first that still waits.
    fn grant_from(&mut self, mut at: Option<RequestRef>) -> Option<RequestRef> {
        let head = self.first?;
        while let Some(waiter) = at {
            let holders = head.holders.load(Ordering::Relaxed);
            let is_shared = !waiter.is_exclusive()
                && !head.is_exclusive()
                && !head.upgrade_pending.load(Ordering::Relaxed);
            if holders > 0 && !is_shared {
                break;
            }
            at = waiter.next.get();
            waiter.is_holder.store(true, Ordering::Relaxed);
            head.holders.store(holders + 1, Ordering::Relaxed);
            let waiters = head.waiters.load(Ordering::Relaxed) - 1;
            head.waiters.store(waiters, Ordering::Relaxed);
            self.tell(waiter, GRANTED);
        }
        at
    }

    /// Tells a waiting worker to look at the queue, unless it has been told and has not looked yet.
    fn call(&mut self, waiter: RequestRef) {
        // The owner takes this state back under the latch alone.
        if waiter.state.load(Ordering::Relaxed) != CHANGED {
            self.tell(waiter, CHANGED);
        }
    }

    /// Changes the state that a waiting worker looks at.
    fn tell(&mut self, waiter: RequestRef, state: u8) {
        let worker = waiter.worker();
        // Release pairs with the acquire in `Locks::wait`: the new holder sees what the former ones
        // did, whose releases of the latch the acquisition of the latch has gathered. Acquire is
        // for nothing but the latch's next holder.
        if waiter.state.swap(state, Ordering::AcqRel) == PARKED {
            self.sleepers.insert(worker as usize);
        }
    }

    /// Whether the lock has no other holder.
    #[inline(always)]
    pub(super) fn is_alone(&self, request: RequestRef) -> bool {
        debug_assert!(request.is_holder());
        self.head().holders.load(Ordering::Relaxed) == 1
    }

    /// Makes a shared lock exclusive, at once or as soon as the other sharers have left.
    pub(super) fn upgrade(&mut self, request: RequestRef) -> Upgrade {
        let head = self.head();
        if self.is_alone(request) {
            request.exclusive.store(true, Ordering::Relaxed);
            return Upgrade::Granted;
        }
        if head.upgrade_pending.load(Ordering::Relaxed) {
            return Upgrade::Crossed;
        }
        head.upgrade_pending.store(true, Ordering::Relaxed);
        request.state.store(WAITING, Ordering::Relaxed);
        Upgrade::Pending
    }

    /// Takes back the wish to upgrade, of a request that goes on sharing the lock.
    pub(super) fn cancel_upgrade(&mut self, request: RequestRef) {
        let head = self.head();
        head.upgrade_pending.store(false, Ordering::Relaxed);
        request.state.store(GRANTED, Ordering::Relaxed);
        let first = self.first_waiter();
        self.left_without_being_served(first, true);
    }

    /// Calls `body` with the holders other than `request`.
    fn each_other_holder(&self, request: RequestRef, mut body: impl FnMut(RequestRef)) {
        let mut at = self.first;
        while let Some(holder) = at.filter(|holder| holder.is_holder()) {
            if holder != request {
                body(holder);
            }
            at = holder.next.get();
        }
    }

    /// Calls `body` with those that a waiting request waits for directly: what these wait for in
    /// turn, it waits for as well.
    ///
    /// These are the holders, or the requests right ahead that cannot hold the lock with it: one
    /// exclusive request, or a series of shared ones.
    pub(super) fn each_predecessor(&self, request: RequestRef, mut body: impl FnMut(RequestRef)) {
        if request.is_holder() {
            return self.each_other_holder(request, body);
        }
        let waiting = |at: Option<RequestRef>| at.filter(|ahead: &RequestRef| !ahead.is_holder());
        let shared = |at: Option<RequestRef>| waiting(at).filter(|ahead| !ahead.is_exclusive());
        let mut at = request.previous.get();
        if !request.is_exclusive() {
            while let Some(ahead) = shared(at) {
                at = ahead.previous.get();
            }
        }
        match waiting(at) {
            None => self.each_other_holder(request, body),
            Some(ahead) if ahead.is_exclusive() => body(ahead),
            Some(_) => {
                while let Some(ahead) = shared(at) {
                    body(ahead);
                    at = ahead.previous.get();
                }
            }
        }
    }

    /// Whether a new request with this stamp is older than all that it would have to wait for, when
    /// waiters stand in the order of their ages, the youngest first.
    pub(super) fn may_wait_by_age(&self, stamp: u64, exclusive: bool) -> bool {
        if Canary::YoungerWaits.sings() {
            return true;
        }
        let head = self.head();
        if head.holders.load(Ordering::Relaxed) == 0 {
            return head.stamp() > stamp;
        }
        let conflicts =
            exclusive || head.is_exclusive() || head.upgrade_pending.load(Ordering::Relaxed);
        let mut at = self.first;
        while let Some(other) = at {
            match other.is_holder() {
                true if conflicts && other.stamp() < stamp => return false,
                true => at = other.next.get(),
                // The first waiter is the youngest, and older than the holders.
                false => return conflicts || other.stamp() > stamp,
            }
        }
        true
    }

    /// Whether a sharer is older than all others.
    pub(super) fn may_upgrade_by_age(&self, request: RequestRef) -> bool {
        let mut oldest = true;
        if Canary::YoungerWaits.sings() {
            return true;
        }
        self.each_other_holder(request, |other| oldest &= other.stamp() > request.stamp());
        oldest
    }
}

#[inline(always)]
fn add(count: &kiln_platform::atomic::AtomicU32, more: u32) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

#[inline(always)]
fn copy(to: &kiln_platform::atomic::AtomicU32, from: &kiln_platform::atomic::AtomicU32) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}
