//! Closes log epochs, and writes what was committed in them.
//!
//! Groups clock themselves: while one is written the next one gathers, and is closed as soon as the
//! device is free. So one client pays one durable write, and ten thousand share it. Where no client
//! waits for durability a group gathers for [`GATHER_NS`].
//!
//! The log's thread writes groups. A thread that waits for its commit while the device is free
//! *leads*: it writes the next group itself ([`lead`]), which spares it the way to the log's thread
//! and back. All others wait for the watermark.

use kiln_platform::atomic::Ordering;
use kiln_platform::disk::{self, AlignedBuffer};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{thread, time};
use kiln_storage::error::Error;

use super::buffers::Group;
use super::segments::{Segment, Segments};
use super::{Inner, Position};
use crate::canary::Canary;
use crate::error::disk_error;
use crate::format::Chain;
use crate::format::block::{ALIGNMENT, BlockHeader, HEADER_BYTES, PAYLOAD_MAX, bytes_of};

/// Nanoseconds for which a group gathers that no client waits for, unless there are
/// [`GATHER_BYTES`] before.
const GATHER_NS: u64 = 1_000_000;
const GATHER_BYTES: u64 = 256 << 10;
/// Nanoseconds after which the thread looks whether there is anything that no client waits for.
const LOOK_NS: u64 = 5_000_000;
/// Nanoseconds after which an idle log writes an empty block, which says that the last one is on
/// disk.
const IDLE_NS: u64 = 20_000_000;

pub(super) struct Writer {
    pub inner: Arc<Inner>,
    pub segments: Arc<Segments>,
    pub segment: Segment,
    /// Where the next block goes.
    pub offset: u64,
    pub chain: Chain,
    /// The next block's memory.
    pub block: AlignedBuffer,
    /// The last block of the last group that is on disk.
    pub covered: u64,
    /// The last log epoch that is on disk.
    pub through: u64,
    /// Since when there are commits that no client waits for; 0 for none.
    pub gathers_since_ns: u64,
    /// When the last block was written that no block after it calls durable; 0 for none.
    pub uncovered_since_ns: u64,
    /// The memory of the group that is written.
    pub group: Group,
    /// Whether nothing is written any more: the log has ended, or a write has failed or panicked.
    pub has_ended: bool,
}

/// What the log's thread has to do next.
enum Work {
    Group,
    /// To say that the last block is on disk.
    Cover,
    /// To sleep for these nanoseconds, unless a client waits before.
    Sleep(u64),
    End,
}

/// The life of the log's thread.
pub(super) fn run(writer: &Mutex<Writer>, inner: &Inner) {
    loop {
        let mut held = lock(writer);
        if held.has_ended {
            if !inner.has_failed.load(Ordering::Relaxed) {
                held.fail(Error::internal("a write of the log panicked"));
            }
            drop(held);
            return inner.collect_lost();
        }
        match held.next_work() {
            Work::Group => held.lead_group(),
            Work::Cover => {
                let covered = held.cover();
                held.check(covered);
            }
            Work::Sleep(pause_ns) => {
                drop(held);
                let watermark = &inner.watermark;
                (inner.alarm).sleep(pause_ns, || watermark.wanted() > watermark.through());
            }
            Work::End => {
                let ended = held.write_next().and_then(|()| held.cover());
                held.has_ended = true;
                if let Err(error) = ended {
                    inner.watermark.fail(disk_error(&error));
                }
                return inner.watermark.close();
            }
        }
    }
}

/// Writes the next group in the calling thread, unless another one writes now. Returns whether it
/// did.
pub(super) fn lead(writer: &Mutex<Writer>) -> bool {
    match writer.try_lock() {
        Ok(mut held) if !held.has_ended => {
            held.lead_group();
            true
        }
        // Another thread writes, or the log has ended.
        _ => false,
    }
}

impl Writer {
    fn next_work(&mut self) -> Work {
        let inner = &*self.inner;
        // Acquire pairs with the release in `Log::close`: what was committed before is seen.
        if inner.is_closing.load(Ordering::Acquire) {
            return Work::End;
        }
        let now_ns = time::now_ns();
        if inner.buffers.newest() > self.through {
            let is_wanted = inner.watermark.wanted() > self.through;
            if is_wanted || inner.buffers.pending() >= GATHER_BYTES {
                return Work::Group;
            }
            if self.gathers_since_ns == 0 {
                self.gathers_since_ns = now_ns;
            }
            match (self.gathers_since_ns + GATHER_NS).checked_sub(now_ns) {
                Some(remaining_ns) if remaining_ns > 0 => Work::Sleep(remaining_ns),
                _ => Work::Group,
            }
        } else if self.uncovered_since_ns != 0 && now_ns >= self.uncovered_since_ns + IDLE_NS {
            Work::Cover
        } else {
            Work::Sleep(LOOK_NS)
        }
    }

    /// Writes the next group, and ends the log when that fails.
    fn lead_group(&mut self) {
        // Until it is done: it may panic.
        self.has_ended = true;
        let written = self.write_next();
        self.check(written);
    }

