//! What the workers share: the queue, and the mailboxes by which contexts come home.

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::plain;
use kiln_platform::sync::{Mutex, lock};
use kiln_storage::table::WORKERS_MAX;

use super::context::{Context, Stage};
use super::manager::Manager;
use super::queue::TxnQueue;
use super::{IN_FLIGHT_MAX, Ledger};
use crate::schedule::in_flight::{Blocks, Solitude};
use crate::shared::core_slots::CoreSlots;

/// What the workers of one database share.
pub struct VllState<L: Ledger> {
    pub(super) queue: TxnQueue<L>,
    /// By worker: contexts of its that others have run. A worker has no more than its mailbox has
    /// room for.
    mailboxes: Box<[Mailbox<L>]>,
    /// Where the lock manager is a thread.
    pub(super) manager: Option<Manager<L>>,
    /// Transactions of several statements.
    pub(super) blocks: Blocks,
    pub(super) solitude: Solitude,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Mailbox<L: Ledger> {
    contexts: Mutex<Vec<Box<Context<L>>>>,
    length: AtomicUsize,
}

impl<L: Ledger> VllState<L> {
    /// For workers with numbers below [`WORKERS_MAX`], with these locks.
    pub fn new(ledger: L) -> VllState<L> {
        VllState::with(ledger, None)
    }

    /// As [`VllState::new`], for a lock manager that is a thread, and workers that share
    /// `core_slots`.
    pub(super) fn managed(ledger: L, core_slots: CoreSlots) -> VllState<L> {
        VllState::with(ledger, Some(Manager::new(core_slots)))
    }

    fn with(ledger: L, manager: Option<Manager<L>>) -> VllState<L> {
        let capacity = WORKERS_MAX * IN_FLIGHT_MAX;
        VllState {
            queue: TxnQueue::new(ledger, capacity, L::TAKES_BACK || manager.is_some()),
            manager,
            blocks: Blocks::default(),
            solitude: Solitude::default(),
            mailboxes: (0..WORKERS_MAX)
                .map(|_| Mailbox {
                    contexts: Mutex::new(Vec::with_capacity(IN_FLIGHT_MAX)),
                    length: AtomicUsize::new(0),
                })
                .collect(),
        }
    }

    /// Calls `body` with the locks, under the queue's latch.
    pub(crate) fn with_ledger<R>(&self, body: impl FnOnce(&mut L) -> R) -> R {
        self.queue.with_ledger(body)
    }

    /// As the manager, answers the worker of a transaction.
    pub(super) fn give(&self, mut context: Box<Context<L>>, stage: Stage) {
        context.stage = stage;
        self.send_home(context);
    }

    /// As the manager, lets a transaction run that was the first, or sends it back, as it is
    /// barred.
    pub(super) fn answer(&self, context: Box<Context<L>>) {
        let stage = match context.stage {
            Stage::Barred => Stage::Barred,
            _ => Stage::Granted,
        };
        self.give(context, stage);
    }

    /// Puts a context into the mailbox of its worker.
    pub(super) fn send_home(&self, context: Box<Context<L>>) {
        let mailbox = &self.mailboxes[context.home as usize];
        let mut contexts = lock(&mailbox.contexts);
        plain::writes_one(&raw const context.stage);
        contexts.push(context);
        plain::writes(&raw const contexts[contexts.len() - 1..]);
        // Relaxed: who sees that something is there takes the latch.
        mailbox.length.store(contexts.len(), Ordering::Relaxed);
    }

    /// A context from the mailbox of a worker, for that worker.
    pub(super) fn open_letter(&self, worker: u32) -> Option<Box<Context<L>>> {
        let mailbox = &self.mailboxes[worker as usize];
        // Relaxed: as in `send_home`.
        if mailbox.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut contexts = lock(&mailbox.contexts);
        plain::reads(&raw const contexts[contexts.len().saturating_sub(1)..]);
        let context = contexts.pop();
        if let Some(context) = &context {
            plain::reads_one(&raw const context.stage);
        }
        mailbox.length.store(contexts.len(), Ordering::Relaxed);
        context
    }
}
