//! Mailboxes: what has come for a session that listens, and what wakes it.

use std::collections::VecDeque;
use std::fmt;

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_procedure::Interrupt;
use kiln_procedure::notification::Notification as Sent;
use kiln_storage::error::{Error, Result, SqlState};

use crate::wait::wait_unless;

/// Bytes of notifications that wait for one session.
const BYTES_MAX: usize = 16 << 20;

/// A notification that a session has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number of the session whose transaction has sent it; 0 for a call that no session has
    /// made.
    pub session: u64,
    /// The channel.
    pub channel: String,
    /// What is told; empty where only the channel counts.
    pub payload: String,
}

/// What has come for a session, until it takes it.
#[derive(Default)]
pub struct Mailbox {
    letters: Mutex<Letters>,
    arrived: Condvar,
    /// Whether something has come for which there was no room. Then nothing comes any more.
    is_overfull: AtomicBool,
}

#[derive(Default)]
struct Letters {
    waiting: VecDeque<(u64, Arc<Sent>)>,
    bytes: usize,
    /// Called when it is no longer empty.
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Mailbox {
    /// Puts what one transaction tells behind what is there. Returns whether the owner is to be
    /// woken.
    pub(super) fn put<'a>(&self, sender: u64, sent: impl Iterator<Item = &'a Arc<Sent>>) -> bool {
        let mut letters = lock(&self.letters);
        // Relaxed, here and below: it is set with the mutex held, and the owner is woken then.
        if self.is_overfull.load(Ordering::Relaxed) {
            return false;
        }
        let was_empty = letters.waiting.is_empty();
        for notification in sent {
            letters.bytes += notification.bytes();
            if letters.bytes > BYTES_MAX {
                letters.overfill(&self.is_overfull);
                return true;
            }
            letters.waiting.push_back((sender, notification.clone()));
        }
        was_empty && !letters.waiting.is_empty()
    }

    /// Something comes for which there is no room.
    pub(super) fn overfill(&self) {
        lock(&self.letters).overfill(&self.is_overfull);
    }

    /// Forgets what has come on a channel.
    pub(super) fn forget(&self, channel: &str) {
        let letters = &mut *lock(&self.letters);
        let bytes = &mut letters.bytes;
        letters.waiting.retain(|(_, it)| {
            let stays = *it.channel != *channel;
            *bytes -= if stays { 0 } else { it.bytes() };
            stays
        });
    }

    /// How full it is, from 0 to 1.
    pub(super) fn usage(&self) -> f64 {
        match self.is_overfull.load(Ordering::Relaxed) {
            true => 1.0,
            false => lock(&self.letters).bytes as f64 / BYTES_MAX as f64,
        }
    }

    /// Wakes the owner.
    pub(super) fn wake(&self) {
        let wake = lock(&self.letters).wake.clone();
        self.arrived.notify_all();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Has `wake` called whenever the mailbox stops being empty, and now if it is not: on the
    /// thread of the transaction that has sent what comes, or on the log's, so that it must not
    /// block.
    pub fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        lock(&self.letters).wake = Some(Arc::new(wake));
        if self.has_news() {
            self.wake();
        }
    }

    /// Whether something wakes the owner.
    pub fn has_wake(&self) -> bool {
        lock(&self.letters).wake.is_some()
    }

    /// Whether something has come, or the session is to end.
    pub fn has_news(&self) -> bool {
        self.is_overfull.load(Ordering::Relaxed) || !lock(&self.letters).waiting.is_empty()
    }

    /// # Errors
    /// 54000 when the session has not taken what has come, so that there was no room for more: it
    /// is to end.
    pub fn check(&self) -> Result<()> {
        if !self.is_overfull.load(Ordering::Relaxed) {
            return Ok(());
        }
        let message = "the session has not taken its notifications";
        let detail = format!(
            "At most {} MiB of them wait for a session.",
            BYTES_MAX >> 20
        );
        Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .with_detail(detail)
            .with_hint("Connect again, listen, and look for what was missed."))
    }

    /// Takes what has come, the first one whatever its length and others up to so many bytes.
    pub(crate) fn take(&self, bytes_max: usize) -> Vec<Notification> {
        let mut letters = lock(&self.letters);
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some((session, sent)) = letters.waiting.pop_front() {
            bytes += sent.bytes();
            letters.bytes -= sent.bytes();
            taken.push(Notification {
                session,
                channel: sent.channel.to_string(),
                payload: sent.payload.to_string(),
            });
            if bytes >= bytes_max {
                break;
            }
        }
        if letters.waiting.is_empty() {
            letters.waiting.shrink_to(0);
        }
        taken
    }

    /// Waits until something has come; not longer than until `deadline_ns`, and not when
    /// `interrupt` asks for the end.
    pub(crate) fn wait(&self, deadline_ns: u64, interrupt: &Interrupt) {
        let mut letters = lock(&self.letters);
        while letters.waiting.is_empty() && !self.is_overfull.load(Ordering::Relaxed) {
            match wait_unless(&self.arrived, letters, Some(deadline_ns), Some(interrupt)) {
                Some(woken) => letters = woken,
                None => return,
            }
        }
    }
}

impl Letters {
    fn overfill(&mut self, is_overfull: &AtomicBool) {
        is_overfull.store(true, Ordering::Relaxed);
        self.waiting = VecDeque::new();
        self.bytes = 0;
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = lock(&self.letters);
        f.debug_struct("Mailbox")
            .field("waiting", &letters.waiting.len())
            .field("bytes", &letters.bytes)
            .finish_non_exhaustive()
    }
}
