//! Epochs: the global epoch counter, the participants that run in it, and the garbage that waits
//! until no participant can see it any more (Silo §4.1, §4.8).
//!
//! # Definitions
//!
//! - The *global epoch* `E` starts at 1 and grows by one at a time.
//! - A participant is *active* between [`Participant::enter`] and [`Participant::leave`], and has
//!   then *published* the epoch `e` that it found on entering.
//! - An object is *unlinked* when no path from shared memory leads to it any more; from then on
//!   only participants that were active already can still hold its address. It is *retired* when
//!   it is handed to [`Participant::retire`], which tags it with an epoch.
//!
//! # Invariants
//!
//! 1. `E - e <= 1` for every active participant (Silo's rule): [`Epochs::advance`] moves on only
//!    if every active participant has published `E`.
//! 2. A tag is at least the value of `E` at the time of unlinking. An active participant tags with
//!    `e + 1`, which rule 1 makes an upper bound without looking at `E`.
//! 3. An object with tag `t` is *reclaimable* when `E >= t + 2`: every participant that could hold
//!    it had published at most `t`, and `E` reached `t + 2` only after all of those had left.
//! 4. A participant touches what is kept for it, its limbo above all, only while it is active. So a
//!    thread that has [seized](Epochs::seize) an inactive participant has these things to itself.
//!
//! # Who frees
//!
//! Memory comes back at the rate at which it goes:
//!
//! - A participant that leaves frees up to twice what it retired since it entered, in objects and
//!   in bytes, and a few objects more. While epochs move, no more waits than is retired in three of
//!   them.
//! - What could have been freed for [`STALE_EPOCHS`] epochs and was not becomes an *orphan*: the
//!   participant itself gives it away when it leaves, or [`Epochs::take_over_idle`] takes it from a
//!   participant that does nothing. What a participant has when it is dropped becomes an orphan at
//!   once.
//! - The database's ticker frees orphans, and participants that free something help it.

mod limbo;
mod orphans;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use kiln_platform::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use kiln_platform::memory::name_range;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time;

pub use limbo::{Amount, Retired};
use limbo::{Limbo, NOTHING_WAITS};
use orphans::{Orphans, RetiredOwner};

/// The published value of a participant that is not active; no epoch has this number.
const INACTIVE: u64 = 0;

/// Epochs in which a retired object could have been freed, after which its participant is thought
/// to be idle.
pub const STALE_EPOCHS: u64 = 8;

/// Objects that a participant frees when it leaves, besides twice what it retired.
const FREED_MIN: usize = 8;

/// What one participant shows to the others, on cache lines of its own (two, because processors
/// fetch lines in pairs).
#[repr(align(128))]
struct Slot {
    /// The published epoch, or [`INACTIVE`].
    published: AtomicU64,
    /// The number of the arena that the participant uses; written by its own thread.
    arena: AtomicUsize,
    /// Whether a [`Participant`] owns this slot.
    taken: AtomicBool,
    /// Whether another thread has what is kept for the participant, which is not active.
    seized: AtomicBool,
}

/// The global counter on cache lines of its own: every participant reads it, and it moves once in
/// some milliseconds.
#[repr(align(128))]
struct Global(AtomicU64);

struct Shared {
    global: Global,
    /// When the global epoch began, of [`time::now_ns`].
    began_ns: AtomicU64,
    slots: Box<[Slot]>,
    /// Slots at and above this position were never taken, so that scans may end here.
    slots_used: AtomicUsize,
    /// By arena.
    limbos: Box<[Limbo]>,
    /// As `slots_used`, of the arenas that are lent.
    lent_used: AtomicUsize,
    orphans: Orphans,
    owners: Mutex<Vec<RetiredOwner>>,
    owner_count: AtomicUsize,
    /// Whether a participant broke down.
    is_broken: AtomicBool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Each participant has a handle, and this is the last one: no participant is left, and none
        // holds an address. An object with a context is part of the context's memory and goes with
        // it.
        let orphans = std::mem::take(&mut *self.orphans.lock());
        let limbos = self.limbos.iter_mut();
        let waiting = limbos.flat_map(|limbo| std::mem::take(limbo.objects_mut()));
        for (_, retired) in orphans.into_iter().flatten().chain(waiting) {
            if retired.context.is_null() {
                // SAFETY: the caller of `retire` promises that this call is sound once no
                // participant is active; none exists any more.
                unsafe { (retired.reclaim)(retired.context, retired.pointer, 0) };
            }
        }
    }
}

