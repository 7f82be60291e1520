use std::ptr::NonNull;

use kiln_platform::sync::{Mutex, lock};
use kiln_platform::thread;

use super::*;

/// The numbers of the objects that were freed, as a context.
#[derive(Default)]
struct Freed(Mutex<Vec<usize>>);

impl Freed {
    /// An object with this number, which takes `bytes`.
    fn object(&self, number: usize, bytes: usize) -> Retired {
        unsafe fn reclaim(context: *const (), pointer: NonNull<u8>, _: usize) {
            // SAFETY: the context is below, and outlives the epochs.
            let freed = unsafe { &*context.cast::<Freed>() };
            lock(&freed.0).push(pointer.addr().get());
        }
        Retired {
            pointer: NonNull::without_provenance(std::num::NonZero::new(number).expect("not 0")),
            reclaim,
            context: std::ptr::from_ref(self).cast(),
            bytes,
        }
    }

    fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

/// Retires objects with the numbers from 1 on inside of one epoch.
fn retire(participant: &Participant, freed: &Freed, count: usize, bytes: usize) {
    for number in 1..=count {
        // SAFETY: nothing is behind the pointer, and freeing it notes the number.
        unsafe { participant.retire(freed.object(number, bytes)) };
    }
}

fn attempt(participant: &Participant, freed: &Freed, count: usize, bytes: usize) {
    participant.enter();
    retire(participant, freed, count, bytes);
    participant.leave();
}

#[test]
fn what_waits_is_bounded_by_what_three_epochs_retire() {
    let (freed, epochs) = (Freed::default(), Epochs::new(1));
    let participant = epochs.register().expect("a slot");
    for objects in [1, 20, 1_000] {
        let per_epoch = 10 * objects;
        for _ in 0..100 {
            (0..10).for_each(|_| attempt(&participant, &freed, objects, 64));
            epochs.advance();
            let waiting = epochs.waiting();
            assert!(
                waiting.objects <= 4 * per_epoch + 4_000,
                "{waiting:?} with {objects} objects a time"
            );
        }
        let waiting = epochs.waiting();
        assert!(
            waiting.objects <= 3 * per_epoch,
            "{waiting:?} with {objects}"
        );
        assert_eq!(waiting.bytes, 64 * waiting.objects);
        assert_eq!(waiting.objects, participant.waiting());
    }
}

#[test]
fn what_takes_many_bytes_does_not_wait_behind_small_objects() {
    let (freed, epochs) = (Freed::default(), Epochs::new(1));
    let participant = epochs.register().expect("a slot");
    attempt(&participant, &freed, 100_000, 32);
    for _ in 0..50 {
        attempt(&participant, &freed, 1, 1 << 20);
        epochs.advance();
        assert!(epochs.waiting().bytes < 12 << 20, "{:?}", epochs.waiting());
    }
}

#[test]
fn what_an_idle_participant_retired_is_freed_by_another() {
    let (freed, epochs) = (Freed::default(), Epochs::new(3));
    let [idle, ticker] = [0, 1].map(|_| epochs.register().expect("a slot"));
    attempt(&idle, &freed, 1_000, 64);
    // SAFETY: one thread uses all participants.
    assert!(unsafe { epochs.lend(idle.slot(), 1) });
    attempt(&idle, &freed, 500, 64);
    // SAFETY: as above.
    unsafe { epochs.take_back(idle.slot()) };
    let expected = Amount {
        objects: 1_500,
        bytes: 96_000,
    };
    for _ in 0..STALE_EPOCHS + 2 {
        assert_eq!(epochs.waiting(), expected);
        epochs.take_over_idle();
        assert_eq!(ticker.collect(usize::MAX), 0, "it may come back any time");
        epochs.advance();
    }
    epochs.advance();
    epochs.take_over_idle();
    assert_eq!((epochs.waiting(), idle.waiting()), (expected, 0));
    assert_eq!(ticker.collect(600), 600);
    assert_eq!(epochs.waiting().objects, 900);
    assert_eq!(ticker.collect(usize::MAX), 900);
    assert_eq!(
        (epochs.waiting(), freed.count()),
        (Amount::default(), 1_500)
    );
}

#[test]
fn what_an_active_participant_has_is_left_alone() {
    let (freed, epochs) = (Freed::default(), Epochs::new(2));
    let [busy, ticker] = [0, 1].map(|_| epochs.register().expect("a slot"));
    attempt(&busy, &freed, 100, 64);
    for _ in 0..2 * STALE_EPOCHS {
        busy.enter();
        epochs.advance();
    }
    epochs.take_over_idle();
    assert!(epochs.seize(busy.slot()).is_none());
    assert_eq!((ticker.collect(usize::MAX), busy.waiting()), (0, 100));
    // It gives away what it had no share in for long.
    busy.leave();
    assert_eq!(busy.waiting(), 0);
    assert_eq!(ticker.collect(usize::MAX), 100 - FREED_MIN);
}

#[test]
fn a_participant_waits_while_it_is_seized() {
    let epochs = Epochs::new(1);
    let participant = epochs.register().expect("a slot");
    let entered = AtomicBool::new(false);
    let seized = epochs.seize(0).expect("it is not active");
    assert!(epochs.seize(0).is_none(), "another thread has it");
    thread::scope(|scope| {
        scope.spawn(|| {
            let participant = participant;
            participant.enter();
            entered.store(true, Ordering::SeqCst);
            participant.leave();
        });
        (0..100).for_each(|_| thread::yield_now());
        assert!(!entered.load(Ordering::SeqCst));
        drop(seized);
    });
    assert!(entered.load(Ordering::SeqCst));
    assert!(epochs.seize(0).is_some());
}

/// Each object is freed once, also if one participant takes it over from another.
#[test]
fn idle_and_busy_participants_lose_nothing() {
    const WORKERS: usize = 3;
    let attempts = if cfg!(miri) { 50 } else { 3_000 };
    let (freed, epochs) = (Freed::default(), Epochs::new(WORKERS + 1));
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (freed, epochs, done) = (&freed, &epochs, &done);
            let participant = epochs.register().expect("a slot");
            scope.spawn(move || {
                for number in 0..attempts {
                    participant.enter();
                    // SAFETY: as in `retire`.
                    unsafe { participant.retire(freed.object(1 + worker * attempts + number, 1)) };
                    participant.leave();
                    if number % 64 == 0 {
                        thread::sleep(1_000);
                    }
                }
                // What it leaves behind is there before it is counted.
                drop(participant);
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let ticker = epochs.register().expect("a slot");
        while done.load(Ordering::SeqCst) < WORKERS {
            // So fast that a worker between two attempts seems idle.
            (0..=STALE_EPOCHS).for_each(|_| _ = epochs.advance());
            epochs.take_over_idle();
            ticker.collect(100);
        }
        (0..4).for_each(|_| _ = epochs.advance());
        ticker.collect(usize::MAX);
    });
    assert_eq!(epochs.waiting(), Amount::default());
    let mut numbers = std::mem::take(&mut *lock(&freed.0));
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=WORKERS * attempts));
}

