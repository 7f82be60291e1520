//! Channels: which sessions listen, and how the notifications of transactions reach them.
//!
//! A transaction's notifications are announced when it has committed, and delivered when what it
//! rests on is on disk, if results wait for that: calls that workers run leave theirs here, and the
//! log says when. Each listening session has a [`Mailbox`], in which those of one transaction
//! arrive together and in their order. No listener holds a transaction up: one that does not take
//! what has come is ended when its mailbox is full.

mod mailbox;
mod outgoing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kiln_durability::log::{Follower, Log};
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sync::{Arc, Mutex, OnceLock, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;

pub use mailbox::{Mailbox, Notification};
pub(crate) use outgoing::Outgoing;

/// Channels that a session may listen to.
pub(crate) const CHANNELS_MAX: usize = 10_000;
/// Bytes of notifications that wait for the log.
const HELD_BYTES_MAX: usize = 256 << 20;

/// To which channels a session listens from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listening {
    /// To this one as well.
    To(Arc<str>),
    /// Not to this one.
    NotTo(Arc<str>),
    /// To none.
    ToNone,
}

/// The channels of a database.
#[derive(Default)]
pub(crate) struct Channels {
    table: Mutex<Table>,
    /// Sessions with a mailbox.
    listeners: AtomicUsize,
    /// What says when commits are on disk, if something does.
    log: OnceLock<Arc<Log>>,
}

#[derive(Default)]
struct Table {
    /// By number.
    sessions: BTreeMap<u64, Listener>,
    /// The numbers of the sessions that listen to each channel.
    channels: BTreeMap<Arc<str>, BTreeSet<u64>>,
    /// What rests on what is not on disk yet, in the order of the commits' ends.
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Whether the log will tell of the first that is held.
    is_following: bool,
}

struct Listener {
    mailbox: Arc<Mailbox>,
    channels: BTreeSet<Arc<str>>,
}

/// The notifications of a transaction.
struct Held {
    sender: u64,
    sent: Outgoing,
    observed: LogEpoch,
}

impl Channels {
    /// Has announcements wait for this log.
    pub fn keep_with(&self, log: &Arc<Log>) {
        self.log.get_or_init(|| log.clone());
    }

    /// The mailbox of a session, which it has from the first call on.
    pub fn mailbox(&self, session: u64) -> Arc<Mailbox> {
        let mut table = lock(&self.table);
        let listener = table.sessions.entry(session).or_insert_with(|| {
            // Release, here and below, pairs with the acquire in `announce`.
            self.listeners.fetch_add(1, Ordering::Release);
            Listener {
                mailbox: Arc::default(),
                channels: BTreeSet::new(),
            }
        });
        listener.mailbox.clone()
    }

    /// A session listens, or does so no more.
    ///
    /// # Errors
    /// 54000 when it listens to too many channels.
    pub fn change(&self, session: u64, change: &Listening) -> Result<()> {
        match change {
            Listening::To(channel) => {
                self.mailbox(session);
                lock(&self.table).listen(session, channel)
            }
            Listening::NotTo(channel) => {
                lock(&self.table).unlisten(session, channel);
                Ok(())
            }
            Listening::ToNone => {
                lock(&self.table).unlisten_all(session);
                Ok(())
            }
        }
    }

    /// The channels to which a session listens.
    pub fn channels_of(&self, session: u64) -> Vec<Arc<str>> {
        let table = lock(&self.table);
        let listener = table.sessions.get(&session);
        listener.map_or_else(Vec::new, |it| it.channels.iter().cloned().collect())
    }

    /// A session has closed.
    pub fn end(&self, session: u64) {
        if self.listeners.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut table = lock(&self.table);
        table.unlisten_all(session);
        if table.sessions.remove(&session).is_some() {
            self.listeners.fetch_sub(1, Ordering::Release);
        }
    }

    /// How full the fullest mailbox is, from 0 to 1.
    pub fn usage(&self) -> f64 {
        let table = lock(&self.table);
        let listeners = table.sessions.values();
        let usage = listeners.map(|listener| listener.mailbox.usage());
        usage.fold(0.0, f64::max)
    }

