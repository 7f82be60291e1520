//! A limbo: the retired objects of one arena, in the order in which they can be freed.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The value of [`Limbo::oldest_tag`] when nothing waits.
pub(super) const NOTHING_WAITS: u64 = u64::MAX;

/// Capacity in objects that a limbo has at most when its objects were handed over: enough for the
/// steady state, whatever it grew to.
const KEPT_CAPACITY: usize = 4_096;

/// An unlinked object and how to free it.
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    /// The object.
    pub pointer: NonNull<u8>,
    /// Frees the object. The arguments are `context`, `pointer` and the arena of the participant
    /// that collects, whose free lists the function may use.
    pub reclaim: unsafe fn(context: *const (), pointer: NonNull<u8>, arena: usize),
    /// What `reclaim` needs to know, usually the slab. The object is a part of it: what still waits
    /// when the last handle to the epochs is dropped goes with its context, and is only freed by
    /// itself if this is null.
    pub context: *const (),
    /// The bytes that come back when the object is freed.
    pub bytes: usize,
}

/// An object that waits, with the epoch it is tagged with.
pub(super) type Tagged = (u64, Retired);

/// Objects, and the bytes that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: usize,
}

impl Amount {
    #[inline(always)]
    pub(super) fn add(&mut self, bytes: usize) {
        self.objects += 1;
        self.bytes += bytes;
    }

    /// What these objects take together.
    pub(super) fn of(objects: &VecDeque<Tagged>) -> Amount {
        let mut amount = Amount::default();
        objects
            .iter()
            .for_each(|(_, retired)| amount.add(retired.bytes));
        amount
    }

    /// Whether it has reached both figures of `other`.
    #[inline(always)]
    pub(super) fn reaches(self, other: Amount) -> bool {
        self.objects >= other.objects && self.bytes >= other.bytes
    }
}

/// What waits in an arena, on cache lines of its own; see
/// [`Participant::arena`](super::Participant::arena).
#[repr(align(128))]
pub(super) struct Limbo {
    /// Accessed by the participant that uses the arena, while it is active; or by the holder of
    /// the participant's seizure, or of the loan.
    queue: UnsafeCell<Queue>,
    /// The tag of the oldest object, or [`NOTHING_WAITS`]. Never newer than that of any object that
    /// waits.
    pub oldest_tag: AtomicU64,
    /// What waits, for reports.
    objects: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether the arena, which belongs to no participant, is lent to one.
    pub is_lent: AtomicBool,
}

/// Retired objects with their tags, which grow from front to back.
#[derive(Default)]
struct Queue {
    objects: VecDeque<Tagged>,
    /// The tag of the object that came last.
    newest_tag: u64,
}

impl Limbo {
    pub fn new() -> Limbo {
        Limbo {
            queue: UnsafeCell::default(),
            oldest_tag: AtomicU64::new(NOTHING_WAITS),
            objects: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            is_lent: AtomicBool::new(false),
        }
    }

    /// Calls `body` with the queue.
    ///
    /// # Safety
    /// The caller has the arena, and `body` comes to no other access to this limbo.
    #[inline(always)]
    unsafe fn with<R>(&self, body: impl FnOnce(&mut Queue) -> R) -> R {
        // SAFETY: the caller has the arena, so no other thread accesses the queue, and `body` does
        // not reach it by another way.
        body(unsafe { &mut *self.queue.get() })
    }

    /// Puts an object behind the others.
    ///
    /// # Safety
    /// The caller has the arena.
    #[inline]
    pub unsafe fn push(&self, tag: u64, retired: Retired) {
        // SAFETY: the caller has the arena.
        unsafe {
            self.with(|queue| {
                // A newer tag than necessary only delays.
                let tag = tag.max(queue.newest_tag);
                queue.newest_tag = tag;
                if queue.objects.is_empty() {
                    // Relaxed is enough: `drop_owners` looks only after the participant has left
                    // the epoch, and leaving releases.
                    self.oldest_tag.store(tag, Ordering::Relaxed);
                }
                queue.objects.push_back((tag, retired));
            });
        }
        self.show(1, retired.bytes);
    }

    /// The oldest object, if its tag is `reclaimable` or older. The caller calls
    /// [`Limbo::show_oldest`] when it has freed what it took.
    ///
    /// # Safety
    /// The caller has the arena.
    #[inline]
    pub unsafe fn pop(&self, reclaimable: u64) -> Option<Retired> {
        // SAFETY: the caller has the arena.
        let next = unsafe {
            self.with(|queue| match queue.objects.front() {
                Some(&(tag, _)) if tag <= reclaimable => queue.objects.pop_front(),
                _ => None,
            })
        };
        let (_, retired) = next?;
        self.show(usize::MAX, retired.bytes.wrapping_neg());
        Some(retired)
    }

    /// Shows the tag of what is the oldest object now.
    ///
    /// # Safety
    /// The caller has the arena.
    #[inline]
    pub unsafe fn show_oldest(&self) {
        // SAFETY: the caller has the arena.
        let front = unsafe { self.with(|queue| queue.objects.front().map(|&(tag, _)| tag)) };
        // Release pairs with the acquire in `drop_owners`: the reclaim functions have returned.
        self.oldest_tag
            .store(front.unwrap_or(NOTHING_WAITS), Ordering::Release);
    }

    /// Takes all objects out. `oldest_tag` still counts them.
    ///
    /// # Safety
    /// The caller has the arena.
    pub unsafe fn take_all(&self) -> VecDeque<Tagged> {
        // SAFETY: the caller has the arena.
        let objects = unsafe {
            self.with(|queue| {
                let room = queue.objects.capacity().min(KEPT_CAPACITY);
                std::mem::replace(&mut queue.objects, VecDeque::with_capacity(room))
            })
        };
        self.objects.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        objects
    }

    /// The objects, for a caller that has the limbo alone.
    pub fn objects_mut(&mut self) -> &mut VecDeque<Tagged> {
        &mut self.queue.get_mut().objects
    }

    /// What waits; exact for the participant that uses the arena.
    pub fn waiting(&self) -> Amount {
        Amount {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Adds to the figures, which the user of the arena alone writes.
    #[inline(always)]
    fn show(&self, objects: usize, bytes: usize) {
        let shown = self.objects.load(Ordering::Relaxed);
        self.objects
            .store(shown.wrapping_add(objects), Ordering::Relaxed);
        let shown = self.bytes.load(Ordering::Relaxed);
        self.bytes
            .store(shown.wrapping_add(bytes), Ordering::Relaxed);
    }
}
