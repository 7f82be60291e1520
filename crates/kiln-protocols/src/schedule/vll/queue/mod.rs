//! The TxnQueue: all transactions in flight, in the order of their requests (VLL §2.1).
//!
//! Its latch is the paper's critical section: all requests of a transaction are counted, and it
//! gets its entry, under it. It is a list through an array of nodes, so that a transaction that
//! ends leaves it from the middle, and its capacity is that of the array; a transaction that finds
//! it full is not in it and is tried again.
//!
//! Invariants, under the latch:
//!
//! - A transaction in the queue has counted all requests of its plan, and does not take one back
//!   before it has ended or was withdrawn.
//! - A *waiting* transaction is in the queue with its context; one that runs is there without.
//! - So is one that *lingers*: it has ended, and let its locks go, but its worker takes it out of
//!   the queue only with its next step there. That happens where no transaction waited when it
//!   ended, and spares a critical section for each transaction. A worker that finds it at the head
//!   while others wait takes it out. Its plan stays as it is until its worker knows that it is out.
//! - A transaction that waits conflicts with one before it, or did when it came, or with one
//!   outside of the queue that had met a record before it came.
//! - No transaction behind it, or from outside, gets what it asks for.
//!
//! So the first one may run as soon as none outside has any of its records: all before it have
//! ended.
//!
//! A transaction of several statements is outside, and its client may think. A transaction that
//! waits for one at the head would keep all from running that are blocked behind it, whatever these
//! want. So it is *barred*: it leaves the queue, and comes again when no transaction outside has
//! what it wants.

mod list;
#[cfg(test)]
mod tests;

use std::ptr::{slice_from_raw_parts, without_provenance};

use kiln_platform::atomic::{AtomicBool, AtomicUsize, Ordering, prefetch_plain};
use kiln_platform::plain;
use kiln_platform::schedule::point;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::time;

use list::{List, NONE, Node, node, node_mut};

use super::context::{Context, QueueEntry, Stage};
use super::ledger::{Analysis, Ledger};
use crate::canary::Canary;

/// So long the first of the queue waits for what statements have: longer than most of them take to
/// end whose client does not think.
const BARRED_NS: u64 = 200_000;

/// The list with its latch, on cache lines of its own.
#[repr(align(128))]
struct Latched<L: Ledger>(Mutex<List<L>>);

/// What those without the latch look at, again and again: on a cache line of its own, which all of
/// them keep as long as nothing changes. Written under the latch.
#[repr(align(128))]
struct Hints {
    /// Whether the first transaction waits.
    head_waits: AtomicBool,
    /// Whether new transactions are welcome.
    has_room: AtomicBool,
    /// Whether no transaction waits, nor wants to be alone.
    is_calm: AtomicBool,
    /// How many transactions have left; while none waits it is behind.
    departures: AtomicUsize,
}

/// Shows `value` to those without the latch, if it is another one.
#[inline]
fn show(hint: &AtomicBool, value: bool) {
    // Relaxed: hints; who acts on them takes the latch.
    if hint.load(Ordering::Relaxed) != value {
        hint.store(value, Ordering::Relaxed);
    }
}

/// The queue; see the module's documentation.
pub(super) struct TxnQueue<L: Ledger> {
    list: Latched<L>,
    hints: Hints,
    /// The address of the nodes, for a worker that asks for one of them before it has the latch.
    nodes: usize,
    /// Whether a transaction's requests are taken back when it leaves; else they were before.
    takes_back: bool,
}

/// What became of a transaction that came to the queue.
pub(super) enum Entered<L: Ledger> {
    /// It has all its locks: run it.
    Free(Box<Context<L>>),
    /// It waits in the queue.
    Blocked(QueueEntry),
    /// It is not in the queue.
    Full(Box<Context<L>>),
    /// Nor this one: statements still have what it wants.
    Barred(Box<Context<L>>),
}

/// Who comes to the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guest {
    /// A transaction.
    Any,
    /// The one for whom all others are kept out.
    Alone,
}

