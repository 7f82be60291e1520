//! Sessions with an open block, as the kernel looks after them.

use std::collections::BTreeMap;

use kiln_platform::atomic::{AtomicI64, Ordering};
use kiln_platform::sync::{Arc, Weak, lock};
use kiln_platform::time;

use super::EngineInner;
use crate::kernel::gate::SHUT;
use crate::open_sessions::ListedSession;

/// A session that may have an open block.
pub(crate) trait WatchedSession: Send + Sync {
    /// Rolls the open transaction back if it idles for longer than it may. Returns whether the
    /// session still has a block to look after.
    fn reap(&self, now_ns: u64) -> bool;

    /// The session's number, and since when its open block idles, if it does.
    fn idle_block(&self) -> Option<(u64, u64)>;
}

/// Such a session, and since when its block is open.
pub(super) type Watched = (Weak<dyn WatchedSession>, Arc<BlockClock>);

/// Since when a session's block is open: beside the session's mutex, which a statement holds while
/// it runs.
#[derive(Debug)]
pub(crate) struct BlockClock {
    number: u64,
    /// In microseconds since 1970; 0 while no block is open.
    since_us: AtomicI64,
}

impl BlockClock {
    pub fn new(number: u64) -> BlockClock {
        BlockClock {
            number,
            since_us: AtomicI64::new(0),
        }
    }

    /// The session's number, and when its block began that is open, in microseconds since 1970, if
    /// one is.
    pub fn open_block(&self) -> Option<(u64, i64)> {
        // Relaxed, here and below: its session writes it, and others read it for reports.
        let since_us = self.since_us.load(Ordering::Relaxed);
        (since_us != 0).then_some((self.number, since_us))
    }

    /// A block begins now.
    pub fn start(&self) {
        let now_us = time::wall_clock_us();
        self.since_us.store(now_us, Ordering::Relaxed);
    }

    /// No block is open any more.
    pub fn stop(&self) {
        self.since_us.store(0, Ordering::Relaxed);
    }
}

impl EngineInner {
    /// Lets the reaper look after a session until its block has ended.
    pub fn watch<S: WatchedSession + 'static>(&self, session: &Arc<S>, clock: Arc<BlockClock>) {
        let session: Weak<S> = Arc::downgrade(session);
        lock(&self.watched).push((session, clock));
    }

    /// The session whose open block has idled longest, and for how many nanoseconds.
    pub fn longest_open_block(&self) -> Option<(u64, u64)> {
        let watched = lock(&self.watched).clone();
        let idle = watched.iter();
        let idle = idle.filter_map(|(session, _)| session.upgrade()?.idle_block());
        let (number, since_ns) = idle.min_by_key(|&(_, since_ns)| since_ns)?;
        Some((number, time::now_ns().saturating_sub(since_ns)))
    }

    /// The sessions that are shown to others, by number.
    pub fn listed_sessions(&self) -> Vec<ListedSession> {
        let watched = lock(&self.watched).clone();
        let blocks = watched.iter().filter_map(|(_, clock)| clock.open_block());
        let blocks: BTreeMap<u64, i64> = blocks.collect();
        let mut listed = self.open_sessions.listed();
        for session in &mut listed {
            session.block_since_us = blocks.get(&session.number).copied();
        }
        listed
    }

    /// The session whose open block began first, and when, in microseconds since 1970.
    pub fn oldest_block(&self) -> Option<(u64, i64)> {
        let watched = lock(&self.watched).clone();
        let open = watched.iter().filter_map(|(_, clock)| clock.open_block());
        open.min_by_key(|&(_, began_us)| began_us)
    }

    /// Rolls blocks back that idle for longer than they may.
    pub(super) fn reap_blocks(&self, now_ns: u64) {
        // A roll-back waits while the gate is shut, and the epochs would wait with it.
        if self.gate.state() & SHUT != 0 {
            return;
        }
        // Outside the mutex: rolling back takes a moment.
        let watched = lock(&self.watched).clone();
        let stays = watched.iter();
        let stays = stays.map(|(session, _)| session.upgrade().is_some_and(|it| it.reap(now_ns)));
        let stays: Vec<bool> = stays.collect();
        // The others have only added some behind these meanwhile.
        let mut stays = stays.into_iter();
        lock(&self.watched).retain(|_| stays.next().unwrap_or(true));
    }
}
