//! What a transaction wants of the partitions.

use std::ptr::null_mut;

use kiln_platform::atomic::{AtomicBool, AtomicU32, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::plain;
use kiln_storage::record::RecordRef;
use kiln_storage::table::Part;

use crate::schedule::cache_padded::CachePadded;
use crate::shared::planning::{Claim, groups};

/// Where a request is, as its partition knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// It has not come, or has left.
    Elsewhere,
    /// It has come, and waits as far as the partition says.
    Here,
    /// It has its lock.
    Granted,
}

/// A transaction's request for one lock, on a cache line of its own: partitions use those of one
/// transaction at the same time.
#[repr(align(64))]
pub struct Request {
    /// What the lock is known by: the address of the record, or the table.
    pub(crate) lock: u64,
    pub(crate) exclusive: bool,
    /// What the partition makes of it.
    pub(crate) state: RequestState,
    /// The partition that has the lock.
    pub(crate) partition: u8,
    /// Whether the record gets the transaction's tid, where owners run transactions.
    is_written: bool,
    /// Where the transaction is in the partition's queue, for tables of locks that have one; the
    /// worker, where there is no demand.
    pub(crate) place: u32,
    /// The transaction; none for a lock that is taken at once or not at all.
    pub(crate) demand: *mut Demand,
    /// Its neighbours among the requests for the lock, for tables of locks that link them.
    pub(crate) previous: *mut Request,
    pub(crate) next: *mut Request,
    /// In the first request of a lock: the last one.
    pub(crate) last: *mut Request,
    /// In the first request of a lock: the next lock of the bucket.
    pub(crate) next_lock: *mut Request,
    /// For one that no transaction's demand has: another one that was made with it. For others:
    /// another one that was granted with it.
    pub(crate) sibling: *mut Request,
}

const _: () = assert!(size_of::<Request>() == 64);

impl Request {
    pub(crate) fn new(claim: Claim, partition: u16, demand: *mut Demand) -> Request {
        Request {
            lock: claim.lock(),
            exclusive: claim.exclusive,
            state: RequestState::Elsewhere,
            partition: partition as u8,
            is_written: false,
            place: 0,
            demand,
            previous: null_mut(),
            next: null_mut(),
            last: null_mut(),
            next_lock: null_mut(),
            sibling: null_mut(),
        }
    }

    /// Whether it is for a whole table, and not known by an address.
    #[inline(always)]
    pub(crate) fn is_of_table(&self) -> bool {
        is_of_table(self.lock)
    }

    /// A hash of the lock, in the highest bits.
    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        hash(self.lock)
    }
}

/// A hash of what a lock is known by, in the highest bits.
#[inline(always)]
pub(crate) fn hash(lock: u64) -> u64 {
    match is_of_table(lock) {
        true => lock.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        false => groups::hash(lock),
    }
}

/// Whether a lock is for a whole table, and not known by an address.
#[inline(always)]
fn is_of_table(lock: u64) -> bool {
    !lock.is_multiple_of(2)
}

/// The requests of a transaction that lie in one partition.
#[derive(Clone, Copy)]
pub struct Span {
    pub(crate) partition: u16,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What a transaction wants of the partitions, and how far it has got. It belongs to the thread
/// that has the last message about it.
#[repr(align(128))]
pub struct Demand {
    /// The worker that waits for it.
    pub(crate) home: u32,
    requests: Vec<Request>,
    /// For sorting: a partition and the position of a claim each.
    order: Vec<u64>,
    /// Where they are: threads reach them through this alone.
    pub(crate) first: *mut Request,
    /// In the order of the partitions.
    pub(crate) spans: Vec<Span>,
    /// The span whose locks are being taken.
    pub(crate) stage: usize,
    /// Locks of that span that are not granted yet, or not asked for, where they are taken one by
    /// one.
    pub(crate) pending: u32,
    /// Whether it had to wait for a lock, as far as its partitions say so.
    pub(crate) has_waited: bool,
    /// Whether it lets go what it had instead of waiting, as it was withdrawn, or as a statement is
    /// in its way.
    is_given_up: AtomicBool,
    /// Partitions that have not answered yet, where it comes to all of them at once.
    pub(crate) awaited: AtomicU32,
    /// Partitions that still have locks of it, while it gives them back, and those that have not
    /// answered that they have heard of its withdrawal.
    pub(crate) holds: CachePadded<AtomicU32>,
    /// Whether its worker still wants it: see [`Demand::WANTED`].
    wish: AtomicU32,
    /// What it demands locks for, where owners of partitions run transactions.
    pub(crate) passenger: *mut (),
    /// The partition where its transaction sets out, there.
    pub(crate) first_stop: u16,
    /// The tid of what its transaction has written, there.
    pub(crate) tid: u64,
    /// Whether its transaction has run, and its locks are being given back, there.
    pub(crate) has_run: bool,
}

impl Demand {
    /// What it asks for is known, and wanted.
    const WANTED: u32 = 0;
    /// Its worker does not want it any more.
    const WITHDRAWN: u32 = 1;
    /// What it asks for is being found out, by owners of partitions.
    const PLANNED: u32 = 2;

