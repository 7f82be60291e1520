//! Rings: bounded queues with one producer and one consumer, without latches (ORTHRUS §3.1, after
//! Lamport).

use kiln_platform::atomic::{AtomicU64, AtomicUsize, Ordering, prefetch};
use kiln_platform::memory::name_range;

/// A counter with what its owner remembers of the other one, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct End {
    /// How often its owner has moved.
    moves: AtomicUsize,
    /// What the owner last saw of the other end; only the owner looks at it.
    other: AtomicUsize,
}

/// A queue of words from one thread to another. Who produces and who consumes may change, if those
/// that change synchronize.
pub struct Ring {
    producer: End,
    consumer: End,
    slots: Box<[Line]>,
    /// The number of slots, less one.
    mask: usize,
}

/// Slots of a ring, which share no cache line with those of another one.
#[derive(Default)]
#[repr(align(128))]
struct Line([AtomicU64; 16]);

impl Ring {
    /// An empty ring with room for `capacity` words, a power of two.
    pub fn new(capacity: usize) -> Ring {
        assert!(capacity.is_power_of_two());
        Ring {
            producer: End::default(),
            consumer: End::default(),
            slots: (0..capacity.div_ceil(16))
                .map(|_| Line::default())
                .collect(),
            mask: capacity - 1,
        }
    }

    /// Names its memory in reports about cache lines: its ends, and its slots.
    pub fn name_memory(&self, name: impl Fn() -> String) {
        name_range(std::ptr::from_ref(self).addr(), size_of::<Ring>(), &name);
        let slots = self.slots.as_ptr().addr();
        name_range(slots, size_of_val(&*self.slots), || {
            format!("{} slots", name())
        });
    }

    #[inline(always)]
    fn slot(&self, moves: usize) -> &AtomicU64 {
        let at = moves & self.mask;
        &self.slots[at / 16].0[at % 16]
    }

    /// Puts a word in, unless it is full. Called by the producer.
    #[inline]
    pub fn push(&self, word: u64) -> bool {
        // Relaxed: the producer's own.
        let put = self.producer.moves.load(Ordering::Relaxed);
        if put - self.producer.other.load(Ordering::Relaxed) > self.mask {
            // Acquire pairs with the release in `pop`: the slot was read before it is written
            // again.
            let taken = self.consumer.moves.load(Ordering::Acquire);
            self.producer.other.store(taken, Ordering::Relaxed);
            if put - taken > self.mask {
                return false;
            }
        }
        self.slot(put).store(word, Ordering::Relaxed);
        // Release pairs with the acquire in `pop`: the word, and what it stands for, is there.
        self.producer.moves.store(put + 1, Ordering::Release);
        true
    }

    /// Fetches what tells whether there is a word, for a consumer who looks soon.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(&raw const self.producer);
    }

    /// Whether there seems to be a word. Any thread may ask: what has just come may not be seen
    /// yet.
    #[inline]
    pub fn seems_filled(&self) -> bool {
        // Relaxed: a hint.
        self.consumer.moves.load(Ordering::Relaxed) != self.producer.moves.load(Ordering::Relaxed)
    }

    /// Whether there is a word, which is fetched then. Called by the consumer.
    #[inline]
    pub fn has_word(&self) -> bool {
        let oldest = self.oldest();
        if let Some(taken) = oldest {
            prefetch(std::ptr::from_ref(self.slot(taken)));
        }
        oldest.is_some()
    }

    /// Takes the oldest word out, if there is one. Called by the consumer.
    #[inline]
    pub fn pop(&self) -> Option<u64> {
        let taken = self.oldest()?;
        let word = self.slot(taken).load(Ordering::Relaxed);
        // Release pairs with the acquire in `push`.
        self.consumer.moves.store(taken + 1, Ordering::Release);
        Some(word)
    }

    /// How many words were taken before the oldest, if there is one. Called by the consumer.
    #[inline(always)]
    fn oldest(&self) -> Option<usize> {
        // Relaxed: the consumer's own.
        let taken = self.consumer.moves.load(Ordering::Relaxed);
        if taken == self.consumer.other.load(Ordering::Relaxed) {
            // Acquire: see `push`.
            let put = self.producer.moves.load(Ordering::Acquire);
            self.consumer.other.store(put, Ordering::Relaxed);
            if put == taken {
                return None;
            }
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::thread;

    use super::*;

    /// An interpreter of the memory model is given fewer (`docs/simulation.md`).
    const WORDS: u64 = if cfg!(miri) { 40 } else { 1_000 };

    #[test]
    fn words_arrive_once_and_in_order_with_what_they_stand_for() {
        let ring = Ring::new(4);
        let things: Vec<AtomicU64> = (0..=WORDS).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                for word in 1..=WORDS {
                    things[word as usize].store(word, Ordering::Relaxed);
                    while !ring.push(word) {
                        thread::yield_now();
                    }
                }
            });
            // Judged when the producer is through: it waits for room.
            let mut arrived = Vec::new();
            while arrived.len() < WORDS as usize {
                match ring.pop() {
                    Some(word) => {
                        arrived.push((word, things[word as usize].load(Ordering::Relaxed)));
                    }
                    None => thread::yield_now(),
                }
            }
            assert!(arrived.into_iter().eq((1..=WORDS).map(|word| (word, word))));
            assert_eq!(ring.pop(), None);
        });
    }

    #[test]
    fn a_full_ring_takes_no_more() {
        let ring = Ring::new(2);
        assert!(ring.push(1) && ring.push(2) && !ring.push(3));
        assert_eq!(ring.pop(), Some(1));
        assert!(ring.push(3));
        assert_eq!(
            (ring.pop(), ring.pop(), ring.pop()),
            (Some(2), Some(3), None)
        );
    }
}