impl<L: Ledger> TxnQueue<L> {
    /// With room for so many transactions.
    pub fn new(ledger: L, capacity: usize, takes_back: bool) -> TxnQueue<L> {
        let list = List::new(ledger, capacity);
        TxnQueue {
            nodes: list.nodes.as_ptr().addr(),
            list: Latched(Mutex::new(list)),
            hints: Hints {
                head_waits: AtomicBool::new(false),
                has_room: AtomicBool::new(true),
                is_calm: AtomicBool::new(true),
                departures: AtomicUsize::new(0),
            },
            takes_back,
        }
    }

    /// Calls `body` with the locks, under the latch.
    pub fn with_ledger<R>(&self, body: impl FnOnce(&mut L) -> R) -> R {
        body(&mut lock(&self.list.0).ledger)
    }

    /// Whether a transaction's requests are taken back when it leaves.
    pub fn takes_back(&self) -> bool {
        self.takes_back
    }

    /// Whether new transactions are welcome; retries come in any case.
    #[inline]
    pub fn has_room(&self) -> bool {
        // Relaxed: a hint; a transaction too many waits a little longer.
        self.hints.has_room.load(Ordering::Relaxed)
    }

    /// Whether a transaction that ends now may linger: none waits behind it.
    #[inline]
    pub fn may_linger(&self) -> bool {
        // Relaxed: a hint.
        !self.takes_back && self.hints.is_calm.load(Ordering::Relaxed)
    }

    /// Counts a transaction's requests and gives it its entry; before that the one at `lingers`
    /// leaves.
    pub fn enter(
        &self,
        mut context: Box<Context<L>>,
        lingers: Option<QueueEntry>,
        guest: Guest,
    ) -> Entered<L> {
        if let Some(entry) = lingers {
            // Its cache line, which those of the other workers' transactions share, and that of the
            // latch come together.
            let nodes = without_provenance::<Node<L>>(self.nodes);
            let node = nodes.wrapping_add(entry.node as usize);
            prefetch_plain(slice_from_raw_parts(node, 1), size_of::<Node<L>>());
        }
        let mut guard = lock(&self.list.0);
        let list = &mut *guard;
        if let Some(entry) = lingers {
            list.unlink_lingering(entry);
        }
        list.pass_lingering();
        if list.free == NONE || list.is_alone && guest != Guest::Alone {
            self.show(list);
            return Entered::Full(context);
        }
        if std::mem::take(&mut context.was_barred) && !list.ledger.is_left_to(context.plan.wanted())
        {
            self.show(list);
            context.was_barred = true;
            return Entered::Barred(context);
        }
        let number = list.free;
        // A transaction that is alone has what it asks for, even where two of its own requests seem
        // to be in each other's way.
        let is_free = list.ledger.request(number, context.plan.wanted()) || guest == Guest::Alone;
        point("vll.requested");
        let last = std::mem::replace(&mut list.last, number);
        let node = node_mut(&mut list.nodes, number);
        let next_free = std::mem::replace(&mut node.next, NONE);
        node.previous = last;
        node.sequence += 1;
        context.plan.enters();
        node.show(&context.plan);
        let entry = QueueEntry {
            node: number,
            sequence: node.sequence,
        };
        context.entry = entry;
        plain::writes_one(&raw const context.entry);
        let entered = match is_free {
            true => Entered::Free(context),
            false => {
                node.waiting = Some(context);
                Entered::Blocked(entry)
            }
        };
        list.free = next_free;
        match last {
            NONE => list.first = number,
            last => node_mut(&mut list.nodes, last).next = number,
        }
        list.length += 1;
        list.waiting += u32::from(!is_free);
        self.show(list);
        entered
    }

    /// Whether the first transaction seems to wait.
    #[inline]
    pub fn head_waits(&self) -> bool {
        // Relaxed: a hint, looked at again and again.
        self.hints.head_waits.load(Ordering::Relaxed)
    }

    /// Takes the first transaction out of its wait, if it waits and may run, or out of the queue,
    /// if it is barred: see its stage.
    #[inline]
    pub fn take_head(&self) -> Option<Box<Context<L>>> {
        if !self.head_waits() {
            return None;
        }
        self.promote(&mut lock(&self.list.0))
    }

