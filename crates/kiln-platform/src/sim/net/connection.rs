//! One end of a connection, and what operations and arrivals do to it.

use std::collections::VecDeque;
use std::io;

use super::door::Side;
use super::readiness::Edges;
use super::state::{Arrival, Number, State, error};

/// One end of a connection.
pub(super) struct End {
    pub(super) connection: u64,
    side: Side,
    /// The other end's number; 0 before there is one. It may be closed.
    pub(super) other: Number,
    pub(super) is_connected: bool,
    /// What has arrived and was not read.
    received: VecDeque<u8>,
    /// Bytes that have arrived in all.
    arrived: u64,
    /// The other end sends no more.
    has_ended: bool,
    /// Why there is no connection any more, until a read or a write has told it.
    untold: Option<libc::c_int>,
    is_broken: bool,
    /// Bytes that can still be written: those on their way, and those that the other end has not
    /// read, take room.
    room: usize,
    /// A write found no room since there was some last.
    wants_room: bool,
    has_shut: bool,
    /// When the last of what this end has sent arrives; nothing sent later arrives before.
    last_arrival_ps: u64,
}

impl End {
    pub(super) fn new(connection: u64, side: Side, room: usize) -> End {
        End {
            connection,
            side,
            other: 0,
            is_connected: false,
            received: VecDeque::new(),
            arrived: 0,
            has_ended: false,
            untold: None,
            is_broken: false,
            room: room.max(1),
            wants_room: false,
            has_shut: false,
            last_arrival_ps: 0,
        }
    }

    /// What a level-triggered poller would tell.
    pub(super) fn levels(&self) -> Edges {
        Edges {
            readable: !self.received.is_empty() || self.has_ended || self.is_broken,
            writable: self.is_connected && self.room > 0 || self.is_broken,
            closed: self.has_ended || self.is_broken,
        }
    }
}

impl State {
    fn open_end(&mut self, number: Number) -> io::Result<&mut End> {
        self.end(number).ok_or_else(|| error(libc::EBADF))
    }

    /// How much of `bytes` bytes a read or a write moves.
    fn portion(&mut self, bytes: usize) -> usize {
        match bytes > 1 && self.chance(self.options.short_one_in) {
            true => 1 + self.dice.below(bytes - 1),
            false => bytes,
        }
    }

    pub(super) fn read(&mut self, number: Number, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.open_end(number)?;
        if buffer.is_empty() {
            return Ok(0);
        }
        if end.received.is_empty() {
            return match end.untold.take() {
                Some(failure) => Err(error(failure)),
                None if end.has_ended || end.is_broken => Ok(0),
                None => Err(error(libc::EAGAIN)),
            };
        }
        let there = end.received.len().min(buffer.len());
        let bytes = self.portion(there);
        let end = self.open_end(number)?;
        for (to, from) in buffer.iter_mut().zip(end.received.drain(..bytes)) {
            *to = from;
        }
        let other = end.other;
        let at_ps = self.now_ps + self.latency_ps();
        self.send(at_ps, Arrival::Room { to: other, bytes }, [other, 0]);
        Ok(bytes)
    }