    /// Closes a log epoch and writes its group.
    fn write_next(&mut self) -> disk::Result<()> {
        let through = self.inner.epochs.close().0;
        self.gathers_since_ns = 0;
        let mut group = std::mem::take(&mut self.group);
        self.inner.buffers.take(through, &mut group);
        let epochs = (self.through + 1, through);
        if !group.pieces.is_empty() {
            if Canary::AcknowledgedBeforeWrite.sings() {
                self.inner.watermark.advance(through);
            }
            let written = self.write(&group, epochs);
            let bytes = match written {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.group = group;
                    return Err(error);
                }
            };
            let mut statistics = lock(&self.inner.statistics);
            statistics.entries += group.entries;
            statistics.entry_bytes += group.bytes() as u64;
            statistics.written_bytes += bytes;
            statistics.group_entries.add(group.entries);
        }
        self.inner.buffers.recycle(&mut group);
        self.group = group;
        self.through = through;
        self.inner.watermark.advance(through);
        Ok(())
    }

    /// Writes a block without entries, which calls the last one durable.
    fn cover(&mut self) -> disk::Result<()> {
        if self.uncovered_since_ns != 0 {
            self.write(&Group::default(), (self.through, self.through))?;
            self.uncovered_since_ns = 0;
        }
        Ok(())
    }

    /// Writes the blocks of a group. Returns their bytes.
    fn write(&mut self, group: &Group, epochs: (u64, u64)) -> disk::Result<u64> {
        let (bytes, mut written) = (group.bytes(), 0);
        let mut left = bytes;
        self.room()?;
        // A checkpoint that begins now is recovered from the start of this segment.
        self.inner
            .segment
            .store(self.segment.number, Ordering::Release);
        let mut pieces = group.pieces.iter().map(Vec::as_slice);
        let mut piece: &[u8] = &[];
        loop {
            let room = self.room()?;
            let length = left.min(PAYLOAD_MAX).min(room - HEADER_BYTES);
            left -= length;
            self.begin_block(length);
            let mut wanted = length;
            while wanted > 0 {
                while piece.is_empty() {
                    piece = pieces.next().expect("as many bytes as were counted");
                }
                let (now, rest) = piece.split_at(piece.len().min(wanted));
                let is_appended = self.block.append(now);
                debug_assert!(is_appended, "the block has room for its payload");
                (piece, wanted) = (rest, wanted - now.len());
            }
            let (goes_on, goes_back) = (left > 0, left + length < bytes);
            self.end_block(length, epochs, (goes_on, goes_back))?;
            written += bytes_of(length) as u64;
            if left == 0 {
                self.covered = self.chain.last;
                *lock(&self.inner.end) = Position {
                    chain: self.chain,
                    segment: self.segment.number,
                    offset: self.offset,
                    epoch: epochs.1,
                };
                return Ok(written);
            }
        }
    }

    /// The bytes that are left in the segment, or in the next one.
    fn room(&mut self) -> disk::Result<usize> {
        while self.segment.bytes.saturating_sub(self.offset) < ALIGNMENT as u64 {
            self.segment = self.segments.next()?;
            self.offset = 0;
            self.inner
                .segment
                .store(self.segment.number, Ordering::Relaxed);
        }
        Ok((self.segment.bytes - self.offset) as usize)
    }

    fn begin_block(&mut self, length: usize) {
        if self.block.capacity() < bytes_of(length) {
            self.block = AlignedBuffer::new(bytes_of(length).next_power_of_two());
        }
        self.block.clear();
        let is_appended = self.block.append(&[0; HEADER_BYTES]);
        debug_assert!(is_appended, "a block has room for its header");
    }

    fn end_block(
        &mut self,
        length: usize,
        epochs: (u64, u64),
        (goes_on, goes_back): (bool, bool),
    ) -> disk::Result<()> {
        self.block.pad(ALIGNMENT);
        let header = BlockHeader {
            epochs,
            goes_on,
            goes_back,
            // Groups are written one at a time. A block of this group says nothing of the others: a
            // group without its end is cut off, and the blocks that are left of it must not promise
            // those that take their places.
            durable_through: self.covered,
            written_us: time::wall_clock_us(),
            ..BlockHeader::default()
        };
        self.chain.seal(
            self.block.as_mut_slice(),
            length,
            self.segment.number,
            header,
        );
        let began_ns = time::now_ns();
        let written = self.segment.write(self.offset, &self.block);
        match written {
            Err(_) if Canary::SyncRepeated.sings() => {
                self.segment = self.segments.sync_again(self.segment.number)?;
            }
            other => other?,
        }
        let ended_ns = time::now_ns();
        lock(&self.inner.statistics)
            .write_ns
            .add(ended_ns - began_ns);
        self.offset += self.block.len() as u64;
        self.uncovered_since_ns = ended_ns;
        Ok(())
    }

    fn check(&mut self, written: disk::Result<()>) {
        match written {
            Ok(()) => self.has_ended = false,
            Err(error) => self.fail(disk_error(&error)),
        }
    }

    /// Nothing becomes durable any more. What is still committed, by transactions that had begun,
    /// is no longer among what waits for the disk: then none would begin.
    fn fail(&mut self, error: Error) {
        let inner = &*self.inner;
        self.has_ended = true;
        inner.lose(std::mem::take(&mut self.group), &mut lock(&inner.lost));
        // Release pairs with the acquire in `Log::has_failed`.
        inner.has_failed.store(true, Ordering::Release);
        inner.watermark.fail(error);
        // Last: a client that is refused is told why.
        inner.refuses.store(true, Ordering::Release);
    }
}

impl Inner {
    /// After a failed write: keeps what is still committed, until the log is closed.
    fn collect_lost(&self) {
        while !self.is_closing.load(Ordering::Acquire) {
            self.gather_lost(&mut lock(&self.lost));
            thread::park_for(LOOK_NS);
        }
        self.watermark.close();
    }
}