    fn promote(&self, list: &mut List<L>) -> Option<Box<Context<L>>> {
        if list.first == NONE {
            return None;
        }
        let first = node(&list.nodes, list.first).waiting.as_ref()?;
        if !list.ledger.is_left_to(first.plan.wanted()) {
            let entry = first.entry;
            return self.bar_first(list, entry);
        }
        let context = node_mut(&mut list.nodes, list.first).waiting.take();
        list.waiting -= 1;
        self.show(list);
        context
    }

    /// Takes the first transaction out of the queue if it waits for one outside, and has done so
    /// for some time.
    #[cold]
    fn bar_first(&self, list: &mut List<L>, entry: QueueEntry) -> Option<Box<Context<L>>> {
        if list.open == 0 {
            return None;
        }
        let now_ns = time::now_ns();
        match list.barred {
            Some((barred, since_ns)) if barred == entry => {
                let is_long = now_ns - since_ns >= BARRED_NS;
                is_long.then(|| self.bar(list, entry.node))
            }
            _ => {
                list.barred = Some((entry, now_ns));
                None
            }
        }
    }

    /// Takes a transaction out of the queue that waits for statements.
    fn bar(&self, list: &mut List<L>, node: u32) -> Box<Context<L>> {
        let context = self.withdraw_waiting(list, node);
        let mut context = context.expect("only those that wait are barred");
        (context.stage, context.was_barred) = (Stage::Barred, true);
        context
    }

    /// Takes a transaction out of the queue that has ended and let its locks go. Returns the first
    /// one, if it waits and may run.
    pub fn leave(&self, entry: QueueEntry) -> Option<Box<Context<L>>> {
        let mut list = lock(&self.list.0);
        self.take_back(&mut list, entry);
        list.unlink(entry);
        list.limit.ended();
        self.let_first_run(&mut list)
    }

    /// As [`TxnQueue::leave`], of one that lingers.
    pub fn leave_at_last(&self, entry: QueueEntry) -> Option<Box<Context<L>>> {
        let mut list = lock(&self.list.0);
        list.unlink_lingering(entry);
        self.let_first_run(&mut list)
    }

    /// A transaction has left: takes the first one out of its wait, if it waits and may run.
    #[inline]
    fn let_first_run(&self, list: &mut List<L>) -> Option<Box<Context<L>>> {
        list.pass_lingering();
        self.show(list);
        match self.head_waits() {
            true => self.promote(list),
            false => None,
        }
    }

    /// Takes out one that lingers, for a worker that serves no more.
    pub fn forget(&self, entry: QueueEntry) {
        let mut list = lock(&self.list.0);
        list.unlink_lingering(entry);
        self.show(&list);
    }

    /// Takes out the transactions that linger before one that waits, of all workers; returns
    /// whether there were any.
    pub fn pass_lingering(&self) -> bool {
        if self.may_linger() || self.takes_back {
            return false;
        }
        let mut list = lock(&self.list.0);
        let has_passed = list.pass_lingering();
        self.show(&list);
        has_passed
    }

    /// As [`TxnQueue::leave`], for a worker that runs no others: those who wait look at the head by
    /// themselves.
    pub fn leave_alone(&self, entry: QueueEntry) {
        let mut list = lock(&self.list.0);
        self.take_back(&mut list, entry);
        list.unlink(entry);
        self.show(&list);
    }

    fn take_back(&self, list: &mut List<L>, entry: QueueEntry) {
        if self.takes_back {
            let plan = node(&list.nodes, entry.node).plan();
            list.ledger.withdraw(plan.wanted());
        }
    }

    /// Takes a transaction back that still waits.
    pub fn withdraw(&self, entry: QueueEntry) -> Option<Box<Context<L>>> {
        let mut list = lock(&self.list.0);
        if node(&list.nodes, entry.node).sequence != entry.sequence {
            return None;
        }
        self.withdraw_waiting(&mut list, entry.node)
    }