#[test]
fn an_owner_outlives_a_batch_that_is_being_freed() {
    struct Owner(Arc<AtomicBool>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (freed, epochs) = (Freed::default(), Epochs::new(2));
    let [left, ticker] = [0, 1].map(|_| epochs.register().expect("a slot"));
    let dropped = Arc::new(AtomicBool::new(false));
    attempt(&left, &freed, 3, 1);
    epochs.retire_owner(Box::new(Owner(dropped.clone())));
    drop(left);
    (0..4).for_each(|_| assert!(epochs.advance()));
    assert_eq!(ticker.collect(2), 2);
    epochs.advance();
    assert!(!dropped.load(Ordering::SeqCst), "one object is left");
    // As a collector that was interrupted.
    let limbo = &epochs.shared.limbos[ticker.slot()];
    let batch = epochs
        .shared
        .orphans
        .take(u64::MAX, limbo)
        .expect("it is there");
    assert_eq!(batch.len(), 1);
    epochs.advance();
    assert!(!dropped.load(Ordering::SeqCst), "it is being freed");
    epochs.shared.orphans.put_back(batch, Amount::default());
    assert_eq!(ticker.collect(usize::MAX), 1);
    epochs.advance();
    assert!(dropped.load(Ordering::SeqCst));
}

#[test]
fn those_who_hold_the_epoch_back_are_named() {
    let epochs = Epochs::new(3);
    let [first, second, third] = [0, 1, 2].map(|_| epochs.register().expect("a slot"));
    let begun = time::now_ns();
    second.enter();
    assert!(epochs.laggards().is_empty(), "it is in the present epoch");
    assert!(epochs.advance());
    let advanced = time::now_ns();
    first.enter();
    third.enter();
    third.leave();
    assert!(!epochs.advance());
    let [laggard] = epochs.laggards()[..] else {
        panic!("one holds the epoch back")
    };
    assert_eq!(laggard.slot, second.slot());
    assert!((begun..=advanced).contains(&laggard.since_ns));
    second.leave();
    assert!(epochs.laggards().is_empty());
}