    /// A transaction that this session ran, or none (0), has committed: its notifications are
    /// delivered, if it waits when all is on disk that was observed in log epochs up to `observed`.
    pub fn announce(
        self: &Arc<Self>,
        sender: u64,
        sent: Outgoing,
        (observed, waits): (LogEpoch, bool),
    ) {
        if sent.is_empty() || self.listeners.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut table = lock(&self.table);
        let log = self.log.get();
        if let Some(log) = log.filter(|log| waits && !log.is_durable(observed)) {
            if table.held_bytes + sent.bytes() > HELD_BYTES_MAX {
                let woken = table.overfill(&sent);
                drop(table);
                return wake(woken);
            }
            table.held_bytes += sent.bytes();
            table.held.push_back(Held {
                sender,
                sent,
                observed,
            });
            if !std::mem::replace(&mut table.is_following, true) {
                drop(table);
                log.follow(observed, self.clone());
            }
            return;
        }
        // What a client has sent before may be on disk, and not delivered yet.
        let mut woken = table.release(|epoch| log.is_none_or(|log| log.is_durable(epoch)));
        woken.extend(table.deliver(sender, &sent));
        drop(table);
        wake(woken);
    }

    /// Delivers what waits for what is on disk by now: what a session has sent that is told of its
    /// commit.
    pub fn release(&self) {
        let Some(log) = self.log.get() else {
            return;
        };
        let woken = lock(&self.table).release(|epoch| log.is_durable(epoch));
        wake(woken);
    }
}

impl Follower for Channels {
    fn durable(self: Arc<Self>, through: u64, failure: Option<&Error>) {
        let Some(log) = self.log.get() else {
            return;
        };
        let mut table = lock(&self.table);
        let woken = table.release(|epoch| epoch.0 <= through || log.is_durable(epoch));
        if failure.is_some() {
            // Nothing is told of what may be lost.
            table.held.clear();
            table.held_bytes = 0;
        }
        let next = table.held.iter().map(|held| held.observed).max();
        table.is_following = next.is_some();
        drop(table);
        wake(woken);
        if let Some(observed) = next {
            log.follow(observed, self.clone());
        }
    }
}

impl Table {
    fn listen(&mut self, session: u64, channel: &Arc<str>) -> Result<()> {
        let Some(listener) = self.sessions.get_mut(&session) else {
            return Ok(());
        };
        if listener.channels.len() >= CHANNELS_MAX && !listener.channels.contains(channel) {
            return Err(too_many());
        }
        let known = self.channels.get_key_value(channel);
        let channel = known.map_or(channel, |(known, _)| known).clone();
        listener.channels.insert(channel.clone());
        self.channels.entry(channel).or_default().insert(session);
        Ok(())
    }

    fn unlisten(&mut self, session: u64, channel: &Arc<str>) {
        if let Some(listener) = self.sessions.get_mut(&session)
            && listener.channels.remove(channel)
        {
            listener.mailbox.forget(channel);
        }
        if let Some(sessions) = self.channels.get_mut(channel) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.channels.remove(channel);
            }
        }
    }

    fn unlisten_all(&mut self, session: u64) {
        let listener = self.sessions.get(&session);
        let channels = listener.map(|it| it.channels.clone());
        for channel in channels.iter().flatten() {
            self.unlisten(session, channel);
        }
    }

    /// Delivers what is held, as long as the next of it is durable. Returns the mailboxes whose
    /// owners are to be woken.
    fn release(&mut self, is_durable: impl Fn(LogEpoch) -> bool) -> Vec<Arc<Mailbox>> {
        let mut woken = Vec::new();
        while let Some(held) = self.held.front() {
            if !is_durable(held.observed) {
                break;
            }
            woken.extend(self.deliver(held.sender, &held.sent));
            self.held_bytes -= held.sent.bytes();
            self.held.pop_front();
        }
        woken
    }

    /// Puts notifications into the mailboxes of those that listen. Returns those whose owners are
    /// to be woken.
    fn deliver(&self, sender: u64, sent: &Outgoing) -> Vec<Arc<Mailbox>> {
        let listeners = self.listeners_of(sent);
        let woken = listeners.filter(|listener| {
            let heard = sent.iter();
            let heard = heard.filter(|it| listener.channels.contains(&*it.channel));
            listener.mailbox.put(sender, heard)
        });
        woken.map(|listener| listener.mailbox.clone()).collect()
    }

    /// Ends those that would hear of notifications for which there is no room.
    fn overfill(&self, sent: &Outgoing) -> Vec<Arc<Mailbox>> {
        let listeners = self.listeners_of(sent);
        let listeners = listeners.inspect(|listener| listener.mailbox.overfill());
        listeners.map(|listener| listener.mailbox.clone()).collect()
    }

    /// Those that listen to a channel of these.
    fn listeners_of(&self, sent: &Outgoing) -> impl Iterator<Item = &Listener> {
        let channels: BTreeSet<&str> = sent.iter().map(|it| &*it.channel).collect();
        let sessions = channels.into_iter();
        let sessions = sessions.filter_map(|channel| self.channels.get(channel));
        let sessions: BTreeSet<u64> = sessions.flatten().copied().collect();
        let listeners = sessions.into_iter();
        listeners.filter_map(|session| self.sessions.get(&session))
    }
}

