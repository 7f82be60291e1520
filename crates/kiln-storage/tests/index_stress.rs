//! Both indexes, epochs and slabs under several threads at once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::random::Random;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread;
use kiln_storage::epoch::{Epochs, Participant, Retired};
use kiln_storage::index::{
    HashIndex, Insertion, Key, LeafBatch, Lookup, NodeVersion, OrderedIndex,
};
use kiln_storage::slab::Slab;

/// More threads than cores, so that some are suspended at the worst moments.
const THREADS: usize = 4;

/// Runs `body` on all threads with a participant each, and returns what each returned.
fn on_threads<T: Send>(body: impl Fn(usize, &Participant) -> T + Sync) -> Vec<T> {
    let epochs = Epochs::new(THREADS);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..THREADS)
            .map(|number| {
                let participant = epochs.register().expect("one slot per thread");
                let body = &body;
                scope.spawn(move || body(number, &participant))
            })
            .collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined.map(|result| result.expect("no panic")).collect()
    })
}

/// Sets a flag when it goes, also by a panic: threads that wait for it then end, and a failure is
/// reported instead of hanging.
struct SetOnDrop<'a>(&'a AtomicBool, bool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Release);
    }
}

fn inserted(insertion: Insertion) -> bool {
    matches!(insertion, Insertion::Inserted(_))
}

/// What both kinds of index can do.
trait Index: Sync {
    fn get(&self, key: u64) -> Lookup;
    fn insert(&self, key: u64, payload: u64, participant: &Participant) -> Insertion;
    fn remove(&self, key: u64, payload: u64, participant: &Participant) -> bool;
    fn entries(&self) -> Vec<(u64, u64)>;
}

impl Index for HashIndex<u64> {
    fn get(&self, key: u64) -> Lookup {
        self.get(&key)
    }
    fn insert(&self, key: u64, payload: u64, participant: &Participant) -> Insertion {
        self.insert(&key, payload, participant)
    }
    fn remove(&self, key: u64, payload: u64, participant: &Participant) -> bool {
        self.remove(&key, payload, participant)
    }
    fn entries(&self) -> Vec<(u64, u64)> {
        let mut entries = Vec::new();
        self.for_each(|key, payload| entries.push((key, payload)));
        entries
    }
}

impl Index for OrderedIndex<u128> {
    fn get(&self, key: u64) -> Lookup {
        self.get(&wide(key))
    }
    fn insert(&self, key: u64, payload: u64, participant: &Participant) -> Insertion {
        self.insert(&wide(key), payload, participant)
    }
    fn remove(&self, key: u64, payload: u64, participant: &Participant) -> bool {
        self.remove(&wide(key), payload, participant)
    }
    fn entries(&self) -> Vec<(u64, u64)> {
        let mut entries = Vec::new();
        self.for_each(|key, payload| entries.push(((key >> 32) as u64, payload)));
        entries
    }
}

/// Two words that both differ between neighbours, so that a torn key would be noticed.
fn wide(key: u64) -> u128 {
    u128::from(key) << 32
}

