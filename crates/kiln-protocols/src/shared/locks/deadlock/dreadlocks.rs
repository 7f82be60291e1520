//! Dreadlocks: each waiter shows whom it waits for, directly or not, as a set of bits.
//!
//! Source: ORTHRUS §4, after Koskinen and Herlihy, *Dreadlocks: Efficient Deadlock Detection*, SPAA
//! 2008, and its use in Shore-MT (Johnson, Pandis, Ailamaki).
//!
//! A transaction's *digest* has its own bit and the digests of those that it waits for. A waiter
//! computes its digest anew in each round of its spin loop, so that what is known about the end of
//! a chain moves up along it. A waiter that finds its own bit in the digest of a transaction ahead
//! is in a cycle. No transaction searches anything, and a digest is only written by its worker.
//!
//! # Bits
//!
//! A digest has three bits for each worker, which its attempts use in turn, the present attempt's
//! number, and the lock that it waits for. So what is left in some digest of an attempt that has
//! ended does not speak of the worker's next ones. The bits of the first half of the workers are on
//! its first cache line. Those of the others are on a second one, which is looked at only where the
//! first line says that some of them are set.
//!
//! A digest may be out of date while its worker sleeps, or has not noticed that it got its lock.
//! That of a holder that still says it waits for this very lock is passed over: else what ended
//! long ago would be handed from one digest to the next. And a bit that is found is looked for a
//! second time, some rounds later, before the waiter gives up. What is wrong still costs an
//! attempt, and no more.

use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_platform::memory::name_range;
use kiln_platform::sync::Arc;
use kiln_procedure::AbortCause;
use kiln_storage::table::WORKERS_MAX;

use super::DeadlockPolicy;
use crate::canary::Canary;
use crate::shared::locks::request::Request;
use crate::shared::workers::{WORKER_BITS, worker_in};

const BITS_PER_WORKER: usize = 3;
const WORDS: usize = WORKERS_MAX * BITS_PER_WORKER / 64;
/// Words of the bits that are on a digest's first line.
const NEAR_WORDS: usize = WORDS / 2;

type Bits = [u64; WORDS];

/// What a worker shows to those behind it.
#[repr(C, align(128))]
struct Digest {
    /// The attempt that is blocked, its worker in the low bits; 0 when none is.
    blocked: AtomicU64,
    /// The address of the record whose lock it waits for, with [`UPGRADE`] if it shares it already,
    /// and [`FAR`] if there are bits on the second line.
    lock: AtomicU64,
    bits: [AtomicU64; WORDS],
}

const _: () = assert!(std::mem::offset_of!(Digest, bits) + NEAR_WORDS * 8 == 64);
const _: () = assert!(size_of::<Digest>() == 128);

/// The digests of all workers; clones are the same ones.
#[derive(Clone)]
pub struct Digests(Arc<[Digest]>);

impl Default for Digests {
    fn default() -> Digests {
        let digests: Arc<[Digest]> = (0..WORKERS_MAX)
            .map(|_| Digest {
                blocked: AtomicU64::new(0),
                lock: AtomicU64::new(0),
                bits: [const { AtomicU64::new(0) }; WORDS],
            })
            .collect();
        for (number, digest) in digests.iter().enumerate() {
            let address = std::ptr::from_ref(digest).addr();
            name_range(address, size_of::<Digest>(), || format!("digest[{number}]"));
        }
        Digests(digests)
    }
}

/// One worker's side of the digests.
pub struct Dreadlocks {
    digests: Digests,
    /// The present attempt, with the worker in the low bits.
    attempt: u64,
    /// Attempts, and whether each had the lock when it was looked at.
    watched: Vec<(u64, bool)>,
    /// The lock that is waited for.
    lock: u64,
    /// What the worker's digest shows.
    shown: Bits,
    /// The look at which the own bit was met first.
    suspected: Option<u32>,
}

/// In a lock's address, a multiple of eight.
const UPGRADE: u64 = 1;
/// As above.
const FAR: u64 = 2;

/// Rounds between the first sight of the own bit and the second.
const CONFIRMED_AFTER: u32 = 4;

/// The position of an attempt's bit.
fn bit(attempt: u64) -> (usize, u64) {
    let worker = worker_in(attempt);
    let number = (attempt >> WORKER_BITS) as usize;
    let position = worker * BITS_PER_WORKER + number % BITS_PER_WORKER;
    (position / 64, 1 << (position % 64))
}

