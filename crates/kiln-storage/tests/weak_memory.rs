//! Small races on indexes, epochs and slabs, sized for an interpreter of Rust's memory model:
//!
//! ```text
//! MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-many-seeds=0..64" \
//!     cargo +nightly miri test -p kiln-storage --test weak_memory
//! ```
//!
//! There each load may return any value that the C++20 model allows, old ones included, whatever
//! the machine's own ordering; data races are errors. On ordinary hardware the same tests run a
//! few more rounds and mean little.

use std::ops::Bound;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_platform::thread;
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::index::{
    HashIndex, Insertion, Key, LeafBatch, Lookup, NodeVersion, OrderedIndex,
};
use kiln_storage::slab::Slab;

const ROUNDS: u64 = if cfg!(miri) { 3 } else { 300 };

/// Runs both sides at once, each with a participant in the epochs.
fn side_by_side<A: Send, B: Send>(
    epochs: &Epochs,
    one: impl FnOnce(&Participant) -> A + Send,
    other: impl FnOnce(&Participant) -> B + Send,
) -> (A, B) {
    let register = || epochs.register().expect("a slot for each side");
    let (first, second) = (register(), register());
    thread::scope(|scope| {
        let one = scope.spawn(move || one(&first));
        let other = other(&second);
        (one.join().expect("no panic"), other)
    })
}

/// The two indexes by what they share.
enum Index {
    Hash(Box<HashIndex<u64>>),
    Ordered(Box<OrderedIndex<u64>>),
}

impl Index {
    fn all() -> [Index; 3] {
        [
            Index::Hash(Box::new(HashIndex::with_capacity(0))),
            Index::Ordered(Box::new(OrderedIndex::new())),
            Index::Ordered(Box::new(OrderedIndex::with_prefix_bits(56))),
        ]
    }

    fn get(&self, key: u64) -> Lookup {
        match self {
            Index::Hash(index) => index.get(&key),
            Index::Ordered(index) => index.get(&key),
        }
    }

    fn insert(&self, key: u64, payload: u64, participant: &Participant) -> Insertion {
        match self {
            Index::Hash(index) => index.insert(&key, payload, participant),
            Index::Ordered(index) => index.insert(&key, payload, participant),
        }
    }

    fn remove(&self, key: u64, payload: u64, participant: &Participant) -> bool {
        match self {
            Index::Hash(index) => index.remove(&key, payload, participant),
            Index::Ordered(index) => index.remove(&key, payload, participant),
        }
    }
}

/// Keys that meet in one bucket of a small hash index, so that removals move others.
fn crowded_keys() -> Vec<u64> {
    (1_u64..)
        .filter(|key| Key::hash(key) % 256 == 7)
        .take(10)
        .collect()
}

/// A reader finds every entry that stays, with its own payload, while others come and go around it.
#[test]
fn a_changing_node_shows_no_mixture() {
    let keys = crowded_keys();
    for index in Index::all() {
        let epochs = Epochs::new(3);
        let setup = epochs.register().expect("a slot");
        for &key in keys.iter().step_by(2) {
            index.insert(key, key << 8 | 1, &setup);
        }
        drop(setup);
        side_by_side(
            &epochs,
            |participant| {
                for _ in 0..ROUNDS {
                    for &key in keys.iter().skip(1).step_by(2) {
                        index.insert(key, key << 8 | 1, participant);
                    }
                    for &key in keys.iter().skip(1).step_by(2) {
                        assert!(index.remove(key, key << 8 | 1, participant));
                    }
                }
            },
            |_| {
                for _ in 0..ROUNDS {
                    for (position, &key) in keys.iter().enumerate() {
                        match index.get(key) {
                            Lookup::Found(payload) => assert_eq!(payload, key << 8 | 1),
                            Lookup::Missing(_) => assert!(position % 2 == 1, "{key} is gone"),
                        }
                    }
                }
            },
        );
    }
}

/// What an entry leads to is there before the entry.
#[test]
fn an_entry_publishes_what_it_points_to() {
    for index in Index::all() {
        let epochs = Epochs::new(2);
        let slab = Slab::new(32, 2);
        let word = |address: u64| {
            // SAFETY: the address of a cell of four words, only accessed atomically.
            unsafe { (address as *const AtomicU64).add(2).as_ref() }.expect("not null")
        };
        side_by_side(
            &epochs,
            |participant| {
                for key in 1..=ROUNDS {
                    // SAFETY: the participant's own slot.
                    let cell = unsafe { slab.alloc(participant.slot()) }.expect("memory");
                    let address = cell.as_ptr() as u64;
                    word(address).store(key, Ordering::Relaxed);
                    index.insert(key, address, participant);
                }
            },
            |_| {
                for key in 1..=ROUNDS {
                    if let Lookup::Found(address) = index.get(key) {
                        assert_eq!(word(address).load(Ordering::Relaxed), key);
                    }
                }
            },
        );
    }
}