/// The global epoch and its participants; a cheap handle, clones share one counter.
#[derive(Clone)]
pub struct Epochs {
    shared: Arc<Shared>,
}

/// Names an object's memory in reports about cache lines.
fn name<T>(object: &T, name: &str) {
    let address = std::ptr::from_ref(object).addr();
    name_range(address, size_of::<T>(), || name.to_owned());
}

impl Epochs {
    /// A counter at epoch 1 with room for `participants` participants at a time.
    /// As many arenas can be lent ([`Epochs::lend`]).
    pub fn new(participants: usize) -> Epochs {
        let slots = (0..participants)
            .map(|slot| Slot {
                published: AtomicU64::new(INACTIVE),
                arena: AtomicUsize::new(slot),
                taken: AtomicBool::new(false),
                seized: AtomicBool::new(false),
            })
            .collect();
        let limbos = (0..2 * participants).map(|_| Limbo::new()).collect();
        let epochs = Epochs {
            shared: Arc::new(Shared {
                global: Global(AtomicU64::new(1)),
                began_ns: AtomicU64::new(time::now_ns()),
                slots,
                slots_used: AtomicUsize::new(0),
                limbos,
                lent_used: AtomicUsize::new(0),
                orphans: Orphans::default(),
                owners: Mutex::new(Vec::new()),
                owner_count: AtomicUsize::new(0),
                is_broken: AtomicBool::new(false),
            }),
        };
        let shared = &*epochs.shared;
        name(shared, "epochs");
        name(&shared.global, "epoch");
        for (number, slot) in shared.slots.iter().enumerate() {
            let address = std::ptr::from_ref(slot).addr();
            name_range(address, size_of::<Slot>(), || {
                format!("epoch.worker[{number}]")
            });
        }
        epochs
    }

    /// The number of participants there is room for; slots are numbered below it.
    pub fn participants_max(&self) -> usize {
        self.shared.slots.len()
    }

    /// Lets the participant with this slot use the `number`-th lent arena in place of its own, and
    /// returns whether it does. It does not if there is no such arena or another participant has
    /// it; see [`Participant::arena`].
    ///
    /// # Safety
    /// Called on the thread that uses the participant, and between its operations.
    #[inline]
    pub unsafe fn lend(&self, slot: usize, number: usize) -> bool {
        let arena = self.shared.slots.len() + number;
        let Some(limbo) = self.shared.limbos.get(arena) else {
            return false;
        };
        // Acquire pairs with the release in `take_back`: the arena is as who had it before has
        // left it.
        if limbo.is_lent.load(Ordering::Relaxed) || limbo.is_lent.swap(true, Ordering::Acquire) {
            return false;
        }
        if self.shared.lent_used.load(Ordering::Relaxed) <= number {
            self.shared
                .lent_used
                .fetch_max(number + 1, Ordering::SeqCst);
        }
        self.shared.slots[slot]
            .arena
            .store(arena, Ordering::Relaxed);
        true
    }

    /// Ends what [`Epochs::lend`] began, if it did: the participant uses its own arena again.
    ///
    /// # Safety
    /// As for [`Epochs::lend`].
    #[inline]
    pub unsafe fn take_back(&self, slot: usize) {
        let lender = &self.shared.slots[slot].arena;
        let arena = lender.load(Ordering::Relaxed);
        if arena != slot {
            lender.store(slot, Ordering::Relaxed);
            self.shared.limbos[arena]
                .is_lent
                .store(false, Ordering::Release);
        }
    }