impl Dreadlocks {
    /// For the worker with this number.
    pub fn new(digests: Digests, worker: u32) -> Dreadlocks {
        Dreadlocks {
            digests,
            attempt: u64::from(worker) | 1 << WORKER_BITS,
            watched: Vec::with_capacity(WORKERS_MAX),
            lock: 0,
            shown: [0; WORDS],
            suspected: None,
        }
    }

    fn own(&self) -> &Digest {
        &self.digests.0[worker_in(self.attempt)]
    }

    /// The union of the digests of those watched, and the own bit.
    fn union(&self) -> (Bits, bool) {
        let mut union = [0; WORDS];
        for &(attempt, has_lock) in &self.watched {
            let digest = &self.digests.0[worker_in(attempt)];
            // Acquire pairs with the release in `show`: bits of this attempt, or later ones.
            if digest.blocked.load(Ordering::Acquire) == attempt {
                let lock = digest.lock.load(Ordering::Relaxed);
                // It has this lock, and does not wait to have it alone.
                let is_outdated = has_lock && lock & !FAR == self.lock & !UPGRADE;
                let words = if lock & FAR != 0 { WORDS } else { NEAR_WORDS };
                let mut bits: Bits = [0; WORDS];
                for (word, shown) in bits[..words].iter_mut().zip(&digest.bits) {
                    *word = shown.load(Ordering::Relaxed);
                }
                // Acquire keeps the reads above before the one below.
                fence(Ordering::Acquire);
                // Bits of another attempt say nothing about this one.
                if !is_outdated && digest.blocked.load(Ordering::Relaxed) == attempt {
                    for (word, more) in union.iter_mut().zip(bits) {
                        *word |= more;
                    }
                }
            }
            // One that does not wait shows itself alone.
            let (word, mask) = bit(attempt);
            union[word] |= mask;
        }
        let (word, mask) = bit(self.attempt);
        let is_met = union[word] & mask != 0;
        union[word] |= mask;
        (union, is_met)
    }

    fn show(&mut self, bits: Bits) {
        let is_far = |bits: &Bits| bits[NEAR_WORDS..] != [0; WORDS - NEAR_WORDS];
        // Words of the second line that stay 0 are not written.
        let words = match is_far(&bits) || is_far(&self.shown) {
            true => WORDS,
            false => NEAR_WORDS,
        };
        let far = if is_far(&bits) { FAR } else { 0 };
        self.shown = bits;
        let own = self.own();
        for (word, bits) in own.bits.iter().zip(&bits[..words]) {
            word.store(*bits, Ordering::Relaxed);
        }
        own.lock.store(self.lock | far, Ordering::Relaxed);
    }
}

impl DeadlockPolicy for Dreadlocks {
    const WATCHES: bool = true;
    const OVERTAKES: bool = true;
    const REFUSED: [AbortCause; 2] = [AbortCause::Deadlock; 2];

    #[inline]
    fn begin(&mut self) {
        self.attempt += 1 << WORKER_BITS;
    }

    #[inline(always)]
    fn stamp(&self) -> u64 {
        self.attempt
    }

    fn forget(&mut self, own: &Request) {
        self.watched.clear();
        // Who waits for a lock has not got it, or waits to have it alone.
        let upgrade = if own.is_holder() { UPGRADE } else { 0 };
        self.lock = own.key.load(Ordering::Relaxed) | upgrade;
    }

    fn watch(&mut self, request: &Request) {
        let has_lock = request.is_holder() && request.is_granted();
        self.watched.push((request.stamp(), has_lock));
    }

    fn block(&mut self) {
        let (bits, _) = self.union();
        self.show(bits);
        self.suspected = None;
        if !Canary::EdgesRemovedEarly.sings() {
            // Release pairs with the acquire in `union`.
            self.own().blocked.store(self.attempt, Ordering::Release);
        }
    }

    fn is_deadlocked(&mut self, look: u32) -> bool {
        let (bits, is_met) = self.union();
        if bits != self.shown {
            self.show(bits);
        }
        if !is_met {
            self.suspected = None;
            return false;
        }
        let first = *self.suspected.get_or_insert(look);
        look.wrapping_sub(first) >= CONFIRMED_AFTER
    }

    fn unblock(&mut self) {
        // Release: nothing of what follows the wait comes before its end.
        self.own().blocked.store(0, Ordering::Release);
        // A worker that compares digests sees the end of this wait before bits that the next
        // attempt writes.
        fence(Ordering::Release);
    }
}