    pub(super) fn write(&mut self, number: Number, bytes: &[u8]) -> io::Result<usize> {
        let end = self.open_end(number)?;
        if let Some(failure) = end.untold.take() {
            return Err(error(failure));
        }
        if end.is_broken || end.has_shut {
            return Err(error(libc::EPIPE));
        }
        if !end.is_connected || end.room == 0 && !bytes.is_empty() {
            end.wants_room = true;
            return Err(error(libc::EAGAIN));
        }
        let fits = end.room.min(bytes.len());
        let other = end.other;
        let taken = self.portion(fits);
        self.open_end(number)?.room -= taken;
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let most = self.options.segment_bytes_max.clamp(1, rest.len());
            let (segment, after) = rest.split_at(1 + self.dice.below(most));
            rest = after;
            let at_ps = self.arrival_ps(number);
            let bytes = segment.to_vec();
            let from = number;
            let to = other;
            self.send(at_ps, Arrival::Bytes { to, from, bytes }, [to, from]);
        }
        Ok(taken)
    }

    /// When something arrives that the end sends now, behind all that it has sent.
    fn arrival_ps(&mut self, number: Number) -> u64 {
        let mut at_ps = self.now_ps + self.latency_ps();
        if self.chance(self.options.lost_one_in) {
            at_ps += self.options.retransmission_ns * 1_000;
        }
        if let Some(end) = self.end(number) {
            at_ps = at_ps.max(end.last_arrival_ps);
            end.last_arrival_ps = at_ps;
        }
        at_ps
    }

    /// Nothing that the other end of `number` sends arrives before `at_ps`.
    pub(super) fn follow(&mut self, number: Number, at_ps: u64) {
        let other = self.end(number).map_or(0, |end| end.other);
        if let Some(other) = self.end(other) {
            other.last_arrival_ps = other.last_arrival_ps.max(at_ps);
        }
    }

    pub(super) fn shutdown_write(&mut self, number: Number) -> io::Result<()> {
        let end = self.open_end(number)?;
        if !end.is_connected || end.is_broken {
            return Err(error(libc::ENOTCONN));
        }
        if !std::mem::replace(&mut end.has_shut, true) {
            self.send_end(number);
        }
        Ok(())
    }

    fn send_end(&mut self, number: Number) {
        let at_ps = self.arrival_ps(number);
        let to = self.end(number).map_or(0, |end| end.other);
        self.send(at_ps, Arrival::End { to }, [to, 0]);
    }

    /// The end is dropped. If it has not read all, the other one is told that the connection is
    /// broken.
    pub(super) fn close_end(&mut self, number: Number) {
        let Some(end) = self.end(number) else {
            return;
        };
        if !end.received.is_empty() {
            return self.abandon(number);
        }
        if !end.has_shut && !end.is_broken {
            self.send_end(number);
        }
        self.sockets.remove(&number);
    }

    /// Closes an end so that the connection breaks.
    pub(super) fn abandon(&mut self, number: Number) {
        let at_ps = self.arrival_ps(number);
        let to = self.end(number).map_or(0, |end| end.other);
        self.sockets.remove(&number);
        self.send(at_ps, Arrival::Reset { to }, [to, 0]);
    }

    /// There is no connection any more. What has arrived may be lost: systems differ.
    pub(super) fn fail(&mut self, number: Number, why: libc::c_int) {
        let loses = self.dice.below(2) == 0;
        let Some(end) = self.end(number) else {
            return;
        };
        if end.is_broken {
            return;
        }
        end.is_broken = true;
        end.untold = Some(why);
        if loses {
            end.received.clear();
        }
        self.edge(number, Edges::ALL);
    }

    pub(super) fn connected(&mut self, client: Number) {
        if let Some(end) = self.end(client) {
            end.is_connected = true;
            self.edge(client, Edges::WRITABLE);
        }
    }

    pub(super) fn bytes_arrive(&mut self, to: Number, from: Number, bytes: &[u8]) {
        let reset = self.chance(self.options.reset_one_in);
        let Some(end) = self.end(to) else {
            // Closed: the sender learns of it.
            let at_ps = self.now_ps + self.latency_ps();
            return self.send(at_ps, Arrival::Reset { to: from }, [from, 0]);
        };
        if end.is_broken {
            return;
        }
        let sender = match end.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let (connection, arrived) = (end.connection, end.arrived);
        let until = self.resets.get(&(connection, sender)).copied();
        let left = until.map_or(u64::MAX, |until| until.saturating_sub(arrived));
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let reset = reset || left <= bytes.len() as u64;
        if let Some(end) = self.end(to) {
            end.arrived += bytes.len() as u64;
            end.received.extend(bytes);
        }
        self.edge(to, Edges::READABLE);
        if reset {
            self.resets.remove(&(connection, sender));
            self.fail(to, libc::ECONNRESET);
            self.fail(from, libc::ECONNRESET);
        }
    }

    pub(super) fn end_arrives(&mut self, to: Number) {
        if let Some(end) = self.end(to) {
            end.has_ended = true;
            let edges = Edges {
                writable: false,
                ..Edges::ALL
            };
            self.edge(to, edges);
        }
    }

    /// As Linux does, tells of room only when a third of the queue is free.
    pub(super) fn room_arrives(&mut self, to: Number, bytes: usize) {
        let enough = (self.options.queue_bytes / 3).max(1);
        if let Some(end) = self.end(to) {
            end.room += bytes;
            if end.wants_room && end.room >= enough {
                end.wants_room = false;
                self.edge(to, Edges::WRITABLE);
            }
        }
    }
}
