//! Epochs: the global epoch counter, the participants that run in it, and the garbage that
//! waits until nobody can see it any more (Silo §4.1, §4.8).
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
//! 3. An object with tag `t` is *reclaimable* when `E >= t + 2`: whoever could hold it had
//!    published at most `t`, and `E` reached `t + 2` only after all of those had left.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use kiln_platform::memory::name_range;
use kiln_platform::sync::{Arc, Mutex, lock};

/// The published value of a participant that is not active; no epoch has this number.
const INACTIVE: u64 = 0;

/// The value of [`Slot::oldest_tag`] when nothing waits.
const NOTHING_WAITS: u64 = u64::MAX;

/// What one participant shows to the others, on cache lines of its own (two, because processors
/// fetch lines in pairs).
#[repr(align(128))]
struct Slot {
    /// The published epoch, or [`INACTIVE`].
    published: AtomicU64,
    /// The number of the memory that the participant uses; written by its own thread.
    memory: AtomicUsize,
    /// Whether a [`Participant`] owns this slot.
    taken: AtomicBool,
}

/// What waits in a memory, on cache lines of its own; see [`Participant::memory`].
#[repr(align(128))]
struct Limbo {
    /// Retired objects with their tags. Tags grow from front to back but for one step back, when a retirement outside an
    /// epoch follows one inside, or somebody else uses the memory; that only delays.
    objects: UnsafeCell<VecDeque<(u64, Retired)>>,
    /// The tag of the oldest one, or [`NOTHING_WAITS`].
    oldest_tag: AtomicU64,
    /// Whether the memory, which is nobody's own, is lent to a participant.
    is_lent: AtomicBool,
}

/// The global counter on lines of its own: everybody reads it, once in some milliseconds it moves.
#[repr(align(128))]
struct Global(AtomicU64);

/// An object that is freed as a whole, with everything that was retired into it.
struct RetiredOwner {
    /// The global epoch when the owner was retired.
    epoch: u64,
    owner: Box<dyn Send>,
}

struct Shared {
    global: Global,
    slots: Box<[Slot]>,
    /// Slots at and above this position were never taken, so that scans may end here.
    slots_used: AtomicUsize,
    /// By memory.
    limbos: Box<[Limbo]>,
    /// As `slots_used`, of the memories that are lent.
    lent_used: AtomicUsize,
    /// What participants left behind when they were dropped, each with its tag.
    orphans: Mutex<VecDeque<(u64, Retired)>>,
    /// The length of `orphans`, so that collecting looks at the mutex only when there are any.
    orphan_count: AtomicUsize,
    owners: Mutex<Vec<RetiredOwner>>,
    owner_count: AtomicUsize,
    /// Whether a participant broke down.
    is_broken: AtomicBool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Participants have a handle, so there are none, and nobody has an address any more. What belongs to
        // a context is memory inside of it.
        let orphans = std::mem::take(&mut *lock(&self.orphans));
        let limbos = self.limbos.iter_mut();
        let waiting = limbos.flat_map(|limbo| std::mem::take(limbo.objects.get_mut()));
        for (_, retired) in orphans.into_iter().chain(waiting) {
            if retired.context.is_null() {
                // SAFETY: by the contract of `retire`, as nobody is active.
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
    /// As many memories can be lent ([`Epochs::lend`]).
    pub fn new(participants: usize) -> Epochs {
        let slots = (0..participants)
            .map(|slot| Slot {
                published: AtomicU64::new(INACTIVE),
                memory: AtomicUsize::new(slot),
                taken: AtomicBool::new(false),
            })
            .collect();
        let limbos = (0..2 * participants)
            .map(|_| Limbo {
                objects: UnsafeCell::default(),
                oldest_tag: AtomicU64::new(NOTHING_WAITS),
                is_lent: AtomicBool::new(false),
            })
            .collect();
        let epochs = Epochs {
            shared: Arc::new(Shared {
                global: Global(AtomicU64::new(1)),
                slots,
                slots_used: AtomicUsize::new(0),
                limbos,
                lent_used: AtomicUsize::new(0),
                orphans: Mutex::new(VecDeque::new()),
                orphan_count: AtomicUsize::new(0),
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

    /// Lets the participant with this slot use the `number`-th of the memories that are lent in place of its own, unless there
    /// is none or somebody has it; see [`Participant::memory`]. Whether it does.
    ///
    /// # Safety
    /// Called on the thread that uses the participant, and between its operations.
    #[inline]
    pub unsafe fn lend(&self, slot: usize, number: usize) -> bool {
        let memory = self.shared.slots.len() + number;
        let Some(limbo) = self.shared.limbos.get(memory) else {
            return false;
        };
        // Acquire pairs with the release in `take_back`: the memory is as who had it before has left it.
        if limbo.is_lent.load(Ordering::Relaxed) || limbo.is_lent.swap(true, Ordering::Acquire) {
            return false;
        }
        if self.shared.lent_used.load(Ordering::Relaxed) <= number {
            self.shared
                .lent_used
                .fetch_max(number + 1, Ordering::SeqCst);
        }
        self.shared.slots[slot]
            .memory
            .store(memory, Ordering::Relaxed);
        true
    }

    /// Ends what [`Epochs::lend`] began, if it did: the participant uses its own memory again.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn take_back(&self, slot: usize) {
        let lender = &self.shared.slots[slot].memory;
        let memory = lender.load(Ordering::Relaxed);
        if memory != slot {
            lender.store(slot, Ordering::Relaxed);
            self.shared.limbos[memory]
                .is_lent
                .store(false, Ordering::Release);
        }
    }

    /// Gives what waits in the `number`-th of the memories that are lent to whoever collects, unless somebody has it.
    pub fn clear_lent(&self, number: usize) {
        let Some(limbo) = self.shared.limbos.get(self.shared.slots.len() + number) else {
            return;
        };
        // Acquire: as in `lend`.
        if !limbo.is_lent.swap(true, Ordering::Acquire) {
            self.abandon(limbo);
            limbo.is_lent.store(false, Ordering::Release);
        }
    }

    /// Gives what waits to whoever collects. The caller has the memory.
    fn abandon(&self, limbo: &Limbo) {
        // SAFETY: as the caller has the memory.
        let objects = unsafe { &mut *limbo.objects.get() };
        if !objects.is_empty() {
            let mut orphans = lock(&self.shared.orphans);
            orphans.extend(objects.drain(..));
            self.shared
                .orphan_count
                .store(orphans.len(), Ordering::Relaxed);
        }
        limbo.oldest_tag.store(NOTHING_WAITS, Ordering::Release);
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
                    not_sync: PhantomData,
                });
            }
        }
        None
    }

    /// Says for good that a participant has panicked in the middle of its work: what it holds it will hold for ever.
    pub fn break_down(&self) {
        // Release pairs with the acquire in `is_broken`: a participant that gives up sees what the caller did before this.
        self.shared.is_broken.store(true, Ordering::Release);
    }

    /// Whether a participant broke down. A participant that waits for others, or fails because of them, looks at this now
    /// and then, and gives up.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.shared.is_broken.load(Ordering::Acquire)
    }