    pub(crate) fn new(home: u32) -> Box<Demand> {
        let demand = Box::new(Demand {
            home,
            requests: Vec::new(),
            order: Vec::new(),
            first: null_mut(),
            spans: Vec::new(),
            stage: 0,
            pending: 0,
            has_waited: false,
            is_given_up: AtomicBool::new(false),
            awaited: AtomicU32::new(0),
            holds: CachePadded::default(),
            wish: AtomicU32::new(Demand::WANTED),
            passenger: null_mut(),
            first_stop: 0,
            tid: 0,
            has_run: false,
        });
        let address = std::ptr::from_ref::<Demand>(&demand).addr();
        name_range(address, size_of::<Demand>(), || {
            format!("demand of worker {home}")
        });
        demand
    }

    /// Asks for these claims, in the order of their locks, in so many partitions, which have the
    /// parts of the data that `partition_of` says.
    pub(crate) fn set(
        &mut self,
        claims: &[Claim],
        partitions: usize,
        partition_of: impl Fn(Part) -> usize,
    ) {
        self.requests.clear();
        self.spans.clear();
        self.stage = 0;
        self.has_waited = false;
        *self.is_given_up.get_mut() = false;
        self.has_run = false;
        let demand: *mut Demand = self;
        debug_assert!(claims.is_sorted_by_key(Claim::lock));
        match partitions {
            1 => {
                let requests = claims.iter().map(|&claim| Request::new(claim, 0, demand));
                self.requests.extend(requests);
            }
            _ => {
                self.divide(claims, partitions, partition_of);
                let requests = self.order.iter().map(|key| {
                    let claim = claims[*key as u32 as usize];
                    Request::new(claim, (key >> 32) as u16, demand)
                });
                self.requests.extend(requests);
            }
        }
        // A lock that is named twice, as its record was of another part before, is asked for once.
        self.requests.dedup_by(|later, earlier| {
            let is_same = (later.partition, later.lock) == (earlier.partition, earlier.lock);
            if is_same {
                earlier.exclusive |= later.exclusive;
            }
            is_same
        });
        for (at, request) in self.requests.iter().enumerate() {
            let (partition, at) = (u16::from(request.partition), at as u32);
            match self.spans.last_mut() {
                Some(span) if span.partition == partition => span.end = at + 1,
                _ => self.spans.push(Span {
                    partition,
                    start: at,
                    end: at + 1,
                }),
            }
        }
        *self.awaited.get_mut() = self.spans.len() as u32;
        self.first = self.requests.as_mut_ptr();
        plain::writes(self.requests.as_slice());
        plain::writes(self.spans.as_slice());
        // SAFETY: the demand is this thread's.
        unsafe { Demand::note_progress(self) };
        // Release pairs with the acquire in `may_be_withdrawn`: the worker that waits sees the
        // spans.
        self.wish.store(Demand::WANTED, Ordering::Release);
    }

    /// Tells virtual cores that the calling thread looks at a demand that came with a message, but
    /// not at its requests.
    ///
    /// # Safety
    /// The demand is there, and no thread changes its spans.
    #[inline(always)]
    pub(crate) unsafe fn note_reads(demand: *const Demand) {
        // SAFETY: the caller says that the demand is there, and that no thread changes its spans.
        unsafe {
            plain::reads_one(&raw const (*demand).first);
            plain::reads_one(&raw const (*demand).stage);
            plain::reads_one(&raw const (*demand).spans);
            let spans: &Vec<Span> = &(*demand).spans;
            plain::reads(spans.as_slice());
        }
    }

    /// As [`Demand::note_reads`], where the thread has changed how far the demand has got.
    ///
    /// # Safety
    /// The demand is there.
    #[inline(always)]
    pub(crate) unsafe fn note_progress(demand: *const Demand) {
        // SAFETY: the caller says that the demand is there; its address alone is used.
        unsafe {
            plain::writes_one(&raw const (*demand).stage);
            plain::writes_one(&raw const (*demand).pending);
        }
    }

