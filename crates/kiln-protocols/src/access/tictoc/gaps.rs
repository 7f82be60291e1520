//! Timestamps of gaps.
//!
//! A gap in an index has no record whose timestamps could tell who saw it empty, and when. The
//! versions of index nodes tell only whether an entry came in *since*, in real time, which is not
//! the order of TicToc: a reader that looked before an insertion may get the later timestamp, and a
//! third transaction, placed between the two by its timestamp, sees the insertion and not what the
//! reader wrote. So indexes have timestamps too, coarse ones:
//!
//! - `read`: the latest commit that relied on a gap. A transaction that inserts or moves an entry
//!   commits later.
//! - `left`: the latest commit that left a gap where an entry was. A transaction that relies on a
//!   gap, or inserts, commits no earlier.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_storage::table::Table;

/// A set of stripes.
pub(super) type Mask = u64;

/// Timestamps of gaps, by index. Workers of one protocol share them.
pub struct Gaps {
    stripes: Box<[Stripe; Gaps::STRIPES]>,
}

/// A cache line of its own, as those of neighbours are written by others.
#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    read: AtomicU64,
    left: AtomicU64,
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps {
            stripes: Box::new(std::array::from_fn(|_| Stripe::default())),
        }
    }
}

impl Gaps {
    /// Indexes that share a stripe are only more cautious than they need to be.
    const STRIPES: usize = Mask::BITS as usize;

    /// The stripe of the index at this position of the table.
    #[inline(always)]
    pub(super) fn mask(table: &Table, index: usize) -> Mask {
        1 << ((table.id().0 as usize * 5 + index) % Gaps::STRIPES)
    }

    /// The stripes of all indexes of the table.
    pub(super) fn mask_of_all(table: &Table) -> Mask {
        let indexes = 0..table.indexes().len();
        indexes.fold(0, |mask, index| mask | Gaps::mask(table, index))
    }

    fn each(&self, mut mask: Mask) -> impl Iterator<Item = &Stripe> {
        std::iter::from_fn(move || {
            let stripe = mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
            self.stripes.get(stripe as usize)
        })
    }

    /// The earliest timestamp of a commit that relies on gaps in `relied` and puts entries into
    /// `filled`. The attempt's own entries are there already, and a sequentially consistent fence
    /// lies between.
    #[inline]
    pub(super) fn earliest(&self, relied: Mask, filled: Mask) -> u64 {
        let mut earliest = 0;
        // Acquire and the node's version: who found an entry gone sees the timestamp of its going.
        for stripe in self.each(relied) {
            earliest = earliest.max(stripe.left.load(Ordering::Acquire));
        }
        for stripe in self.each(filled) {
            let left = stripe.left.load(Ordering::Acquire);
            // Who relied on the gap raised this before it looked at the nodes, and did not see the
            // entries: with the fences on both sides it is seen here.
            earliest = earliest.max(left.max(stripe.read.load(Ordering::Acquire)) + 1);
        }
        earliest
    }

    /// Notes that a commit at `timestamp` relies on gaps. Before it looks at the nodes, with a
    /// sequentially consistent fence between.
    #[inline]
    pub(super) fn relied(&self, mask: Mask, timestamp: u64) {
        for stripe in self.each(mask) {
            raise(&stripe.read, timestamp);
        }
    }

    /// Indexes have got other stripes, as tables were changed: what was said of any gap is said of
    /// all from now on. No transaction runs, but blocks may be open that began before.
    pub fn spread(&self) {
        // The gate orders all of it.
        let latest = |word: fn(&Stripe) -> &AtomicU64| {
            let words = self.stripes.iter().map(word);
            words.map(|word| word.load(Ordering::Relaxed)).max()
        };
        let read = latest(|stripe| &stripe.read).unwrap_or_default();
        let left = latest(|stripe| &stripe.left).unwrap_or_default();
        for stripe in self.stripes.iter() {
            stripe.read.store(read, Ordering::Relaxed);
            stripe.left.store(left, Ordering::Relaxed);
        }
    }

    /// Notes that a commit at `timestamp` leaves gaps. Before entries go or their records are dead.
    pub(super) fn left(&self, mask: Mask, timestamp: u64) {
        for stripe in self.each(mask) {
            raise(&stripe.left, timestamp);
        }
    }
}

#[inline]
fn raise(word: &AtomicU64, timestamp: u64) {
    if word.load(Ordering::Relaxed) < timestamp {
        // Release pairs with the acquire loads in `earliest`.
        word.fetch_max(timestamp, Ordering::AcqRel);
    }
}
