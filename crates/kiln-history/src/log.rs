//! Logs: the events of one worker, and the clock that all workers share.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sync::Arc;

use crate::event::{
    Cell, Corrupt, EntryChange, Event, IndexId, Key, Moment, Object, Version, Window, WriteKind,
    decode, head, index_word, key_words, kind, operands, push_key,
};

/// The counter that orders what workers do.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// A counter at 0.
    pub fn new() -> Clock {
        Clock::default()
    }

    /// The present moment; every reading is larger than all before it.
    #[inline]
    pub fn now(&self) -> Moment {
        // Sequentially consistent: readings are taken before and after what they frame, and what
        // is framed must not move out.
        Moment(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// What one worker has recorded: words in memory, up to a limit.
///
/// A log that is full drops nothing: [`Log::is_full`] says so between calls, and the worker's
/// driver stops then. The events of the attempt under way go past the limit.
#[derive(Debug)]
pub struct Log {
    clock: Clock,
    words: Vec<u64>,
    limit_words: usize,
    /// Where the attempt under way begins.
    attempt: usize,
    ranges: u32,
    /// Where in it the events of another operation begin, and of which.
    operations: Vec<(usize, u16)>,
}

impl Log {
    /// An empty log that is full at `limit_bytes`.
    pub fn new(clock: Clock, limit_bytes: usize) -> Log {
        Log {
            clock,
            words: Vec::new(),
            limit_words: limit_bytes / 8,
            attempt: 0,
            ranges: 0,
            operations: Vec::new(),
        }
    }

    /// Whether there is no room for another call.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.words.len() >= self.limit_words
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// What was recorded, for a [`LogReader`].
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// What was recorded; the log is empty afterwards.
    pub fn take_words(&mut self) -> Vec<u64> {
        self.attempt = 0;
        self.operations.clear();
        std::mem::take(&mut self.words)
    }

    /// Records [`Event::Begin`].
    pub fn begin(&mut self, procedure: u32, invoked: Moment) {
        self.ranges = 0;
        self.attempt = self.words.len();
        self.operations.clear();
        self.words.push(head(kind::BEGIN, 1, procedure));
        self.words.push(invoked.0);
    }

    /// Records [`Event::Read`].
    pub fn read(
        &mut self,
        object: Object,
        version: Version,
        cells: impl ExactSizeIterator<Item = Cell>,
    ) {
        self.words.push(head(kind::READ, 2 + cells.len(), 0));
        self.words.extend([object.0, version.0]);
        self.words.extend(cells.map(Cell::to_word));
    }

    /// Says that what the attempt under way has read of `object` in the version `former` it relies
    /// on in `version`: it did not care which it was, and this is the one that it holds on to. The
    /// cells stay, so that their values are compared with those of `version`. So it is where it
    /// found no row because it had deleted the row itself.
    pub fn read_moves(&mut self, object: Object, former: Version, version: Version) {
        let mut rest = self.words.get_mut(self.attempt..).unwrap_or_default();
        let mut has_deleted = false;
        while let Some(&head) = rest.first() {
            let (event, behind) = rest.split_at_mut(1 + operands(head));
            let moves = match head as u8 {
                kind::READ => true,
                kind::READ_ABSENT => has_deleted,
                kind::WRITE if event[1] == object.0 => {
                    has_deleted = head >> 32 == WriteKind::Delete as u64;
                    false
                }
                _ => false,
            };
            if moves && event[1..3] == [object.0, former.0] {
                event[2] = version.0;
            }
            rest = behind;
        }
    }

    /// What is recorded from now on in the attempt under way comes of this operation of its
    /// program.
    pub fn operation(&mut self, op: u16) {
        self.operations.push((self.words.len(), op));
    }

    /// Takes back what was recorded of some operations in the attempt under way: they run again, as
    /// if they had not before. What came before the first operation stays.
    pub fn take_back(&mut self, is_taken_back: impl Fn(u16) -> bool) {
        let recorded = std::mem::take(&mut self.operations);
        let Some(&(first, _)) = recorded.first() else {
            return;
        };
        let ends = recorded.iter().skip(1).map(|(begin, _)| *begin);
        let ends = ends.chain([self.words.len()]);
        let mut left = first;
        for (&(begin, op), end) in recorded.iter().zip(ends) {
            if !is_taken_back(op) {
                self.operations.push((left, op));
                self.words.copy_within(begin..end, left);
                left += end - begin;
            }
        }
        self.words.truncate(left);
    }

    /// Records [`Event::ReadAbsent`].
    pub fn read_absent(&mut self, object: Object, version: Version) {
        self.words.push(head(kind::READ_ABSENT, 2, 0));
        self.words.extend([object.0, version.0]);
    }

    /// Records [`Event::ReadAbsent`] in a snapshot.
    pub fn read_absent_as_of(&mut self, object: Object, snapshot: Version) {
        self.words.push(head(kind::READ_ABSENT, 2, 1));
        self.words.extend([object.0, snapshot.0]);
    }

    /// Records [`Event::Write`].
    pub fn write(
        &mut self,
        object: Object,
        kind: WriteKind,
        cells: impl ExactSizeIterator<Item = Cell>,
    ) {
        self.words
            .push(head(kind::WRITE, 1 + cells.len(), kind as u32));
        self.words.push(object.0);
        self.words.extend(cells.map(Cell::to_word));
    }

    /// Records [`Event::RangeBegin`], now, and returns the range's number.
    pub fn range_begin(&mut self, index: IndexId, low: Key<'_>, high: Key<'_>) -> u32 {
        let range = self.ranges;
        self.ranges += 1;
        let low = without_padding(low);
        let operands = 2 + key_words(low) + key_words(high);
        self.words.push(head(kind::RANGE_BEGIN, operands, range));
        self.words.push(index_word(index));
        self.words.push(self.clock.now().0);
        push_key(&mut self.words, low);
        push_key(&mut self.words, high);
        range
    }

    /// Records [`Event::Met`].
    pub fn met(&mut self, range: u32, object: Object) {
        self.words.push(head(kind::MET, 1, range));
        self.words.push(object.0);
    }

    /// Records [`Event::RangeEnd`], now.
    pub fn range_end(&mut self, range: u32, stopped_at: Key<'_>, reverse: bool) {
        let stopped_at = match reverse {
            true => without_padding(stopped_at),
            false => stopped_at,
        };
        let operands = 2 + key_words(stopped_at);
        self.words.push(head(kind::RANGE_END, operands, range));
        self.words.push(self.clock.now().0);
        self.words.push(reverse as u64);
        push_key(&mut self.words, stopped_at);
    }

    /// Records a range of the single key `key`, read from `from` until now, and what was met there.
    pub fn point(&mut self, index: IndexId, key: Key<'_>, from: Moment, met: &[Object]) {
        let range = self.ranges;
        self.ranges += 1;
        let low = without_padding(key);
        let operands = 2 + key_words(low) + key_words(key);
        self.words.push(head(kind::RANGE_BEGIN, operands, range));
        self.words.extend([index_word(index), from.0]);
        push_key(&mut self.words, low);
        push_key(&mut self.words, key);
        for object in met {
            self.met(range, *object);
        }
        self.range_end(range, &[], false);
    }

    /// Records [`Event::Entry`]; the window ends now.
    pub fn entry(
        &mut self,
        index: IndexId,
        change: EntryChange,
        object: Object,
        from: Moment,
        key: Key<'_>,
    ) {
        let to = self.clock.now();
        self.entry_within(index, change, object, Window { from, to }, key);
    }

    /// Records [`Event::Entry`] for an entry that is removed some time from now on.
    pub fn entry_goes(&mut self, index: IndexId, object: Object, key: Key<'_>) {
        let window = Window {
            from: self.clock.now(),
            to: Moment::LATER,
        };
        self.entry_within(index, EntryChange::Removed, object, window, key);
    }

    fn entry_within(
        &mut self,
        index: IndexId,
        change: EntryChange,
        object: Object,
        window: Window,
        key: Key<'_>,
    ) {
        let key = without_padding(key);
        let operands = 4 + key_words(key);
        self.words.push(head(kind::ENTRY, operands, change as u32));
        self.words
            .extend([index_word(index), object.0, window.from.0, window.to.0]);
        push_key(&mut self.words, key);
    }

    /// Records [`Event::Install`].
    pub fn install(&mut self, object: Object, previous: Version, version: Version) {
        self.words.push(head(kind::INSTALL, 3, 0));
        self.words.extend([object.0, previous.0, version.0]);
    }

    /// Records [`Event::Commit`], now.
    pub fn commit(&mut self) {
        self.words.push(head(kind::COMMIT, 1, 0));
        self.words.push(self.clock.now().0);
    }

    /// Records [`Event::Abort`], now.
    pub fn abort(&mut self, cause: u32) {
        self.words.push(head(kind::ABORT, 1, cause));
        self.words.push(self.clock.now().0);
    }

    /// Records [`Event::Reject`], now.
    pub fn reject(&mut self) {
        self.words.push(head(kind::REJECT, 1, 0));
        self.words.push(self.clock.now().0);
    }
}

/// An entry's key, or a lower bound, without words of zeroes at its end: indexes pad their keys,
/// and as a shorter key comes before those that it begins, nothing changes its place. Upper bounds
/// are left as they are: a shorter one would include more.
fn without_padding(key: Key<'_>) -> Key<'_> {
    let mut rest = key;
    while rest.len() > 8
        && rest.len().is_multiple_of(8)
        && let Some(shorter) = rest.strip_suffix(&[0; 8])
    {
        rest = shorter;
    }
    rest
}

/// Reads the events of a log's words, one after the other.
#[derive(Clone, Debug)]
pub struct LogReader<'a> {
    words: &'a [u64],
    position: usize,
}

impl<'a> LogReader<'a> {
    /// From the start of `words`.
    pub fn new(words: &'a [u64]) -> LogReader<'a> {
        LogReader { words, position: 0 }
    }

    /// The position of the next event, in words from the start.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for LogReader<'a> {
    type Item = Result<Event<'a>, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position == self.words.len() {
            return None;
        }
        let position = self.position;
        match decode(&self.words[position..]) {
            Ok((event, length)) => {
                self.position += length;
                Some(Ok(event))
            }
            Err(reason) => {
                // Nothing behind it can be understood.
                self.position = self.words.len();
                Some(Err(Corrupt { position, reason }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_operations_recorded_is_taken_back_and_nothing_else() {
        let mut log = Log::new(Clock::new(), 1 << 20);
        let begin = |log: &mut Log| {
            let now = log.now();
            log.begin(0, now);
            for (op, object) in [(0, 8), (1, 16), (0, 24), (2, 32)] {
                log.operation(op);
                log.read(Object(object), Version(1), [].into_iter());
            }
        };
        begin(&mut log);
        begin(&mut log);
        log.take_back(|op| op == 0);
        log.operation(0);
        log.read(Object(40), Version(1), [].into_iter());
        log.take_back(|op| op == 1);
        let reads = LogReader::new(log.words()).filter_map(|event| match event {
            Ok(Event::Read { object, .. }) => Some(object.0),
            _ => None,
        });
        assert_eq!(reads.collect::<Vec<_>>(), [8, 16, 24, 32, 32, 40]);
    }

    #[test]
    fn reads_of_the_attempt_under_way_move_and_no_others() {
        let mut log = Log::new(Clock::new(), 1 << 20);
        let cell = |print| [Cell { column: 1, print }].into_iter();
        for procedure in 0..2 {
            let now = log.now();
            log.begin(procedure, now);
            log.read(Object(8), Version(1), cell(10));
            log.read(Object(16), Version(1), [].into_iter());
            log.write(Object(8), WriteKind::Update, cell(20));
            log.read(Object(8), Version(2), [].into_iter());
        }
        log.read_moves(Object(8), Version(1), Version(3));
        let reads = LogReader::new(log.words()).filter_map(|event| match event {
            Ok(Event::Read {
                object, version, ..
            }) => Some((object.0, version.0)),
            _ => None,
        });
        let first = [(8, 1), (16, 1), (8, 2)];
        let second = [(8, 3), (16, 1), (8, 2)];
        assert_eq!(reads.collect::<Vec<_>>(), [first, second].concat());
    }

    #[test]
    fn a_row_that_the_attempt_has_deleted_moves_with_its_reads() {
        let mut log = Log::new(Clock::new(), 1 << 20);
        let now = log.now();
        log.begin(0, now);
        log.read_absent(Object(8), Version(1));
        log.write(Object(16), WriteKind::Delete, [].into_iter());
        log.read_absent(Object(8), Version(1));
        log.write(Object(8), WriteKind::Delete, [].into_iter());
        log.read_absent(Object(8), Version(1));
        log.read_absent(Object(16), Version(1));
        log.write(Object(8), WriteKind::Insert, [].into_iter());
        log.read_absent(Object(8), Version(1));
        log.read_moves(Object(8), Version(1), Version(3));
        let absences = LogReader::new(log.words()).filter_map(|event| match event {
            Ok(Event::ReadAbsent {
                object, version, ..
            }) => Some((object.0, version.0)),
            _ => None,
        });
        let expected = [(8, 1), (8, 1), (8, 3), (16, 1), (8, 1)];
        assert_eq!(absences.collect::<Vec<_>>(), expected);
    }
}