    /// Finds the order of the requests, by their partitions and the positions of their claims: they
    /// are cache lines, which are not moved about.
    fn divide(
        &mut self,
        claims: &[Claim],
        partitions: usize,
        partition_of: impl Fn(Part) -> usize,
    ) {
        self.order.clear();
        let key = |partition: usize, at: usize| (partition as u64) << 32 | at as u64;
        let claims = || claims.iter().enumerate();
        let mut lowest = usize::MAX;
        for (at, claim) in claims().filter(|(_, claim)| !claim.part.is_replicated()) {
            let partition = partition_of(claim.part);
            lowest = lowest.min(partition);
            self.order.push(key(partition, at));
        }
        for (at, claim) in claims().filter(|(_, claim)| claim.part.is_replicated()) {
            // A partition that it visits in any case.
            let wanted = match (claim.exclusive, lowest) {
                (true, _) => 0..partitions,
                (false, usize::MAX) => one(partition_of(claim.part)),
                (false, lowest) => one(lowest),
            };
            (self.order).extend(wanted.map(|partition| key(partition, at)));
        }
        self.order.sort_unstable();
    }

    /// Asks for these claims in one partition, which gives all locks.
    pub(crate) fn set_in(&mut self, claims: &[Claim], partition: u16) {
        self.set(claims, 1, |_| 0);
        for span in &mut self.spans {
            span.partition = partition;
        }
    }
}

impl Demand {
    /// The record gets the transaction's tid when the partition lets it go, unless it is the
    /// transaction's own new one, which has it.
    pub(crate) fn set_written(&mut self, record: RecordRef, partition: u16, tid: u64) {
        self.tid = tid;
        let Some(span) = self.spans.iter().find(|span| span.partition == partition) else {
            return;
        };
        let own = &mut self.requests[span.start as usize..span.end as usize];
        if let Ok(at) = own.binary_search_by_key(&record.address(), |request| request.lock) {
            own[at].is_written = true;
        }
    }

    /// Gives the records of a span that were written their tid.
    ///
    /// # Safety
    /// The transaction has committed, and has its locks; the caller owns the partition.
    pub(crate) unsafe fn install(demand: *const Demand, span: Span) {
        for at in span.start..span.end {
            // SAFETY: the caller owns the span's partition, and each partition touches its own
            // requests; the transaction has its locks, and a record whose lock is held stays.
            unsafe {
                let request = (*demand).first.add(at as usize);
                if (*request).is_written {
                    let record = RecordRef::from_address((*request).lock);
                    // Release: a thread that reads this tid sees the row that it belongs to.
                    record.tid().store((*demand).tid, Ordering::Release);
                }
            }
        }
    }

    /// Has it let go what it has, instead of waiting.
    pub(crate) fn give_up(&self) {
        // Relaxed, as below: the thread that asks has had a message that was sent after it.
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Whether it lets go what it has.
    #[inline(always)]
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// The spans that it has, or had, locks of, a bit each: those that it has come through, or,
    /// where it comes to all at once, those that have not turned it away.
    pub(crate) fn held(&self, is_at_once: bool) -> u64 {
        let mut held = 0;
        for (at, span) in self.spans.iter().enumerate() {
            let is_held = match is_at_once {
                true => self.requests[span.start as usize].state != RequestState::Elsewhere,
                false => at < self.stage,
            };
            held |= u64::from(is_held) << at;
        }
        held
    }

    /// What it will ask for is found out elsewhere from now on, until [`Demand::set`].
    pub(crate) fn begin_plan(&mut self) {
        self.spans.clear();
        *self.wish.get_mut() = Demand::PLANNED;
    }

    /// Whether its worker does not want it any more.
    #[inline(always)]
    pub(crate) fn is_withdrawn(&self) -> bool {
        // Relaxed: a partition that has to see it has had the message that was sent after it.
        self.wish.load(Ordering::Relaxed) == Demand::WITHDRAWN
    }

    /// Whether it has all its locks.
    pub(crate) fn is_through(&self) -> bool {
        self.stage >= self.spans.len()
    }

    /// Whether its worker may withdraw it: it has not, and knows the partitions that have to hear
    /// of it.
    pub(crate) fn may_be_withdrawn(&self) -> bool {
        self.wish.load(Ordering::Acquire) == Demand::WANTED
    }

    /// Its worker, where it waits, does not want it any more; messages about that go to all its
    /// partitions, which each answer by taking one from `holds`.
    pub(crate) fn withdraw(&self) {
        self.wish.store(Demand::WITHDRAWN, Ordering::Relaxed);
        // Added: its locks may be on their way back already, where others run it.
        self.holds
            .0
            .fetch_add(self.spans.len() as u32, Ordering::Relaxed);
    }
}

fn one(partition: usize) -> std::ops::Range<usize> {
    partition..partition + 1
}