/// Each thread owns the keys of one residue, does random things to them and knows at any time
/// what is there; it also reads the others' keys, whose payloads carry their key.
fn own_keys_are_never_lost(index: &dyn Index, keys: u64, operations: usize) {
    let payload = |key: u64, step: u64| key << 32 | step;
    let models = on_threads(|number, participant| {
        let mut random = Random::stream(11, number as u64);
        let mut model: HashMap<u64, u64> = HashMap::new();
        for step in 1..=operations as u64 {
            let key = random.below(keys as usize / THREADS) as u64 * THREADS as u64 + number as u64;
            // Waves of insertions and removals, not in step between the threads.
            let growing = (step / (operations as u64 / 7) + number as u64).is_multiple_of(2);
            if (random.below(100) < 70) == growing {
                let own = payload(key, step);
                match index.insert(key, own, participant) {
                    Insertion::Inserted(_) => assert_eq!(model.insert(key, own), None),
                    Insertion::Exists(found) => assert_eq!(model.get(&key), Some(&found)),
                }
            } else if let Some(own) = model.remove(&key) {
                assert!(!index.remove(key, own + 1, participant));
                assert!(index.remove(key, own, participant));
            } else {
                assert!(!index.remove(key, 1, participant));
            }
            let key = random.below(keys as usize) as u64;
            match index.get(key) {
                Lookup::Found(found) => {
                    assert_eq!(found >> 32, key, "a payload of another key");
                    if key % THREADS as u64 == number as u64 {
                        assert_eq!(model.get(&key), Some(&found));
                    }
                }
                Lookup::Missing(_) => assert!(!model.contains_key(&key), "key {key} is lost"),
            }
        }
        model
    });
    let expected: BTreeMap<u64, u64> = models.into_iter().flatten().collect();
    let mut entries = index.entries();
    entries.sort_unstable();
    assert_eq!(entries, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn a_hash_index_loses_nothing() {
    own_keys_are_never_lost(&HashIndex::<u64>::with_capacity(0), 200, 100_000);
    own_keys_are_never_lost(&HashIndex::<u64>::with_capacity(0), 40_000, 150_000);
}

#[test]
fn an_ordered_index_loses_nothing() {
    for (bits, keys) in [(0, 200), (0, 20_000), (90, 2_000), (95, 20_000)] {
        let index = OrderedIndex::<u128>::with_prefix_bits(bits);
        own_keys_are_never_lost(&index, keys, 80_000);
    }
}

/// One thread moves entries about in the nodes of keys that stay; the other always finds those.
fn readers_see_no_mixtures(index: &dyn Index, keys: &[u64]) {
    let finished = AtomicBool::new(false);
    on_threads(|number, participant| {
        let mut random = Random::stream(17, number as u64);
        let stays = |position: usize| position.is_multiple_of(3);
        match number {
            0 => {
                for (position, &key) in keys.iter().enumerate() {
                    if stays(position) {
                        index.insert(key, key << 20 | 1, participant);
                    }
                }
                while !finished.load(Ordering::Acquire) {
                    let position = random.below(keys.len());
                    let key = keys[position];
                    if stays(position) {
                        continue;
                    }
                    if !inserted(index.insert(key, key << 20 | 1, participant)) {
                        index.remove(key, key << 20 | 1, participant);
                    }
                }
            }
            1 => {
                let _finished = SetOnDrop(&finished, true);
                while keys
                    .iter()
                    .step_by(3)
                    .any(|&key| matches!(index.get(key), Lookup::Missing(_)))
                {
                    thread::yield_now();
                }
                for _ in 0..600_000 {
                    let position = random.below(keys.len());
                    let key = keys[position];
                    match index.get(key) {
                        Lookup::Found(payload) => assert_eq!(payload, key << 20 | 1),
                        Lookup::Missing(_) => assert!(!stays(position), "{key} is gone"),
                    }
                }
            }
            _ => {}
        }
    });
}

#[test]
fn readers_of_a_changing_leaf_see_no_mixtures() {
    let keys: Vec<u64> = (1..=40).collect();
    readers_see_no_mixtures(&OrderedIndex::<u128>::new(), &keys);
}

#[test]
fn readers_of_a_changing_bucket_see_no_mixtures() {
    // Keys of one bucket, so that most are in its overflow and move when others go.
    let keys: Vec<u64> = (1..)
        .filter(|key| Key::hash(key) % 256 == 7)
        .take(24)
        .collect();
    readers_see_no_mixtures(&HashIndex::<u64>::with_capacity(0), &keys);
}

/// All threads insert all keys: exactly one of them succeeds with each.
#[test]
fn a_key_is_inserted_once() {
    let ordered = OrderedIndex::<u128>::new();
    let hash = HashIndex::<u64>::with_capacity(0);
    for index in [&ordered as &dyn Index, &hash] {
        let successes = on_threads(|number, participant| {
            let mut random = Random::stream(5, number as u64);
            let mut order: Vec<u64> = (0..20_000).collect();
            // Half of the threads come in order, the others do not.
            if number.is_multiple_of(2) {
                random.shuffle(&mut order);
            }
            let own = number as u64 + 1;
            let successes = order.iter().filter(|&&key| {
                let insertion = index.insert(key, own, participant);
                matches!(index.get(key), Lookup::Found(_)) && inserted(insertion)
            });
            successes.count()
        });
        assert_eq!(successes.iter().sum::<usize>(), 20_000);
        assert_eq!(index.entries().len(), 20_000);
    }
}

/// All payloads of a range, with the guards of its leaves.
fn scan<K: Key>(
    index: &OrderedIndex<K>,
    bounds: (Bound<K>, Bound<K>),
    reverse: bool,
) -> (Vec<u64>, Vec<NodeVersion>) {
    let (mut payloads, mut guards) = (Vec::new(), Vec::new());
    let mut cursor = index.cursor(bounds.0, bounds.1, reverse);
    let mut batch = LeafBatch::new();
    while cursor.next_leaf(&mut batch) {
        payloads.extend_from_slice(batch.payloads());
        guards.push(batch.version);
    }
    if reverse {
        payloads.reverse();
    }
    (payloads, guards)
}

/// The rule that guards stand for: writers are stopped, and if a scan's guards are all current
/// then, it must have seen every key that is there now. (It may have seen keys that were removed
/// since: those are noticed by their records.)
#[test]
fn a_validated_scan_missed_nothing() {
    for bits in [0, 54, 58] {
        let index = OrderedIndex::<u64>::with_prefix_bits(bits);
        let (paused, finished) = (AtomicBool::new(false), AtomicBool::new(false));
        let stopped = AtomicU64::new(0);
        let validated = on_threads(|number, participant| {
            let mut random = Random::stream(u64::from(bits), number as u64);
            if number > 0 {
                let mut step = 0_u64;
                while !finished.load(Ordering::Acquire) {
                    step += 1;
                    let key = random.below(4_096) as u64;
                    if (random.below(100) < 60) == ((step / 4_000).is_multiple_of(2)) {
                        index.insert(&key, key + 1, participant);
                    } else {
                        index.remove(&key, key + 1, participant);
                    }
                    // The scanner needs its turn even when there are fewer cores than threads.
                    if step.is_multiple_of(64) {
                        thread::yield_now();
                    }
                    if paused.load(Ordering::Acquire) {
                        stopped.fetch_add(1, Ordering::AcqRel);
                        while paused.load(Ordering::Acquire) {
                            thread::yield_now();
                        }
                        stopped.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                return 0;
            }
            let _finished = SetOnDrop(&finished, true);
            let _resumed = SetOnDrop(&paused, false);
            let mut validated = 0;
            for _ in 0..1_000 {
                let lower = random.below(4_096) as u64;
                let width = [1, 30, 300][random.below(3)];
                let bounds = (Bound::Included(lower), Bound::Excluded(lower + width));
                let reverse = random.below(2) == 0;
                let (seen, guards) = scan(&index, bounds, reverse);
                assert!(seen.is_sorted_by(|left, right| left < right), "{seen:?}");
                // Absent keys, by lookup, under the same rule.
                let absent: Vec<_> = (lower..lower + width.min(8))
                    .filter_map(|key| match index.get(&key) {
                        Lookup::Missing(guard) => Some((key, guard)),
                        Lookup::Found(_) => None,
                    })
                    .collect();
                // Sometimes time for the writers to fail the guards.
                for _ in 0..random.below(3) {
                    thread::yield_now();
                }
                paused.store(true, Ordering::Release);
                while stopped.load(Ordering::Acquire) < THREADS as u64 - 1 {
                    thread::yield_now();
                }
                if guards.iter().all(NodeVersion::is_current) {
                    validated += 1;
                    let (now, _) = scan(&index, bounds, !reverse);
                    for key in &now {
                        assert!(seen.contains(key), "phantom {key} in {lower}+{width}");
                    }
                }
                for (key, guard) in absent {
                    let present = matches!(index.get(&key), Lookup::Found(_));
                    assert!(!(present && guard.is_current()), "phantom {key}");
                }
                paused.store(false, Ordering::Release);
                while stopped.load(Ordering::Acquire) > 0 {
                    thread::yield_now();
                }
            }
            validated
        });
        assert!(validated[0] > 100, "only {} scans validated", validated[0]);
        assert!(validated[0] < 1_000, "the writers changed nothing");
    }
}

/// The same rule for the guards of a hash index, through growth: if a key is found although it
/// was missed before, the guard of the miss must have failed by then.
#[test]
fn a_miss_in_a_growing_hash_index_is_guarded() {
    const PER_THREAD: u64 = 50_000;
    let index = HashIndex::<u64>::with_capacity(0);
    let next = AtomicU64::new(0);
    on_threads(|number, participant| {
        let mut random = Random::stream(3, number as u64);
        if number > 0 {
            for _ in 0..PER_THREAD {
                let key = next.fetch_add(1, Ordering::Relaxed);
                assert!(inserted(index.insert(&key, key + 1, participant)));
            }
            return;
        }
        loop {
            // A key that is about to be inserted.
            let key = next.load(Ordering::Relaxed) + random.below(16) as u64;
            if key >= PER_THREAD * (THREADS as u64 - 1) {
                return;
            }
            let Lookup::Missing(guard) = index.get(&key) else {
                continue;
            };
            if random.below(4) == 0 {
                thread::yield_now();
            }
            if let Lookup::Found(_) = index.get(&key) {
                assert!(!guard.is_current(), "phantom {key}");
            }
        }
    });
    assert_eq!(index.len() as u64, PER_THREAD * (THREADS as u64 - 1));
}

/// Several workers use the same queues: TPC-C's new_order with more than one delivery.
#[test]
fn shared_queues_keep_their_order_and_their_size() {
    for bits in [0, 56] {
        let index = OrderedIndex::<u64>::with_prefix_bits(bits);
        let next: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
        let taken = on_threads(|number, participant| {
            let mut random = Random::stream(7, number as u64);
            let mut taken = Vec::new();
            for _ in 0..60_000 {
                let queue = random.below(next.len());
                let prefix = (queue as u64) << 56;
                let order = next[queue].fetch_add(1, Ordering::Relaxed);
                assert!(inserted(index.insert(
                    &(prefix | order),
                    prefix | (order + 1),
                    participant
                )));
                let bounds = (
                    Bound::Included(prefix),
                    Bound::Included(prefix | 0xffff_ffff),
                );
                let mut cursor = index.cursor(bounds.0, bounds.1, false);
                let mut batch = LeafBatch::new();
                while cursor.next_leaf(&mut batch) && batch.count == 0 {}
                if batch.count > 0 {
                    let least = batch.payloads[0];
                    assert_eq!(least >> 56, queue as u64);
                    if index.remove(&(least - 1), least, participant) {
                        taken.push(least);
                    }
                }
            }
            taken
        });
        let mut all: Vec<u64> = taken.into_iter().flatten().collect();
        index.for_each(|_, payload| all.push(payload));
        all.sort_unstable();
        let expected: Vec<u64> = (0..next.len() as u64)
            .flat_map(|queue| {
                let orders = next[queue as usize].load(Ordering::Relaxed);
                (1..=orders).map(move |order| queue << 56 | order)
            })
            .collect();
        assert_eq!(all, expected, "an entry was lost or taken twice");
        assert!(index.bytes() < 2 << 20, "{} bytes", index.bytes());
    }
}

/// Records as in the engine: cells that readers find through an index inside an epoch, and that
/// removers unlink and retire. A reader must never see a cell that was reused under it, also while
/// participants swap arenas.
#[test]
fn cells_are_not_reused_while_a_reader_may_hold_them() {
    const CELLS: u64 = 64;
    let epochs = Epochs::new(THREADS + 1);
    let slab = Slab::new(32, 2 * (THREADS + 1));
    let index = HashIndex::<u64>::with_capacity(0);
    let done: Vec<AtomicBool> = (0..THREADS).map(|_| AtomicBool::new(false)).collect();
    let word = |cell: NonNull<u8>, position: usize| {
        // SAFETY: a cell of four words, only accessed atomically.
        unsafe { cell.cast::<AtomicU64>().add(position).as_ref() }
    };
    thread::scope(|scope| {
        for number in 0..THREADS as u64 {
            let participant = epochs.register().expect("a slot");
            let (epochs, slab, index, done) = (&epochs, &slab, &index, &done);
            scope.spawn(move || {
                let _done = SetOnDrop(&done[number as usize], true);
                let mut random = Random::stream(13, number);
                for _ in 0..60_000 {
                    let key = random.below(CELLS as usize) as u64;
                    // SAFETY: this thread has the participant.
                    let borrows = unsafe { epochs.lend(participant.slot(), random.below(4)) };
                    assert_eq!(borrows, participant.arena() != participant.slot());
                    participant.enter();
                    match index.get(&key) {
                        Lookup::Found(address) => {
                            let cell = NonNull::new(address as *mut u8).expect("an address");
                            assert_eq!(word(cell, 2).load(Ordering::Relaxed), key);
                            if random.below(3) == 0 && index.remove(&key, address, &participant) {
                                // SAFETY: unlinked by this thread, and the slab outlives the
                                // participants.
                                unsafe { participant.retire(slab.retired(cell)) };
                            }
                            if random.below(50) == 0 {
                                thread::yield_now();
                            }
                            assert_eq!(word(cell, 2).load(Ordering::Relaxed), key);
                        }
                        Lookup::Missing(_) => {
                            // SAFETY: the arena that the participant uses.
                            let cell = unsafe { slab.alloc(participant.arena()) }.expect("memory");
                            word(cell, 2).store(key, Ordering::Relaxed);
                            let address = cell.as_ptr() as u64;
                            if !inserted(index.insert(&key, address, &participant)) {
                                // SAFETY: no other thread has seen the cell.
                                unsafe { slab.free(participant.arena(), cell) };
                            }
                        }
                    }
                    participant.leave();
                    participant.collect(4);
                    // SAFETY: as above.
                    unsafe { epochs.take_back(participant.slot()) };
                }
            });
        }
        while !done.iter().all(|done| done.load(Ordering::Acquire)) {
            epochs.advance();
            thread::yield_now();
        }
    });
    // What the dropped participants left is collected by the next one, and what was left in memory
    // that was lent.
    (0..4).for_each(|lent| epochs.clear_lent(lent));
    let participant = epochs.register().expect("a slot");
    for _ in 0..3 {
        assert!(epochs.advance());
    }
    participant.collect(usize::MAX);
    assert_eq!(slab.cells_in_use(), index.len());
}

#[test]
fn retired_objects_wait_for_two_epochs_and_owners_for_their_objects() {
    static FREED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    unsafe fn reclaim(context: *const (), _: NonNull<u8>, slot: usize) {
        assert_eq!(slot, 0);
        lock(&FREED).push(context as usize);
    }
    struct Owner(Arc<AtomicBool>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let epochs = Epochs::new(2);
    let (first, second) = (
        epochs.register().expect("a slot"),
        epochs.register().expect("a slot"),
    );
    assert!(epochs.register().is_none());
    assert_eq!((epochs.current(), epochs.reclaimable()), (1, 0));
    let retired = |context: usize| Retired {
        pointer: NonNull::dangling(),
        reclaim,
        context: context as *const (),
        bytes: 1,
    };

    second.enter();
    first.enter();
    let dropped = Arc::new(AtomicBool::new(false));
    epochs.retire_owner(Box::new(Owner(Arc::clone(&dropped))));
    // SAFETY: nothing is behind the pointer, and `reclaim` only notes the call.
    unsafe { first.retire(retired(1)) };
    first.leave();
    assert!(epochs.advance(), "all active participants are in epoch 1");
    assert!(
        !epochs.advance(),
        "the second participant still is in epoch 1"
    );
    assert_eq!(first.collect(10), 0);
    assert_eq!(second.enter(), 2);
    assert!(epochs.advance());
    assert_eq!(first.collect(10), 0, "the tag is one more than the epoch");
    assert!(!epochs.advance());
    assert_eq!(second.enter(), 3);
    assert!(epochs.advance());
    assert_eq!((epochs.current(), epochs.reclaimable()), (4, 2));
    assert!(
        !dropped.load(Ordering::Relaxed),
        "an object may need its owner"
    );
    assert_eq!(first.collect(10), 1);
    assert_eq!(*lock(&FREED), [1]);
    second.leave();
    epochs.advance();
    assert!(dropped.load(Ordering::Relaxed));

    // Outside of any epoch, and left behind by a participant that goes.
    // SAFETY: as above.
    unsafe { second.retire(retired(2)) };
    drop(second);
    assert_eq!(first.collect(10), 0);
    assert!(epochs.advance() && epochs.advance());
    assert_eq!(first.collect(10), 1);
    assert_eq!(*lock(&FREED), [1, 2]);
    assert_eq!(epochs.register().expect("the slot is free again").slot(), 1);

    // With the last handle goes what belongs to nothing else.
    // SAFETY: as above.
    unsafe {
        first.retire(retired(3));
        first.retire(retired(0));
    }
    drop(epochs);
    assert_eq!(*lock(&FREED), [1, 2]);
    drop(first);
    assert_eq!(*lock(&FREED), [1, 2, 0]);
}

#[test]
fn an_arena_is_lent_to_one_after_the_other_with_what_waits_in_it() {
    static ARENAS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    unsafe fn reclaim(_: *const (), _: NonNull<u8>, arena: usize) {
        lock(&ARENAS).push(arena);
    }
    struct Owner(Arc<AtomicBool>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let epochs = Epochs::new(2);
    let participants = [0, 1].map(|_| epochs.register().expect("a slot"));
    // SAFETY: one thread uses all participants.
    let lend = |slot: usize, number: usize| unsafe { epochs.lend(slot, number) };
    // SAFETY: as above.
    let take_back = |slot: usize| unsafe { epochs.take_back(slot) };
    // SAFETY: nothing is behind the pointer, and `reclaim` only notes the call.
    let retire = |participant: &Participant| unsafe {
        participant.retire(Retired {
            pointer: NonNull::dangling(),
            reclaim,
            context: std::ptr::without_provenance(1),
            bytes: 1,
        });
    };
    assert!(lend(0, 1));
    assert_eq!(participants[0].arena(), 3);
    assert!(!lend(1, 1), "participant 0 has it");
    assert!(!lend(1, 2), "there is none");
    assert_eq!(participants[1].arena(), 1);
    let dropped = Arc::new(AtomicBool::new(false));
    epochs.retire_owner(Box::new(Owner(Arc::clone(&dropped))));
    retire(&participants[0]);
    assert_eq!(participants[0].waiting(), 1);
    epochs.clear_lent(1);
    assert_eq!(participants[0].waiting(), 1, "participant 0 has it");
    take_back(0);
    assert_eq!((participants[0].arena(), participants[0].waiting()), (0, 0));
    (0..4).for_each(|_| assert!(epochs.advance()));
    assert_eq!(participants[0].collect(1), 0);
    assert!(
        !dropped.load(Ordering::Relaxed),
        "an object waits in the arena that was lent"
    );

    assert!(lend(1, 1));
    assert_eq!(participants[1].collect(2), 1);
    assert_eq!(*lock(&ARENAS), [3]);
    retire(&participants[1]);
    take_back(1);
    epochs.advance();
    assert!(dropped.load(Ordering::Relaxed));
    epochs.clear_lent(1);
    assert!(epochs.advance() && epochs.advance());
    assert_eq!(
        participants[0].collect(1),
        1,
        "an arena that is no longer lent has left its objects to all"
    );
    assert_eq!(*lock(&ARENAS), [3, 0]);

    // A participant that is dropped gives back its lent arena.
    assert!(lend(0, 0));
    let [first, second] = participants;
    // SAFETY: as above; it belongs to nothing else.
    unsafe {
        first.retire(Retired {
            pointer: NonNull::dangling(),
            reclaim,
            context: std::ptr::null(),
            bytes: 1,
        });
    }
    drop(first);
    assert!(lend(1, 0));
    assert_eq!(second.waiting(), 1);
    drop(second);
    assert_eq!(*lock(&ARENAS), [3, 0]);
    drop(epochs);
    assert_eq!(*lock(&ARENAS), [3, 0, 0], "it goes with the last handle");
}

#[test]
fn cells_are_zeroed_distinct_and_recycled() {
    let slab = Slab::new(200, 2);
    assert_eq!((slab.cell_bytes(), slab.cell_stride()), (200, 200));
    assert_eq!(Slab::new(1000, 1).cell_stride(), 1008);
    assert_eq!(Slab::new(2552, 1).cell_stride(), 2560);
    assert_eq!(Slab::new(72, 1).cell_stride(), 72);
    let mut cells = Vec::new();
    for number in 0..20_000_u64 {
        // SAFETY: one thread uses both slots.
        let cell = unsafe { slab.alloc(number as usize % 2) }.expect("memory");
        assert_eq!(cell.as_ptr() as usize % 8, 0);
        for position in 0..25 {
            // SAFETY: the cell has 25 words.
            let word = unsafe { cell.cast::<AtomicU64>().add(position).as_ref() };
            assert_eq!(word.load(Ordering::Relaxed), 0);
            word.store(number, Ordering::Relaxed);
        }
        cells.push(cell);
    }
    assert_eq!(slab.cells_in_use(), 20_000);
    assert!(
        slab.bytes_reserved() < 12 << 20,
        "{}",
        slab.bytes_reserved()
    );
    for (number, &cell) in cells.iter().enumerate() {
        // SAFETY: as above.
        let word = unsafe { cell.cast::<AtomicU64>().as_ref() };
        assert_eq!(word.load(Ordering::Relaxed), number as u64);
        // SAFETY: no thread uses the cell any more.
        unsafe { slab.free(1, cell) };
    }
    assert_eq!(slab.cells_in_use(), 0);
    // SAFETY: one thread uses both slots.
    let again = unsafe { slab.alloc(1) }.expect("memory");
    assert_eq!(again, cells[19_999]);
    for position in [0, 1] {
        // SAFETY: the cell has 25 words.
        let word = unsafe { again.cast::<AtomicU64>().add(position).as_ref() };
        assert_eq!(
            word.load(Ordering::Relaxed),
            19_999,
            "a record's header outlives it"
        );
    }
    let mut all = std::collections::HashSet::new();
    slab.for_each_cell(|cell| assert!(all.insert(cell)));
    assert!(cells.iter().all(|cell| all.contains(cell)));
    assert!(Slab::new(64, 8).bytes_reserved() == 0);
}

#[test]
fn cells_that_others_free_are_used_again() {
    const ROUNDS: usize = 2_000;
    let slab = Slab::new(64, 3);
    let mut cells = Vec::new();
    for round in 0..ROUNDS {
        for _ in 0..100 {
            // SAFETY: one thread uses all slots.
            cells.push(unsafe { slab.alloc(0) }.expect("memory"));
        }
        let unique: std::collections::HashSet<_> = cells.iter().collect();
        assert_eq!(unique.len(), 100, "a cell was handed out twice");
        for cell in cells.drain(..) {
            // SAFETY: as above, and no thread uses the cell any more.
            unsafe { slab.free(1 + round % 2, cell) };
        }
    }
    assert_eq!(slab.cells_in_use(), 0);
    let reserved = slab.bytes_reserved();
    assert!(
        reserved < 1 << 20,
        "{reserved} bytes for 100 cells at a time"
    );
}

#[test]
fn index_nodes_that_others_free_are_used_again() {
    let epochs = Epochs::new(2);
    let [first, second] = [0, 1].map(|_| epochs.register().expect("a slot"));
    let (ordered, hash) = (
        OrderedIndex::<u64>::new(),
        HashIndex::<u64>::with_capacity(0),
    );
    for round in 0..400_u64 {
        let keys = || (1..=500).map(|number| round * 500 + number);
        for key in keys() {
            assert!(inserted(ordered.insert(&key, key, &first)));
            assert!(inserted(hash.insert(&key, key, &first)));
        }
        for key in keys() {
            assert!(ordered.remove(&key, key, &second));
            assert!(hash.remove(&key, key, &second));
        }
    }
    assert!(ordered.bytes() < 1 << 20, "{} bytes", ordered.bytes());
    assert!(hash.bytes() < 1 << 20, "{} bytes", hash.bytes());
}