    fn withdraw_waiting(&self, list: &mut List<L>, node: u32) -> Option<Box<Context<L>>> {
        let context = node_mut(&mut list.nodes, node).waiting.take()?;
        let entry = context.entry;
        list.ledger.withdraw(context.plan.wanted());
        list.waiting -= 1;
        list.unlink(entry);
        self.show(list);
        Some(context)
    }

    /// Takes a transaction back that waits although its time was over at `now_ns`.
    pub fn take_expired(&self, now_ns: u64) -> Option<Box<Context<L>>> {
        let list = lock(&self.list.0);
        let mut number = list.first;
        while number != NONE {
            let node = node(&list.nodes, number);
            if let Some(context) = &node.waiting
                && (context.flight.is_canceled()
                    || (context.flight.call.deadline_ns).is_some_and(|deadline| now_ns >= deadline))
            {
                let entry = context.entry;
                drop(list);
                return self.withdraw(entry);
            }
            number = node.next;
        }
        None
    }

    /// Whether no transaction is in the queue.
    pub fn is_idle(&self) -> bool {
        lock(&self.list.0).length == 0
    }

    /// Shows the state to those without the latch.
    #[inline]
    fn show(&self, list: &List<L>) {
        let head_waits = list.first != NONE && node(&list.nodes, list.first).waiting.is_some();
        let has_room = !list.is_alone && list.waiting < list.limit.value() && list.free != NONE;
        let head_waits = head_waits && !Canary::HeadNotWoken.sings();
        show(&self.hints.head_waits, head_waits);
        show(&self.hints.has_room, has_room);
        show(&self.hints.is_calm, list.waiting == 0 && !list.is_alone);
        // While no transaction waits an analysis would find none. The next one that waits shows how
        // many had left before.
        let (departures, shown) = (list.departures as usize, &self.hints.departures);
        if list.waiting > 0 && shown.load(Ordering::Relaxed) != departures {
            shown.store(departures, Ordering::Relaxed);
        }
    }

    /// How many transactions have left; when that stays, a contention analysis finds what it found.
    #[inline]
    pub fn departures(&self) -> usize {
        self.hints.departures.load(Ordering::Relaxed)
    }

    /// Selective contention analysis (VLL §2.6): takes the first transaction out of its wait that
    /// has nothing in common with those before it, whatever those have in common with each other.
    pub fn take_without_conflict(&self, analysis: &mut L::Analysis) -> Option<Box<Context<L>>> {
        let mut list = lock(&self.list.0);
        let mut number = list.first;
        let mut found = None;
        while number != NONE {
            let node = node(&list.nodes, number);
            let plan = node.plan();
            // One that lingers has no locks.
            // SAFETY: the latch is held.
            let is_clear = !plan.lingers() && unsafe { plan.add_to(analysis) };
            if is_clear && node.waiting.is_some() && list.ledger.is_left_to(plan.wanted()) {
                found = Some(number);
                break;
            }
            number = node.next;
        }
        analysis.clear();
        let context = node_mut(&mut list.nodes, found?).waiting.take();
        list.waiting -= 1;
        self.show(&list);
        context
    }

    /// A transaction of several statements opens outside of the queue; false while another one
    /// wants to be alone.
    pub fn open(&self) -> bool {
        let mut list = lock(&self.list.0);
        let may = !list.is_alone;
        list.open += usize::from(may);
        may
    }

    /// It has ended.
    pub fn close(&self) {
        lock(&self.list.0).open -= 1;
    }

    /// Keeps all transactions out but the caller's; false when another one does so already.
    pub fn claim_alone(&self) -> bool {
        let mut list = lock(&self.list.0);
        let claimed = !std::mem::replace(&mut list.is_alone, true);
        self.show(&list);
        claimed
    }

    /// Whether no transaction is in flight.
    pub fn is_empty(&self) -> bool {
        let list = lock(&self.list.0);
        list.length == 0 && list.open == 0
    }

    /// Lets others in again.
    pub fn end_alone(&self) {
        let mut list = lock(&self.list.0);
        list.is_alone = false;
        self.show(&list);
    }
}