    /// The global epoch.
    ///
    /// Acquire pairs with the release in [`Epochs::advance`]: who sees epoch `E` also sees what
    /// every participant did before it let `E` begin.
    #[inline]
    pub fn current(&self) -> u64 {
        self.shared.global.0.load(Ordering::Acquire)
    }

    /// The newest tag whose objects nobody can hold any more; 0 when there is none.
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
        // Release hands on what the acquires above gathered to whoever sees the new epoch.
        let moved = shared
            .global
            .0
            .compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if shared.owner_count.load(Ordering::Relaxed) > 0 {
            self.drop_owners();
        }
        moved
    }

    /// Drops `owner` once nobody can reach it: when every participant that was active has left,
    /// and nothing that was retired until then, which may name `owner` as its context, waits in
    /// any limbo. The owner must be unlinked already. It is dropped inside a later
    /// [`Epochs::advance`]; with participants that are idle and never call
    /// [`Participant::collect`], that may be never.
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
        let oldest = own[..used]
            .iter()
            .chain(lent)
            // Acquire pairs with the release in `collect`: the reclaim functions that ran before
            // have finished with their contexts.
            .map(|limbo| limbo.oldest_tag.load(Ordering::Acquire))
            .min()
            .unwrap_or(NOTHING_WAITS);
        let mut ready = Vec::new();
        {
            let orphans = lock(&shared.orphans);
            let oldest = orphans.iter().map(|&(tag, _)| tag).fold(oldest, u64::min);
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

/// An unlinked object and how to free it.
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    /// The object.
    pub pointer: NonNull<u8>,
    /// Frees the object. The arguments are `context`, `pointer` and the memory of the participant
    /// that collects, whose free lists the function may use.
    pub reclaim: unsafe fn(context: *const (), pointer: NonNull<u8>, memory: usize),
    /// What `reclaim` needs to know, usually the slab. The object is a part of it: what still waits when the
    /// last handle to the epochs is dropped goes with its context, and is only freed by itself if this is null.
    pub context: *const (),
}

/// One worker's part in the epochs: its published epoch and its garbage. It may move to another
/// thread but is used by one at a time.
pub struct Participant {
    epochs: Epochs,
    slot: usize,
    /// What the slot shows, kept here to be read without touching shared memory.
    published: Cell<u64>,
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

