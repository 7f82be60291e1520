//! What a core has under way: its store buffer, and its prefetches in flight.

use std::collections::VecDeque;

/// Stores that have retired but whose lines have not all arrived.
///
/// Stores become visible in program order (x86's total store order), while their lines are fetched
/// at the same time: a store leaves when its line is there and all earlier ones have left.
///
/// Invariant: the times in `leaving` do not decrease.
pub(crate) struct StoreBuffer {
    room: usize,
    leaving: VecDeque<u64>,
    last_ps: u64,
}

impl StoreBuffer {
    pub(crate) fn new(room: usize) -> StoreBuffer {
        StoreBuffer {
            room,
            leaving: VecDeque::with_capacity(room),
            last_ps: 0,
        }
    }

    /// When the buffer is empty, if nothing is added.
    #[inline(always)]
    pub(crate) fn drained_ps(&self) -> u64 {
        self.last_ps
    }

    /// The earliest time, from `now_ps` on, at which there is room for one more.
    #[inline]
    pub(crate) fn room_at(&mut self, now_ps: u64) -> u64 {
        if self.last_ps <= now_ps {
            self.leaving.clear();
            return now_ps;
        }
        while self.leaving.front().is_some_and(|&left| left <= now_ps) {
            self.leaving.pop_front();
        }
        if self.leaving.len() < self.room {
            return now_ps;
        }
        self.leaving.pop_front().unwrap_or(now_ps)
    }

    /// Adds a store whose line is there at `ready_ps`; [`StoreBuffer::room_at`] has made room.
    #[inline]
    pub(crate) fn push(&mut self, ready_ps: u64) {
        self.last_ps = self.last_ps.max(ready_ps);
        self.leaving.push_back(self.last_ps);
    }
}

/// Prefetched lines on their way.
pub(crate) struct Prefetches {
    room: usize,
    arriving: Vec<(u32, u64)>,
    last_ps: u64,
}

impl Prefetches {
    pub(crate) fn new(room: usize) -> Prefetches {
        Prefetches {
            room,
            arriving: Vec::with_capacity(room),
            last_ps: 0,
        }
    }

    /// When `line` arrives, if it is on its way; `now_ps` if it is not.
    #[inline(always)]
    pub(crate) fn arrival_ps(&mut self, line: u32, now_ps: u64) -> u64 {
        if self.last_ps <= now_ps {
            return now_ps;
        }
        let found = self.arriving.iter().find(|(other, _)| *other == line);
        found.map_or(now_ps, |(_, arrival)| (*arrival).max(now_ps))
    }

    /// The earliest time, from `now_ps` on, at which one more may start.
    pub(crate) fn room_at(&mut self, now_ps: u64) -> u64 {
        self.arriving.retain(|(_, arrival)| *arrival > now_ps);
        if self.arriving.len() < self.room {
            return now_ps;
        }
        let earliest = self.arriving.iter().map(|(_, arrival)| *arrival).min();
        let earliest = earliest.unwrap_or(now_ps);
        self.arriving.retain(|(_, arrival)| *arrival > earliest);
        earliest
    }

    /// Adds a line; [`Prefetches::room_at`] has made room.
    pub(crate) fn push(&mut self, line: u32, arrival_ps: u64) {
        self.last_ps = self.last_ps.max(arrival_ps);
        self.arriving.push((line, arrival_ps));
    }
}
