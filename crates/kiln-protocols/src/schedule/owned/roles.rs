//! Which workers look after partitions, how the locks are divided over these, and who has any.

use kiln_platform::atomic::Ordering;
use kiln_platform::sync::{Mutex, lock};

use super::{OwnedState, PartitionTable};

/// The workers that serve, those that came first before the others, with the roles that they have.
/// On cache lines of its own: what lies beside it in [`OwnedState`] is looked at again and again.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Serving(Mutex<Vec<(u32, u32)>>);

/// Another division of the locks.
#[derive(Clone, Copy)]
pub(super) enum Division {
    /// So many partitions.
    Number(u32),
    /// The better assignment of the slots.
    Slots,
}

impl<T: PartitionTable> OwnedState<T> {
    /// A worker begins to serve, or ends: the roles are given anew. Those that came first look
    /// after partitions; where they do nothing else, at least one is left.
    pub(super) fn serve(&self, worker: u32, begins: bool) {
        let mut serving = lock(&self.serving.0);
        match begins {
            true => serving.push((worker, 0)),
            false => {
                serving.retain(|(one, _)| *one != worker);
                self.channels[worker as usize]
                    .role
                    .store(0, Ordering::Relaxed);
            }
        }
        self.give_roles(&mut serving);
    }

    /// Gives the workers that serve their roles.
    pub(super) fn give_roles(&self, serving: &mut [(u32, u32)]) {
        let most = match T::DEDICATED {
            true => serving.len().saturating_sub(1),
            false => serving.len(),
        };
        // Of more workers than cores some do not run when they are wanted: then each looks after
        // all partitions when it would wait.
        let controllers = match serving.len() > self.cores {
            true => 0,
            false => self.partitions().min(most),
        };
        for (position, (worker, known)) in serving.iter_mut().enumerate() {
            let role = match position < controllers {
                true => position as u32 + 1,
                false => 0,
            };
            // Many workers begin at a time, and looking at the channels of all would take each of
            // them longer than to begin.
            if *known != role {
                *known = role;
                // Relaxed: of two that take themselves for the controller of a partition one waits
                // for its latch.
                self.channels[*worker as usize]
                    .role
                    .store(role, Ordering::Relaxed);
            }
        }
        let controllers = controllers as u32;
        if self.controllers.load(Ordering::Relaxed) != controllers {
            self.controllers.store(controllers, Ordering::Relaxed);
        }
    }

    /// Partitions that are in use: a prefix of them. It does not change while a transaction may
    /// have locks.
    #[inline]
    pub(super) fn partitions(&self) -> usize {
        match &self.balance {
            Some(balance) => balance.number() as usize,
            None => self.partitions.len(),
        }
    }

    /// How the locks should be divided now, if it is otherwise than they are; for one worker that
    /// looks often.
    pub(super) fn other_division(&self) -> Option<Division> {
        let count_ended = || {
            let counts = self.channels.iter();
            counts
                .map(|channels| channels.ended.0.load(Ordering::Relaxed))
                .fold(0, u32::wrapping_add)
        };
        let balance = self.balance.as_ref();
        if let Some(number) = balance.and_then(|balance| balance.look(count_ended)) {
            return Some(Division::Number(number));
        }
        let slots = self.slots.as_ref()?;
        slots.look(self.partitions()).then_some(Division::Slots)
    }

    /// Divides the locks anew, while the caller keeps all others out and no transaction has a lock.
    pub(super) fn divide(&self, division: Division) {
        match (division, &self.balance, &self.slots) {
            (Division::Number(number), Some(balance), slots) => {
                balance.adopt(number);
                if let Some(slots) = slots {
                    slots.divide(number as usize);
                }
                self.give_roles(&mut lock(&self.serving.0));
            }
            (Division::Slots, _, Some(slots)) => slots.adopt(),
            _ => {}
        }
    }

    /// Counts a transaction of a worker that has ended, where that is wanted.
    #[inline]
    pub(super) fn count_ended(&self, worker: u32) {
        if self.balance.is_some() {
            let ended = &self.channels[worker as usize].ended.0;
            // Relaxed, and no atomic addition: the worker alone writes it.
            ended.store(
                ended.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
        }
    }

    /// A worker has `running` transactions that may have locks, one more than before; false when
    /// another worker keeps all others out, and then it has not.
    pub(super) fn enter(&self, worker: u32, running: u32) -> bool {
        let channels = &self.channels[worker as usize];
        // Sequentially consistent, as in `is_alone`: of two workers that write first and then read,
        // one at least sees what the other wrote.
        channels.running.0.store(running, Ordering::SeqCst);
        let alone = self.alone.load(Ordering::SeqCst);
        let may_enter = alone == 0 || alone == worker + 1;
        if !may_enter {
            channels.running.0.store(running - 1, Ordering::Release);
        }
        may_enter
    }

    /// A worker has `running` transactions that may have locks, one less than before.
    pub(super) fn leave(&self, worker: u32, running: u32) {
        // Release pairs with the loads in `is_alone`.
        self.channels[worker as usize]
            .running
            .0
            .store(running, Ordering::Release);
    }

    /// Keeps all transactions out but those of this worker; false when another one does so already.
    pub(super) fn claim_alone(&self, worker: u32) -> bool {
        // Sequentially consistent, as in `enter`.
        let claimed =
            (self.alone).compare_exchange(0, worker + 1, Ordering::SeqCst, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Lets the others in again.
    pub(super) fn end_alone(&self) {
        self.alone.store(0, Ordering::Release);
    }

    /// Whether no worker but this one, which keeps the others out, has a transaction that may have
    /// locks.
    pub(super) fn is_alone(&self, worker: u32) -> bool {
        let others = self.channels.iter().enumerate();
        others
            .filter(|(number, _)| *number != worker as usize)
            .all(|(_, channels)| channels.running.0.load(Ordering::SeqCst) == 0)
    }
}