/// Of two sides that each miss the other's key and then insert their own, at least one finds its
/// guard broken: the fence between insertion and check is what Silo's commit has there.
#[test]
fn crossing_insertions_are_noticed() {
    for round in 0..ROUNDS {
        for index in Index::all() {
            let epochs = Epochs::new(2);
            let side = |own: u64, other: u64| {
                let index = &index;
                move |participant: &Participant| {
                    let Lookup::Missing(guard) = index.get(other) else {
                        return false;
                    };
                    let guard = match index.insert(own, own, participant) {
                        Insertion::Inserted(effect) => own_insertion(guard, &effect),
                        Insertion::Exists(_) => unreachable!("only this thread inserts {own}"),
                    };
                    fence(Ordering::SeqCst);
                    guard.is_some_and(|guard| guard.is_current())
                }
            };
            let keys = crowded_keys();
            let (left, right) =
                side_by_side(&epochs, side(keys[0], keys[1]), side(keys[1], keys[0]));
            assert!(!(left && right), "both committed in round {round}");
        }
    }
}

/// The guard after an insertion of the caller's own; `None` when another thread inserted first.
fn own_insertion(
    guard: NodeVersion,
    effect: &kiln_storage::index::InsertEffect,
) -> Option<NodeVersion> {
    if guard.node != effect.node {
        return Some(guard);
    }
    (guard.observed == effect.before).then_some(NodeVersion {
        node: guard.node,
        observed: effect.after,
    })
}

/// A scan whose guards hold has seen every key inserted before them, in order.
#[test]
fn a_guarded_scan_misses_nothing() {
    const KEYS: u64 = if cfg!(miri) { 24 } else { 400 };
    let index = OrderedIndex::<u64>::new();
    let epochs = Epochs::new(2);
    let inserted = AtomicU64::new(0);
    side_by_side(
        &epochs,
        |participant| {
            for key in 1..=KEYS {
                index.insert(&key, key, participant);
                inserted.store(key, Ordering::Release);
            }
        },
        |_| {
            loop {
                let before = inserted.load(Ordering::Acquire);
                let mut cursor = index.cursor(Bound::Unbounded, Bound::Unbounded, false);
                let mut batch = LeafBatch::new();
                let mut seen = Vec::new();
                while cursor.next_leaf(&mut batch) {
                    seen.extend_from_slice(batch.payloads());
                }
                let expected: Vec<u64> = (1..=seen.len() as u64).collect();
                assert_eq!(seen, expected, "keys come in order and none is left out");
                assert!(seen.len() as u64 >= before, "{before} were there");
                if before == KEYS {
                    break;
                }
            }
        },
    );
}

/// A cell is not used again while a participant in an epoch may look at it.
#[test]
fn a_cell_outlives_its_readers() {
    let epochs = Epochs::new(2);
    let slab = Slab::new(32, 2);
    let index = HashIndex::<u64>::with_capacity(0);
    let word = |cell: NonNull<u8>| {
        // SAFETY: a cell of four words, only accessed atomically.
        unsafe { cell.cast::<AtomicU64>().add(2).as_ref() }
    };
    let turn = |participant: &Participant| {
        for round in 0..ROUNDS * 4 {
            let key = round % 2;
            participant.enter();
            match index.get(&key) {
                Lookup::Found(address) => {
                    let cell = NonNull::new(address as *mut u8).expect("an address");
                    if index.remove(&key, address, participant) {
                        // SAFETY: unlinked by this side alone; the slab outlives the participants.
                        unsafe { participant.retire(slab.retired(cell)) };
                    }
                    assert_eq!(word(cell).load(Ordering::Relaxed), key);
                }
                Lookup::Missing(_) => {
                    // SAFETY: the participant's own slot.
                    let cell = unsafe { slab.alloc(participant.slot()) }.expect("memory");
                    word(cell).store(key, Ordering::Relaxed);
                    let address = cell.as_ptr() as u64;
                    if let Insertion::Exists(_) = index.insert(&key, address, participant) {
                        // SAFETY: no other thread has seen the cell.
                        unsafe { slab.free(participant.slot(), cell) };
                    }
                }
            }
            participant.leave();
            participant.epochs().advance();
            participant.collect(4);
        }
    };
    side_by_side(&epochs, turn, turn);
}
