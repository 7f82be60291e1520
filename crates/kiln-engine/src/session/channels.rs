//! What a transaction tells other sessions when it commits, and to which channels its own session
//! listens from then on.
//!
//! What the statements of a block tell is kept with the attempt that is open, and sent anew by one
//! that runs them again: so it is what the attempt has told that commits.

use std::time::Duration;

use kiln_platform::sync::Arc;
use kiln_storage::error::Result;
use kiln_storage::log_epoch::LogEpoch;

use super::Session;
use super::state::{Block, State};
use crate::calls::Rows;
use crate::channels::{CHANNELS_MAX, Listening, Mailbox, Notification, Outgoing, too_many};
use crate::kernel::Kept;
use crate::wait::deadline_after;

/// What a block does when it has committed.
#[derive(Default)]
pub(super) struct Announcement {
    /// To which channels the session listens then.
    changes: Vec<Listening>,
    /// What the open attempt has told.
    pub sent: Outgoing,
    kept: Kept,
}

impl State {
    /// Keeps what a program of the open attempt has told.
    ///
    /// # Errors
    /// 54000 when the block tells too much, 53200 when all sessions together keep too much.
    pub(super) fn keep_sent(&mut self, rows: &mut Rows) -> Result<()> {
        if rows.notifications.is_empty() {
            return Ok(());
        }
        let budget = self.worker_slot().inner().block_memory.clone();
        let own = &mut self.own.get_or_insert_default().announcement;
        own.sent.extend(std::mem::take(&mut rows.notifications))?;
        own.kept.reach(&budget, own.sent.bytes())
    }

    /// The attempt is over: what it has told is forgotten.
    pub(super) fn forget_sent(&mut self) {
        if let Some(own) = &mut self.own {
            own.announcement.sent = Outgoing::default();
        }
    }

    /// How often the block has said to which channels the session listens.
    pub(super) fn listening_mark(&self) -> usize {
        let own = self.own.as_ref();
        own.map_or(0, |own| own.announcement.changes.len())
    }

    /// Forgets what the block has said of that after a mark.
    pub(super) fn return_to_listening(&mut self, mark: usize) {
        if let Some(own) = &mut self.own {
            own.announcement.changes.truncate(mark);
        }
    }

    /// What the block that commits has left to be done.
    pub(super) fn take_announcement(&mut self) -> Announcement {
        let own = self.own.as_mut();
        own.map_or_else(Announcement::default, |own| {
            std::mem::take(&mut own.announcement)
        })
    }
}

impl Session {
    /// Listens to channels, or does so no more: when the open block has committed, or now if none
    /// is open.
    ///
    /// # Errors
    /// 54000 when there are too many channels; 25P02 and 25P03 in a block that has failed.
    pub fn listen(&mut self, change: Listening) -> Result<()> {
        let mut state = self.state();
        state.check_not_failed()?;
        let (number, channels) = (state.number, &self.engine.inner().channels);
        if state.block == Block::None {
            drop(state);
            return channels.change(number, &change);
        }
        let listens = channels.channels_of(number).len();
        let changes = &mut state.own.get_or_insert_default().announcement.changes;
        if change == Listening::ToNone && changes.last() == Some(&change) {
            return Ok(());
        }
        if listens + changes.len() >= CHANNELS_MAX {
            return Err(too_many());
        }
        changes.push(change);
        Ok(())
    }

    /// What comes for the session on the channels to which it listens.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.engine.inner().channels.mailbox(self.number())
    }

    /// The channels to which the session listens, in the order of their names.
    pub fn channels(&self) -> Vec<Arc<str>> {
        self.engine.inner().channels.channels_of(self.number())
    }

    /// Takes what has come for the session: the first notification whatever its length, and others
    /// up to so many bytes. What the session's own transactions have told is there when their
    /// commits are acknowledged.
    pub fn take_notifications(&self, mailbox: &Mailbox, bytes_max: usize) -> Vec<Notification> {
        self.engine.inner().channels.release();
        mailbox.take(bytes_max)
    }

    /// Waits until something has come for the session, or `timeout` has passed, or the session is
    /// to end.
    pub fn await_notification(&self, mailbox: &Mailbox, timeout: Duration) {
        mailbox.wait(deadline_after(timeout), &self.interrupt);
    }

    /// A block has committed, and its client may know.
    pub(super) fn announce(&self, announcement: Announcement) {
        let (number, channels) = (self.number(), &self.engine.inner().channels);
        for change in &announcement.changes {
            // It was counted when it was asked for.
            let _ = channels.change(number, change);
        }
        channels.announce(number, announcement.sent, (LogEpoch::default(), false));
    }

    /// As [`Session::announce`], for a program that was a transaction.
    pub(super) fn announce_alone(&self, rows: &mut Rows) {
        if !rows.notifications.is_empty() {
            let sent = Outgoing::of(std::mem::take(&mut rows.notifications));
            let channels = &self.engine.inner().channels;
            channels.announce(self.number(), sent, (LogEpoch::default(), false));
        }
    }
}