/// Outside of the table's mutex: it may take a while.
fn wake(mailboxes: Vec<Arc<Mailbox>>) {
    mailboxes.iter().for_each(|mailbox| mailbox.wake());
}

#[cold]
pub(crate) fn too_many() -> Error {
    let message = format!("a session listens to at most {CHANNELS_MAX} channels");
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

#[cfg(all(test, not(kiln_sim)))]
mod tests {
    use kiln_procedure::notification::Notification as Sent;

    use super::*;

    fn sent(texts: &[(&str, &str)]) -> Outgoing {
        let texts = texts.iter().map(|(channel, payload)| {
            Arc::new(Sent {
                channel: (*channel).into(),
                payload: (*payload).into(),
            })
        });
        Outgoing::of(texts.collect())
    }

    fn told(mailbox: &Mailbox) -> Vec<(u64, String, String)> {
        let taken = mailbox.take(usize::MAX).into_iter();
        taken
            .map(|it| (it.session, it.channel, it.payload))
            .collect()
    }

    fn at_once() -> (LogEpoch, bool) {
        (LogEpoch::default(), false)
    }

    #[test]
    fn those_that_listen_hear_in_order() {
        let channels = Arc::new(Channels::default());
        let to = |channel: &str| Listening::To(channel.into());
        channels.change(1, &to("a")).expect("there is room");
        channels.change(1, &to("b")).expect("there is room");
        channels.change(2, &to("b")).expect("there is room");
        let both = [("b", "2"), ("a", "1"), ("b", "2"), ("c", "3"), ("b", "")];
        channels.announce(7, sent(&both), at_once());
        let text = |text: &str| text.to_owned();
        let of = |channel, payload| (7, text(channel), text(payload));
        let (one, two) = (channels.mailbox(1), channels.mailbox(2));
        assert_eq!(told(&one), [of("b", "2"), of("a", "1"), of("b", "")]);
        assert_eq!(told(&two), [of("b", "2"), of("b", "")]);
        channels.announce(7, sent(&[("a", "x"), ("b", "y")]), at_once());
        // What has come and was not taken is not told any more.
        let not = Listening::NotTo("b".into());
        channels.change(1, &not).expect("it listens");
        assert_eq!(told(&one), [of("a", "x")]);
        channels.change(2, &Listening::ToNone).expect("it listens");
        assert!(told(&two).is_empty() && channels.channels_of(2).is_empty());
        channels.end(1);
        channels.end(2);
        let table = lock(&channels.table);
        assert!(table.channels.is_empty() && table.sessions.is_empty());
    }

    #[test]
    fn a_listener_that_takes_nothing_is_ended() {
        let channels = Arc::new(Channels::default());
        let listens = Listening::To("a".into());
        channels.change(1, &listens).expect("there is room");
        let mailbox = channels.mailbox(1);
        let payload = "x".repeat(1 << 20);
        for turn in 1..16 {
            channels.announce(7, sent(&[("a", &payload)]), at_once());
            assert!(mailbox.check().is_ok());
            let about = f64::from(turn) / 16.0;
            assert!((channels.usage() - about).abs() < 0.01);
        }
        channels.announce(7, sent(&[("a", &payload)]), at_once());
        let error = mailbox.check().expect_err("it is full");
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(told(&mailbox).is_empty());
        assert!((channels.usage() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_session_listens_to_so_many_channels() {
        let channels = Channels::default();
        let listen = |number: usize| {
            let channel = Listening::To(number.to_string().into());
            channels.change(1, &channel)
        };
        (0..CHANNELS_MAX).for_each(|number| listen(number).expect("there is room"));
        listen(0).expect("it listens to it already");
        let refused = listen(CHANNELS_MAX).expect_err("it is one too many");
        assert_eq!(refused.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