    /// Makes orphans of the objects in the `number`-th lent arena, unless
    /// a participant has that arena.
    pub fn clear_lent(&self, number: usize) {
        let Some(limbo) = self.shared.limbos.get(self.shared.slots.len() + number) else {
            return;
        };
        // Acquire: as in `lend`.
        if !limbo.is_lent.swap(true, Ordering::Acquire) {
            // SAFETY: the arena is lent to this call.
            unsafe { self.shared.orphans.adopt(limbo) };
            limbo.is_lent.store(false, Ordering::Release);
        }
    }

    /// Makes orphans of what idle participants, and arenas that are not lent, could have freed
    /// for [`STALE_EPOCHS`] epochs. Called now and then by the thread that frees orphans.
    pub fn take_over_idle(&self) {
        let shared = &*self.shared;
        let stale = self.reclaimable().saturating_sub(STALE_EPOCHS);
        // Acquire as in `drop_owners`; that the tag is old is only a reason to look closer.
        let is_stale = |limbo: &Limbo| limbo.oldest_tag.load(Ordering::Acquire) <= stale;
        let (own, lent) = shared.limbos.split_at(shared.slots.len());
        let used = shared.slots_used.load(Ordering::SeqCst);
        for (slot, limbo) in own[..used].iter().enumerate() {
            if is_stale(limbo)
                && let Some(_seized) = self.seize(slot)
            {
                // SAFETY: the participant of the slot is seized.
                unsafe { shared.orphans.adopt(limbo) };
            }
        }
        let lent_used = shared.lent_used.load(Ordering::SeqCst);
        for (number, limbo) in lent[..lent_used].iter().enumerate() {
            if is_stale(limbo) {
                self.clear_lent(number);
            }
        }
    }