    /// The number of the memory that this participant uses at present, below twice [`Epochs::participants_max`]: its free lists, the
    /// part of each slab that new cells come from, and what waits for its epoch. No other participant uses the same at the same
    /// time. It is that of its slot, unless another one is lent to it ([`Epochs::lend`]): participants that take turns on a core
    /// use the core's one after the other, which is warm and in which nothing waits for the next turn of one of them.
    #[inline]
    pub fn memory(&self) -> usize {
        // Relaxed: the participant's own thread has written it.
        self.epochs.shared.slots[self.slot]
            .memory
            .load(Ordering::Relaxed)
    }

    #[inline]
    fn limbo(&self) -> &Limbo {
        &self.epochs.shared.limbos[self.memory()]
    }

    /// Calls `body` with what waits in the memory. It retires nothing.
    #[inline]
    fn with_objects<R>(&self, body: impl FnOnce(&mut VecDeque<(u64, Retired)>) -> R) -> R {
        // SAFETY: no other participant uses the memory, this one is used by one thread, and `body` comes to no other access.
        body(unsafe { &mut *self.limbo().objects.get() })
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
        self.published.set(epoch);
        epoch
    }

    /// Ends what [`Participant::enter`] began: this participant holds no address any more.
    #[inline]
    pub fn leave(&self) {
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

    /// Takes over an unlinked object, to be freed by a later [`Participant::collect`] of this
    /// participant, or of another one when this one is dropped first.
    ///
    /// # Safety
    /// The object is unlinked, nobody retires it twice, and calling `reclaim` once with these
    /// arguments, on any thread, is sound from the moment that no participant that is active now
    /// is active any more. The context must live until then; [`Epochs::retire_owner`] knows when.
    #[inline]
    pub unsafe fn retire(&self, retired: Retired) {
        let tag = if self.is_active() {
            // No participant can have published more while this one is active (invariant 1), and
            // one that enters later than this participant leaves sees the unlinking.
            self.published.get() + 1
        } else {
            // Whoever enters after this fence sees the unlinking; whoever entered before it had
            // published at most the epoch read after it. Pairs with the fence in `enter`.
            fence(Ordering::SeqCst);
            self.epochs.current()
        };
        self.with_objects(|objects| {
            if objects.is_empty() {
                // Relaxed is enough: `drop_owners` looks only after this participant has left the
                // epoch, and leaving releases.
                self.limbo().oldest_tag.store(tag, Ordering::Relaxed);
            }
            objects.push_back((tag, retired));
        });
    }

    /// The number of objects that wait in the memory that this participant uses.
    pub fn waiting(&self) -> usize {
        self.with_objects(|objects| objects.len())
    }

    /// Frees at most `limit` objects that nobody can hold any more: its own first, then those of
    /// dropped participants. Returns how many.
    #[inline]
    pub fn collect(&self, limit: usize) -> usize {
        let reclaimable = self.epochs.reclaimable();
        let mut freed = 0;
        if self.waiting() > 0 {
            while freed < limit {
                // The access ends before the call, because `reclaim` may retire something itself.
                let next = self.with_objects(|objects| match objects.front() {
                    Some(&(tag, _)) if tag <= reclaimable => objects.pop_front(),
                    _ => None,
                });
                let Some((_, retired)) = next else { break };
                // SAFETY: by the contract of `retire`, for the grace period has passed.
                unsafe { (retired.reclaim)(retired.context, retired.pointer, self.memory()) };
                freed += 1;
            }
            if freed > 0 {
                let oldest = self
                    .with_objects(|objects| objects.front().map_or(NOTHING_WAITS, |&(tag, _)| tag));
                // Release pairs with the acquire in `drop_owners`: the calls above are over.
                self.limbo().oldest_tag.store(oldest, Ordering::Release);
            }
        }
        if freed < limit && self.epochs.shared.orphan_count.load(Ordering::Relaxed) > 0 {
            freed += self.collect_orphans(limit - freed, reclaimable);
        }
        freed
    }

    #[cold]
    fn collect_orphans(&self, limit: usize, reclaimable: u64) -> usize {
        let shared = &*self.epochs.shared;
        // Whoever holds the lock is collecting too; waiting for it would gain nothing.
        let Ok(mut orphans) = shared.orphans.try_lock() else {
            return 0;
        };
        let mut freed = 0;
        while freed < limit {
            match orphans.front() {
                Some(&(tag, _)) if tag <= reclaimable => {}
                _ => break,
            }
            let Some((_, retired)) = orphans.pop_front() else {
                break;
            };
            // SAFETY: by the contract of `retire`, for the grace period has passed. The lock is
            // held, so that `drop_owners` cannot miss an object that is being freed; a reclaim
            // function only touches its own slab and retires with this participant at most.
            unsafe { (retired.reclaim)(retired.context, retired.pointer, self.memory()) };
            freed += 1;
        }
        shared.orphan_count.store(orphans.len(), Ordering::Relaxed);
        freed
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let shared = &*self.epochs.shared;
        // SAFETY: this is the thread that uses it.
        unsafe { self.epochs.take_back(self.slot) };
        self.epochs.abandon(&shared.limbos[self.slot]);
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