    /// Takes hold of what is kept for the participant with this slot, unless it is active: it does
    /// not become so before the result is dropped. A participant that wants to enter spins that
    /// long, so it should be short.
    pub fn seize(&self, slot: usize) -> Option<Seized<'_>> {
        let slot = &self.shared.slots[slot];
        if slot.published.load(Ordering::Relaxed) != INACTIVE
            || slot.seized.swap(true, Ordering::SeqCst)
        {
            return None;
        }
        let seized = Seized { slot };
        // Pairs with the barrier in `enter`: the participant publishes and then looks whether it is
        // seized, this thread says so and then looks whether it has published. At least one of them
        // sees the other.
        fence(Ordering::SeqCst);
        // Acquire pairs with the release in `leave`: what is kept is as the participant left it.
        (slot.published.load(Ordering::SeqCst) == INACTIVE).then_some(seized)
    }

    /// What is retired and not freed yet, of all participants and of orphans. A moment's figure:
    /// none of it stops for that.
    pub fn waiting(&self) -> Amount {
        let shared = &*self.shared;
        let mut sum = shared.orphans.waiting();
        for limbo in &shared.limbos {
            let waiting = limbo.waiting();
            sum.objects += waiting.objects;
            sum.bytes = sum.bytes.wrapping_add(waiting.bytes);
        }
        sum
    }

    /// The participants that keep the global epoch from moving on, and so all memory from being
    /// freed: those that entered before it began, and have not left.
    pub fn laggards(&self) -> Vec<Laggard> {
        let shared = &*self.shared;
        let epoch = self.current();
        // At least since then: they had entered when it began.
        let since_ns = shared.began_ns.load(Ordering::Relaxed);
        let used = shared.slots_used.load(Ordering::SeqCst);
        let slots = shared.slots[..used].iter().enumerate();
        let published = slots.map(|(slot, state)| (slot, state.published.load(Ordering::Relaxed)));
        let lag = published.filter(|&(_, published)| published != INACTIVE && published < epoch);
        lag.map(|(slot, _)| Laggard { slot, since_ns }).collect()
    }

    /// Takes a free slot, or `None` when all are taken.
    pub fn register(&self) -> Option<Participant> {
        for (slot, state) in self.shared.slots.iter().enumerate() {
            // Acquire pairs with the release in `Participant::drop`: the new owner of the slot
            // also owns what is kept per slot elsewhere (free lists), and must see it as the old
            // owner left it.
            let free =
                state
                    .taken
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
            if free.is_ok() {
                // Before the first publication, so that an `advance` whose fence comes after the
                // fence in `enter` looks at this slot; see there.
                self.shared.slots_used.fetch_max(slot + 1, Ordering::SeqCst);
                return Some(Participant {
                    epochs: self.clone(),
                    slot,
                    published: Cell::new(INACTIVE),
                    retired: Cell::new(Amount::default()),
                    not_sync: PhantomData,
                });
            }
        }
        None
    }

    /// Says for good that a participant has panicked in the middle of its work: what it holds it
    /// will hold for ever.
    pub fn break_down(&self) {
        // Release pairs with the acquire in `is_broken`: a participant that gives up sees what the
        // caller did before this.
        self.shared.is_broken.store(true, Ordering::Release);
    }

    /// Whether a participant broke down. A participant that waits for others, or fails because of
    /// them, looks at this now and then, and gives up.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.shared.is_broken.load(Ordering::Acquire)
    }

    /// The global epoch.
    ///
    /// Acquire pairs with the release in [`Epochs::advance`]: a thread that sees epoch `E` also
    /// sees what every participant did before it let `E` begin.
    #[inline]
    pub fn current(&self) -> u64 {
        self.shared.global.0.load(Ordering::Acquire)
    }

    /// The newest tag whose objects no participant can hold any more; 0 when there is none.
    #[inline]
    pub fn reclaimable(&self) -> u64 {
        self.current().saturating_sub(2)
    }

    /// Moves the global epoch on by one if every active participant has published it already;
    /// says whether it moved. Called every few milliseconds by one background thread, and harmless
    /// when several call it.
    pub fn advance(&self) -> bool {
        let shared = &*self.shared;
        let epoch = shared.global.0.load(Ordering::Acquire);
        // Pairs with the fence in `Participant::enter`. If this fence is first, the participant
        // finds any epoch stored before it and publishes that; if it is second, the loads below
        // find the publication. Weaker fences would let both sides miss each other.
        fence(Ordering::SeqCst);
        let used = shared.slots_used.load(Ordering::SeqCst);
        for slot in &shared.slots[..used] {
            // Acquire pairs with the release in `leave` and `enter`: the participant's last reads
            // of unlinked objects come before the epoch that lets others reuse them.
            let published = slot.published.load(Ordering::Acquire);
            if published != INACTIVE && published != epoch {
                return false;
            }
        }
        // Release hands on what the acquires above gathered to every thread that sees the new
        // epoch.
        let moved = shared
            .global
            .0
            .compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if moved {
            shared.began_ns.store(time::now_ns(), Ordering::Relaxed);
        }
        if shared.owner_count.load(Ordering::Relaxed) > 0 {
            self.drop_owners();
        }
        moved
    }

    /// Drops `owner` once no thread can reach it: when every participant that was active has left,
    /// and no limbo holds an object retired until then, which may name `owner` as its context. The
    /// owner must be unlinked already. A later [`Epochs::advance`] drops it, at the latest after
    /// [`Epochs::take_over_idle`] has taken the retired objects of idle participants and they have
    /// been freed.
    pub fn retire_owner(&self, owner: Box<dyn Send>) {
        // The owner was unlinked before this fence; a participant that enters after it cannot
        // find the owner, and one that entered before it published at most the epoch read below.
        fence(Ordering::SeqCst);
        let epoch = self.current();
        let mut owners = lock(&self.shared.owners);
        owners.push(RetiredOwner { epoch, owner });
        self.shared
            .owner_count
            .store(owners.len(), Ordering::Relaxed);
    }

    /// Drops the retired owners that nothing refers to any more.
    fn drop_owners(&self) {
        let shared = &*self.shared;
        let current = self.current();
        let used = shared.slots_used.load(Ordering::SeqCst);
        let (own, lent) = shared.limbos.split_at(shared.slots.len());
        let lent = &lent[..shared.lent_used.load(Ordering::SeqCst)];
        let mut ready = Vec::new();
        {
            // Before the limbos: a batch that goes to a collector is in one or the other.
            let batches = shared.orphans.lock();
            let orphans = batches.iter().filter_map(|batch| batch.front());
            let oldest = own[..used]
                .iter()
                .chain(lent)
                // Acquire pairs with the release in `Limbo::show_oldest`: the reclaim functions
                // that ran before have finished with their contexts.
                .map(|limbo| limbo.oldest_tag.load(Ordering::Acquire))
                .chain(orphans.map(|&(tag, _)| tag))
                .min()
                .unwrap_or(NOTHING_WAITS);
            let mut owners = lock(&shared.owners);
            // Participants that could still reach the owner had published at most `epoch`, so
            // their tags are at most `epoch + 1`, and they have left when `E` is `epoch + 3`.
            let mut position = 0;
            while position < owners.len() {
                let epoch = owners[position].epoch;
                if current >= epoch + 3 && oldest > epoch + 1 {
                    ready.push(owners.swap_remove(position).owner);
                } else {
                    position += 1;
                }
            }
            shared.owner_count.store(owners.len(), Ordering::Relaxed);
        }
        // Outside the locks, because a destructor may do anything.
        drop(ready);
    }
}

impl fmt::Debug for Epochs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Epochs")
            .field("current", &self.current())
            .field("participants_max", &self.participants_max())
            .finish()
    }
}

/// A participant that keeps the epoch from moving on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laggard {
    /// The participant's slot.
    pub slot: usize,
    /// It has been active at least since then, of [`time::now_ns`].
    pub since_ns: u64,
}

/// What is kept for an inactive participant, in the hands of another thread; see [`Epochs::seize`].
pub struct Seized<'a> {
    slot: &'a Slot,
}

impl Drop for Seized<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire in `enter`: the participant finds what this thread has
        // left.
        self.slot.seized.store(false, Ordering::Release);
    }
}

/// One worker's part in the epochs: its published epoch and its garbage. It may move to another
/// thread but is used by one at a time.
pub struct Participant {
    epochs: Epochs,
    slot: usize,
    /// What the slot shows, kept here to be read without touching shared memory.
    published: Cell<u64>,
    /// What it has retired since it entered.
    retired: Cell<Amount>,
    not_sync: PhantomData<*const ()>,
}

// SAFETY: the raw pointers in the limbo are only handed to their reclaim functions, and the
// contract of `retire` demands that these may run on any thread.
unsafe impl Send for Participant {}

impl Participant {
    /// The number of this participant's slot, below [`Epochs::participants_max`]. No other live
    /// participant has it, so it may index per-worker state such as a slab's free lists.
    #[inline]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The number of the arena that this participant uses at present, below twice
    /// [`Epochs::participants_max`]: its free lists, the part of each slab that new cells come
    /// from, and what waits for its epoch. No other participant uses the same at the same time. It
    /// is that of its slot, unless another one is lent to it ([`Epochs::lend`]): participants that
    /// share a core slot use the core's one after the other, which is warm and in which nothing
    /// waits until one of them has the slot again.
    #[inline]
    pub fn arena(&self) -> usize {
        // Relaxed: the participant's own thread has written it.
        self.epochs.shared.slots[self.slot]
            .arena
            .load(Ordering::Relaxed)
    }

    #[inline]
    fn limbo(&self) -> &Limbo {
        &self.epochs.shared.limbos[self.arena()]
    }

    /// The epochs this participant belongs to.
    #[inline]
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// The epoch published on entering; 0 when not active.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.published.get()
    }

    /// Publishes the current global epoch and returns it. From here to [`Participant::leave`],
    /// what this participant finds in shared memory is not freed. Entering while active moves on
    /// to the current epoch: addresses found before are then void.
    #[inline]
    pub fn enter(&self) -> u64 {
        let shared = &*self.epochs.shared;
        let slot = &shared.slots[self.slot];
        let mut epoch = shared.global.0.load(Ordering::Acquire);
        loop {
            // The publication must be visible to `advance` before this participant reads any
            // shared pointer, which takes a barrier between a store and later loads; the fence
            // in `advance` is the other side. On x86-64 a swap is that barrier and costs half of
            // the fence instruction; its acquire keeps the compiler from hoisting later loads.
            // The release half pairs with `advance`, for entering while active.
            if cfg!(target_arch = "x86_64") {
                slot.published.swap(epoch, Ordering::SeqCst);
            } else {
                slot.published.store(epoch, Ordering::Release);
                fence(Ordering::SeqCst);
            }
            // If the epoch moved on twice between the load and the publication, the publication
            // is too old for Silo's rule; publishing the newer one repairs that.
            let now = shared.global.0.load(Ordering::Acquire);
            if now == epoch {
                break;
            }
            epoch = now;
        }
        // After the barrier above; see `Epochs::seize`.
        if slot.seized.load(Ordering::SeqCst) {
            self.wait_while_seized();
        }
        self.published.set(epoch);
        epoch
    }

    #[cold]
    fn wait_while_seized(&self) {
        let mut spinner = Spinner::default();
        // Acquire pairs with the release when the seizure is dropped.
        while self.epochs.shared.slots[self.slot]
            .seized
            .load(Ordering::Acquire)
        {
            spinner.spin();
        }
    }

    /// Ends what [`Participant::enter`] began: this participant holds no address any more. Before
    /// that it frees its share of what waits: as much as it retired since it entered, twice over,
    /// and a few objects more.
    #[inline]
    pub fn leave(&self) {
        if self.limbo().oldest_tag.load(Ordering::Relaxed) <= self.epochs.reclaimable() {
            self.free_share();
        }
        self.withdraw();
    }

    /// Shows that this participant is not active.
    #[inline]
    fn withdraw(&self) {
        self.retired.set(Amount::default());
        self.published.set(INACTIVE);
        // Release pairs with the acquire in `advance`: no read of an unlinked object may sink
        // below this store, or its memory could be reused under the reader.
        self.epochs.shared.slots[self.slot]
            .published
            .store(INACTIVE, Ordering::Release);
    }

    /// Whether this participant is between [`Participant::enter`] and [`Participant::leave`].
    #[inline]
    pub fn is_active(&self) -> bool {
        self.published.get() != INACTIVE
    }

    /// Takes over an unlinked object, to be freed when this participant leaves or
    /// [collects](Participant::collect) later, or by another one when this one is idle or dropped.
    ///
    /// # Safety
    /// The object is unlinked, and no other call retires it. Calling `reclaim` once with these
    /// arguments, on any thread, is sound from the moment that no participant that is active now is
    /// active any more. The context must live until then; [`Epochs::retire_owner`] knows when.
    #[inline]
    pub unsafe fn retire(&self, retired: Retired) {
        if !self.is_active() {
            // A participant that enters after the barrier in `enter` sees the unlinking; one that
            // entered before it had published at most the epoch read after it.
            // SAFETY: this participant uses the arena, and is active.
            let push = || unsafe { self.limbo().push(self.published.get(), retired) };
            return self.while_active(push);
        }
        // No participant can have published more while this one is active (invariant 1), and
        // one that enters later than this participant leaves sees the unlinking.
        let tag = self.published.get() + 1;
        // SAFETY: this participant uses the arena, and is active.
        unsafe { self.limbo().push(tag, retired) };
        let mut sum = self.retired.get();
        sum.add(retired.bytes);
        self.retired.set(sum);
    }

    /// Calls `body` while this participant, which is not active, is.
    #[cold]
    fn while_active<R>(&self, body: impl FnOnce() -> R) -> R {
        self.enter();
        let result = body();
        self.withdraw();
        result
    }

    /// The number of objects that wait in the arena that this participant uses.
    pub fn waiting(&self) -> usize {
        self.limbo().waiting().objects
    }

    /// Frees what [`Participant::leave`] promises; something can be freed.
    #[cold]
    fn free_share(&self) {
        if !self.is_active() {
            // It has left already; what is kept for it may be seized.
            return;
        }
        let retired = self.retired.get();
        let share = Amount {
            objects: 2 * retired.objects + FREED_MIN,
            bytes: 2 * retired.bytes,
        };
        let reclaimable = self.epochs.reclaimable();
        let freed = self.free_own(reclaimable, share);
        let oldest = self.limbo().oldest_tag.load(Ordering::Relaxed);
        if oldest <= reclaimable.saturating_sub(STALE_EPOCHS) {
            // SAFETY: this participant uses the arena, and is active.
            unsafe { self.epochs.shared.orphans.adopt(self.limbo()) };
        } else if freed.objects < share.objects && !self.epochs.shared.orphans.is_empty() {
            self.free_orphans(reclaimable, share.objects - freed.objects);
        }
    }

    /// Frees at most `limit` objects that no participant can hold any more: its own first, then
    /// orphans. Returns how many.
    pub fn collect(&self, limit: usize) -> usize {
        if !self.is_active() {
            return self.while_active(|| self.collect(limit));
        }
        let reclaimable = self.epochs.reclaimable();
        let most = Amount {
            objects: limit,
            bytes: 0,
        };
        let mut freed = 0;
        if self.limbo().oldest_tag.load(Ordering::Relaxed) <= reclaimable {
            freed += self.free_own(reclaimable, most).objects;
        }
        while freed < limit && !self.epochs.shared.orphans.is_empty() {
            match self.free_orphans(reclaimable, limit - freed) {
                0 => break,
                more => freed += more,
            }
        }
        freed
    }

    /// Frees what waits in the arena, oldest first, until `limit` is reached.
    fn free_own(&self, reclaimable: u64, limit: Amount) -> Amount {
        let limbo = self.limbo();
        let mut freed = Amount::default();
        while !freed.reaches(limit) {
            // SAFETY: this participant uses the arena, and is active.
            let Some(retired) = (unsafe { limbo.pop(reclaimable) }) else {
                break;
            };
            // SAFETY: the object's grace period has passed; the caller of `retire` promises that
            // this call is sound from then on.
            unsafe { (retired.reclaim)(retired.context, retired.pointer, self.arena()) };
            freed.add(retired.bytes);
        }
        // SAFETY: as above.
        unsafe { limbo.show_oldest() };
        freed
    }

    /// Frees at most `limit` objects of a batch of orphans. Returns how many.
    #[cold]
    fn free_orphans(&self, reclaimable: u64, limit: usize) -> usize {
        let (orphans, limbo) = (&self.epochs.shared.orphans, self.limbo());
        let Some(mut batch) = orphans.take(reclaimable, limbo) else {
            return 0;
        };
        let mut freed = Amount::default();
        while freed.objects < limit
            && let Some(&(tag, retired)) = batch.front()
            && tag <= reclaimable
        {
            batch.pop_front();
            // SAFETY: the object's grace period has passed; the caller of `retire` promises that
            // this call is sound from then on.
            unsafe { (retired.reclaim)(retired.context, retired.pointer, self.arena()) };
            freed.add(retired.bytes);
        }
        orphans.put_back(batch, freed);
        // SAFETY: this participant uses the arena, and is active.
        unsafe { limbo.show_oldest() };
        freed.objects
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let shared = &*self.epochs.shared;
        // SAFETY: this is the thread that uses it.
        unsafe { self.epochs.take_back(self.slot) };
        if !self.is_active() {
            self.enter();
        }
        // SAFETY: this participant uses the arena, and is active.
        unsafe { shared.orphans.adopt(&shared.limbos[self.slot]) };
        let slot = &shared.slots[self.slot];
        slot.published.store(INACTIVE, Ordering::Release);
        // Release pairs with the acquire in `register`.
        slot.taken.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Participant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Participant")
            .field("slot", &self.slot)
            .field("epoch", &self.published.get())
            .field("waiting", &self.waiting())
            .finish()
    }
}

// SAFETY: the raw pointers among the orphans are only handed to their reclaim functions, which
// the contract of `retire` allows on any thread; everything else is atomic or behind a mutex.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}
